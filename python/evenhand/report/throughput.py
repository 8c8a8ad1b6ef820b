# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a throughput search found, for people (Rich)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.base.table import Cell, Column, Table, make_table, measured
from evenhand.base.units import (
    LOSS,
    SHARE,
    WHOLE_FPS,
    format_count,
    format_duration,
    format_rate,
    format_ratio,
)
from evenhand.base.visible import visible
from evenhand.procedure import OnePair
from evenhand.procedure.connection_rate import LEAST_SHARE
from evenhand.report.result_entry import ResultEntry, show, with_spaces
from evenhand.results.connections import ConnectionRateFound
from evenhand.results.throughput import CeilingFound, GoalFound, OnePairFound, SearchAsked, ThroughputFound
from evenhand.rig import KnownCeiling
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, DirectionLoss, Outcome, ThroughputGoal
from evenhand.trial import (
    DirectionRates,
    TrialResult,
    causes_of_invalid,
    describe_causes,
    read_direction_rates,
)


def throughput_lines(entry: ResultEntry) -> list[str]:
    """What any search found: the four items of R2544-23, a loss ratio that is not 0, how it ended, what was
    lost, and how the search differed from the usual one; of several goals all attributes of each (MLR-11)."""
    found: ThroughputFound = entry.found
    lines = _goals_lines(entry) if found.goals else _search_lines(entry)
    return [*lines, *one_pair_lines(found), *filling_lines(entry), *note_lines(found)]


def _search_lines(entry: ResultEntry) -> list[str]:
    found: ThroughputFound = entry.found
    loss_ratio = found.goal.loss_ratio
    loss = f" with a loss ratio of at most {format_ratio(loss_ratio)}" if loss_ratio else ""
    lost = loss_by_direction(found.losses or {}) if loss_ratio else None
    return [
        f"Throughput{loss}: {_value_words(found)}{f'; {entry.conditions}' if entry.conditions else ''}.",
        f"Outcome: {describe_outcome(found, entry.trials)}.",
        *([] if lost is None else [f"Lost at that load: {lost}."]),
    ]


def _value_words(found: ThroughputFound) -> str:
    """`at least 638,671 fps per direction (1,277,342 fps in both directions together)`."""
    fps = found.throughput_fps
    if fps is None:
        return "no throughput"
    rates = read_direction_rates(found.rates)
    if rates is not None:
        return f"{_bound(found)}{_unlike_words(rates, fps)} ({rates})"
    return f"{_bound(found)}{_per_direction(fps)}{_both_words(found, fps)}"


def _bound(found: ThroughputFound | OnePairFound | OnePair) -> str:
    return "at least " if found.is_at_least else ""


def _unlike_words(rates: DirectionRates, fps: float) -> str:
    """`639,415 fps forward, 159,854 fps reverse`."""
    each = rates.by_direction(fps).items()
    return ", ".join(f"{format_count(round(rate))} fps {direction}" for direction, rate in each)


def _both_words(found: ThroughputFound, fps: float) -> str:
    """Empty of one direction, and where the document does not state how many there are."""
    if len(found.directions) != 2:
        return ""
    rates = read_direction_rates(found.rates)
    if rates is None:
        return f" ({format_count(2 * fps)} fps in both directions together)"
    return f" ({_unlike_words(rates, fps)})"


def one_pair_words(before: OnePairFound | OnePair, loss: str = "") -> str:
    """`in this run, with 1 address pair: at least 638,671 fps per direction`."""
    fps = before.throughput_fps
    value = "no throughput" if fps is None else f"{_bound(before)}{_per_direction(fps)}"
    return f"{visible(before.source)}, with 1 address pair{loss}: {value}"


def one_pair_lines(found: ThroughputFound) -> list[str]:
    """The search with one address pair that was made before (SEED-02); none where there was none."""
    before = found.one_pair
    if before is None:
        return []
    compared = (
        f"no ratio, because {_why_no_ratio(before, found)}"
        if before.many_to_one is None
        else f"the result with many addresses is {before.many_to_one:.3f} times that (one search each, so the"
        " spread is not known)"
    )
    ratio = before.loss_ratio
    loss = f" with a loss ratio of at most {format_ratio(ratio)}" if ratio else ""
    return [f"Before it, {one_pair_words(before, loss)}; {compared}."]


