# SPDX-License-Identifier: Apache-2.0
"""A run that is being measured: what its process writes beside it, as rates and delays of the last moments,
and the search so far, from the run file."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.locks import holder_of
from evenhand.base.visible import visible
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import is_lower_bound
from evenhand.run.figures import RunningTrial, read_running
from evenhand.run.point_document import read_point
from evenhand.run.reading import RunTables, StoredRow, as_mapping, open_to_read
from evenhand.run.run_file import campaign_resource
from evenhand.serve.charts import inside_document

KEPT = 900
"""Samples that are kept: some eight minutes."""
MOST_LAPSES = 100
"""The latest of the tester and its host that are shown."""
SLOPE_OVER_S = 5.0
SAME_S = 1.0
"""When a trial began, by what is written of it, differs by less than that from one moment to the next."""
MOST_TRIALS = 200
"""Trials of the search so far that are shown."""
READING_SHARE = 0.02
"""Largest share of a CPU that reading the file of a run takes."""
SENDING = "sending"


@dataclass(slots=True)
class LiveRun:
    """What pages of one running run show; `look` is called some times a second by one thread."""

    path: Path
    samples: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The oldest first; each has a `number`, which counts all that there were."""
    running: RunningTrial | None = None
    now_event: str = ""
    """Server-sent event of the trial that is made, the same for all pages."""
    lapses_event: str = ""
    """Server-sent event of when the tester or its machine was away lately: from, until (since 1970),
    kinds."""
    found_event: str = ""
    """Server-sent event of trials and points, from the file."""
    version: int = 0
    _numbers: int = 0
    _before: RunningTrial | None = None
    _lapses: list[tuple[float, float, list[str]]] = field(default_factory=list)
    _lapsed: tuple[Any, float] = (None, 0.0)
    """The trial of the latest lapse, and when it began."""
    _written: tuple[int, int] | None = None
    _read_after_s: float = float("-inf")

    def look(self) -> None:
        """Read what is new."""
        with suppress(EvenhandError):
            holder = holder_of(campaign_resource(self.path))
            running = read_running(self.path, holder)
            if running != self.running:
                self.running = running
                self.version += 1
                if running is not None:
                    self._note(running)
                self.now_event = event("now", None if running is None else _running_document(running))
            self._read_file()

    def samples_after(self, number: int) -> list[dict[str, Any]]:
        """Those with a greater number."""
        return [sample for sample in list(self.samples) if sample["number"] > number]

    def _note(self, running: RunningTrial) -> None:
        before, self._before = self._before, running
        if running.left_out:
            self._note_lapses(running)
        if running.phase != SENDING or not running.directions:
            return
        is_same = (
            before is not None
            and before.phase == SENDING
            and (before.trial, before.point, before.repetition, before.rate_fps)
            == (running.trial, running.point, running.repetition, running.rate_fps)
            and before.elapsed_s < running.elapsed_s
        )
        if not is_same or before is None:
            return
        seconds = running.elapsed_s - before.elapsed_s
        self._numbers += 1
        sample: dict[str, Any] = {
            "number": self._numbers,
            "at": running.written_at,
            "trial": running.trial,
            **{
                name: _direction(counts, before.directions.get(name, {}), seconds)
                for name, counts in running.directions.items()
            },
        }
        for name in running.directions:
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
        self.lapses_event = event("lapses", self._lapses)

    def _read_file(self) -> None:
        try:
            facts = self.path.stat()
        except OSError:
            return
        written = (facts.st_mtime_ns, facts.st_size)
        if written == self._written or time.monotonic() < self._read_after_s:
            return
        began_s = time.thread_time()
        with open_to_read(self.path) as tables:
            self.found_event = event("found", _found_so_far(tables))
        self._written = written
        self.version += 1
        self._read_after_s = time.monotonic() + (time.thread_time() - began_s) / READING_SHARE


def event(kind: str, document: Any) -> str:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(document, allow_nan=False)}\n\n"


