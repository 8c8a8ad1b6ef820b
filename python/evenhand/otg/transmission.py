# SPDX-License-Identifier: Apache-2.0
"""OTG: flows are sent: one trial from a start to its end, or to the client's stop, and what it counts.

The tester lives in a thread of its own, from the configuration that opened its ports to the next one. A stop
ends the sending at a frame that is known, and the trial waits for what is under way as any other does: so
the counts of a flow that was stopped are exact, and its verdict is that of the frames that were sent.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from evenhand.base.errors import EvenhandError
from evenhand.otg.captures import PortCaptures
from evenhand.otg.flow_counts import FlowCounts, PlanFlows, counts_of_class, counts_together
from evenhand.otg.flow_part import SentFlow
from evenhand.otg.links import PortLinks
from evenhand.otg.refusals import BUSY, INTERNAL, OtgError, error_of_model
from evenhand.otg.traffic import OtgTraffic
from evenhand.plan import SIDES, Direction, SideName, receiving_side
from evenhand.procedure import OpenTestbed, TrialPhase
from evenhand.procedure.events import ProcedureEvent
from evenhand.procedure.record import recording
from evenhand.procedure.tester import EnginesOf, OpenTester
from evenhand.rig import Setup
from evenhand.run import RunStore
from evenhand.search import Role
from evenhand.trial import EngineGroup, EngineMember, EngineSession, Load, TesterSession, TrialResult, Waits
from evenhand.trial.group_parts import EarlyStopOfAll

WAITS = Waits(after_routing_s=0.0, after_learning_s=0.05, residual_s=0.5, restabilize_s=0.0)
"""A client waits for the first frame, and for the last counts."""
LEADS_S = (0.1, 1.0, 5.0)
"""From the start to the first frame, see `EngineGroup`: the engine is on this machine, and ready."""
STOP_NOTICE_S = 0.3
"""From a stop to the last frame: the engine looks for it five times a second."""
SAY_AGAIN_S = 0.5
"""The engine takes the first end that reaches it while it sends."""
PATIENCE_S = 10.0
"""For signs of life between the engine and here. No other engine waits for one that says nothing, and both
are on one host, which may be busy; if this process ends, so does the engine's stdin."""
STOPPED_EARLY = "stopped_early"
MOST_WAIT_S = 60.0
"""For a stop: its trial has ended by then."""
MOST_NAMED = 4
ENGINE = "the tester"
"""As reasons of INVALID trials name it."""


class ClientStop(EarlyStopOfAll):
    """Ends the sending when the client says so, and not for what is lost. The engine takes an end only of a
    trial whose sending has begun, and drops what comes sooner: so the end is said until the trial is over."""

    def __init__(self, *, start_unix_ns: int, sending_s: float, wanted: threading.Event) -> None:
        super().__init__(start_unix_ns=start_unix_ns, sending_s=sending_s)
        self._wanted = wanted
        self._until_s = sending_s
        self._say_after_s = 0.0

    def end_s(self) -> float | None:
        """From time to time while a stop is wanted."""
        passed_s = max(time.monotonic() - self._start_s, 0.0)
        if passed_s < self._say_after_s or not self._wanted.is_set():
            return None
        self._say_after_s = passed_s + SAY_AGAIN_S
        end_s = passed_s + STOP_NOTICE_S
        return end_s if end_s < self._until_s else None


class StoppableEngine(EngineGroup):
    """One engine whose trials can be ended in order: only one of several takes the end of its sending from
    its client."""

    quiet_s: ClassVar[float] = PATIENCE_S
    halted_s: ClassVar[float] = PATIENCE_S
    start_leads_s: ClassVar[tuple[float, ...]] = LEADS_S

    def __init__(self, member: EngineMember) -> None:
        super().__init__([member], client_timeout_s=PATIENCE_S)
        self.wanted = threading.Event()
        """Set by whoever wants the sending to end."""

    def early_stop(self, *, start_unix_ns: int, sending_s: float) -> EarlyStopOfAll:
        return ClientStop(start_unix_ns=start_unix_ns, sending_s=sending_s, wanted=self.wanted)

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        if name != "trial":
            return super().request(name, **arguments)
        # Only such a trial asks its client whether it is to end.
        stoppable: dict[str, Any] = {} if "burst" in arguments else {"stop_when_failed": True}
        return as_it_was_sent(super().request(name, **arguments, **stoppable))

    def _judge(self, asked: Any, lost: dict[str, str], before: Any) -> dict[str, Any]:
        for _, error in asked.in_order(asked.errors):
            raise error
        return super()._judge(asked, lost, before)