def _why_no_ratio(before: OnePairFound, found: ThroughputFound) -> str:
    searches: dict[str, OnePairFound | ThroughputFound] = {
        "that with 1 address pair": before,
        "that with many addresses": found,
    }
    without = [name for name, each in searches.items() if each.throughput_fps is None]
    if without:
        ended = {searches[name].outcome for name in without}
        what = "no load passed in" if ended == {Outcome.BELOW_MINIMUM} else "no throughput was found by"
        return f"{what} {'either' if len(without) == 2 else without[0]}"
    if before.throughput_fps == 0:
        return "that with 1 address pair is 0"
    bounds = [name for name, each in searches.items() if each.is_at_least]
    return "both are lower bounds" if len(bounds) == 2 else f"{''.join(bounds)} is a lower bound"


def describe_outcome(found: ThroughputFound | ConnectionRateFound, trials: Sequence[TrialResult]) -> str:
    """How a search ended, in a sentence."""
    goal, upper_fps = found.goal, found.upper_fps
    max_fps = goal.max_fps or 0.0
    passed = (
        f"Highest load passed: {show(_highest_passed_fps(trials, upper_fps), _per_direction, none='none')}"
    )
    match found.outcome:
        case Outcome.FOUND:
            return "found" + ("" if upper_fps is None else f"; {format_count(upper_fps)} fps failed")
        case Outcome.AT_OR_ABOVE_MAXIMUM:
            return f"at or above the maximum of {_per_direction(max_fps)}: the limit was not reached"
        case Outcome.BELOW_MINIMUM:
            min_fps = goal.min_fps or LEAST_SHARE * max_fps
            return f"below the minimum of {_per_direction(min_fps)}: no load passed"
        case Outcome.TESTER_CEILING if goal.is_max_ceiling and max_fps == found.throughput_fps:
            return (
                f"tester ceiling: the tester's own ceiling of {_per_direction(max_fps)} passed, and no higher"
                " load was tried"
            )
        case Outcome.TESTER_CEILING:
            offered_fps = max((trial.offered_fps for trial in trials if trial.is_valid), default=None)
            causes = describe_causes(causes_of_invalid(trials)) or "INVALID trials"
            return (
                f"tester ceiling: the tester itself could not keep the load ({causes}). {passed}; highest"
                f" load offered in a valid trial: {show(offered_fps, _per_direction, none='none')}"
            )
        case Outcome.STOPPED:
            return f"stopped before the end. {passed}"
        case _:
            return with_spaces(found.outcome)


def _highest_passed_fps(trials: Sequence[TrialResult], upper_fps: float | None) -> float | None:
    passed = (trial.intended_fps for trial in trials if trial.is_pass)
    return max((fps for fps in passed if upper_fps is None or fps < upper_fps), default=None)


def _per_direction(fps: float) -> str:
    return f"{format_count(fps)} fps per direction"


def filling_lines(entry: ResultEntry) -> list[str]:
    """Where the confirming trial passed although a queue was filling: what a longer one would find."""
    found: ThroughputFound = entry.found
    fps, sustainable_fps = found.throughput_fps, found.sustainable_fps
    confirming = [t for t in entry.trials if t.intended_fps == fps and t.sustainable_fps is not None]
    if found.goals or sustainable_fps is None or not confirming:
        return []
    final = max(confirming, key=lambda trial: trial.intended_duration_s)
    slope = max(d.queue_filling.slope for d in final.directions.values() if d.queue_filling is not None)
    return [
        "A longer trial would refute this: in the confirming trial of"
        f" {format_duration(final.intended_duration_s)} delays grew by {format_duration(slope)}"
        " per second, so a queue of the DUT was filling. The DUT sustains about"
        f" {_per_direction(sustainable_fps)}; search with a longer final trial."
    ]


def loss_by_direction(losses: Mapping[Any, DirectionLoss]) -> str | None:
    """`forward 0.9 % (5,400 of 600,000 frames), reverse 0 % (...)`: a loss ratio is over both together
    (MLR-03). None: no result."""
    each = ", ".join(
        f"{name} {format_ratio(loss.loss_ratio)} ({format_count(loss.lost_frames)} of"
        f" {format_count(loss.offered_frames)} frames)"
        for name, loss in losses.items()
    )
    together = "; the loss ratio is over both directions together (MLR-03)" if len(losses) > 1 else ""
    return each + together if each else None


