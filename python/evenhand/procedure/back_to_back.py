# SPDX-License-Identifier: Apache-2.0
"""Procedure: back-to-back frames (RFC 9004): the longest burst after idle that is forwarded without loss,
many times over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, FRAMES, RATE, RATIO, Option, values_of
from evenhand.base.units import format_count, format_duration
from evenhand.plan import describe_size
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.back_to_back_result import (
    LONGEST_BURST_S,
    RAISE,
    REPETITIONS,
    RESIDUAL_S,
    BackToBack,
    BackToBackGoal,
    BackToBackTable,
    BurstSearch,
    is_near,
    left_open,
    value_of,
    why_skipped,
)
from evenhand.procedure.descriptor import (
    DirectionChoice,
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
)
from evenhand.procedure.events import Note, OnEvent, followed_by, ignore
from evenhand.procedure.expected_time import A_LINE_RATE_FPS, count_of, search_s
from evenhand.procedure.limits import Retries
from evenhand.procedure.maximum import find_maximum
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester
from evenhand.procedure.throughput import UP_TO_LINE_RATE, measure_throughput
from evenhand.results.bursts import BackToBackFound
from evenhand.search import Outcome, Role, ThroughputGoal, find_largest
from evenhand.trial import Load, TrialResult

LIKELY_AGAIN = 3
"""Bursts of a repetition that begins at what an earlier one found, if the DUT's buffer is about the same."""


def expected_s(goal: BackToBackGoal, waits_s: float) -> float:
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    first_s = 0.0
    if goal.throughput_fps is None:
        first_s = search_s(goal.throughput_goal or ThroughputGoal(max_fps=rate_fps), waits_s)
    return first_s + bursts_s(goal, waits_s)


def bursts_s(goal: BackToBackGoal, waits_s: float) -> float:
    """All bursts. The first one is the longest, and each that loses frames is followed by half of it: all of
    them are twice as long, and are waited for as long. Later repetitions begin at what was found."""
    longest_s = 2 * goal.max_burst_s
    verified = 1 + goal.loss_verifications / 2
    first_s = longest_s + max(0.0, longest_s - RESIDUAL_S) + bursts_of(goal) * waits_s
    return verified * (first_s + (goal.repetitions - 1) * LIKELY_AGAIN * waits_s)


def later_bursts_s(goal: BackToBackGoal, made: Sequence[BurstSearch], overhead_s: float) -> float:
    """Repetitions after the present one, each with as many bursts as those that began at what was found."""
    again = made[1:]
    bursts = sum(len(search.trials) for search in again) / len(again) if again else LIKELY_AGAIN
    sent_s = made[-1].frames / goal.rate_fps if made and made[-1].frames else 0.0
    return (goal.repetitions - len(made) - 1) * bursts * (overhead_s + sent_s)


def bursts_of(goal: BackToBackGoal) -> int:
    """Number of bursts of one repetition."""
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    return 1 + math.ceil(math.log2(max(2.0, goal.max_burst_s * rate_fps / goal.step_frames)))


def measure_back_to_back(
    tester: OpenTester, goal: BackToBackGoal, *, on_event: OnEvent = ignore, recorder: Recorder | None = None
) -> BackToBack:
    """The throughput, and then the longest burst, as often as asked for; with the same tester, so with the
    same flows (R9004-01).

    Raises:
        RequestError: The rate is above the line rate, or not above the throughput.
        HostError: The ports do not know their line rate, the goal has none, and the tester keeps no load.
        EvenhandError: The engine could not make a trial at all.
    """
    tester, rate_fps = find_maximum(
        tester, goal.rate_fps, where="rate_fps", on_event=on_event, recorder=recorder
    )
    goal = replace(goal, rate_fps=rate_fps)
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
            on_event=followed_by(on_event, bursts_s(goal, tester.waits.total_s)),
            recorder=recorder,
        )
        # A lower bound would make the corrected buffer time an upper one.
        throughput_fps = None if throughput.outcome is Outcome.TESTER_CEILING else throughput.throughput_fps
    skipped = why_skipped(throughput, throughput_fps, goal)
    repetitions: list[BurstSearch] = []
    if skipped is not None:
        on_event(Note(text=f"{size} octets: {skipped}."))
        with recording(
            recorder, tester, f"back-to-back, {size} octets", kind="back-to-back", goal=goal.to_document()
        ) as record:
            record.finish_with("skipped", {"outcome": "skipped", "skipped": skipped})
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
                later_s=later_bursts_s(goal, repetitions, measurer.overhead_s),
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
        if last.outcome in ("stopped", "tester_ceiling"):
            break
    return BackToBack(
        profile=tester.profile,
        goal=goal,
        throughput=throughput,
        skipped=skipped,
        repetitions=tuple(repetitions),
        residual_s=tester.waits.residual_s,
    )


