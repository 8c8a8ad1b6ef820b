# SPDX-License-Identifier: Apache-2.0
"""Station 7: one request to several engines at once, each waited for by a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evenhand.base.errors import EngineError, EvenhandError
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

    def begin(
        self,
        name: str,
        arguments: Sequence[Document],
        *,
        on_event: Callable[[int, Document], None] | None,
        answer_within_s: float,
    ) -> None:
        lock = threading.Lock()

        def ask(number: int) -> None:
            member = self._members[number]

            def take(event: Document) -> None:
                self.heard_at[member.name] = time.monotonic()
                if on_event is not None:
                    with lock:
                        on_event(number, event)

            try:
                reply = member.session.request(
                    name, on_event=take, answer_within_s=answer_within_s, **arguments[number]
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
        try:
            name, found = self._done.get(timeout=seconds)
        except queue.Empty:
            return
        self.waiting.discard(name)
        if isinstance(found, EvenhandError):
            self.errors[name] = found
        else:
            self.replies[name] = found

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
