# SPDX-License-Identifier: Apache-2.0
"""A campaign file becomes points and jobs: all of them, each once, each the same each time."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import testbed
from evenhand.base.time_span import TimeSpan
from evenhand.plan import TOPOLOGIES, plan_title
from evenhand.procedure import BackToBackGoal, DelayGoal, DelayTest, RecoveryGoal
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.procedure.expected_time import hosts_learning_s
from evenhand.run.campaign.events import difference, jobs, seed_of
from evenhand.run.campaign.outline import describe, deviations_of
from evenhand.search import MlrGoals, ThroughputGoal
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.request import AFTER, plan_of, read_point
from tests.errors import raises
from tests.run.campaign.campaigns import campaign, expanded

DOUBLED = [2**k for k in range(16)]
PROCEDURES = ("throughput", "loss", "latency", "pdv", "ipdv", "back-to-back", "burst", "recovery")

counts = st.one_of(
    st.integers(1, 250),
    st.tuples(st.integers(1, 250), st.integers(1, 250)).map(lambda pair: f"{pair[0]},{pair[1]}"),
)


def _pair(value: int | str) -> tuple[int, int]:
    numbers = [int(number) for number in str(value).split(",")]
    return numbers[0], numbers[-1]


@st.composite
def suites(draw: st.DrawFn, name: str) -> dict[str, Any]:
    others = draw(
        st.lists(st.sampled_from([p for p in PROCEDURES if p != "throughput"]), unique=True, max_size=3)
    )
    return {
        "name": name,
        "plan": draw(st.sampled_from(["gateway-v4", "gateway-v6", "direct-v4-net24", "nets-v4-gateway"])),
        "procedure": draw(st.permutations(["throughput", *others])),
        "hosts": draw(st.lists(counts, min_size=1, max_size=3, unique_by=_pair)),
        "frame-sizes": draw(st.lists(st.sampled_from([128, 256, 512]), min_size=1, unique=True)),
        "hash-types": draw(st.lists(st.sampled_from(["type1", "type2"]), min_size=1, unique=True)),
        "repetitions": draw(st.integers(1, 4)),
        "one-pair-first": draw(st.booleans()),
    }


@st.composite
def plans(draw: st.DrawFn) -> CampaignPlan:
    names = draw(
        st.lists(st.sampled_from(["a", "b", "direct, type1", "a b"]), min_size=1, max_size=2, unique=True)
    )
    document = {
        "name": "t",
        "seed": draw(st.integers(0, 2**64 - 1)),
        "round-order": draw(st.sampled_from(["in-turn", "shuffled"])),
    }
    return expand(
        make_campaign({**document, "suite": [draw(suites(name)) for name in names]}, where="c.toml")
    )


@settings(max_examples=25, deadline=None)
@given(plans())
def test_every_point_is_measured_as_often_as_asked_and_by_seeds_of_its_own(plan: CampaignPlan) -> None:
    """SEED-72, SEED-44: a repetition with the seed of another would measure the same frames again."""
    keys = [point.key for point in plan.points]
    assert len(set(keys)) == len(keys)
    made = jobs(plan)
    wanted = [(point.key, number) for point in plan.points for number in range(1, point.repetitions + 1)]
    assert sorted((job.point.key, job.repetition) for job in made) == sorted(wanted)
    assert len({job.seed for job in made}) == len(made)
    assert all(0 <= job.seed < 2**64 for job in made)
    assert jobs(plan) == made
    for before, after in pairwise(made):
        assert after.point.key != before.point.key or after.repetition == before.repetition + 1
        assert (
            after.point.suite != before.point.suite
            or AFTER in after.point.goal
            or after.place.round >= before.place.round
        )


@settings(max_examples=25, deadline=None)
@given(plans())
def test_a_round_has_every_point_once_and_its_share_of_the_repetitions(plan: CampaignPlan) -> None:
    """SEED-72: a DUT that drifts does so for all points; one of several repetitions is never made in a single
    block."""
    for point in plan.points:
        of_point = [job for job in jobs(plan) if job.point.key == point.key]
        blocks = [
            len([job for job in of_point if job.place.round == number])
            for number in range(1, point.rounds + 1)
        ]
        assert sum(blocks) == point.repetitions
        assert max(blocks) - min(blocks) <= 1
        assert len(blocks) >= min(2, point.repetitions)
        assert {job.place.point for job in of_point} <= set(range(1, of_point[0].place.point_count + 1))


def test_each_round_has_an_order_of_its_own_and_the_first_begins_with_one_pair() -> None:
    """SEED-02: otherwise whatever the DUT does at first would be that pair's in every round."""

    def orders(**keys: Any) -> list[list[int]]:
        made = jobs(expanded({"hosts": "doubling", "repetitions": 10}, **keys))
        return [[job.point.hosts[0] for job in made if job.place.round == number] for number in range(1, 11)]

    found = orders()
    assert all(sorted(order) == [*DOUBLED, 65534] for order in found)
    assert found[0][0] == 1
    assert any(order[0] != 1 for order in found[1:])
    assert len({tuple(order) for order in found}) == 10
    assert orders() == found != orders(seed=2)