def search_burst(
    attempts: Attempts,
    goal: BackToBackGoal,
    *,
    known: int | None = None,
    longest_s: float | None = None,
    later_s: float = 0.0,
    on_event: OnEvent = ignore,
) -> BurstSearch:
    """One search. A result near the longest burst is not yet a limit of the DUT: the search goes on with
    longer ones (R9004-04).

    Args:
        known: What an earlier repetition found. The search begins there; both bounds are proven anew.
        longest_s: To which the longest burst was raised before; None: it is the goal's.
        later_s: Expected time of the repetitions that come after it; for the estimate of the time left.
    """
    longest_s = goal.max_burst_s if longest_s is None else longest_s
    trials: list[TrialResult] = []
    numbers: list[int] = []
    expected = bursts_of(goal) if known is None else LIKELY_AGAIN

    def passes(frames: int) -> bool | None:
        for _ in range(goal.loss_verifications + 1):
            what, load = f"burst of {format_count(frames)} frames", Load.single_burst(frames, goal.rate_fps)
            for attempt, trial in enumerate(
                attempts.measure(
                    what=what,
                    load=load,
                    is_full_length=False,
                    # Bursts that follow are half as long, and half of that.
                    later_s=max(0, expected - len(trials) - 1) * attempts.overhead_s
                    + (load.sending_s if known is None else 0.0)
                    + later_s,
                ),
                start=1,
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
            f"{format_count(bracket.lower)} frames are close to the longest burst",
            format_duration(longest_s),
        )
        on_event(
            Note(
                text=f"{near} of {longest}: the search continues with bursts of up to"
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


_PANEL = "Throughput, which is measured first"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackOptions:
    """Longest burst, precision of the search, and number of repetitions."""

    rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="rate_fps",
            help="Rate within a burst, per direction. Default: the line rate, or the tester's own ceiling"
            " where the ports do not know theirs. A lower rate is a deviation.",
        ),
    ] = None
    max_burst: Annotated[
        str, Option(grammar=DURATION, sets="max_burst_s", help="Longest burst to try, at most 30s.")
    ] = DURATION.default(BackToBackGoal, "max_burst_s")
    step: Annotated[
        str,
        Option(
            grammar=FRAMES,
            sets="step_frames",
            help="Stop the search when its bounds are this many frames apart.",
        ),
    ] = FRAMES.default(BackToBackGoal, "step_frames")
    repetitions: Annotated[int, Option(metavar="N", help="Number of searches for each frame size.")] = (
        REPETITIONS
    )
    loss_verification: Annotated[
        int,
        Option(
            sets="loss_verifications",
            metavar="N",
            least=0,
            help="Send a burst that lost frames again, up to N times (ETSI TST009).",
        ),
    ] = 0
    actual_rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="actual_fps", help="Also report the corrected buffer time at this rate."),
    ] = None
    throughput: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="throughput_fps",
            help="Use this throughput instead of measuring it; for one frame size. A deviation.",
            panel=_PANEL,
        ),
    ] = None
    after: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="Use the throughput in this run file, measured on the same testbed with the same plan.",
            panel=_PANEL,
            is_for_shell_only=True,
        ),
    ] = None
    duration: Annotated[
        str, Option(grammar=DURATION, help="Duration of the trials of the throughput search.", panel=_PANEL)
    ] = DURATION.default(ThroughputGoal, "duration_s")
    final_duration: Annotated[
        str,
        Option(grammar=DURATION, help="Duration of the trial that confirms the throughput.", panel=_PANEL),
    ] = DURATION.default(ThroughputGoal, "final_duration_s")
    precision: Annotated[
        str, Option(grammar=RATIO, help="Precision at which the throughput search stops.", panel=_PANEL)
    ] = RATIO.default(ThroughputGoal, "precision")


def _goal(options: BackToBackOptions, retries: Retries, known: KnownThroughput | None) -> BackToBackGoal:
    if options.throughput is not None and known is not None:
        raise RequestError(
            "two throughputs",
            code="procedure.two-throughputs",
            where="--throughput, --after",
            next_step="Give only one of them.",
        )
    given = values_of(options)
    given.pop("after", None)
    first = ThroughputGoal(
        max_fps=UP_TO_LINE_RATE,
        duration_s=given.pop("duration"),
        final_duration_s=given.pop("final_duration"),
        precision=given.pop("precision"),
        **retries,
    )
    goal = BackToBackGoal(throughput_goal=first, **given, **retries)
    return goal if known is None else goal.after(known)


def _measure(
    tester: OpenTester, goal: BackToBackGoal, *, name: str = "", repetition: int | None = None, **others: Any
) -> BackToBack:
    """Its searches have names of their own in the run file."""
    return measure_back_to_back(tester, goal, **others)


def _expected_parts(goal: BackToBackGoal) -> Iterable[str]:
    if goal.throughput_fps is None:
        yield "a throughput search"
    yield f"{count_of(goal.repetitions, 'search', 'searches')} of about {bursts_of(goal)} bursts"


def _describe(goal: BackToBackGoal, load: str | None) -> str:
    longest = format_duration(goal.max_burst_s)
    return f"{goal.repetitions} searches for the longest burst, up to {longest}"


BACK_TO_BACK = Procedure(
    name="back-to-back",
    verb="back-to-back",
    help="""Find the longest burst without loss (RFC 9004) in fifty repetitions, and the buffer time
    that it implies.

    Throughput is measured first, with the same flows; frame sizes that the DUT forwards at the line rate are
    skipped.""",
    example="evenhand back-to-back lab.toml --frame-size 64,128 --max-burst 5s --run bursts.evenhand",
    options=BackToBackOptions,
    make_goal=_goal,
    goals=BackToBackGoal,
    found=BackToBackFound,
    default_goal=lambda retries: BackToBackGoal(**retries),
    measure=_measure,
    table=BackToBackTable,
    is_always_table=True,
    rates=DirectionChoice.NONE,
    figure=Figure(name="longest burst", unit="frames", is_higher_better=True),
    section=Section.BURSTS,
    value_of=value_of,
    left_open=left_open,
    expected_s=expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.WHOLE,
    load="rate_fps",
    throughput=ThroughputUse(option="throughput", is_needed=False),
)
