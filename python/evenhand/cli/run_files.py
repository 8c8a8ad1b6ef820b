# SPDX-License-Identifier: Apache-2.0
"""Run files that a command line names, one by one or as folders that have some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.new_file import real_path
from evenhand.cli.common import err
from evenhand.run import SUFFIX, CampaignRecord, read_record
from evenhand.run.folder import newest, runs_in


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
            _leave_out(error)
    if not records:
        raise RequestError(
            f"no run: none of the files there is named *{SUFFIX}, or none can be read",
            code="cli.no-run",
            where=", ".join(map(str, paths)),
            next_step="Name run files, or a folder in which evenhand run stores some.",
        )
    records.sort(key=lambda record: record.created_at)
    return records if last is None else records[-last:]


def _leave_out(error: EvenhandError) -> None:
    err().print(f"Left out: {error}", markup=False, soft_wrap=True)
