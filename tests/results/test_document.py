# SPDX-License-Identifier: Apache-2.0
"""Results: a type as a document and back, and what is refused on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import pytest

from evenhand.base.validation.document import at_key, beside, from_document, to_document
from evenhand.results.goal import ProcedureGoal, check_repetitions
from evenhand.results.recovery import RecoveryGoal


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Whole:
    rate_fps: float = at_key("rate_fps_per_direction")
    count: int = 0
    is_new: bool = False
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] = ()
    sides: Mapping[Literal["left", "right"], Part] | None = None
    note: str = at_key(None, "kept")
    more: Mapping[str, Any] | None = None


DOCUMENT = {
    "rate_fps_per_direction": 2.5,
    "count": 3,
    "is_new": True,
    "colour": "red",
    "parts": [{"name": "a", "share": None}, {"name": "b", "share": 0.5}],
    "sides": {"left": {"name": "c", "share": 1}},
    "more": {"any": [1]},
}


def test_a_document_is_read_and_written_again() -> None:
    found = from_document(Whole, DOCUMENT, "x")
    assert found.parts == (Part(name="a"), Part(name="b", share=0.5))
    assert (found.colour, found.note) == (Colour.RED, "kept")
    assert to_document(found) == DOCUMENT
    assert list(to_document(found)) == list(DOCUMENT)


def test_what_a_document_lacks_is_the_default() -> None:
    assert from_document(Whole, {"rate_fps_per_direction": 1, "count": None}, "x") == Whole(rate_fps=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate_fps_per_direction": None}, "x lacks rate_fps_per_direction"),
        ({"rate_fps_per_direction": True}, "x.rate_fps_per_direction is True, but must be a number"),
        ({"rate_fps_per_direction": float("nan")}, "x.rate_fps_per_direction is nan, but must be a number"),
        ({"count": 1.5}, "x.count is 1.5, but must be a whole number"),
        ({"count": 1 << 64}, "x.count is 18446744073709551616, but must be a whole number"),
        ({"is_new": 1}, "x.is_new is 1, but must be true or false"),
        ({"colour": "blue"}, "x.colour is 'blue', but must be one of red"),
        ({"colour": ["red"]}, "x.colour is ['red'], but must be text"),
        ({"parts": {}}, "x.parts is {}, but must be a list"),
        ({"parts": [{"name": "a"}, 5]}, "x.parts[1] is 5, but must be a table"),
        ({"parts": [{"share": 1}]}, "x.parts[0] lacks name"),
        ({"sides": {"top": {"name": "a"}}}, "x.sides is 'top', but must be one of left, right"),
        ({"sides": {"left": {"name": 1}}}, "x.sides.left.name is 1, but must be text"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is compared
        from_document(Whole, {**DOCUMENT, **change}, "x")
    assert str(caught.value) == said


def test_a_goal_that_nobody_can_have_asked_for_is_refused() -> None:
    document = RecoveryGoal(throughput_fps=1e6).to_document()
    assert from_document(RecoveryGoal, document, "x").to_document() == document
    with pytest.raises(ValueError, match=r"^x is not possible: repetitions: 0 repetitions"):
        from_document(RecoveryGoal, {**document, "repetitions": 0}, "x")


def test_a_goal_has_its_own_keys_before_those_of_all() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Goal(ProcedureGoal):
        repetitions: int = 5

        def check(self) -> None:
            check_repetitions(self.repetitions, 5)

    assert list(Goal().to_document()) == ["repetitions", "invalid_retries", "patience"]


def test_keys_may_stand_beside_others_and_only_where_they_say_something() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Found:
        count: int = at_key("count", 0, only_if=lambda found: found.count > 0)
        length_s: float | None = at_key("length_s", None, written="known_s")
        of: Mapping[Literal["a", "b"], Part | None] = beside()

        @property
        def known_s(self) -> float:
            return 2.0 if self.length_s is None else self.length_s

    written = to_document(Found(of={"b": Part(name="c"), "a": None}))
    assert written == {"length_s": 2.0, "b": {"name": "c", "share": None}, "a": None}
    found = from_document(Found, {**written, "count": 3, "d": 5}, "x")
    assert found == Found(count=3, length_s=2.0, of={"a": None, "b": Part(name="c")})
    assert to_document(found) == {"count": 3, **written}
    with pytest.raises(ValueError, match=r"^x\.a is 5, but must be a table$"):
        from_document(Found, {"a": 5}, "x")
