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
from evenhand.procedure.connection_rate import LEAST_SHARE
from evenhand.report.result_entry import (
    ResultEntry,
    by_direction,
    mapping,
    mappings,
    number,
    show,
    text,
    whole,
    words,
)
from evenhand.rig import KnownCeiling
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE, DirectionLoss, Outcome
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
    document = entry.document
    goals = mappings(document, "goals")
    found = _goals_lines(entry, goals) if goals else _search_lines(entry)
    return [*found, *one_pair_lines(document), *filling_lines(entry), *note_lines(document)]


def _search_lines(entry: ResultEntry) -> list[str]:
    document = entry.document
    loss_ratio = number(mapping(document, "goal"), "loss_ratio")
    loss = f" with a loss ratio of at most {format_ratio(loss_ratio)}" if loss_ratio else ""
    lost = loss_by_direction(read_losses(document)) if loss_ratio else None
    return [
        f"Throughput{loss}: {_value_words(document)}{f'; {entry.conditions}' if entry.conditions else ''}.",
        f"Outcome: {describe_outcome(document, entry.trials)}.",
        *([] if lost is None else [f"Lost at that load: {lost}."]),
    ]


def _value_words(document: Mapping[str, Any]) -> str:
    """`at least 638,671 fps per direction (1,277,342 fps in both directions together)`."""
    fps = number(document, "throughput_fps_per_direction")
    if fps is None:
        return "no throughput"
    bound = "at least " if document.get("is_at_least") is True else ""
    rates = read_direction_rates(document.get("rates"))
    if rates is not None:
        return f"{bound}{_unlike_words(rates, fps)} ({rates})"
    return f"{bound}{format_count(fps)} fps per direction{_both_words(document, fps)}"


def _unlike_words(rates: DirectionRates, fps: float) -> str:
    """`639,415 fps forward, 159,854 fps reverse`."""
    each = rates.by_direction(fps).items()
    return ", ".join(f"{format_count(round(rate))} fps {direction}" for direction, rate in each)


def _both_words(document: Mapping[str, Any], fps: float) -> str:
    """Empty of one direction, and where the document does not state how many there are."""
    directions = document.get("directions")
    if not isinstance(directions, list | tuple) or len(directions) != 2:
        return ""
    rates = read_direction_rates(document.get("rates"))
    if rates is None:
        return f" ({format_count(2 * fps)} fps in both directions together)"
    return f" ({_unlike_words(rates, fps)})"


def one_pair_lines(document: Mapping[str, Any]) -> list[str]:
    """The search with one address pair that was made before (SEED-02); none where there was none."""
    before = mapping(document, "one_pair")
    if not before:
        return []
    fps, loss_ratio, ratio = (
        number(before, key) for key in ("throughput_fps_per_direction", "loss_ratio", "many_to_one")
    )
    bound = "at least " if before.get("is_at_least") is True else ""
    value = "no throughput" if fps is None else f"{format_count(fps)} fps per direction"
    loss = f" with a loss ratio of at most {format_ratio(loss_ratio)}" if loss_ratio else ""
    compared = (
        f"no ratio, because {_why_no_ratio(before, document)}"
        if ratio is None
        else f"the result with many addresses is {ratio:.3f} times that (one search each, so the spread is"
        " not known)"
    )
    return [f"Before it, {text(before, 'source')}, with 1 address pair{loss}: {bound}{value}; {compared}."]


