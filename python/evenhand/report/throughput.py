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
from evenhand.procedure import Profile, throughput_document
from evenhand.procedure.connection_rate import LEAST_SHARE
from evenhand.report.result_entry import (
    by_direction,
    describe_conditions,
    deviation_lines,
    dut_lines,
    mapping,
    mappings,
    number,
    show,
    text,
    trials_lines,
    whole,
    words,
)
from evenhand.report.trial import trials_table
from evenhand.rig import KnownCeiling
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    DirectionLoss,
    GoalResult,
    MlrResult,
    Outcome,
    SearchResult,
    ThroughputResult,
)
from evenhand.trial import TrialResult, causes_of_invalid, describe_causes


def summary_lines(result: ThroughputResult, profile: Profile) -> list[str]:
    """The closing lines: the four items of R2544-23, the loss ratio if it is not 0, the outcome, what
    deviates."""
    document = throughput_document(result, profile)
    trials = [trial.result for trial in result.trials]
    if result.throughput_fps is None:
        value = "no throughput"
    else:
        both = ""
        if len(profile.directions) == 2:
            both = f" ({format_count(2 * result.throughput_fps)} fps in both directions together)"
        bound = "at least " if result.is_at_least else ""
        value = f"{bound}{format_count(result.throughput_fps)} fps per direction{both}"
    loss = (
        f" with a loss ratio of at most {format_ratio(result.goal.loss_ratio)}"
        if result.goal.loss_ratio
        else ""
    )
    lost = loss_by_direction(result.losses) if result.goal.loss_ratio else None
    lines = [
        f"Throughput{loss}: {value}; {describe_conditions(profile)}.",
        f"Outcome: {describe_outcome(document, trials)}.",
        *([] if lost is None else [f"Lost at that load: {lost}."]),
        *profile.sent_lines,
    ]
    if profile.single_pair is not None:
        lines.append(profile.single_pair.line(result))
    lines += filling_lines(result)
    lines += dut_lines(profile.dut)
    lines += note_lines(document)
    lines += trials_lines(trials, is_decided=result.outcome is not Outcome.TESTER_LIMIT)
    return [*lines, *deviation_lines(document)]


def describe_outcome(document: Mapping[str, Any], trials: Sequence[TrialResult]) -> str:
    """How a search ended, in a sentence.

    Args:
        document: Of a throughput, or of a maximum connection establishment rate.
    """
    goal = mapping(document, "goal")
    upper_fps = number(document, "upper_fps_per_direction") or number(document, "failed_per_second")
    max_fps = number(goal, "max_fps") or 0.0
    passed = (
        f"Highest load passed: {show(_highest_passed_fps(trials, upper_fps), _per_direction, none='none')}"
    )
    match document.get("outcome"):
        case Outcome.FOUND:
            return "found" + ("" if upper_fps is None else f"; {format_count(upper_fps)} fps failed")
        case Outcome.AT_OR_ABOVE_MAXIMUM:
            return f"at or above the maximum of {_per_direction(max_fps)}: the limit was not reached"
        case Outcome.BELOW_MINIMUM:
            min_fps = number(goal, "min_fps") or LEAST_SHARE * max_fps
            return f"below the minimum of {_per_direction(min_fps)}: no load passed"
        case Outcome.TESTER_LIMIT if goal.get("is_max_testers") is True and max_fps == number(
            document, "throughput_fps_per_direction"
        ):
            return (
                f"tester limit: the tester's own ceiling of {_per_direction(max_fps)} passed, and no higher"
                " load was tried"
            )
        case Outcome.TESTER_LIMIT:
            offered_fps = max((trial.offered_fps for trial in trials if trial.is_valid), default=None)
            causes = describe_causes(causes_of_invalid(trials)) or "INVALID trials"
            return (
                f"tester limit: the tester itself could not keep the load ({causes}). {passed}; highest load"
                f" offered in a valid trial: {show(offered_fps, _per_direction, none='none')}"
            )
        case Outcome.STOPPED:
            return f"stopped before the end. {passed}"
        case _:
            return words(document, "outcome")


def _highest_passed_fps(trials: Sequence[TrialResult], upper_fps: float | None) -> float | None:
    passed = (trial.intended_fps for trial in trials if trial.is_pass)
    return max((fps for fps in passed if upper_fps is None or fps < upper_fps), default=None)


def _per_direction(fps: float) -> str:
    return f"{format_count(fps)} fps per direction"


def filling_lines(result: ThroughputResult) -> list[str]:
    """Where the confirming trial passed although a queue was filling: what a longer one would find."""
    final, sustainable_fps = result.final_trial, result.sustainable_fps
    if final is None or sustainable_fps is None:
        return []
    slope = max(d.queue_filling.slope for d in final.directions.values() if d.queue_filling is not None)
    return [
        "A longer trial would refute this: in the confirming trial of"
        f" {format_duration(final.intended_duration_s)} delays grew by {format_duration(slope)}"
        " per second, so a queue of the DUT was filling. The DUT sustains about"
        f" {format_count(sustainable_fps)} fps per direction; search with a longer final"
        " trial."
    ]


