# SPDX-License-Identifier: Apache-2.0
"""The largest number that passes: exact for every limit, whatever was known before, and proven on both
sides."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.search import LengthBracket, find_largest


@given(
    limit=st.integers(0, 5000),
    maximum=st.integers(1, 5000),
    step=st.integers(1, 200),
    known=st.none() | st.integers(0, 6000),
)
def test_the_limit_lies_in_the_bracket_and_both_bounds_were_tried(
    limit: int, maximum: int, step: int, known: int | None
) -> None:
    """R9004-05: what was known saves trials, and proves nothing."""
    tried: dict[int, bool] = {}

    def passes(number: int) -> bool:
        assert number not in tried
        assert 1 <= number <= maximum
        tried[number] = number <= limit
        return tried[number]

    found = find_largest(passes, maximum=maximum, step=step, known=known)
    assert found.is_complete
    if limit >= maximum:
        assert found == LengthBracket(lower=maximum, upper=None)
        assert tried[maximum]
        return
    assert found.upper is not None
    assert found.lower <= limit < found.upper
    assert found.upper - found.lower <= step
    assert not tried[found.upper]
    assert found.lower == 0 or tried[found.lower]


def test_what_is_known_saves_trials() -> None:
    """R9004-06: fifty searches for the same limit."""

    def passes(tried: list[int], number: int) -> bool:
        tried.append(number)
        return number <= 640

    plain: list[int] = []
    find_largest(partial(passes, plain), maximum=29_761_904)
    near: list[int] = []
    find_largest(partial(passes, near), maximum=29_761_904, known=640)
    assert near == [640, 641]
    assert plain[0] == 29_761_904
    assert len(plain) == 26


def test_a_number_that_cannot_be_decided_ends_the_search() -> None:
    """R2544-39: it is no bound."""
    found = find_largest(lambda number: None if number == 250 else number <= 600, maximum=1000)
    assert found == LengthBracket(lower=0, upper=500) or found.is_complete
    found = find_largest(lambda number: None if number == 750 else number <= 600, maximum=1000)
    assert (found.lower, found.upper, found.is_complete) == (500, 1000, False)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_limit_far_below_the_known_one_is_found_down_to_a_single_frame(limit: int) -> None:
    """The steps down from where the limit lay before double; the last of them is 1, and nothing is tried
    twice."""
    tried: list[int] = []

    def passes(number: int) -> bool:
        assert number not in tried
        tried.append(number)
        return number <= limit

    bracket = find_largest(passes, maximum=1000, known=600)
    assert (bracket.lower, bracket.upper) == (limit, limit + 1)
    assert min(tried) >= 1
