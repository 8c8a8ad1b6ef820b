# SPDX-License-Identifier: Apache-2.0
"""What a list of runs says of one run, read from its file."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from evenhand.analysis import analyse
from evenhand.base.errors import EvenhandError
from evenhand.base.locks import holder_of
from evenhand.base.visible import visible
from evenhand.report.page_head import STYLES, dut_line, first_verdicts, headline_figures
from evenhand.run import PointState, read_record
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_record import CampaignRecord
from evenhand.run.campaign_status import read_status
from evenhand.run.run_file import campaign_resource

MEASURED_WITHIN_S = 48 * 3600
"""A file that was not written for so long is measured by nobody: each trial is written, and so is a campaign
that goes on."""

Stamp = tuple[int, int, int, int]


class RunState(StrEnum):
    """What has become of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """It ended in order before it was done: Ctrl-C, or an error."""
    KILLED = "killed"
    """Its process is gone, and had no time to say so: kill -9, or a power cut."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run in one row. All texts come from a file of others."""

    title: str = ""
    created_at: str = ""
    """UTC, ISO 8601."""
    finished_at: str | None = None
    is_ended: bool = False
    """Its last session has ended in order."""
    is_campaign: bool = False
    dut: str = ""
    """Names of its testbeds."""
    dut_facts: str = ""
    procedures: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    headlines: tuple[str, ...] = ()
    """Verdict of each IP version, or else numbers."""
    style: str = ""
    """good, bad or empty."""
    point_count: int = 0
    points_done: int = 0
    share: float | None = None
    """How much of a campaign is measured."""
    left_s: float | None = None
    """Expected time that is left of it."""
    error: str = ""
    """Why it cannot be read."""

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RunFacts:
        """As `to_document` has written it. TypeError if it is something else."""
        values: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in document.items()
        }
        return cls(**values)


def stamp_of(facts: os.stat_result) -> Stamp:
    """What is another one when the file was written or replaced."""
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def is_being_measured(path: Path, facts: os.stat_result, names: Collection[str] | None = None) -> bool:
    """Whether a process of this machine writes it now, whoever has started that.

    Args:
        names: Those of all locks, for who asks for many runs.
    """
    if time.time() - facts.st_mtime > MEASURED_WITHIN_S:
        return False
    try:
        resource = campaign_resource(path)
        return (names is None or resource.file_name in names) and holder_of(resource) is not None
    except EvenhandError:
        return False


def state_of(facts: RunFacts, *, is_measured: bool) -> RunState:
    """
    Args:
        is_measured: See `is_being_measured`.
    """
    if facts.error:
        return RunState.UNREADABLE
    if is_measured:
        return RunState.RUNNING
    if facts.finished_at is not None:
        return RunState.FINISHED
    return RunState.INTERRUPTED if facts.is_ended else RunState.KILLED


def read_facts(path: Path) -> RunFacts:
    """What the file says; a file that is no run, or of another version, says why."""
    try:
        record = read_record(path, with_trials=False)
        facts = _facts(record)
        if record.is_campaign and record.finished_at is None:
            facts = _with_progress(path, facts)
    except EvenhandError as error:
        written = datetime.fromtimestamp(_written_at(path), UTC)
        return RunFacts(
            title=visible(path.name), created_at=f"{written:%Y-%m-%dT%H:%M:%SZ}", error=visible(error.what)
        )
    return facts


def _written_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _facts(record: CampaignRecord) -> RunFacts:
    verdicts = [each for each in first_verdicts(analyse(record)) if each.finding in STYLES]
    headlines = [each.sentence for each in verdicts] or headline_figures(record)
    done = sum(point.state in (PointState.MEASURED, PointState.NO_NUMBER) for point in record.points)
    style = ""
    if verdicts:
        style = "bad" if any(each.finding == "hides" for each in verdicts) else "good"
    return RunFacts(
        title=visible(record.name),
        created_at=visible(record.created_at),
        finished_at=None if record.finished_at is None else visible(record.finished_at),
        is_ended=bool(record.sessions) and record.sessions[-1].finished_at is not None,
        is_campaign=record.is_campaign,
        dut=visible(", ".join(record.testbeds) or _dut_of_searches(record)),
        dut_facts=visible(dut_line(record).removeprefix("DUT: ").removesuffix("not described.")),
        procedures=tuple(dict.fromkeys(visible(point.point.procedure) for point in record.points)),
        plans=tuple(dict.fromkeys(visible(point.point.plan) for point in record.points)),
        headlines=tuple(visible(line) for line in headlines),
        style=style,
        point_count=len(record.points),
        points_done=done,
    )


def _dut_of_searches(record: CampaignRecord) -> str:
    names = (search.setup.get("name") for search in record.other_searches)
    return ", ".join(dict.fromkeys(name for name in names if isinstance(name, str)))


def _with_progress(path: Path, facts: RunFacts) -> RunFacts:
    status = read_status(path)
    asked = sum(point.point.repetitions for point in status.points)
    left = sum(point.left for point in status.points)
    return replace(
        facts,
        share=(asked - left) / asked if asked else None,
        left_s=time_left(status.points).stated_s if left else 0.0,
    )
