# SPDX-License-Identifier: Apache-2.0
"""Campaign: from a plan and a store to points that were measured. What is finished already is not measured
again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Protocol

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.folders import without_folders
from evenhand.procedure import Note, OnePair
from evenhand.procedure.descriptor import KnownThroughput, throughput_to_serve
from evenhand.procedure.registry import THROUGHPUT
from evenhand.rig import REFERENCE, LeasedLab, rig_of
from evenhand.run import RunStore
from evenhand.run.campaign.dut_setup import dut_over_ssh, lab_wish_of, name_of_run, put_dut_back
from evenhand.run.campaign.events import (
    WHOLE,
    Job,
    OnCampaignEvent,
    PointBegan,
    PointEnded,
    environment_of_suite,
    ignore,
    jobs,
)
from evenhand.run.campaign.lab_rules import RouterTrials, choose_rules
from evenhand.run.campaign.measure import PointOrder, measure_point, run_and_keep
from evenhand.spec.file import Hooks
from evenhand.spec.points import CampaignPlan
from evenhand.spec.request import AFTER, Point


class Executor(Protocol):
    """Measures points, each at one place at a time."""

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        """Gives each point when all of it is kept.

        Args:
            orders: Independent of each other. The next one is requested only when there is a place for it.
            lab: The lab that is the testbed of this process; it is set up for each order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HereExecutor:
    """This process, on one testbed."""

    engine: Path | None = None

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        """See `Executor`."""
        for order in orders:
            measure_point(order, keeper, engine=self.engine, on_event=on_event, lab=lab)
            yield order.point


OnPoint = Callable[[Point], None]


