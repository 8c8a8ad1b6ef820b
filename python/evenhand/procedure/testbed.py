# SPDX-License-Identifier: Apache-2.0
"""Procedure: every procedure on one testbed: `measure` and `measure_table` for any of them, and a method for
each. What `evenhand.open_testbed` gives, and what verbs and campaigns use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from evenhand.base.errors import RequestError
from evenhand.base.rates import Line, in_frames, is_of_line
from evenhand.base.time_span import TimeSpan
from evenhand.base.validation.typed_fields import check_type, plain
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Direction, FrameSize, Imix, describe_size, line_of
from evenhand.procedure.back_to_back import BACK_TO_BACK
from evenhand.procedure.back_to_back_result import BackToBackGoal, BackToBackTable
from evenhand.procedure.burst import BURST, BurstGoal, BurstIntervals
from evenhand.procedure.conditions import Conditions, check_conditions, check_request
from evenhand.procedure.connection_capacity import CAPACITY, Capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import CONNECTIONS, ConnectionRate, ConnectionRateGoal
from evenhand.procedure.delay import LATENCY
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.descriptor import KnownThroughput, Procedure, check_rates, throughput_to_serve
from evenhand.procedure.events import Note, followed_by
from evenhand.procedure.learning import RFC_FRAME_SIZES
from evenhand.procedure.limits import retries_of
from evenhand.procedure.loss import LOSS, FrameLoss, LossTable
from evenhand.procedure.maximum import check_given
from evenhand.procedure.one_pair import OnePair
from evenhand.procedure.prepared_testbed import PreparedTestbed, line_rates_of
from evenhand.procedure.profile import Profile
from evenhand.procedure.recovery import RECOVERY, Recovery
from evenhand.procedure.repetition import STOPPED, Repetitions, check_whole_sizes, repeat
from evenhand.procedure.single_trial import TRIAL_S, SingleTrial, measure_trial
from evenhand.procedure.tear_down import TEAR_DOWN, TearDown, TearDownGoal
from evenhand.procedure.tester import EnginesOf, OpenTester, choose_maximum
from evenhand.procedure.throughput import THROUGHPUT, Throughput, ThroughputTable
from evenhand.results.delay import REPETITIONS, DelayGoal, DelayTest
from evenhand.results.loss import LossGoal
from evenhand.results.recovery import RecoveryGoal
from evenhand.search import Goal, Role
from evenhand.trial import RFC_WAITS

ONCE = Repetitions()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTestbed(PreparedTestbed):
    """A testbed with a checked file. Each method starts an engine of its own, and ends it when it returns.

    All methods take the keywords of `Conditions`. They raise RequestError for an impossible request, before
    anything is sent; HostError if the host or the DUT is not ready; EngineError for a bug. Loss and INVALID
    trials are results.
    """

    def measure(
        self,
        procedure: Procedure,
        goal: Any = None,
        *,
        name: str | None = None,
        has_own_loop: bool = True,
        details: Mapping[str, Any] | None = None,
        **conditions: Unpack[Conditions],
    ) -> Any:
        """Measure once, with one frame size; gives the procedure's `Result`.

        Args:
            goal: A goal of this procedure. Default: its own, if it has one.
            name: The name of the search or test in the run file. Default: the procedure's.
            has_own_loop: Whether what the procedure measures before the tester is open, such as the tester's
                own delays, is measured.
            details: Further keywords of `Procedure.measure`.
        """
        check_type(name, str | None, where="name")
        check_type(has_own_loop, bool, where="has_own_loop")
        chosen = self._goal(procedure, goal, conditions)
        given = dict(details or {})
        if procedure.before is not None and has_own_loop:
            waits = conditions.get("waits", RFC_WAITS)
            self.check_idle(conditions.get("established"), waits, chosen.longest_trial_s)
            given |= procedure.before(self, chosen, conditions)
        if name is not None:
            given["name"] = name
        with self._tester_for(procedure, chosen, conditions) as tester:
            return self._kept(
                procedure.measure(tester, chosen, on_event=self.on_event, recorder=self.recorder, **given)
            )

    def measure_table(
        self,
        procedure: Procedure,
        frame_sizes: Sequence[FrameSize] = RFC_FRAME_SIZES,
        goal: Any = None,
        *,
        repetitions: Repetitions = ONCE,
        one_pair_first: bool = False,
        throughputs: Mapping[FrameSize, KnownThroughput] | None = None,
        goals: Mapping[FrameSize, Any] | None = None,
        **conditions: Unpack[Conditions],
    ) -> Any:
        """Measure with one frame size after the other, each repeated; gives the procedure's table. All
        repetitions of a size have one tester, and so the same flows.

        Args:
            frame_sizes: In this order; `frame_size` of the conditions is ignored.
            repetitions: Number of repetitions, and when fewer are enough.
            one_pair_first: Measure with one address pair first, once for each size (SEED-02).
            throughputs: By frame size, what was measured earlier under the same conditions.
            goals: By frame size, goals that differ in their rates alone: half of the line rate is another
                number of frames for each. Default: `goal` for all.
        """
        assert procedure.table is not None, f"{procedure.name} has no table"
        check_type(frame_sizes, Sequence[int | Imix], where="frame_sizes")
        check_type(repetitions, Repetitions, where="repetitions")
        check_type(one_pair_first, bool, where="one_pair_first")
        check_type(throughputs, Mapping[Any, Any] | None, where="throughputs")
        chosen = self._goal(procedure, goal, conditions)
        plan, sizes = self._sizes(frame_sizes, conditions)
        if not procedure.frame_sizes.takes_mixes:
            check_whole_sizes(sizes)
        each = procedure.expected_span(chosen, conditions.get("waits", RFC_WAITS).total_s)
        rows: list[Any] = []
        for place, size in enumerate(sizes, start=1):
            of_size: Conditions = {**conditions, "plan": plan, "frame_size": size}
            later = (len(sizes) - place) * (repetitions.count + one_pair_first)
            wish = (goals or {}).get(size, chosen)
            if throughputs and size in throughputs:
                wish = wish.after(throughputs[size])
            self.on_event(Note(text=f"{describe_size(size)}:", is_heading=True))
            if one_pair_first:
                followed = followed_by(self.on_event, each.times(later + repetitions.count))
                name = f"{procedure.name}, {describe_size(size)}"
                bed = replace(self, on_event=followed)
                _, of_size["one_pair"] = bed.measure_one_pair(procedure, wish, name=name, **of_size)
            with self._tester_for(procedure, wish, of_size) as tester:
                rows.append(
                    self._row(procedure, tester, wish, repetitions, size=size, later=later, each=each)
                )
            if rows[-1].outcome == STOPPED:
                break
        return procedure.table(rows=tuple(rows))

    def measure_one_pair(
        self, procedure: Procedure, goal: Any, *, name: str, **conditions: Unpack[Conditions]
    ) -> tuple[Any, OnePair | None]:
        """What the procedure finds with one address pair (SEED-02), and what of it stands beside the result
        with many, if it says something of the DUT.

        Args:
            name: The name of the search with many.
        """
        given: Conditions = {
            **conditions,
            "plan": self._plan(conditions.get("plan")).one_pair(),
            "one_pair": None,
        }
        first = self.measure(
            procedure, goal, name=f"{name}, one address pair", details={"role": Role.ONE_PAIR}, **given
        )
        return first, OnePair.of(first.search, first.profile)

    def _row(
        self,
        procedure: Procedure,
        tester: OpenTester,
        goal: Any,
        repetitions: Repetitions,
        *,
        size: FrameSize,
        later: int,
        each: TimeSpan,
    ) -> Any:
        """All repetitions with one frame size.

        Args:
            later: How many are made with the sizes that follow.
            each: How long each should take, as long as none has ended.
        """

        began = time.monotonic()

        def measure(number: int) -> Any:
            done = number - 1
            one = TimeSpan.of((time.monotonic() - began) / done) if done else each
            found = procedure.measure(
                tester,
                goal,
                name=f"{procedure.name}, {describe_size(size)}",
                repetition=number,
                on_event=followed_by(self.on_event, one.times(later + repetitions.count - number)),
                recorder=self.recorder,
            )
            return self._kept(found)

        if procedure.repeats_itself:
            return measure(repetitions.count)
        return repeat(
            measure, repetitions, frame_size=size, spread_of=procedure.spread_of, on_event=self.on_event
        )

    def _kept(self, found: Any) -> Any:
        if self.recorder is not None:
            self.recorder.keep(found.to_document())
        return found

    def _goal(self, procedure: Procedure, goal: Any, conditions: Conditions) -> Any:
        """The goal, or the procedure's own. RequestError for one of another type, or conditions that the
        procedure does not have."""
        default = procedure.default_goal
        check_request(goal, procedure.goals if default is None else procedure.goals | None, conditions)
        if procedure.opens_connections and conditions.get("established") is not None:
            raise RequestError(
                "connections cannot be established beforehand: this test opens its own",
                code="procedure.opens-its-own",
                where="established",
                next_step="Omit it; the goal says how many each trial opens.",
            )
        check_rates(procedure, conditions.get("rates"))
        if goal is not None:
            return goal
        assert default is not None
        return default(retries_of(self.setup.testbed.limits))

    def _tester_for(
        self, procedure: Procedure, goal: Any, conditions: Conditions
    ) -> AbstractContextManager[OpenTester]:
        def check(profile: Profile) -> None:
            if procedure.check is not None:
                procedure.check(goal, profile)
            else:
                check_given(getattr(goal, procedure.load), profile, where=procedure.load)

        longest_trial_s = 0.0 if procedure.opens_connections else getattr(goal, "longest_trial_s", 0.0)
        return self.tester(check=check, longest_trial_s=longest_trial_s, **conditions)

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
        check_type(role, Role, where="role")
        found: Throughput = self.measure(THROUGHPUT, goal, name=name, details={"role": role}, **conditions)
        return found

    def throughput_table(
        self,
        frame_sizes: Sequence[FrameSize] = RFC_FRAME_SIZES,
        *,
        repetitions: Repetitions = ONCE,
        goal: Goal | None = None,
        one_pair_first: bool = False,
        **conditions: Unpack[Conditions],
    ) -> ThroughputTable:
        """Throughput by frame size, each search repeated (R2544-04, R2544-22, SEED-72). Every search is
        stored with its own name. See `measure_table`."""
        found: ThroughputTable = self.measure_table(
            THROUGHPUT,
            frame_sizes,
            goal,
            repetitions=repetitions,
            one_pair_first=one_pair_first,
            **conditions,
        )
        return found

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
        found: FrameLoss = self.measure(LOSS, goal, name=name, **conditions)
        return found

    def loss_table(
        self,
        frame_sizes: Sequence[FrameSize] = RFC_FRAME_SIZES,
        *,
        repetitions: Repetitions = ONCE,
        goal: LossGoal | None = None,
        **conditions: Unpack[Conditions],
    ) -> LossTable:
        """Frame loss rate by frame size and load, each series repeated. See `measure_table`."""
        found: LossTable = self.measure_table(LOSS, frame_sizes, goal, repetitions=repetitions, **conditions)
        return found

    def recovery(
        self, *, goal: RecoveryGoal, name: str = "recovery", **conditions: Unpack[Conditions]
    ) -> Recovery:
        """The time for which frames are lost after an overload, with repetitions (RFC 2544, 26.5).

        Args:
            goal: The throughput, such as `throughput(...).throughput_fps`, of which 110 % are the overload;
                durations, and number of repetitions.
            name: The name of the test in the run file.
        """
        found: Recovery = self.measure(RECOVERY, goal, name=name, **conditions)
        return found

    def burst(
        self, *, goal: BurstGoal | None = None, name: str = "burst", **conditions: Unpack[Conditions]
    ) -> BurstIntervals:
        """The smallest interval without loss between bursts, for each size of bursts (RFC 2544, 21).

        Args:
            goal: Sizes of bursts, duration of trials, precision. Default: 16, 64, 256 and 1024 frames at the
                line rate, to 0.5 %.
            name: The name of the searches in the run file, before the size.
        """
        found: BurstIntervals = self.measure(BURST, goal, name=name, **conditions)
        return found

    def back_to_back(
        self,
        frame_sizes: Sequence[int] = RFC_FRAME_SIZES,
        *,
        goal: BackToBackGoal | None = None,
        throughputs: Mapping[FrameSize, KnownThroughput] | None = None,
        **conditions: Unpack[Conditions],
    ) -> BackToBackTable:
        """The longest burst after idle without loss, by frame size, with repetitions, and the buffer time
        that it implies (RFC 9004). See `measure_table`.

        Args:
            goal: Longest burst, precision, and number of repetitions. Default: up to 2 s at the line rate, to
                one frame, 50 times.
            throughputs: By frame size, the throughput that was measured earlier under the same conditions.
                For other sizes it is measured first (R9004-01).
        """
        found: BackToBackTable = self.measure_table(
            BACK_TO_BACK, frame_sizes, goal, throughputs=throughputs, **conditions
        )
        return found

    def connections(
        self,
        *,
        goal: ConnectionRateGoal | None = None,
        name: str = "connections",
        **conditions: Unpack[Conditions],
    ) -> ConnectionRate:
        """The maximum connection establishment rate (RFC 9693, 4.5). The plan must be one whose DUT keeps
        state, such as nat44; also of the two tests that follow.

        Args:
            goal: How many connections, and where to search. Default: 400,000, from the line rate down.
            name: The name of the search in the run file.
        """
        found: ConnectionRate = self.measure(CONNECTIONS, goal, name=name, **conditions)
        return found

    def capacity(
        self, *, goal: CapacityGoal | None = None, name: str = "capacity", **conditions: Unpack[Conditions]
    ) -> Capacity:
        """How many connections the DUT's table holds (RFC 9693, 4.9).

        Args:
            goal: Where to search. Default: from 10,000 connections up, at rates from the line rate down.
            name: The name of the search in the run file.
        """
        found: Capacity = self.measure(CAPACITY, goal, name=name, **conditions)
        return found

    def tear_down(
        self, *, goal: TearDownGoal, name: str = "tear-down", **conditions: Unpack[Conditions]
    ) -> TearDown:
        """How fast the DUT removes connections when its table is emptied (RFC 9693, 4.8).

        Args:
            goal: How many connections, the rate at which they are opened, and how often.
            name: The name of the test in the run file.
        """
        found: TearDown = self.measure(TEAR_DOWN, goal, name=name, **conditions)
        return found

    def delay(
        self,
        *,
        goal: DelayGoal,
        has_own_loop: bool = True,
        name: str | None = None,
        **conditions: Unpack[Conditions],
    ) -> DelayResult:
        """Latency, or delay variation, at one load, with repetitions (RFC 8219, 7.2 and 7.3; RFC 2544, 26.2).

        Args:
            goal: The test and its load. The RFCs require the throughput: `throughput(...).throughput_fps`.
            has_own_loop: First measure what the tester itself adds at this load, if its ports can be joined
                to each other on this machine.
            name: The name of the test in the run file. Default: the name of `goal.test`.
        """
        found: DelayResult = self.measure(LATENCY, goal, name=name, has_own_loop=has_own_loop, **conditions)
        return found

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
            after: A result of `throughput` under the same conditions.
            profile: rfc8219: median and 99.9th percentile of 500 frames; rfc2544: one frame.
            duration_s: Default: as in the RFC, like `from_s` and `tagged_frames`; less is a deviation.
            has_own_loop: As for `delay`, and `name`.
        """
        check_type(profile, Literal["rfc8219", "rfc2544"], where="profile")
        test = DelayTest.LATENCY if profile == "rfc8219" else DelayTest.LATENCY_RFC2544
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
            has_variation: Also measure the differences of consecutive frames (RFC 8219, 7.3.2).
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
        known = None
        if after is not None:
            found = THROUGHPUT.read(after.search.to_document())
            known = throughput_to_serve([found], source="this search", where="after")
        known_fps = None if known is None else known.fps
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
            is_throughput_at_least=known is not None and known.is_at_least,
            **others,
            **retries_of(self.setup.testbed.limits),
        )

    def rate_fps(
        self,
        text: str,
        *,
        plan: str | AddressPlan | None = None,
        frame_size: FrameSize | None = None,
        directions: tuple[Direction, ...] = BOTH_DIRECTIONS,
    ) -> float:
        """Frames per second per direction of a rate as people write it: `50%` of the line rate, `2.5Gbit/s`
        on the line with preamble and gap, `1Mfps`. Whole frames, rounded down as maximum frame rates are
        (R2544-16). A share is of the port that sends; in both directions, of the slower one. The ports are
        opened for a moment if only they know their line rate.

        Args:
            text: `50%`, `2.5Gbit/s`, `1Mfps`.
            plan: As in `Conditions`, and so are `frame_size` and `directions`: they decide how many octets a
                frame has.
        """
        check_type(text, str, where="text")
        given: Conditions = {"directions": directions}
        if plan is not None:
            given["plan"] = plan
        if frame_size is not None:
            given["frame_size"] = frame_size
        check_conditions(given)
        return in_frames(text, self.line(given, [text]), where="text")

    def line(self, conditions: Conditions, texts: Iterable[str]) -> Line:
        """The line for these rates. Where one of them is a share of its rate, and only the ports know that,
        they are opened for a moment. RequestError if the DUT, or a port, does not take such frames."""
        plan, frame_size, directions = self.check_frames(conditions)
        testbed = self.setup.testbed
        rates_bps = testbed.line_rates
        if any(map(is_of_line, texts)):
            engines = self.engines or EnginesOf(self.setup, self.engine)
            rates_bps = line_rates_of(self.setup, engines, plan, frame_size)
        return line_of(testbed.streams(plan, frame_size, directions), rates_bps)

    def trial(
        self, *, rate_fps: float, duration_s: float = TRIAL_S, **conditions: Unpack[Conditions]
    ) -> SingleTrial:
        """One trial at `rate_fps` per direction, for 60 s or `duration_s`; its verdict may be INVALID."""
        for value, where in ((rate_fps, "rate_fps"), (duration_s, "duration_s")):
            check_type(value, float, where=where)
            if value <= 0:
                raise RequestError(
                    f"{value:g}: must be greater than 0",
                    code="procedure.out-of-range",
                    where=where,
                    next_step="Use, for example, rate_fps=1e6 and duration_s=60.",
                )
        rate_fps, duration_s = plain(rate_fps, float), plain(duration_s, float)
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
