# SPDX-License-Identifier: Apache-2.0
"""Procedure: what the tester itself adds to each delay: its own loop at the same load, with its two ports
joined to each other."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.base.validation.document import to_document
from evenhand.plan import AddressPlan, Direction, FrameSize, largest_octets
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.limits import limits_of
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.statistics import finite
from evenhand.procedure.tester import open_tester
from evenhand.results.delay import OwnLoopDelays, OwnLoopFound
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, Role
from evenhand.trial import CEILING_WAITS, Delays, DelayWish, DirectionRates, Limits, Load, Replay, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import Setup

LONGEST_S = 5.0
"""Longest trial of the loop: its percentiles are over every frame, so seconds are enough."""
OWN_LOOP_DRIVER = "net_memif"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLoop:
    """The tester's own share of a delay at one load, never subtracted from any; or why it is not known
    here."""

    trial: TrialResult | None = None
    """The trial with the tester's ports joined to each other: same CPUs, plan, frames, directions and load as
    through the DUT."""
    unknown: str | None = "it was not measured"
    """Why there is no `trial`."""

    def delays(self, direction: Direction) -> Delays | None:
        """Over every frame of the loop's trial; None if the loop is not known."""
        return None if self.trial is None else self.trial.directions[direction].delays

    @property
    def found(self) -> OwnLoopFound:
        """As documents have it; without directions if the loop is not known."""
        trial = self.trial
        return OwnLoopFound(
            unknown=self.unknown,
            duration_s=None if trial is None else trial.intended_duration_s,
            directions={
                name: OwnLoopDelays(
                    frames=delays.offered_frames,
                    lost_frames=delays.lost_frames,
                    min_ns=delays.min_ns,
                    median_ns=finite(delays.p50_ns),
                    percentile_99_9_ns=finite(delays.p999_ns),
                    pdv_ns=finite(delays.pdv_ns),
                )
                for name in (() if trial is None else trial.directions)
                if (delays := self.delays(name))
            },
        )


def measure_own_loop(
    setup: Setup,
    plan: AddressPlan,
    *,
    rate_fps: float,
    duration_s: float,
    frame_size: FrameSize,
    directions: tuple[Direction, ...],
    rates: DirectionRates | None = None,
    seed: int = 1,
    has_variation: bool = False,
    invalid_retries: int = DEFAULT_INVALID_RETRIES,
    patience: int = DEFAULT_PATIENCE,
    engine: Path | None = None,
    limits: Limits | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
    replay: Replay | None = None,
) -> OwnLoop:
    """One trial with the tester's two ports joined by a cable inside this machine, by an engine that is gone
    afterwards.

    Nothing else may use the tester's CPUs meanwhile, so the DUT's ports must not be open yet.

    Args:
        duration_s: Duration of a trial through the DUT; the loop's lasts as long, but LONGEST_S at the most.
        has_variation: The differences of consecutive frames too.
        invalid_retries: With `patience`, how often an INVALID trial is repeated; as in `DelayGoal`.

    Raises:
        HostError: The host is not ready, or the trial was stopped.
    """
    reason = setup.why_no_own_loop(OWN_LOOP_DRIVER)
    if reason is not None:
        return OwnLoop(unknown=reason)
    if any(part.is_translated for part in plan.plans):
        return OwnLoop(unknown="its ports, connected to each other, do not translate addresses")
    length_s = min(duration_s, LONGEST_S)
    goal: Mapping[str, Any] = {"rate_fps_per_direction": rate_fps, "duration_s": length_s}
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        testbed = setup.testbed
        own_loop = rig.make_own_loop_setup(
            testbed.tester, Path(folder), limits=testbed.limits, largest_octets=largest_octets(frame_size)
        )
        opened = open_tester(
            own_loop,
            plan,
            frame_size=frame_size,
            seed=seed,
            directions=directions,
            rates=rates,
            engine=engine,
            waits=CEILING_WAITS,
            limits=limits or limits_of(testbed.limits),
        )
        with (
            opened as tester,
            recording(
                recorder, tester, "the tester's own loop", kind="own-loop", goal=goal, role=Role.OWN_LOOP
            ) as record,
        ):
            measurer = replace(tester, replay=replay).measurer(
                on_event, delays=DelayWish(has_variation=has_variation)
            )
            attempts = Attempts(
                measurer=measurer,
                on_event=on_event,
                record=record,
                purpose="own-loop",
                overhead_s=measurer.overhead_s,
                invalid_retries=invalid_retries,
                patience=patience,
            )
            load = Load(rate_fps=rate_fps, duration_s=length_s)
            *_, trial = attempts.measure(
                what="the tester's own loop, without the DUT", load=load, is_full_length=True
            )
            found = _judge(trial)
            record.finish_with(
                "measured" if found.unknown is None else "tester_ceiling", to_document(found.found)
            )
    if trial.was_stopped:
        raise HostError(
            "stopped while the tester's own loop was being measured; there is no result",
            code="procedure.stopped",
            where=setup.name,
        )
    return found


def _judge(trial: TrialResult) -> OwnLoop:
    if trial.is_valid:
        return OwnLoop(trial=trial, unknown=None)
    reasons = "; ".join(reason.text for reason in trial.reasons)
    return OwnLoop(
        unknown=(f"the tester did not keep this load with its ports connected to each other: {reasons}")
    )
