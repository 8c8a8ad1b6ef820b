# SPDX-License-Identifier: Apache-2.0
"""Procedure: back-to-back frames (RFC 9004): the longest burst after idle that is forwarded without loss,
many times over."""

from __future__ import annotations

import math
from dataclasses import replace

from evenhand.base.units import format_count, format_duration
from evenhand.plan import describe_size
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.back_to_back_model import (
    LONGEST_BURST_S,
    RAISE,
    BackToBack,
    BackToBackGoal,
    BurstSearch,
    is_near,
)
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.procedure.throughput import Throughput, measure_throughput
from evenhand.search import Outcome, Role, ThroughputGoal, find_largest
from evenhand.trial import Load, TrialResult


def measure_back_to_back(
    tester: OpenTester, goal: BackToBackGoal, *, on_event: OnEvent = ignore, recorder: Recorder | None = None
) -> BackToBack:
    """The throughput, and then the longest burst, as often as asked for; with the same tester, so with the
    same flows (R9004-01).

    Raises:
        RequestError: The ports do not know their line rate and the goal has no rate, or one above the line
            rate.
        EvenhandError: The engine could not make a trial at all.
    """
    goal = with_rate(goal, tester.profile)
    size = tester.profile.frame_size
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))  # PASS is a burst without loss
    throughput, throughput_fps = None, goal.throughput_fps
    if throughput_fps is None:
        on_event(Note(text=f"{describe_size(size)}, throughput first:", is_heading=True))
        wish = goal.throughput_goal or ThroughputGoal(
            max_fps=math.inf, invalid_retries=goal.invalid_retries, patience=goal.patience
        )
        wish = replace(wish, max_fps=min(wish.max_fps, goal.rate_fps), loss_ratio=0.0)
        throughput = measure_throughput(
            tester,
            wish,
            name=f"throughput, {describe_size(size)}",
            role=Role.THROUGHPUT_FOR,
            on_event=on_event,
            recorder=recorder,
        )
        # A lower bound would make the corrected buffer time an upper one.
        throughput_fps = None if throughput.outcome is Outcome.TESTER_LIMIT else throughput.throughput_fps
    skipped = _why_skipped(throughput, throughput_fps, goal)
    repetitions: list[BurstSearch] = []
    if skipped is not None:
        on_event(Note(text=f"{size} octets: {skipped}."))
    while skipped is None and len(repetitions) < goal.repetitions:
        number = len(repetitions) + 1
        on_event(Note(text=f"{size} octets, repetition {number} of {goal.repetitions}:", is_heading=True))
        known = repetitions[-1].frames if repetitions else None
        label, document = f"back-to-back, {size} octets", goal.to_document()
        with recording(
            recorder, tester, label, kind="back-to-back", goal=document, repetition=number
        ) as record:
            measurer = tester.measurer(on_event)
            attempts = Attempts(
                measurer=measurer,
                on_event=on_event,
                record=record,
                purpose="burst",
                overhead_s=measurer.overhead_s,
                invalid_retries=goal.invalid_retries,
                patience=goal.patience,
            )
            longest_s = max((search.longest_s for search in repetitions), default=goal.max_burst_s)
            last = search_burst(
                attempts,
                goal,
                known=known,
                longest_s=longest_s,
                later=goal.repetitions - number,
                on_event=on_event,
            )
            repetitions.append(last)
            record.finish_with(
                last.outcome,
                {
                    "outcome": last.outcome,
                    "longest_burst_frames": last.frames,
                    "is_at_least": last.is_at_least,
                },
            )
        # A tester that does not offer a burst will not offer it the next time either.
        if last.outcome in ("stopped", "tester_limit"):
            break
    return BackToBack(
        profile=tester.profile,
        goal=goal,
        throughput=throughput,
        skipped=skipped,
        repetitions=tuple(repetitions),
        residual_s=tester.waits.residual_s,
    )


def with_rate(goal: BackToBackGoal, profile: Profile) -> BackToBackGoal:
    """The goal with a finite rate. RequestError if there is none, or it is above the line rate, or not above
    the throughput."""
    return replace(goal, rate_fps=choose_maximum(goal.rate_fps, profile, where="rate_fps"))


def search_burst(
    attempts: Attempts,
    goal: BackToBackGoal,
    *,
    known: int | None = None,
    longest_s: float | None = None,
    later: int = 0,
    on_event: OnEvent = ignore,
) -> BurstSearch:
    """One search. A result near the longest burst is no limit of the DUT's yet: the search goes on with
    longer ones (R9004-04).

    Args:
        known: What an earlier repetition found. The search begins there; both bounds are proven anew.
        longest_s: To which the longest burst was raised before; None: it is the goal's.
        later: Repetitions that come after it; for the estimate of the time left.
    """
    longest_s = goal.max_burst_s if longest_s is None else longest_s
    trials: list[TrialResult] = []
    numbers: list[int] = []
    expected = math.ceil(math.log2(max(2, goal.max_frames / goal.step_frames)))

    def passes(frames: int) -> bool | None:
        for _ in range(goal.loss_verifications + 1):
            left = max(1, expected - len(trials)) + later * expected
            what, load = f"burst of {format_count(frames)} frames", Load.single_burst(frames, goal.rate_fps)
            for attempt, trial in enumerate(
                attempts.measure(what=what, load=load, left=left, is_full_length=False), start=1
            ):
                trials.append(trial)
                numbers.append(attempt)
            if not trials[-1].is_valid:
                return None
            if trials[-1].is_pass:
                return True
        return False

    bracket = find_largest(passes, maximum=goal.frames_in(longest_s), step=goal.step_frames, known=known)
    is_held_back = False
    while (
        bracket.is_complete
        and is_near(bracket.lower, goal.frames_in(longest_s))
        and longest_s < LONGEST_BURST_S
        and not is_held_back
    ):
        raised_s = min(LONGEST_BURST_S, RAISE * longest_s)
        near, longest = (
            f"{format_count(bracket.lower)} frames come near the longest burst",
            format_duration(longest_s),
        )
        on_event(
            Note(
                text=f"{near} of {longest}: the search goes on with bursts of up to"
                f" {format_duration(raised_s)} (RFC 9004, 6.2)."
            )
        )
        # What passed was proven a moment ago; where something failed too, both are proven anew.
        start = {"proven": bracket.lower} if bracket.upper is None else {"known": bracket.lower}
        higher = find_largest(passes, maximum=goal.frames_in(raised_s), step=goal.step_frames, **start)
        if higher.is_complete or trials[-1].was_stopped:
            bracket, longest_s = higher, raised_s
        else:
            is_held_back = True
    return BurstSearch(
        bracket=bracket,
        trials=tuple(trials),
        attempts=tuple(numbers),
        longest_s=longest_s,
        max_frames=goal.frames_in(longest_s),
        is_held_back=is_held_back,
    )


def _why_skipped(
    throughput: Throughput | None, throughput_fps: float | None, goal: BackToBackGoal
) -> str | None:
    if throughput_fps is None:
        outcome = "" if throughput is None else f" ({str(throughput.outcome).replace('_', ' ')})"
        return f"no throughput was found{outcome}, so there is nothing to correct bursts by"
    if throughput_fps >= goal.rate_fps or (
        throughput is not None and throughput.outcome is Outcome.AT_OR_ABOVE_MAXIMUM
    ):
        return (
            "the throughput is that of the maximum rate, so no burst at that rate can show the buffer;"
            " not tested (RFC 9004, 6.1)"
        )
    return None
