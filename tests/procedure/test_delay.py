# SPDX-License-Identifier: Apache-2.0
"""Latency and delay variation on simulated devices: what is counted, what loss does to it, what is told."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import DelayGoal, DelayResult, DelayTest, OwnLoop, Profile
from evenhand.procedure.delay import repeat_load
from evenhand.procedure.delay_result import STAMPS
from evenhand.procedure.own_loop import OWN_LOOP_DRIVER
from evenhand.procedure.registry import LATENCY
from evenhand.report.found import found_lines, found_tables
from evenhand.results.delay import DelayName
from evenhand.rig import Setup
from evenhand.testbed import make_testbed
from evenhand.trial import Load, SimulatedMeasurer
from tests.errors import raises
from tests.procedure.simulated import attempts_with
from tests.report.test_throughput import shown

RATE_FPS = 100_000.0


def goal_of(test: DelayTest = DelayTest.LATENCY, **changes: Any) -> DelayGoal:
    return DelayGoal(**{"test": test, "rate_fps": RATE_FPS, "throughput_fps": RATE_FPS, **changes})


def repeat(goal: DelayGoal, *, own_loop: OwnLoop | None = None, **device: Any) -> DelayResult:
    measurer = SimulatedMeasurer(**{"limit_fps": 1e6, "delays": goal.wish, **device})
    repetitions = repeat_load(attempts_with(measurer, goal, str(goal.test)), goal)
    profile = Profile(
        plan=make_plan("gateway-v4").one_pair(), frame_size=64, seed=1, directions=("forward", "reverse")
    )
    return DelayResult(profile=profile, goal=goal, repetitions=repetitions, own_loop=own_loop or OwnLoop())


def own_loop_of(goal: DelayGoal) -> OwnLoop:
    """The loop of a tester whose delays rise from 10 us to 20 us; see `make_delays_document`."""
    wish = replace(goal.wish, from_s=0.0, tagged_frames=0)
    measurer = SimulatedMeasurer(limit_fps=1e6, delays=wish)
    return OwnLoop(trial=measurer.offer(Load(rate_fps=RATE_FPS, duration_s=5)), unknown=None)


def test_latency_is_as_rfc_8219_has_it() -> None:
    """R8219-07, R8219-09, R8219-10: 120 s, 500 tagged frames after 60 s, the median and the 99.9th percentile
    of them, twenty times."""
    goal = goal_of()
    found = repeat(goal, own_loop=own_loop_of(goal))
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags, len(found.valid)) == (120, 60, 500, 20)
    # Frames tagged: 0, 1/500, 2/500 ... 499/500 of the way from 10 us to 20 us.
    typical = found.statistics("forward", "typical")
    assert typical is not None
    assert typical.median == pytest.approx(10_000 + 10_000 * 249.5 / 500, rel=1e-5)
    worst = found.statistics("reverse", "worst_case")
    assert worst is not None
    assert worst.median == pytest.approx(10_000 + 10_000 * 499 / 500, rel=1e-5)
    assert [(deviation.requirement, deviation.text) for deviation in found.deviations] == [
        ("R8219-07", STAMPS)
    ]
    assert found.outcome == "measured"


def test_latency_is_as_rfc_2544_has_it() -> None:
    """R2544-24: one tagged frame at 60 s of 120; the average of twenty."""
    found = repeat(goal_of(DelayTest.LATENCY_RFC2544))
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags) == (120, 60, 1)
    latency = found.statistics("forward", "latency")
    assert latency is not None
    assert (latency.count, found.average("forward", "latency")) == (20, 10_000)
    assert "average" in shown(found_tables(found, LATENCY)[-1])


def test_delay_variation_is_over_every_frame() -> None:
    """R8219-12, R8219-13: 60 s, from the first frame on, the 99.9th percentile less the minimum."""
    found = repeat(goal_of(DelayTest.PDV, has_variation=True))
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags) == (60, 0, 0)
    pdv = found.statistics("forward", "pdv")
    assert pdv is not None
    assert pdv.median == pytest.approx(9990, rel=1e-3)
    variations: tuple[DelayName, ...] = ("ipdv_min", "ipdv_median", "ipdv_max")
    assert all(found.statistics("forward", name) is not None for name in variations)
    assert "IPDV median" in shown(found_tables(found, LATENCY)[-1])
    for direction in found.profile.directions:
        assert (
            found.summary()["figures"][direction]["pdv_resolution_ns"]
            == found.pdv_resolution_ns(direction)
            == 8
        )
    assert (
        "PDV may be too high by at most the width of its class of the histogram: forward 8 ns, reverse 8"
        " ns." in found_lines(found, LATENCY)
    )
    assert "pdv_resolution_ns" not in repeat(goal_of()).summary()["figures"]["forward"]


def test_what_the_tester_adds_stands_beside_each_figure_and_is_not_subtracted() -> None:
    """R8219-10: the same figure of the own loop, over all of its frames, in table, lines and document; the
    delays stay as they were."""
    for goal in (goal_of(), goal_of(DelayTest.LATENCY_RFC2544), goal_of(DelayTest.PDV, has_variation=True)):
        without, found = repeat(goal), repeat(goal, own_loop=own_loop_of(goal))
        assert found.summary()["figures"] == without.summary()["figures"]
        own = {figure: found.own_loop_figure("reverse", figure) for figure in found.figures}
        expected = {"typical": 15_000, "latency": 15_000, "worst_case": 19_990, "pdv": 9_990}
        assert {name: value for name, value in own.items() if name in expected} == pytest.approx(
            {name: value for name, value in expected.items() if name in own}, rel=1e-3
        )
        assert all(value is not None for value in own.values())
        assert "own loop" in shown(found_tables(found, LATENCY)[-1])
        assert "not known" not in shown(found_tables(found, LATENCY)[-1])
        assert (
            "the tester's own loop at this load, forward: median 0.015000 ms, 99.9th percentile 0.019990 ms"
            in "\n".join(found_lines(found, LATENCY))
        )
        document = found.to_document()["own_loop"]
        assert (document["unknown"], document["duration_s"]) == (None, 5)
        assert document["directions"]["forward"]["median_ns"] == pytest.approx(15_000, rel=1e-3)


def test_an_own_loop_that_is_not_known_says_why() -> None:
    found = repeat(
        goal_of(repetitions=1), own_loop=OwnLoop(unknown="ports of net_af_xdp cannot be joined to each other")
    )
    assert found.own_loop_figure("forward", "typical") is None
    assert "not known" in shown(found_tables(found, LATENCY)[-1])
    assert "is not known: ports of net_af_xdp cannot be joined" in "\n".join(found_lines(found, LATENCY))
    assert "the 99.9th percentile is their maximum" in "\n".join(found_lines(found, LATENCY))
    assert found.to_document()["own_loop"] == {
        "unknown": "ports of net_af_xdp cannot be joined to each other",
        "duration_s": None,
        "directions": {},
    }


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("net_memif0,role=client,id=0,socket=/tmp/l", "net_memif1,role=client,id=0,socket=/tmp/r", None),
        (
            "0000:01:00.0",
            "0000:01:00.1",
            "ports of a PCI device cannot be connected to each other inside this machine",
        ),
        ("net_memif0,role=client,id=0,socket=/tmp/l", "net_null0", "ports of net_null cannot"),
    ],
)
def test_only_ports_that_can_be_joined_have_an_own_loop(left: str, right: str, reason: str | None) -> None:
    document = {
        "isolated_test_environment": True,
        "left": {"device": left},
        "right": {"device": right},
        "tester": {"cpus": [0]},
    }
    found = Setup(name="t.toml", testbed=make_testbed(document, where="t.toml")).why_no_own_loop(
        OWN_LOOP_DRIVER
    )
    assert found is None if reason is None else reason in (found or "")


def test_without_being_asked_for_there_are_no_differences() -> None:
    assert list(repeat(goal_of(DelayTest.PDV, repetitions=1)).figures) == ["pdv"]


def test_lost_frames_are_infinitely_late() -> None:
    """R8219-16: 10 % of loss: the median stands, the 99.9th percentile does not."""
    found = repeat(goal_of(repetitions=3), limit_fps=0.9 * RATE_FPS)
    typical, worst = found.statistics("forward", "typical"), found.statistics("forward", "worst_case")
    assert typical is not None
    assert worst is not None
    assert math.isfinite(typical.median)
    assert worst.median == math.inf
    document = found.summary()["figures"]["forward"]
    assert document["worst_case"]["median_ns"] is None
    assert document["worst_case"]["values"] == [None] * 3
    assert document["lost_frames"] == found.lost_frames("forward") > 0
    assert "infinite" in shown(found_tables(found, LATENCY)[-1])


def test_all_that_is_less_than_the_rfc_asks_for_is_told() -> None:
    found = repeat(goal_of(duration_s=2, from_s=1, tagged_frames=20, repetitions=2, throughput_fps=None))
    texts = [deviation.text for deviation in found.deviations if deviation.requirement == "R8219-07"]
    assert len(texts) == 7
    assert "frames of 1 s count instead of frames of at least 60 s" in texts
    assert f"{STAMPS}; what the tester itself adds is not known" in texts
    assert any("throughput for this frame size was not measured" in text for text in texts)
    above = goal_of(throughput_fps=RATE_FPS / 2)
    assert "above the throughput of 50,000 fps" in above.deviations[0].text
    assert "Deviation from R8219-07: sent for 2 s instead of 2 min" in "\n".join(found_lines(found, LATENCY))


@pytest.mark.parametrize("test", [DelayTest.LATENCY, DelayTest.PDV])
def test_the_end_of_a_long_trial_alone_is_a_deviation(test: DelayTest) -> None:
    """R8219-12: a trial of 60 s and more, of which only the last second counts, is none of 60 s."""
    whole = goal_of(test=test, duration_s=130, from_s=60 if test is DelayTest.LATENCY else 0)
    assert not any("count instead" in deviation.text for deviation in whole.deviations)
    late = goal_of(test=test, duration_s=130, from_s=129)
    assert any(
        "frames of 1 s count instead of frames of at least 60 s" in deviation.text
        for deviation in late.deviations
    )


def test_invalid_trials_are_repeated_and_not_charged_to_the_dut() -> None:
    found = repeat(goal_of(repetitions=5), invalid_trials=(2, 3))
    assert [len(repetition) for repetition in found.repetitions] == [1, 3, 1, 1, 1]
    assert found.is_complete


def test_a_load_that_the_tester_does_not_keep_ends_it() -> None:
    found = repeat(goal_of(repetitions=5), tester_ceiling_fps=RATE_FPS / 2)
    assert found.outcome == "tester_ceiling"
    assert (len(found.repetitions), found.valid, found.statistics("forward", "typical")) == (1, (), None)
    assert "says nothing about the DUT" in "\n".join(found_lines(found, LATENCY))
    assert any("0 of 5 repetitions" in deviation.text for deviation in found.deviations)


def test_a_shorter_trial_begins_to_count_in_proportion() -> None:
    """`latency --duration 3s` alone: half of it, as 60 s of 120 s; a deviation says so (R8219-07)."""
    short = DelayGoal(test=DelayTest.LATENCY, rate_fps=1e4, duration_s=3.0)
    assert short.start_s == 1.5
    assert any("from 1.5 s on instead of" in deviation.text for deviation in short.deviations)
    assert DelayGoal(test=DelayTest.LATENCY, rate_fps=1e4, duration_s=240.0).start_s == 60.0
    assert DelayGoal(test=DelayTest.PDV, rate_fps=1e4, duration_s=3.0).start_s == 0.0


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"rate_fps": 0}, "procedure.out-of-range", "rate_fps"),
        ({"repetitions": 0}, "procedure.out-of-range", "repetitions"),
        ({"duration_s": 0}, "procedure.out-of-range", "duration_s"),
        ({"duration_s": 60, "from_s": 60.0}, "procedure.delays-after-the-end", "from_s"),
        ({"tagged_frames": 0}, "procedure.not-as-many-tags", "tagged_frames"),
        ({"tagged_frames": 1_000_001}, "procedure.not-as-many-tags", "tagged_frames"),
        ({"rate_fps": 1.0}, "procedure.not-as-many-tags", "tagged_frames"),
        ({"patience": -1}, "procedure.out-of-range", "invalid_retries, patience"),
    ],
)
def test_bad_goals_are_refused(changes: dict[str, Any], code: str, where: str) -> None:
    with raises(code) as refused:
        goal_of(**changes)
    assert refused.value.where == where


def test_one_slow_repetition_of_twenty_moves_no_median() -> None:
    """R8219-10: the median over the repetitions, not their mean; nineteen repetitions are alike and one is a
    hundred times slower."""
    found = repeat(goal_of())
    (trial,) = found.repetitions[0]
    slow = replace(
        trial,
        directions={
            direction: replace(
                seen, delays=replace(seen.delays, tagged_ns=tuple(100 * ns for ns in seen.delays.tagged_ns))
            )
            for direction, seen in trial.directions.items()
            if seen.delays is not None
        },
    )
    mixed = replace(found, repetitions=((slow,), *found.repetitions[1:]))
    for figure in ("typical", "worst_case"):
        alike, one_slow = found.statistics("forward", figure), mixed.statistics("forward", figure)
        assert alike is not None
        assert one_slow is not None
        assert one_slow.maximum > 50 * alike.maximum
        assert one_slow.median == alike.median


def test_the_worst_repetition_says_what_was_left_out_and_how_coarse_the_pdv_is() -> None:
    """R8219-12: neither the best nor the last of them."""
    found = repeat(goal_of(DelayTest.PDV, repetitions=3))
    made = []
    for (trial,), left_out, resolution_ns in zip(
        found.repetitions, (5, 9, 2), (8.0, 32.0, None), strict=True
    ):
        forward = trial.directions["forward"]
        assert forward.delays is not None
        delays = replace(forward.delays, left_out_frames=left_out, pdv_resolution_ns=resolution_ns)
        directions = {**trial.directions, "forward": replace(forward, delays=delays)}
        made.append((replace(trial, directions=directions),))
    mixed = replace(found, repetitions=tuple(made))
    assert mixed.left_out("forward") == (9, 6_000_000)
    assert mixed.left_out("reverse") == (0, 6_000_000)
    assert mixed.pdv_resolution_ns("forward") == 32
    figures = mixed.summary()["figures"]["forward"]
    assert (figures["left_out_frames"], figures["pdv_resolution_ns"]) == (9, 32)
    assert any(
        "forward: up to 9 of 6000000 frames of a repetition" in deviation.text
        for deviation in mixed.deviations
    )
