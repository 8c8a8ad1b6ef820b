# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames on simulated devices, whose buffer is known: what is searched, what is reckoned, what
is told."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from evenhand.plan import make_plan, mix_versions
from evenhand.procedure import BackToBack, BackToBackGoal, BackToBackTable, Profile
from evenhand.procedure.back_to_back import search_burst
from evenhand.procedure.back_to_back_result import why_skipped
from evenhand.procedure.descriptor import EXACT, LeftOpen
from evenhand.procedure.maximum import check_given
from evenhand.procedure.registry import BACK_TO_BACK
from evenhand.procedure.tester import choose_maximum
from evenhand.report.found import found_lines, found_tables
from evenhand.trial import SimulatedMeasurer
from tests.errors import raises
from tests.procedure.simulated import attempts_with
from tests.report.test_throughput import shown

LINE_FPS = 14_880_952
SERVICE_FPS = 10_000_000.0
BUFFER_FRAMES = 8_192
LONGEST = math.floor(BUFFER_FRAMES / (1 - SERVICE_FPS / LINE_FPS))
GOAL = BackToBackGoal(rate_fps=LINE_FPS, throughput_fps=SERVICE_FPS, repetitions=3)


def profile_of(name: str = "gateway-v4", theoretical_fps: int | None = LINE_FPS) -> Profile:
    return Profile(
        plan=make_plan(name).one_pair(),
        frame_size=64,
        seed=1,
        directions=("forward", "reverse"),
        line_rate_bps=1e10,
        theoretical_fps=theoretical_fps,
    )


def measure(goal: BackToBackGoal = GOAL, profile: Profile | None = None, **device: Any) -> BackToBack:
    measurer = SimulatedMeasurer(**{"limit_fps": SERVICE_FPS, "buffer_frames": BUFFER_FRAMES, **device})
    attempts = attempts_with(measurer, goal, "burst")
    found: list[Any] = []
    for _ in range(goal.repetitions):
        known = found[-1].frames if found else None
        longest_s = max((search.longest_s for search in found), default=goal.max_burst_s)
        found.append(search_burst(attempts, goal, known=known, longest_s=longest_s))
        if found[-1].frames is None:
            break
    return BackToBack(
        profile=profile or profile_of(), goal=goal, throughput=None, skipped=None, repetitions=tuple(found)
    )


def test_the_longest_burst_is_found_to_the_frame() -> None:
    """R9004-04, R9004-05: each trial is one burst of whole frames at minimum gap; both bounds are proven in
    each repetition."""
    found = measure()
    assert found.values == (LONGEST,) * 3
    assert all(search.bracket.upper == LONGEST + 1 for search in found.repetitions)
    first = found.repetitions[0].trials[0]
    assert first.directions["forward"].intended_frames == 2 * LINE_FPS
    assert first.raw["burst"]["rate_fps"] == LINE_FPS
    assert [len(search.trials) for search in found.repetitions[1:]] == [2, 2]


def test_the_buffer_time_is_that_of_rfc_9004() -> None:
    """R9004-08, R9004-09: its own example; and at the throughput nothing is left."""
    found = measure()
    assert found.implied_buffer_s == pytest.approx(LONGEST / LINE_FPS)
    assert found.corrected_buffer_s == pytest.approx(BUFFER_FRAMES / LINE_FPS, rel=1e-3)
    at_service = replace(found, goal=replace(GOAL, actual_fps=SERVICE_FPS))
    assert at_service.actual_buffer_s == pytest.approx(BUFFER_FRAMES / SERVICE_FPS, rel=1e-3)
    example = replace(found.repetitions[0], bracket=replace(found.repetitions[0].bracket, lower=26_000))
    rfc = replace(found, repetitions=(example,), goal=replace(GOAL, throughput_fps=float(LINE_FPS)))
    assert rfc.implied_buffer_s == pytest.approx(0.001747, abs=1e-6)
    assert rfc.corrected_buffer_s == 0


