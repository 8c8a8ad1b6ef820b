# SPDX-License-Identifier: Apache-2.0
"""Station 10: what an MLRsearch found (RFC 9971), and one way to show whatever search it was."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.procedure import Profile, search_deviations
from evenhand.report.throughput import (
    ceiling_lines,
    describe_limit,
    dut_lines,
    loss_by_direction,
    patience_lines,
    summary_lines,
    trials_lines,
)
from evenhand.report.trials import trials_table
from evenhand.search import GoalResult, MlrResult, Outcome, SearchResult, describe_goal_outcome


def search_tables(result: SearchResult, *, title: str = "Trials") -> list[Table]:
    """All trials, and for `mlr` all goals."""
    trials = FittedTable.of(trials_table(result.trials, title=title))
    return [trials, goals_table(result)] if isinstance(result, MlrResult) else [trials]


def search_lines(result: SearchResult, profile: Profile) -> list[str]:
    """The closing lines of any search."""
    return mlr_lines(result, profile) if isinstance(result, MlrResult) else summary_lines(result, profile)


def goals_table(result: MlrResult) -> Table:
    """A line for each goal: both bounds, how far they are apart, and the conditional throughput (MLR-10,
    MLR-11)."""
    table = FittedTable("Goals, loads per direction")
    for name in (
        "goal",
        "loss ratio",
        "lower bound",
        "upper bound",
        "width",
        "conditional throughput",
        "result",
    ):
        table.add_column(
            name, justify="left" if name in ("goal", "result") else "right", no_wrap=name != "result"
        )
    for found in result.goals:
        width = "-"
        if found.lower_fps is not None and found.upper_fps is not None:
            width = format_ratio((found.upper_fps - found.lower_fps) / found.upper_fps)
        table.add_row(
            found.goal.name,
            format_ratio(found.goal.loss_ratio),
            _load(found.lower_fps),
            _load(found.upper_fps),
            width,
            _load(found.conditional_throughput_fps),
            Text(describe_goal_outcome(found, result.goal), style="green" if found.is_regular else "yellow"),
        )
    return table


def mlr_lines(result: MlrResult, profile: Profile) -> list[str]:
    """A line for each goal with the items of R2544-23, then all its attributes, what was sent, what deviates
    (MLR-11)."""
    lines = [_goal_line(found, profile) for found in result.goals]
    lines.append(
        f"{profile.frames}, {profile.protocol}, {profile.addresses} ({profile.plan.label}); theoretical limit"
        f" {describe_limit(profile)}."
    )
    for found in result.goals:
        goal = found.goal
        lines.append(
            f"Goal {goal.name} (RFC 9971): loss ratio {format_ratio(goal.loss_ratio)}, exceed ratio"
            f" {format_ratio(goal.exceed_ratio)}, "
            f"final trial duration {format_duration(goal.final_duration_s)}, duration sum"
            f" {format_duration(goal.duration_sum_s)}, "
            f"initial trial duration {format_duration(goal.initial_duration_s)}, width"
            f" {format_ratio(goal.width)} of the upper bound."
        )
    for found in result.goals:
        lost = loss_by_direction(result.losses_of(found)) if found.goal.loss_ratio else None
        lines += [] if lost is None else [f"Lost at the lower bound of {found.goal.name}: {lost}."]
        lines += _filling_lines(found, result.sustainable_fps_of(found))
    lines.append(
        f"Loads from {format_count(result.goal.lowest_fps)} to {format_count(result.goal.max_fps)}"
        " fps per direction; loss is counted over all directions together, and a trial"
        f" is FAIL if its loss exceeds {format_ratio(result.goal.loss_ratio)}, which is the"
        " strictest goal."
    )
    if result.tester_limit_fps is not None:
        load = f"{format_count(result.tester_limit_fps)} fps per direction"
        lines.append(
            f"Every trial at {load} was INVALID: this tester cannot keep that load, which"
            " says nothing about the DUT."
        )
    lines += profile.sent_lines
    if profile.single_pair is not None:
        lines.append(profile.single_pair.line(result))
    lines += dut_lines(profile)
    lines += ceiling_lines(result.goal, profile)
    lines += patience_lines(result.goal)
    lines += trials_lines(
        [trial.result for trial in result.trials], is_decided=result.outcome is not Outcome.TESTER_LIMIT
    )
    return lines + [deviation.line for deviation in search_deviations(result, profile)]


def _goal_line(found: GoalResult, profile: Profile) -> str:
    described = f"{found.goal.name} (loss ratio {format_ratio(found.goal.loss_ratio)})"
    if found.lower_fps is None:
        return f"{described}: no throughput; {_outcome(found)}."
    both = ""
    if len(profile.directions) == 2:
        both = f" ({format_count(2 * found.lower_fps)} fps in both directions together)"
    conditional = (
        ""
        if found.conditional_throughput_fps is None
        else f"; conditional throughput {_load(found.conditional_throughput_fps)} fps"
    )
    upper = "" if found.upper_fps is None else f"; upper bound {_load(found.upper_fps)} fps"
    bound = "" if found.is_regular else "at least "
    return (
        f"{described}: {bound}{_load(found.lower_fps)} fps per direction{both}{upper}{conditional};"
        f" {_outcome(found)}."
    )


def _filling_lines(found: GoalResult, sustainable_fps: float | None) -> list[str]:
    if sustainable_fps is None:
        return []
    return [
        f"Longer trials would refute the lower bound of {found.goal.name}: in most trials of"
        f" {format_duration(found.goal.final_duration_s)} at that load delays grew steadily, so"
        " a queue of the DUT was filling. The DUT sustains about"
        f" {format_count(sustainable_fps)} fps per direction."
    ]


def _outcome(found: GoalResult) -> str:
    return "regular" if found.is_regular else f"irregular ({str(found.outcome).replace('_', ' ')})"


def _load(rate_fps: float | None) -> str:
    return "-" if rate_fps is None else f"{rate_fps:,.0f}" if rate_fps >= 1000 else format_count(rate_fps)
