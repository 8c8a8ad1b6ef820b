# SPDX-License-Identifier: Apache-2.0
"""What all demos are made of. They measure the points of a preset, which a user can measure as a campaign,
and change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.folders import without_folders
from evenhand.base.programs import ROUTER, find_program
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_duration, format_ratio
from evenhand.cli.common import command_line, err, out, write_json
from evenhand.cli.conditions import written_beside
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.run_options import open_run
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Traffic, make_plan
from evenhand.predict import predict
from evenhand.procedure import Conditions, OnePair, OpenTestbed
from evenhand.reference import reference_router
from evenhand.report.bias import BiasCase, bias_document, bias_lines, bias_picture, has_verdict
from evenhand.report.plain import OF_THE_HOST
from evenhand.rig import make_reference_setup, read_host_facts, read_versions
from evenhand.run import RunStore
from evenhand.search import Outcome, ThroughputGoal, ThroughputResult
from evenhand.spec.file import Reference, make_campaign
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.request import Point, plan_of, read_point
from evenhand.trial import causes_of_invalid


def read_demo(preset: str, changed: Mapping[str, str] | None = None) -> CampaignPlan:
    """The preset as a campaign.

    Args:
        changed: Keys of all suites that this demo has otherwise than the preset.
    """
    every = {"every-suite": dict(changed)} if changed else {}
    return expand(make_campaign({"preset": preset, **every}, where="demo"))


def addresses_in_words(plan: AddressPlan) -> str:
    """`one address pair`, or how many there are of each side."""
    if plan.pairs == 1:
        return "one address pair"
    return Traffic(plan=plan, directions=BOTH_DIRECTIONS).address_words


@contextmanager
def opened_demo(
    run: Path | None, *, host_name: bool, greeting: str
) -> Iterator[tuple[RunStore | None, ProgressDisplay]]:
    """The run's file, if the demo is stored, and the progress on stderr, which begins with the greeting."""
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        progress.remedy = None
        progress.say(greeting, style="bold")
        yield store, progress


def demo_document(dut: Mapping[str, Any], run: Path | None, *, host_name: bool) -> dict[str, Any]:
    """The beginning of the document for programs."""
    return {
        "command": "demo",
        "dut": dict(dut),
        "host": read_host_facts(host_name=host_name),
        "versions": read_versions(),
        "run": None if run is None else str(run),
    }


PRESET = "demo"
"""For each IP version three points: the biased result, the unbiased one, and what it should be about equal to
(SEED-69, SEED-70, SEED-71)."""
QUICK = {"precision": "2%", "duration": "1s", "final-duration": "1s"}
"""Suited also to a host that takes a CPU away every 0.75 to 2.25 s: hardly a trial of 2 s is undisturbed
there, and one in three of 1 s. In less than 0.8 s the queue would hide more than the 2 % within which a
search is as predicted."""
PLAIN_LOSS_RATIO = 0.02
"""More than that counts without a repetition: a CPU that is taken away costs some frames once. As a campaign
the preset repeats every loss, which takes longer and comes to the same."""
EXPECTED_S = (28.0, 22.0, 22.0)
"""Expected times of the searches. For the estimate of the time left only."""


def demo_goal(point: Point) -> ThroughputGoal:
    """What the search of a point is for."""
    goal = read_point(point).goal
    assert isinstance(goal, ThroughputGoal)
    return replace(goal, plain_loss_ratio=PLAIN_LOSS_RATIO)