def as_it_was_sent(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a trial that the client stopped, as that of a trial of that length: its other frames
    were never intended. What was lost fails it as it would have failed the whole."""
    stopped_s = document.get("stopped_early_s")
    if stopped_s is None:
        return document
    reasons = [reason for reason in document["reasons"] if reason["code"] != STOPPED_EARLY]
    verdict = "PASS" if document["verdict"] == "INVALID" and not reasons else document["verdict"]
    kept = {key: value for key, value in document.items() if key != "stopped_early_s"}
    return {**kept, "reasons": reasons, "verdict": verdict, "intended_duration_s": stopped_s}


class StoppableEngines(EnginesOf):
    """The engine of a set-up, to be stopped by a client."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, None)
        self.started: StoppableEngine | None = None

    def start(self, stack: ExitStack, locked: Any) -> TesterSession:
        if self._engines:
            raise OtgError(["testbed: one of several engines cannot be driven by the OTG server"])
        session = stack.enter_context(EngineSession(self._commands[0], inherited=locked))
        streams = self._setup.testbed.tester.streams(one_armed=self._setup.testbed.one_armed)
        self.started = StoppableEngine(
            EngineMember(name=ENGINE, session=session, streams=streams, is_here=True)
        )
        return self.started


def listed(names: Sequence[str]) -> str:
    """Names for people; the others of many are counted."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(slots=True, kw_only=True)
class _Counting:
    """The counts of the trial that runs, or ran last."""

    directions: tuple[Direction, ...] = ()
    is_running: bool = False
    counts: dict[Direction, FlowCounts] = field(default_factory=dict)
    """Those of this trial alone."""
    of_flows: dict[Direction, tuple[FlowCounts, ...]] = field(default_factory=dict)
    """The same of each flow of the plan."""
    before: dict[Direction, FlowCounts] = field(default_factory=dict)
    """Those of earlier trials, which a pause has ended."""
    taken_at_s: float = 0.0
    """Time of the trial at which the counts were taken."""


class Transmission:
    """The tester of one testbed, for one client at a time. All methods may be called from any thread."""

    def __init__(
        self,
        open_setup: Callable[[ExitStack, OtgTraffic], Setup],
        *,
        run: Callable[[], RunStore],
        line_rates: Mapping[SideName, float | None],
    ) -> None:
        """
        Args:
            open_setup: Gives the set-up for this traffic; what it opens is closed by the stack.
            run: Makes the run file, when the first trial begins.
            line_rates: In bit/s, as far as they are known before the ports are open.
        """
        self._open_setup, self._make_run, self._line_rates = open_setup, run, line_rates
        self._jobs: queue.Queue[tuple[Callable[[], None], Future[None]] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._counting = _Counting()
        self._engine: StoppableEngine | None = None
        self._tester: OpenTester | None = None
        self._opened: ExitStack | None = None
        self._store: RunStore | None = None
        self._mean_octets: Mapping[Direction, Fraction] = {}
        self._flows: Mapping[Direction, PlanFlows] = {}
        self._ended = threading.Event()
        self._ended.set()
        self.results: tuple[TrialResult, ...] = ()
        """Those of the trials that have ended since the last start; several if there was a pause."""
        self.sent_unix_ns: tuple[int | None, int | None] = (None, None)
        """Between which moments the frames of these trials were due: all flows begin together."""
        self.captures = PortCaptures()
        self.links = PortLinks()
        self.failure: str | None = None
        """Why the last trial could not be made."""
        self._thread = threading.Thread(target=self._work, name="otg-tester", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    def open(self, traffic: OtgTraffic) -> None:
        """Open the ports for this traffic, and find the DUT.

        Raises:
            OtgError: As `EvenhandError` says; the ports are closed then.
        """
        self._do(lambda: self._open(traffic))
        with self._lock:
            self._counting = _Counting()
        self.results, self.failure, self.captures = (), None, PortCaptures()
        self.sent_unix_ns = (None, None)

    def dut_macs(self) -> Mapping[SideName, str]:
        """Those that the DUT has on the links, as far as ports are open."""
        resolved = {} if self._tester is None else self._tester.resolved
        return {side: resolved[side]["dut_mac"] for side in SIDES if side in resolved}

    def line_rates_bps(self) -> Mapping[SideName, float | None]:
        """The line rates of the ports, as far as they are known."""
        opened = {} if self._tester is None else self._tester.opened
        return {side: opened.get(side, {}).get("line_rate_bps") or self._line_rates[side] for side in SIDES}

    def start(self, traffic: OtgTraffic, flows: tuple[SentFlow, ...]) -> None:
        """Begin to send; the first frame leaves soon afterwards. OtgError if something is sent, or the tester
        has failed since its ports were opened."""
        with self._lock:
            if self.is_running:
                raise OtgError(["traffic: flows are being sent; stop them first"], status=BUSY)
            if self._tester is None:
                why = f": {self.failure}" if self.failure else ""
                raise OtgError([f"traffic: the tester has ended{why}; set the configuration again"])
            directions = tuple(dict.fromkeys(flow.direction for flow in flows))
            if left := [flow.name for flow in traffic.flows_of(directions) if flow not in flows]:
                raise OtgError(
                    [
                        f"traffic.flow_transmit.flow_names: {left[0]} is of the same port, whose flows start"
                        " together"
                    ]
                )
            self._check_links(traffic)
            self._check_captures(traffic, directions)
            self._ended.clear()
            started = {direction: FlowCounts(is_started=True) for direction in directions}
            self._counting = _Counting(directions=directions, is_running=True, counts=started)
            self.results, self.sent_unix_ns = (), (None, None)
        self._begin(traffic, directions, traffic.duration_s)

    def _begin(self, traffic: OtgTraffic, directions: tuple[Direction, ...], duration_s: float) -> None:
        if self._engine is not None:
            self._engine.wanted.clear()
        self._jobs.put((lambda: self._send(traffic, directions, duration_s), Future()))

    def _check_links(self, traffic: OtgTraffic) -> None:
        """OtgError if one was taken down."""
        if down := self.links.taken_down:
            names = [port.name for port in traffic.ports if port.side in down] or sorted(down)
            raise OtgError([f"traffic: the link of {listed(names)} is down; take it up first: port.link"])

    def _check_captures(self, traffic: OtgTraffic, directions: Sequence[Direction]) -> None:
        """OtgError if frames of an end that is known are more than a trial can keep."""
        for direction in directions:
            flows = traffic.flows_of([direction])
            packets = [flow.packets for flow in flows if flow.packets is not None]
            if receiving_side(direction) not in self.captures.sides or not packets:
                continue
            octets, count = traffic.largest_octets, sum(packets)
            most = self.captures.most_of(octets, len(directions))
            if count > most:
                names = listed([flow.name for flow in flows])
                raise OtgError(
                    [
                        f"captures: {count:,} frames of {names} arrive at {flows[0].port_rx}, and"
                        f" {most:,} of {octets} octets can be kept of a start"
                    ]
                )

    def pause(self, traffic: OtgTraffic) -> None:
        """End the sending so that it can be resumed; the counts are exact then.

        Raises:
            OtgError: What is left could not be sent exactly.
        """
        flows = traffic.flows_of(self._counting.directions)
        is_shared = any(flow.places for flow in flows)
        if traffic.burst is not None or is_shared or len({flow.rate_fps for flow in flows}) > 1:
            raise OtgError(
                [
                    "traffic.flow_transmit.state: pause: flows in bursts, of unlike rates, or with others on"
                    " their port can only stop"
                ]
            )
        was_running = self.is_running
        self.stop()
        with self._lock:
            if was_running and self._left_s(traffic) > 0:
                self._counting.counts = {
                    direction: replace(counts, is_paused=True)
                    for direction, counts in self._counting.counts.items()
                }

    def _left_s(self, traffic: OtgTraffic) -> float:
        """What is left to be sent; 0 if that is no frame."""
        direction = self._counting.directions[0]
        flow = next(flow for flow in traffic.flows if flow.direction == direction)
        sent = self._counting.counts[direction].after(self._counting.before.get(direction)).frames_tx
        left_s = traffic.duration_s - sent / flow.rate_fps
        return left_s if left_s * flow.rate_fps >= 0.5 else 0.0

    def resume(self, traffic: OtgTraffic) -> None:
        """Send what is left. Nothing if nothing is paused."""
        with self._lock:
            counting = self._counting
            if self.is_running or not any(counts.is_paused for counts in counting.counts.values()):
                return
            self._check_links(traffic)
            directions, left_s = counting.directions, self._left_s(traffic)
            counting.before = {
                direction: counts.after(counting.before.get(direction))
                for direction, counts in counting.counts.items()
            }
            self._ended.clear()
            counting.is_running, counting.taken_at_s = True, 0.0
            counting.counts = {direction: FlowCounts(is_started=True) for direction in directions}
        self._begin(traffic, directions, left_s)

    def stop(self) -> None:
        """End the sending, and wait until the counts are exact. What is paused is then not resumed."""
        if self._engine is not None:
            self._engine.wanted.set()
        if not self._ended.wait(MOST_WAIT_S):
            raise OtgError(
                [f"the trial did not end within {MOST_WAIT_S:g} s"], status=INTERNAL, kind="internal"
            )
        with self._lock:
            self._counting.counts = {
                direction: replace(counts, is_paused=False)
                for direction, counts in self._counting.counts.items()
            }

    def counts_of(self, flow: SentFlow) -> FlowCounts:
        """What is known of this flow."""
        if not flow.places:
            return self.counts(flow.direction)
        with self._lock:
            found = self._counting.of_flows.get(flow.direction, ())
            is_started = self._counting.counts.get(flow.direction, FlowCounts()).is_started
        if found:
            counts = counts_together([found[place] for place in flow.places])
        else:
            counts = FlowCounts(is_loss_known=not is_started)
        return replace(counts, is_started=True) if is_started else replace(counts, tx_fps=0.0, rx_fps=0.0)

    def counts(self, direction: Direction) -> FlowCounts:
        """What is known of all flows of this direction together."""
        with self._lock:
            found = self._counting.counts.get(direction, FlowCounts())
            return found.after(self._counting.before.get(direction))

    def close(self) -> None:
        """End what is sent, close the ports and the run file."""
        if self.is_running:
            self.stop()
        self._jobs.put(None)
        self._thread.join()

    def _do(self, job: Callable[[], None]) -> None:
        """Have it done by the tester's thread."""
        done: Future[None] = Future()
        self._jobs.put((job, done))
        done.result()

    def _work(self) -> None:
        while (each := self._jobs.get()) is not None:
            job, done = each
            try:
                job()
            except EvenhandError as error:
                done.set_exception(error_of_model(error))
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)
        self._close()
        if self._store is not None:
            self._store.__exit__(None, None, None)

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        self._tester = self._engine = None
        self.links = PortLinks()
        if opened is not None:
            opened.close()

    def _open(self, traffic: OtgTraffic) -> None:
        self._close()
        with ExitStack() as stack:
            setup = self._open_setup(stack, traffic)
            engines = StoppableEngines(setup)
            bed = OpenTestbed(setup=setup, engines=engines)
            self._mean_octets = {each: traffic.mean_octets_of(each) for each in traffic.directions}
            self._flows = {each: traffic.plan_flows(each) for each in traffic.directions}
            self._tester = stack.enter_context(
                bed.tester(
                    plan=traffic.plan,
                    frame_size=traffic.frame_size,
                    directions=traffic.directions,
                    seed=traffic.seed,
                    waits=WAITS,
                )
            )
            self._engine = engines.started
            if self._engine is not None:
                self.links = PortLinks(self._engine.members[0].session)
            self._opened = stack.pop_all()

    def _send(self, traffic: OtgTraffic, directions: tuple[Direction, ...], duration_s: float) -> None:
        try:
            assert self._tester is not None
            self.failure = None
            result = self._measure(self._tester, traffic, directions, duration_s)
            self._take_result(result)
            self.results += (result,)
        except Exception as error:  # whatever it is, the client must see that the flows have ended, and why
            self.failure = str(error) or type(error).__name__
            self._close()  # the next configuration starts another engine
        finally:
            with self._lock:
                self._counting.is_running = False
                self._counting.counts = {
                    direction: replace(counts, is_started=False, tx_fps=0.0, rx_fps=0.0)
                    for direction, counts in self._counting.counts.items()
                }
            self._ended.set()

    def _measure(
        self, tester: OpenTester, traffic: OtgTraffic, directions: tuple[Direction, ...], duration_s: float
    ) -> TrialResult:
        """One trial, which is stored. That a DUT forwards nothing is what its client asked for: nothing is
        looked for."""
        if self._store is None:
            self._store = self._make_run()
            self._store.__enter__()
        rate_fps, rates = traffic.rates_of(directions)
        goal = {"rate_fps": rate_fps, "duration_s": duration_s, "loss_ratio": 0.0}
        mine = replace(tester, profile=replace(tester.profile, directions=directions, rates=rates))
        name = listed([flow.name for flow in traffic.flows_of(directions)])
        with recording(self._store, mine, name, kind="trial", goal=goal, role=Role.TRIAL) as record:
            capture = self.captures if self.captures.sides else None
            measurer = replace(mine.measurer(self._take_event), look_for_dut=None, capture=capture)
            result = measurer.offer(Load(rate_fps=rate_fps, duration_s=duration_s, burst=traffic.burst))
            record.add_result(result, number=1, purpose="single", is_full_length=True)
            record.finish_with(str(result.verdict))
        return result

    def _take_event(self, event: ProcedureEvent) -> None:
        if not isinstance(event, TrialPhase) or not event.directions:
            return
        with self._lock:
            passed_s = max(event.elapsed_s - self._counting.taken_at_s, 0.01)
            for direction, so_far in event.directions.items():
                before = self._counting.counts.get(direction, FlowCounts())
                octets = self._mean_octets[direction]
                self._counting.of_flows[direction] = self._flows[direction].after_so_many(
                    so_far.sent_frames,
                    so_far.received_of_flows,
                    self._counting.of_flows.get(direction, ()),
                    passed_s,
                )
                self._counting.counts[direction] = FlowCounts(
                    frames_tx=so_far.sent_frames,
                    frames_rx=so_far.received_frames,
                    octets_tx=round(so_far.sent_frames * octets),
                    octets_rx=round(so_far.received_frames * octets),
                    tx_fps=max(0.0, (so_far.sent_frames - before.frames_tx) / passed_s),
                    rx_fps=max(0.0, (so_far.received_frames - before.frames_rx) / passed_s),
                    loss_percent=100 * (so_far.loss_ratio or 0.0),
                    mean_ns=so_far.mean_latency_ns,
                    max_ns=so_far.max_latency_ns,
                    is_started=True,
                )
            self._counting.taken_at_s = event.elapsed_s

    def _take_result(self, result: TrialResult) -> None:
        with self._lock:
            starts = [each.get("start") for each in result.raw.get("engines", [])]
            if starts and starts[0] is not None:
                began_ns = starts[0]["actual_unix_ns"]
                first_ns = self.sent_unix_ns[0] if self.results else None
                self.sent_unix_ns = first_ns or began_ns, began_ns + round(result.sent_s * 1e9)
            for direction, counted in result.directions.items():
                latency = counted.latency
                sizes, octets = counted.classes, self._mean_octets[direction]
                self._counting.of_flows[direction] = tuple(
                    counts_of_class(each) for each in sizes if each.flow is not None
                )
                sent, received = counted.offered_frames, counted.received_frames
                self._counting.counts[direction] = FlowCounts(
                    frames_tx=sent,
                    frames_rx=received,
                    octets_tx=sum(each.offered_frames * each.frame_size for each in sizes)
                    or round(sent * octets),
                    octets_rx=sum(each.received_frames * each.frame_size for each in sizes)
                    or round(received * octets),
                    loss_percent=100 * counted.loss_ratio,
                    min_ns=latency.min_ns,
                    mean_ns=latency.mean_ns,
                    max_ns=latency.max_ns,
                )