def test_rounds_are_few_where_each_costs_a_setting_up_of_the_dut_and_never_one() -> None:
    """Hooks, hands and hash types: two blocks, unless the file wants more."""
    hook = {"hooks": {"before-point": "true"}}
    for suite, keys, rounds in (
        ({}, {}, 10),
        (hook, {}, 2),
        ({}, {"round-order": "in-turn"}, 2),
        ({"hash-types": ["type1", "type2"]}, {}, 2),
        ({"rounds": 5, **hook}, {}, 5),
        ({"rounds": 20}, {}, 10),
        ({"repetitions": 1, "rounds": 1}, {}, 1),
    ):
        assert {point.rounds for point in expanded({"hosts": [1, 4], **suite}, **keys).points} == {rounds}, (
            suite
        )
    with raises("spec.one-round-only", match="10 repetitions"):
        expanded({"hosts": [1, 4], "rounds": 1})


@settings(max_examples=25, deadline=None)
@given(plans())
def test_points_with_one_pair_come_first_and_throughputs_before_what_takes_them(plan: CampaignPlan) -> None:
    """SEED-02."""
    done: set[str] = set()
    many: set[str] = set()
    for job in jobs(plan):
        point = job.point
        stage = f"{point.suite} {AFTER in point.goal}"
        if point.is_one_pair and job.place.round == 1:
            assert stage not in many
        else:
            many.add(stage)
        assert point.goal.get(AFTER) is None or point.goal[AFTER] in done
        if job.repetition == point.repetitions:
            done.add(point.key)
    by_suite = {suite["name"]: suite for suite in plan.spec["suite"]}
    without = {deviation.text for deviation in deviations_of(plan)}
    for name, suite in by_suite.items():
        of_suite = [point for point in plan.points if point.suite == name]
        assert [point.number for point in of_suite] == list(range(len(of_suite)))
        if suite["one-pair-first"]:
            assert of_suite[0].is_one_pair
        assert any(repr(name) in text for text in without) == (
            not any(point.is_one_pair for point in of_suite)
        )


@settings(max_examples=10, deadline=None)
@given(plans())
def test_the_spec_is_json_that_expands_to_itself(plan: CampaignPlan) -> None:
    """What is stored can be read back, and a file that did not change makes no difference on a resume."""
    again = json.loads(json.dumps(plan.spec, allow_nan=False))
    assert difference(again, plan.spec) == []
    assert all(0 < row.expected.most_s < 1e7 for row in describe(plan).rows)
    json.dumps(describe(plan).to_document(), allow_nan=False)


def test_the_order_is_shuffled_by_the_seed_and_in_turn_if_asked() -> None:
    """A DUT that drifts would else look like a trend over the hosts."""

    def order(**keys: Any) -> list[int]:
        return list(
            dict.fromkeys(job.point.hosts[0] for job in jobs(expanded({"hosts": "doubling"}, **keys)))
        )

    assert order(round_order="in-turn") == [*DOUBLED, 65534]
    shuffled = order()
    assert shuffled[0] == 1
    assert sorted(shuffled) == [*DOUBLED, 65534] != shuffled
    assert order(seed=1) == shuffled != order(seed=2)


