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
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.base.folders import read_state, replace_state
from evenhand.base.locks import held_names
from evenhand.run.folder import run_files
from evenhand.serve.run_facts import (
    RunFacts,
    RunState,
    Stamp,
    is_being_measured,
    read_facts,
    stamp_of,
    state_of,
)

VERSION = 2
READING_S = 0.5
"""For so long new files are read before what is known is shown."""
SCAN_SHARE = 0.003
"""Largest share of a CPU that looking for new files takes, and reading a file that grows."""
SAVE_EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run of the folder."""

    name: str
    """Name of the file."""
    stamp: Stamp
    facts: RunFacts
    state: RunState


@dataclass(slots=True)
class RunIndex:
    """All runs of a folder. `refresh` is called by one thread; whoever reads `entries` has a whole state."""

    folder: Path
    cache: Path | None = None
    """None: nothing is kept."""
    title: str = ""
    """What pages call the folder."""
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By name, the latest first."""
    unread: int = 0
    """Files that are still to be read."""
    version: int = 0
    """Another one after each change."""
    _known: dict[str, tuple[Stamp, RunFacts]] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _readings: int = 0
    _not_before_s: dict[str, float] = field(default_factory=dict)
    """When a file that grows is read again, by the monotonic clock."""
    _is_saved: bool = True
    _save_after_s: float = float("-inf")
    _scan_after_s: float = float("-inf")

    @classmethod
    def of(cls, folder: Path, title: str = "") -> RunIndex:
        """The index of this folder, with what is kept of it."""
        index = cls(folder=folder, cache=cache_path(folder), title=title)
        index._load()
        return index

    def refresh(self, *, is_forced: bool = False) -> bool:
        """Look at the folder. Whether anything has changed; what was not read yet is at the next call.

        Raises:
            HostError: The folder cannot be read.
        """
        began_s, was_running = time.thread_time(), self._running
        found = None if is_forced or self.unread or time.monotonic() >= self._scan_after_s else self._facts()
        is_scan = found is None
        if found is None:
            found = {name: facts for name, facts in run_files(self.folder).items() if _is_text(name)}
            for name in self._known.keys() - found.keys():
                del self._known[name]
                self._is_saved = False
        locks = held_names() if is_scan else None
        self._running = {name for name, facts in found.items() if self._is_measured(name, facts, locks)}
        # Without the time to read what is new: a first look at large runs would put off the next by minutes.
        looked_s = time.thread_time() - began_s
        for name in was_running & found.keys() - self._running:
            with suppress(OSError):  # its last words may have come after the first look at it
                found[name] = self.path(name).lstat()
        changed = [name for name, facts in found.items() if not self._is_known(name, facts)]
        changed.sort(key=lambda name: found[name].st_mtime_ns, reverse=True)
        until_s, readings, unread = time.monotonic() + READING_S, self._readings, 0
        for name in changed:
            if name not in self._running:
                self._not_before_s.pop(name, None)  # its last words decide what has become of it
            if time.monotonic() > until_s:
                unread += name not in self._known
            elif self._not_before_s.get(name, 0.0) <= time.monotonic():
                self._read(name, found[name])
                if self._is_measured(name, found[name], None):
                    self._running.add(name)
        self.unread = unread
        is_new = (is_scan or self._readings != readings or self._running != was_running) and self._show()
        if is_scan:
            spent_s = 0.0 if self.unread else looked_s
            self._scan_after_s = time.monotonic() + max(1.0, spent_s / SCAN_SHARE)
        return is_new

    def path(self, name: str) -> Path:
        return self.folder / name

    def save(self) -> None:
        """Keep what is known. Where nothing can be written, it is read again the next time."""
        if self.cache is None or self._is_saved:
            return
        began_s = time.thread_time()
        document = {name: [stamp, facts.to_document()] for name, (stamp, facts) in self._known.items()}
        with suppress(OSError):
            # As one text: thousands of small values, one after the other, would take seconds.
            text = json.dumps(document)
            replace_state(self.cache, {"version": VERSION, "runs": [_digest(text), text]})
        self._is_saved = True
        spent_s = time.thread_time() - began_s
        self._save_after_s = time.monotonic() + max(SAVE_EVERY_S, spent_s / SCAN_SHARE)

    def _load(self) -> None:
        kept: Any = None if self.cache is None else read_state(self.cache, version=VERSION, key="runs")
        # What this program has not written, or not with these fields, is made again.
        with suppress(TypeError, ValueError, LookupError, AttributeError, RecursionError):
            digest, text = kept
            runs = json.loads(text) if digest == _digest(text) else {}
            known = {
                name: (tuple(stamp), RunFacts.from_document(facts)) for name, (stamp, facts) in runs.items()
            }
            self._known = known

    def _facts(self) -> dict[str, os.stat_result] | None:
        """Only of what is measured now: the rest of the folder has its turn later. None if one is gone."""
        try:
            return {name: self.path(name).lstat() for name in self._running}
        except OSError:
            return None

    def _read(self, name: str, facts: os.stat_result) -> None:
        began_s = time.thread_time()
        self._known[name] = (stamp_of(facts), read_facts(self.path(name)))
        self._is_saved = False
        self._readings += 1
        self._not_before_s[name] = time.monotonic() + (time.thread_time() - began_s) / SCAN_SHARE

    def _is_known(self, name: str, facts: os.stat_result) -> bool:
        return name in self._known and self._known[name][0] == stamp_of(facts)

    def _is_measured(self, name: str, facts: os.stat_result, locks: Collection[str] | None) -> bool:
        """A file that was not read yet is asked when it is."""
        is_open = name in self._known and self._known[name][1].finished_at is None
        return is_open and is_being_measured(self.path(name), facts, locks)

    def _show(self) -> bool:
        entries = [
            Entry(
                name=name, stamp=stamp, facts=facts, state=state_of(facts, is_measured=name in self._running)
            )
            for name, (stamp, facts) in self._known.items()
        ]
        entries.sort(key=lambda entry: (entry.facts.created_at, entry.name), reverse=True)
        shown = {entry.name: entry for entry in entries}
        is_new = shown != self.entries
        if is_new:
            self.entries = shown
            self.version += 1
        if time.monotonic() > self._save_after_s:
            self.save()
        return is_new


def cache_path(folder: Path) -> Path:
    """Where the index of a folder is kept: below $XDG_CACHE_HOME, ~/.cache by default."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path(os.path.expanduser("~/.cache"))
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return root / "evenhand" / "serve" / f"{digest}.json"


def _is_text(name: str) -> bool:
    """A name that is not in UTF-8 has no address."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