def test_average_and_spread_are_over_the_repetitions() -> None:
    """R9004-06, R9004-07, R9004-11: every value, average, minimum, maximum, standard deviation."""
    found = measure()
    searches = [
        replace(search, bracket=replace(search.bracket, lower=frames))
        for search, frames in zip(found.repetitions, (10, 20, 60), strict=True)
    ]
    spread = replace(found, repetitions=tuple(searches))
    assert (spread.values, spread.average_frames) == ((10, 20, 60), 30)
    assert spread.standard_deviation_frames == pytest.approx(math.sqrt(700))
    table = shown(found_tables(BackToBackTable(rows=(spread,)), BACK_TO_BACK)[-1])
    for word in ("30", "10", "60", "26.5", "3 of 3", "throughput, fps", "10,000,000"):
        assert word in table
    document = spread.to_document()
    assert document["values"] == [10, 20, 60]
    assert (document["minimum_frames"], document["maximum_frames"]) == (10, 60)
    text = "\n".join(found_lines(BackToBackTable(rows=(found,)), BACK_TO_BACK))
    assert "Binary search for the burst to 1 frame, bursts of up to 2 s; 3 repetitions" in text
    assert "at most 29,761,904 frames" in text
    assert "theoretical limit 14,880,952 fps per direction (10 Gbps)" in text


@pytest.mark.parametrize("share", [0.9, 1 / 0.96, 0.01])
def test_a_result_near_the_limit_is_repeated_with_longer_bursts(share: float) -> None:
    """R9004-04: the search's limit is no buffer, whether the longest burst passed or one just below it."""
    longest_s = share * LONGEST / LINE_FPS
    found = measure(replace(GOAL, max_burst_s=longest_s))
    assert found.values == (LONGEST,) * 3
    assert {search.outcome for search in found.repetitions} == {"found"}
    assert not found.is_near_maximum
    assert not found.is_at_least
    raises = 1 if share > 0.5 else 4
    assert found.longest_s == pytest.approx(longest_s * 4**raises)
    assert max(trial.directions["forward"].intended_frames for trial in found.trials) <= GOAL.frames_in(
        found.longest_s
    )
    # Later repetitions know it.
    assert [len(search.trials) for search in found.repetitions[1:]] == [2, 2]
    assert "R9004-04" not in {deviation.requirement for deviation in found.deviations}
    lines = "\n".join(found_lines(BackToBackTable(rows=(found,)), BACK_TO_BACK))
    assert "a result was close to the longest burst of" in lines
    assert found.to_document()["longest_burst_tried_frames"] == GOAL.frames_in(found.longest_s)


def test_a_buffer_that_holds_thirty_seconds_is_at_least_that_large() -> None:
    """R9004-04, R9004-08, R9004-09: nothing longer may be tried, so all figures are lower bounds, and the
    deviation says why."""
    slow = replace(GOAL, rate_fps=1000.0, throughput_fps=900.0, actual_fps=900.0)
    beyond = measure(slow, limit_fps=900.0, buffer_frames=1e6)
    assert {search.outcome for search in beyond.repetitions} == {"at_maximum"}
    assert beyond.values == (30_000,) * 3
    assert beyond.is_at_least
    table = BackToBackTable(rows=(beyond,))
    assert (
        shown(found_tables(table, BACK_TO_BACK)[-1]).count(">= ") == 4
    )  # average, minimum, maximum, corrected buffer time
    lines = "\n".join(found_lines(table, BACK_TO_BACK))
    assert (
        "buffer time implied at least 30 s, corrected at least 3 s; at 900 fps, the rate of interest, at"
        " least 3.333 s" in lines
    )
    told = {deviation.requirement: deviation.text for deviation in beyond.deviations}
    assert (
        told["R9004-04"]
        == "a result was close to the longest burst of 30 s, and bursts longer than 30 s are not tried"
    )
    assert beyond.to_document()["is_at_least"] is True