def _direction(
    now: Mapping[str, float | None], before: Mapping[str, float | None], seconds: float
) -> dict[str, float | None]:
    def step(name: str) -> float:
        return (now.get(name) or 0.0) - (before.get(name) or 0.0)

    lost, settled = now.get("lost_frames") or 0.0, now.get("settled_frames") or 0.0
    return {
        "offered_fps": step("sent_frames") / seconds,
        "received_fps": step("received_frames") / seconds,
        "loss_ratio": lost / settled if settled else None,
        "lost_frames": lost,
        "mean_us": _mean_of_step(now, before),
        "max_us": _us(now.get("max_latency_ns")),
        "median_us": _us(now.get("recent_median_ns")),
        "p999_us": _us(now.get("recent_p999_ns")),
    }


def _mean_of_step(now: Mapping[str, float | None], before: Mapping[str, float | None]) -> float | None:
    """Mean delay of what came since, from both means so far."""
    mean, count = now.get("mean_latency_ns"), now.get("received_frames") or 0.0
    mean_before, count_before = before.get("mean_latency_ns"), before.get("received_frames") or 0.0
    if mean is None or count <= count_before:
        return None
    if mean_before is None:
        return _us(mean)
    of_step = (mean * count - mean_before * count_before) / (count - count_before)
    return _us(of_step) if of_step > 0 else None


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e3


def slope_of(points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of the straight line through pairs of time and value, by least squares; None without three."""
    if len(points) < 3:
        return None
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread > 0 else None


def _running_document(running: RunningTrial) -> dict[str, Any]:
    return {
        "point": visible(running.point),
        "repetition": running.repetition,
        "trial": running.trial,
        "what": visible(running.what),
        "phase": visible(running.phase),
        "share": running.share,
        "elapsed_s": running.elapsed_s,
        "left_s": running.left_s,
        "left_of_all_s": running.left_of_all_s,
        "rate_fps": running.rate_fps,
        "lower_fps": running.lower_fps,
        "upper_fps": running.upper_fps,
        "age_s": running.age_s,
    }


def _found_so_far(tables: RunTables) -> dict[str, Any]:
    """Trials of the search that began last, and the values of all points."""
    searches = tables.rows("searches", "id", "repetition_id", "name", "role", "frame_size", "outcome")
    last = searches[-1] if searches else None
    trials: list[StoredRow] = []
    counts: dict[str, int] = {}
    columns = (
        "search_id",
        "number",
        "purpose",
        "verdict",
        "intended_fps",
        "intended_duration_s",
        "loss_ratio",
    )
    for row in tables.rows("trials", *columns):
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        if last is not None and row["search_id"] == last["id"]:
            trials.append(row)
    inside = None
    for row in tables.rows("trials", "number", "document", last=1):
        inside = inside_document(as_mapping(row["document"], "trials.document"))
        inside = inside and {"trial": row["number"], **inside}
    repetitions: dict[int, list[StoredRow]] = {}
    for row in tables.rows("repetitions"):
        repetitions.setdefault(row["point_id"], []).append(row)
    return {
        "inside": inside,
        "search": None if last is None else visible(last["name"]),
        "verdicts": {visible(verdict): count for verdict, count in counts.items()},
        "trials": [
            {
                "number": row["number"],
                "verdict": visible(row["verdict"]),
                "rate_fps": row["intended_fps"],
                "duration_s": row["intended_duration_s"],
                "loss_ratio": row["loss_ratio"],
                "purpose": visible(row["purpose"]),
            }
            for row in sorted(trials, key=lambda row: row["number"])[-MOST_TRIALS:]
        ],
        "points": [_point(row, repetitions.get(row["id"], [])) for row in tables.rows("points")],
    }


def _point(row: StoredRow, repetitions: Sequence[StoredRow]) -> dict[str, Any]:
    point = read_point(row)
    figure = PROCEDURES[point.procedure].figure
    valued = [each for each in repetitions if each["finished_at"] is not None and each["value"] is not None]
    return {
        "key": visible(point.key),
        "suite": visible(point.suite),
        "addresses": max(point.addresses),
        "frame_size": str(point.frame_size),
        "figure": figure.name,
        "unit": figure.unit,
        "asked": point.repetitions,
        "values": [each["value"] for each in valued],
        "is_at_least": any(
            is_lower_bound(
                each["outcome"],
                None if each["result"] is None else as_mapping(each["result"], "repetitions.result"),
            )
            for each in valued
        ),
        "is_begun": bool(repetitions),
    }
