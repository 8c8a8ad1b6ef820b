# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: what goes with what, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.analysis import Comparison, compare
from evenhand.analysis.comparison_model import TOO_FEW
from evenhand.report.comparison import comparison_lines, show_interval, show_ratio_of
from evenhand.report.comparison_page import render_comparison
from evenhand.run import StoredSearch
from evenhand.run.campaign_record import PointRecord
from tests.analysis.records import WHEN, noisy, point, record
from tests.errors import raises


def both(a: PointRecord, b: PointRecord, *, anyway: bool = False) -> Comparison:
    return compare([record(a, name="a"), record(b, name="b")], anyway=anyway)


def test_a_run_compared_with_itself_is_one_everywhere_and_nothing_differs() -> None:
    """Issue: 1.000 everywhere, of every figure, also of points without a number and of zeros."""
    one = record(
        point(1, noisy(1e5, 10, 0.02)),
        point(16, [4e5]),
        point(32, [None], reason="tester's ceiling"),
        point(64, []),
        point(1, [0.0, 0.0], procedure="loss"),
        point(1, [12.5, 13.0], procedure="latency"),
    )
    comparison = compare([one, one, one])
    for other in (0, 1):
        assert comparison.performances(other) == [1.0] * 4
        assert [p.others[other].reason for p in comparison.points] == [
            None,
            None,
            "tester's ceiling",
            "not measured yet",
            None,
            None,
        ]
    assert not any(value.is_different for p in comparison.points for value in p.others)
    assert comparison.differences == ()
    assert comparison.unlike == ()
    assert comparison.below(0.999) == ()


def test_less_is_better_turns_the_ratio_round() -> None:
    """A latency that is 10 percent longer is worse; a burst that is 10 percent longer is better."""
    latency = (
        both(point(1, [10.0], procedure="latency"), point(1, [11.0], procedure="latency")).points[0].others[0]
    )
    burst = (
        both(point(1, [10.0], procedure="back-to-back"), point(1, [11.0], procedure="back-to-back"))
        .points[0]
        .others[0]
    )
    assert latency.ratio is not None
    assert burst.ratio is not None
    assert latency.ratio.ratio == burst.ratio.ratio == pytest.approx(1.1)
    assert latency.performance == pytest.approx(1 / 1.1)
    assert burst.performance == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("before", "after", "performance"), [(0.0, 0.1, 0.0), (0.1, 0.0, None), (0.0, 0.0, 1.0)]
)
def test_a_loss_from_or_to_nothing_is_judged_right(
    before: float, after: float, performance: float | None
) -> None:
    comparison = both(point(1, [before], procedure="loss"), point(1, [after], procedure="loss"))
    assert comparison.points[0].others[0].performance == performance
    assert bool(comparison.below(0.97)) is (after > before)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (point(16, [1e5], plan="direct-v6"), "plan direct-v4-net16 against direct-v6"),
        (point(16, [1e5], frame_size=128), "frame size 64 against 128"),
        (point(16, [1e5], goal={"duration": "2s"}), "goal: duration not set against 2s"),
        (point(16, [1e5], hash_type="type2"), "hash type type1 against type2"),
        (point(16, [1e5], directions=("forward",)), "directions"),
        (
            point(16, [1e5], plan_options={"source_ports": "fixed"}),
            "plan option source ports not set against fixed",
        ),
        (point(32, [1e5]), "hosts 16 x 16 against 32 x 32"),
    ],
)
def test_unlike_runs_are_refused_with_what_is_unlike(other: PointRecord, words: str) -> None:
    with raises("analysis.not-alike") as refused:
        both(point(16, [1e5]), other)
    assert words in refused.value.what
    assert "--anyway" in refused.value.next_step
    comparison = both(point(16, [1e5]), other, anyway=True)
    assert comparison.points[0].others[0].performance == 1.0
    assert any(words in line for line in comparison.unlike)


