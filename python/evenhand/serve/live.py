# SPDX-License-Identifier: Apache-2.0
"""A run that is being measured: what its process writes beside it, as rates and delays of the last moments,
and the search so far, from the run file."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import StatisticsError, linear_regression, median
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.visible import visible
from evenhand.procedure.registry import PROCEDURES
from evenhand.results.throughput import is_lower_bound
from evenhand.run.figures import RunningTrial
from evenhand.run.point_document import read_point
from evenhand.run.reading import RunTables, StoredRow, as_mapping, open_to_read
from evenhand.serve.charts import inside_document
from evenhand.serve.index import NO_STAMP, RunIndex, RunningThere, RunState, Stamp, running_trial

KEPT = 900  # samples: some eight minutes
MOST_LAPSES = 100
MOST_TRIALS = 200  # of the search so far
SLOPE_OVER_S = 5.0
SAME_S = 1.0
"""When a trial began, by what is written of it, differs by less than that from one moment to the next."""
TRIALS = (
    "id",
    "search_id",
    "number",
    "purpose",
    "verdict",
    "intended_fps",
    "intended_duration_s",
    "loss_ratio",
)


@dataclass(slots=True)
class LiveRun:
    """What pages of one running run show; `look` is called some times a second by one thread.

    Events are server-sent, the same for all pages: the trial that is made now; when the tester or its machine
    was away lately (from, until, since 1970; kinds); trials and points that were found, from the file.
    """

    path: Path
    there: RunningThere | None = None
    samples: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The oldest first. The first of a trial has no rates, which are those between two moments."""
    running: RunningTrial | None = None
    events: dict[str, str] = field(default_factory=dict)
    _before: RunningTrial | None = None
    _lapses: list[tuple[float, float, list[str]]] = field(default_factory=list)
    _lapsed: tuple[Any, float] = (None, 0.0)  # the trial of the latest lapse, and when it began
    _stamp: Stamp | None = None

    def look(self, stamp: Stamp = NO_STAMP) -> None:
        """Read what is new: of the file, if it has another stamp than before."""
        with suppress(EvenhandError):
            running = running_trial(self.path, self.there)
            if running != self.running:
                self.running = running
                if running is not None:
                    self._note(running)
                self.events["now"] = event("now", None if running is None else _running_document(running))
            if stamp != self._stamp:
                with open_to_read(self.path) as tables:
                    self.events["found"] = event("found", _found_so_far(tables))
                self._stamp = stamp

    def _note(self, running: RunningTrial) -> None:
        if running.left_out:
            self._note_lapses(running)
        if not running.directions:
            return
        before, self._before, seconds = self._before, running, None
        if before is not None and _trial_of(before) == _trial_of(running):
            seconds = running.elapsed_s - before.elapsed_s
            if seconds <= 0 or running.phase != "sending":
                return
        sample: dict[str, Any] = {"at": running.written_at, "trial": running.trial}
        for name, counts in running.directions.items():
            earlier = {} if before is None or seconds is None else before.directions.get(name, {})
            sample[name] = _direction(counts, earlier, seconds)
            sample[name]["slope_us_per_s"] = self._slope(name, sample)
        self.samples.append(sample)

    def _slope(self, direction: str, latest: Mapping[str, Any]) -> float | None:
        """By how much the delay has grown in the last moments, in microseconds a second."""
        points = []
        for sample in (latest, *reversed(self.samples)):
            if sample["trial"] != latest["trial"] or latest["at"] - sample["at"] > SLOPE_OVER_S:
                break
            counts = sample.get(direction, {})
            delay_us = counts.get("median_us") or counts.get("mean_us")
            if delay_us is not None:
                points.append((sample["at"] - latest["at"], delay_us))
        return slope_of(points)

    def _note_lapses(self, running: RunningTrial) -> None:
        """A part that is told again may be longer than it was, or have become one with another."""
        trial = (running.point, running.repetition, running.trial, running.what)
        began_at = running.written_at - running.sending_s
        if self._lapsed[0] == trial and abs(began_at - self._lapsed[1]) < SAME_S:
            began_at = self._lapsed[1]  # so that what was told before has the times that it had
        self._lapsed = (trial, began_at)
        told = [(began_at + part[0], began_at + part[1], list(part[2])) for part in running.left_out]
        first = min(part[0] for part in told)
        self._lapses = sorted([*(part for part in self._lapses if part[1] < first), *told])[-MOST_LAPSES:]
        self.events["lapses"] = event("lapses", self._lapses)


