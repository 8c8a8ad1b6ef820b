# SPDX-License-Identifier: Apache-2.0
"""Station 10: results in a run file, shown as the verb showed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from evenhand.base.terminal_table import FittedTable
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.found import report_of
from evenhand.report.plain import visible
from evenhand.report.result_entry import RepeatedEntry, ResultEntry
from evenhand.report.result_lines import deviation_lines
from evenhand.report.table import OF_INTERVAL
from evenhand.run import CampaignRecord, PointRecord, Repetition
from evenhand.search import Role
from evenhand.trial import TrialResult


class StoredResults:
    """The results of one point. A line that is the same for several repetitions is said once."""

    def __init__(self, record: CampaignRecord, measured: PointRecord) -> None:
        self._report = report_of(PROCEDURES[measured.point.procedure])
        self._entries = {
            id(repetition): stored_entry(record, repetition)
            for repetition in measured.repetitions
            if repetition.finished_at is not None and repetition.result is not None
        }
        lines = [self._lines(entry) for entry in self._entries.values()]
        self._common = (
            [line for line in lines[0] if all(line in each for each in lines)] if len(lines) > 1 else []
        )

    def repeated(self) -> Iterator[RenderableType]:
        """The table over the repetitions, if there are several, and what is said of all of them."""
        documents = [entry.document for entry in self._entries.values()]
        if self._report.repeated is not None and len(documents) > 1:
            yield Text("")
            yield FittedTable.of(self._report.repeated([RepeatedEntry(repetitions=documents)]))
            yield Text(OF_INTERVAL)
        if self._common:
            yield Text("")
            yield Text("All repetitions:")
            yield from (Padding(Text(visible(line)), (0, 0, 0, 2), expand=False) for line in self._common)

    def of_repetition(self, repetition: Repetition) -> Iterator[RenderableType]:
        """Table and lines; nothing, if the repetition is not a result."""
        entry = self._entries.get(id(repetition))
        if entry is None:
            return
        table = self._report.table([entry])
        if table.rows:
            yield FittedTable.of(table)
        yield from (Text(visible(line)) for line in self._lines(entry) if line not in self._common)

    def _lines(self, entry: ResultEntry) -> list[str]:
        return [*self._report.lines(entry), *deviation_lines(entry.document)]


def stored_entry(
    record: CampaignRecord, repetition: Repetition, labels: Mapping[str, str] | None = None
) -> ResultEntry:
    """A finished repetition of a run file."""
    return ResultEntry(
        document=repetition.result or {},
        value=repetition.value,
        trials=[
            trial.result for search in repetition.searches if search.is_measurement for trial in search.trials
        ],
        own_loop=_own_loop_of(record, repetition),
        labels=labels or {},
    )


def _own_loop_of(record: CampaignRecord, repetition: Repetition) -> TrialResult | None:
    """The trial of the tester's own loop, which a verb's run has beside its points."""
    measured = next((search for search in repetition.searches if search.is_measurement), None)
    loops = [
        search
        for search in (*repetition.searches, *record.other_searches)
        if search.role is Role.OWN_LOOP and search.trials and measured is not None
        if (search.plan, search.frame_size, search.imix)
        == (measured.plan, measured.frame_size, measured.imix)
        if search.goal.get("rate_fps_per_direction") == measured.goal.get("rate_fps_per_direction")
    ]
    last = loops[-1].trials[-1].result if loops else None
    return last if last is not None and last.is_valid else None
