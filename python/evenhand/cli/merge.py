# SPDX-License-Identifier: Apache-2.0
"""`evenhand merge`: several run files become one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.units import format_count
from evenhand.base.visible import visible
from evenhand.cli.common import command_line, out, quoted
from evenhand.cli.run_options import HostNameOption, RunOption, run_file
from evenhand.report.campaign_rows import trials_of
from evenhand.run import SUFFIX, CampaignRecord
from evenhand.run.merge import merge_runs

EXAMPLE = "Example: evenhand merge monday.evenhand tuesday.evenhand --run both.evenhand"


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE FILE...",
            help=f"Run files (*{SUFFIX}): of one campaign, or of single verbs. They stay as they are.",
        ),
    ],
    run: RunOption = None,
    host_name: HostNameOption = False,
) -> None:
    """Join run files of several machines or sessions in a new one: the same points get the repetitions of
    all.

    Files that contradict each other, or that have the same measurement, are refused.
    """
    target = run_file("merge", run, no_run=False)
    assert target is not None
    record = merge_runs(files, target, command=command_line(), host_name=host_name)
    console = out()
    for line in merged_lines(record):
        console.print(visible(line), markup=False)
    console.print(f"Stored in {target}. See it: evenhand show {quoted(target)}", markup=False, soft_wrap=True)


def merged_lines(record: CampaignRecord) -> Sequence[str]:
    """What came together, and what a reader should know of it."""
    repetitions = sum(len(point.repetitions) for point in record.points)
    trials = sum(len(trials_of(point)) for point in record.points)
    trials += sum(len(search.trials) for search in record.other_searches)
    counts = (
        _count(len(record.merged_from), "file"),
        _count(len(record.points), "point"),
        _count(repetitions, "repetition"),
        _count(trials, "trial"),
    )
    testbeds = f"Testbeds: {', '.join(record.testbeds)}." if record.testbeds else "No testbed has a name."
    notes = [f"Note: {note}" for note in record.sessions[-1].notes[1:]]
    return (f"Merged: {', '.join(counts)}.", testbeds, *notes)


def _count(number: int, what: str) -> str:
    return f"{format_count(number)} {what}{'' if number == 1 else 's'}"