def note_lines(found: ThroughputFound) -> list[str]:
    """How the search differed from the usual one."""
    return [
        *unconfirmed_lines(found),
        *verification_lines(found.goal),
        *start_lines(found.goal),
        *ceiling_lines(found.ceiling, found.goal.max_fps),
        *patience_lines(found.goal),
    ]


def unconfirmed_lines(found: ThroughputFound) -> list[str]:
    """Where a load passed in short trials only, and the tester never made the full-length trial there: it is
    no bound."""
    passed_fps, value_fps, final_s = (
        found.highest_passed_fps,
        found.throughput_fps,
        found.goal.final_duration_s,
    )
    if found.outcome != Outcome.TESTER_CEILING or passed_fps is None or final_s is None:
        return []
    if value_fps is not None and passed_fps <= value_fps:
        return []
    return [
        f"Unconfirmed: {_per_direction(passed_fps)} passed in shorter trials only. There was no valid trial"
        f" of {format_duration(final_s)} at that load, so it is not a bound."
    ]


def verification_lines(goal: SearchAsked | ThroughputGoal) -> list[str]:
    """How a lossy trial came to count, if not as in RFC 2544."""
    verifications, plain = goal.loss_verifications, goal.plain_loss_ratio
    if verifications == 0:
        return []
    times = "a repetition" if verifications == 1 else f"{verifications} repetitions"
    which = (
        "A lossy trial"
        if plain is None or plain == 1
        else f"A trial with a loss of up to {format_ratio(plain)}"
    )
    return [
        f"{which} counted after {times} also had too much loss (loss verification, ETSI"
        " TST009 12.3), not at once as in RFC 2544."
    ]


def start_lines(goal: SearchAsked) -> list[str]:
    """Where the search began, if not at the maximum (MLR-13)."""
    if goal.known_fps is None:
        return []
    known = f"{_per_direction(goal.known_fps)}, known from before"
    return [f"The search began at {known}, not at the maximum (MLR-13); both bounds were verified again."]


def patience_lines(goal: SearchAsked | ThroughputGoal) -> list[str]:
    """How often INVALID trials were repeated, if not as usual."""
    usual = (DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE)
    if None in (goal.invalid_retries, goal.patience) or (goal.invalid_retries, goal.patience) == usual:
        return []
    return [
        f"INVALID trials were repeated up to {goal.invalid_retries} times, trials that were"
        f" spoiled by a brief disturbance and confirming trials up to {goal.patience} times"
        f" (defaults: {usual[0]} and {usual[1]})."
    ]


def ceiling_lines(ceiling: CeilingFound | KnownCeiling | None, max_fps: float | None) -> list[str]:
    """Where the tester's own ceiling had a say in where the search began, or should have had one (MLR-14)."""
    if ceiling is None or max_fps is None:
        return []
    known_ceiling = KnownCeiling(
        rate_fps=ceiling.rate_fps, above_fps=None, found_at=visible(ceiling.found_at)
    )
    when = "found before this search" if ceiling.is_new else known_ceiling.found_when
    known = f"the tester's own ceiling of {_per_direction(ceiling.rate_fps)}, {when}"
    if max_fps <= ceiling.rate_fps:
        return [f"The search began at {known}: this tester cannot keep a higher load (MLR-14)."]
    return [
        f"The search began at {_per_direction(max_fps)}, above {known}: INVALID trials above that are caused"
        " by the tester (MLR-14)."
    ]


def describe_load(rate_fps: float) -> str:
    """Short form for progress lines."""
    return f"{format_rate(rate_fps)} per direction"


def goals_table(found: ThroughputFound) -> Table:
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
        [_goal_row(each, found.goal) for each in found.goals],
        title="Goals, loads per direction",
    )


def _goal_row(found: GoalFound, asked: SearchAsked) -> list[str | Cell]:
    lower_fps, upper_fps = found.lower_fps, found.upper_fps
    width = None if lower_fps is None or not upper_fps else (upper_fps - lower_fps) / upper_fps
    return [
        visible(found.name),
        measured(found.loss_ratio, LOSS),
        measured(lower_fps, WHOLE_FPS),
        measured(upper_fps, WHOLE_FPS),
        measured(width, SHARE),
        measured(found.conditional_fps, WHOLE_FPS),
        Cell(_describe_goal(found, asked), "PASS" if found.is_regular else "flag"),
    ]


