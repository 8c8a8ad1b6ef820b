# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a throughput search found, for people (Rich)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.base.units import format_count, format_duration, format_line_rate, format_rate, format_ratio
from evenhand.procedure import Profile, WorstTesterFigures, search_deviations
from evenhand.report.invalid import next_lines
from evenhand.rig import READ_THERE
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    DirectionLoss,
    Goal,
    Outcome,
    ThroughputGoal,
    ThroughputResult,
    describe_outcome,
)
from evenhand.trial import TrialResult, Verdict, join_directions


def summary_lines(result: ThroughputResult, profile: Profile) -> list[str]:
    """The closing lines: the four items of R2544-23, the loss ratio if it is not 0, the outcome, what
    deviates."""
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
        f"Throughput{loss}: {value}; {profile.frames}, {profile.protocol}, {profile.addresses}"
        f" ({profile.plan.label}); "
        f"theoretical limit {describe_limit(profile)}.",
        f"Outcome: {describe_outcome(result)}.",
        *([] if lost is None else [f"Lost at that load: {lost}."]),
        *profile.sent_lines,
    ]
    if profile.single_pair is not None:
        lines.append(profile.single_pair.line(result))
    lines += filling_lines(result)
    lines += dut_lines(profile)
    lines += verification_lines(result.goal)
    lines += start_lines(result.goal)
    lines += ceiling_lines(result.goal, profile)
    lines += patience_lines(result.goal)
    lines += trials_lines(
        [trial.result for trial in result.trials], is_decided=result.outcome is not Outcome.TESTER_LIMIT
    )
    lines += [deviation.line for deviation in search_deviations(result, profile)]
    return lines


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


def last_invalid_line(trials: Sequence[TrialResult]) -> str:
    """The last line of a test that ended because the tester could not keep its load."""
    reasons = "; ".join(reason.text for reason in join_directions(trials[-1].reasons))
    return (
        f"The last trial was INVALID: {reasons}. This tester cannot keep this load,"
        " which says nothing about the DUT."
    )


def trials_lines(
    trials: Sequence[TrialResult], *, what: str = "Trials", is_decided: bool = False
) -> list[str]:
    """How many trials of each verdict, what the tester showed of itself in them, and what to do if it did not
    keep a load.

    Args:
        is_decided: The result does not depend on loads that the tester did not keep.
    """
    counts = ", ".join(
        f"{sum(trial.verdict is verdict for trial in trials)} {verdict}" for verdict in Verdict
    )
    return [
        f"{what}: {len(trials)} ({counts}). Tester: {WorstTesterFigures.of(trials)}.",
        *([] if is_decided else next_lines(trials)),
    ]


def dut_lines(profile: Profile) -> list[str]:
    """What the testbed file states of the DUT, what was read there, and what neither states (SEED-81,
    SEED-84)."""
    if profile.dut is None:
        return []
    known = {name: value for name, value in profile.dut.items() if value is not None}
    read = "; ".join(
        f"{_words(name)}: {value.removesuffix(READ_THERE)}"
        for name, value in known.items()
        if value.endswith(READ_THERE)
    )
    told = "; ".join(
        f"{_words(name)}: {value}" for name, value in known.items() if not value.endswith(READ_THERE)
    )
    missing = ", ".join(_words(name) for name, value in profile.dut.items() if value is None)
    lines = [f"DUT, according to the testbed file: {told}."] if told else []
    lines += [f"DUT, as read there: {read}."] if read else []
    return lines + (
        [f"Not stated for the DUT ([dut.facts] in the testbed file): {missing}."] if missing else []
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


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


def verification_lines(goal: ThroughputGoal) -> list[str]:
    """How a lossy trial came to count, if not as in RFC 2544."""
    if goal.loss_verifications == 0:
        return []
    times = "a repetition" if goal.loss_verifications == 1 else f"{goal.loss_verifications} repetitions"
    which = (
        "A lossy trial"
        if goal.plain_loss_ratio == 1
        else f"A trial with a loss of up to {format_ratio(goal.plain_loss_ratio)}"
    )
    return [
        f"{which} counted after {times} also had too much loss (loss verification, ETSI"
        " TST009 12.3), not at once as in RFC 2544."
    ]


def start_lines(goal: ThroughputGoal) -> list[str]:
    """Where the search began, if not at the maximum (MLR-13)."""
    if goal.known_fps is None:
        return []
    known = f"{format_count(goal.known_fps)} fps per direction, known from before"
    return [f"The search began at {known}, not at the maximum (MLR-13); both bounds were verified again."]


def patience_lines(goal: Goal) -> list[str]:
    """How often INVALID trials were repeated, if not as usual."""
    usual = (DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE)
    if (goal.invalid_retries, goal.patience) == usual:
        return []
    return [
        f"INVALID trials were repeated up to {goal.invalid_retries} times, trials that were"
        f" spoiled by a brief disturbance and confirming trials up to {goal.patience} times"
        f" (defaults: {usual[0]} and {usual[1]})."
    ]


def ceiling_lines(goal: Goal, profile: Profile) -> list[str]:
    """Where the tester's own ceiling had a say in where the search began, or should have had one (MLR-14)."""
    ceiling = profile.ceiling
    if ceiling is None:
        return []
    when = "found before this search" if ceiling.is_new else ceiling.found_when
    known = f"the tester's own ceiling of {format_count(ceiling.rate_fps)} fps per direction, {when}"
    if goal.max_fps <= ceiling.rate_fps:
        return [f"The search began at {known}: this tester cannot keep a higher load (MLR-14)."]
    maximum = f"{format_count(goal.max_fps)} fps per direction"
    return [
        f"The search began at {maximum}, above {known}: INVALID trials above that are caused"
        " by the tester (MLR-14)."
    ]


def describe_limit(profile: Profile) -> str:
    """Item (c) of R2544-23."""
    if profile.theoretical_fps is None:
        return "unknown, because the ports do not know their line rate"
    of = "" if profile.line_rate_bps is None else f" ({format_line_rate(profile.line_rate_bps)})"
    return f"{format_count(profile.theoretical_fps)} fps per direction{of}"


def describe_load(rate_fps: float) -> str:
    """Short form for progress lines."""
    return f"{format_rate(rate_fps)} per direction"
