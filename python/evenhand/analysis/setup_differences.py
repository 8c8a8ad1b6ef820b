# SPDX-License-Identifier: Apache-2.0
"""Analysis: in what the set-ups of runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.analysis.comparison_model import SetupDifference
from evenhand.analysis.condition_words import show_in_short
from evenhand.analysis.matching import flat
from evenhand.analysis.words import join
from evenhand.run.campaign_record import CampaignRecord

NOT_COMPARED = ("own_dut.neighbor_table.", "dut.neighbor_table.", "dut.connection_table.counted.")
"""Keys of a testbed, in a campaign and in the run of a verb: what its kernel has counted since it was
started, which is not a set-up."""


def setup_differences(records: Sequence[CampaignRecord]) -> Iterator[SetupDifference]:
    """Differences of versions, host, testbed and campaign file; in that order."""
    setups = [dict(_setup(record)) for record in records]
    for what in dict.fromkeys(key for setup in setups for key in setup):
        values = tuple(setup.get(what) for setup in setups)
        if any(value != values[0] for value in values):
            yield SetupDifference(what=what, values=tuple(show_in_short(value) for value in values))


def _setup(record: CampaignRecord) -> Iterator[tuple[str, Any]]:
    yield from flat(record.versions, "versions: ")
    yield from flat(record.host, "host: ")
    names = list(record.testbeds)
    yield "testbed", join(names) or None
    for name in names:
        # One testbed each: what differs is of interest, whatever their files are called.
        prefix = "testbed: " if len(names) == 1 else f"testbed {name}: "
        facts = {
            key: value
            for key, value in record.testbeds[name].items()
            if key != "tester" or value != record.host
        }
        yield from (
            fact for fact in flat(facts, prefix) if not fact[0].removeprefix(prefix).startswith(NOT_COMPARED)
        )
    yield from flat(record.spec, "campaign: ")
