# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo` on the reference router: a router that hashes addresses only, measured with one address
pair and with many."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evenhand.base.errors import RequestError
from evenhand.base.programs import ROUTER, find_program
from evenhand.base.units import format_duration, format_ratio
from evenhand.base.without_folders import without_folders
from evenhand.cli.common import command_line, err, out, write_json
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.run_options import open_run
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Traffic, make_plan
from evenhand.predict import DeviceModel, predict
from evenhand.procedure import OpenTestbed, SinglePair, limits_of
from evenhand.report.bias import BiasCase, bias_document, bias_lines, bias_picture, has_verdict
from evenhand.report.invalid import OF_THE_HOST
from evenhand.rig import make_reference_setup
from evenhand.rig.host.facts import read_host_facts, read_versions
from evenhand.rig.reference import ReferenceDut, reference_router
from evenhand.run import RunStore
from evenhand.search import Outcome, ThroughputGoal, ThroughputResult
from evenhand.trial import Waits, causes_of_invalid

PLANS = ("gateway_v4", "gateway_v6")
ELEMENTS = 16
ELEMENT_FPS = 50_000.0
"""Low on purpose: at 800 kfps in all, a CPU that a virtual machine takes away for ten milliseconds leaves
8,000 frames waiting, which the 16,384 frames of a memif ring hold. What these elements forward in a second,
the router and the tester can do in a tenth of one."""
QUEUE_FRAMES = 768
"""15 ms of one element. Longer queues hide an overload for longer: up to Q / (rate T) of the load in trials
of T seconds, here 0.8 %. Shorter ones overflow below their rate, since pseudorandom frames come unevenly: the
100,000 of a trial vary by 316, and the worst of 16 elements by twice of that."""
MAX_FPS = 500_000.0
"""Per direction; a quarter above what the elements serve together, as a user would guess too high."""
OFFERED_TOLERANCE = 0.005
"""At most half the precision of the search. To be away in a trial's last milliseconds is nothing worse than
to be away in others."""
DEMO_WAITS = Waits(after_routing_s=0.05, after_learning_s=0.1, residual_s=0.25, restabilize_s=0.1)
LOSS_VERIFICATIONS = 1
PLAIN_LOSS_RATIO = 0.02
"""The host can take the router's CPU away for so long that a memif ring overflows. That costs some frames
once; an overload costs them always."""
FULL = ThroughputGoal(
    max_fps=MAX_FPS,
    precision=0.01,
    duration_s=2.0,
    final_duration_s=2.0,
    loss_verifications=LOSS_VERIFICATIONS,
    plain_loss_ratio=PLAIN_LOSS_RATIO,
    invalid_retries=4,
    patience=20,
)
QUICK = replace(FULL, precision=0.02, duration_s=1.0, final_duration_s=1.0)
"""Also for a host that takes a CPU away every 0.75 to 2.25 s: hardly a trial of 2 s is undisturbed there, and
one in three of 1 s. In less than 0.8 s the queue would hide more than the 2 % within which a search is as
predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One bar of the picture."""

    hash_type: Literal["type1", "type2"]
    hosts: int | None
    """Per side; None: the maximum."""
    expected_s: float
    """For the estimate of the time left only."""


