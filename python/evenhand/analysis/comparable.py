# SPDX-License-Identifier: Apache-2.0
"""Analysis: whether runs measured the same, and in words what they did not."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from evenhand.analysis.condition_words import join
from evenhand.analysis.matching import Match, measured_conditions, start_of, unlike_in
from evenhand.analysis.trend_model import TrendRun
from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.run.campaign_record import CampaignRecord

MOST_NAMED = 5
SAME_START = 0.05
"""Searches that begin where others ended begin at loads that differ by the noise; that is not another
setting."""


def check_kinds(records: Sequence[CampaignRecord]) -> None:
    """RequestError if some are campaigns and some are not, and there is a point whose searches do not state
    what was asked.

    A verb stores its goal as it understood it, a campaign as its file has it."""
    is_unstated = any(measured_conditions(point) is None for record in records for point in record.points)
    if is_unstated and len({record.is_campaign for record in records}) > 1:
        raise RequestError(
            "a campaign and the run of a single verb, and not all of their points were measured: their"
            " settings are stored differently, so those points cannot be checked against each other",
            code="analysis.settings-not-comparable",
            where=file_names(records),
            next_step="Finish the unfinished run, or compare them anyway with --anyway.",
        )


def check_no_run_twice(records: Sequence[CampaignRecord]) -> None:
    """RequestError if two of them are one run, or have a repetition in common, as a copy, a run that was
    resumed, and a file that was merged from several have: what was measured once would count as measured
    twice."""
    for i, record in enumerate(records):
        for other in records[:i]:
            why = why_one_run(other, record)
            if why is not None:
                raise RequestError(
                    f"{other.path.name} and {record.path.name} {why}",
                    code="analysis.run-twice",
                    where=record.path.name,
                    next_step="Leave one of them out.",
                )


def why_one_run(first: CampaignRecord, second: CampaignRecord) -> str | None:
    """Why what was measured once is in both; None if nothing is."""
    if first is second:
        return "are one run"
    moments = [_moment_or_none(record) for record in (first, second)]
    if moments[0] is not None and moments[0] == moments[1]:
        return f"were started in the same millisecond, {second.created_at}: they are one run"
    common = _measured_in(first) & _measured_in(second)
    if common:
        key, *_, began, _ = min(common)
        return f"both have the repetition of {key} that began at {began}"
    return None


def _measured_in(record: CampaignRecord) -> set[tuple[str, int, int, str, str]]:
    return {
        (point.point.key, one.number, one.seed, one.started_at, one.finished_at)
        for point in record.points
        for one in point.repetitions
        if one.finished_at is not None
    }


def moment_of(record: CampaignRecord | TrendRun) -> datetime:
    """When a run was begun, in UTC. ValueError if its file has no time there."""
    found = datetime.fromisoformat(record.created_at)
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def _moment_or_none(record: CampaignRecord) -> datetime | None:
    try:
        return moment_of(record)
    except ValueError:
        return None


def nothing_in_common(records: Sequence[CampaignRecord]) -> RequestError:
    """Single trials are kept, and are not points: by themselves they answer no question that could be asked
    of both."""
    empty = [record for record in records if not record.points]
    if empty:
        names, has = join([record.path.name for record in empty]), "has" if len(empty) == 1 else "have"
        return RequestError(
            f"{names} {has} only single trials or no trials, and no result of a search or"
            " series that could be compared",
            code="analysis.nothing-to-compare",
            where=file_names(records),
            next_step="Measure the same on both with evenhand throughput, loss or another"
            " procedure, and compare those runs; to see single trials: evenhand show"
            f" {shlex.quote(empty[0].path.name)}",
        )
    kinds = [{point.point.procedure for point in record.points} for record in records]
    if set.intersection(*kinds):
        return RequestError(
            "the runs have no point in common: none has the same addresses, frame size, directions, hash type"
            " and IP version in all of them",
            code="analysis.nothing-in-common",
            where=file_names(records),
            next_step="Measure the same points for both; evenhand show lists those of a run.",
        )
    procedures = [join(sorted({point.point.procedure for point in record.points})) for record in records]
    stated = "; ".join(
        f"{record.path.name}: {words}" for record, words in zip(records, procedures, strict=True)
    )
    return RequestError(
        f"the runs have nothing in common to compare: {stated}",
        code="analysis.nothing-in-common",
        where=file_names(records),
        next_step="Measure the same procedure for both.",
    )


def unlike_lines(first: CampaignRecord, other: CampaignRecord, match: Match) -> list[str]:
    counts: dict[str, int] = {}
    for i, point in match.of.items():
        for line in unlike_in(first.points[i], point, match.of_one_kind):
            counts[line] = counts.get(line, 0) + 1
    lines = [line if count == 1 else f"{line} ({count} points)" for line, count in counts.items()]
    for record, points in ((first, match.only_first), (other, match.only_other)):
        if points:
            named = [point.point.key for point in points[:MOST_NAMED]]
            more = f" and {len(points) - MOST_NAMED} more" if len(points) > MOST_NAMED else ""
            lines.append(f"only in {record.path.name}: {', '.join(named)}{more}")
    return lines


def start_notes(first: CampaignRecord, other: CampaignRecord, match: Match) -> Iterator[str]:
    """Points whose searches began at loads that differ by more than `SAME_START`: they end elsewhere on the
    same bracket."""
    found = [
        (first.points[i].point.key, start_of(first.points[i]), start_of(point))
        for i, point in match.of.items()
    ]
    apart = [
        (key, a, b)
        for key, a, b in found
        if a != b and (a is None or b is None or abs(a - b) > SAME_START * max(a, b))
    ]
    if apart:
        key, *starts = apart[0]
        shown = " against ".join(
            "its own start" if start is None else f"{format_count(round(start))} fps" for start in starts
        )
        more = "" if len(apart) == 1 else f", and at {format_count(len(apart) - 1)} more"
        yield (
            f"{other.path.name}: at {key} its searches began at a different load from those"
            f" of {first.path.name} ({shown}){more}"
        )


def file_names(records: Sequence[CampaignRecord]) -> str:
    return ", ".join(record.path.name for record in records)
