# SPDX-License-Identifier: Apache-2.0
"""Station 7: one request to several engines at once, each waited for by a thread of its own."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from evenhand.base.errors import EngineError, EvenhandError, HostError
from evenhand.plan import SIDES
from evenhand.trial.engine_process import Halt
from evenhand.trial.engine_session import Document, EngineSession, EventCallback

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMember:
    """One of several engines."""

    name: str
    session: EngineSession
    streams: int
    """Streams of each side."""
    is_here: bool
    """Whether it is on this machine, and has its clock."""


class Silence:
    """For how long an engine has not reported on a trial of which it will report again."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._goes_on_for_s = 0.0
        """Rest of the trial at its last report. What comes before the first, and after the end, may take
        long."""

    def hear(self, event: Document) -> None:
        self._goes_on_for_s = event.get("total_s", 0.0) - event.get("elapsed_s", 0.0)
        self._seconds = 0.0

    def pass_by(self, seconds: float) -> None:
        self._seconds += seconds

    def is_longer_than(self, seconds: float) -> bool:
        return seconds < self._seconds and 2 * seconds < self._goes_on_for_s


TOO_LATE = "engine.too-late"
"""An engine was not ready when its first frame was due, and has sent nothing."""


class GroupRequest:
    """What each member has answered, and when it was heard last."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self._members = members
        self._done: queue.SimpleQueue[tuple[str, Document | EvenhandError]] = queue.SimpleQueue()
        self._is_stopped = False
        self._first_reply: tuple[str, float] | None = None
        self.waiting = {member.name for member in members}
        self.replies: dict[str, Document] = {}
        self.errors: dict[str, EvenhandError] = {}
        self.heard_at: dict[str, float] = {}
        self._silence = {member.name: Silence() for member in members}
        self._halts = {member.name: Halt(member.session.pid) for member in members}

    @property
    def is_too_late_for_all(self) -> bool:
        """Whether no engine was ready when its first frame was due: then none has sent one."""
        return len(self.errors) == len(self._members) and all(
            error.code == TOO_LATE for error in self.errors.values()
        )

    def begin(
        self,
        name: str,
        arguments: Sequence[Document],
        *,
        on_event: Callable[[int, Document], None] | None,
        answer_within_s: float,
        ended_within_s: float = math.inf,
    ) -> None:
        lock = threading.Lock()

        def ask(number: int) -> None:
            member = self._members[number]

            def take(event: Document) -> None:
                self.heard_at[member.name] = time.monotonic()
                self._silence[member.name].hear(event)
                if on_event is not None:
                    with lock:
                        on_event(number, event)

            try:
                reply = member.session.request(
                    name,
                    on_event=take,
                    answer_within_s=answer_within_s,
                    ended_within_s=ended_within_s,
                    **arguments[number],
                )
            except EvenhandError as error:
                self._done.put((member.name, error))
            except BaseException as error:  # what an event's listener raised: it must not be waited for
                self._done.put(
                    (member.name, EngineError(repr(error), code="trial.contract-violated", where=name))
                )
            else:
                self._done.put((member.name, reply))

        for number, member in enumerate(self._members):
            self.heard_at[member.name] = time.monotonic()
            threading.Thread(target=ask, args=(number,), daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Take in what has come, at most so long."""
        began = time.monotonic()
        try:
            name, found = self._done.get(timeout=seconds)
        except queue.Empty:
            # A host that kept this process from its CPU for longer has silenced no engine.
            passed = min(time.monotonic() - began, 2 * seconds)
            for member in self._members:
                if member.name in self.waiting:
                    self._silence[member.name].pass_by(passed)
                    self._halts[member.name].pass_by(passed)
            return
        self.waiting.discard(name)
        if isinstance(found, EvenhandError):
            self.errors[name] = found
        else:
            self.replies[name] = found
            self._first_reply = self._first_reply or (name, time.monotonic())

    def fallen_silent(self, seconds: float) -> list[str]:
        """Those that should have reported on the trial for so long, and have not."""
        return [
            member.name
            for member in self._members
            if member.name in self.waiting and self._silence[member.name].is_longer_than(seconds)
        ]

    def left_behind(self, seconds: float) -> list[tuple[str, str]]:
        """Those that have not answered so long after the first one that has, and what is to be said of
        them."""
        if self._first_reply is None or time.monotonic() - self._first_reply[1] < seconds:
            return []
        why = (
            f"it was still at the trial {seconds:g} s after engine {self._first_reply[0]} had ended it; the"
            " clock of its host may have jumped"
        )
        return [(name, why) for name in self.waiting]

    def halted(self, seconds: float) -> list[EngineMember]:
        """Those whose process here a signal has stopped, for so long."""
        return [
            member
            for member in self._members
            if member.name in self.waiting and self._halts[member.name].is_as_long_as(seconds)
        ]

    def stop(self) -> None:
        """Have those end early that are still at it."""
        if self._is_stopped:
            return
        self._is_stopped = True
        for member in self._members:
            if member.name in self.waiting:
                member.session.stop()

    def in_order(self, found: Mapping[str, Found]) -> list[tuple[EngineMember, Found]]:
        return [(member, found[member.name]) for member in self._members if member.name in found]


