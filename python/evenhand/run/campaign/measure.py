# SPDX-License-Identifier: Apache-2.0
"""Campaign: one point measured: its hooks, its DUT, and each of its repetitions by the procedure that it
names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.folders import without_folders
from evenhand.base.locks import InUseError
from evenhand.procedure import Conditions, Note, OnePair, OpenTestbed, Throughput
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.procedure.search_options import start_at
from evenhand.rig import LabWish, LeasedLab, Setup, campaign_facts, rig_of
from evenhand.run.campaign.dut_setup import set_up_for
from evenhand.run.campaign.events import (
    HookEnded,
    Job,
    OnCampaignEvent,
    PointBegan,
    PointEnded,
    RepetitionBegan,
    RepetitionEnded,
    environment_of,
    run_hook,
    why_failed,
)
from evenhand.run.recorder import STOPPED, CannotContinueError
from evenhand.run.rows import without_trials
from evenhand.run.run_file import StorageError
from evenhand.run.store import RepetitionEnd, RunStore
from evenhand.spec.file import Hooks, Reference
from evenhand.spec.place import option_places
from evenhand.spec.request import Point, PointRequest, line_texts_of, plan_of, read_point

ENGINE_ENDS_WITHIN_S = 15.0
"""When a campaign was killed and goes on at once, its engine may still be closing the ports."""
LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOrder:
    """What is left to be measured of one point in a round, and all that it takes. It can be pickled, and
    measured elsewhere."""

    point: Point
    jobs: tuple[Job, ...]
    """Jobs in the order of their numbers."""
    hooks: Hooks
    testbed: str
    """A testbed file, `lab:linux`, or `reference`. For workers elsewhere the name of one of them; empty: any
    of them."""
    reference: Reference | None
    throughput: KnownThroughput | None = None
    """The throughput that this point takes from another one."""
    start_fps: float | None = None
    """About what the DUT forwards, where a search that chooses its start itself begins; None: not known."""
    one_pair: OnePair | None = None
    """What the suite found with one address pair under the same conditions (SEED-02)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for its hooks, in addition to what they get to know of the point."""
    run: str = ""
    """Which run this is, for a DUT that it sets up (see `dut_setup.name_of_run`)."""
    lab_wish: LabWish
    """What a lab is set up for, where the testbed is one: for all points of the suite."""
    of_testbed: tuple[int, ...] = ()
    """All repetitions that are this testbed's, where each point is measured on several; empty: on one."""
    is_last: bool = True
    """Nothing of the point is left for a later round."""


class _HookFailedError(Exception):
    pass


def measure_point(
    order: PointOrder,
    keeper: RunStore,
    *,
    engine: Path | None,
    on_event: OnCampaignEvent,
    lab: LeasedLab | None = None,
) -> None:
    """All jobs of the order. A point that cannot be measured is kept with the reason, and that is not an
    error.

    Args:
        lab: The lab that is the testbed, to be set up for the order first.

    Raises:
        StorageError: Nothing can be kept any longer.
        InUseError: Another tester has the testbed.
        HeldError: Somebody else has set up its DUT.
        EvenhandError: There is no testbed, which is so for every other point.
        KeyboardInterrupt: A trial was stopped.
    """
    point = order.point
    on_event(PointBegan(point=point, place=order.jobs[0].place))
    reason = None
    try:
        _run_hook("before_point", order, keeper, on_event)
        reason = None if lab is None else lab.set_up_for(order.lab_wish)
        if reason is None:
            with _setup_of(order) as setup:
                reason = set_up_for(point, setup, keeper, on_event, run=order.run)
                if reason is None:
                    is_set_up = setup.reachable is not None
                    reason = _measure_on(replace(setup, is_set_up=is_set_up), order, keeper, engine, on_event)
    except _HookFailedError as failure:
        reason = str(failure)
    finally:
        with suppress(_HookFailedError):  # what was measured is kept
            _run_hook("after_point", order, keeper, on_event)
    if reason is not None:
        # Its path may have spaces, so that only who knows it can find it in a sentence.
        named = without_folders(order.testbed)
        keeper.end_point(point, reason.replace(order.testbed, named) if order.testbed else reason)
    if reason is not None or order.is_last:
        on_event(PointEnded(point=point, reason=reason))


