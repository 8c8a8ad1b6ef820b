# SPDX-License-Identifier: Apache-2.0
"""What every verb that measures through a DUT takes: traffic, waits, limits, the run file, the engine; and
how it begins with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.rates import Line, is_of_line
from evenhand.base.units import format_count
from evenhand.cli.common import EngineOption, JsonOption, warn_about
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.progress.running import written_beside
from evenhand.cli.progress_option import ProgressForm, ProgressOption, progress_display
from evenhand.cli.run_options import RunOptions
from evenhand.plan import AddressPlan, FrameSize
from evenhand.procedure import Conditions, OpenTestbed, limits_of
from evenhand.procedure.conditions import check_conditions
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.expected_time import ExpectedTime, learning_s
from evenhand.procedure.limits import LIMIT_SET, OF_HOST
from evenhand.procedure.tester import EnginesOf
from evenhand.rig import Setup, check_rate, read_setup
from evenhand.run import RunStore
from evenhand.spec.common_options import (
    DEFAULT_SEED,
    EstablishedOptions,
    LearningOptions,
    LimitOptions,
    SeedOption,
    WaitOptions,
)
from evenhand.spec.plan import DirectionName, DirectionOption, PlanOptions, read_directions
from evenhand.spec.rates import RatesOptions
from evenhand.trial import CaptureFile, DirectionRates, capture_file

CaptureOption = Annotated[
    Path | None,
    typer.Option(
        "--capture",
        metavar="FILE",
        help="Write the first received frames of each kind that were not what was sent to this pcapng file,"
        " each with a comment.",
    ),
]


CaptureAllOption = Annotated[
    bool,
    typer.Option(
        "--capture-all",
        help="Write every received frame to the file of --capture, also those that were what was sent: for"
        " slow trials, of up to 8,192 frames of a direction.",
    ),
]


MOST_LOST_LINES = 20


def _say_captured(capture: CaptureFile, progress: ProgressDisplay) -> None:
    counts = ", ".join(f"{format_count(count)} {kind}" for kind, count in capture.counts.items())
    cut = "; it is full, so that later frames that were what was sent are missing" if capture.is_cut else ""
    progress.say(f"Captured in {capture.path}: {counts or 'no frame, since all were what was sent'}{cut}.")
    for lost in capture.lost[:MOST_LOST_LINES]:
        progress.say(
            f"Lost in trial {lost.trial}, {lost.direction}: {lost} (evenhand plan frames --direction"
            f" {lost.direction} --numbers, with the same plan, frame size and seed, shows them)."
        )
    if len(capture.lost) > MOST_LOST_LINES:
        progress.say(f"Frames were lost in {len(capture.lost) - MOST_LOST_LINES} more trials and directions.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionOptions:
    """Under which conditions a procedure is made, and where its result goes."""

    plan: PlanOptions
    direction: DirectionOption = DirectionName.BOTH
    rates: RatesOptions
    learning: LearningOptions
    established: EstablishedOptions
    seed: SeedOption = DEFAULT_SEED
    waits: WaitOptions
    limits: LimitOptions
    run: RunOptions
    capture: CaptureOption = None
    capture_all: CaptureAllOption = False
    engine: EngineOption = None
    progress: ProgressOption = ProgressForm.AUTO
    json_output: JsonOption = False

    def read(self, testbed: str) -> Given:
        """All of them checked, before the testbed's ports are. RequestError names the option."""
        if self.capture_all and self.capture is None:
            raise RequestError(
                "no file for the captured frames",
                code="cli.no-capture-file",
                where="--capture-all",
                next_step="Name it: --capture FILE.pcapng.",
            )
        plan = self.plan.read(testbed)
        warn_about(plan)
        conditions = Conditions(
            plan=plan,
            directions=read_directions(self.direction),
            seed=self.seed,
            waits=self.waits.read(),
            host_macs=self.learning.host_macs.value,
            learning=self.learning.read(plan),
            established=self.established.read(plan),
        )
        return Given(
            testbed=testbed,
            plan=plan,
            conditions=conditions,
            rates=self.rates,
            limits=self.limits.read(),
            run=self.run,
            capture=self.capture,
            keeps_all=self.capture_all,
            engine=self.engine,
            progress=self.progress,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The conditions as they were given."""

    testbed: str
    plan: AddressPlan
    conditions: Conditions
    rates: RatesOptions
    limits: dict[str, Any]
    run: RunOptions
    capture: Path | None
    keeps_all: bool
    engine: Path | None
    progress: ProgressForm

    def read_setup(self) -> Setup:
        """RequestError, HostError: see `read_setup`; called when all options are known to be right."""
        return read_setup(self.testbed, self.plan)

    def line(self, setup: Setup, frame_size: FrameSize, texts: Iterable[str]) -> Line:
        """The line for these rates. Its rate is looked for only where one of them is a share of it."""
        return OpenTestbed(setup=setup, engine=self.engine).line(
            self.plan, frame_size, self.conditions["directions"], is_rate_needed=any(map(is_of_line, texts))
        )

    def with_rates(self, rates: DirectionRates | None) -> Given:
        """The same where the loads of the directions differ so. RequestError if only one sends."""
        conditions = Conditions(**self.conditions, rates=rates)
        check_conditions(conditions)
        return replace(self, conditions=conditions)

    def of(self, setup: Setup, *, frame_size: FrameSize | None = None, **limits: Any) -> Conditions:
        """The keywords of a procedure.

        Args:
            frame_size: None for procedures that take several.
            limits: Limits from `limits_of`, such as `loss_ratio`.
        """
        conditions = Conditions(
            **self.conditions, limits=limits_of(setup.testbed.limits, given=self.limits, **limits)
        )
        return conditions if frame_size is None else Conditions(**conditions, frame_size=frame_size)

    def check_rate(self, setup: Setup, rate_fps: float, sizes: Iterable[FrameSize], *, where: str) -> None:
        """RequestError if the rate is above what the testbed's line rate lets through of any of these
        frames."""
        for size in sizes:
            check_rate(
                rate_fps,
                setup.testbed.max_theoretical_fps(
                    setup.testbed.streams(self.plan, size, self.conditions["directions"])
                ),
                line_rate_bps=None,
                frame_size=size,
                where=where,
            )

    def expect(self, procedure: Procedure, goal: Any, options: Any = None, *, times: int = 1) -> ExpectedTime:
        """How long a procedure with this goal should take.

        Args:
            options: Options of the procedure.
            times: Number of frame sizes or repetitions that are measured with the goal.
        """
        waits_s = self.conditions["waits"].total_s
        return procedure.expected(goal, waits_s, options=options, times=times, learning_s=self.learning_s)

    @property
    def learning_s(self) -> float:
        """Time to have the hosts of a direct plan learnt."""
        learning = self.conditions["learning"]
        return learning_s(self.plan) if self.plan.is_direct and not learning.is_skipped else 0.0

    @contextmanager
    def open(
        self, verb: str, setup: Setup, notes: Iterable[str | None] = (), *, expected: ExpectedTime
    ) -> Iterator[tuple[OpenTestbed, RunStore | None, ProgressDisplay]]:
        """The testbed, ready to measure; the run file, if there is one; and the display that shows what goes
        on. It says first how long that should take."""
        engines = EnginesOf(setup, self.engine)  # if there is none, that is reported before the expected time
        with ExitStack() as stack:
            store = stack.enter_context(self.run.open(verb))
            progress = stack.enter_context(progress_display(self.progress))
            capture = None
            if self.capture is not None:
                where = f"--capture {self.capture}"
                capture = stack.enter_context(
                    capture_file(self.capture, where=where, keeps_all=self.keeps_all)
                )
                stack.callback(_say_captured, capture, progress)
            if self.limits.get(LIMIT_SET) == OF_HOST:
                progress.remedy = None
            progress.expect(expected)
            for note in notes:
                if note is not None:
                    progress.say(note)
            on_event = stack.enter_context(written_beside(store, verb, progress.on_event))
            yield (
                OpenTestbed(
                    setup=setup,
                    engine=self.engine,
                    engines=engines,
                    recorder=store,
                    capture=capture,
                    on_event=on_event,
                ),
                store,
                progress,
            )
