# SPDX-License-Identifier: Apache-2.0
"""Station 7: one request to several engines at once, each waited for by a thread of its own."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evenhand.base.errors import EngineError, EvenhandError
from evenhand.trial.engine_end import Halt
from evenhand.trial.engine_session import Document, EngineSession

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMember:
    """One of several engines."""

    name: str
    session: EngineSession
    streams: int
    """Streams of each side."""
    is_here: bool
    """Whether it is on this host, and has its clock."""


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


class GroupRequest:
    """What each member has answered, and when it was heard last."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self._members = members
        self._done: queue.SimpleQueue[tuple[str, Document | EvenhandError]] = queue.SimpleQueue()
        self._is_stopped = False
        self.waiting = {member.name for member in members}
        self.replies: dict[str, Document] = {}
        self.errors: dict[str, EvenhandError] = {}
        self.heard_at: dict[str, float] = {}
        self._silence = {member.name: Silence() for member in members}
        self._halts = {member.name: Halt(member.session.pid) for member in members}

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

    def fallen_silent(self, seconds: float) -> list[str]:
        """Those that should have reported on the trial for so long, and have not."""
        return [
            member.name
            for member in self._members
            if member.name in self.waiting and self._silence[member.name].is_longer_than(seconds)
        ]

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
