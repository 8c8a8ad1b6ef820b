# SPDX-License-Identifier: Apache-2.0
"""Station 10: throughput and loss as documents of FD.io CSIT's Unified Test Interface, a repetition a test
case (model 1.5.1).

Its rates are sums over both directions, ours are per direction. docs/reference/export.md lists what it has no
place for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from statistics import fmean, pstdev
from typing import Any

from evenhand.base.units import ETHERNET_GAP_OCTETS
from evenhand.procedure.registry import LOSS, PROCEDURES, THROUGHPUT
from evenhand.run import CampaignRecord, PointRecord, Repetition
from evenhand.run.figures import time_left_out_of
from evenhand.trial import read_direction_rates

MODEL = "1.5.1"
TEST_TYPES: Mapping[str, str] = {THROUGHPUT.name: "ndrpdr", LOSS.name: "mrr"}
"""Test types of the model, by procedure. The other procedures have no place in the model."""
PDR_LOSS_RATIO = 0.005
_UNKNOWN = "unknown"
_TELEMETRY: Mapping[str, str] = {
    THROUGHPUT.name: "evenhand_throughput_fps_per_direction",
    LOSS.name: "evenhand_loss_ratio",
}


def uti_documents(record: CampaignRecord) -> Iterator[dict[str, Any]]:
    """A document of each repetition that has ended, in order. ValueError if one has no times that can be
    read."""
    for measured in record.points:
        if measured.point.procedure in TEST_TYPES:
            yield from (
                _document(record, measured, r) for r in measured.repetitions if r.finished_at is not None
            )


def left_out(record: CampaignRecord) -> list[str]:
    """Keys of the points that have no place in it."""
    return [measured.point.key for measured in record.points if measured.point.procedure not in TEST_TYPES]


def _document(record: CampaignRecord, measured: PointRecord, repetition: Repetition) -> dict[str, Any]:
    point = measured.point
    testbed = record.testbeds.get(repetition.testbed, {})
    dut = testbed.get("dut") or {}
    name = _id(f"{point.key}-r{repetition.number}")
    is_passed = repetition.value is not None
    result: dict[str, Any] | None = None
    if is_passed:  # without a verdict of its own a test case has no result: CSIT takes it out too
        result = (_ndrpdr if point.procedure == THROUGHPUT.name else _mrr)(measured, repetition)
    start, end = repetition.started_at, str(repetition.finished_at)
    least = ',is_at_least="true"' if repetition.is_at_least else ""
    figure = (
        ""
        if repetition.value is None
        else f'{_TELEMETRY[point.procedure]}{{seed="{repetition.seed}"{least}}} {repetition.value!r}'
    )
    return {
        "version": MODEL,
        "test_id": f"{_id(record.name)}.{name}",
        "test_name_long": name,
        "test_name_short": _id(point.key),
        "test_type": TEST_TYPES[point.procedure],
        "test_documentation": f"Evenhand {point.procedure}, {point.plan}:"
        f" {PROCEDURES[point.procedure].figure.name}.",
        "tags": _tags(measured),
        "start_time": start,
        "end_time": end,
        "duration": max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()),
        "passed": is_passed,
        "message": "" if is_passed else repetition.reason or repetition.outcome or "no value",
        "hosts": [repetition.testbed or _UNKNOWN],
        "dut_type": _text(dut, "kind", "os").lower(),
        "dut_version": _text(dut, "version", "kernel"),
        "tg_type": "evenhand",
        "tg_version": record.versions.get("evenhand") or _UNKNOWN,
        "telemetry": [*([figure] if figure else []), *_time_left_out(repetition)],
        "result": result or {"type": _UNKNOWN},
    }


def _time_left_out(repetition: Repetition) -> Iterator[str]:
    """Nothing if no trial was judged by its clean time."""
    found = time_left_out_of(repetition)
    if found is not None:
        trials = f'cut_trials="{found.cut_trials}",valid_trials="{found.valid_trials}"'
        yield f"evenhand_time_left_out_ratio{{{trials}}} {found.share!r}"


def _ndrpdr(measured: PointRecord, repetition: Repetition) -> dict[str, Any] | None:
    """The result, only of a search that had both goals, and found both bounds of both: the model has no place
    for one alone."""
    found: dict[float, dict[str, Any]] = {}
    for goal in getattr(repetition.found, "goals", ()):
        bounds = [fps for fps in (goal.lower_fps, goal.upper_fps) if fps is not None and fps >= 0]
        if goal.is_regular and len(bounds) == 2:
            lower, upper = (_rate(measured, fps) for fps in bounds)
            found[goal.loss_ratio] = {"lower": lower, "upper": upper}
    if not {0.0, PDR_LOSS_RATIO} <= found.keys():
        return None
    return {"type": "ndrpdr", "ndr": found[0.0], "pdr": found[PDR_LOSS_RATIO]}


def _mrr(measured: PointRecord, repetition: Repetition) -> dict[str, Any] | None:
    """The result of the valid trials at the highest load that was tried."""
    trials = [
        trial.result for search in repetition.searches for trial in search.trials if trial.result.is_valid
    ]
    highest = max((trial.intended_fps for trial in trials), default=None)
    values = [trial.forwarding_rate_fps for trial in trials if trial.intended_fps == highest]
    if not values:
        return None
    return {
        "type": "mrr",
        "receive_rate": {
            "rate": {"values": values, "avg": fmean(values), "stdev": pstdev(values), "unit": "pps"}
        },
    }


def _rate(measured: PointRecord, fps_per_direction: float) -> dict[str, Any]:
    """The rate of all directions together; with the bandwidth on the wire where all frames have one size."""
    point = measured.point
    rates = read_direction_rates(
        next((each.result.get("rates") for each in measured.repetitions if each.result), None)
    )
    rate = fps_per_direction * len(point.directions)
    if rates is not None:
        rate = sum(rates.fps_of(direction, fps_per_direction) for direction in point.directions)
    document: dict[str, Any] = {"rate": {"value": rate, "unit": "pps"}}
    if isinstance(point.frame_size, int):
        document["bandwidth"] = {"value": rate * 8 * (point.frame_size + ETHERNET_GAP_OCTETS), "unit": "bps"}
    return document


def _tags(measured: PointRecord) -> list[str]:
    point = measured.point
    size = f"{point.frame_size}B" if isinstance(point.frame_size, int) else "IMIX"
    versions = [f"IP{version}FWD" for version in "46" if f"v{version}" in point.plan]
    return [size, *versions, TEST_TYPES[point.procedure].upper(), "EVENHAND"]


def _id(text: str) -> str:
    """Lower case, without spaces, and safe as a file's name."""
    return re.sub(r"[^a-z0-9.,=_+-]+", "_", text.lower()).strip("._") or _UNKNOWN


def _text(facts: Mapping[str, Any], *keys: str) -> str:
    return next((str(facts[key]) for key in keys if facts.get(key)), _UNKNOWN)
