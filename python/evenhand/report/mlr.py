# SPDX-License-Identifier: Apache-2.0
"""Station 10: what an MLRsearch found (RFC 9971), and one way to show whatever search it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.base.table import Cell, Column, Table, make_table
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.procedure import Profile, throughput_document
from evenhand.report.result_entry import mapping, mappings, number, show, text, words
from evenhand.report.result_lines import describe_conditions, deviation_lines, dut_lines, trials_lines
from evenhand.report.throughput import loss_by_direction, note_lines, summary_lines
from evenhand.report.trials import trials_table
from evenhand.search import GoalResult, MlrResult, Outcome, SearchResult


def search_tables(result: SearchResult, *, title: str = "Trials") -> list[Table]:
    """All trials, and for `mlr` all goals."""
    goals = goals_table(result.to_document())
    return [trials_table(result.trials, title=title), *([goals] if goals.rows else [])]


def search_lines(result: SearchResult, profile: Profile) -> list[str]:
    """The closing lines of any search."""
    return mlr_lines(result, profile) if isinstance(result, MlrResult) else summary_lines(result, profile)


def goals_table(document: Mapping[str, Any]) -> Table:
    """A line for each goal: both bounds, how far they are apart, and the conditional throughput (MLR-10,
    MLR-11)."""
    return make_table(
        [
            Column("goal", is_name=True),
            "#loss ratio",
            "#lower bound",
            "#upper bound",
            "#width",
            "#conditional throughput",
            "result",
        ],
        [_goal_row(found, mapping(document, "goal")) for found in mappings(document, "goals")],
        title="Goals, loads per direction",
    )


def _goal_row(found: Mapping[str, Any], goal: Mapping[str, Any]) -> list[str | Cell]:
    lower_fps, upper_fps = (number(found, f"{bound}_fps_per_direction") for bound in ("lower", "upper"))
    width = None if lower_fps is None or not upper_fps else (upper_fps - lower_fps) / upper_fps
    return [
        text(found, "name"),
        show(number(found, "loss_ratio"), format_ratio),
        _load(lower_fps),
        _load(upper_fps),
        show(width, format_ratio),
        _load(number(found, "conditional_throughput_fps_per_direction")),
        Cell(_describe_goal(found, goal), "PASS" if found.get("outcome") == Outcome.FOUND else "flag"),
    ]


def _describe_goal(found: Mapping[str, Any], goal: Mapping[str, Any]) -> str:
    """How the search for one goal ended (MLR-10)."""
    max_fps = number(goal, "max_fps") or 0.0
    match found.get("outcome"):
        case Outcome.FOUND:
            return "regular"
        case Outcome.AT_OR_ABOVE_MAXIMUM:
            return (
                f"irregular: at or above the maximum of {format_count(max_fps)} fps, the limit was not"
                " reached"
            )
        case Outcome.BELOW_MINIMUM:
            return f"irregular: below the minimum of {show(number(goal, 'min_fps'), format_count)} fps"
        case Outcome.TESTER_LIMIT if goal.get("is_max_testers") is True and max_fps == number(
            found, "lower_fps_per_direction"
        ):
            return (
                f"irregular: at or above the tester's own ceiling of {format_count(max_fps)} fps, no higher"
                " load was tried"
            )
        case Outcome.TESTER_LIMIT:
            return (
                "irregular: tester limit, every trial at a load between the bounds was INVALID, so the"
                " bounds get no closer"
            )
        case Outcome.STOPPED:
            return "irregular: stopped before the end"
        case _:
            return f"irregular: {words(found, 'outcome')}"


def mlr_lines(result: MlrResult, profile: Profile) -> list[str]:
    """A line for each goal with the items of R2544-23, then all its attributes, what was sent, what deviates
    (MLR-11)."""
    lines = [_goal_line(found, profile) for found in result.goals]
    lines.append(f"{describe_conditions(profile)}.")
    document = throughput_document(result, profile)
    lines += goal_lines(document)
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
    lines += dut_lines(profile.dut)
    lines += note_lines(document)
    lines += trials_lines(
        [trial.result for trial in result.trials], is_decided=result.outcome is not Outcome.TESTER_LIMIT
    )
    return [*lines, *deviation_lines(document)]


def goal_lines(document: Mapping[str, Any]) -> list[str]:
    """The attributes of each goal (MLR-11)."""

    def duration(goal: Mapping[str, Any], name: str) -> str:
        return show(number(goal, f"{name}_s"), format_duration)

    return [
        f"Goal {text(goal, 'name')} (RFC 9971): loss ratio {show(number(goal, 'loss_ratio'), format_ratio)},"
        f" exceed ratio {show(number(goal, 'exceed_ratio'), format_ratio)}, final trial duration"
        f" {duration(goal, 'final_duration')}, duration sum {duration(goal, 'duration_sum')}, initial trial"
        f" duration {duration(goal, 'initial_duration')}, width"
        f" {show(number(goal, 'width'), format_ratio)} of the upper bound."
        for goal in mappings(document, "goals")
    ]


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
