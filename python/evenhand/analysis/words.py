# SPDX-License-Identifier: Apache-2.0
"""Analysis: figures in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def show_percent(share: float) -> str:
    """One digit: `12.5 %`."""
    return f"{100 * share:.1f} %"


def show_probability(p_value: float) -> str:
    """`p = 0.012`, `p < 0.0001`."""
    return f"p = {p_value:.2g}" if p_value >= 1e-4 else "p < 0.0001"


def too_coarse(search_width: float, precision: float) -> str:
    """Why there is no answer, if searches end with brackets so wide, and at which precision there would be
    one."""
    return (
        f"the searches stop at {show_percent(search_width)}: --precision {100 * precision:g}% would decide it"
    )


def join(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def as_sentence(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
