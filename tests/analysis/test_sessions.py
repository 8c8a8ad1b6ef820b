# SPDX-License-Identifier: Apache-2.0
"""Several sessions of each side: what a reboot changes is noise, and no difference."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from evenhand.analysis import compare, compare_sessions
from evenhand.analysis.comparison_model import ONE_SESSION, TOO_FEW_SESSIONS
from evenhand.analysis.trend import trend
from evenhand.report.comparison import comparison_lines
from evenhand.run.campaign_record import CampaignRecord
from tests.analysis.records import noisy, point, record
from tests.errors import raises


def sessions(
    value: float, count: int, seed: int, *, reboot: float = 0.04, letter: str = "a"
) -> list[CampaignRecord]:
    """Each is shifted as a whole, as by a reboot."""
    draw = random.Random(seed)
    levels = [value * (1 + draw.gauss(0, reboot)) for _ in range(count)]
    return [
        record(point(1, noisy(level, 10, 0.005, seed)), name=f"{letter}{i}")
        for i, level in enumerate(levels, 1)
    ]


def test_a_reboot_is_no_difference_between_sessions_and_nearly_always_one_between_runs() -> None:
    of_runs = of_sessions = 0
    for seed in range(60):
        a, b = sessions(1e5, 6, 2 * seed), sessions(1e5, 6, 2 * seed + 1, letter="b")
        of_runs += compare([a[0], b[0]]).points[0].others[0].is_different is True
        of_sessions += compare_sessions([a, b]).points[0].others[0].is_different is True
    assert of_runs > 40
    assert of_sessions <= 6


def test_a_real_difference_is_found_between_sessions() -> None:
    comparison = compare_sessions([sessions(1e5, 6, 1), sessions(7e4, 6, 2, letter="b")])
    value = comparison.points[0].others[0]
    assert value.is_different
    assert value.statistics is not None
    assert value.statistics.count == 6
    assert comparison.runs[1].sessions == tuple(f"b{i}.evenhand" for i in range(1, 7))
    assert comparison.to_document()["unit"] == "session"
    assert ONE_SESSION not in comparison_lines(comparison)


def test_a_run_is_said_to_be_one_session_and_few_sessions_have_no_interval() -> None:
    a, b = sessions(1e5, 3, 1), sessions(1e5, 3, 2, letter="b")
    assert ONE_SESSION in comparison_lines(compare([a[0], b[0]]))
    few = compare_sessions([a, b])
    assert few.points[0].others[0].is_different is None
    assert TOO_FEW_SESSIONS in comparison_lines(few)


def test_sessions_of_one_side_measured_the_same() -> None:
    odd = record(point(1, [1e5], frame_size=128), name="odd")
    with raises("analysis.no-common-side", match="64 .*128"):
        compare_sessions([[*sessions(1e5, 1, 1), odd], sessions(1e5, 1, 2)])
    two = record(point(1, [1e5]), point(2, [1e5]), name="two")
    with raises("analysis.no-common-side", match="direct/throughput/64/n=2"):
        compare_sessions([[*sessions(1e5, 1, 1), two], sessions(1e5, 1, 2)])


def test_a_run_is_one_session_however_often_it_is_named() -> None:
    """Four times the same file had n = 4 and an interval; a copy, and a file merged from it, are the same
    measurement too."""
    first, *others = sessions(1e5, 4, 1)
    other_side = sessions(1e5, 4, 2)
    copied = replace(first, path=Path("copy.evenhand"))
    merged = replace(first, path=Path("merged.evenhand"), created_at="2026-01-01T00:00:00.000Z")
    for again in (first, copied, merged):
        for sides in ([[first, *others, again], other_side], [[first, *others], [again, *other_side]]):
            with raises("analysis.run-twice", match=first.path.name):
                compare_sessions(sides)
        with raises("analysis.run-twice", match=first.path.name):
            trend([first, again])
        noted = [note for note in compare([first, again]).notes if "say nothing about the DUT" in note]
        assert len(noted) == 1
    assert compare_sessions([[first, *others], other_side]).runs[0].sessions is not None
    assert not compare([first, others[0]]).notes