CASES = (
    Case(hash_type="type1", hosts=1, expected_s=28.0),
    Case(hash_type="type1", hosts=None, expected_s=22.0),
    Case(hash_type="type2", hosts=1, expected_s=22.0),
)
"""The biased result, the unbiased one, and what it should be about equal to (SEED-69, SEED-70, SEED-71)."""


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
    if everything.name not in PLANS:
        raise RequestError(
            f"the demo does not run with {everything.title}",
            code="cli.plan-not-here",
            where="--plan",
            next_step="Use gateway-v4 or gateway-v6.",
        )
    find_program(ROUTER)  # before anything is set up
    goal = QUICK if quick else FULL
    cases: list[BiasCase] = []
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        progress.remedy = None
        progress.say(
            f"Demo: a router of {ELEMENTS} processing elements inside this machine. It takes"
            f" {'a minute' if quick else 'two minutes'}, or longer on a busy host. No frame"
            " leaves the machine. A trial that ends INVALID was spoiled by the tester,"
            " and is repeated.",
            style="bold",
        )
        for index, case in enumerate(CASES):
            progress.later_s = sum(later.expected_s for later in CASES[index + 1 :])
            plan = make_plan(plan_name, case.hosts)
            measured = partial(
                _measure,
                case,
                plan,
                number=index + 1,
                seed=seed,
                engine=engine,
                store=store,
                progress=progress,
            )
            done = measured(goal)
            if goal is not QUICK and _needs_shorter_trials(done.result):
                progress.say(
                    f"Trials of {format_duration(goal.duration_s)} were INVALID too often on"
                    f" this host. From now on trials last {format_duration(QUICK.duration_s)},"
                    f" and a search stops at {format_ratio(QUICK.precision)}.",
                    style="bold",
                )
                if store is not None:
                    store.abandon_search(
                        f"a search with trials of {format_duration(goal.duration_s)} was abandoned, because"
                        " too many of them were INVALID on this host; one with trials of"
                        f" {format_duration(QUICK.duration_s)} took its place"
                    )
                goal = QUICK
                done = replace(measured(goal), given_up=done.result)
            # The first of them is the one with a single pair; each has a router of its own, set up alike but
            # for its hash (SEED-02).
            one_pair = SinglePair.of(cases[0].result, cases[0].profile) if cases else None
            cases.append(replace(done, profile=replace(done.profile, single_pair=one_pair)))
    _write_page(cases, page, run)  # before anything is printed: a closed pipe must not cost the page
    if json_output:
        write_json(_document(cases, run, page, host_name=host_name))
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
    case: Case,
    plan: AddressPlan,
    goal: ThroughputGoal,
    *,
    number: int,
    seed: int,
    engine: Path | None,
    store: RunStore | None,
    progress: ProgressDisplay,
) -> BiasCase:
    model = DeviceModel(
        elements=ELEMENTS, hash_type=case.hash_type, rate_fps=ELEMENT_FPS, queue_frames=QUEUE_FRAMES
    )
    prediction = predict(plan, model, BOTH_DIRECTIONS)
    with reference_router(plan, ReferenceDut(model=model)) as router:
        fields = "addresses only" if case.hash_type == "type1" else "addresses and ports"
        progress.say(
            f"{number} of {len(CASES)}: the router hashes {fields}, the tester sends {_hosts(plan)}.",
            style="bold",
        )
        setup = make_reference_setup(router)
        bed = OpenTestbed(setup=setup, engine=engine, recorder=store, on_event=progress.on_event)
        found = bed.throughput(
            goal=goal,
            name=f"{plan.name} {case.hash_type} {_hosts(plan)}",
            plan=plan,
            frame_size=plan.smallest_frame_size,
            seed=seed,
            waits=DEMO_WAITS,
            limits=limits_of(setup.testbed.limits, given={"offered_tolerance": OFFERED_TOLERANCE}),
        )
        assert isinstance(found.search, ThroughputResult)
        return BiasCase(
            profile=found.profile, prediction=prediction, result=found.search, counters=router.counters()
        )


def _needs_shorter_trials(result: ThroughputResult) -> bool:
    """Whether the host kept the search from its end: a shorter trial meets fewer of its moments. A link that
    is down is down for shorter ones too."""
    return result.outcome is Outcome.TESTER_LIMIT and not OF_THE_HOST.isdisjoint(
        causes_of_invalid(trial.result for trial in result.trials)
    )


def _write_page(cases: list[BiasCase], page: Path | None, run: Path | None) -> None:
    if page is not None:
        from evenhand.report.bias_page import write_bias_page  # its libraries take longer than most verbs

        # As in a run file: a page is made to be sent to others, whom the folders of this host do not concern.
        command = without_folders(command_line())
        write_bias_page(
            cases, page, host=read_host_facts(), versions=read_versions(), command=command, run=run
        )


def _hosts(plan: AddressPlan) -> str:
    return "one address pair" if plan.pairs == 1 else Traffic(plan=plan, directions=BOTH_DIRECTIONS).addresses


def _document(
    cases: list[BiasCase], run: Path | None, page: Path | None, *, host_name: bool
) -> dict[str, Any]:
    return {
        "command": "demo",
        "dut": {"kind": "reference"},
        "host": read_host_facts(host_name=host_name),
        "versions": read_versions(),
        "run": None if run is None else str(run),
        "page": None if page is None else str(page),
        **bias_document(cases),
    }