def test_longer_bursts_that_the_tester_cannot_offer_leave_a_lower_bound() -> None:
    """R9004-04: the first burst passes, and no longer one is ever valid."""
    goal = replace(GOAL, max_burst_s=0.5 * LONGEST / LINE_FPS, repetitions=1)
    found = measure(goal, invalid_trials=range(2, 1000))
    (search,) = found.repetitions
    assert (search.outcome, search.frames, search.is_held_back) == ("at_maximum", goal.max_frames, True)
    assert found.outcome == "measured"
    told = {deviation.requirement: deviation.text for deviation in found.deviations}
    assert "the tester could not offer longer bursts" in told["R9004-04"]


def test_sizes_at_the_line_rate_are_skipped_with_a_note() -> None:
    """R9004-02."""
    assert "RFC 9004, 6.1" in str(why_skipped(None, float(LINE_FPS), GOAL))
    assert "no throughput" in str(why_skipped(None, None, GOAL))
    assert why_skipped(None, SERVICE_FPS, GOAL) is None
    skipped = replace(measure(), skipped=why_skipped(None, float(LINE_FPS), GOAL), repetitions=())
    assert skipped.outcome == "skipped"
    table = BackToBackTable(rows=(skipped,))
    assert "skipped" in shown(found_tables(table, BACK_TO_BACK)[-1])
    assert "RFC 9004, 6.1" in "\n".join(found_lines(table, BACK_TO_BACK))
    assert table.to_document()["rows"][0]["corrected_buffer_time_s"] is None


def test_what_departs_from_the_rfc_is_told() -> None:
    """R9004-01, R9004-03, R9004-06, R5180-17."""
    slow = replace(GOAL, rate_fps=12e6)
    found = replace(measure(slow, profile=profile_of("gateway-v6")), residual_s=0.3)
    told = {deviation.requirement: deviation.text for deviation in found.deviations}
    assert "was given by the user and not measured first" in told["R9004-01"]
    assert "3 repetitions instead of 50" in told["R9004-06"]
    assert "RFC 5180 omits back-to-back" in told["R5180-17"]
    of_trial = [deviation.text for deviation in found.deviations if deviation.requirement == "R9004-03"]
    assert of_trial == [
        "frames of a burst follow at 12,000,000 fps, not at minimum gap",
        "waited 300 ms after a burst instead of 2 s",
    ]
    measured = replace(measure(), goal=replace(GOAL, throughput_source="first.evenhand", repetitions=50))
    assert {deviation.requirement for deviation in measured.deviations} == set()


@pytest.mark.parametrize(("first", "second"), [("gateway-v4", "gateway-v6"), ("gateway-v6", "gateway-v4")])
def test_ipv6_departs_from_the_rfc_wherever_it_stands_in_a_mix(first: str, second: str) -> None:
    """R5180-17."""
    plan = mix_versions(make_plan(first), make_plan(second), (1, 1))
    found = measure(profile=replace(profile_of(), plan=plan))
    assert "R5180-17" in {deviation.requirement for deviation in found.deviations}


def test_invalid_bursts_are_sent_again_and_not_charged_to_the_dut() -> None:
    """R2544-39."""
    found = measure(invalid_trials=(1, 2, 5))
    assert found.values == (LONGEST,) * 3
    assert found.repetitions[0].attempts[:3] == (1, 2, 3)
    ended = measure(tester_ceiling_fps=LINE_FPS / 2)
    assert (ended.outcome, ended.values, ended.corrected_buffer_s) == ("tester_ceiling", (), None)
    assert "says nothing about the DUT" in "\n".join(
        found_lines(BackToBackTable(rows=(ended,)), BACK_TO_BACK)
    )


