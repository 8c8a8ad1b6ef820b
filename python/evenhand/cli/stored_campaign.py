# SPDX-License-Identifier: Apache-2.0
"""Which stored campaign `evenhand run --resume` means, and whether anything of it is left to be measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.new_file import real_path
from evenhand.cli.common import err, quoted
from evenhand.run import SUFFIX, CampaignRecord, read_record
from evenhand.run.campaign.events import difference
from evenhand.run.campaign_status import read_status
from evenhand.run.folder import find_source, newest, resume_command, runs_in
from evenhand.spec.points import CampaignPlan


def repetitions_left(stored: Path | None, *, again: bool) -> dict[str, int] | None:
    """Repetitions that are left of each point of a campaign that is resumed; None: it begins."""
    if stored is None:
        return None
    return {
        point.point.key: point.left_again if again else point.left for point in read_status(stored).points
    }


def stored_and_source(file: Path, run: Path | None, *, is_resumed: bool) -> tuple[Path | None, Path]:
    """The campaign's file that is to be gone on with, if one is, and the file that it was written from."""
    if file.suffix == SUFFIX:
        if not is_resumed:
            read_status(file)  # the run of a single verb is refused as what it is
            raise RequestError(
                "this is the file that stores a campaign",
                code="cli.file-is-a-stored-campaign",
                where=str(file),
                next_step=f"Resume it: {resume_command(file)}",
            )
        source = read_status(file).source
        found = find_source(file, source)
        if found is None:
            raise RequestError(
                f"this campaign was made from {source}, which is neither next to this file, nor in the"
                " current folder, nor at its original place",
                code="cli.campaign-file-not-found",
                where=str(file),
                next_step=f"Give its path: {resume_command(file, Path(source))}",
            )
        return file, found
    if not is_resumed:
        if run is not None and run.exists():
            _refuse_stored(run, file)
        return None, file
    return (_newest_of(file) if run is None else run), file


def _refuse_stored(run: Path, source: Path) -> None:
    """RequestError if this campaign is what the file stores already: it is resumed, not begun in it again.
    The store says of any other file that it is taken."""
    try:
        status = read_status(run)
    except EvenhandError:
        return
    if status.source == source.name and not status.is_merged:
        raise RequestError(
            f"this file already stores a campaign of {source.name}",
            code="cli.campaign-stored-already",
            where=f"--run {run}",
            next_step=f"Resume it: {resume_command(run, source)}; or name another file.",
        )


def _newest_of(source: Path) -> Path:
    """The file of that campaign, in this folder, that was begun last: one that is not finished, else a
    finished one, which is reported later, since the campaign file may have been changed after it.
    RequestError if there is none.
    """
    found: list[tuple[bool, str, Path]] = []
    for path in Path().glob(f"*{SUFFIX}"):
        with suppress(EvenhandError):
            status = read_status(path)
            if status.source == source.name and not status.is_merged:
                found.append((status.finished_at is None, status.created_at, path))
    if found:
        return max(found)[-1]
    raise RequestError(
        f"there is no campaign of {source.name} in this folder",
        code="cli.no-campaign-here",
        where="--resume",
        next_step=f"Name its file: evenhand run --resume FILE{SUFFIX}; or start the campaign:"
        f" evenhand run {quoted(source)}",
    )


def is_finished(stored: Path, source: Path, plan: CampaignPlan, *, again: bool, is_found: bool) -> bool:
    """Whether nothing of it is left to be measured.

    Args:
        is_found: The user did not name the file that it is stored in. Then a finished campaign is a
            RequestError, since it was not meant.
    """
    _check_unchanged(stored, source, json.loads(json.dumps(plan.spec)))
    if is_found and not again:
        _check_unfinished(stored, source)
    left = repetitions_left(stored, again=again) or {}
    return read_status(stored).finished_at is not None and not any(left.values())


def _check_unfinished(path: Path, source: Path) -> None:
    if read_status(path).finished_at is not None:
        raise RequestError(
            f"there is no unfinished campaign of {source.name} in this folder: {path} is finished",
            code="cli.campaign-finished",
            where="--resume",
            next_step=f"See its results: evenhand report {quoted(path)}; or start again: evenhand"
            f" run {quoted(source)}",
        )


def _check_unchanged(path: Path, source: Path, spec: dict[str, object]) -> None:
    """RequestError with what was changed in the campaign file since the campaign began."""
    changes = difference(read_status(path).spec, spec)
    if changes:
        shown = "; ".join(changes[:8]) + (f"; and {len(changes) - 8} more" if len(changes) > 8 else "")
        raise RequestError(
            f"the campaign file was changed after the campaign in {path} began: {shown}",
            code="cli.campaign-file-changed",
            where=str(source),
            next_step=f"Undo the change, or start another campaign: evenhand run {quoted(source)}",
        )


def read_runs(paths: Sequence[Path], *, last: int | None = None) -> list[CampaignRecord]:
    """All runs that are named, each once, without their trials.

    What lies in a folder under a run's name, and cannot be read as one, is left out, and said on stderr.

    Args:
        last: Only so many, those that were begun last.

    Raises:
        RequestError, HostError: As `read_record`, of a file that is named itself; or there is no run.
    """
    named: dict[Path, bool] = {}
    for path in paths:
        if path.is_dir():
            for file in runs_in(path):
                named.setdefault(real_path(file), False)
        else:
            named[real_path(path)] = True
    # A head takes a hundredth of the time of a record.
    wanted = set(named if last is None or len(named) <= last else newest(list(named), last))
    records: list[CampaignRecord] = []
    for path, is_by_name in named.items():
        if path not in wanted and not is_by_name:
            continue
        try:
            records.append(read_record(path, with_trials=False))
        except (RequestError, HostError) as error:
            if is_by_name:
                raise
            err().print(f"Left out: {error}", markup=False, soft_wrap=True)
    if not records:
        raise RequestError(
            f"no run: none of the files there is named *{SUFFIX}, or none can be read",
            code="cli.no-run",
            where=", ".join(map(str, paths)),
            next_step="Name run files, or a folder in which evenhand run stores some.",
        )
    records.sort(key=lambda record: record.created_at)
    return records if last is None else records[-last:]