@pytest.mark.parametrize(
    ("option", "one", "other"),
    [
        ("final-duration", "60s", "1min"),
        ("loss-ratio", "0.5%", "0.005"),
        ("maximum-rate", "1Mfps", "1000kfps"),
        ("precision", "1%", "0.01"),
        ("wait-residual", "2s", "2000ms"),
        ("goal", ["NDR", "PDR=0.5%"], ["ndr", "PDR = 0.005"]),
    ],
)
def test_what_is_spelled_otherwise_is_the_same(option: str, one: object, other: object) -> None:
    """A campaign has its goal as its file spells it."""
    spelled = point(16, [1e5], goal={option: one}), point(16, [1e5], goal={option: other})
    assert both(*spelled).unlike == ()
    with raises("analysis.not-alike", match=f"goal: {option}"):
        both(spelled[0], point(16, [1e5], goal={option: ["NDR"] if option == "goal" else "3%"}))


@pytest.mark.parametrize(("one", "other"), [("7", "7-7"), ("7", "0007")])
def test_ports_that_are_spelled_otherwise_are_the_same(one: str, other: str) -> None:
    spelled = (point(16, [1e5], plan_options={"source_ports": text}) for text in (one, other))
    assert both(*spelled).unlike == ()


def test_another_procedure_is_never_compared() -> None:
    with raises("analysis.nothing-in-common"):
        both(point(1, [1e5]), point(1, [10.0], procedure="latency"), anyway=True)


def test_only_points_that_a_run_does_not_tell_apart_are_paired_anyway() -> None:
    """One address pair against ten addresses was compared, and the ratio said nothing."""
    series = record(point(1, [1e5]), point(16, [4e5]), name="a")
    comparison = compare([series, record(point(16, [2e5], goal={"precision": "5%"}), name="b")], anyway=True)
    assert [p.others[0].performance for p in comparison.points] == [None, 0.5]
    with raises("analysis.nothing-in-common"):
        compare([series, record(point(10, [2e5]), name="b")], anyway=True)
    # Another size throughout is a difference of the whole run.
    small = record(point(1, [1e5], frame_size=84), point(16, [2e5], frame_size=84), name="b")
    assert [p.others[0].performance for p in compare([series, small], anyway=True).points] == [1.0, 0.5]


def test_points_of_one_run_only_are_unlike_and_named() -> None:
    a, b = (
        record(point(1, [1e5]), point(2, [2e5]), name="a"),
        record(point(1, [1e5]), point(1, [9.0], procedure="latency"), name="b"),
    )
    with raises("analysis.not-alike", match=r"a\.evenhand: direct/throughput/64/n=2"):
        compare([a, b])
    comparison = compare([a, b], anyway=True)
    assert comparison.points[1].others[0].reason == "not in this run"
    assert any(line.startswith("only in b.evenhand: direct/latency") for line in comparison.unlike)


def test_seeds_repetitions_order_and_names_of_suites_make_no_run_unlike() -> None:
    a = record(point(1, [1e5]), point(2, [2e5]), name="a")
    b = record(
        point(2, [2e5] * 3, suite="other"), point(1, [1e5] * 3, suite="other", testbed="elsewhere"), name="b"
    )
    assert [p.others[0].performance for p in compare([a, b]).points] == [1.0, 1.0]


def test_the_place_where_a_search_was_told_to_begin_makes_no_run_unlike() -> None:
    goal = {"precision": "0.5%"}
    assert (
        both(
            point(1, [1e5], goal={**goal, "known_fps": 9e4}), point(1, [1e5], goal={**goal, "known_fps": 8e4})
        ).unlike
        == ()
    )


def test_a_point_that_lost_its_number_is_below_every_limit() -> None:
    """A gate that lets a missing result through is none."""
    comparison = both(point(1, [1e5]), point(1, [None], reason="hosts are unreachable"))
    (below,) = comparison.below(0.5)
    assert (below.run.file, below.performance) == ("b.evenhand", None)
    assert both(point(1, [None]), point(1, [1e5])).below(0.97) == ()


