# SPDX-License-Identifier: Apache-2.0
"""Analysis: each point over many runs, and where it changes.

The number of a run at a point is the median of its repetitions. What changes from one session to the next
moves all of these together, so the noise that counts is that between runs, and the unit is the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

from evenhand.analysis.comparable import MOST_NAMED, check_no_run_twice, moment_of
from evenhand.analysis.comparison import performance_of, setup_differences, why_none
from evenhand.analysis.condition_words import join, show_in_short
from evenhand.analysis.matching import flat, unlike_in
from evenhand.analysis.medians import FEWEST_RUNS, MedianRatio, Pool, find_levels, median_ratio
from evenhand.analysis.trend_model import By, Change, Level, Over, PointTrend, Trend, TrendRun, TrendValue
from evenhand.base.errors import RequestError
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import CampaignRecord, PointRecord, is_median_at_least
from evenhand.run.figures import time_left_out_at

VERSION_FACTS = ("system", "kernel")
"""Facts of a DUT that are expected to change from one run to another. The later one says more."""
HARDWARE_FACTS = ("machine", "cpu_model", "nic")
"""Facts of DUT and tester: with other hardware the numbers are those of another testbed."""
REFERENCE = "reference"
"""The kind of a DUT that is the reference router: a program, whose version is in its machine too."""


def testbed_of(record: CampaignRecord, point: PointRecord) -> dict[str, str]:
    """What makes the testbed of a point this one: `{"name": "lab", "DUT: cpu_model": ...}`. Facts that are
    not known are left out."""
    names = dict.fromkeys(
        repetition.testbed for repetition in point.repetitions if repetition.value is not None
    ) or dict.fromkeys(repetition.testbed for repetition in point.repetitions)
    found: dict[str, str] = {"name": join([name for name in names if name])} if any(names) else {}
    for name in names:
        document = record.testbeds.get(name, {})
        prefix = "" if len(names) == 1 else f"{name}, "
        found |= {f"{prefix}{key}": value for key, value in _identity(document)}
    return found


def differing(one: Mapping[str, str], another: Mapping[str, str]) -> tuple[str, ...]:
    """`testbed: DUT: cpu_model A against B`: facts that both know, and that are not the same."""
    return tuple(
        f"testbed: {key} {show_in_short(one[key])} against {show_in_short(another[key])}"
        for key in one
        if key in another and one[key] != another[key]
    )


def versions_of(records: Sequence[CampaignRecord]) -> list[str | None]:
    """The version of the DUT in each run: of the facts that state it, those that are not the same in all
    runs; if all are, the one that says most."""
    facts = [_versions(record) for record in records]
    names = list(dict.fromkeys(name for of_run in facts for name in of_run))
    apart = [name for name in names if len({of_run.get(name) for of_run in facts}) > 1] or names[-1:]
    return [", ".join(of_run[name] for name in apart if name in of_run) or None for of_run in facts]


def version_key(version: str | None) -> tuple[Any, ...]:
    """Orders versions as people count: 6.1.9 before 6.1.10; unknown ones first."""
    if version is None:
        return ()
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"([0-9]{1,18})", version)
        if part
    )


def _identity(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    own = _mapping(document.get("own_dut"))
    dut = _mapping(document.get("dut"))
    is_program = REFERENCE in (own.get("kind"), dut.get("kind"))
    for fact in HARDWARE_FACTS:
        if (value := dut.get(fact)) is not None and not (is_program and fact == "machine"):
            yield f"DUT: {fact}", str(value)
        if (value := _mapping(document.get("tester")).get(fact)) is not None:
            yield f"tester: {fact}", str(value)
    if own.get("kind") is not None:
        yield "DUT: kind", str(own["kind"])
    for key, value in flat(_mapping(own.get("configured")), "DUT: "):
        yield key, str(value)


def _versions(record: CampaignRecord) -> dict[str, str]:
    """Versions by their names, of all DUTs of a run."""
    found: dict[str, list[str]] = {}
    for document in record.testbeds.values():
        own, dut = _mapping(document.get("own_dut")), _mapping(document.get("dut"))
        if own.get("kind") == REFERENCE and isinstance(own.get("version"), str):
            found.setdefault(REFERENCE, []).append(f"evenhand-router {own['version']}")
            continue
        for fact in VERSION_FACTS:
            if isinstance(value := dut.get(fact), str):
                found.setdefault(fact, []).append(value)
    return {name: join(list(dict.fromkeys(values))) for name, values in found.items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def trend(records: Sequence[CampaignRecord], *, over: Over = "time", anyway: bool = False) -> Trend:
    """Each point of all runs, in the order of the runs, with its changes.

    A point that a run does not have, or has no number for, is a gap. Points that were measured otherwise, or
    on another testbed, are never mixed: they are refused, or a trend of their own.

    Args:
        anyway: Do not refuse them.

    Raises:
        RequestError: No run; one of them twice; a run without a time, or without a version where they are to
            be in its order; nothing in them that has a trend; or points that were not measured alike.
    """
    records = _in_order(records, over)
    series = _series(records)
    if not series:
        raise RequestError(
            "the runs have only single trials or no trials, and no result of a search or series",
            code="analysis.nothing-to-compare",
            where=_named(records),
            next_step="Measure with evenhand run, throughput or another procedure, and name those runs.",
        )
    unlike = list(dict.fromkeys(line for each in series for line in each.unlike))
    if unlike and not anyway:
        more = f"; and {len(unlike) - MOST_NAMED} more" if len(unlike) > MOST_NAMED else ""
        raise RequestError(
            f"not measured alike: {'; '.join(unlike[:MOST_NAMED])}{more}",
            code="analysis.not-alike",
            where=_named(records),
            next_step="Name only runs that were measured in the same way, or give each kind a trend of its"
            " own with --anyway.",
        )
    versions = versions_of(records)
    return Trend(
        over=over,
        runs=tuple(
            TrendRun(
                file=record.path.name,
                name=record.name,
                created_at=record.created_at,
                version=version,
                is_finished=record.finished_at is not None,
            )
            for record, version in zip(records, versions, strict=True)
        ),
        points=tuple(_point_trend(each, records) for each in series),
    )


@dataclass(slots=True, kw_only=True)
class _Series:
    """Points of several runs that answer one question."""

    latest: PointRecord
    is_campaign: bool
    testbed: dict[str, str]
    found: dict[int, PointRecord] = field(default_factory=dict)
    """Points by the places of the runs."""
    unlike: tuple[str, ...] = ()


def _in_order(records: Sequence[CampaignRecord], over: Over) -> list[CampaignRecord]:
    if not records:
        raise RequestError(
            "no run: a trend needs at least one",
            code="analysis.no-run",
            where="RUN",
            next_step="Name run files, or a folder with run files.",
        )
    check_no_run_twice(records)
    moments: dict[datetime, CampaignRecord] = {}
    for record in records:
        try:
            moment = moment_of(record)
        except ValueError:
            raise RequestError(
                f"this run has no start time: {record.created_at[:40]!r}",
                code="analysis.run-without-time",
                where=record.path.name,
                next_step="Leave this file out.",
            ) from None
        moments[moment] = record
    ordered = [moments[moment] for moment in sorted(moments)]
    if over == "time":
        return ordered
    versions = versions_of(ordered)
    unstated = [record for record, version in zip(ordered, versions, strict=True) if version is None]
    if unstated:
        raise RequestError(
            f"{len(unstated)} of {len(ordered)} runs do not state the version of their DUT",
            code="analysis.run-without-version",
            where=_named(unstated),
            next_step="State system or kernel in [dut.facts] of the testbed file before you measure, or use"
            " --over time.",
        )
    pairs = sorted(zip(versions, ordered, strict=True), key=lambda pair: version_key(pair[0]))
    return [record for _, record in pairs]


def _series(records: Sequence[CampaignRecord]) -> list[_Series]:
    """All points that go together, in the order in which they first come."""
    by_place: dict[tuple[object, ...], list[_Series]] = {}
    for number, record in enumerate(records):
        taken: list[_Series] = []
        for point in record.points:
            known = by_place.setdefault(_place(point), [])
            left = [each for each in known if not any(each is other for other in taken)]
            testbed = testbed_of(record, point)
            # The same suite first, and the latest kind before older ones.
            left.sort(
                key=lambda each, suite=point.point.suite: (  # type: ignore[misc]
                    each.latest.point.suite != suite,
                    -max(each.found),
                )
            )
            unlike = [_unlike(each, point, record, testbed) for each in left]
            alike = next((each for each, lines in zip(left, unlike, strict=True) if not lines), None)
            if alike is None:
                if left and not point.values:
                    continue  # not measured, and nothing says how it would have been: a gap
                alike = _Series(
                    latest=point,
                    is_campaign=record.is_campaign,
                    testbed=testbed,
                    unlike=tuple(f"{record.path.name}: {line}" for line in (unlike[0] if unlike else ())),
                )
                known.append(alike)
            alike.found[number] = point
            alike.latest, alike.is_campaign = point, record.is_campaign
            alike.testbed |= testbed
            taken.append(alike)
    return [each for of_place in by_place.values() for each in of_place]


def _place(record: PointRecord) -> tuple[object, ...]:
    """Which point it is; all else is how it was measured."""
    point = record.point
    return (
        point.procedure,
        point.plan,
        tuple(point.hosts),
        tuple(point.networks),
        point.routes,
        point.frame_size,
        point.directions,
        point.hash_type,
    )


def _unlike(
    series: _Series, point: PointRecord, record: CampaignRecord, testbed: dict[str, str]
) -> tuple[str, ...]:
    of_one_kind = series.is_campaign == record.is_campaign
    return (*unlike_in(series.latest, point, of_one_kind), *differing(series.testbed, testbed))


def _point_trend(series: _Series, records: Sequence[CampaignRecord]) -> PointTrend:
    figure = PROCEDURES[series.latest.point.procedure].figure
    values = [_value(number, series.found.get(number)) for number in range(len(records))]
    measured = [value for value in values if value.statistics is not None]
    judging = _Judging(figure=figure, records=records)
    levels: tuple[Level, ...] = ()
    changes: tuple[Change, ...] = ()
    if 2 <= len(measured) < FEWEST_RUNS:
        changes = tuple(judging.from_run_to_run(series))
    elif len(measured) >= FEWEST_RUNS:
        found = find_levels([value.statistics.median for value in measured if value.statistics is not None])
        for place in found.apart:
            value = measured[place]
            values[value.run] = replace(value, is_apart=True)
        groups = judging.joined([[measured[place] for place in group] for group in found.groups])
        levels = tuple(_level(group) for group in groups)
        changes = tuple(
            judging.change(before[-1].run, after[0].run, _pool(before), _pool(after), "levels")
            for before, after in pairwise(groups)
        )
    return PointTrend(
        key=series.latest.point.key,
        point=series.latest.point,
        figure=figure,
        testbed=series.testbed,
        values=tuple(values),
        levels=levels,
        changes=changes,
        judged_by="levels" if levels else "compare" if len(measured) > 1 else "nothing",
        unlike=series.unlike,
    )


def _value(run: int, point: PointRecord | None) -> TrendValue:
    if point is None:
        return TrendValue(run=run, statistics=None, reason="not in this run")
    return TrendValue(
        run=run,
        statistics=point.statistics,
        upper=point.median_upper,
        lower=median(point.lowers) if point.lowers != point.values else None,
        is_at_least=point.is_at_least,
        reason=why_none(point),
        time_left_out=time_left_out_at(point),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    """Which changes are real."""

    figure: Figure
    records: Sequence[CampaignRecord]

    def from_run_to_run(self, series: _Series) -> Iterator[Change]:
        """Those that `compare` would find between a run and the one before: their intervals leave out 1."""
        runs = [number for number, point in sorted(series.found.items()) if point.values]
        for before, after in pairwise(runs):
            older, newer = series.found[before], series.found[after]
            if median_ratio(newer, older).is_different:
                yield self.change(before, after, older, newer, "compare")

    def joined(self, groups: list[list[TrendValue]]) -> list[list[TrendValue]]:
        """Levels with no real change between them become one, until none is left."""
        groups = list(groups)
        place = 1
        while place < len(groups):
            if _is_real(median_ratio(_pool(groups[place]), _pool(groups[place - 1]))):
                place += 1
            else:
                groups[place - 1 : place + 1] = [groups[place - 1] + groups[place]]
                place = max(1, place - 1)
        return groups

    def change(
        self, before_run: int, run: int, before: Pool | PointRecord, after: Pool | PointRecord, by: By
    ) -> Change:
        ratio = median_ratio(after, before)
        return Change(
            before_run=before_run,
            run=run,
            before=median(before.values),
            after=median(after.values),
            ratio=ratio,
            performance=performance_of(ratio, after.values, self.figure),
            by=by,
            differences=tuple(setup_differences([self.records[before_run], self.records[run]])),
        )


def _is_real(ratio: MedianRatio) -> bool:
    """Whether two levels differ by more than the brackets of their searches, and lower bounds do not hide by
    how much: those take part as what they are."""
    if ratio.ratio is None:
        return True
    if ratio.bound == "unknown" or ratio.ratio == 1:
        return False
    if (ratio.bound == "at_least" and ratio.ratio < 1) or (ratio.bound == "at_most" and ratio.ratio > 1):
        return False
    apart = 1 - min(ratio.ratio, 1 / ratio.ratio) if ratio.ratio else 1.0
    return apart > ratio.search_width


def _pool(group: Sequence[TrendValue]) -> Pool:
    """Each value is that of a run."""
    values = tuple(value.statistics.median for value in group if value.statistics is not None)
    is_at_least = is_median_at_least(values, [value.is_at_least for value in group])
    uppers = tuple(
        number
        if value.is_at_least and is_at_least
        else float("inf")
        if value.is_at_least
        else number
        if value.upper is None
        else value.upper
        for number, value in zip(values, group, strict=True)
    )
    lowers = tuple(
        number if value.lower is None else value.lower for number, value in zip(values, group, strict=True)
    )
    return Pool(values=values, is_at_least=is_at_least, uppers=uppers, lowers=lowers)


def _level(group: Sequence[TrendValue]) -> Level:
    pool = _pool(group)
    return Level(
        first_run=group[0].run,
        last_run=group[-1].run,
        runs=len(group),
        median=median(pool.values),
        is_at_least=pool.is_at_least,
    )


def _named(records: Sequence[CampaignRecord]) -> str:
    names = [record.path.name for record in records[:MOST_NAMED]]
    more = f" and {len(records) - MOST_NAMED} more" if len(records) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"
