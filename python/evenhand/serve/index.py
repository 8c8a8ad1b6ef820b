# SPDX-License-Identifier: Apache-2.0
"""The runs of a folder, kept up to date, with an index in this user's cache.

The index is never a truth of its own: each entry belongs to one state of one file, and is read anew when the
file is another one. An index that is lost, or damaged, is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from evenhand.analysis import analyse
from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.folders import read_state, replace_state
from evenhand.base.locks import held_names, holder_of
from evenhand.base.visible import visible
from evenhand.report.page_head import STYLES, dut_line, first_verdicts, headline_figures
from evenhand.run import PointState, read_record
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_record import CampaignRecord
from evenhand.run.campaign_status import read_status
from evenhand.run.figures import RunningTrial, read_running
from evenhand.run.folder import run_files
from evenhand.run.run_file import campaign_resource

MEASURED_WITHIN_S = 48 * 3600
"""A file that was not written for so long is measured by nobody: each trial is written, and so is a campaign
that goes on."""

Stamp = tuple[int, int, int, int, int]
NO_STAMP: Stamp = (0, 0, 0, 0, 0)
RunningThere = Callable[[], Mapping[str, RunningTrial | None]]


class RunState(StrEnum):
    """What has become of a run. INTERRUPTED: it ended in order before it was done, by Ctrl-C or an error.
    KILLED: its process is gone, and had no time to say so."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    KILLED = "killed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run in one row. All texts come from a file of others; times are UTC in ISO 8601.

    `is_ended`: its last session has ended in order. `dut`: names of its testbeds. `headlines`: verdict of
    each IP version, or else numbers; `style` of them: good, bad or empty. `share` and `left_s`: how much of a
    campaign is measured, and the expected time that is left. `error`: why it cannot be read; `is_passing`:
    for now, since the cause is not in the file.
    """

    title: str = ""
    created_at: str = ""
    finished_at: str | None = None
    is_ended: bool = False
    dut: str = ""
    dut_facts: str = ""
    procedures: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    headlines: tuple[str, ...] = ()
    style: str = ""
    point_count: int = 0
    points_done: int = 0
    share: float | None = None
    left_s: float | None = None
    error: str = ""
    is_passing: bool = False


def stamp_of(facts: os.stat_result) -> Stamp:
    """What is another one when the file was written or replaced."""
    # The last one changes with the file's rights, too.
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def is_being_measured(path: Path, facts: os.stat_result, names: Collection[str] | None = None) -> bool:
    """Whether a process of this machine writes it now, whoever has started that.

    Args:
        names: Those of all locks, for who asks for many runs.
    """
    with suppress(EvenhandError):
        if time.time() - facts.st_mtime < MEASURED_WITHIN_S:
            resource = campaign_resource(path)
            return (names is None or resource.file_name in names) and holder_of(resource) is not None
    return False


def running_trial(path: Path, there: RunningThere | None = None) -> RunningTrial | None:
    """The trial of a run that is made now."""
    if there is not None:
        return there().get(path.name)
    return read_running(path, holder_of(campaign_resource(path)))


def state_of(facts: RunFacts, *, is_measured: bool) -> RunState:
    """What has become of it."""
    if facts.error:
        return RunState.UNREADABLE
    if is_measured:
        return RunState.RUNNING
    if facts.finished_at is not None:
        return RunState.FINISHED
    return RunState.INTERRUPTED if facts.is_ended else RunState.KILLED


def read_facts(path: Path, written_s: float) -> RunFacts:
    """What the file says; a file that is no run, or of another version, says why.

    Args:
        written_s: When the file was written, since 1970.
    """
    try:
        record = read_record(path, with_trials=False)
        is_left = record.is_campaign and record.finished_at is None
        return _facts(record, *(_progress(path) if is_left else ()))
    except EvenhandError as error:
        why, is_passing = error.what, isinstance(error, HostError)
    except Exception as error:  # a bug, or a file that nobody foresaw: the others are shown all the same
        why, is_passing = f"{type(error).__name__}: {error}", False
    written = f"{datetime.fromtimestamp(written_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return RunFacts(title=visible(path.name), created_at=written, error=visible(why), is_passing=is_passing)


def _progress(path: Path) -> tuple[float | None, float]:
    """Share of a campaign that is measured, and the time that is left of it."""
    points = read_status(path).points
    asked, left = sum(each.point.repetitions for each in points), sum(each.left for each in points)
    return (asked - left) / asked if asked else None, time_left(points).stated_s if left else 0.0


def _facts(record: CampaignRecord, share: float | None = None, left_s: float | None = None) -> RunFacts:
    verdicts = [each for each in first_verdicts(analyse(record)) if each.finding in STYLES]
    headlines = [each.sentence for each in verdicts] or headline_figures(record)
    is_bad = any(each.finding == "hides" for each in verdicts)
    return RunFacts(
        title=visible(record.name),
        created_at=visible(record.created_at),
        finished_at=None if record.finished_at is None else visible(record.finished_at),
        is_ended=bool(record.sessions) and record.sessions[-1].finished_at is not None,
        dut=visible(", ".join(record.testbeds) or _dut_of_searches(record)),
        dut_facts=visible(dut_line(record).removeprefix("DUT: ").removesuffix("not described.")),
        procedures=tuple(dict.fromkeys(visible(point.point.procedure) for point in record.points)),
        plans=tuple(dict.fromkeys(visible(point.point.plan) for point in record.points)),
        headlines=tuple(visible(line) for line in headlines),
        style="bad" if is_bad else "good" if verdicts else "",
        point_count=len(record.points),
        points_done=sum(
            point.state in (PointState.MEASURED, PointState.NO_NUMBER) for point in record.points
        ),
        share=share,
        left_s=left_s,
    )


def _dut_of_searches(record: CampaignRecord) -> str:
    names = (search.setup.get("name") for search in record.other_searches)
    return ", ".join(dict.fromkeys(name for name in names if isinstance(name, str)))


VERSION = 2
AGAIN_S = 10.0  # after so long a file is read again that could not be read for a cause outside of it
READING_S = 0.5  # for so long new files are read before what is known is shown
SCAN_SHARE = 0.003  # largest share of a CPU that looking for new files takes, and reading a file that grows


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run of the folder; `name` is that of its file."""

    name: str
    stamp: Stamp
    facts: RunFacts
    state: RunState


