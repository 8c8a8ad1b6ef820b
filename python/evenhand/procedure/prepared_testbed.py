# SPDX-License-Identifier: Apache-2.0
"""Procedure: a tester opened on a testbed, with conditions that have been checked. What all procedures of
`OpenTestbed` begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_import
from evenhand.plan import BOTH_DIRECTIONS, SIDES, AddressPlan, Direction, FrameSize, HostMacs, SideName
from evenhand.procedure.conditions import Conditions, check_conditions
from evenhand.procedure.connection_trials import ConnectionWish, check_timeout, established_idle_s
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.host_limits import settle_limits
from evenhand.procedure.learning import ALL_HOSTS_FIRST, LearningChoice, choose_frames, learn_first
from evenhand.procedure.limits import limits_of
from evenhand.procedure.one_pair import OnePair
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder
from evenhand.procedure.repetition import check_frame_sizes
from evenhand.procedure.tester import EnginesOf, OpenTester, open_tester
from evenhand.trial import RFC_WAITS, CaptureFile, DirectionRates, Limits, Replay, Waits

if TYPE_CHECKING:
    from evenhand.plan import plan_file
    from evenhand.rig import Setup
else:
    plan_file = lazy_import("evenhand.plan.plan_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTestbed:
    """A testbed, and what is to be done with what is measured on it."""

    setup: Setup
    engine: Path | None = None
    """Default: EVENHAND_ENGINE, this checkout's, PATH."""
    recorder: Recorder | None = None
    """Stores each trial before the next one begins; None: trials are not stored."""
    on_event: OnEvent = ignore
    """Gets every `ProcedureEvent`; the tester waits for it between trials."""
    replay: Replay | None = None
    """Trials of a procedure that was cut short, which need not be made again."""
    engines: EnginesOf | None = None
    """The engines of the set-up, if they are known already; None: each method finds them by `engine`."""
    capture: CaptureFile | None = None
    """Where received frames are kept that were not what was sent."""
    run: str = ""
    """The campaign that measures: if it is resumed, it keeps the limits that were measured on the host.
    Empty: no campaign."""

    @contextmanager
    def tester(
        self,
        *,
        check: Callable[[Profile], object] = lambda profile: None,
        longest_trial_s: float = 0.0,
        plan: str | AddressPlan | None = None,
        frame_size: FrameSize | None = None,
        directions: tuple[Direction, ...] = BOTH_DIRECTIONS,
        seed: int = 1,
        waits: Waits = RFC_WAITS,
        limits: Limits | None = None,
        host_macs: HostMacs = "port",
        learning: LearningChoice = ALL_HOSTS_FIRST,
        established: ConnectionWish | None = None,
        rates: DirectionRates | None = None,
        one_pair: OnePair | None = None,
    ) -> Iterator[OpenTester]:
        """For a procedure of your own: an engine with open ports. The DUT has answered, and has learnt its
        hosts.

        Args:
            check: Called with what is known before the DUT learns its hosts, which may take a minute; it
                raises an error if the procedure would be useless.
            longest_trial_s: Longest time of sending, if it is known: a DUT that forgets established
                connections sooner is refused at once. Each trial is also checked by itself.
        """
        check_conditions(
            {
                "plan": plan,
                "frame_size": frame_size,
                "directions": directions,
                "seed": seed,
                "waits": waits,
                "limits": limits,
                "host_macs": host_macs,
                "learning": learning,
                "established": established,
                "rates": rates,
                "one_pair": one_pair,
            }
        )
        self.check_idle(established, waits, longest_trial_s)
        address_plan = self._plan(plan)
        self.setup.check_plan(address_plan)
        if address_plan.nat is not None:
            self.setup.check_emptied_somehow()  # each of its tests begins with an empty table
        size, note = choose_frames(address_plan, frame_size, tag_octets=self.setup.testbed.tag_octets)
        if note is not None:
            self.on_event(Note(text=note))
        opened = open_tester(
            self.setup,
            address_plan,
            frame_size=size,
            seed=int(seed),
            directions=tuple(directions),
            engine=self.engines or self.engine,
            rates=rates,
            host_macs=host_macs,
            waits=waits,
            limits=self.limits_of(limits),
            on_event=self.on_event,
        )
        with opened as tester:
            after = tester.after(one_pair)
            profile = replace(after.profile, established=established)
            ready = replace(
                after, profile=profile, replay=self.replay, capture=self.capture, established=established
            )
            check(ready.profile)
            yield learn_first(ready, learning, on_event=self.on_event)

    def check_idle(self, established: ConnectionWish | None, waits: Waits, longest_trial_s: float) -> None:
        """RequestError if the DUT forgets established connections before such a trial has ended
        (R9693-06)."""
        if established is not None:
            idle_s = established_idle_s(established, waits.total_s, longest_trial_s)
            check_timeout(self.setup.connection_timeout_s, idle_s, where="established")

    def _plan(self, given: str | AddressPlan | None) -> AddressPlan:
        if given is None:
            return self.setup.make_own_plan()
        return plan_file.plan_named(given) if isinstance(given, str) else given

    def limits_of(self, given: Limits | None) -> Limits:
        """Those of the host measured, where it is to choose; before the tester is open, which has the same
        CPUs."""
        wanted = given or limits_of(self.setup.testbed.limits)
        return settle_limits(wanted, self.setup, engine=self.engine, on_event=self.on_event, run=self.run)

    def check_frames(self, conditions: Conditions) -> tuple[AddressPlan, FrameSize, tuple[Direction, ...]]:
        """The plan, frame size and directions of these conditions. RequestError if the DUT, or a port, does
        not take such frames."""
        plan = self._plan(conditions.get("plan"))
        self.setup.check_plan(plan)
        size, _ = choose_frames(plan, conditions.get("frame_size"), tag_octets=self.setup.testbed.tag_octets)
        directions = conditions.get("directions", BOTH_DIRECTIONS)
        self.setup.check_frame_sizes(self.setup.testbed.streams(plan, size, directions))
        return plan, size, directions

    def _sizes(
        self, frame_sizes: Sequence[FrameSize], conditions: Conditions
    ) -> tuple[AddressPlan, tuple[FrameSize, ...]]:
        """All of them are checked before the first is measured."""
        plan = self._plan(conditions.get("plan"))
        sizes, notes = check_frame_sizes(plan, frame_sizes, tag_octets=self.setup.testbed.tag_octets)
        for note in notes:
            self.on_event(Note(text=note))
        return plan, sizes


def line_rates_of(
    setup: Setup, engines: EnginesOf, plan: AddressPlan, frame_size: FrameSize
) -> Mapping[SideName, float | None]:
    """In bit/s by side; None for a port that does not know it. Ports for which the testbed file states none
    are opened, and closed again.

    Raises:
        HostError: A port cannot be opened, or another tester has it.
    """
    stated = setup.testbed.line_rates
    if None not in stated.values():
        return stated
    with ExitStack() as stack:
        locked = stack.enter_context(setup.locked())
        session = engines.start(stack, locked)
        opened = engines.open(session, plan, frame_size=frame_size, seed=1, host_macs="port")
    return {side: opened[side]["line_rate_bps"] for side in SIDES}
