# SPDX-License-Identifier: Apache-2.0
"""The tester that pytest-evenhand gives to a test, and what its tests are judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from evenhand.base.errors import DutGoneError, EvenhandError
from evenhand.plan import AddressPlan, plan_named
from evenhand.procedure import OpenTestbed
from evenhand.procedure.descriptor import Procedure, show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.single_trial import TRIAL_S, SingleTrial
from evenhand.rig import DEFAULT_PLAN, ReferenceDut, rig_of, testbed_facts
from evenhand.run import RunStore
from evenhand.trial import TrialResult, describe_reasons

MOST_TRIALS = 6
"""Trials that a failed assertion shows."""


class NotMeasuredError(Exception):
    """The tester could not decide: the test is an error, and the DUT has not failed."""


def is_of_the_dut(error: BaseException) -> bool:
    """Whether it is the DUT that has failed, if a test ends with this error. A test's own mistakes count as
    failures as well, as everywhere in pytest."""
    return isinstance(error, DutGoneError) or not isinstance(error, (EvenhandError, NotMeasuredError))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dut:
    """What is known of a DUT."""

    name: str
    """The name of the testbed."""
    facts: Mapping[str, Any]
    """As a run file has them: `dut`, `testbed`, `tester`."""


class PytestTester:
    """An `OpenTestbed` whose results are kept for the test's report."""

    def __init__(
        self,
        bed: OpenTestbed,
        *,
        run: Path | None,
        conditions: Mapping[str, Any],
        retries: int,
        record: Callable[[str, object], None],
    ) -> None:
        self.bed = bed
        """For all that is not here."""
        self.run = run
        """The run file; it exists once a trial was stored."""
        self.lines: list[str] = []
        """What was measured, for the report."""
        self._conditions, self._retries, self._record = conditions, retries, record
        self._results: list[tuple[Procedure, Any]] = []

    @property
    def dut(self) -> Dut:
        return Dut(name=self.bed.setup.name, facts=testbed_facts(self.bed.setup))

    def trial(self, *, rate_fps: float, duration_s: float = TRIAL_S, **conditions: Any) -> SingleTrial:
        """One trial, repeated while it is INVALID.

        Raises:
            NotMeasuredError: It was still INVALID after the retries.
        """
        given = {**self._conditions, **conditions}
        for _ in range(self._retries + 1):
            found = self.bed.trial(rate_fps=rate_fps, duration_s=duration_s, **given)
            self._keep("verdict", str(found.trial.verdict), trial_line(found.trial))
            if found.trial.is_valid:
                return found
        raise NotMeasuredError(
            f"INVALID {self._retries + 1} times: the tester could not keep the trial, which says nothing of"
            f" the DUT.\nThe last one: {describe_reasons(found.trial.reasons)}"
        )

    def measure(self, procedure: str | Procedure, goal: Any = None, **options: Any) -> Any:
        """Any procedure, by its name: `tester.measure("throughput", goal, frame_size=128)`."""
        known = PROCEDURES[procedure] if isinstance(procedure, str) else procedure
        return self._kept(known, self.bed.measure(known, goal, **{**self._conditions, **options}))

    def __getattr__(self, name: str) -> Any:
        """`throughput`, `loss`, `latency`, ...: the method of `OpenTestbed`."""
        known = PROCEDURES.get(name.replace("_", "-"))
        if known is None:
            raise AttributeError(f"a tester has no {name!r}; tester.bed has all that a testbed can do")
        method = getattr(self.bed, name)
        return lambda **options: self._kept(known, method(**{**self._conditions, **options}))

    def require_pass(self, found: SingleTrial | TrialResult) -> None:
        """AssertionError with the reasons of a trial that is FAIL."""
        __tracebackhide__ = True
        trial = found.trial if isinstance(found, SingleTrial) else found
        if not trial.is_valid:
            raise NotMeasuredError(f"INVALID: {describe_reasons(trial.reasons)}")
        if not trial.is_pass:
            raise AssertionError(trial_line(trial))

    def require(self, found: Any, *, at_least: float | None = None, at_most: float | None = None) -> float:
        """The figure of a result, which must be within these limits; in its own unit, such as fps per
        direction.

        Raises:
            AssertionError: It is not, with the trials that decided.
            NotMeasuredError: The tester could not reach the limit: the figure is a lower bound below it.
        """
        __tracebackhide__ = True
        known, value = self._figure_of(found)
        figure = known.figure
        assert value is not None, f"{known.name}: no number, {found.outcome}{_decided_by(found)}"
        shown = f"{figure.name}: {show_value(value, figure)}"
        if at_least is not None and value < at_least:
            if found.to_document().get("is_at_least") is True:
                raise NotMeasuredError(
                    f"{shown} or more: nothing is known up to {show_value(at_least, figure)}"
                    f" ({found.outcome})"
                )
            raise AssertionError(
                f"{shown}, but at least {show_value(at_least, figure)} is required{_decided_by(found)}"
            )
        if at_most is not None and value > at_most:
            raise AssertionError(
                f"{shown}, but at most {show_value(at_most, figure)} is allowed{_decided_by(found)}"
            )
        return value

    def _figure_of(self, found: Any) -> tuple[Procedure, float | None]:
        for known, kept in self._results:
            if kept is found:
                return known, known.value(found.to_document())
        raise TypeError(f"{type(found).__name__} is no result of this tester: give what a method returned")

    def _kept(self, known: Procedure, found: Any) -> Any:
        self._results.append((known, found))
        value = known.value(found.to_document())
        shown = "no number" if value is None else show_value(value, known.figure)
        self._keep(known.name, value, f"{known.figure.name}: {shown}, {found.outcome}")
        if value is None and str(found.outcome) == "tester_ceiling":
            reasons = [reason for trial in found.trials for reason in trial.reasons if not trial.is_valid]
            raise NotMeasuredError(
                f"{known.name}: the tester could not decide, which says nothing of the DUT.\n"
                f"{describe_reasons(reasons)}"
            )
        return found

    def _keep(self, name: str, value: object, line: str) -> None:
        self.lines.append(line)
        if value is not None:
            self._record(f"evenhand.{name}", value)


