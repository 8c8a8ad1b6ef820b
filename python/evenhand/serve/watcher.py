# SPDX-License-Identifier: Apache-2.0
"""One task looks at the folder, however many pages show it; pages wait for what it finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.serve.index import RunIndex
from evenhand.serve.live import LiveRun, event
from evenhand.serve.run_facts import RunState

LOOK_EVERY_S = 0.3
KEEP_ALIVE_S = 15.0
"""A proxy closes a connection on which nothing is sent."""
KEEP_ALIVE = ": nothing new\n\n"


@dataclass(slots=True)
class Watcher:
    """Keeps the index and the running runs up to date."""

    index: RunIndex
    live: dict[str, LiveRun] = field(default_factory=dict)
    trouble: Callable[[], str] = str
    """Why nothing comes from the host that the folder is of; empty if something does."""
    error: str = ""
    """Why what is shown may be old."""
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _seen: tuple[Any, ...] = ()

    async def watch(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            seen = (
                self.index.version,
                self.error,
                *((name, live.version) for name, live in self.live.items()),
            )
            if seen != self._seen:
                self._seen = seen
                async with self._news:
                    self._news.notify_all()
            await asyncio.sleep(0.01 if self.index.unread else LOOK_EVERY_S)

    def look(self) -> None:
        """Once."""
        try:
            self.index.refresh()
            self.error = self.trouble()
        except EvenhandError as error:
            self.error = str(error)
        running = {name for name, each in self.index.entries.items() if each.state is RunState.RUNNING}
        self.live = {
            name: self.live.get(name) or LiveRun(path=self.index.path(name)) for name in sorted(running)
        }
        for live in self.live.values():
            live.look()

    async def changes(self) -> AsyncIterator[bool]:
        """True when there is something new, at once and then whenever there is; False when nothing was sent
        for long."""
        seen: tuple[Any, ...] | None = None
        while True:
            is_new = seen != self._seen
            seen = self._seen
            yield is_new
            try:
                async with asyncio.timeout(KEEP_ALIVE_S), self._news:
                    while seen == self._seen:
                        await self._news.wait()
            except TimeoutError:
                continue

    async def live_events(self, name: str) -> AsyncIterator[str]:
        """Server-sent events of one run: `samples` with those that this page has not had, `lapses` of tester
        and host, `now` with the trial that is made, `found` with trials and points; at last `ended` with what
        has become of the run."""
        number, sent = 0, ("", "", "")
        async for is_new in self.changes():
            entry, live = self.index.find(name), self.live.get(name)
            if live is not None:
                samples = live.samples_after(number)
                number = samples[-1]["number"] if samples else number
                texts = (live.lapses_event, live.now_event, live.found_event)
                parts = [event("samples", samples)] if samples else []
                parts += [text for text, before in zip(texts, sent, strict=True) if text != before]
                sent = texts
                if parts or not is_new:
                    yield "".join(parts) or KEEP_ALIVE
            if entry is None or entry.state is not RunState.RUNNING:
                yield event("ended", "gone" if entry is None else str(entry.state))
                return
