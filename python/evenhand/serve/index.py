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
from collections.abc import Mapping
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

VERSION = 1
READING_S = 0.5
"""For so long new files are read before what is known is shown."""
SCAN_SHARE = 0.02
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

    @property
    def octets(self) -> int:
        return self.stamp[2]


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
        now_s = time.monotonic()
        running = [entry for entry in self.entries.values() if entry.state is RunState.RUNNING]
        if not (is_forced or self.unread or now_s >= self._scan_after_s):
            return self._look_at(running)
        began_s = time.thread_time()
        is_new = self._take({name: facts for name, facts in run_files(self.folder).items() if _is_text(name)})
        spent_s = 0.0 if self.unread else time.thread_time() - began_s
        self._scan_after_s = now_s + max(1.0, spent_s / SCAN_SHARE)
        return is_new

    def find(self, name: str) -> Entry | None:
        """The run of this name; None if there is none, whatever else has that name."""
        return self.entries.get(name)

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
            replace_state(self.cache, {"version": VERSION, "runs": json.dumps(document)})
        self._is_saved = True
        spent_s = time.thread_time() - began_s
        self._save_after_s = time.monotonic() + max(SAVE_EVERY_S, spent_s / SCAN_SHARE)

    def _load(self) -> None:
        kept = None if self.cache is None else read_state(self.cache, version=VERSION, key="runs")
        if not isinstance(kept, str):
            return
        try:
            runs = json.loads(kept)
            self._known = {
                name: (_stamp(each[0]), RunFacts.from_document(each[1])) for name, each in runs.items()
            }
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
            self._known = {}

    def _take(self, found: Mapping[str, os.stat_result]) -> bool:
        gone = self._known.keys() - found.keys()
        for name in gone:
            del self._known[name]
            self._is_saved = False
        locks = held_names()
        held = {
            name
            for name, facts in found.items()
            if self._may_be_measured(name) and is_being_measured(self.path(name), facts, locks)
        }
        changed = [name for name, facts in found.items() if not self._is_known(name, facts)]
        changed.sort(key=lambda name: found[name].st_mtime_ns, reverse=True)
        until_s, unread = time.monotonic() + READING_S, 0
        for name in changed:
            if name not in held:
                self._not_before_s.pop(name, None)  # its last words decide what has become of it
            if time.monotonic() > until_s:
                unread += name not in self._known
            elif self._not_before_s.get(name, 0.0) <= time.monotonic():
                self._read(name, found[name])
                if self._may_be_measured(name) and is_being_measured(self.path(name), found[name]):
                    held.add(name)
        self.unread = unread
        return self._show(held)

    def _look_at(self, running: list[Entry]) -> bool:
        """Only at what is measured now: the rest of the folder has its turn later."""
        held, is_due = set(), False
        for entry in running:
            path = self.path(entry.name)
            with suppress(OSError):
                facts = path.lstat()
                if is_being_measured(path, facts):
                    held.add(entry.name)
                else:
                    is_due = True  # it has ended, perhaps with a last word
                if not self._is_known(entry.name, facts):
                    if entry.name not in held:
                        self._not_before_s.pop(entry.name, None)
                    if self._not_before_s.get(entry.name, 0.0) <= time.monotonic():
                        self._read(entry.name, facts)
                        is_due = True
        return self._show(held) if is_due else False

    def _read(self, name: str, facts: os.stat_result) -> None:
        began_s = time.thread_time()
        self._known[name] = (stamp_of(facts), read_facts(self.path(name)))
        self._is_saved = False
        if self._known[name][1].finished_at is None:
            spent_s = time.thread_time() - began_s
            self._not_before_s[name] = time.monotonic() + spent_s / SCAN_SHARE
        else:
            self._not_before_s.pop(name, None)

    def _is_known(self, name: str, facts: os.stat_result) -> bool:
        return name in self._known and self._known[name][0] == stamp_of(facts)

    def _may_be_measured(self, name: str) -> bool:
        """A file that was not read yet is asked when it is."""
        return name in self._known and self._known[name][1].finished_at is None

    def _show(self, held: set[str]) -> bool:
        entries = [
            Entry(name=name, stamp=stamp, facts=facts, state=state_of(facts, is_measured=name in held))
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


def _stamp(values: Any) -> Stamp:
    device, inode, octets, written = values
    if not all(type(value) is int for value in values):
        raise TypeError("stamp")
    return device, inode, octets, written
