# SPDX-License-Identifier: Apache-2.0
"""What every verb that measures through a DUT takes: traffic, waits, limits, the run file, the engine; and
how it begins with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.rates import Line
from evenhand.base.units import format_count
from evenhand.cli.common import EngineOption, JsonOption, warn_about
from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.run_options import ProgressOption, RunOptions, progress_display
from evenhand.plan import AddressPlan, Direction, FrameSize
from evenhand.procedure import Conditions, OnEvent, OpenTestbed, ProcedureEvent
from evenhand.procedure.expected_time import ExpectedTime, learning_s
from evenhand.procedure.limits import OF_HOST
from evenhand.procedure.tester import EnginesOf
from evenhand.rig import Setup, TestbedLimits, check_rate, read_setup
from evenhand.run import RunStore
from evenhand.run.campaign.events import RunningFile
from evenhand.spec.common_options import (
    DEFAULT_SEED,
    EstablishedOptions,
    LearningOptions,
    LimitOptions,
    SeedOption,
    WaitOptions,
)
from evenhand.spec.plan import DirectionOption, PlanOptions, read_directions
from evenhand.spec.rates import RatesOptions
from evenhand.spec.request import read_conditions, written_in
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
    direction: DirectionOption = "both"
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
    progress: ProgressOption = "auto"
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
        given = Given(testbed=testbed, plan=plan, options=self)
        given.conditions()
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The conditions as they were given."""

    testbed: str
    plan: AddressPlan
    options: ConditionOptions

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Which send."""
        return read_directions(self.options.direction)

    @property
    def written(self) -> dict[str, Any]:
        """The options that every procedure has, by name."""
        own = self.options
        return written_in(own.rates, own.learning, own.established, own.waits, own.limits)

    def conditions(self, testbed: TestbedLimits | None = None, **known: Any) -> Conditions:
        """The keywords of a procedure.

        Args:
            testbed: Limits of the testbed, once it has been read.
            known: Further keywords of `read_conditions`.
        """
        return read_conditions(
            self.written,
            plan=self.plan,
            directions=self.directions,
            testbed=testbed or TestbedLimits(),
            **known,
        )

    def read_setup(self) -> Setup:
        """RequestError, HostError: see `read_setup`; called when all options are known to be right."""
        return read_setup(self.testbed, self.plan)

    def line(self, setup: Setup, frame_size: FrameSize, texts: Iterable[str]) -> Line:
        """See `OpenTestbed.line`."""
        sent = Conditions(plan=self.plan, frame_size=frame_size, directions=self.directions)
        return OpenTestbed(setup=setup, engine=self.options.engine).line(sent, texts)

    def check_rate(
        self,
        setup: Setup,
        rate_fps: float,
        sizes: Iterable[FrameSize],
        *,
        rates: DirectionRates | None,
        where: str,
    ) -> None:
        """RequestError if the rate is above what the testbed's line rates let out of any of these frames."""
        for size in sizes:
            check_rate(
                rate_fps,
                setup.testbed.highest_load_fps(
                    setup.testbed.streams(self.plan, size, self.directions), rates
                ),
                line_rate_bps=None,
                frame_size=size,
                where=where,
            )

    @property
    def learning_s(self) -> float:
        """Time to have the hosts of a direct plan learnt."""
        is_skipped = self.options.learning.no_learning
        return learning_s(self.plan) if self.plan.is_direct and not is_skipped else 0.0

    @contextmanager
    def open(
        self, verb: str, setup: Setup, notes: Iterable[str | None] = (), *, expected: ExpectedTime
    ) -> Iterator[tuple[OpenTestbed, RunStore | None, ProgressDisplay]]:
        """The testbed, ready to measure; the run file, if there is one; and the display that shows what goes
        on. It says first how long that should take."""
        own = self.options
        engines = EnginesOf(setup, own.engine)  # if there is none, that is reported before the expected time
        with ExitStack() as stack:
            store = stack.enter_context(own.run.open(verb))
            progress = stack.enter_context(progress_display(own.progress))
            capture = None
            if own.capture is not None:
                where = f"--capture {own.capture}"
                capture = stack.enter_context(
                    capture_file(own.capture, where=where, keeps_all=own.capture_all)
                )
                stack.callback(_say_captured, capture, progress)
            if own.limits.limits == OF_HOST:
                progress.remedy = None
            progress.expect(expected)
            for note in notes:
                if note is not None:
                    progress.say(note)
            on_event = stack.enter_context(written_beside(store, verb, progress.on_event))
            yield (
                OpenTestbed(
                    setup=setup,
                    engine=own.engine,
                    engines=engines,
                    recorder=store,
                    capture=capture,
                    on_event=on_event,
                ),
                store,
                progress,
            )


@contextmanager
def written_beside(store: RunStore | None, what: str, on_event: OnEvent) -> Iterator[OnEvent]:
    """What takes the events of what is measured in the block.

    Args:
        store: None: nothing is stored, and nothing is written.
        what: What is measured, such as the verb.
        on_event: Takes them too.
    """
    if store is None:
        yield on_event
        return
    running = RunningFile(store.path)

    @contained
    def write(event: ProcedureEvent) -> None:
        running.on_event(event)

    def take(event: ProcedureEvent) -> None:
        write(event)
        on_event(event)

    running.begin(what)
    try:
        yield take
    finally:
        running.end()