def named(error: EvenhandError, name: str) -> EvenhandError:
    """The error of one engine, which says of which."""
    of_engine = type(error)(
        f"engine {name}: {error.what}", code=error.code, where=error.where, next_step=error.next_step
    )
    for note in getattr(error, "__notes__", ()):
        of_engine.add_note(note)
    return of_engine


NOTICE_S = 0.5
"""Seconds from the decision to the last frame: until then each engine has heard of it, also one elsewhere."""


class EarlyStopOfAll:
    """Adds up what each engine has lost for good, as its `progress` events report it. What one engine does,
    it does for all: it stops the trial as soon as more is lost than the whole trial may lose, and no sooner.
    """

    def __init__(self, *, start_unix_ns: int, sending_s: float) -> None:
        """Watch a trial whose first frame is due then, by this machine's clock, and that lasts so long. If
        that clock jumps later, nothing changes."""
        self._start_s = time.monotonic() + (start_unix_ns - time.time_ns()) / 1e9
        self._sending_s = sending_s
        self._lost: dict[int, int] = {}
        self._allowed = 0
        self._has_ended = False

    def watching(self, on_event: Callable[[int, Document], None] | None) -> Callable[[int, Document], None]:
        """The same listener, with a look at each event on its way."""

        def take(number: int, event: Document) -> None:
            if (failing := event.get("failing")) is not None:
                self._lost[number] = failing["lost_frames"]
                self._allowed = failing["allowed_frames"]
            if on_event is not None:
                on_event(number, event)

        return take

    @property
    def has_failed(self) -> bool:
        return sum(self._lost.copy().values()) > self._allowed

    def end_s(self) -> float | None:
        """When all are to send their last frame, in seconds from the first one; once, when the trial has
        failed. None if it has not, or ends as soon by itself."""
        if self._has_ended or not self.has_failed:
            return None
        self._has_ended = True
        end_s = time.monotonic() - self._start_s + NOTICE_S
        return end_s if end_s < self._sending_s else None