def loss_by_direction(losses: Mapping[str, DirectionLoss]) -> str | None:
    """`forward 0.9 % (5,400 of 600,000 frames), reverse 0 % (...)`: a loss ratio is over both together
    (MLR-03). None: no result."""
    each = ", ".join(
        f"{name} {format_ratio(loss.loss_ratio)} ({format_count(loss.lost_frames)} of"
        f" {format_count(loss.offered_frames)} frames)"
        for name, loss in losses.items()
    )
    together = "; the loss ratio is over both directions together (MLR-03)" if len(losses) > 1 else ""
    return each + together if each else None


def read_losses(document: Mapping[str, Any]) -> dict[str, DirectionLoss]:
    """What each direction lost at the load that a search reports; empty where the document does not state
    it."""
    return {
        direction: DirectionLoss(
            lost_frames=whole(loss, "lost_frames"), offered_frames=whole(loss, "offered_frames")
        )
        for direction, loss in by_direction(document, "loss_by_direction")
    }


def note_lines(document: Mapping[str, Any]) -> list[str]:
    """How the search differed from the usual one."""
    goal = mapping(document, "goal")
    return [
        *unconfirmed_lines(document),
        *verification_lines(goal),
        *start_lines(goal),
        *ceiling_lines(document),
        *patience_lines(goal),
    ]


def unconfirmed_lines(document: Mapping[str, Any]) -> list[str]:
    """Where a load passed in short trials only, and the tester never made the full-length trial there: it is
    no bound."""
    passed_fps, value_fps = (
        number(document, key) for key in ("highest_passed_fps_per_direction", "throughput_fps_per_direction")
    )
    final_s = number(mapping(document, "goal"), "final_duration_s")
    if document.get("outcome") != Outcome.TESTER_LIMIT or passed_fps is None or final_s is None:
        return []
    if value_fps is not None and passed_fps <= value_fps:
        return []
    return [
        f"Unconfirmed: {_per_direction(passed_fps)} passed in shorter trials only. There was no valid trial"
        f" of {format_duration(final_s)} at that load, so it is not a bound."
    ]


def verification_lines(goal: Mapping[str, Any]) -> list[str]:
    """How a lossy trial came to count, if not as in RFC 2544.

    Args:
        goal: Document of the search's goal.
    """
    verifications = whole(goal, "loss_verifications")
    if verifications == 0:
        return []
    times = "a repetition" if verifications == 1 else f"{verifications} repetitions"
    plain = number(goal, "plain_loss_ratio")
    which = (
        "A lossy trial"
        if plain is None or plain == 1
        else f"A trial with a loss of up to {format_ratio(plain)}"
    )
    return [
        f"{which} counted after {times} also had too much loss (loss verification, ETSI"
        " TST009 12.3), not at once as in RFC 2544."
    ]


def start_lines(goal: Mapping[str, Any]) -> list[str]:
    """Where the search began, if not at the maximum (MLR-13)."""
    known_fps = number(goal, "known_fps")
    if known_fps is None:
        return []
    known = f"{_per_direction(known_fps)}, known from before"
    return [f"The search began at {known}, not at the maximum (MLR-13); both bounds were verified again."]


def patience_lines(goal: Mapping[str, Any]) -> list[str]:
    """How often INVALID trials were repeated, if not as usual."""
    retries, patience = number(goal, "invalid_retries"), number(goal, "patience")
    usual = (DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE)
    if retries is None or patience is None or (retries, patience) == usual:
        return []
    return [
        f"INVALID trials were repeated up to {retries} times, trials that were"
        f" spoiled by a brief disturbance and confirming trials up to {patience} times"
        f" (defaults: {usual[0]} and {usual[1]})."
    ]


def ceiling_lines(document: Mapping[str, Any]) -> list[str]:
    """Where the tester's own ceiling had a say in where the search began, or should have had one (MLR-14)."""
    ceiling, max_fps = mapping(document, "ceiling"), number(mapping(document, "goal"), "max_fps")
    ceiling_fps = number(ceiling, "rate_fps_per_direction")
    if ceiling_fps is None or max_fps is None:
        return []
    known_ceiling = KnownCeiling(rate_fps=ceiling_fps, above_fps=None, found_at=text(ceiling, "found_at"))
    when = "found before this search" if ceiling.get("is_new") is True else known_ceiling.found_when
    known = f"the tester's own ceiling of {_per_direction(ceiling_fps)}, {when}"
    if max_fps <= ceiling_fps:
        return [f"The search began at {known}: this tester cannot keep a higher load (MLR-14)."]
    return [
        f"The search began at {_per_direction(max_fps)}, above {known}: INVALID trials above that are caused"
        " by the tester (MLR-14)."
    ]


def describe_load(rate_fps: float) -> str:
    """Short form for progress lines."""
    return f"{format_rate(rate_fps)} per direction"


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
        measured(number(found, "loss_ratio"), LOSS),
        measured(lower_fps, WHOLE_FPS),
        measured(upper_fps, WHOLE_FPS),
        measured(width, SHARE),
        measured(number(found, "conditional_throughput_fps_per_direction"), WHOLE_FPS),
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
