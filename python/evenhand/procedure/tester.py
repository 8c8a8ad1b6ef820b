# SPDX-License-Identifier: Apache-2.0
"""Procedure: the tester that every procedure measures with: an engine whose ports are open and whose DUT has
answered."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.errors import DutGoneError, EngineError, EvenhandError, HostError, RequestError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan import (
    SIDES,
    AddressPlan,
    Direction,
    FrameSize,
    HostMacs,
    PortMacs,
    check_flow_directions,
    largest_frame,
)
from evenhand.procedure.connection_trials import (
    ConnectionTrials,
    ConnectionWish,
    check_timeout,
    established_idle_s,
)
from evenhand.procedure.dut_checks import check_empties, check_way, way_notes
from evenhand.procedure.events import Note, OnEvent, TrialPhase, ignore
from evenhand.procedure.flows import check_tags
from evenhand.procedure.limits import limits_of
from evenhand.procedure.one_pair import OnePair, check_same_dut
from evenhand.procedure.profile import Profile
from evenhand.trial import (
    DEFAULT_START_DIFFERENCE_US,
    RFC_WAITS,
    CaptureFile,
    DelayWish,
    DirectionRates,
    EngineGroup,
    EngineMeasurer,
    EngineMember,
    EngineSession,
    Limits,
    Load,
    LoadMeasurer,
    Replay,
    TesterSession,
    Waits,
    highest_load_fps,
)

if TYPE_CHECKING:
    from evenhand.rig import Inside, Setup


class EnginesOf:
    """Those of one set-up: how each is started, and what each opens."""

    def __init__(self, setup: Setup, engine: Path | None) -> None:
        """HostError if there is no engine here, or no ssh. Starts nothing."""
        self._setup = setup
        self._engines = setup.testbed.engine
        self._commands = setup.engine_commands(engine)

    @property
    def cpus_here(self) -> list[int]:
        """CPUs of this machine that are busy with testing."""
        if not self._engines:
            return list(self._setup.testbed.tester.cpus)
        return [cpu for engine in self._engines if engine.ssh is None for cpu in engine.cpus]

    def start(self, stack: ExitStack, locked: Sequence[int]) -> TesterSession:
        """Start all; `stack` ends them. An error of one of several names it: HostError also where it is not
        reached."""
        if not self._engines:
            return stack.enter_context(EngineSession(self._commands[0], inherited=locked))
        members = []
        for engine, command in zip(self._engines, self._commands, strict=True):
            try:
                session = stack.enter_context(
                    EngineSession(command, inherited=locked if engine.ssh is None else ())
                )
            except EvenhandError as error:
                raise _not_started(engine.name, engine.ssh, error) from error
            members.append(
                EngineMember(
                    name=engine.name,
                    session=session,
                    streams=engine.streams(one_armed=self._setup.testbed.one_armed),
                    is_here=engine.ssh is None,
                )
            )
        limit_s = self._setup.testbed.limits.start_difference
        return EngineGroup(
            members, start_difference_us=DEFAULT_START_DIFFERENCE_US if limit_s is None else limit_s * 1e6
        )

    def open(
        self,
        session: TesterSession,
        plan: AddressPlan,
        *,
        frame_size: FrameSize,
        seed: int,
        host_macs: HostMacs,
    ) -> dict[str, Any]:
        """What the tester reports of its ports; see `TesterSession.open`."""
        requests = self._setup.testbed.open_requests(plan, frame_size=frame_size, seed=seed)
        return session.open(requests, host_macs=host_macs)


def _not_started(name: str, ssh: str | None, error: EvenhandError) -> EvenhandError:
    where = f"engine {name}" if ssh is None else f"engine {name}, {ssh}"
    if ssh is not None and isinstance(error, EngineError):
        return HostError(
            f"engine {name} cannot be reached: {error.what}",
            code="procedure.engine-not-reached",
            where=where,
            next_step=f"Try it by hand: ssh {ssh} evenhand-engine --about",
        )
    return type(error)(
        f"engine {name}: {error.what}", code=error.code, where=where, next_step=error.next_step
    )


RESOLVE_TIMEOUT_S = 5.0
STATE_WAITS = Waits(after_routing_s=0.0, after_learning_s=0.1, residual_s=0.5, restabilize_s=0.1)
"""The waits of the trials that show whether a table is empty: a few frames at a low rate."""
REOPENED = "A port of the tester had stopped: the engine was restarted, which reopens its ports."


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTester:
    """An engine with open ports and a resolved DUT: what a procedure measures with. It is good for as many
    trials as one likes."""

    setup: Setup
    session: TesterSession
    """An engine, or several as one."""
    profile: Profile
    waits: Waits
    limits: Limits
    opened: dict[str, Any]
    """What the engine reported of the ports."""
    resolved: dict[str, Any]
    unresolved: HostError | None = None
    """Why there is no `resolved`, or why it will not do: its MACs are those of the other side. Only where
    `open_tester` was allowed to go on without."""
    replay: Replay | None = None
    """Trials that need not be made again."""
    capture: CaptureFile | None = None
    """Where received frames are kept that were not what was sent."""
    inside: Inside | None = None
    """The look into the DUT; None if its testbed does not say how."""
    established: ConnectionWish | None = None
    """Connections that are there before each trial, where the DUT keeps state."""
    unreached: HostError | None = None
    """Why there is no `inside` although the testbed says how; only where `open_tester` was allowed to go on
    without."""
    reopen: Callable[[], None] | None = None
    """Starts the tester again, which opens the ports anew; None if it cannot (`TesterSession.can_reopen`)."""

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the engine, for the run file."""
        about = self.session.about
        return {
            "engine": str(about["version"]),
            **{key: str(about[key]) for key in ("dpdk", "compiler", "build_type", "contract")},
        }

    def measurer(
        self,
        on_event: OnEvent,
        *,
        delays: DelayWish | None = None,
        stops_when_failed: bool = False,
        opens_connections: bool = False,
    ) -> EngineMeasurer:
        """Makes trials with this tester, and reports their phases. Where the DUT keeps state, connections are
        established before each (R9693-03).

        Args:
            stops_when_failed: A trial ends as soon as it can no longer pass: for searches that ask for
                nothing but the verdict.
            opens_connections: The trials themselves open them.

        Raises:
            RequestError: The plan has connections, but it is not known how many are to be established.
        """
        wish = None if opens_connections else self._wished_connections()

        def take(document: dict[str, Any]) -> None:
            on_event(TrialPhase.from_contract(document))

        return EngineMeasurer(
            session=self.session,
            directions=self.profile.directions,
            rates=self.profile.rates,
            waits=self.waits,
            limits=self.limits,
            delays=delays,
            stops_when_failed=stops_when_failed,
            replay=self.replay,
            capture=self.capture,
            frame_octets=largest_frame(self.profile.streams),
            on_event=take,
            check_dut=self.setup.check_dut,
            reopen=self.reopen,
            look_for_dut=self._look_for_dut,
            witness=None if self.inside is None else self.inside.witness,
            establish=None if wish is None else lambda each, load: self._establish(each, wish, load),
            establish_s=0.0 if wish is None else wish.count / wish.rate_fps + self.waits.total_s,
        )

    def _establish(self, measurer: LoadMeasurer, wish: ConnectionWish, load: Load) -> Mapping[str, Any]:
        """Before a trial of this load. RequestError if the DUT forgets connections before it has ended."""
        idle_s = established_idle_s(wish, self.waits.total_s, load.sending_s)
        check_timeout(self.setup.connection_timeout_s, idle_s, where="established")
        return ConnectionTrials(self.setup, measurer, self.profile.plan).establish(wish)

    def _look_for_dut(self, forwards: Callable[[], bool]) -> None:
        """DutGoneError if it resolves no address any more, or, where it is not asked for any, forwards not
        even a few frames."""
        ports = self.setup.testbed.ports.values()
        try:
            self.session.request("resolve", timeout_s=RESOLVE_TIMEOUT_S)
        except HostError as error:
            if error.code not in ("engine.not-resolved", "engine.no-device"):
                raise  # of the tester; a device is not there where the DUT was its other end
            raise _gone(self.setup.name, error.what) from error
        if all(port.dut_mac is not None for port in ports) and not forwards():
            raise _gone(self.setup.name, "it forwards no frame of a short trial at a low rate either")

    def check_state(self, *, most: int, highest_fps: float, on_event: OnEvent) -> None:
        """HostError or RequestError if the DUT does not translate as the plan wants, or its table is not
        empty after emptying. Its trials are no part of what is measured.

        Args:
            most: Connections that may be opened for it; and `highest_fps`, how fast.
        """
        quick = replace(
            self, replay=None, waits=STATE_WAITS, limits=replace(self.limits, loss_ratio=0.0), inside=None
        )
        on_event(Note(text="Checking that the DUT translates, and that its table can be emptied."))
        measurer = replace(quick.measurer(on_event, opens_connections=True), look_for_dut=None)
        check_empties(
            self.setup,
            measurer,
            self.profile.plan,
            most=most,
            highest_fps=min(highest_fps, self.profile.theoretical_fps or math.inf),
        )

    def _wished_connections(self) -> ConnectionWish | None:
        """The wish; None if the DUT keeps no state."""
        if self.profile.plan.nat is None:
            return None
        if self.established is None:
            raise RequestError(
                f"the frames of {self.profile.plan.title} belong to connections, but none are to be"
                " established",
                code="procedure.no-connections",
                where="plan",
                next_step="Say how many, and at which rate they are opened: --established 100k"
                " --establish-rate 10kfps (in Python established=ConnectionWish(...)).",
            )
        return self.established

    def after(self, one_pair: OnePair | None) -> OpenTester:
        """The tester that knows what was found before with one address pair. RequestError if another DUT
        answered then."""
        if one_pair is None:
            return self
        check_same_dut(one_pair, self.profile)
        return replace(self, profile=replace(self.profile, one_pair=one_pair))

    def details(self) -> dict[str, Any]:
        """The set-up of a search, for the run file. For a lab, it has the DUT's neighbour table after
        learning (recorded only, SEED-07)."""
        profile = self.profile
        return {
            **self.setup.to_document(),
            "opened": self.opened,
            "resolved": self.resolved,
            "waits": self.waits.to_contract(),
            "one_pair": None if profile.one_pair is None else profile.one_pair.to_document(),
            "host_macs": profile.host_macs,
            "directions": list(profile.directions),
            "mix": profile.mix,
            "traffic": profile.traffic.to_document(macs=profile.macs, host_macs=profile.host_macs),
            "learning": None if profile.learning is None else profile.learning.to_document(),
            **({} if self.established is None else {"established": self.established.to_document()}),
            **({} if profile.rates is None else {"rates": profile.rates.to_document()}),
            # `facts`, so that the slashes in them are not taken for folders.
            **({} if self.inside is None else {"inside_dut": {"facts": dict(self.inside.facts)}}),
        }