@pytest.mark.parametrize(("after", "is_below"), [(0.9699, True), (0.97, False), (1.2, False)])
def test_the_limit_itself_passes(after: float, is_below: bool) -> None:
    assert bool(both(point(1, [1.0]), point(1, [after])).below(0.97)) is is_below


def test_a_difference_beyond_the_noise_is_told_with_enough_repetitions_only() -> None:
    a, b = noisy(1e5, 10, 0.002), noisy(0.98e5, 10, 0.002)
    assert both(point(1, a), point(1, b)).points[0].others[0].is_different is True
    assert (
        both(point(1, a), point(1, noisy(1e5, 10, 0.002, seed=2))).points[0].others[0].is_different is False
    )
    assert both(point(1, a[:3]), point(1, b[:3])).points[0].others[0].is_different is None


@pytest.mark.parametrize(
    ("before", "after", "bound", "shown", "is_different", "is_below"),
    [
        (2e5, 2e5, "unknown", "? 1.000", None, False),
        (2e5, 5e4, "at_most", "<= 0.500", True, True),
        (5e4, 2e5, "at_least", ">= 2.000", True, False),
        (2e5, 9.9e4, "at_most", "<= 0.990", True, False),
    ],
)
def test_a_lower_bound_makes_the_ratio_one(
    before: float, after: float, bound: str, shown: str, is_different: bool | None, is_below: bool
) -> None:
    """MLR-10: what two runs do above the highest load that was tried is not compared."""
    comparison = both(*(point(16, [value] * 6, maximum=1e5) for value in (before, after)))
    (value,) = comparison.points[0].others
    assert value.ratio is not None
    assert value.ratio.bound == bound
    assert show_ratio_of(value) == shown
    assert value.is_different is is_different
    assert bool(comparison.below(0.97)) is is_below
    text = " ".join(comparison_lines(comparison))
    assert "the highest load that was tried passed" in text


def test_what_differs_in_the_set_ups_is_named_with_both_values() -> None:
    a = record(
        point(1, [1e5]),
        name="a",
        versions={"evenhand": "0.1.0", "engine": "0.1.0"},
        host={"cpu": {"model": "x", "cores": 2}},
        testbeds={"a.toml": {"dut": {"system": "Debian 12", "nic": "X540"}}},
        spec={"seed": 1, "suite": [{"name": "direct", "waits": "rfc"}]},
    )
    b = replace(
        a,
        versions={"evenhand": "0.2.0", "engine": "0.1.0"},
        host={"cpu": {"model": "y", "cores": 2}},
        testbeds={"b.toml": {"dut": {"system": "Debian 13", "nic": "X540", "turbo": "off"}}},
        spec={"seed": 1, "suite": [{"name": "direct", "waits": "short"}]},
    )
    found = {difference.what: difference.values for difference in compare([a, b]).differences}
    assert found == {
        "versions: evenhand": ("0.1.0", "0.2.0"),
        "host: cpu.model": ("x", "y"),
        "testbed": ("a.toml", "b.toml"),
        "testbed: dut.system": ("Debian 12", "Debian 13"),
        "testbed: dut.turbo": (None, "off"),
        "campaign: suite.direct.waits": ("rfc", "short"),
    }


def test_few_repetitions_have_no_interval_in_text_and_page() -> None:
    """ "0.962 .. 0.962 (25.0 %)" read as plus or minus 25 percent."""
    few, enough = (both(point(1, [1e5] * n), point(1, [9.6e4] * n)) for n in (3, 4))
    assert show_interval(few.points[0].others[0]) == "-"
    assert show_interval(enough.points[0].others[0]) == "0.960 .. 0.960 (97.1 %)"
    assert (TOO_FEW in comparison_lines(few), TOO_FEW in comparison_lines(enough)) == (True, False)
    assert (TOO_FEW in render_comparison(few), TOO_FEW in render_comparison(enough)) == (True, False)
    assert few.points[0].to_document()["others"][0]["ratio"]["interval"] is not None


