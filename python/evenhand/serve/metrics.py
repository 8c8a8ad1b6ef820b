# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics of a folder of runs: what is measured now, and the latest numbers of each DUT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

from evenhand.base.errors import EvenhandError
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.openmetrics import Family, exposition
from evenhand.run import read_record
from evenhand.serve.index import Entry, RunIndex, RunState
from evenhand.serve.live import Watcher
from evenhand.serve.pages import Pages

MOST_DUTS = 50
MOST_POINTS = 500  # points of one run: what is exported more often than it is looked at must stay small
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
OF_TRIAL = {
    "offered_fps": ("evenhand_trial_offered_fps", 1.0),
    "received_fps": ("evenhand_trial_received_fps", 1.0),
    "loss_ratio": ("evenhand_trial_loss_ratio", 1.0),
    "mean_us": ("evenhand_trial_delay_seconds", 1e-6),
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
            found = {} if sample is None else sample.get(direction, {})
            labels = {"run": name, "direction": direction}
            for value, (metric, factor) in OF_TRIAL.items():
                if found.get(value) is not None:
                    yield metric, labels, found[value] * factor
    latest: dict[str, Entry] = {}
    for entry in entries:
        if entry.facts.dut and entry.facts.points_done and len(latest) < MOST_DUTS:
            latest.setdefault(entry.facts.dut, entry)
    for dut, entry in latest.items():
        key = ("metrics", entry.name, entry.stamp)
        yield from pages.kept(key, partial(list, _of_run(watcher.index, dut, entry)))


def _of_run(index: RunIndex, dut: str, entry: Entry) -> Iterator[Sample]:
    try:
        record = read_record(index.folder / entry.name, with_trials=False)
        begun = datetime.fromisoformat(record.created_at).timestamp()
    except (EvenhandError, ValueError):
        return  # it has gone meanwhile
    yield "evenhand_run_created_seconds", {"dut": dut, "run": entry.name}, begun
    for found in record.points[:MOST_POINTS]:
        statistics, figure = found.statistics, PROCEDURES[found.point.procedure].figure
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