@dataclass(slots=True, kw_only=True)
class CampaignRunner:
    """Goes through the jobs of a plan that have no result in the store."""

    plan: CampaignPlan
    store: RunStore
    executor: Executor
    testbed: str
    """Empty if workers elsewhere have theirs."""
    on_event: OnCampaignEvent = ignore
    on_point: OnPoint = field(default=lambda point: None)
    """Is called when a point has ended and is stored. The place for whoever rewrites a page while the
    campaign goes on."""

    engine: Path | None = None
    """The engine that tries a lab before the campaign begins on it, if it does."""
    on_ready: Callable[[], None] = field(default=lambda: None)
    """Is called before anything is measured, when a testbed that is taken as a whole is this campaign's; not
    where nothing is left."""

    _rules: int | None = field(default=None, init=False)
    """Rules of a lab's firewall; None: as its user has set it up."""
    _start_fps: float | None = field(default=None, init=False)
    """What the router forwards with as many rules as were chosen: searches with `start = "auto"` begin there,
    all at the same load, so that none is led by what another has found."""

    def run(self) -> None:
        """Until every point has ended.

        Raises:
            StorageError: The file cannot be written any further.
            EvenhandError: Something that concerns every point.
        """
        left = list(self._left())
        if left:
            leased = rig_of(self.testbed).leased(
                run=name_of_run(self.store.path), on_note=lambda text: self.on_event(Note(text=text))
            )
            with leased as lab, self._dut_as_before():
                self.on_ready()
                self._settle_rules(left[0][0].point, lab)
                self._run_suites(left, lab)
                again = self.store.reopen_undecided() if self.plan.repeats_undecided else 0
                if again:
                    what = "1 repetition" if again == 1 else f"{again} repetitions"
                    text = f"made once more at the end: {what} that the tester could not decide"
                    self.store.add_note(text)
                    self.on_event(Note(text=f"{text}."))
                    self._run_suites(list(self._left()), lab)
        self.store.finish()

    def _run_suites(self, left: list[tuple[Job, ...]], lab: LeasedLab | None) -> None:
        for suite, group in groupby(left, key=lambda of_point: of_point[0].point.suite):
            self._run_suite(suite, list(group), lab)

    def _settle_rules(self, point: Point, lab: LeasedLab | None) -> None:
        """See `CampaignPlan.rules`. A campaign that goes on has as many as it began with, and begins its
        searches where it did."""
        if self.plan.rules != "auto":
            self._rules = self.plan.rules
            return
        if lab is None or not lab.takes_rules:
            return
        self._rules = self.store.lab_rules()
        if self._rules is not None:
            self._start_fps = self.store.first_known_fps()
            return
        trials = RouterTrials(
            lab=lab,
            wish=lab_wish_of(self._alike(point), self.plan.points),
            point=point,
            testbed=self.testbed,
            run=name_of_run(self.store.path),
            engine=self.engine,
            on_event=self.on_event,
        )
        found = choose_rules(trials, keep_note=self.store.add_note)
        if found is not None:
            self._rules, self._start_fps = found.rules, found.limit_fps

    @contextmanager
    def _dut_as_before(self) -> Iterator[None]:
        """Whatever happens inside, a DUT that this run has set up is put back. The first error is the one
        that is reported."""
        try:
            yield
        except BaseException as error:
            try:
                self._put_dut_back()
            except EvenhandError as second:
                error.add_note(f"The DUT is not in its previous state: {second}")
                self.on_event(
                    Note(
                        text=f"The DUT could not be restored: {second}. Restore it with:"
                        f" evenhand dut undo {self.testbed}"
                    )
                )
            raise
        self._put_dut_back()

    def _put_dut_back(self) -> None:
        """A testbed that is not there, as where no hook has made it, has no DUT that this run could have
        changed."""
        dut = None
        with suppress(EvenhandError):
            dut = dut_over_ssh(self.testbed)
        if dut is not None:
            put_dut_back(dut, self.store, self.on_event, run=name_of_run(self.store.path))

    def _left(self) -> Iterator[tuple[Job, ...]]:
        """Jobs without a result, in the order of measuring: those of a point together that follow each
        other."""
        finished, ended = self.store.finished_repetitions(), self.store.ended_points()
        left = [
            job
            for job in jobs(self.plan)
            if (job.point.key, job.repetition) not in finished and job.point.key not in ended
        ]
        if not self.testbed and not self.plan.on_each_testbed:
            # Whichever worker is free measures a point, and all of it: rounds would mix what several DUTs do.
            first = {key: place for place, key in reversed(list(enumerate(job.point.key for job in left)))}
            left = [replace(job, place=WHOLE) for job in sorted(left, key=lambda job: first[job.point.key])]
        for _, group in groupby(left, key=lambda job: job.point.key):
            yield tuple(group)

    def _run_suite(self, suite: str, left: list[tuple[Job, ...]], lab: LeasedLab | None) -> None:
        hooks = self.plan.suite_hooks[suite]
        environment = {
            **self._environment(),
            **environment_of_suite([point for point in self.plan.points if point.suite == suite]),
        }
        try:
            failure = run_and_keep("before_suite", hooks, environment, self.store, self.on_event, suite=suite)
            if failure is not None:
                for point in {first.point.key: first.point for first, *_ in left}.values():
                    self._give_up(point, failure)
                return
            last = {of_point[0].point.key: of_point for of_point in left}
            # Points that take something from others come after them: where several are measured at once, when
            # all of those have ended.
            for _, stage in groupby(left, key=_stage_of):
                orders = self._orders(list(stage), hooks, last)
                for point in self.executor.run(orders, self.store, self.on_event, lab=lab):
                    self.on_point(point)
        finally:
            run_and_keep("after_suite", hooks, environment, self.store, self.on_event, suite=suite)

    def _orders(
        self, stage: list[tuple[Job, ...]], hooks: Hooks, last: Mapping[str, tuple[Job, ...]]
    ) -> Iterator[PointOrder]:
        """`last`: what is measured last of each point of the suite, which may be in a later stage."""
        for of_point in stage:
            point = of_point[0].point
            if point.key in self.store.ended_points():  # in an earlier round
                continue
            finished = self.store.finished_repetitions() if self.plan.on_each_testbed else frozenset()
            for testbed in self.plan.on_each_testbed or (self.testbed,):
                numbers = self.plan.numbers_on(point, testbed)
                of_testbed = tuple(numbers) if self.plan.on_each_testbed else ()
                on_it = tuple(
                    job
                    for job in of_point
                    if job.repetition in numbers and (point.key, job.repetition) not in finished
                )
                throughput = None
                if on_it and AFTER in point.goal:
                    try:
                        throughput = self._throughput_before(point.goal[AFTER], testbed)
                    except RequestError as error:
                        self.on_event(PointBegan(point=point))
                        why = f"there is no throughput to derive the load from: {error.what}"
                        self._give_up(point, why, of_testbed=of_testbed, testbed=testbed)
                        continue
                if on_it:
                    yield PointOrder(
                        point=point,
                        jobs=on_it,
                        hooks=hooks,
                        testbed=testbed,
                        reference=self.plan.reference,
                        throughput=throughput,
                        start_fps=self._start_fps,
                        of_testbed=of_testbed,
                        one_pair=self._one_pair_of(point, testbed),
                        environment=self._environment(),
                        run=name_of_run(self.store.path),
                        lab_wish=lab_wish_of(self._alike(point), self.plan.points, rules=self._rules),
                        is_last=last[point.key] is of_point,
                    )

    def _throughput_before(self, key: str, testbed: str) -> KnownThroughput:
        """RequestError if what the other point found may not serve."""
        results = self.store.results_of(key, self._numbers(key, testbed))
        found = [THROUGHPUT.read(each) for each in results]
        return throughput_to_serve(found, source=key, where=AFTER)

    def _numbers(self, key: str, testbed: str) -> range:
        """Numbers of the repetitions of another point that are this testbed's: what it takes from that one is
        its own."""
        return self.plan.numbers_on(next(point for point in self.plan.points if point.key == key), testbed)

    def _alike(self, point: Point) -> list[Point]:
        """All points of its suite, which have its plan: a lab is set up for them once."""
        return [other for other in self.plan.points if other.suite == point.suite]

    def _give_up(
        self, point: Point, reason: str, *, of_testbed: tuple[int, ...] = (), testbed: str = ""
    ) -> None:
        """The whole point, or what one of several testbeds has of it."""
        if of_testbed:
            self.store.end_numbers(point, of_testbed, testbed, reason)
        else:
            self.store.end_point(point, reason)
        self.on_event(PointEnded(point=point, reason=reason))
        self.on_point(point)

    def _one_pair_of(self, point: Point, testbed: str) -> OnePair | None:
        """The first repetition of the point with one address pair that has all else in common with this
        one."""
        if point.is_one_pair or point.procedure != THROUGHPUT.name:
            return None
        for other in self.plan.points:
            if not other.is_one_pair or _compared(other) != _compared(point):
                continue
            found = self.store.first_search_of(other.key, self.plan.numbers_on(other, testbed))
            if found is None:
                return None
            result, setup, seed = found
            return OnePair.stored(THROUGHPUT.read(result), setup, seed, source="in this campaign")
        return None

    def _environment(self) -> Mapping[str, str]:
        return {
            "EVENHAND_CAMPAIGN": self.plan.name,
            "EVENHAND_TESTBED": self.testbed,
            "EVENHAND_RUN": str(self.store.path.absolute()),
        }