def _describe_goal(found: GoalFound, asked: SearchAsked) -> str:
    """How the search for one goal ended (MLR-10)."""
    max_fps = asked.max_fps or 0.0
    match found.outcome:
        case Outcome.FOUND:
            return "regular"
        case Outcome.AT_OR_ABOVE_MAXIMUM:
            return (
                f"irregular: at or above the maximum of {format_count(max_fps)} fps, the limit was not"
                " reached"
            )
        case Outcome.BELOW_MINIMUM:
            return f"irregular: below the minimum of {show(asked.min_fps, format_count)} fps"
        case Outcome.TESTER_CEILING if asked.is_max_ceiling and max_fps == found.lower_fps:
            return (
                f"irregular: at or above the tester's own ceiling of {format_count(max_fps)} fps, no higher"
                " load was tried"
            )
        case Outcome.TESTER_CEILING:
            return (
                "irregular: tester ceiling, every trial at a load between the bounds was INVALID, so the"
                " bounds get no closer"
            )
        case Outcome.STOPPED:
            return "irregular: stopped before the end"
        case _:
            return f"irregular: {with_spaces(found.outcome)}"


def _goals_lines(entry: ResultEntry) -> list[str]:
    found: ThroughputFound = entry.found
    goals, above_fps = found.goals, found.above_ceiling_fps
    low, high = (show(fps, format_count) for fps in (found.goal.min_fps, found.goal.max_fps))
    strictest = min(each.loss_ratio for each in goals)
    lost = [(visible(each.name), loss_by_direction(each.losses or {})) for each in goals if each.loss_ratio]
    return [
        *(_goal_line(each, found) for each in goals),
        *([f"{entry.conditions}."] if entry.conditions else []),
        *goal_lines(found),
        *(f"Lost at the lower bound of {name}: {words}." for name, words in lost if words is not None),
        *(line for each in goals for line in _goal_filling_lines(each)),
        f"Loads from {low} to {high} fps per direction; loss is counted over all directions together, and a"
        f" trial is FAIL if its loss exceeds {format_ratio(strictest)}, which is the strictest goal.",
        *(
            []
            if above_fps is None
            else [
                f"Every trial at {_per_direction(above_fps)} was INVALID: this tester cannot keep"
                " that load, which says nothing about the DUT."
            ]
        ),
    ]


def goal_lines(found: ThroughputFound) -> list[str]:
    """The attributes of each goal (MLR-11)."""
    return [
        f"Goal {visible(goal.name)} (RFC 9971): loss ratio {format_ratio(goal.loss_ratio)},"
        f" exceed ratio {show(goal.exceed_ratio, format_ratio)}, final trial duration"
        f" {show(goal.final_duration_s, format_duration)}, duration sum"
        f" {show(goal.duration_sum_s, format_duration)}, initial trial duration"
        f" {show(goal.initial_duration_s, format_duration)}, width"
        f" {show(goal.width, format_ratio)} of the upper bound."
        for goal in found.goals
    ]


def _goal_line(goal: GoalFound, found: ThroughputFound) -> str:
    described = f"{visible(goal.name)} (loss ratio {format_ratio(goal.loss_ratio)})"
    ended = "regular" if goal.is_regular else f"irregular ({with_spaces(goal.outcome)})"
    lower_fps, upper_fps, conditional_fps = goal.lower_fps, goal.upper_fps, goal.conditional_fps
    if lower_fps is None:
        return f"{described}: no throughput; {ended}."
    upper = "" if upper_fps is None else f"; upper bound {_load(upper_fps)} fps"
    conditional = "" if conditional_fps is None else f"; conditional throughput {_load(conditional_fps)} fps"
    return (
        f"{described}: {'' if goal.is_regular else 'at least '}{_load(lower_fps)} fps per"
        f" direction{_both_words(found, lower_fps)}{upper}{conditional}; {ended}."
    )


def _goal_filling_lines(goal: GoalFound) -> list[str]:
    if goal.sustainable_fps is None:
        return []
    return [
        f"Longer trials would refute the lower bound of {visible(goal.name)}: in most trials of"
        f" {show(goal.final_duration_s, format_duration)} at that load delays grew steadily, so"
        f" a queue of the DUT was filling. The DUT sustains about {_per_direction(goal.sustainable_fps)}."
    ]


def _load(rate_fps: float) -> str:
    return f"{rate_fps:,.0f}" if rate_fps >= 1000 else format_count(rate_fps)