@contextmanager
def open_tester(
    setup: Setup,
    plan: AddressPlan,
    *,
    frame_size: FrameSize,
    seed: int,
    directions: tuple[Direction, ...],
    engine: Path | EnginesOf | None,
    rates: DirectionRates | None = None,
    host_macs: HostMacs = "port",
    needs_dut: bool = True,
    waits: Waits = RFC_WAITS,
    limits: Limits | None = None,
    on_event: OnEvent = ignore,
) -> Iterator[OpenTester]:
    """Start the engine, open its ports, find the DUT. Everything is closed when the block ends, however it
    ends.

    The one place where testers begin: the lab and each port are locked here, before anything of them is
    touched.

    Args:
        engine: As from `find_engine`; or the engines of this set-up, if they were found before.
        needs_dut: Whether a DUT that answers neither ARP nor ND, answers on the wrong side, or is not reached
            over SSH, is an error; if not, `OpenTester.unresolved` and `unreached` say so.
        waits: Waits of every trial that is made with this tester.
        limits: Limits by which its trials are judged; default: the testbed's.
        on_event: Called with what changed in the DUT since the last run on it, if it can be looked into.

    Raises:
        RequestError: The DUT, or a port, does not take frames of this size.
        HostError: Another tester has the lab or one of the ports; names its process.
    """
    streams = setup.testbed.streams(plan, frame_size, directions)
    setup.check_frame_sizes(streams)
    check_flow_directions(plan.flows, directions)
    check_tags(plan, {side: port.vlan for side, port in setup.testbed.ports.items()})
    with ExitStack() as stack:
        engines = engine if isinstance(engine, EnginesOf) else EnginesOf(setup, engine)
        locked = stack.enter_context(setup.locked())
        inside, unreached = _look_inside(stack, setup, on_event, needs_dut=needs_dut)
        session = engines.start(stack, locked)
        allowed = os.sched_getaffinity(0)
        stack.enter_context(_running_on(allowed - set(engines.cpus_here) or allowed))
        open_ports = partial(
            engines.open, session, plan, frame_size=frame_size, seed=seed, host_macs=host_macs
        )
        opened = open_ports()

        def reopen() -> None:
            # A new process: net_af_xdp does not open an interface twice in one.
            with _running_on(allowed):
                session.restart()
            open_ports()
            _resolve(session, setup, inside, needs_dut=needs_dut)  # nothing is tried: it was before
            on_event(Note(text=REOPENED))

        resolved, unresolved = _resolve(
            session, setup, inside, needs_dut=needs_dut, try_directions=directions
        )
        for text in way_notes(resolved):
            on_event(Note(text=text))
        rates_bps = {side: opened[side]["line_rate_bps"] for side in SIDES}
        profile = Profile(
            plan=plan,
            frame_size=frame_size,
            seed=seed,
            directions=directions,
            line_rate_bps=min((rate for rate in rates_bps.values() if rate is not None), default=None),
            line_rates_bps=rates_bps,
            theoretical_fps=highest_load_fps(streams, rates_bps, rates),
            sendable_fps=highest_load_fps(streams, rates_bps, rates, may_overload=True),
            rates=rates,
            host_macs=host_macs,
            macs={
                side: PortMacs(tester=opened[side]["mac"], dut=resolved.get(side, {}).get("dut_mac"))
                for side in SIDES
            },
            dut=setup.stated_facts(inside),
            vlans={side: port.vlan for side, port in setup.testbed.ports.items()},
            tunnels=setup.testbed.tunnels,
            one_armed=setup.testbed.one_armed,
        )
        yield OpenTester(
            setup=setup,
            session=session,
            profile=profile,
            waits=waits,
            limits=limits or limits_of(setup.testbed.limits),
            opened=opened,
            resolved=resolved,
            unresolved=unresolved,
            inside=inside,
            unreached=unreached,
            reopen=reopen if session.can_reopen else None,
        )


