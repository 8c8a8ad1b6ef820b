# SPDX-License-Identifier: Apache-2.0
"""What the demo says of three results: one pair, many addresses, and one pair on a router that hashes
ports."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.base.terminal_table import rendered
from evenhand.base.units import format_count, format_rate
from evenhand.host.finding import read_host_facts, read_versions
from evenhand.plan import AddressPlan, make_plan
from evenhand.predict import DeviceModel, HashType, predict
from evenhand.procedure import Profile
from evenhand.report.bias import BiasCase, bias_document, bias_lines, bias_picture, bias_verdict
from evenhand.report.bias_page import write_bias_page
from evenhand.search import Outcome, ThroughputGoal, find_throughput
from evenhand.trial import SimulatedMeasurer

PLANS = pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
PLATEAU_FPS = 400_000.0


def case(plan: AddressPlan, hash_type: HashType, limit_fps: float, *, at_work: int = 16) -> BiasCase:
    """A search on a simulated device of this limit, beside the prediction for sixteen elements."""
    model = DeviceModel(elements=16, hash_type=hash_type, rate_fps=50_000.0, queue_frames=768)
    device = SimulatedMeasurer(limit_fps=limit_fps, frame_size=plan.smallest_frame_size)
    goal = ThroughputGoal(max_fps=500_000.0, precision=0.0005, duration_s=1.0, final_duration_s=2.0)
    counters: dict[str, Any] = {
        "elements": [{"served_frames": 1 if number < at_work else 0} for number in range(16)],
        "model": {"longest_gap_us": 12.0},
    }
    return BiasCase(
        profile=Profile(
            plan=plan, frame_size=plan.smallest_frame_size, seed=1, directions=("forward", "reverse")
        ),
        prediction=predict(plan, model),
        result=find_throughput(device, goal),
        counters=counters,
    )


def cases(
    plan: str, *, one: float = 50_000, many: float = PLATEAU_FPS, ports: float = PLATEAU_FPS, **options: Any
) -> list[BiasCase]:
    pair, everything = make_plan(plan, 1), make_plan(plan)
    return [
        case(pair, "type1", one, **options),
        case(everything, "type1", many, **options),
        case(pair, "type2", ports, **options),
    ]


@PLANS
@pytest.mark.parametrize(
    ("many", "ports", "words"),
    [
        (400_000, 400_000, "about equal to"),
        (384_000, 400_000, "about equal to"),
        (376_000, 400_000, "not equal to"),
        (200_000, 400_000, "not equal to"),
        (400_000, 384_000, "about equal to"),
        (400_000, 376_000, "not equal to"),
    ],
)
def test_many_addresses_and_a_hash_of_ports_are_compared_within_5_percent(
    plan: str, many: float, ports: float, words: str
) -> None:
    """SEED-70: 4 % either way is about equal, 6 % is not; the ratio of what was found is told."""
    compared = cases(plan, many=many, ports=ports)
    sentence = bias_verdict(compared)[-1]
    assert f"The result is {words} that of the same router when it hashes ports as well" in sentence
    found = [c.found_fps for c in compared]
    assert found[1] is not None
    assert found[2] is not None
    assert abs(found[1] / found[2] - many / ports) < 0.003
    assert f"(ratio {found[1] / found[2]:.3f})" in sentence
    assert bias_document(compared)["verdict"] == bias_verdict(compared)
    assert sentence in bias_lines(compared)


@PLANS
@pytest.mark.parametrize(
    ("one", "is_biased"), [(50_000, True), (376_000, True), (384_000, False), (400_000, False)]
)
def test_one_pair_is_biased_if_it_shows_less_than_many_by_more_than_5_percent(
    plan: str, one: float, is_biased: bool
) -> None:
    """SEED-70, SEED-71: with the share that it shows."""
    compared = cases(plan, one=one)
    pair_fps, many_fps = compared[0].found_fps, compared[1].found_fps
    assert pair_fps is not None
    assert many_fps is not None
    assert abs(pair_fps / many_fps - one / PLATEAU_FPS) < 0.003
    found = "Biased" if is_biased else "Not biased"
    assert bias_verdict(compared)[0].startswith(f"{found}: one address pair shows ")


@PLANS
@pytest.mark.parametrize("one", [50_290, 398_400])
@pytest.mark.parametrize("many", [396_000, 400_000])
def test_the_share_of_one_pair_is_the_same_number_wherever_it_stands(
    tmp_path: Path, plan: str, one: float, many: float
) -> None:
    """50.29 of 400 kfps is 12.6 %, and of 396 kfps 12.7 %: a reader who finds both in one output believes
    neither."""
    compared = cases(plan, one=one, many=many)
    share = compared[0].share
    assert share is not None
    text = f"{100 * share:.1f} %"
    assert f" {text} of what this router can forward" in bias_verdict(compared)[0]
    console = Console(file=io.StringIO(), width=200)
    console.print(rendered(bias_picture(compared)))
    assert isinstance(console.file, io.StringIO)
    number = text.removesuffix(" %")  # the unit is in the heading
    assert f" {number} " in console.file.getvalue().splitlines()[3]
    page = tmp_path / "demo.html"
    write_bias_page(
        compared,
        page,
        host=read_host_facts(),
        versions=read_versions(),
        command=["evenhand", "demo"],
        run=None,
    )
    html = page.read_text()
    assert f", {text}<" in html  # in the picture
    assert f", {text}<" in html  # there,
    assert f">{number}<" in html  # in the table,
    assert f" {text} of what" in html  # and in the verdict


@PLANS
def test_counters_of_the_router_change_no_number_and_no_finding(plan: str) -> None:
    """SEED-07: elements at work are told beside the finding, which the trials alone decide."""

    def findings(at_work: int) -> tuple[list[str], list[object]]:
        compared = cases(plan, at_work=at_work)
        words = [
            line.split(":")[0] + ("not equal" if "not equal to" in line else "")
            for line in bias_verdict(compared)
        ]
        return words, [(c.found_fps, c.error, c.is_as_predicted) for c in compared]

    assert findings(16) == findings(1)


@PLANS
def test_without_three_numbers_there_is_no_verdict(plan: str) -> None:
    """A search that never found a load of the router claims nothing."""
    compared = cases(plan, many=1e9)
    assert compared[1].found_fps is None
    (sentence,) = bias_verdict(compared)
    assert sentence.startswith("No verdict")


def test_a_search_that_was_given_up_is_told_beside_the_one_that_counts() -> None:
    one, many, ports = cases("gateway-v4")
    shorter = replace(many, given_up=replace(one.result, outcome=Outcome.TESTER_CEILING))
    given_up = f"a search with trials of 1 s was abandoned after {len(one.result.trials)} trials"
    (told,) = [line for line in bias_lines([one, shorter, ports]) if given_up in line]
    assert "too many of them were INVALID" in told
    assert [search["trials_given_up"] for search in bias_document([one, shorter, ports])["searches"]] == [
        0,
        len(one.result.trials),
        0,
    ]
    assert bias_verdict([one, shorter, ports]) == bias_verdict([one, many, ports])


def test_a_search_without_a_number_says_what_passed_and_is_not_called_as_predicted(tmp_path: Path) -> None:
    """A tester's ceiling is a lower bound of the router: table, sentence and page say so, each for itself."""
    found = cases("gateway-v4")
    result = found[2].result
    found[2] = replace(found[2], result=replace(result, outcome=Outcome.TESTER_CEILING, throughput_fps=None))
    passed = result.highest_passed_fps
    assert passed is not None
    console = Console(file=io.StringIO(), width=100)
    console.print(rendered(bias_picture(found)))
    assert isinstance(console.file, io.StringIO)
    assert "found, kfps" in console.file.getvalue()
    assert f">= {passed / 1000:.2f}" in console.file.getvalue()
    page = tmp_path / "demo.html"
    write_bias_page(
        found, page, command=["evenhand", "demo"], run=None, versions=read_versions(), host=read_host_facts()
    )
    assert f"&gt;= {format_count(passed)}" in page.read_text()
    assert f"no number; {format_rate(passed)} passed" in page.read_text()
    nothing = replace(found[2], result=replace(found[2].result, trials=()))
    assert nothing.found_cell("fps").text == "-"
    lines = bias_lines(found)
    assert any(line.startswith("No verdict: 1 of 3 searches ended without a result") for line in lines)
    assert any(line.startswith("In 2 of 3 searches the result is within") for line in lines)
    assert not any("Each search" in line for line in lines)
