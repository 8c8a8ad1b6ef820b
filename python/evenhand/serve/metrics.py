# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics of a folder of runs: what is measured now, and the latest numbers of each DUT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

from evenhand.base.errors import EvenhandError
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.statistics import Statistics
from evenhand.report.openmetrics import Family, exposition
from evenhand.serve.index import Entry
from evenhand.serve.pages import Pages
from evenhand.serve.run_facts import RunState
from evenhand.serve.watcher import Watcher

MOST_DUTS = 50
MOST_POINTS = 500
"""Points of one run: what is exported more often than it is looked at must stay small."""
HELP = {
    "evenhand_runs": "Runs of the folder by their state.",
    "evenhand_trial_offered_fps": "Frames per second that the running trial sends in a direction.",
    "evenhand_trial_received_fps": "Frames per second that come back.",
    "evenhand_trial_loss_ratio": "Loss so far of the running trial, of frames that have settled.",
    "evenhand_trial_delay_seconds": "Mean delay of the last moments of the running trial.",
    "evenhand_point_value": "Median of a point in the latest run of a DUT, in its unit.",
    "evenhand_point_minimum": "Lowest repetition of it.",
    "evenhand_point_maximum": "Highest repetition of it.",
    "evenhand_run_created_seconds": "When the latest run of a DUT began, since 1970.",
}
Sample = tuple[str, Mapping[str, str], float]


def metrics_text(watcher: Watcher, pages: Pages) -> str:
    """The whole exposition. It may read run files, each once as long as it stays the same."""
    families = {name: Family(help=text) for name, text in HELP.items()}
    for name, labels, value in _samples(watcher, pages):
        families[name].samples[tuple(labels.items())] = value
    return exposition(families)


def _samples(watcher: Watcher, pages: Pages) -> Iterator[Sample]:
    entries = watcher.index.entries.values()
    states = Counter(entry.state for entry in entries)
    yield from (("evenhand_runs", {"state": str(state)}, float(states[state])) for state in RunState)
    for name, live in watcher.live.items():
        sample = next(reversed(live.samples), None) if live.running is not None else None
        for direction in ("forward", "reverse"):
            found = None if sample is None else sample.get(direction)
            if found is not None:
                labels = {"run": name, "direction": direction}
                yield "evenhand_trial_offered_fps", labels, found["offered_fps"]
                yield "evenhand_trial_received_fps", labels, found["received_fps"]
                if found["loss_ratio"] is not None:
                    yield "evenhand_trial_loss_ratio", labels, found["loss_ratio"]
                if found["mean_us"] is not None:
                    yield "evenhand_trial_delay_seconds", labels, found["mean_us"] / 1e6
    latest: dict[str, Entry] = {}
    for entry in entries:
        if entry.facts.dut and entry.facts.points_done and len(latest) < MOST_DUTS:
            latest.setdefault(entry.facts.dut, entry)
    for dut, entry in latest.items():
        key = ("metrics", entry.name, entry.stamp)
        yield from pages.kept(key, partial(list, _of_run(pages, dut, entry)))


def _of_run(pages: Pages, dut: str, entry: Entry) -> Iterator[Sample]:
    try:
        record = pages.record(entry, with_trials=False)
        begun = datetime.fromisoformat(record.created_at).timestamp()
    except (EvenhandError, ValueError):
        return  # it has gone meanwhile
    yield "evenhand_run_created_seconds", {"dut": dut, "run": entry.name}, begun
    for found in record.points[:MOST_POINTS]:
        statistics = Statistics.of(found.values, lower_bounds=found.lower_bounds)
        figure = PROCEDURES[found.point.procedure].figure
        labels = {
            "dut": dut,
            "point": found.point.key,
            "suite": found.point.suite,
            "procedure": found.point.procedure,
            "figure": figure.name,
            "unit": figure.unit,
        }
        if statistics is not None:
            yield "evenhand_point_value", labels, statistics.median
            yield "evenhand_point_minimum", labels, statistics.minimum
            yield "evenhand_point_maximum", labels, statistics.maximum
