# SPDX-License-Identifier: Apache-2.0
"""Station 9: a folder of runs: which files in it are runs, and which of them may go when there are too
many."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.folders import read_state, replace_state, state_file
from evenhand.base.locks import InUseError, holder_of
from evenhand.base.new_file import real_path
from evenhand.run.reading import open_to_read
from evenhand.run.run_file import SUFFIX, campaign_locked, campaign_resource
from evenhand.spec.presets import PRESET_PREFIX

DAY_S = 86_400
_HEAD_OCTETS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What a run file says first."""

    created_at: datetime
    is_finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLimits:
    """What a folder of runs may hold. None: as much as there is."""

    days: int | None = None
    """A run that was begun longer ago goes."""
    octets: int | None = None
    """Size of all its runs and their pages; the oldest go until it is not exceeded."""
    least: int = 1
    """Number of the latest runs that stay, however old or large they are."""
    is_unfinished_kept: bool = True
    """A run that was cut short stays: a campaign can be resumed, and nothing distinguishes one from another
    that is being measured but its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A run that goes, or stays."""

    path: Path
    octets: int
    """Size with its page; 0 for a file that is not a run."""
    reason: str
    """Why it goes; or why it stays, although a limit wants it to go."""
    page: Path | None = None
    """The page of that run, which goes with it."""


