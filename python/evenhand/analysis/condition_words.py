# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a procedure, a campaign file or a trial was asked for, in words instead of the keys that a
file has it under."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.base.units import format_count, format_duration, format_rate, format_ratio

GOAL, PLAN_OPTION, SENT, SETUP = "goal: ", "plan option ", "sent ", "set-up: "
"""Before the names of conditions."""
NOT_STATED = "not set"
LONGEST_VALUE = 100
"""Characters of a value that are shown."""
_Write = Callable[[float], str]
_OWN_NAMES: Mapping[str, tuple[str, _Write | None]] = {
    "max_fps": ("maximum rate", format_rate),
    "is_max_ceiling": ("the maximum is the tester's own:", None),
    "min_fps": ("minimum rate", format_rate),
    "duration_s": ("duration", format_duration),
    "stops_early": ("a trial may end early:", None),
    "is_guided": ("the search is guided:", None),
    "has_variation": ("with delay variation:", None),
    "from_s": ("frames count from", format_duration),
    "start": ("connections to begin with", format_count),
    "most": ("most connections", format_count),
    "width": ("width", format_ratio),
    "alpha": ("alpha", None),
}
"""Words for keys of the goals that procedures write, where the key's own words would not do."""
_UNITS: tuple[tuple[str, _Write, str], ...] = (
    ("fps_per_direction", format_rate, "fps"),
    ("fps", format_rate, "fps"),
    ("s", format_duration, "s"),
    ("us", lambda value: format_duration(value / 1e6), "us"),
    ("frames", format_count, ""),
    ("ratio", format_ratio, ""),
    ("precision", format_ratio, ""),
    ("step", format_ratio, ""),
    ("tolerance", format_ratio, ""),
)
"""Last word of a key, which names the unit: how a value is written, and the unit of its plain number."""
_STAYS = ("frames", "ratio", "precision", "step", "tolerance")
_CAPITALS = {"udp": "UDP", "mac": "MAC", "macs": "MACs", "mlr": "MLR", "ipv4": "IPv4", "ipv6": "IPv6"}


def unlike_words(key: str, one: Any, other: Any) -> str:
    """`goal: maximum rate 107.3 kfps against 60 kfps`.

    Args:
        key: With one of the heads above, or a name that is words already.
        one: Its value in the first run; None: it has none.
        other: The same of the other.
    """
    head = next((head for head in (GOAL, PLAN_OPTION, SENT, SETUP) if key.startswith(head)), "")
    path = key.removeprefix(head)
    is_yes_or_no = bool in (type(one), type(other))
    shown = [_shown(path, bool(value) if is_yes_or_no else value) for value in (one, other)]
    if shown[0] == shown[1]:  # rounded to the same: the numbers themselves
        shown = [_exactly(path, value) for value in (one, other)]
    name = f"{head}{_name(path)}" if head else key
    return f"{name}{':' if is_yes_or_no and name[-1:] != ':' else ''} {shown[0]} against {shown[1]}"


def show_in_short(value: Any) -> str | None:
    """A value as a cell or sentence has it: lists with commas, yes and no; what is long is cut."""
    if value is None:
        return None
    text = (
        ", ".join(map(str, value))
        if isinstance(value, list | tuple) and value
        else "none"
        if isinstance(value, list | tuple)
        else {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else str(value)
    )
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _name(path: str) -> str:
    """`waits.after_routing_s`: `waits after routing`."""
    *parents, last = path.split(".")
    own = _OWN_NAMES.get(last)
    words = [*parents, own[0] if own is not None else _without_unit(last)]
    return " ".join(_CAPITALS.get(word, word) for part in words for word in re.split(r"[_ ]", part) if word)


def _without_unit(name: str) -> str:
    unit = _unit(name)
    return name if unit is None or unit[0] in _STAYS else name.removesuffix(unit[0]).rstrip("_") or name


def _unit(name: str) -> tuple[str, _Write, str] | None:
    return next((unit for unit in _UNITS if name == unit[0] or name.endswith(f"_{unit[0]}")), None)


def _shown(path: str, value: Any) -> str:
    """With its unit, if its key names one; an option that a campaign file spells stays as it is spelled."""
    if type(value) in (int, float):
        last = path.rpartition(".")[2]
        own, unit = _OWN_NAMES.get(last), _unit(last)
        write = own[1] if own is not None else None if unit is None else unit[1]
        if write is not None:
            return write(value)
    return show_in_short(value) or NOT_STATED


def _exactly(path: str, value: Any) -> str:
    unit = _unit(path.rpartition(".")[2])
    if type(value) not in (int, float):
        return show_in_short(value) or NOT_STATED
    return f"{value!r} {unit[2] if unit else ''}".rstrip()


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
        f"the searches stop at {show_percent(search_width)}: a precision of {100 * precision:g}% would"
        " decide it"
    )


def join(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def as_sentence(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