def test_the_seed_of_a_repetition_never_changes() -> None:
    """A stored campaign is resumed, years later and elsewhere, with the frames that it would have had."""
    assert seed_of(1, "direct, type1/throughput/64/n=16", 1) == 15157948962992303515
    seeds = {
        seed_of(seed, key, n)
        for seed in range(20)
        for key in ("a", "b", "a/throughput/64/n=1")
        for n in range(1, 50)
    }
    assert len(seeds) == 20 * 3 * 49


@pytest.mark.parametrize("topology", sorted(TOPOLOGIES))
def test_a_doubling_series_goes_to_the_maximum_of_each_plan(topology: str) -> None:
    """SEED-65."""
    plan = expanded({"plan": plan_title(topology), "hosts": "doubling"})
    most = TOPOLOGIES[topology].most_hosts
    series = [point.hosts[0] for point in plan.points if point.networks == plan.points[-1].networks]
    assert series == sorted({*(n for n in DOUBLED if n < most), most})
    assert plan.points[0].is_one_pair
    for point in plan.points:
        assert plan_of(point).left.host_range.count == point.hosts[0]
        assert plan_of(point, is_whole=True).left.host_range.count == most


def keys(plan: CampaignPlan) -> list[str]:
    return [point.key for point in plan.points]


def test_the_key_says_what_tells_a_point_from_the_others() -> None:
    assert keys(expanded({"name": "direct, type1", "hosts": 16})) == [
        f"direct, type1/throughput/64/n={n}" for n in (1, 16)
    ]
    assert (
        keys(expanded({"hosts": "1000,16", "hash-types": ["type2"], "plan": "gateway-v6"}))[1]
        == "a/throughput/84/n=1000,16"
    )
    both = keys(
        expanded({"hosts": 1, "hash-types": ["type1", "type2"], "frame-sizes": ["imix:AG:A=84:G=1518"]})
    )
    assert both == [f"a/throughput/imix:AG:A=84:G=1518/{hash_type}/n=1" for hash_type in ("type1", "type2")]
    assert keys(expanded({"plan": "nets-v4-gateway", "hosts": "max", "networks": "256,2"})) == [
        "a/throughput/64/n=1,r=1",
        "a/throughput/64/n=254,r=256,2",
    ]


def test_what_takes_a_load_names_the_point_that_gives_it() -> None:
    """R8219-07, R2544-29, R9004-01: at the throughput of the same conditions."""
    plan = expanded(
        {"procedure": ["latency", "recovery", "back-to-back", "pdv", "ipdv", "throughput"], "hosts": [1, 4]}
    )
    for point in plan.points:
        after = point.goal.get(AFTER)
        assert after == (
            None
            if point.procedure == "throughput"
            else point.key.replace(f"/{point.procedure}/", "/throughput/")
        )
        assert point.repetitions == (10 if point.procedure == "throughput" else 1)
        goal = read_point(
            point, throughput=None if after is None else KnownThroughput(fps=123_456.5, source=after)
        ).goal
        if isinstance(goal, DelayGoal):
            assert (goal.rate_fps, goal.throughput_fps) == (123_456.5, 123_456.5)
            assert (goal.test is DelayTest.LATENCY) == (point.procedure == "latency")
            assert goal.has_variation == (point.procedure == "ipdv")
        elif isinstance(goal, (RecoveryGoal, BackToBackGoal)):
            assert (goal.throughput_fps, goal.throughput_source) == (123_456.5, after)


def test_a_rate_of_the_users_own_takes_no_throughput() -> None:
    plan = expanded(
        {
            "procedure": ["latency", "throughput"],
            "hosts": 1,
            "rate": "5kfps",
            "inner-repetitions": 3,
            "tagged": 2,
            "from": "1s",
        }
    )
    point = next(point for point in plan.points if point.procedure == "latency")
    goal = read_point(point).goal
    assert AFTER not in point.goal
    assert isinstance(goal, DelayGoal)
    assert (goal.rate_fps, goal.throughput_fps, goal.repetitions, goal.tagged_frames, goal.from_s) == (
        5000,
        None,
        3,
        2,
        1,
    )