def reference_demo(
    plan_name: str,
    *,
    quick: bool,
    seed: int,
    run: Path | None,
    page: Path | None,
    host_name: bool,
    engine: Path | None,
    json_output: bool,
) -> bool:
    """Three searches, each with its prediction; a picture, a verdict, a page. Whether there is a verdict."""
    everything = make_plan(plan_name)
    short = read_demo(PRESET, QUICK)
    campaign = short if quick else read_demo(PRESET)
    assert campaign.reference is not None
    points, shorter = (
        [point for point in each.points if point.plan == everything.title] for each in (campaign, short)
    )
    if not points:
        raise RequestError(
            f"the demo does not run with {everything.title}",
            code="cli.plan-not-here",
            where="--plan",
            next_step="Use gateway-v4 or gateway-v6.",
        )
    elements = campaign.reference.elements
    find_program(ROUTER)  # before anything is set up
    cases: list[BiasCase] = []
    greeting = (
        f"Demo: a router of {elements} processing elements inside this machine. It takes"
        f" {'a minute' if quick else 'two minutes'}, or longer on a busy host. No frame"
        " leaves the machine. A trial that ends INVALID was spoiled by the tester,"
        " and is repeated."
    )
    with opened_demo(run, host_name=host_name, greeting=greeting) as (store, progress):
        measured = partial(
            _measure, campaign.reference, seed=seed, engine=engine, store=store, progress=progress
        )
        for index in range(len(points)):
            progress.later = TimeSpan.of(sum(EXPECTED_S[index + 1 :]))
            title = f"{index + 1} of {len(points)}"
            done = measured(points[index], title=title)
            if points != shorter and _needs_shorter_trials(done.result):
                given_up, points = done.result, shorter
                long_s, goal = format_duration(given_up.goal.duration_s), demo_goal(points[index])
                progress.say(
                    f"Trials of {long_s} were INVALID too often on"
                    f" this machine. From now on trials last {format_duration(goal.duration_s)},"
                    f" and a search stops at {format_ratio(goal.precision)}.",
                    style="bold",
                )
                if store is not None:
                    store.abandon_search(
                        f"a search with trials of {long_s} was abandoned, because"
                        " too many of them were INVALID on this machine; one with trials of"
                        f" {format_duration(goal.duration_s)} took its place"
                    )
                done = replace(measured(points[index], title=title), given_up=given_up)
            # The first of them is the one with one address pair; each has a router of its own, set up alike
            # but for its hash (SEED-02).
            one_pair = OnePair.of(cases[0].result, cases[0].profile) if cases else None
            cases.append(replace(done, profile=replace(done.profile, one_pair=one_pair)))
    _write_page(cases, page, run)  # before anything is printed: a closed pipe must not cost the page
    if json_output:
        write_json(
            {
                **demo_document({"kind": "reference"}, run, host_name=host_name),
                "page": None if page is None else str(page),
                **bias_document(cases),
            }
        )
        return has_verdict(cases)
    console = out()
    console.print(bias_picture(cases))
    for line in bias_lines(cases):
        console.print(line, markup=False)
    for file, what in ((run, "Every trial is stored in"), (page, "The page with the picture:")):
        if file is not None:
            console.print(f"{what} {file}", markup=False)
    return has_verdict(cases)


def _measure(
    reference: Reference,
    point: Point,
    *,
    title: str,
    seed: int,
    engine: Path | None,
    store: RunStore | None,
    progress: ProgressDisplay,
) -> BiasCase:
    plan, dut = plan_of(point), reference.dut(point.hash_type)
    sent = addresses_in_words(plan)
    assert dut.model is not None
    prediction = predict(plan, dut.model, BOTH_DIRECTIONS)
    with (
        written_beside(store, f"{title}: {plan.name}, {sent}", progress.on_event) as on_event,
        reference_router(plan, dut) as router,
    ):
        fields = "addresses only" if point.hash_type == "type1" else "addresses and ports"
        progress.say(f"{title}: the router hashes {fields}, the tester sends {sent}.", style="bold")
        setup = make_reference_setup(router)
        conditions: Conditions = {**read_point(point, setup.testbed.limits).conditions, "seed": seed}
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=on_event)
        found = bed.throughput(
            goal=demo_goal(point), name=f"{plan.name} {point.hash_type} {sent}", **conditions
        )
        assert isinstance(found.search, ThroughputResult)
        return BiasCase(
            profile=found.profile, prediction=prediction, result=found.search, counters=router.counters()
        )


def _needs_shorter_trials(result: ThroughputResult) -> bool:
    """Whether the host kept the search from its end: a shorter trial meets fewer of its moments. A link that
    is down is down for shorter ones too."""
    return result.outcome is Outcome.TESTER_CEILING and not OF_THE_HOST.isdisjoint(
        causes_of_invalid(trial.result for trial in result.trials)
    )


def _write_page(cases: list[BiasCase], page: Path | None, run: Path | None) -> None:
    if page is not None:
        from evenhand.report.bias_page import write_bias_page  # its libraries take longer than most verbs

        # As in a run file: a page is made to be sent to others, whom the folders of this machine do not
        # concern.
        command = without_folders(command_line())
        write_bias_page(
            cases, page, host=read_host_facts(), versions=read_versions(), command=command, run=run
        )