def event(kind: str, document: Any) -> str:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(document, allow_nan=False)}\n\n"


def _trial_of(running: RunningTrial) -> tuple[Any, ...]:
    return running.point, running.repetition, running.trial, running.rate_fps


def _direction(
    now: Mapping[str, float | None], before: Mapping[str, float | None], seconds: float | None
) -> dict[str, float | None]:
    def step(*names: str) -> float:
        """What has been added to the product of these."""
        new, old = (prod(of.get(name) or 0.0 for name in names) for of in (now, before))
        return new - old

    def us(name: str) -> float | None:
        return None if (value_ns := now.get(name)) is None else value_ns / 1e3

    lost, settled = now.get("lost_frames") or 0.0, now.get("settled_frames") or 0.0
    received, delays_ns = step("received_frames"), step("received_frames", "mean_latency_ns")
    return {
        "offered_fps": step("sent_frames") / seconds if seconds else None,
        "received_fps": received / seconds if seconds else None,
        "loss_ratio": lost / settled if settled else None,
        "lost_frames": lost,
        "mean_us": delays_ns / received / 1e3 if received > 0 and delays_ns > 0 else None,
        "max_us": us("max_latency_ns"),
        "median_us": us("recent_median_ns"),
        "p999_us": us("recent_p999_ns"),
    }