def test_options_reach_the_goal_as_those_of_the_verb_do() -> None:
    suite = {
        "hosts": 7,
        "direction": "forward",
        "maximum-rate": "1Mfps",
        "duration": "2s",
        "final-duration": "20s",
        "precision": "1%",
        "loss-ratio": "0.1%",
        "invalid-retries": 4,
        "waits": "short",
        "wait-residual": "1s",
        "offered-tolerance": "1%",
        "source-ports": "fixed",
        "host-mode": "increment",
        "patience": 3,
    }
    point = expanded(suite, round_order="in-turn").points[-1]
    request = read_point(point, testbed.TestbedLimits(patience=9))
    assert isinstance(request.goal, ThroughputGoal)
    assert (request.goal.max_fps, request.goal.duration_s, request.goal.final_duration_s) == (1e6, 2, 20)
    assert (
        request.goal.precision,
        request.goal.loss_ratio,
        request.goal.invalid_retries,
        request.goal.patience,
    ) == (0.01, 0.001, 4, 3)
    assert request.conditions["directions"] == ("forward",)
    assert (request.conditions["waits"].residual_s, request.conditions["waits"].after_routing_s) == (1, 0.1)
    assert (request.conditions["limits"].offered_tolerance, request.conditions["limits"].loss_ratio) == (
        0.01,
        0.001,
    )
    plan = request.conditions["plan"]
    assert not isinstance(plan, str)
    assert (plan.source_ports.first, plan.left.host_range.mode, plan.left.host_range.count) == (
        0xC020,
        "increment",
        7,
    )
    assert point.plan_options == {"host_mode": "increment", "source_ports": "fixed"}
    mlr = read_point(expanded({"search": "mlr", "goal": ["NDR", "PDR=1%"], "hosts": 1}).points[0]).goal
    assert isinstance(mlr, MlrGoals)
    assert [goal.name for goal in mlr.goals] == ["NDR", "PDR=1%"]


def test_a_mix_of_both_ip_versions_is_one_plan() -> None:
    point = expanded({"plan": "gateway-v4+gateway-v6", "mix": "90/10", "hosts": 4}).points[-1]
    assert (point.plan, point.plan_options, point.frame_size) == (
        "gateway-v4+gateway-v6",
        {"mix": "90/10"},
        84,
    )
    plan = plan_of(point)
    assert plan.other is not None
    assert plan.other.share == (9, 1)


def test_all_frame_sizes_are_those_of_the_ip_version() -> None:
    sizes = [
        point.frame_size
        for point in expanded({"plan": "gateway-v6", "hosts": 1, "frame-sizes": ["all"]}).points
    ]
    assert sizes == [84, 128, 256, 512, 1024, 1280, 1518]


def test_the_reference_router_is_that_of_the_options_and_of_the_points_hash() -> None:
    plan = expanded(
        {"hash-types": ["type1", "type2"]},
        testbed="reference",
        reference={"elements": 4, "rate": "50kfps", "neighbor-cost": "4096,10%", "queue-frames": 64},
    )
    assert plan.reference is not None
    for hash_type in ("type1", "type2"):
        dut = plan.reference.dut(hash_type)
        assert dut.model is not None
        assert (dut.model.elements, dut.model.rate_fps, dut.model.hash_type, dut.model.queue_frames) == (
            4,
            50_000,
            hash_type,
            64,
        )
        assert dut.neighbor_cost is not None
        assert (dut.neighbor_cost.free_entries, dut.neighbor_cost.growth) == (4096, 0.1)


def test_a_testbed_is_found_from_the_files_folder_and_told_without_it(tmp_path: Path) -> None:
    """Runs are sent to others: a folder tells more of the owner than of the run."""
    plan = expand(
        make_campaign(
            campaign({"hooks": {"before-suite": "/home/me/set-up.sh --plan x"}}, testbed="labs/ours.toml"),
            where="c.toml",
            folder=tmp_path,
        )
    )
    assert plan.testbed == str(tmp_path / "labs" / "ours.toml")
    text = json.dumps(plan.spec)
    assert plan.spec["testbed"] == "ours.toml"
    assert "home" not in text
    assert "labs" not in text
    assert plan.suite_hooks["a"].before_suite == "/home/me/set-up.sh --plan x"