def _why_no_ratio(before: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    searches = {"that with 1 address pair": before, "that with many addresses": document}
    fps = {name: number(found, "throughput_fps_per_direction") for name, found in searches.items()}
    without = [name for name, value in fps.items() if value is None]
    if without:
        ended = {searches[name].get("outcome") for name in without}
        what = "no load passed in" if ended == {Outcome.BELOW_MINIMUM} else "no throughput was found by"
        return f"{what} {'either' if len(without) == 2 else without[0]}"
    if fps["that with 1 address pair"] == 0:
        return "that with 1 address pair is 0"
    bounds = [name for name, found in searches.items() if found.get("is_at_least") is True]
    return "both are lower bounds" if len(bounds) == 2 else f"{bounds[0]} is a lower bound"


def describe_outcome(document: Mapping[str, Any], trials: Sequence[TrialResult]) -> str:
    """How a search ended, in a sentence.

    Args:
        document: The result of a throughput, or of a maximum connection establishment rate.
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
        case Outcome.TESTER_CEILING if goal.get("is_max_ceiling") is True and max_fps == number(
            document, "throughput_fps_per_direction"
        ):
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
            return words(document, "outcome")


def _highest_passed_fps(trials: Sequence[TrialResult], upper_fps: float | None) -> float | None:
    passed = (trial.intended_fps for trial in trials if trial.is_pass)
    return max((fps for fps in passed if upper_fps is None or fps < upper_fps), default=None)


def _per_direction(fps: float) -> str:
    return f"{format_count(fps)} fps per direction"


def filling_lines(entry: ResultEntry) -> list[str]:
    """Where the confirming trial passed although a queue was filling: what a longer one would find."""
    document = entry.document
    fps, sustainable_fps = (
        number(document, key) for key in ("throughput_fps_per_direction", "sustainable_fps_per_direction")
    )
    confirming = [t for t in entry.trials if t.intended_fps == fps and t.sustainable_fps is not None]
    if mappings(document, "goals") or sustainable_fps is None or not confirming:
        return []
    final = max(confirming, key=lambda trial: trial.intended_duration_s)
    slope = max(d.queue_filling.slope for d in final.directions.values() if d.queue_filling is not None)
    return [
        "A longer trial would refute this: in the confirming trial of"
        f" {format_duration(final.intended_duration_s)} delays grew by {format_duration(slope)}"
        " per second, so a queue of the DUT was filling. The DUT sustains about"
        f" {_per_direction(sustainable_fps)}; search with a longer final trial."
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
    if document.get("outcome") != Outcome.TESTER_CEILING or passed_fps is None or final_s is None:
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
        case Outcome.TESTER_CEILING if goal.get("is_max_ceiling") is True and max_fps == number(
            found, "lower_fps_per_direction"
        ):
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
            return f"irregular: {words(found, 'outcome')}"


def _goals_lines(entry: ResultEntry, goals: Sequence[Mapping[str, Any]]) -> list[str]:
    document = entry.document
    goal, above_ceiling_fps = mapping(document, "goal"), number(document, "above_ceiling_fps_per_direction")
    low, high = (show(number(goal, key), format_count) for key in ("min_fps", "max_fps"))
    strictest = min(number(each, "loss_ratio") or 0.0 for each in goals)
    lossy = [each for each in goals if number(each, "loss_ratio")]
    lost = [(text(each, "name"), loss_by_direction(read_losses(each))) for each in lossy]
    return [
        *(_goal_line(each, document) for each in goals),
        *([f"{entry.conditions}."] if entry.conditions else []),
        *goal_lines(document),
        *(f"Lost at the lower bound of {name}: {words}." for name, words in lost if words is not None),
        *(line for each in goals for line in _goal_filling_lines(each)),
        f"Loads from {low} to {high} fps per direction; loss is counted over all directions together, and a"
        f" trial is FAIL if its loss exceeds {format_ratio(strictest)}, which is the strictest goal.",
        *(
            []
            if above_ceiling_fps is None
            else [
                f"Every trial at {_per_direction(above_ceiling_fps)} was INVALID: this tester cannot keep"
                " that load, which says nothing about the DUT."
            ]
        ),
    ]


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


def _goal_line(found: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    lower_fps, upper_fps, conditional_fps = (
        number(found, f"{key}_fps_per_direction") for key in ("lower", "upper", "conditional_throughput")
    )
    is_regular = found.get("outcome") == Outcome.FOUND
    described = f"{text(found, 'name')} (loss ratio {show(number(found, 'loss_ratio'), format_ratio)})"
    ended = "regular" if is_regular else f"irregular ({words(found, 'outcome')})"
    if lower_fps is None:
        return f"{described}: no throughput; {ended}."
    upper = "" if upper_fps is None else f"; upper bound {_load(upper_fps)} fps"
    conditional = "" if conditional_fps is None else f"; conditional throughput {_load(conditional_fps)} fps"
    return (
        f"{described}: {'' if is_regular else 'at least '}{_load(lower_fps)} fps per"
        f" direction{_both_words(document, lower_fps)}{upper}{conditional}; {ended}."
    )


def _goal_filling_lines(found: Mapping[str, Any]) -> list[str]:
    sustainable_fps = number(found, "sustainable_fps_per_direction")
    if sustainable_fps is None:
        return []
    return [
        f"Longer trials would refute the lower bound of {text(found, 'name')}: in most trials of"
        f" {show(number(found, 'final_duration_s'), format_duration)} at that load delays grew steadily, so"
        f" a queue of the DUT was filling. The DUT sustains about {_per_direction(sustainable_fps)}."
    ]


def _load(rate_fps: float) -> str:
    return f"{rate_fps:,.0f}" if rate_fps >= 1000 else format_count(rate_fps)
