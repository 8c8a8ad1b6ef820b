# SPDX-License-Identifier: Apache-2.0
"""OTG: the numbers of a field in the order of the frames, whatever pattern they are written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from evenhand.exchange.otg_flow import choice_of
from evenhand.plan import FieldPattern, Mode

LARGEST_PORT = 65535
Numbers = Sequence[int]
"""Frame k of a flow has number k, again from the first after the last; never empty."""


def numbers_of(
    field: Mapping[str, Any], at: str, errors: list[str], *, least: int = 0, most: int, default: int = 0
) -> Numbers:
    """Those of a value, of values, or of an increment or decrement with any step.

    Args:
        default: OTG's own number, where the field has none.
        errors: What cannot be sent is added; the numbers are then one that can.
    """
    choice = choice_of(field, "value")
    inner: Any = field.get(choice, default if choice == "value" else {})
    found: Numbers = ()
    if choice == "value":
        found = (inner,)
    elif choice == "values":
        found = tuple(inner or (default,))
    elif choice in ("increment", "decrement"):
        start, step, count = (int(inner.get(key, usual)) for key, usual in (("start", default), *_ONE))
        rise = step if choice == "increment" else -step
        found = range(start, start + rise * count, rise) if rise and count > 1 else (start,)
    else:
        errors.append(f"{at}: {choice}: only value, values, increment and decrement can be sent here")
        return (least,)
    ends = (found[0], found[-1]) if isinstance(found, range) else found
    if wrong := [number for number in ends if type(number) is not int or not least <= number <= most]:
        missing = ", OTG's default," if not field else ""
        errors.append(f"{at}: {wrong[0]}{missing} is not from {least:,} to {most:,}, which can be sent")
        return (least,)
    return found


_ONE = (("step", 1), ("count", 1))


def is_side_by_side(numbers: Numbers) -> bool:
    """Whether each is one above or one below the last throughout, as a range of a plan has them."""
    if isinstance(numbers, range):
        return abs(numbers.step) == 1
    steps = {b - a for a, b in pairwise(numbers)}
    return steps in (set(), {1}, {-1})


def as_pattern(numbers: Numbers) -> dict[str, Any]:
    """Numbers that lie side by side, as OTG writes them."""
    if len(numbers) == 1:
        return {"choice": "value", "value": numbers[0]}
    choice = "increment" if numbers[1] > numbers[0] else "decrement"
    return {"choice": choice, choice: {"start": numbers[0], "step": 1, "count": len(numbers)}}


def as_field(numbers: Numbers) -> int | FieldPattern:
    """The same for a flow of a plan: one number, or one after the other with the flow's frames."""
    if len(numbers) == 1:
        return numbers[0]
    steps = {b - a for a, b in pairwise(numbers)}
    step = numbers[1] - numbers[0]
    if len(steps) > 1 or step == 0:
        return FieldPattern(values=tuple(numbers), mode="increment")
    mode: Mode = "increment" if step > 0 else "decrement"
    return FieldPattern(first=min(numbers[0], numbers[-1]), count=len(numbers), step=abs(step), mode=mode)