def test_hooks_of_a_suite_stand_over_those_of_the_campaign() -> None:
    plan = expanded(
        {"hooks": {"before_point": "own", "timeout": "5s"}},
        {"name": "b"},
        hooks={"before-suite": "all", "before-point": "all", "timeout": "1min"},
    )
    assert (
        plan.suite_hooks["a"].before_suite,
        plan.suite_hooks["a"].before_point,
        plan.suite_hooks["a"].timeout,
    ) == ("all", "own", 5)
    assert (
        plan.suite_hooks["b"].before_suite,
        plan.suite_hooks["b"].before_point,
        plan.suite_hooks["b"].timeout,
    ) == ("all", "all", 60)


def test_a_changed_file_is_told_value_by_value() -> None:
    old = expanded({"hosts": [1, 2]}, {"name": "b"}, seed=1)
    new = expanded({"hosts": [1, 4], "duration": "1s"}, {"name": "c"}, seed=2)
    lines = difference(old.spec, new.spec)
    assert "seed: 1 -> 2" in lines
    assert 'suite \'a\'.hosts: ["1", "2"] -> ["1", "4"]' in lines
    assert 'suite \'a\'.options.throughput.duration: "5s" -> "1s"' in lines
    assert any(line.startswith("suite 'b'.plan: ") and line.endswith("-> not there") for line in lines)
    assert any(line.startswith("suite 'c'.plan: not there") for line in lines)
    assert difference(old.spec, old.spec) == []


def test_expected_times_are_those_of_trials_and_waits() -> None:
    """A binary search is a short trial and a long one on a DUT that loses nothing. To 0.5 % on a slow one it
    is up to 18 short trials; each waits for 11 s as RFC 2544 has it."""

    def span(**suite: Any) -> TimeSpan:
        return describe(expanded({"hosts": 1, "repetitions": 1, **suite})).rows[0].expected

    def seconds(**suite: Any) -> float:
        known = span(**suite)
        assert known.least_s == known.most_s
        return known.most_s

    search = {"maximum-rate": "1Mfps", "duration": "5s", "final-duration": "60s", "precision": "0.5%"}
    rfc2544 = span(**search)
    assert rfc2544 == TimeSpan(2 + (5 + 11) + 60 + 11, 2 + 18 * (5 + 11) + 60 + 11)
    short = span(**search, waits="short")
    assert short.least_s == pytest.approx(2 + (5 + 0.8) + 60 + 0.8)
    assert short.most_s == pytest.approx(2 + 18 * (5 + 0.8) + 60 + 0.8)
    assert span(**{**search, "repetitions": 3}) == rfc2544.times(3)
    tst009 = span(**search, search="tst009")
    assert (tst009.least_s, tst009.most_s) == (rfc2544.least_s, 2 + 33 * (5 + 11) + 60 + 11)
    assert seconds(procedure="latency", rate="1kfps") == pytest.approx(2 + 20 * (120 + 11))
    assert seconds(procedure="recovery", throughput="1kfps") == pytest.approx(2 + 10 * (120 + 11))
    series = {"procedure": "loss", "maximum-rate": "1Mfps", "duration": "5s", "step": "5%"}
    assert seconds(**series) == pytest.approx(2 + (20 / 2 + 1) * (5 + 11))
    removal = {"procedure": "tear-down", "plan": "nat44", "connections": "50k", "rate": "10kfps"}
    assert seconds(**removal) == pytest.approx(2 + 10 * (5 + 11))
    assert hosts_learning_s([10, 4000], rate_fps=1000, wait_s=0.5) == 4.5
    direct = describe(expanded({"plan": "direct-v4-net16", "repetitions": 1, **search})).rows
    assert direct[1].expected.least_s - direct[0].expected.least_s == pytest.approx(65_532 / 20_000)


def test_what_has_to_be_set_up_by_hand_is_noted() -> None:
    set_ups = ({"hash-types": "type1"}, {"name": "b", "plan": "gateway-v6", "hash-types": "type2"})
    (note,) = describe(expanded(*set_ups)).notes
    assert "gateway-v4 with type1" in note
    assert "no hook does this" in note
    assert describe(expanded(*set_ups, testbed="reference")).notes == ()
    assert describe(expanded(*set_ups, hooks={"before-suite": "true"})).notes == ()
    assert "ARP" in describe(expanded({"plan": "direct-v4-net16"})).notes[0]