@dataclass(slots=True, kw_only=True)
class Pruning:
    """What became of a folder."""

    gone: list[Pruned] = field(default_factory=list)
    held: list[Pruned] = field(default_factory=list)
    """Runs that a limit wants to go, and that stay."""
    not_runs: list[Pruned] = field(default_factory=list)
    """Files with the name of a run that are none, or cannot be read: they are never touched."""
    runs: int = 0
    """Number of runs that are left."""
    octets: int = 0
    """Size of these, with their pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    path: Path
    head: RunHead
    facts: os.stat_result
    page: Path | None
    page_octets: int

    @property
    def octets(self) -> int:
        return self.facts.st_size + self.page_octets


def runs_in(folder: Path) -> list[Path]:
    """Files of this folder with the name of a run, by name: no links, nothing in folders below, nothing
    hidden.

    Raises:
        HostError: The folder cannot be read.
    """
    return sorted(folder / name for name in run_files(folder))


def run_files(folder: Path) -> dict[str, os.stat_result]:
    """The same by name, with the facts of each. Errors as in `runs_in`."""
    found = {}
    try:
        with os.scandir(folder) as files:
            for file in files:
                if file.name.endswith(SUFFIX) and not file.name.startswith("."):
                    with contextlib.suppress(FileNotFoundError):
                        facts = file.stat(follow_symlinks=False)
                        if stat.S_ISREG(facts.st_mode):
                            found[file.name] = facts
    except OSError as error:
        raise HostError(
            f"this folder cannot be read: {error.strerror}",
            code="run.folder-not-readable",
            where=str(folder),
            next_step="Name a folder with run files.",
        ) from error
    return found


def read_head(path: Path) -> RunHead:
    """When a run was begun, and whether it has ended. Errors as in `open_to_read`."""
    with open_to_read(path) as tables:
        rows = tables.rows("run", "created_at", "finished_at")
        if not rows:
            raise ValueError("it has no row in its table run")
        created_at = datetime.fromisoformat(rows[0]["created_at"])
        if created_at.tzinfo is None:
            created_at = created_at.replace(tzinfo=UTC)
        return RunHead(created_at=created_at, is_finished=rows[0]["finished_at"] is not None)


def prune(
    folder: Path, limits: FolderLimits, *, page_mark: re.Pattern[bytes], now: datetime, is_dry: bool = False
) -> Pruning:
    """Delete the runs of a folder that a limit wants to go, each with the page beside it.

    Only finished runs of ours go, that are not locked, that no process has open, and that have no journal
    beside them. Whatever else is in the folder stays.

    Args:
        page_mark: A page that goes with its run begins so.
        is_dry: Delete nothing; say what would go.

    Raises:
        RequestError: There is no such folder.
        HostError: It cannot be read, or a file cannot be deleted.
    """
    if not folder.is_dir():
        raise RequestError(
            "this is not a folder", code="run.no-such-folder", where=str(folder), next_step="Name a folder."
        )
    found, pruning = list[_Candidate](), Pruning()
    for path in runs_in(folder):
        try:
            found.append(_candidate(path, page_mark))
        except (EvenhandError, OSError) as error:
            reason = error.what if isinstance(error, EvenhandError) else str(error.strerror)
            pruning.not_runs.append(Pruned(path=path, octets=0, reason=reason))
    found.sort(key=lambda each: each.head.created_at, reverse=True)
    total = sum(each.octets for each in found)
    kept = len(found)
    # The oldest first, until the folder is small enough.
    for place, each in reversed(list(enumerate(found))):
        wish = _wish(each, limits, total, now)
        if wish is None or place < limits.least:
            continue
        hold = _hold(each, limits) or (None if is_dry else _delete(each))
        if hold is not None:
            pruning.held.append(_pruned(each, hold))
            continue
        pruning.gone.append(_pruned(each, wish))
        total -= each.octets
        kept -= 1
    pruning.runs, pruning.octets = kept, total
    return pruning


def _candidate(path: Path, page_mark: re.Pattern[bytes]) -> _Candidate:
    facts = path.lstat()
    head = read_head(path)
    page: Path | None = path.with_suffix(".html")
    page_octets = 0
    try:
        page_facts = path.with_suffix(".html").lstat()
        if stat.S_ISREG(page_facts.st_mode) and page_mark.match(_beginning(path.with_suffix(".html"))):
            page_octets = page_facts.st_size
        else:
            page = None
    except OSError:
        page = None
    return _Candidate(path=path, head=head, facts=facts, page=page, page_octets=page_octets)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_OCTETS)


def _pruned(each: _Candidate, reason: str) -> Pruned:
    return Pruned(path=each.path, octets=each.octets, reason=reason, page=each.page)


def _wish(each: _Candidate, limits: FolderLimits, total: int, now: datetime) -> str | None:
    """Which limit wants it to go."""
    days = (now - each.head.created_at).total_seconds() / DAY_S
    if limits.days is not None and days > limits.days:
        return f"started {int(days)} days ago"
    if limits.octets is not None and total > limits.octets:
        return "the folder is too large"
    return None


def _hold(each: _Candidate, limits: FolderLimits) -> str | None:
    """Why it must stay."""
    if os.path.lexists(each.path.with_name(f"{each.path.name}-journal")):
        return "it is being written, or was when its process was killed"
    holder = holder_of(campaign_resource(each.path))
    if holder is not None:
        return f"it is in use by {holder}"
    opener = next(_openers(each.facts), None)
    if opener is not None:
        return f"process {opener} has it open"
    if not each.head.is_finished and limits.is_unfinished_kept:
        return "it has not finished"
    return None


def _openers(facts: os.stat_result) -> Iterator[int]:
    """Processes that have the file open, as far as this user may see them."""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            for link in folder.iterdir():
                opened = link.stat()
                if (opened.st_dev, opened.st_ino) == (facts.st_dev, facts.st_ino):
                    yield int(folder.parent.name)
        except OSError:
            continue


def _delete(each: _Candidate) -> str | None:
    """Why it was not deleted after all. HostError if the folder does not allow it."""
    try:
        with campaign_locked(each.path):
            facts = each.path.lstat()
            seen = (facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size)
            before = each.facts
            if seen != (before.st_dev, before.st_ino, before.st_mtime_ns, before.st_size):
                return "it has changed meanwhile"
            each.path.unlink()
            if each.page is not None:
                each.page.unlink(missing_ok=True)
    except InUseError as error:
        return error.what
    except (FileNotFoundError, RequestError):
        return "it is gone already"
    except OSError as error:
        raise HostError(
            f"this run cannot be deleted: {error.strerror}",
            code="run.not-deletable",
            where=str(each.path),
            next_step="Make its folder writable for your user.",
        ) from error
    return None


def newest(paths: Sequence[Path], count: int) -> list[Path]:
    """The runs among them that were begun last; what is not a run is not among them."""
    heads = []
    for path in paths:
        try:
            heads.append((read_head(path).created_at, path))
        except EvenhandError:
            continue
    return [path for _, path in sorted(heads)[-count:]]


VERSION = 1
MOST_KEPT = 100
"""Campaigns. The oldest are forgotten."""


def remember_source(path: Path, source: Path) -> None:
    """Keep where the campaign file is. Where nothing can be written, `find_source` finds less.

    Args:
        path: What the campaign is stored in.
    """
    if source.name.startswith(PRESET_PREFIX):
        return
    key = str(real_path(path))
    kept = {name: place for name, place in _remembered().items() if name != key}
    entries = {key: str(real_path(source)), **kept}
    with contextlib.suppress(OSError):
        replace_state(
            state_file("campaigns.json"),
            {"version": VERSION, "sources": dict(list(entries.items())[:MOST_KEPT])},
        )


def find_source(path: Path, name: str) -> Path | None:
    """The campaign file of this name: beside the campaign's file, in this folder, or where it was when the
    campaign began; None if it is in none of them. A preset is part of the program, and needs no file."""
    if name.startswith(PRESET_PREFIX):
        return Path(name)
    places = [path.parent / name, Path(name)]
    remembered = _remembered().get(str(real_path(path)))
    if remembered is not None and Path(remembered).name == name:
        places.append(Path(remembered))
    return next((place for place in places if place.is_file()), None)


def resume_command(path: Path, source: Path | None = None, *, on_page: bool = False) -> str:
    """`evenhand run --resume FILE`; the campaign file is named too where it would not be found by itself.

    Args:
        path: What the campaign is stored in.
        source: The campaign file, or its name alone; None: it is where `find_source` finds it, or it is
            not known.
        on_page: It is read elsewhere, and by others: no folder of this machine is named, and who measures as
            root may be read by users who are not.
    """
    if source is None or find_source(path, source.name) is not None:
        return f"{_sudo(path, on_page)}evenhand run --resume {_shown(path, on_page)}"
    named = shlex.quote(str(source)) if source.is_file() else f"FOLDER/{shlex.quote(source.name)}"
    return f"{_sudo(path, on_page)}evenhand run {named} --resume --run {_shown(path, on_page)}"


def again_command(path: Path, *, on_page: bool = False) -> str:
    """The command that measures once more what ended early or at the tester's ceiling; `on_page` as in
    `resume_command`."""
    return f"{_sudo(path, on_page)}evenhand run --resume {_shown(path, on_page)} --again"


def _shown(path: Path, on_page: bool) -> str:
    return shlex.quote(path.name if on_page else str(path))


def _sudo(path: Path, on_page: bool) -> str:
    """A campaign that root has begun is root's to go on with. A command for root's own terminal gets its sudo
    there, if it was typed before; on a page all others read it, but not where there is no sudo."""
    if not path.is_file():
        return ""
    if not os.access(path, os.W_OK):
        return "sudo "
    is_roots = on_page and os.geteuid() == 0 == path.stat().st_uid
    return "sudo " if is_roots and shutil.which("sudo") is not None else ""


def _remembered() -> dict[str, str]:
    sources = read_state(state_file("campaigns.json"), version=VERSION, key="sources")
    return (
        {name: place for name, place in sources.items() if isinstance(place, str)}
        if isinstance(sources, dict)
        else {}
    )