def choose_testbed(plan: CampaignPlan, given: str | None) -> str:
    """The one that was named now, else the campaign file's. RequestError if there is none, or a table has
    nothing to set."""
    if plan.on_each_testbed:
        raise RequestError(
            f"the campaign measures each point on {len(plan.on_each_testbed)} testbeds",
            code="run.scheduler-needed",
            where="on-each-testbed",
            next_step=(
                "Give --scheduler ADDRESS, the scheduler of their workers, or remove the key from the file."
            ),
        )
    chosen = given or plan.testbed
    if chosen is None:
        raise RequestError(
            "the campaign does not name a testbed",
            code="run.no-testbed",
            where="--testbed",
            next_step="Give --testbed FILE, lab:linux or reference, or name the testbed in the file.",
        )
    rig = rig_of(chosen)
    if plan.reference is not None and not rig.takes_reference:
        rig.check()  # a missing file is reported first
        raise RequestError(
            f"[reference] sets up a reference router, but the testbed is {without_folders(chosen)!r}",
            code="run.reference-not-here",
            where="--testbed",
            next_step=f"Use --testbed {REFERENCE}, or remove [reference] from the file.",
        )
    return chosen


def _stage_of(of_point: tuple[Job, ...]) -> tuple[bool, bool]:
    """What is of one stage takes nothing from each other. Single address pairs come before all others in the
    first round only."""
    first = of_point[0]
    return first.point.is_single and first.place.round == 1, AFTER in first.point.goal


def _compared(point: Point) -> tuple[object, ...]:
    return (point.suite, point.procedure, point.frame_size, point.hash_type, point.plan)
