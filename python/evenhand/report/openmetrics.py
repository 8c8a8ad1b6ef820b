# SPDX-License-Identifier: Apache-2.0
"""Station 10: points of runs as OpenMetrics, for Prometheus: as a file that its node exporter collects, or
over HTTP.

Gauges without time stamps alone, so the text is valid in Prometheus' older text format as well. There is no
label with the name of a file: a point keeps its series from one night to the next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from evenhand.base.visible import visible
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_rows import trials_of, verdicts_of
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState
from evenhand.run.figures import time_left_out_at
from evenhand.trial import Verdict

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The type of an answer over HTTP with this text."""
PREFIX = "evenhand"
_UNITS = {
    "fps": ("frames_per_second", 1.0),
    "us": ("seconds", 1e-6),
    "s": ("seconds", 1.0),
    "connections/s": ("connections_per_second", 1.0),
}
"""Base units of Prometheus, and the factor; other units of figures are their own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All samples of one name."""

    unit: str = ""
    help: str
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def to_openmetrics(records: Iterable[CampaignRecord]) -> str:
    """The newest value of each point. Where several records have the same point, the one that was begun last
    has its series."""
    families: dict[str, Family] = {}
    for record in sorted(records, key=lambda record: record.created_at):
        _add_run(families, record)
        for found in record.points:
            _add_point(families, record, found)
    return exposition(families)


def exposition(families: Mapping[str, Family]) -> str:
    """The whole text, of families by name."""
    return "".join([*_lines(families), "# EOF\n"])


def _lines(families: Mapping[str, Family]) -> Iterator[str]:
    for name, family in families.items():
        yield f"# TYPE {name} gauge\n"
        if family.unit:
            yield f"# UNIT {name} {family.unit}\n"
        yield f"# HELP {name} {_escape(family.help)}\n"
        for labels, value in family.samples.items():
            pairs = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
            yield f"{name}{{{pairs}}} {_number(value)}\n"


def _add(
    families: dict[str, Family], name: str, labels: dict[str, str], value: float, *, unit: str = "", text: str
) -> None:
    whole = f"{PREFIX}_{name}{f'_{unit}' if unit and not name.endswith(unit) else ''}"
    family = families.setdefault(whole, Family(unit=unit, help=text))
    family.samples[tuple((key, visible(label)) for key, label in labels.items())] = float(value)


def _add_run(families: dict[str, Family], record: CampaignRecord) -> None:
    labels = {"campaign": record.name}
    info = {**labels, "version": record.versions.get("evenhand", "")}
    _add(families, "run_info", info, 1.0, text="A campaign or run, and the version that measured it.")
    for name, at in (("started", record.created_at), ("finished", record.finished_at)):
        seconds = _seconds(at)
        if seconds is not None:
            _add(
                families,
                f"run_{name}_timestamp",
                labels,
                seconds,
                unit="seconds",
                text=f"When the newest run {name}, in seconds since 1970.",
            )


def _add_point(families: dict[str, Family], record: CampaignRecord, found: PointRecord) -> None:
    point, figure = found.point, PROCEDURES[found.point.procedure].figure
    labels = {
        "campaign": record.name,
        "point": point.key,
        "suite": point.suite,
        "procedure": point.procedure,
        "plan": point.plan,
        "frame_size": str(point.frame_size),
        "addresses": f"{point.addresses.left} x {point.addresses.right}",
        **({} if point.routes is None else {"routes": f"{point.routes.left} x {point.routes.right}"}),
        "hash_type": point.hash_type or "",
    }
    unit, factor = _UNITS.get(figure.unit, (figure.unit, 1.0))
    name = re.sub(r"\W+", "_", figure.name.lower())
    statistics = found.statistics
    if statistics is not None:
        values = (("", statistics.median), ("_minimum", statistics.minimum), ("_maximum", statistics.maximum))
        for suffix, value in values:
            what = {"": "median", "_minimum": "minimum", "_maximum": "maximum"}[suffix]
            text = f"{figure.name[0].upper()}{figure.name[1:]}: {what} of the repetitions."
            _add(families, f"{name}{suffix}", labels, value * factor, unit=unit, text=text)
    left_out = time_left_out_at(found)
    facts = {
        "point_repetitions": (float(len(found.values)), "Repetitions that ended with a number."),
        "point_is_lower_bound": (
            float(found.is_at_least),
            "1 if the median is a lower bound: the highest load that was tried passed.",
        ),
        "point_without_number": (
            float(found.state is PointState.NO_NUMBER),
            "1 if the point ended without a number.",
        ),
    }
    for fact, (value, text) in facts.items():
        _add(families, fact, labels, value, text=text)
    counted = verdicts_of(trials_of(found))
    for verdict in Verdict:
        of = {**labels, "verdict": str(verdict)}
        _add(families, "point_trials", of, counted[verdict], text="Trials by their verdicts.")
    if left_out is not None:
        text = "Share of the sending time of the valid trials that was not judged."
        _add(families, "point_time_left_out", labels, left_out.share, unit="ratio", text=text)


def _seconds(at: str | None) -> float | None:
    """None of a text that is no time."""
    try:
        return None if at is None else datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
