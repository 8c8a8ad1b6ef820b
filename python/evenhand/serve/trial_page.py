# SPDX-License-Identifier: Apache-2.0
"""What the page of one trial shows: of a run file, which may come from anybody."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.base.errors import RequestError
from evenhand.base.table import Table, make_table
from evenhand.base.units import format_count, format_rate, format_ratio
from evenhand.base.visible import visible
from evenhand.report.page_facts import commands_of
from evenhand.report.page_strips import strip_of
from evenhand.report.page_words import show_addresses, show_size, show_time
from evenhand.report.trial import allowed_loss, describe_sending, trial_parts
from evenhand.report.trial_command import trial_command
from evenhand.run import CampaignRecord, PointRecord, StoredSearch, StoredTrial
from evenhand.run.campaign_record import Repetition
from evenhand.serve.charts import inside_document
from evenhand.trial import join_directions

PCAPNG = b"\x0a\x0d\x0d\x0a"


class PlacedTrial(NamedTuple):
    """A trial, and where in its run it is: some belong to no point."""

    found: PointRecord | None
    repetition: Repetition | None
    search: StoredSearch
    trial: StoredTrial


def placed_trials(record: CampaignRecord) -> Iterator[PlacedTrial]:
    """All of a run, in the order of its page."""
    of_points = (
        (found, repetition, search)
        for found in record.points
        for repetition in found.repetitions
        for search in repetition.searches
    )
    for place in (*of_points, *((None, None, search) for search in record.other_searches)):
        yield from (PlacedTrial(*place, trial) for trial in place[2].trials)


def other_trials(record: CampaignRecord) -> Iterator[tuple[int, str]]:
    """Row and words of each trial that belongs to no point, and so is in no table of the run's page."""
    for found, _, search, trial in placed_trials(record):
        if found is None:
            words = f"{search.name}, trial {trial.number}: {format_rate(trial.result.intended_fps)}"
            yield trial.row, visible(f"{words}, {trial.result.verdict}")


def trial_content(record: CampaignRecord, row: str) -> dict[str, Any]:
    """For `trial.html.j2`. RequestError if there is no such trial."""
    trials = list(placed_trials(record))
    rows = [trial.row for *_, trial in trials]
    number = next((number for number, each in enumerate(rows) if str(each) == row), None)
    if number is None:
        raise RequestError(
            f"this run has no trial {row!r:.40}",
            code="serve.no-such-trial",
            where=record.path.name,
            next_step="Look at the page of the run.",
        )
    trial = trials[number][-1]
    result, command = trial.result, _command(record, *trials[number])
    return {
        "title": f"Trial {trial.number} at {format_rate(result.intended_fps)}",
        "verdict": str(result.verdict),
        "allowed": allowed_loss(result),
        "loss": format_ratio(result.loss_ratio),
        "reasons": [reason.text for reason in join_directions(result.reasons)],
        "strip": strip_of(trial),
        "parts": [_titled(part) if isinstance(part, Table) else part.plain for part in trial_parts(result)],
        "inside": _inside_tables(inside_document(result.raw)),
        "conditions": _conditions(*trials[number]),
        "command": command,
        "frames_command": command and _frames_command(shlex.split(command)),
        "run_commands": commands_of(record),
        "before": rows[number - 1] if number else None,
        "after": rows[number + 1] if number + 1 < len(rows) else None,
        "count": f"{format_count(number + 1)} of {format_count(len(rows))}",
    }


def capture_of(record: CampaignRecord) -> Path | None:
    """The capture that the run's command names, if it lies beside the run; None if there is none. No other
    file is shown by the name that a run file gives."""
    for command in record.commands:
        words = [part for word in command for part in word.split("=", 1)]
        for option, name in pairwise(words):
            path = record.path.with_name(Path(name).name or "-")
            with suppress(OSError):  # a name that no file can have, or a file that this user may not read
                if option == "--capture" and path.is_file() and not path.is_symlink():
                    with path.open("rb") as file:
                        return path if file.read(len(PCAPNG)) == PCAPNG else None
    return None


def _conditions(
    found: PointRecord | None, repetition: Repetition | None, search: StoredSearch, trial: StoredTrial
) -> list[tuple[str, str | None]]:
    result = trial.result
    of_point: list[tuple[str, str | None]] = [
        ("measured for", search.name),
        ("frame size", f"{search.frame_size} octets"),
    ]
    if found is not None and repetition is not None:
        of_point = [
            ("point", found.point.key),
            ("repetition", str(repetition.number)),
            ("testbed", repetition.testbed),
            ("plan", found.point.plan),
            ("addresses", show_addresses(found.point)),
            ("frame size", show_size(found.point)),
            *([("hash of the DUT", found.point.hash_type)] if found.point.hash_type else []),
        ]
    return [
        *of_point,
        ("directions", " and ".join(result.directions)),
        ("load", f"{format_count(result.intended_fps)} fps per direction"),
        ("duration", describe_sending(result)),
        ("what for", trial.purpose + (f", attempt {trial.attempt}" * (trial.attempt > 1))),
        ("seed", str(search.seed)),
        ("started", show_time(result.started_at)),
    ]


def _command(
    record: CampaignRecord,
    found: PointRecord | None,
    repetition: Repetition | None,
    search: StoredSearch,
    trial: StoredTrial,
) -> str | None:
    if found is None or repetition is None:
        return None
    first = next(iter(record.commands), ())
    return trial_command(found.point, first, search, trial, repetition.testbed or "TESTBED")


def _frames_command(words: list[str]) -> str:
    """Shows the first frames of the trial that this command makes: those of its plan and its seed."""
    plan, rate = words.index("--plan") + 1, words.index("--rate")
    return shlex.join(["evenhand", "plan", "frames", *words[plan:rate], "--count", "10"])


def _titled(table: Table) -> Table:
    """A heading that is empty is none for who has it read out."""
    first, *others = table.columns
    return table if first.title else replace(table, columns=(replace(first, title="count"), *others))


def _inside_tables(inside: dict[str, Any] | None) -> list[Table]:
    if inside is None:
        return []
    cpus = [
        [str(cpu["cpu"]), format_ratio(cpu["busy"]), format_ratio(cpu["softirq"])] for cpu in inside["cpus"]
    ]
    queues = [
        [each["interface"], str(each["queue"]), format_count(each["packets"]), format_ratio(each["share"])]
        for each in inside["queues"]
    ]
    tables = [make_table(["#CPU", "#busy", "#in softirqs"], cpus)]
    return [*tables, make_table(["interface", "#queue", "#packets", "#share"], queues)] if queues else tables