def test_a_campaign_and_the_run_of_a_verb_are_refused_for_what_they_are() -> None:
    """Their goals have other names and forms, so every one of them looked like a difference."""
    a = record(point(1, [1e5], goal={"precision": "5%"}), name="a")
    b = replace(record(point(1, [1e5], goal={"precision": 0.05}), name="b"), is_campaign=False)
    with raises("analysis.settings-not-comparable") as refused:
        compare([a, b])
    assert "goal" not in refused.value.what
    assert "--anyway" in refused.value.next_step
    assert compare([a, b], anyway=True).points[0].others[0].performance == 1.0


def test_points_that_were_not_measured_yet_go_with_those_of_the_same_conditions() -> None:
    """An unfinished campaign against a finished one: nothing was sent there yet, which is no difference."""
    counts = (1, 16, 65536)
    finished = record(*(sending(point(n, [1e5])) for n in counts), name="a")
    unfinished = record(
        sending(point(1, [1e5])), *(point(n, [], asked=1) for n in reversed(counts[1:])), name="b"
    )
    comparison = compare([finished, unfinished])
    assert comparison.unlike == ()
    assert [p.others[0].key for p in comparison.points] == [p.key for p in comparison.points]
    assert [p.others[0].reason for p in comparison.points] == [None, "not measured yet", "not measured yet"]


def sending(measured: PointRecord) -> PointRecord:
    """The same with the plan as the engine got it."""
    search = StoredSearch(
        name="throughput",
        kind="throughput",
        started_at=WHEN,
        finished_at=WHEN,
        plan={"hosts": list(measured.point.hosts)},
        frame_size=64,
        seed=1,
        goal={},
        outcome="found",
        result=None,
        trials=(),
        setup={},
    )
    return replace(
        measured,
        repetitions=tuple(replace(repetition, searches=(search,)) for repetition in measured.repetitions),
    )


def test_counters_of_the_kernel_are_no_set_up() -> None:
    a, b = (
        record(
            point(1, [1e5]),
            name="a",
            testbeds={"lab": {"own_dut": {"kernel": "6.1", "neighbor_table": {"ipv4": {"lookups": n}}}}},
        )
        for n in (1, 2)
    )
    assert compare([a, b]).differences == ()


def test_one_run_is_not_enough() -> None:
    with raises("analysis.one-run"):
        compare([record(point(1, [1e5]))])


def test_what_a_procedure_has_written_is_said_in_words() -> None:
    mine, others = {"max_fps": 107_266.0, "is_max_ceiling": True}, {"max_fps": 60_000.0}
    with raises("analysis.not-alike") as refused:
        both(point(16, [1e5], goal=mine), point(16, [1e5], goal=others))
    assert "goal: maximum rate 107.3 kfps against 60 kfps" in refused.value.what
    assert "goal: the maximum is the tester's own: yes against no" in refused.value.what


def test_no_difference_of_a_goal_is_named_by_its_field() -> None:
    """Nor has it a bare number: each has the unit that its key has."""
    document = {
        "max_fps": 107_266.0,
        "rate_fps_per_direction": 5e4,
        "from_s": 60.0,
        "stops_early": True,
        "step_frames": 1000,
        "goals": [{"name": "ndr", "width": 0.005}],
    }
    mine = point(16, [1e5], goal=document)
    others = point(16, [1e5], goal={"max_fps": 107_266.5, "waits": {"after_routing_s": 0.1}})
    lines = both(mine, others, anyway=True).unlike
    assert len(lines) == 8
    assert not [line for line in lines if "_" in line or " - " in line]
    for words in (
        "goal: maximum rate 107266.0 fps against 107266.5 fps",
        "goal: rate 50 kfps against not set",
        "goal: frames count from 60 s against not set",
        "goal: a trial may end early: yes against no",
        "goal: goals ndr width 0.5 % against not set",
        "goal: waits after routing not set against 100 ms",
    ):
        assert words in lines
