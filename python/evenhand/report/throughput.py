# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a throughput search found, for people (Rich)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.base.units import format_count, format_duration, format_rate, format_ratio
from evenhand.procedure import Profile, throughput_document
from evenhand.procedure.connection_rate_goal import LEAST_SHARE
from evenhand.report.result_entry import by_direction, mapping, number, show, text, whole, words
from evenhand.report.result_lines import describe_conditions, deviation_lines, dut_lines, trials_lines
from evenhand.rig import KnownCeiling
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    DirectionLoss,
    Outcome,
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
