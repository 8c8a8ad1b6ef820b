# SPDX-License-Identifier: Apache-2.0
"""Procedure: every procedure on one testbed, by a method each. What `evenhand.open_testbed` gives, and what
the verbs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Unpack

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan import BOTH_DIRECTIONS, FrameSize, describe_size
from evenhand.procedure import back_to_back, burst, loss
from evenhand.procedure.back_to_back import measure_back_to_back
from evenhand.procedure.back_to_back_goal import BackToBackGoal
from evenhand.procedure.back_to_back_result import BackToBackTable
from evenhand.procedure.burst import BurstGoal, BurstIntervals, measure_burst
from evenhand.procedure.conditions import Conditions, check_request
from evenhand.procedure.delay import measure_delay
from evenhand.procedure.delay_goal import REPETITIONS, DelayGoal, DelayTest
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.events import Note
from evenhand.procedure.frame_size import RFC_FRAME_SIZES, choose_frames
from evenhand.procedure.limits import retries_of
from evenhand.procedure.loss import FrameLoss, LossGoal, LossOutcome
from evenhand.procedure.own_loop import OwnLoop, measure_own_loop
from evenhand.procedure.prepared_testbed import PreparedTestbed
from evenhand.procedure.recovery import Recovery, RecoveryGoal, check_throughput, measure_recovery
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
class OpenTestbed(PreparedTestbed):
    """A testbed whose file has been checked. Each method measures with an engine of its own, which is ended
    when the method is.

    All methods take the keywords of `Conditions`. They raise RequestError for what cannot be, before anything
    is sent; HostError if the host or the DUT is not ready; EngineError for a bug. Loss and INVALID trials are
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
            name: Of the search in the run file.
            role: What it is made for, as the run file has it.
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
            name: Of the series in the run file.
        """
        check_request(goal, LossGoal | None, conditions)
        chosen = goal or LossGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(
            check=lambda profile: loss.with_maximum(chosen, profile),
            longest_trial_s=chosen.longest_trial_s,
            **conditions,
        ) as tester:
            return loss.measure_loss(
                tester, chosen, name=name, on_event=self.on_event, recorder=self.recorder
            )

    def delay(
        self,
        *,
        goal: DelayGoal,
        has_own_loop: bool = True,
        name: str | None = None,
        **conditions: Unpack[Conditions],
    ) -> DelayResult:
        """Latency, or delay variation, at one load, many times over (RFC 8219, 7.2 and 7.3; RFC 2544, 26.2).

        Args:
            goal: Which test, at which load. The RFCs want the throughput: `throughput(...).throughput_fps`.
            has_own_loop: Measure first what the tester itself adds at this load, where its ports can be
                joined to each other here.
            name: Of the test in the run file. Default: that of the test.
        """
        check_request(goal, DelayGoal, conditions)
        self._check_idle(
            conditions.get("established"), conditions.get("waits", RFC_WAITS), goal.longest_trial_s
        )
        own_loop = self._own_loop(goal, conditions) if has_own_loop else None
        with self.tester(
            check=lambda profile: choose_maximum(goal.rate_fps, profile, where="rate_fps"),
            longest_trial_s=goal.longest_trial_s,
            **conditions,
        ) as tester:
            return measure_delay(
                tester, goal, own_loop=own_loop, name=name, on_event=self.on_event, recorder=self.recorder
            )

    def latency(
        self,
        rate_fps: float | None = None,
        *,
        after: Throughput | None = None,
        profile: Literal["rfc8219", "rfc2544"] = "rfc8219",
        duration_s: float | None = None,
        from_s: float | None = None,
        tagged_frames: int | None = None,
        repetitions: int = REPETITIONS,
        has_own_loop: bool = True,
        name: str | None = None,
        **conditions: Unpack[Conditions],
    ) -> DelayResult:
        """Latency of tagged frames at one load (RFC 8219, 7.2; RFC 2544, 26.2), as the verb of this name.

        Args:
            rate_fps: The load per direction. Default: the throughput of `after`.
            after: What `throughput` has found under the same conditions.
            profile: rfc8219: median and 99.9th percentile of 500 frames; rfc2544: one frame.
            duration_s: And `from_s`, `tagged_frames`: as the RFC has them by default; less is a deviation.
            has_own_loop: As for `delay`, and `name`.
        """
        test = DelayTest.LATENCY if profile == "rfc8219" else DelayTest.LATENCY_RFC2544
        check_type(profile, Literal["rfc8219", "rfc2544"], where="profile")
        goal = self._delay_goal(
            test,
            rate_fps,
            after,
            duration_s=duration_s,
            from_s=from_s,
            tagged_frames=tagged_frames,
            repetitions=repetitions,
        )
        return self.delay(goal=goal, has_own_loop=has_own_loop, name=name, **conditions)

    def pdv(
        self,
        rate_fps: float | None = None,
        *,
        after: Throughput | None = None,
        duration_s: float | None = None,
        from_s: float | None = None,
        repetitions: int = REPETITIONS,
        has_variation: bool = False,
        has_own_loop: bool = True,
        name: str | None = None,
        **conditions: Unpack[Conditions],
    ) -> DelayResult:
        """Packet delay variation of every frame at one load (RFC 8219, 7.3.1), as the verb of this name. See
        `latency`.

        Args:
            has_variation: The differences of consecutive frames as well (RFC 8219, 7.3.2).
        """
        goal = self._delay_goal(
            DelayTest.PDV,
            rate_fps,
            after,
            duration_s=duration_s,
            from_s=from_s,
            repetitions=repetitions,
            has_variation=has_variation,
        )
        return self.delay(goal=goal, has_own_loop=has_own_loop, name=name, **conditions)

    def ipdv(
        self, rate_fps: float | None = None, *, after: Throughput | None = None, **options: Any
    ) -> DelayResult:
        """Delay variation between consecutive frames (RFC 8219, 7.3.2): `pdv` with `has_variation`."""
        return self.pdv(rate_fps, after=after, has_variation=True, **options)

    def _delay_goal(
        self, test: DelayTest, rate_fps: float | None, after: Throughput | None, **others: Any
    ) -> DelayGoal:
        check_type(after, Throughput | None, where="after")
        known_fps = None if after is None else after.throughput_fps
        if after is not None and known_fps is None:
            raise RequestError(
                "this search did not find a throughput",
                code="procedure.no-throughput-found",
                where="after",
                next_step="Look at its outcome, or give rate_fps.",
            )
        load_fps = known_fps if rate_fps is None else rate_fps
        if load_fps is None:
            raise RequestError(
                "no load is given",
                code="procedure.no-load",
                where="rate_fps, after",
                next_step="Give rate_fps, or after=throughput(...).",
            )
        return DelayGoal(
            test=test,
            rate_fps=load_fps,
            throughput_fps=known_fps,
            **others,
            **retries_of(self.setup.testbed.limits),
        )

    def recovery(
        self, *, goal: RecoveryGoal, name: str = "recovery", **conditions: Unpack[Conditions]
    ) -> Recovery:
        """For how long frames are lost after an overload, many times over (RFC 2544, 26.5).

        Args:
            goal: The throughput, of which 110 % are the overload: `throughput(...).throughput_fps`; how long,
                how often.
            name: Of the test in the run file.
        """
        check_request(goal, RecoveryGoal, conditions)
        with self.tester(
            check=partial(check_throughput, goal), longest_trial_s=goal.longest_trial_s, **conditions
        ) as tester:
            return measure_recovery(tester, goal, name=name, on_event=self.on_event, recorder=self.recorder)

    def burst(
        self, *, goal: BurstGoal | None = None, name: str = "burst", **conditions: Unpack[Conditions]
    ) -> BurstIntervals:
        """The smallest interval between bursts without loss, by the size of the bursts (RFC 2544, 21).

        Args:
            goal: Which bursts, how long the trials are, when to stop. Default: 16, 64, 256 and 1024 frames at
                the line rate, to 0.5 %.
            name: Of the searches in the run file, before the size.
        """
        check_request(goal, BurstGoal | None, conditions)
        chosen = goal or BurstGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(
            check=partial(burst.with_rate, chosen), longest_trial_s=chosen.longest_trial_s, **conditions
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
        stored by its own name.

        Args:
            frame_sizes: In this order; `frame_size` of the conditions has no say here.
            repetitions: How often, and when fewer are enough.
            single_pair_first: Search with one address pair first, once for each size (SEED-02).
        """
        check_request(goal, Goal | None, conditions)
        plan, sizes = self._sizes(frame_sizes, conditions)
        chosen: Goal = goal or ThroughputGoal(
            max_fps=UP_TO_LINE_RATE, **retries_of(self.setup.testbed.limits)
        )
        rows = []
        for size in sizes:
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            self.on_event(Note(text=f"{describe_size(size)}:", is_heading=True))
            if single_pair_first:
                one_pair: Conditions = {**of_size, "plan": plan.single_pair(), "single_pair": None}
                first = self.throughput(
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

                def search(number: int, tester: OpenTester = opened, size: FrameSize = size) -> Throughput:
                    found = measure_from_start(
                        tester,
                        chosen,
                        name=f"throughput, {describe_size(size)}",
                        repetition=number,
                        on_event=self.on_event,
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
        for size in sizes:
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            self.on_event(Note(text=f"{describe_size(size)}:", is_heading=True))
            with self.tester(
                check=lambda profile: loss.with_maximum(chosen, profile),
                longest_trial_s=chosen.longest_trial_s,
                **of_size,
            ) as tester:

                def series(number: int, tester: OpenTester = tester, size: FrameSize = size) -> FrameLoss:
                    return loss.measure_loss(
                        tester,
                        chosen,
                        name=f"loss, {describe_size(size)}",
                        repetition=number,
                        on_event=self.on_event,
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
        throughputs: Mapping[int, tuple[float, str]] | None = None,
        **conditions: Unpack[Conditions],
    ) -> BackToBackTable:
        """The longest burst after idle without loss, by frame size, many times over, and the buffer time that
        it implies (RFC 9004).

        Args:
            frame_sizes: In this order; `frame_size` of the conditions has no say here.
            goal: How long bursts may be, how exact and how often. Default: up to 2 s at the line rate, to one
                frame, 50 times.
            throughputs: By frame size, fps per direction that were measured before under the same conditions,
                and where. The others are measured first (R9004-01).
        """
        check_request(goal, BackToBackGoal | None, conditions)
        plan, any_sizes = self._sizes(frame_sizes, conditions)
        sizes = check_whole_sizes(any_sizes)
        chosen = goal or BackToBackGoal(**retries_of(self.setup.testbed.limits))
        rows = []
        for size in sizes:
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            wish = chosen
            if throughputs is not None and size in throughputs:
                throughput_fps, source = throughputs[size]
                wish = replace(chosen, throughput_fps=throughput_fps, throughput_source=source)
            self.on_event(Note(text=f"{size} octets:", is_heading=True))
            with self.tester(
                check=partial(back_to_back.with_rate, wish), longest_trial_s=wish.longest_trial_s, **of_size
            ) as tester:
                rows.append(
                    measure_back_to_back(tester, wish, on_event=self.on_event, recorder=self.recorder)
                )
            if rows[-1].outcome == "stopped":
                break
        return BackToBackTable(rows=tuple(rows))

    def trial(
        self, *, rate_fps: float, duration_s: float = 60.0, **conditions: Unpack[Conditions]
    ) -> SingleTrial:
        """One trial at `rate_fps` per direction; its verdict may be INVALID."""
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

    def _own_loop(self, goal: DelayGoal, conditions: Conditions) -> OwnLoop:
        """Before the tester is open: it has the same CPUs."""
        plan = self._plan(conditions.get("plan"))
        self.setup.check_plan(plan)
        size, _ = choose_frames(plan, conditions.get("frame_size"), tag_octets=self.setup.testbed.tag_octets)
        directions = conditions.get("directions", BOTH_DIRECTIONS)
        self.setup.check_frame_sizes(self.setup.testbed.streams(plan, size, directions))
        return measure_own_loop(
            self.setup,
            plan,
            rate_fps=goal.rate_fps,
            duration_s=goal.length_s,
            frame_size=size,
            directions=directions,
            seed=conditions.get("seed", 1),
            has_variation=goal.has_variation,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
            engine=self.engine,
            limits=self._limits(conditions.get("limits")),
            on_event=self.on_event,
            recorder=self.recorder,
            replay=self.replay,
        )
