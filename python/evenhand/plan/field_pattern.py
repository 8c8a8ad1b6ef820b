# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: how a field of one flow's frames takes its values: those of a list, or of a range
with a step, drawn or in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.plan.ranges import Mode

LONGEST_LIST = 1024
"""Values of a list."""
_MODES: tuple[Mode, ...] = ("pseudorandom", "increment", "decrement")
_RANGE = re.compile(r"(.+?)-(.+?)(?::(pseudorandom|increment|decrement))?")
_KEYS = ("values", "first", "last", "count", "step", "mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPattern:
    """The values of a list, or first, first + step, ...; drawn, each equally likely, or in turn with the
    frames of the flow."""

    values: tuple[int, ...] = ()
    """A list; empty: `first`, `count` and `step` say which."""
    first: int = 0
    count: int = 1
    step: int = 1
    mode: Mode = "pseudorandom"

    @property
    def all_values(self) -> tuple[int, ...] | range:
        """Each by its number."""
        return self.values or range(self.first, self.first + self.count * self.step, self.step)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest value."""
        return min(self.all_values), max(self.all_values)

    @property
    def shape(self) -> tuple[int, Mode]:
        """What fields in lock-step have in common: how many values, and their mode."""
        return len(self.all_values), self.mode

    def to_document(self) -> dict[str, Any]:
        """As the engine reads it (contract/request.schema.json)."""
        said: dict[str, Any] = (
            {"values": list(self.values)}
            if self.values
            else {"first": self.first, "count": self.count, "step": self.step}
        )
        return {**said, "mode": self.mode}

    def words(self, show: Callable[[int], str] = str) -> str:
        """`5060 .. 5099`, `46, 34 or 0`, `1000 .. 1990 in steps of 10, increment`."""
        if len(self.all_values) == 1:
            return show(self.all_values[0])
        if self.values:
            shown = [show(value) for value in self.values]
            text = " or ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) < 9 else ""
            text = text or f"{len(shown)} values from {shown[0]} to {shown[-1]}"
        else:
            text = f"{show(self.first)} .. {show(self.all_values[-1])}"
        if not self.values and self.step != 1:
            text += f" in steps of {self.step}"
        return text if self.mode == "pseudorandom" else f"{text}, {self.mode}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGrammar:
    """How the values of one field are written."""

    key: str
    read: Callable[[Any], int | None]
    """None for what is no value."""
    least: int
    most: int
    example: str
    """An example of a range."""
    name: str
    """What one value is: `a UDP port`."""

    def parse(self, value: Any) -> int | FieldPattern:
        """One value, a list, a range such as `5060-5099:increment`, or a table with `values`, or `first` and
        `last` or `count`, and `step` and `mode`.

        Raises:
            PlanError: It is none of these.
        """
        if isinstance(value, list | tuple):
            return self._of_list(value)
        if isinstance(value, Mapping):
            return self._of_table(value)
        if (single := self.read(value)) is not None:
            return self._within(single)
        found = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            raise self._refusal(value)
        table = {"first": found[1], "last": found[2], **({"mode": found[3]} if found[3] else {})}
        return self._of_table(table, written=value)

    def _of_list(self, value: list[Any] | tuple[Any, ...], mode: Mode = "pseudorandom") -> FieldPattern:
        if not 1 <= len(value) <= LONGEST_LIST:
            raise PlanError(
                f"a list of {len(value)} values",
                code="plan.not-a-field-pattern",
                where=self.key,
                next_step=f"Give 1 to {LONGEST_LIST}, or a range with a step.",
            )
        return FieldPattern(values=tuple(self._one(each) for each in value), mode=mode)

    def _of_table(self, table: Mapping[str, Any], written: Any = None) -> FieldPattern:
        unknown = [key for key in table if key not in _KEYS]
        is_list = "values" in table
        ends = [key for key in ("last", "count") if key in table]
        if unknown or is_list == ("first" in table) or (len(ends) != (0 if is_list else 1)):
            raise self._refusal(dict(table) if written is None else written)
        mode = table.get("mode", "pseudorandom")
        if mode not in _MODES:
            raise PlanError(
                f"{mode!r} is no way to choose values",
                code="plan.not-a-field-pattern",
                where=self.key,
                next_step="Write pseudorandom, increment or decrement.",
            )
        if is_list:
            if "step" in table or not isinstance(table["values"], list | tuple):
                raise self._refusal(dict(table))
            return self._of_list(table["values"], mode)
        first, step = self._one(table["first"]), self._whole(table, "step", 1)
        if "count" in table:
            last = first + (self._whole(table, "count", 1) - 1) * step
        else:
            last = self._one(table["last"])
        if last < first or (last - first) % step:
            raise PlanError(
                f"values from {table['first']} to {table.get('last', last)} in steps of {step}",
                code="plan.not-a-field-pattern",
                where=self.key,
                next_step="Let the last be the first plus a whole number of steps; for falling values, mode ="
                ' "decrement".',
            )
        self._within(last)
        return FieldPattern(first=first, count=(last - first) // step + 1, step=step, mode=mode)

    def _whole(self, table: Mapping[str, Any], key: str, otherwise: int) -> int:
        value = table.get(key, otherwise)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1 << 20:
            return value
        raise PlanError(
            f"{key} = {value!r}",
            code="plan.not-a-field-pattern",
            where=self.key,
            next_step="Write a whole number from 1 to 1048576.",
        )

    def _one(self, value: Any) -> int:
        if (found := self.read(value)) is None:
            raise self._refusal(value)
        return self._within(found)

    def _within(self, value: int) -> int:
        if self.least <= value <= self.most:
            return value
        raise PlanError(
            f"{value} is not {self.name}",
            code="plan.not-a-field-value",
            where=self.key,
            next_step=f"Write {self.least} to {self.most}.",
        )

    def _refusal(self, value: Any) -> PlanError:
        return PlanError(
            f"{value!r} is neither {self.name} nor several",
            code="plan.not-a-field-pattern",
            where=self.key,
            next_step=f"Write one, a list, a range such as '{self.example}', or a table such as"
            " { first = .., count = .., step = .., mode = 'increment' }.",
        )


def whole_number(value: Any) -> int | None:
    """A number of a TOML file, or in the text of a range."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    return int(text, 16) if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text) else None