CLOCK_LOOKS = 8
LARGEST_OFFSET_S = 0.1
"""Offset of an engine's clock from that of this machine: what is less is corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClock:
    """How far an engine's clock is ahead of this machine's, and how wrong that may be."""

    offset_us: float = 0.0
    uncertainty_us: float = 0.0

    def to_contract(self) -> dict[str, float]:
        return {"offset_us": self.offset_us, "uncertainty_us": self.uncertainty_us}


def compare_clocks(members: Iterable[EngineMember]) -> dict[str, ComparedClock]:
    """Compare the clock of each engine. HostError if one is off."""
    found = {}
    for member in members:
        try:
            found[member.name] = compare_clock(member)
        except EvenhandError as error:
            raise named(error, member.name) from error
        offset_s = found[member.name].offset_us / 1e6
        if abs(offset_s) - found[member.name].uncertainty_us / 1e6 > LARGEST_OFFSET_S:
            raise HostError(
                f"the clock of engine {member.name} is {abs(offset_s):.3f} s"
                f" {'ahead of' if offset_s > 0 else 'behind'} this machine's"
                f" (limit {LARGEST_OFFSET_S:g} s)",
                code="trial.engine-clock-off",
                where=f"engine {member.name}",
                next_step="Synchronise the clocks of both hosts with PTP or NTP.",
            )
    return found


def compare_clock(member: EngineMember) -> ComparedClock:
    """The look with the shortest way there and back says most."""
    if member.is_here:
        return ComparedClock()
    looks = []
    for _ in range(CLOCK_LOOKS):
        before_ns = time.time_ns()
        there_ns = int(member.session.request("clock")["time_unix_ns"])
        after_ns = time.time_ns()
        looks.append(
            ComparedClock(
                offset_us=(there_ns - (before_ns + after_ns) / 2) / 1e3,
                uncertainty_us=(after_ns - before_ns) / 2e3,
            )
        )
    return min(looks, key=lambda look: look.uncertainty_us)


MOST_NAMED = 100
"""Most unreachable hosts that are named, as many as one engine names."""
_COUNTS = ("sent_frames", "received_frames", "settled_frames", "lost_frames")


def progress_of_all(engines: int, on_event: EventCallback) -> Callable[[int, Document], None]:
    """Takes the number of an engine and its `progress` event. Whenever the first reports something, the sums
    of what all have reported last are passed on."""

    def add_up(event: Document, reported: Sequence[Document]) -> Document:
        directions = {
            name: _direction(
                [each["directions"][name] for each in reported if name in each.get("directions", {})]
            )
            for name in event.get("directions", {})
        }
        return {
            # `failing` is one engine's word to the group.
            **{key: value for key, value in event.items() if key != "failing"},
            **{key: sum(each.get(key, 0) for each in reported) for key in ("sent_frames", "received_frames")},
            **({"directions": directions} if directions else {}),
        }

    return _in_step_with_the_first(engines, on_event, add_up)


def learning_of_all(engines: int, on_event: EventCallback) -> Callable[[int, Document], None]:
    """The same of `learning` events: each engine has all hosts behind its own ports."""

    def add_up(event: Document, reported: Sequence[Document]) -> Document:
        sides: Document = {
            side: {
                key: sum(each[side][key] for each in reported if side in each)
                for key in ("hosts", "reachable")
            }
            for side in SIDES
            if side in event
        }
        return {**event, **sides}

    return _in_step_with_the_first(engines, on_event, add_up)


def _in_step_with_the_first(
    engines: int, on_event: EventCallback, add_up: Callable[[Document, Sequence[Document]], Document]
) -> Callable[[int, Document], None]:
    """`add_up` gets the event of the first engine, and the last of each that has reported one, in their
    order."""
    last: dict[int, Document] = {}

    def take(number: int, event: Document) -> None:
        last[number] = event
        if number == 0:
            on_event(add_up(event, [last[each] for each in range(engines) if each in last]))

    return take


def _direction(reported: Sequence[Document]) -> Document:
    timed = [each for each in reported if each["latency"]["mean_ns"] is not None]
    frames = sum(each["received_frames"] for each in timed)
    return {
        **{key: sum(each[key] for each in reported) for key in _COUNTS},
        "latency": {
            "mean_ns": sum(each["latency"]["mean_ns"] * each["received_frames"] for each in timed) / frames
            if frames
            else None,
            "max_ns": max((each["latency"]["max_ns"] for each in timed), default=None),
        },
        **_of_flows([each["received_of_flows"] for each in reported if "received_of_flows" in each]),
    }


def _of_flows(counts: Sequence[Sequence[int]]) -> Document:
    return {"received_of_flows": [sum(each) for each in zip(*counts, strict=True)]} if counts else {}


def sum_of_learning(replies: Sequence[Document]) -> Document:
    """Sum of the replies to `learn`: hosts count once for each engine that has them."""

    def side_of_all(side: str) -> dict[str, Any]:
        reported = [reply[side] for reply in replies]
        return {
            **{
                key: sum(each[key] for each in reported)
                for key in ("hosts", "reachable", "questions_answered")
            },
            "rounds": max(each["rounds"] for each in reported),
            "unreachable": [address for each in reported for address in each["unreachable"]][:MOST_NAMED],
        }

    sides: dict[str, Any] = {side: side_of_all(side) for side in SIDES if side in replies[0]}
    return {
        **replies[0],
        "stopped": any(reply["stopped"] for reply in replies),
        "rate_share": min(reply.get("rate_share", 1.0) for reply in replies),
        **sides,
    }