@dataclass(slots=True)
class RunIndex:
    """All runs of a folder, which pages call `title`. `refresh` is called by one thread; whoever reads
    `entries`, by name and the latest first, has a whole state. Where the folder has copies of those of
    another host, `there` says what is measured there now, and `trouble` why nothing comes from it, empty if
    something does."""

    folder: Path
    cache: Path | None = None  # None: nothing is kept
    title: str = ""
    there: RunningThere | None = None
    trouble: Callable[[], str] = str
    entries: Mapping[str, Entry] = field(default_factory=dict)
    unread: int = 0  # files that are still to be read
    version: int = 0  # another one after each change
    _known: dict[str, tuple[Stamp, RunFacts]] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _not_before_s: dict[str, float] = field(default_factory=dict)
    """When a file that grows is read again, by the monotonic clock."""
    _scan_after_s: float = float("-inf")

    @classmethod
    def of(cls, folder: Path, **options: Any) -> RunIndex:
        """The index of this folder, with what is kept of it."""
        return cls(folder=folder, cache=cache_path(folder), **options)

    def refresh(self, *, is_forced: bool = False) -> bool:
        """Look at the folder. Whether anything has changed; what was not read yet is at the next call.

        Raises:
            HostError: The folder cannot be read.
        """
        began_s, was_running, is_read = time.thread_time(), self._running, False
        is_scan = is_forced or self.unread > 0 or time.monotonic() >= self._scan_after_s
        found = None if is_scan else self._facts()
        locks = held_names() if found is None else None
        if found is None:
            is_scan, found = True, {name: of for name, of in run_files(self.folder).items() if _is_text(name)}
            self._known = {name: of for name, of in self._known.items() if name in found}
        self._running = {name for name, facts in found.items() if self._is_measured(name, facts, locks)}
        # Without the time to read what is new: a first look at large runs would put off the next by minutes.
        looked_s = time.thread_time() - began_s
        for name in was_running & found.keys() - self._running:
            with suppress(OSError):  # its last words may have come after the first look at it
                found[name] = (self.folder / name).lstat()
        changed = [name for name, of in found.items() if self._is_to_be_read(name, of)]
        until_s, unread = time.monotonic() + READING_S, 0
        for name in sorted(changed, key=lambda name: found[name].st_mtime_ns, reverse=True):
            if time.monotonic() > until_s:
                unread += name not in self._known
            elif name not in self._running or self._not_before_s.get(name, 0.0) <= time.monotonic():
                is_read = True
                self._read(name, found[name])
        if self.unread and not unread:
            self.save()
        self.unread = unread
        is_new = (is_scan or is_read or self._running != was_running) and self._show()
        if is_scan:
            spent_s = 0.0 if self.unread else looked_s
            self._scan_after_s = time.monotonic() + max(1.0, spent_s / SCAN_SHARE)
        return is_new

    def entry(self, name: str) -> Entry:
        """The run of this name. RequestError if there is none."""
        if name not in self.entries:
            raise RequestError(
                f"there is no run {name!r}",
                code="serve.no-such-run",
                where=name,
                next_step="It may have been removed or renamed: look at the list of runs.",
            )
        return self.entries[name]

    def save(self) -> None:
        """Keep what is known: when all files of a large folder have been read, and at the end. Where nothing
        can be written, it is read again the next time."""
        if self.cache is not None:
            # As one text: thousands of small values, one after the other, would take seconds.
            runs = {name: of for name, of in self._known.items() if not of[1].is_passing}
            text = json.dumps({name: [stamp, asdict(facts)] for name, (stamp, facts) in runs.items()})
            with suppress(OSError):
                replace_state(self.cache, {"version": VERSION, "runs": [_digest(text), text]})

    def __post_init__(self) -> None:
        kept: Any = None if self.cache is None else read_state(self.cache, version=VERSION, key="runs")
        # What this program has not written, or not with these fields, is made again.
        with suppress(TypeError, ValueError, LookupError, AttributeError, RecursionError):
            digest, text = kept
            runs = json.loads(text) if digest == _digest(text) else {}
            self._known = {
                name: (
                    tuple(stamp),
                    RunFacts(
                        **dict[str, Any](
                            (key, tuple(of) if isinstance(of, list) else of) for key, of in facts.items()
                        )
                    ),
                )
                for name, (stamp, facts) in runs.items()
            }

    def _facts(self) -> dict[str, os.stat_result] | None:
        """Only of what is measured now: the rest of the folder has its turn later. None if one is gone."""
        try:
            return {name: (self.folder / name).lstat() for name in self._running}
        except OSError:
            return None

    def _read(self, name: str, facts: os.stat_result) -> None:
        began_s = time.thread_time()
        found = read_facts(self.folder / name, facts.st_mtime)
        self._known[name] = (stamp_of(facts), found)
        again_s = AGAIN_S if found.is_passing else (time.thread_time() - began_s) / SCAN_SHARE
        self._not_before_s[name] = time.monotonic() + again_s
        if self._is_measured(name, facts, None):
            self._running.add(name)

    def _is_to_be_read(self, name: str, facts: os.stat_result) -> bool:
        """Whether it is another file than was read, or could not be read for a cause that may have gone."""
        if name not in self._known or self._known[name][0] != stamp_of(facts):
            return True
        return self._known[name][1].is_passing and self._not_before_s.get(name, 0.0) <= time.monotonic()

    def _is_measured(self, name: str, facts: os.stat_result, locks: Collection[str] | None) -> bool:
        """A file that was not read yet is asked when it is."""
        is_open = name in self._known and self._known[name][1].finished_at is None
        if self.there is not None:
            return is_open and name in self.there()
        return is_open and is_being_measured(self.folder / name, facts, locks)

    def _show(self) -> bool:
        entries = [
            Entry(
                name=name, stamp=stamp, facts=facts, state=state_of(facts, is_measured=name in self._running)
            )
            for name, (stamp, facts) in self._known.items()
        ]
        entries.sort(key=lambda entry: (entry.facts.created_at, entry.name), reverse=True)
        shown = {entry.name: entry for entry in entries}
        if is_new := shown != self.entries:
            self.entries = shown
            self.version += 1
        return is_new


def cache_path(folder: Path) -> Path:
    """Where the index of a folder is kept: below $XDG_CACHE_HOME, ~/.cache by default."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path(os.path.expanduser("~/.cache"))
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return root / "evenhand" / "serve" / f"{digest}.json"


def _is_text(name: str) -> bool:
    """A name that is not in UTF-8 has no address."""
    return name.encode(errors="ignore").decode() == name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
