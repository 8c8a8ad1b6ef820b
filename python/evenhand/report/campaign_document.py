# SPDX-License-Identifier: Apache-2.0
"""Station 10: a campaign as one JSON document, in short (`evenhand show --json`) and whole
(contract/export.schema.json)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from evenhand.analysis.comparison_model import time_left_out_document
from evenhand.base.table import Column, Table, make_table
from evenhand.base.terminal_table import Printable
from evenhand.base.units import format_count
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_rows import trials_of, verdicts_of
from evenhand.run import (
    CampaignRecord,
    HookRun,
    PointRecord,
    PointState,
    Repetition,
    StoredSearch,
    StoredTrial,
)
from evenhand.run.figures import time_left_out_at, time_left_out_of
from evenhand.trial import Verdict

if TYPE_CHECKING:
    from evenhand.run.campaign.outline import Outline, OutlineRow


SCHEMA = 1
"""Version of contract/export.schema.json."""


def summary_document(
    record: CampaignRecord, *, points: Iterable[PointRecord] | None = None
) -> dict[str, Any]:
    """What was asked, when, where, and each point in a few figures.

    Args:
        points: Only these, each with its repetitions and what their trials ended with.
    """
    return {
        **_head(record),
        "points_without_number": sum(point.state is PointState.NO_NUMBER for point in record.points),
        "points": [_point(record, point) for point in record.points]
        if points is None
        else [
            {
                **_point(record, point),
                "repetitions": [_repetition(r, is_whole=False) for r in point.repetitions],
            }
            for point in points
        ],
    }


def export_document(record: CampaignRecord) -> dict[str, Any]:
    """All that the file holds, but for what SQLite needs."""
    return {
        "schema": SCHEMA,
        **_head(record),
        "spec": dict(record.spec),
        "hooks": [_hook(hook) for hook in record.hooks],
        "points": [
            {
                **_point(record, point),
                "plan_options": dict(point.point.plan_options),
                "goal": dict(point.point.goal),
                "hooks": [_hook(hook) for hook in point.hooks],
                "repetitions": [_repetition(repetition, is_whole=True) for repetition in point.repetitions],
            }
            for point in record.points
        ],
        "other_searches": [_search(search, is_whole=True) for search in record.other_searches],
    }


def _head(record: CampaignRecord) -> dict[str, Any]:
    trials = [trial for point in record.points for trial in trials_of(point)]
    trials += [trial for search in record.other_searches for trial in search.trials]
    return {
        "file": record.path.name,
        "name": record.name,
        "is_campaign": record.is_campaign,
        "created_at": record.created_at,
        "finished_at": record.finished_at,
        "commands": [list(command) for command in record.commands],
        "versions": dict(record.versions),
        "host": dict(record.host),
        "testbeds": {name: dict(facts) for name, facts in record.testbeds.items()},
        "notes": list(record.notes),
        "trials": _verdicts(trials),
    }


def _point(record: CampaignRecord, measured: PointRecord) -> dict[str, Any]:
    point, figure = measured.point, PROCEDURES[measured.point.procedure].figure
    statistics = measured.statistics
    return {
        "number": record.points.index(measured) + 1,
        "key": point.key,
        "suite": point.suite,
        "procedure": point.procedure,
        "plan": point.plan,
        "hosts": point.hosts.to_document(),
        "networks": point.networks.to_document(),
        **({} if point.routes is None else {"routes": point.routes.to_document()}),
        "frame_size": point.frame_size,
        "directions": list(point.directions),
        "hash_type": point.hash_type,
        "state": str(measured.state),
        "reason": measured.reason,
        "stopped_early": measured.stopped_early,
        "testbeds": list(dict.fromkeys(repetition.testbed for repetition in measured.repetitions)),
        "asked_repetitions": point.repetitions,
        "finished_repetitions": sum(
            repetition.finished_at is not None for repetition in measured.repetitions
        ),
        "figure": figure.to_document(),
        "values": list(measured.values),
        "at_maximum": measured.at_maximum,
        "at_tester_ceiling": measured.at_tester_ceiling,
        "median": None if statistics is None else statistics.median,
        "median_upper": measured.median_upper,
        "minimum": None if statistics is None else statistics.minimum,
        "maximum": None if statistics is None else statistics.maximum,
        "trials": _verdicts(trials_of(measured)),
        **time_left_out_document(time_left_out_at(measured)),
    }


def _repetition(repetition: Repetition, *, is_whole: bool) -> dict[str, Any]:
    return {
        "number": repetition.number,
        # As text: it has 64 bits without a sign, and many readers of JSON make a float of it.
        "seed": str(repetition.seed),
        "testbed": repetition.testbed,
        "started_at": repetition.started_at,
        "finished_at": repetition.finished_at,
        "outcome": repetition.outcome,
        "reason": repetition.reason,
        "value": repetition.value,
        "is_at_least": repetition.is_at_least,
        **time_left_out_document(time_left_out_of(repetition)),
        **({"result": None if repetition.result is None else dict(repetition.result)} if is_whole else {}),
        "searches": [_search(search, is_whole=is_whole) for search in repetition.searches],
    }


def _search(search: StoredSearch, *, is_whole: bool) -> dict[str, Any]:
    rest = {
        "plan": search.plan,
        "frame_size": search.frame_size,
        "seed": str(search.seed),
        "setup": search.setup,
        "goal": search.goal,
        "result": search.result,
    }
    return {
        "name": search.name,
        "kind": search.kind,
        "started_at": search.started_at,
        "finished_at": search.finished_at,
        "outcome": search.outcome,
        **(rest if is_whole else {}),
        "trials": [_trial(trial, is_whole=is_whole) for trial in search.trials],
    }


def _trial(trial: StoredTrial, *, is_whole: bool) -> dict[str, Any]:
    result = trial.result
    return {
        "number": trial.number,
        "purpose": trial.purpose,
        "attempt": trial.attempt,
        "is_full_length": trial.is_full_length,
        "verdict": str(result.verdict),
        "intended_fps": result.intended_fps,
        "intended_duration_s": result.intended_duration_s,
        "loss_ratio": result.loss_ratio,
        **({} if (share := result.left_out_share) is None else {"time_left_out_share": share}),
        "reasons": [{"code": reason.code, "text": reason.text} for reason in result.reasons],
        **({"document": dict(result.raw)} if is_whole else {}),
    }


def _hook(hook: HookRun) -> dict[str, Any]:
    return {
        "when": hook.when,
        "command": hook.command,
        "exit_code": hook.exit_code,
        "output": hook.output,
        "duration_s": hook.duration_s,
    }


def _verdicts(trials: Iterable[StoredTrial]) -> dict[str, int]:
    counted = verdicts_of(trials)
    return {str(verdict): counted[verdict] for verdict in Verdict}


def campaign_plan_report(outline: Outline) -> list[Printable]:
    """A table for each suite, in the order of measuring, with what its points have in common above it; then
    total, deviations, notes."""
    parts: list[Printable] = []
    in_order = sorted(outline.rows, key=lambda row: row.place)
    for suite in dict.fromkeys(row.point.suite for row in in_order):
        rows = [row for row in in_order if row.point.suite == suite]
        parts += [*(Text(line) for line in _suite_lines(suite, rows)), _table(rows), Text("")]
    return [*parts, *(Text(line) for line in campaign_plan_lines(outline))]


def campaign_plan_lines(outline: Outline) -> list[str]:
    """The lines below the tables."""
    points, repetitions = len(outline.rows), outline.repetitions
    order = (
        "in turn"
        if outline.plan.round_order == "in-turn"
        else "shuffled by the seed, single address pairs first"
    )
    return [
        f"{format_count(points)} {'point' if points == 1 else 'points'}, {format_count(repetitions)}"
        f" {'repetition' if repetitions == 1 else 'repetitions'}, seed {outline.plan.seed}, {order}.",
        f"Expected time: {outline.expected.words}, if no trial is repeated.",
        *(deviation.line for deviation in outline.deviations),
        *(f"Note: {note}" for note in outline.notes),
    ]


def _suite_lines(suite: str, rows: list[OutlineRow]) -> list[str]:
    largest = max(rows, key=lambda row: (sum(row.point.hosts), sum(row.point.routes or ())))
    goals = dict.fromkeys((row.point.procedure, row.goal) for row in rows)
    rounds = max(row.point.rounds for row in rows)
    in_rounds = (
        [
            f"  The repetitions are made in {rounds} rounds over all points; the order"
            " below is that of the first round."
        ]
        if rounds > 1 and len(rows) > 1
        else []
    )
    return [
        f"{suite}: {' and '.join(largest.point.directions)}",
        f"  {largest.traffic.lines()[0]}",
        *(f"  {procedure}: {goal}." for procedure, goal in goals),
        *in_rounds,
    ]


def _table(rows: list[OutlineRow]) -> Table:
    """Columns in which all rows are alike except for what distinguishes them: place, point, repetitions,
    time."""
    has_hash = any(row.point.hash_type for row in rows)
    return make_table(
        [
            "#order",
            Column("procedure", is_name=True),
            "#octets",
            "#routes" if all(row.point.routes for row in rows) else "#hosts",
            *([Column("hash", is_name=True)] if has_hash else []),
            "#times",
            "#expected",
        ],
        (
            [
                str(row.place),
                row.point.procedure,
                str(row.point.frame_size),
                row.host_words,
                *([row.point.hash_type or "-"] if has_hash else []),
                str(row.point.repetitions),
                row.expected.words.removeprefix("about "),
            ]
            for row in rows
        ),
    )