def slope_of(points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of the straight line through pairs of time and value, by least squares; None without three."""
    with suppress(StatisticsError):  # all at the same time
        return linear_regression(*zip(*points, strict=True)).slope if len(points) > 2 else None
    return None


def _running_document(running: RunningTrial) -> dict[str, Any]:
    return {
        "point": visible(running.point),
        "repetition": running.repetition,
        "trial": running.trial,
        "what": visible(running.what),
        "phase": visible(running.phase),
        "share": running.share,
        "elapsed_s": running.elapsed_s,
        "written_at": running.written_at,
        "left_s": running.left_s,
        "left_of_all_s": running.left_of_all_s,
        "rate_fps": running.rate_fps,
        "lower_fps": running.lower_fps,
        "upper_fps": running.upper_fps,
        "age_s": running.age_s,
    }


def _found_so_far(tables: RunTables) -> dict[str, Any]:
    """Trials of the search that began last, and the values of all points."""
    (last,) = tables.rows("searches", "id", "name", last=1) or [{"id": None, "name": ""}]
    trials = [row for row in tables.rows("trials", *TRIALS) if row["search_id"] == last["id"]]
    inside = None
    for row in tables.rows("trials", "id", "number", "document", last=1):
        inside = inside_document(as_mapping(row["document"], "trials.document"))
        inside = inside and {"row": row["id"], "trial": row["number"], **inside}
    repetitions: dict[int, list[StoredRow]] = {}
    for row in tables.rows("repetitions"):
        repetitions.setdefault(row["point_id"], []).append(row)
    return {
        "inside": inside,
        "search": visible(last["name"]),
        "trials": [
            {
                "row": row["id"],
                "number": row["number"],
                "verdict": visible(row["verdict"]),
                "rate_fps": row["intended_fps"],
                "duration_s": row["intended_duration_s"],
                "loss_ratio": row["loss_ratio"],
                "purpose": visible(row["purpose"]),
            }
            for row in sorted(trials, key=lambda row: row["number"])[-MOST_TRIALS:]
        ],
        "points": [
            {"number": number, **_point(row, repetitions.get(row["id"], []))}
            for number, row in enumerate(tables.rows("points"), start=1)
        ],
    }


def _point(row: StoredRow, repetitions: Sequence[StoredRow]) -> dict[str, Any]:
    point = read_point(row)
    procedure = PROCEDURES[point.procedure]
    valued = [each for each in repetitions if each["finished_at"] is not None and each["value"] is not None]
    values = [each["value"] for each in valued]
    return {
        "key": visible(point.key),
        "suite": visible(point.suite),
        "addresses": max(point.addresses),
        "frame_size": str(point.frame_size),
        "figure": procedure.figure.name,
        "unit": procedure.figure.unit,
        "asked": point.repetitions,
        "values": values,
        "y": median(values) if values else None,
        "low": min(values, default=None),
        "high": max(values, default=None),
        "is_at_least": any(
            is_lower_bound(
                procedure.read(
                    None if each["result"] is None else as_mapping(each["result"], "repetitions.result")
                ),
                each["outcome"],
            )
            for each in valued
        ),
        "is_begun": bool(repetitions),
    }


LOOK_EVERY_S = 0.3
TELL_EVERY_S = 0.5  # a page is not told more often what happens; samples of the time between come together
KEEP_ALIVE_S = 15.0  # a proxy closes a connection on which nothing is sent
KEEP_ALIVE = ": nothing new\n\n"


@dataclass(slots=True)
class Watcher:
    """Keeps the index and the running runs up to date; `error` says why what is shown may be old."""

    index: RunIndex
    live: dict[str, LiveRun] = field(default_factory=dict)
    error: str = ""
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _seen: tuple[Any, ...] = ()

    async def watch(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception as error:  # a bug must not leave pages that never change again
                self.error = f"{type(error).__name__}: {error}"
            told = {name: dict(live.events) for name, live in self.live.items()}
            seen = (self.index.version, self.error, told)
            if seen != self._seen:
                self._seen = seen
                async with self._news:
                    self._news.notify_all()
            await asyncio.sleep(0.01 if self.index.unread else LOOK_EVERY_S)

    def look(self) -> None:
        """Once."""
        try:
            self.index.refresh()
            self.error = self.index.trouble()
        except EvenhandError as error:
            self.error = str(error)
        self.live = {
            name: self.live.get(name) or LiveRun(path=self.index.folder / name, there=self.index.there)
            for name, each in self.index.entries.items()
            if each.state is RunState.RUNNING
        }
        for name, live in self.live.items():
            entry = self.index.entries[name]
            live.look(entry.stamp)
            whole = {each: getattr(entry.facts, each) for each in ("headlines", "share", "left_s")}
            live.events["run"] = event("run", whole)

    async def changes(self) -> AsyncIterator[bool]:
        """True when there is something new, at once and then whenever there is; False when nothing was sent
        for long."""
        seen: tuple[Any, ...] | None = None
        while True:
            is_new, seen = seen != self._seen, self._seen
            yield is_new
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEP_ALIVE_S), self._news:
                    while seen == self._seen:
                        await self._news.wait()

    async def live_events(self, name: str) -> AsyncIterator[str]:
        """Server-sent events of one run: `samples` with those that this page has not had, `lapses` of tester
        and host, `now` with the trial that is made, `found` with trials and points, `run` with what is known
        of the whole by now; at last `ended` with what has become of the run."""
        until, sent = 0.0, dict[str, str]()
        async for is_new in self.changes():
            entry, live = self.index.entries.get(name), self.live.get(name)
            if live is not None:
                samples = [sample for sample in list(live.samples) if sample["at"] > until]
                events = {**({"samples": event("samples", samples)} if samples else {}), **live.events}
                parts = [text for kind, text in events.items() if sent.get(kind) != text]
                until, sent = max((sample["at"] for sample in samples), default=until), events
                if parts or not is_new:
                    yield "".join(parts) or KEEP_ALIVE
                    await asyncio.sleep(TELL_EVERY_S)
            if entry is None or entry.state is not RunState.RUNNING:
                yield event("ended", "gone" if entry is None else str(entry.state))
                return
