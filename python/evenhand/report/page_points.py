# SPDX-License-Identifier: Apache-2.0
"""Station 10: every point of a campaign with its repetitions and trials, as lines that open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from markupsafe import Markup

from evenhand.analysis import values_by_testbed
from evenhand.base.table import Cell, Row, Table, in_one_unit, make_table, measured
from evenhand.base.units import LOSS, OneUnit, format_count, format_duration, one_unit
from evenhand.report.flows import shown_flows
from evenhand.report.page_inside import queue_facts
from evenhand.report.page_strips import ShownStrips, shown_strips
from evenhand.report.page_words import (
    NONE,
    direction_words,
    established_connections,
    load_words,
    measured_cells,
    show_addresses,
    show_fact,
    show_median,
    show_protocol,
    show_range,
    show_size,
    show_time,
    show_value,
    time_share_cell,
    unit_of,
)
from evenhand.report.trial import NumberOf, trials_table
from evenhand.run.campaign_record import (
    AT_LEAST,
    CampaignRecord,
    HookRun,
    PointRecord,
    PointState,
    Repetition,
)
from evenhand.run.figures import losses_of, sustainable_of, time_left_out_at, time_left_out_of
from evenhand.search import Role
from evenhand.spec.request import Point
from evenhand.trial import TrialResult, Verdict

MOST_TRIALS = 8000
"""Most trials on a page. A browser opens some megabytes at once, and a campaign has its trials in its file as
well."""
SPARK_BARS = 40
HOOKS = {
    "before_point": "Before the point",
    "after_point": "After the point",
    "before_suite": "Before the suite",
    "after_suite": "After the suite",
    "dut_apply": "The DUT set up over SSH: what was changed",
    "dut_undo": "The DUT restored: what was undone",
}


@dataclass(frozen=True, slots=True)
class ShownHook:
    title: str
    command: str
    output: str


@dataclass(frozen=True, slots=True)
class ShownTrials:
    """Trials of one repetition."""

    title: str
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPoint:
    id: str
    name: str
    median: str
    range: str
    state: str
    style: str
    reason: str
    facts: list[tuple[str, str | None]]
    hooks: list[ShownHook]
    repetitions: Table
    flows: Table | None
    strips: ShownStrips | None
    trials: list[ShownTrials]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSuite:
    name: str
    conditions: str
    points: list[ShownPoint]


def shown_suites(record: CampaignRecord, number_of: NumberOf | None = None) -> list[ShownSuite]:
    """All points; the trials too, as long as there are not too many for a page.

    Args:
        number_of: Writes the number of a trial.
    """
    with_trials = count_trials(record).total() <= MOST_TRIALS
    suites = []
    ids = {found.point.key: f"point-{number}" for number, found in enumerate(record.points, start=1)}
    for suite in record.suites:
        found = [one for one in record.points if one.point.suite == suite]
        figures = in_one_unit(measured_cells(one, unit_of(one.point)) for one in found)
        suites.append(
            ShownSuite(
                name=suite,
                conditions=_conditions([one.point for one in found]),
                points=[
                    _shown_point(
                        one,
                        ids[one.point.key],
                        [o.point for o in found],
                        of_one,
                        with_trials=with_trials,
                        number_of=number_of,
                    )
                    for one, of_one in zip(found, figures, strict=True)
                ],
            )
        )
    return suites


CEILING = "ceiling"


def count_trials(record: CampaignRecord) -> Counter[str]:
    """Trials of all points, by their verdicts; those that looked for the tester's own ceiling, which go up
    until they are INVALID, are counted as `CEILING`."""
    return Counter(
        CEILING if search.role is Role.CEILING else str(trial.result.verdict)
        for found in record.points
        for repetition in found.repetitions
        for search in repetition.searches
        for trial in search.trials
    )


def trials_left_out(record: CampaignRecord) -> str:
    """Empty if all are on the page."""
    trials = count_trials(record).total()
    if trials <= MOST_TRIALS:
        return ""
    return (
        f"{format_count(trials)} trials are too many for a page. They are in"
        f" {record.path.name}, with their verdicts and reasons."
    )


def shown_hooks(hooks: Sequence[HookRun]) -> list[ShownHook]:
    """The hooks, with what they printed, and how they ended."""
    shown = []
    for hook in hooks:
        ended = "did not end in time" if hook.exit_code is None else f"exit code {hook.exit_code}"
        title = f"{HOOKS.get(hook.when, hook.when)} ({ended}, {format_duration(hook.duration_s)})"
        shown.append(ShownHook(title, hook.command, hook.output.rstrip()))
    return shown


def _conditions(points: Sequence[Point]) -> str:
    """What all points of a suite share, in a line."""
    conditions: list[list[str]] = [
        [point.procedure for point in points],
        [f"plan {point.plan}" for point in points],
        [show_protocol(point) for point in points],
        [show_size(point) for point in points],
        [f"the DUT hashes by {point.hash_type}" if point.hash_type else "" for point in points],
        [direction_words(point) for point in points],
        [
            f"{point.repetitions} repetitions" if point.repetitions > 1 else "one repetition"
            for point in points
        ],
    ]
    return "; ".join(values[0] for values in conditions if len(set(values)) == 1 and values[0]) + "."


def _shown_point(
    found: PointRecord,
    point_id: str,
    among: Sequence[Point],
    figures: Row,
    *,
    with_trials: bool,
    number_of: NumberOf | None,
) -> ShownPoint:
    """
    Args:
        figures: Median, minimum and maximum, in one unit with those of the other points of its suite.
    """
    point = found.point
    finished = [repetition for repetition in found.repetitions if repetition.finished_at is not None]
    state, style = _state(found, len(finished))
    return ShownPoint(
        id=point_id,
        name=_name(point, among),
        median=figures[0].text,
        range=show_range(found, figures) or NONE,
        state=state,
        style=style,
        reason=found.reason or "",
        facts=_facts(found),
        hooks=shown_hooks(found.hooks),
        repetitions=_repetitions(found, unit_of(point)),
        flows=shown_flows(found),
        strips=shown_strips(found),
        trials=[
            _shown_trials(repetition, {} if number_of is None else {"number_of": number_of})
            for repetition in found.repetitions
            if with_trials and any(repetition.trials)
        ],
    )


def _name(point: Point, among: Sequence[Point]) -> str:
    parts = [show_addresses(point)] if len({(p.routes, p.hosts, p.networks) for p in among}) > 1 else []
    parts += [show_size(point)] if len({p.frame_size for p in among}) > 1 else []
    parts += [point.procedure] if len({p.procedure for p in among}) > 1 else []
    parts += [str(point.hash_type)] if len({p.hash_type for p in among}) > 1 else []
    parts += [point.plan] if len({p.plan for p in among}) > 1 else []
    return ", ".join(parts) or show_addresses(point)


def _state(found: PointRecord, finished: int) -> tuple[str, str]:
    match found.state:
        case PointState.PENDING:
            return "not started", "small"
        case PointState.BEGUN:
            return f"{finished} of {found.point.repetitions} done", "flag"
        case PointState.NO_NUMBER:
            return "no number", "flag"
        case PointState.MEASURED:
            lacking = found.point.repetitions - len(found.values)
            return (
                f"{len(found.values)} of {found.point.repetitions}",
                "flag" if lacking and not found.stopped_early else "",
            )


def _facts(found: PointRecord) -> list[tuple[str, str | None]]:
    point = found.point
    facts: list[tuple[str, str | None]] = [
        ("procedure", point.procedure),
        ("plan", point.plan),
        ("addresses", show_addresses(point)),
        ("frame size", show_size(point)),
        ("directions", " and ".join(point.directions) + load_words(point)),
    ]
    facts += [] if point.hash_type is None else [("hash of the DUT", point.hash_type)]
    facts += [("plan options", _options(point.plan_options))] if point.plan_options else []
    facts += [("goal", _options(point.goal))] if point.goal else []
    by_testbed = values_by_testbed(found)
    if len(by_testbed) > 1:
        facts += [
            (f"median of {name}", show_value(median(values), unit_of(point)))
            for name, values in by_testbed.items()
        ]
    elif by_testbed:
        facts += [("testbed", next(iter(by_testbed)))]
    if found.median_upper is not None:
        facts += [
            (
                "bracket of the searches",
                f"{show_median(found)} passed, {show_value(found.median_upper, unit_of(point))} failed"
                " (medians)",
            )
        ]
    if filling := [fps for each in found.repetitions if (fps := sustainable_of(each)) is not None]:
        facts += [
            (
                "a queue was filling",
                f"in {len(filling)} of {len(found.values)} repetitions: longer trials would"
                " refute these results; the DUT sustains about"
                f" {show_value(median(filling), unit_of(point))} (median)",
            )
        ]
    facts += queue_facts(found)
    facts += [("established connections", text)] if (text := established_connections(found)) else []
    facts += [("time left out", left_out.text)] if (left_out := time_left_out_at(found)) is not None else []
    facts += [("stopped early", found.stopped_early)] if found.stopped_early else []
    return facts


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {show_fact(value) or NONE}" for key, value in options.items())


def _losses(repetition: Repetition, unit: OneUnit) -> str:
    """A loss ratio above 0 is over both directions together (MLR-03)."""
    lost = losses_of(repetition)
    return ", ".join(f"{direction} {unit.write(ratio)}" for direction, ratio in lost.items()) or NONE


def _repetitions(found: PointRecord, unit: str) -> Table:
    rows: list[list[str | Cell]] = []
    losses = [ratio for repetition in found.repetitions for ratio in losses_of(repetition).values()]
    has_losses, of_losses = any(losses), one_unit(losses, LOSS)
    left_out = [time_left_out_of(repetition) for repetition in found.repetitions]
    has_left_out = any(of_time is not None for of_time in left_out)
    for repetition, of_time in zip(found.repetitions, left_out, strict=True):
        counts = [sum(trial.result.verdict is verdict for trial in repetition.trials) for verdict in Verdict]
        ended = "cut short" if repetition.finished_at is None else str(repetition.outcome).replace("_", " ")
        rows.append(
            [
                str(repetition.number),
                measured(repetition.value, unit, bound=AT_LEAST if repetition.is_at_least else ""),
                measured(repetition.upper, unit),
                *([_losses(repetition, of_losses)] if has_losses else []),
                ended + (f": {repetition.reason}" if repetition.reason else ""),
                " / ".join(map(str, counts)),
                *([time_share_cell(of_time)] if has_left_out else []),
                str(repetition.seed),
                repetition.testbed,
                show_time(repetition.started_at),
            ]
        )
    lost = [f"#lost, by direction, {of_losses.unit}"] if has_losses else []
    titles = [
        "#repetition",
        "#value",
        "#failed at",
        *lost,
        "outcome",
        "#PASS / FAIL / INVALID",
        *(["#time left out"] if has_left_out else []),
        "#seed",
        "testbed",
        "started",
    ]
    return make_table(titles, rows)


def _shown_trials(repetition: Repetition, options: Mapping[str, Any]) -> ShownTrials:
    trials = list(repetition.trials)
    counted = "1 trial" if len(trials) == 1 else f"{len(trials)} trials"
    cut = ", cut short" if repetition.finished_at is None else ""
    table = trials_table(trials, loss_over_time=_spark, **options)
    return ShownTrials(f"Repetition {repetition.number}{cut}: {counted}", table)


def _spark(result: TrialResult) -> Markup | str:
    """Loss over the time of the trial, as bars as high as a line of text; empty if nothing was lost, or
    it is not known when."""
    longest = max((len(direction.lost_by_tenth) for direction in result.directions.values()), default=0)
    lost = [
        sum(d.lost_by_tenth[tenth] for d in result.directions.values() if tenth < len(d.lost_by_tenth))
        for tenth in range(longest)
    ]
    if not any(lost):
        return ""
    width = -(-len(lost) // SPARK_BARS)
    bars = [sum(lost[begin : begin + width]) for begin in range(0, len(lost), width)]
    highest = max(bars)
    path = "".join(
        f"M{index} 10V{10 - max(1, round(10 * bar / highest))}" for index, bar in enumerate(bars) if bar
    )
    # Numbers only: nothing of what a file says gets into the markup.
    return Markup(
        '<svg class="spark" viewBox="-1 0 {} 10" preserveAspectRatio="none" aria-hidden="true">'
        '<path d="{}" stroke="var(--bad)" stroke-width=".8"/></svg>'
    ).format(len(bars) + 1, path)
