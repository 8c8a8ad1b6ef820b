# SPDX-License-Identifier: Apache-2.0
"""Station 10: the sections of a campaign's page: which pictures and tables are in which. A procedure says in
which section its results are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenhand.base.table import Table
from evenhand.procedure.descriptor import Section
from evenhand.procedure.registry import BACK_TO_BACK, IPDV, LATENCY, LOSS, PDV, THROUGHPUT, procedures_in
from evenhand.report.figures import Picture
from evenhand.report.page_figures import Pictures
from evenhand.report.page_inside import inside_of
from evenhand.report.page_tables import (
    burst_table,
    figures_table,
    latency_table,
    throughput_table,
    variation_table,
)
from evenhand.run.campaign_record import CampaignRecord

_TABLES: Mapping[str, Callable[[CampaignRecord], Table | None]] = {
    THROUGHPUT.name: throughput_table,
    LOSS.name: lambda record: None,  # its picture has all
    LATENCY.name: latency_table,
    PDV.name: variation_table,
    IPDV.name: variation_table,
    BACK_TO_BACK.name: burst_table,
}
"""Tables of procedures that find more than a number; a procedure without one is shown by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading with what is below it."""

    anchor: str
    title: str
    pictures: Sequence[Picture]
    tables: Sequence[Table]


def sections_of(record: CampaignRecord, pictures: Pictures) -> list[PageSection]:
    """Those with content. The first picture of the page is not shown twice."""
    inside = inside_of(record)
    first, *others = (
        PageSection(
            anchor=section.anchor,
            title=section.title,
            pictures=[each for each in pictures.by_section[section] if each not in pictures.first],
            tables=list(_tables(record, section)),
        )
        for section in Section
    )
    sections = [
        first,
        PageSection(anchor="inside", title="Inside the DUT", pictures=inside.pictures, tables=inside.tables),
        *others,
        PageSection(anchor="over-time", title="Loss over time", pictures=pictures.histories, tables=()),
    ]
    return [section for section in sections if section.pictures or section.tables]


def _tables(record: CampaignRecord, section: Section) -> Iterator[Table]:
    names = procedures_in(section)
    numbers = tuple(name for name in names if name not in _TABLES)
    made = [table(record) for table in dict.fromkeys(_TABLES[name] for name in names if name in _TABLES)]
    made += [
        figures_table(record, some)
        for some in ((numbers,) if section is Section.OTHERS else ((name,) for name in numbers))
    ]
    yield from (table for table in made if table is not None)