def _gone(name: str, why: str) -> DutGoneError:
    return DutGoneError(
        f"the DUT answers nothing any more: no frame of the last trial came back, and {why}",
        code="procedure.dut-gone",
        where=name,
        next_step="Look at the DUT: whether it still runs, and its links are up. Then measure again.",
    )


def _look_inside(
    stack: ExitStack, setup: Setup, on_event: OnEvent, *, needs_dut: bool
) -> tuple[Inside | None, HostError | None]:
    """The look into the DUT, or why there is none."""
    # Where events are ignored, there is nothing to report.
    on_note = None if on_event is ignore else lambda text: on_event(Note(text=text))
    try:
        return stack.enter_context(setup.look_inside(on_note)), None
    except HostError as error:
        if needs_dut:
            raise
        return None, error


def _resolve(
    session: TesterSession,
    setup: Setup,
    inside: Inside | None,
    *,
    needs_dut: bool,
    try_directions: tuple[Direction, ...] = (),
) -> tuple[dict[str, Any], HostError | None]:
    """The DUT's MACs, or why there are none, or are not those of these sides. A few frames are sent in the
    directions that are to be tried."""
    resolved: dict[str, Any] = {}
    try:
        tried: dict[str, Any] = {"try_directions": list(try_directions)} if try_directions else {}
        resolved = session.request("resolve", timeout_s=RESOLVE_TIMEOUT_S, **tried)
        check_way(resolved, where=setup.name)
        if inside is not None:
            inside.check_sides(resolved, setup.testbed.dut, where=f"{setup.name}: [dut] left, right")
        return resolved, None
    except HostError as error:
        if needs_dut:
            raise
        return resolved, error


@contextmanager
def _running_on(cpus: set[int]) -> Iterator[None]:
    """Keep this thread (progress, storage), and what it starts meanwhile, on these CPUs: off the tester's, as
    long as that leaves it any, once the engine has started."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def choose_maximum(rate_fps: float | None, profile: Profile, *, where: str) -> float:
    """The user's maximum; for None or infinity the theoretical one, which no line limits. RequestError if
    there is none, or it is above the line rate of a port that sends: to a slower port that receives, more may
    be sent on purpose."""
    check_type(rate_fps, float | None, where=where, may_be_infinite=True)
    if rate_fps is None or math.isinf(rate_fps):
        if profile.theoretical_fps is None:
            raise RequestError(
                "the ports do not know their line rate, so the search needs a maximum rate",
                code="procedure.no-maximum-rate",
                where=where,
                next_step=f"Give {where}, such as 1Mfps, or line_rate in the testbed file.",
            )
        return float(profile.theoretical_fps)
    rig.check_rate(
        rate_fps,
        profile.sendable_fps or profile.theoretical_fps,
        line_rate_bps=profile.line_rate_bps if profile.sendable_fps == profile.theoretical_fps else None,
        frame_size=profile.frame_size,
        where=where,
    )
    return rate_fps