def trial_line(trial: TrialResult) -> str:
    """`FAIL at 20,000 fps: 12 of 1,000 frames lost; forward: lost 12 frames ...`."""
    offered = sum(direction.offered_frames for direction in trial.directions.values())
    reasons = describe_reasons(trial.reasons)
    return (
        f"{trial.verdict} at {trial.intended_fps:,.0f} fps: {trial.lost_frames:,} of {offered:,} frames"
        f" lost{'; ' if reasons else ''}{reasons}"
    )


def _decided_by(found: Any) -> str:
    """The trials that did not pass, the lowest loads first."""
    failed = sorted((t for t in found.trials if not t.is_pass), key=lambda trial: trial.intended_fps)
    return "".join(f"\n  {trial_line(trial)}" for trial in failed[:MOST_TRIALS])


@contextmanager
def open_tester_of_test(
    testbed: str,
    *,
    folder: Path,
    stem: str,
    node_id: str,
    reference: ReferenceDut | None,
    conditions: Mapping[str, Any],
    retries: int,
    record: Callable[[str, object], None],
) -> Iterator[PytestTester]:
    """The tester of one test; its run file is new.

    Args:
        folder: Where it is; made if it is missing.
        stem: Its name, to which a number is added if there is one of that name.
        reference: The router, if the testbed is one that is started for the test.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{stem}{f'-{number}' if number > 1 else ''}.evenhand" for number in count(1))
    run = next(path for name in names if not (path := folder / name).exists())

    def plan() -> AddressPlan:
        wanted = conditions.get("plan", DEFAULT_PLAN)
        return plan_named(wanted) if isinstance(wanted, str) else wanted

    with (
        rig_of(testbed).open(plan, lambda: reference or ReferenceDut()) as setup,
        RunStore.create(run, command=["pytest", node_id]) as store,
    ):
        bed = OpenTestbed(setup=setup, recorder=store)
        yield PytestTester(bed, run=run, conditions=conditions, retries=retries, record=record)
