# SPDX-License-Identifier: Apache-2.0
"""Testbeds that agree and that do not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from evenhand.analysis import analyse, compare_testbeds
from evenhand.run.campaign_record import PointRecord
from tests.analysis.records import point, record


def on_testbeds(hosts: int, values: dict[str, Sequence[float | None]]) -> PointRecord:
    """One point, its repetitions on several testbeds."""
    found = [point(hosts, of_bed, testbed=name) for name, of_bed in values.items()]
    return replace(found[0], repetitions=tuple(repetition for one in found for repetition in one.repetitions))


def test_alike_testbeds_agree_and_noise_names_them_seldom() -> None:
    """At most as often as the level says, over many campaigns of four points."""
    draw = random.Random(7)
    named = 0
    for _ in range(200):
        points = [
            on_testbeds(n, {bed: [draw.gauss(1e6, 1e4) for _ in range(10)] for bed in ("munich", "berlin")})
            for n in (1, 4, 16, 64)
        ]
        found = compare_testbeds(record(*points))
        assert found is not None
        named += bool(found.different)
    assert named <= 20  # 5 % of 200 are 10


def test_a_difference_beyond_the_noise_is_named_with_both_medians() -> None:
    """Also one that is small: it is said to be."""
    same = on_testbeds(
        1, {"munich": [100e3, 101e3, 99e3, 100e3, 102e3], "berlin": [101e3, 100e3, 100e3, 99e3, 101e3]}
    )
    far = on_testbeds(
        4, {"munich": [400e3, 401e3, 402e3, 403e3, 404e3], "berlin": [300e3, 301e3, 302e3, 303e3, 304e3]}
    )
    near = on_testbeds(16, {"munich": [800e3 + n for n in range(5)], "berlin": [810e3 + n for n in range(5)]})
    found = compare_testbeds(record(same, far, near))
    assert found is not None
    assert [test.key for test in found.different] == [far.point.key, near.point.key]
    assert found.different[0].change == pytest.approx(302 / 402 - 1)
    assert (
        f"disagree on {far.point.key}: median 402,000 fps and 302,000 fps, 24.9 % less" in found.sentences[1]
    )
    assert "though less than 5.0 %" in found.sentences[2]
    assert "Mann-Whitney" in found.method
    assert analyse(record(same, far, near)).testbeds == found


def test_too_few_repetitions_are_held_against_a_tolerance() -> None:
    close = on_testbeds(1, {"munich": [100e3], "berlin": [104e3]})
    apart = on_testbeds(4, {"munich": [100e3], "berlin": [110e3]})
    found = compare_testbeds(record(close, apart))
    assert found is not None
    assert [test.key for test in found.different] == [apart.point.key]
    assert "a tolerance, not a test" in found.method


def test_points_of_one_testbed_each_say_nothing_of_testbeds() -> None:
    assert (
        compare_testbeds(
            record(point(1, [1.0, 2.0], testbed="munich"), point(4, [5.0, None], testbed="berlin"))
        )
        is None
    )


def test_a_testbed_without_a_number_is_not_compared() -> None:
    assert compare_testbeds(record(on_testbeds(1, {"munich": [1.0, 2.0], "berlin": [None, None]}))) is None
