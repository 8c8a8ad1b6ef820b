# SPDX-License-Identifier: Apache-2.0
"""Station 10: what `evenhand check` reports of several engines, each by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenhand.trial import ComparedClock


def engine_title(name: str, ssh: str | None) -> str:
    return f"engine {name}, on {'this host' if ssh is None else ssh}"


def clock_lines(clocks: Mapping[str, ComparedClock], limit_us: float) -> Iterator[str]:
    """How far each engine's clock is from this host's, and whether trials can start together.

    Args:
        clocks: Clocks by the engine's name.
        limit_us: Limit of a valid trial for the offset's uncertainty, in us: the offset itself is corrected.
    """
    for name, clock in clocks.items():
        line = (
            f"Clock of engine {name}, against this host's: {clock.offset_us:+,.0f} us"
            f" (give or take {clock.uncertainty_us:,.0f} us)."
        )
        if clock.uncertainty_us > limit_us:
            line += (
                f" Trials will be INVALID: how far the starts are apart must be known to {limit_us:,.0f} us."
                " Use a shorter way to that host, or raise start_difference in [limits]."
            )
        yield line
