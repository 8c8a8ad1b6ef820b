# SPDX-License-Identifier: Apache-2.0
"""Station 9: what documents of results say in addition to their one number."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.results.throughput import ThroughputFound
from evenhand.run.campaign_record import PointRecord, Repetition
from evenhand.run.unread_results import UnreadResult
from evenhand.trial import TIME_LEFT_OUT, TimeLeftOut, read_left_out, read_time_left_out, show_share

__all__ = [
    "TIME_LEFT_OUT",
    "TimeLeftOut",
    "losses_of",
    "show_share",
    "stated_time_left_out",
    "sustainable_of",
    "time_left_out_at",
    "time_left_out_of",
]
_DIRECTIONS = ("forward", "reverse")


def losses_of(repetition: Repetition) -> Mapping[str, float]:
    """What each direction lost at the throughput, as a share of what was offered in it. Empty if the file
    does not state it."""
    losses = repetition.found.losses if isinstance(repetition.found, ThroughputFound) else None
    return {name: loss.loss_ratio for name, loss in sorted((losses or {}).items())}


def sustainable_of(repetition: Repetition) -> float | None:
    """Per direction: what the DUT would sustain, if a queue of it was filling in what the throughput rests
    on. None if the file does not state it."""
    stated = getattr(repetition.found, "sustainable_fps", None)
    return stated if stated is not None and stated > 0 else None


def time_left_out_of(repetition: Repetition) -> TimeLeftOut | None:
    """How much of the time of its trials was not judged: of what it was asked for, not of a search for the
    tester's own ceiling. Where the trials were not read, as its result states it. None if no trial was judged
    by its clean time."""
    trials = [
        trial.result for search in repetition.searches if search.is_measurement for trial in search.trials
    ]
    are_unread = any(isinstance(trial, UnreadResult) for trial in trials)
    if not trials or (are_unread and repetition.result is not None):
        return stated_time_left_out(repetition.result)
    return TimeLeftOut.of(trials)


def stated_time_left_out(result: Mapping[str, Any] | None) -> TimeLeftOut | None:
    """The same, as a result states it."""
    return read_time_left_out((result or {}).get(TIME_LEFT_OUT))


def time_left_out_at(found: PointRecord) -> TimeLeftOut | None:
    """The same of a point: of its repetitions that have ended."""
    return TimeLeftOut.together(
        time_left_out_of(repetition) for repetition in found.repetitions if repetition.finished_at is not None
    )


_MOST_OCTETS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTrial:
    """Where a campaign is."""

    process: int
    """Id of the process that makes it."""
    point: str
    """Its key."""
    repetition: int
    trial: int | None = None
    """Number of the trial within the repetition, where its trials are numbered."""
    phase: str = ""
    elapsed_s: float = 0.0
    total_s: float = 0.0
    """Length of the whole trial; 0 between trials."""
    written_at: float = 0.0
    """Seconds since 1970."""
    what: str = ""
    """What the trial is for, where it belongs to no search."""
    rate_fps: float | None = None
    """Load of the trial, per direction."""
    lower_fps: float | None = None
    """The search: highest load that counts as passed; 0: none yet."""
    upper_fps: float | None = None
    """Lowest load that counts as failed."""
    left_of_all_s: float | None = None
    """Expected time until the measurement ends, when the trial began."""
    directions: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Counts of each direction since the trial began: fields of `procedure.SoFar`."""
    sending_s: float = 0.0
    """With `left_out`: when it was written, since frame 0 was due."""
    left_out: Sequence[Sequence[Any]] = ()
    """The latest parts that the trial is not judged by: from, until (since frame 0 was due), kinds."""

    @property
    def share(self) -> float:
        """How much of the trial has passed: 0 to 1."""
        return min(1.0, max(0.0, self.elapsed_s / self.total_s)) if self.total_s > 0 else 0.0

    @property
    def left_s(self) -> float:
        """Time left of the trial."""
        return max(0.0, self.total_s - self.elapsed_s)

    @property
    def age_s(self) -> float:
        """For how long nothing was written."""
        return max(0.0, time.time() - self.written_at)


def running_path(run: Path) -> Path:
    """Beside the run, as SQLite's own files are."""
    return run.with_name(f"{run.name}-running")


def write_running(run: Path, running: RunningTrial) -> None:
    """Write at once or not at all; a disk that is full, or a folder that cannot be written, keeps no campaign
    from going on."""
    path = running_path(run)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            # A file of our own: whatever has that name, a link or another user's file, is not written into.
            part.unlink(missing_ok=True)
            descriptor = os.open(
                part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
            )
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps(asdict(replace(running, written_at=time.time()))))
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)


def remove_running(run: Path) -> None:
    """Remove the file: there is no trial any more."""
    with suppress(OSError):
        running_path(run).unlink(missing_ok=True)


def read_running(run: Path, worker: str | None) -> RunningTrial | None:
    """The trial of the process that measures the campaign now; None if there is none, or has not said
    anything yet. The file is untrusted.

    Args:
        worker: As `holder_of` names it.
    """
    if worker is None:
        return None
    try:
        descriptor = os.open(running_path(run), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = checked_running(json.loads(file.read(_MOST_OCTETS)))
    except (OSError, ValueError, RecursionError):
        return None
    if found is None:
        return None
    ours = f"process {found.process}"
    return found if worker == ours or worker.startswith(f"{ours} of user ") else None


def checked_running(document: Any) -> RunningTrial | None:
    if not isinstance(document, Mapping):
        return None
    texts = {key: document.get(key) for key in ("point", "phase", "what")}
    counts = {key: document.get(key) for key in ("process", "repetition")}
    times = {key: document.get(key) for key in ("elapsed_s", "total_s", "written_at", "sending_s")}
    optional = {key: document.get(key) for key in ("rate_fps", "lower_fps", "upper_fps", "left_of_all_s")}
    directions, trial = document.get("directions"), document.get("trial")
    left_out = document.get("left_out")
    is_right = (
        all(isinstance(value, str) for value in texts.values())
        and all(type(value) is int for value in counts.values())
        and all(map(_is_number, times.values()))
        and all(value is None or _is_number(value) for value in optional.values())
        and (trial is None or type(trial) is int)
        and isinstance(directions, Mapping)
        and all(name in _DIRECTIONS and _is_counts(found) for name, found in directions.items())
        and isinstance(left_out, list)
        and all(map(_is_left_out, left_out))
    )
    fields: dict[str, Any] = {
        **texts,
        **counts,
        **times,
        **optional,
        "directions": directions,
        "trial": trial,
        "left_out": left_out,
    }
    return RunningTrial(**fields) if is_right else None


def _is_left_out(part: Any) -> bool:
    try:
        return bool(read_left_out([part])) and all(map(_is_number, part[:2]))
    except (ValueError, TypeError):
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e15 < value < 1e15


def _is_counts(found: Any) -> bool:
    return isinstance(found, Mapping) and all(value is None or _is_number(value) for value in found.values())