def _measure_on(
    setup: Setup, order: PointOrder, keeper: RunStore, engine: Path | None, on_event: OnCampaignEvent
) -> str | None:
    """Why it could not be measured; None if it was."""
    facts = campaign_facts(setup, (order.reference or Reference()).to_document())
    testbed = keeper.add_testbed(setup.name, facts)
    try:
        limits = setup.testbed.limits
        request = read_point(order.point, limits, throughput=order.throughput)
        if texts := line_texts_of(order.point):
            line = OpenTestbed(setup=setup, engine=engine).line(request.conditions, texts)
            request = read_point(order.point, limits, throughput=order.throughput, line=line)
        request = replace(request, goal=start_at(request.goal, order.start_fps))
        for job in order.jobs:
            _measure_repetition(job, request, setup, testbed, order, keeper, engine, on_event)
    except (StorageError, InUseError):
        raise
    except EvenhandError as error:
        return f"{error.what} ({option_places(error.where)})" if error.where else error.what
    return None


def _measure_repetition(
    job: Job,
    request: PointRequest,
    setup: Setup,
    testbed: str,
    order: PointOrder,
    keeper: RunStore,
    engine: Path | None,
    on_event: OnCampaignEvent,
) -> None:
    is_anew, waited_until_s = False, time.monotonic() + ENGINE_ENDS_WITHIN_S
    while True:
        recorder = keeper.begin(job.point, job.repetition, seed=job.seed, testbed=testbed, anew=is_anew)
        on_event(RepetitionBegan(job=job, stored_trials=recorder.stored_trials))
        bed = OpenTestbed(
            setup=setup, engine=engine, recorder=recorder, replay=recorder, on_event=on_event, run=order.run
        )
        try:
            ended = _measure(bed, job, request, order.one_pair)
        except CannotContinueError:
            on_event(
                Note(
                    text="It cannot be resumed where it was interrupted, because the conditions have"
                    " changed; this repetition starts again."
                )
            )
            is_anew = True
            continue
        except InUseError:
            if time.monotonic() > waited_until_s:
                raise
            time.sleep(LOOK_AGAIN_S)
            continue
        if ended.outcome == STOPPED:
            raise KeyboardInterrupt
        keeper.end(recorder, ended)
        on_event(
            RepetitionEnded(
                job=job,
                outcome=ended.outcome,
                value=ended.value,
                is_at_least=ended.is_at_least,
                reason=ended.reason,
            )
        )
        return


def _measure(bed: OpenTestbed, job: Job, request: PointRequest, one_pair: OnePair | None) -> RepetitionEnd:
    """One repetition of the procedure."""
    point, procedure = job.point, request.procedure
    name = f"{point.key}, repetition {job.repetition}"
    conditions: Conditions = {**request.conditions, "seed": job.seed}
    has_own_loop = procedure.has_own_loop(request.options)
    found: Any = bed.measure(procedure, request.goal, name=name, has_own_loop=has_own_loop, **conditions)
    if isinstance(found, Throughput):
        found = replace(found, is_repetition=True)
        found = _beside(found, one_pair, is_ours=bed.setup.has_new_macs)
    document, skipped = without_trials(found.to_document()), getattr(found, "skipped", None)
    return RepetitionEnd.of(
        procedure.name, str(found.outcome), document, tuple(found.trials), skipped=skipped
    )


def _beside(found: Throughput, one_pair: OnePair | None, *, is_ours: bool) -> Throughput:
    """The result next to that with one pair, if it is the same DUT's (SEED-02). A router of ours
    has other MACs each time."""
    macs = {side: of.dut for side, of in (found.profile.macs or {}).items()}
    if one_pair is None or (dict(one_pair.dut_macs) != macs and not is_ours):
        return found
    return replace(found, profile=replace(found.profile, one_pair=one_pair))


def _setup_of(order: PointOrder) -> AbstractContextManager[Setup]:
    reference = order.reference or Reference()
    return rig_of(order.testbed).open(
        lambda: plan_of(order.point), lambda: reference.dut(order.point.hash_type)
    )


def _run_hook(when: str, order: PointOrder, keeper: RunStore, on_event: OnCampaignEvent) -> None:
    environment = {**order.environment, **environment_of(order.point)}
    failure = run_and_keep(when, order.hooks, environment, keeper, on_event, point=order.point)
    if failure is not None:
        raise _HookFailedError(failure)


def run_and_keep(
    when: str,
    hooks: Hooks,
    environment: Mapping[str, str],
    keeper: RunStore,
    on_event: OnCampaignEvent,
    *,
    point: Point | None = None,
    suite: str | None = None,
) -> str | None:
    """Run the command of that moment, if there is one. Why it failed; None if it did not."""
    command: str | None = getattr(hooks, when)
    if command is None:
        return None
    hook = run_hook(command, when=when, timeout_s=hooks.timeout, environment=environment)
    failure = why_failed(hook, hooks.timeout)
    keeper.add_hook(hook, point=point, suite=suite)
    on_event(HookEnded(hook=hook, failure=failure))
    return failure
