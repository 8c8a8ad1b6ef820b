# SPDX-License-Identifier: Apache-2.0
"""Station 10: results in a run file, shown as the verb showed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from evenhand.base.terminal_table import FittedTable
from evenhand.base.visible import visible
from evenhand.procedure.registry import PROCEDURES, THROUGHPUT
from evenhand.report.found import report_of
from evenhand.report.result_entry import RepeatedEntry, ResultEntry, deviation_lines
from evenhand.report.table import OF_INTERVAL
from evenhand.results.throughput import ThroughputFound
from evenhand.run import CampaignRecord, PointRecord, Repetition
from evenhand.search import Role
from evenhand.trial import TrialResult


class StoredResults:
    """The results of one point. A line that is the same for several repetitions is said once."""

    def __init__(self, record: CampaignRecord, measured: PointRecord) -> None:
        self._report = report_of(PROCEDURES[measured.point.procedure])
        self._entries = {id(repetition): stored_entry(record, repetition) for repetition in measured.results}
        self._joined = joined_entry(record, measured)
        if self._joined is not None:
            self._entries = {}
        lines = [self._lines(entry) for entry in self._entries.values()]
        self._common = (
            [line for line in lines[0] if all(line in each for each in lines)] if len(lines) > 1 else []
        )

    def repeated(self) -> Iterator[RenderableType]:
        """The table over the repetitions, if there are several, and what is said of all of them."""
        if self._joined is not None:
            yield Text("")
            yield from self._show(self._joined)
        found = [entry.found for entry in self._entries.values()]
        if self._report.repeated is not None and len(found) > 1:
            yield Text("")
            yield FittedTable.of(self._report.repeated([RepeatedEntry(repetitions=found)]))
            yield Text(OF_INTERVAL)
        if self._common:
            yield Text("")
            yield Text("All repetitions:")
            yield from (Padding(Text(visible(line)), (0, 0, 0, 2), expand=False) for line in self._common)

    def of_repetition(self, repetition: Repetition) -> Iterator[RenderableType]:
        """Table and lines; nothing, if the repetition is not a result."""
        entry = self._entries.get(id(repetition))
        if entry is not None:
            yield from self._show(entry)

    def _show(self, entry: ResultEntry) -> Iterator[RenderableType]:
        table = self._report.table([entry])
        if table.rows:
            yield FittedTable.of(table)
        yield from (Text(visible(line)) for line in self._lines(entry) if line not in self._common)

    def _lines(self, entry: ResultEntry) -> list[str]:
        return [*self._report.lines(entry), *deviation_lines(entry.document)]


def joined_entry(
    record: CampaignRecord, measured: PointRecord, labels: Mapping[str, str] | None = None
) -> ResultEntry | None:
    """The one result that all repetitions are, in the run of a verb whose file has them one by one; else
    None."""
    join = report_of(PROCEDURES[measured.point.procedure]).join
    if join is None:
        return None
    try:
        joined = join(
            [one.found for one in measured.results], measured.point.goal, _throughput_before(record, measured)
        )
    except ValueError:  # the goal of a foreign file
        return None
    return None if joined is None else ResultEntry(document={}, found=joined, labels=labels or {})


def _throughput_before(record: CampaignRecord, measured: PointRecord) -> ThroughputFound | None:
    """The throughput that the run of a verb has measured first, for this point; None if there is none."""
    same = ("plan", "routes", "hosts", "networks", "frame_size", "directions")
    results: list[ThroughputFound] = [
        repetition.found
        for one in record.points
        if one.point.procedure == THROUGHPUT.name
        and all(getattr(one.point, name) == getattr(measured.point, name) for name in same)
        for repetition in one.results
    ]
    return results[-1] if results and not record.is_campaign else None


def stored_entry(
    record: CampaignRecord, repetition: Repetition, labels: Mapping[str, str] | None = None
) -> ResultEntry:
    """A finished repetition of a run file."""
    return ResultEntry(
        document=repetition.result or {},
        found=repetition.found,
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
