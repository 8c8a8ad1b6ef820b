# SPDX-License-Identifier: Apache-2.0
"""Procedure: every procedure on one testbed, by a method each; those of delays are in `delay_testbed.py`.
What `evenhand.open_testbed` gives, and what the verbs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan import FrameSize, describe_size
from evenhand.procedure import loss
from evenhand.procedure.back_to_back import measure_back_to_back
from evenhand.procedure.back_to_back_goal import BackToBackGoal
from evenhand.procedure.back_to_back_result import BackToBackTable
from evenhand.procedure.back_to_back_time import expected_s
from evenhand.procedure.burst import measure_burst
from evenhand.procedure.burst_goal import BurstGoal
from evenhand.procedure.burst_result import BurstIntervals
from evenhand.procedure.conditions import Conditions, check_request
from evenhand.procedure.connection_testbed import ConnectionTestbed
from evenhand.procedure.delay_testbed import DelayTestbed
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.procedure.events import Note
from evenhand.procedure.expected_time import search_s
from evenhand.procedure.frame_size import RFC_FRAME_SIZES
from evenhand.procedure.later import followed_by
from evenhand.procedure.limits import retries_of
from evenhand.procedure.loss import FrameLoss, LossGoal, LossOutcome
from evenhand.procedure.maximum import check_given
from evenhand.procedure.recovery import check_throughput, measure_recovery
from evenhand.procedure.recovery_goal import RecoveryGoal
from evenhand.procedure.recovery_result import Recovery
from evenhand.procedure.repetition import LossTable, Repetitions, ThroughputTable, check_whole_sizes, repeat
from evenhand.procedure.single_pair import SinglePair
from evenhand.procedure.single_trial import SingleTrial, measure_trial
from evenhand.procedure.start import measure_from_start
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.procedure.throughput import UP_TO_LINE_RATE, Throughput, check_maximum
from evenhand.search import Goal, Outcome, Role, ThroughputGoal
from evenhand.trial import RFC_WAITS

ONCE = Repetitions()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTestbed(DelayTestbed, ConnectionTestbed):
    """A testbed with a checked file. Each method starts an engine of its own, and ends it when it returns.

    All methods take the keywords of `Conditions`. They raise RequestError for an impossible request, before
    anything is sent; HostError if the host or the DUT is not ready; EngineError for a bug. Loss and INVALID
    trials are
    results.
    """

    def throughput(
        self,
        *,
        goal: Goal | None = None,
        name: str = "throughput",
        role: Role = Role.MEASUREMENT,
        **conditions: Unpack[Conditions],
    ) -> Throughput:
        """The highest load that the DUT forwards without loss, by the search of the goal (RFC 2544, 26.1).

        Args:
            goal: Where to search, how long the trials are, when to stop: a `ThroughputGoal` (binary), a
                `Tst009Goal`, or `MlrGoals`. Default: binary from the line rate down, or from the tester's own
                ceiling if that is lower (MLR-14), with trials of 5 s, confirmed by one of 60 s, to 0.5 %.
            name: The name of the search in the run file.
            role: Its role in the run file.
        """
        check_request(goal, Goal | None, conditions)
        chosen: Goal = goal or ThroughputGoal(
            max_fps=UP_TO_LINE_RATE, **retries_of(self.setup.testbed.limits)
        )
        with self.tester(
            check=lambda profile: check_maximum(chosen, profile),
            longest_trial_s=chosen.longest_trial_s,
            **conditions,
        ) as tester:
            return measure_from_start(
                tester, chosen, name=name, role=role, on_event=self.on_event, recorder=self.recorder
            )

    def loss(
        self, *, goal: LossGoal | None = None, name: str = "loss", **conditions: Unpack[Conditions]
    ) -> FrameLoss:
        """Frame loss rate over the load, from the maximum down until two loads in a row lose nothing (RFC
        2544, 26.3).

        Args:
            goal: Which loads, and how long the trials are. Default: from the line rate down in steps of 10 %,
                trials of 60 s.
            name: The name of the series in the run file.
        """
        check_request(goal, LossGoal | None, conditions)
        chosen = goal or LossGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(
            check=lambda profile: check_given(chosen.max_fps, profile, where="max_fps"),
            longest_trial_s=chosen.longest_trial_s,
            **conditions,
        ) as tester:
            return loss.measure_loss(
                tester, chosen, name=name, on_event=self.on_event, recorder=self.recorder
            )

    def recovery(
        self, *, goal: RecoveryGoal, name: str = "recovery", **conditions: Unpack[Conditions]
    ) -> Recovery:
        """The time for which frames are lost after an overload, with repetitions (RFC 2544, 26.5).

        Args:
            goal: The throughput, such as `throughput(...).throughput_fps`, of which 110 % are the overload;
                durations, and number of repetitions.
            name: The name of the test in the run file.
        """
        check_request(goal, RecoveryGoal, conditions)
        with self.tester(
            check=partial(check_throughput, goal), longest_trial_s=goal.longest_trial_s, **conditions
        ) as tester:
            return measure_recovery(tester, goal, name=name, on_event=self.on_event, recorder=self.recorder)

    def burst(
        self, *, goal: BurstGoal | None = None, name: str = "burst", **conditions: Unpack[Conditions]
    ) -> BurstIntervals:
        """The smallest interval without loss between bursts, for each size of bursts (RFC 2544, 21).

        Args:
            goal: Sizes of bursts, duration of trials, precision. Default: 16, 64, 256 and 1024 frames at the
                line rate, to 0.5 %.
            name: The name of the searches in the run file, before the size.
        """
        check_request(goal, BurstGoal | None, conditions)
        chosen = goal or BurstGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(
            check=partial(check_given, chosen.rate_fps, where="rate_fps"),
            longest_trial_s=chosen.longest_trial_s,
            **conditions,
        ) as tester:
            return measure_burst(tester, chosen, name=name, on_event=self.on_event, recorder=self.recorder)

    def throughput_table(
        self,
        frame_sizes: Sequence[FrameSize] = RFC_FRAME_SIZES,
        *,
        repetitions: Repetitions = ONCE,
        goal: Goal | None = None,
        single_pair_first: bool = False,
        **conditions: Unpack[Conditions],
    ) -> ThroughputTable:
        """Throughput by frame size, each search repeated (R2544-04, R2544-22, SEED-72). Every search is
        stored with its own name.

        Args:
            frame_sizes: Frame sizes, in this order; `frame_size` of the conditions is ignored.
            repetitions: Number of repetitions, and when fewer are enough.
            single_pair_first: Search with one address pair first, once for each size (SEED-02).
        """
        check_request(goal, Goal | None, conditions)
        plan, sizes = self._sizes(frame_sizes, conditions)
        chosen: Goal = goal or ThroughputGoal(
            max_fps=UP_TO_LINE_RATE, **retries_of(self.setup.testbed.limits)
        )
        rows = []
        each_s = search_s(chosen, conditions.get("waits", RFC_WAITS).total_s)
        per_size = repetitions.count + single_pair_first
        for number, size in enumerate(sizes, start=1):
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            later = (len(sizes) - number) * per_size
            self.on_event(Note(text=f"{describe_size(size)}:", is_heading=True))
            if single_pair_first:
                on_event = followed_by(self.on_event, (later + repetitions.count) * each_s)
                one_pair: Conditions = {**of_size, "plan": plan.single_pair(), "single_pair": None}
                first = replace(self, on_event=on_event).throughput(
                    goal=chosen,
                    name=f"throughput, {describe_size(size)}, one address pair",
                    role=Role.SINGLE_PAIR,
                    **one_pair,
                )
                of_size["single_pair"] = SinglePair.of(first.search, first.profile)
            with self.tester(
                check=lambda profile: check_maximum(chosen, profile),
                longest_trial_s=chosen.longest_trial_s,
                **of_size,
            ) as opened:

                def search(
                    number: int, tester: OpenTester = opened, size: FrameSize = size, later: int = later
                ) -> Throughput:
                    left = later + repetitions.count - number
                    found = measure_from_start(
                        tester,
                        chosen,
                        name=f"throughput, {describe_size(size)}",
                        repetition=number,
                        on_event=followed_by(self.on_event, left * each_s),
                        recorder=self.recorder,
                    )
                    return replace(found, is_repetition=True)

                rows.append(repeat(search, repetitions, frame_size=size, on_event=self.on_event))
            if rows[-1].repetitions[-1].outcome is Outcome.STOPPED:
                break
        return ThroughputTable(rows=tuple(rows))

    def loss_table(
        self,
        frame_sizes: Sequence[FrameSize] = RFC_FRAME_SIZES,
        *,
        repetitions: Repetitions = ONCE,
        goal: LossGoal | None = None,
        **conditions: Unpack[Conditions],
    ) -> LossTable:
        """Frame loss rate by frame size and load, each series repeated. See `throughput_table`."""
        check_request(goal, LossGoal | None, conditions)
        plan, sizes = self._sizes(frame_sizes, conditions)
        chosen = goal or LossGoal(**retries_of(self.setup.testbed.limits))
        rows = []
        each_s = loss.LOSS.expected_s(chosen, conditions.get("waits", RFC_WAITS).total_s)
        for place, size in enumerate(sizes, start=1):
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            later = (len(sizes) - place) * repetitions.count
            self.on_event(Note(text=f"{describe_size(size)}:", is_heading=True))
            with self.tester(
                check=lambda profile: check_given(chosen.max_fps, profile, where="max_fps"),
                longest_trial_s=chosen.longest_trial_s,
                **of_size,
            ) as tester:

                def series(
                    number: int, tester: OpenTester = tester, size: FrameSize = size, later: int = later
                ) -> FrameLoss:
                    left = later + repetitions.count - number
                    return loss.measure_loss(
                        tester,
                        chosen,
                        name=f"loss, {describe_size(size)}",
                        repetition=number,
                        on_event=followed_by(self.on_event, left * each_s),
                        recorder=self.recorder,
                    )

                rows.append(repeat(series, repetitions, frame_size=size, on_event=self.on_event))
            if rows[-1].repetitions[-1].outcome is LossOutcome.STOPPED:
                break
        return LossTable(rows=tuple(rows))

    def back_to_back(
        self,
        frame_sizes: Sequence[int] = RFC_FRAME_SIZES,
        *,
        goal: BackToBackGoal | None = None,
        throughputs: Mapping[FrameSize, KnownThroughput] | None = None,
        **conditions: Unpack[Conditions],
    ) -> BackToBackTable:
        """The longest burst after idle without loss, by frame size, with repetitions, and the buffer time
        that it implies (RFC 9004).

        Args:
            frame_sizes: Frame sizes, in this order; `frame_size` of the conditions is ignored.
            goal: Longest burst, precision, and number of repetitions. Default: up to 2 s at the line rate, to
                one frame, 50 times.
            throughputs: By frame size, the throughput that was measured earlier under the same conditions.
                For other sizes it is measured first (R9004-01).
        """
        check_request(goal, BackToBackGoal | None, conditions)
        plan, any_sizes = self._sizes(frame_sizes, conditions)
        sizes = check_whole_sizes(any_sizes)
        chosen = goal or BackToBackGoal(**retries_of(self.setup.testbed.limits))
        rows = []
        waits_s = conditions.get("waits", RFC_WAITS).total_s
        for number, size in enumerate(sizes, start=1):
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            on_event = followed_by(self.on_event, (len(sizes) - number) * expected_s(chosen, waits_s))
            wish = chosen
            if throughputs is not None and size in throughputs:
                known = throughputs[size]
                wish = replace(
                    chosen,
                    throughput_fps=known.fps,
                    throughput_source=known.source,
                    is_throughput_at_least=known.is_at_least,
                )
            self.on_event(Note(text=f"{size} octets:", is_heading=True))
            with self.tester(
                check=partial(check_given, wish.rate_fps, where="rate_fps"),
                longest_trial_s=wish.longest_trial_s,
                **of_size,
            ) as tester:
                rows.append(measure_back_to_back(tester, wish, on_event=on_event, recorder=self.recorder))
            if rows[-1].outcome == "stopped":
                break
        return BackToBackTable(rows=tuple(rows))

    def trial(
        self, *, rate_fps: float, duration_s: float = 60.0, **conditions: Unpack[Conditions]
    ) -> SingleTrial:
        """One trial at `rate_fps` per direction; its verdict may be INVALID."""
        for value, where in ((rate_fps, "rate_fps"), (duration_s, "duration_s")):
            check_type(value, float, where=where)
            if value <= 0:
                raise RequestError(
                    f"{value:g}: must be greater than 0",
                    code="procedure.out-of-range",
                    where=where,
                    next_step="Use, for example, rate_fps=1e6 and duration_s=60.",
                )
        with self.tester(
            check=lambda profile: choose_maximum(rate_fps, profile, where="rate_fps"),
            longest_trial_s=duration_s,
            **conditions,
        ) as tester:
            return measure_trial(
                tester,
                rate_fps=rate_fps,
                duration_s=duration_s,
                on_event=self.on_event,
                recorder=self.recorder,
            )