def test_a_lossy_burst_can_be_verified() -> None:
    """R9004-05: binary search with loss verification (ETSI TST009, 12.3)."""
    noise: dict[str, Any] = {"noise_probability": 0.3, "seed": 3}
    plain, verified = measure(**noise), measure(replace(GOAL, loss_verifications=5), **noise)
    assert plain.values[0] < LONGEST
    assert verified.values[0] == LONGEST
    assert "sent again up to 5 times" in "\n".join(
        found_lines(BackToBackTable(rows=(verified,)), BACK_TO_BACK)
    )


def test_a_device_that_passes_no_frame_has_no_burst() -> None:
    found = measure(limit_fps=0.0, buffer_frames=0.0)
    assert found.values == (0, 0, 0)
    assert found.implied_buffer_s == 0


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"max_burst_s": 30.1}, "procedure.out-of-range", "max_burst_s"),
        ({"max_burst_s": 0.0}, "procedure.out-of-range", "max_burst_s"),
        ({"max_burst_s": 1e-9}, "procedure.burst-too-short", "max_burst_s"),
        ({"rate_fps": 0.0}, "procedure.out-of-range", "rate_fps"),
        ({"step_frames": 0}, "procedure.out-of-range", "step_frames"),
        ({"repetitions": 0}, "procedure.out-of-range", "repetitions"),
        ({"loss_verifications": -1}, "procedure.out-of-range", "loss_verifications"),
        ({"throughput_fps": 0.0}, "procedure.out-of-range", "throughput_fps"),
        ({"actual_fps": 0.0}, "procedure.out-of-range", "actual_fps"),
        ({"patience": -1}, "procedure.out-of-range", "invalid_retries, patience"),
    ],
)
def test_bad_goals_are_refused(changes: dict[str, Any], code: str, where: str) -> None:
    """R9004-04: 30 s is the longest burst."""
    with raises(code) as refused:
        replace(GOAL, **changes)
    assert refused.value.where == where


def test_the_rate_is_that_of_the_line_and_never_above() -> None:
    """R9004-03."""
    assert choose_maximum(BackToBackGoal().rate_fps, profile_of(), where="rate_fps") == LINE_FPS
    with raises("rig.above-line-rate"):
        check_given(15e6, profile_of(), where="rate_fps")


def test_one_repetition_without_a_limit_makes_all_figures_lower_bounds() -> None:
    """R9004-04, R9004-11: the average of three is no better known than the worst of them."""
    found = measure()
    first, *others = found.repetitions
    longer = replace(
        first, bracket=replace(first.bracket, upper=None), longest_s=4 * first.longest_s, max_frames=10**9
    )
    mixed = replace(found, repetitions=(others[0], longer, others[1]))
    assert mixed.is_at_least
    assert mixed.longest_s == 4 * first.longest_s
    assert mixed.summary()["longest_burst_tried_frames"] == GOAL.frames_in(4 * first.longest_s)


def test_frames_that_came_too_late_are_counted_in_valid_trials_alone() -> None:
    """R9004-03."""
    found = measure(replace(GOAL, repetitions=1), invalid_trials=(2, 3))
    (search,) = found.repetitions
    late = tuple(
        replace(
            trial, directions={name: replace(seen, late_frames=3) for name, seen in trial.directions.items()}
        )
        for trial in search.trials
    )
    assert sum(not trial.is_valid for trial in late) == 2
    of_valid = replace(found, repetitions=(replace(search, trials=late),))
    assert of_valid.summary()["late_frames"] == 2 * 3 * (len(late) - 2)


def test_the_average_lies_below_the_average_of_the_bursts_that_failed() -> None:
    """R9004-05, R9004-07: what a search leaves open; nothing is known above it if one repetition has none."""
    bursts: list[dict[str, Any]] = [{"shortest_failed_burst_frames": frames} for frames in (10, 20, 60)]
    assert BACK_TO_BACK.left_open(BACK_TO_BACK.read({"repetitions": bursts})) == LeftOpen(high=30)
    open_ended = [*bursts, {"shortest_failed_burst_frames": None}]
    assert BACK_TO_BACK.left_open(BACK_TO_BACK.read({"repetitions": open_ended})) == EXACT
