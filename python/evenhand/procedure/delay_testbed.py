# SPDX-License-Identifier: Apache-2.0
"""Procedure: the tests of delay on one testbed, by a method each; `OpenTestbed` has them, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Unpack

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan import BOTH_DIRECTIONS
from evenhand.procedure.conditions import Conditions, check_request
from evenhand.procedure.delay import measure_delay
from evenhand.procedure.delay_goal import REPETITIONS, DelayGoal, DelayTest
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.frame_size import choose_frames
from evenhand.procedure.known_throughput import throughput_to_serve
from evenhand.procedure.limits import retries_of
from evenhand.procedure.own_loop import OwnLoop, measure_own_loop
from evenhand.procedure.prepared_testbed import PreparedTestbed
from evenhand.procedure.tester import choose_maximum
from evenhand.procedure.throughput import Throughput
from evenhand.trial import RFC_WAITS


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayTestbed(PreparedTestbed):
    """Its methods are as those of `OpenTestbed`."""

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
                to each other on this host.
            name: The name of the test in the run file. Default: the name of `goal.test`.
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
            after: A result of `throughput` under the same conditions.
            profile: rfc8219: median and 99.9th percentile of 500 frames; rfc2544: one frame.
            duration_s: Default: as in the RFC, like `from_s` and `tagged_frames`; less is a deviation.
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
            known = throughput_to_serve([after.search.to_document()], source="this search", where="after")
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
