# SPDX-License-Identifier: Apache-2.0
"""Procedure: throughput (RFC 2544, 26.1): one search with one tester, from the line rate or the tester's own
ceiling down (MLR-14); and several, by frame size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from evenhand import rig
from evenhand.base.option import DURATION, RATE, RATIO, Option, values_of
from evenhand.base.units import format_duration, format_rate, format_ratio
from evenhand.procedure.descriptor import (
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    describe_maximum,
    open_above,
    throughput_of,
)
from evenhand.procedure.events import Note, OnEvent, followed_by, ignore
from evenhand.procedure.expected_time import longest_search_s, search_parts, search_span, shortest_search_s
from evenhand.procedure.limits import Retries
from evenhand.procedure.maximum import CeilingWish, conditions_of, describe_known, knowing, settle_ceiling
from evenhand.procedure.profile import Profile, collect_deviations, result_document
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.repetition import Row, document_of, each_once
from evenhand.procedure.search_options import SearchOptions
from evenhand.procedure.statistics import Statistics
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.results.throughput import ThroughputFound
from evenhand.search import (
    LOSSES_THAT_END_THE_WAY_UP,
    Goal,
    MlrGoals,
    MlrResult,
    Outcome,
    Role,
    SearchEvent,
    SearchResult,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    run_search,
)
from evenhand.trial import Deviation, TrialResult

REPETITIONS = 10
"""Repetitions of a whole search (SEED-72)."""
G = TypeVar("G", bound=Goal)
UP_TO_LINE_RATE = math.inf
"""As `max_fps` of a goal: the maximum theoretical frame rate of the ports, once that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Result of one search, with its traffic."""

    profile: Profile
    search: SearchResult
    is_repetition: bool = False
    """Whether it is one of several repetitions, whose statistics are in their table."""

    @property
    def outcome(self) -> Outcome:
        """How the search ended."""
        return self.search.outcome

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """Trials of the search; `search.trials` says why each was made."""
        return tuple(trial.result for trial in self.search.trials)

    @property
    def throughput_fps(self) -> float | None:
        """Throughput per direction, confirmed by a full-length trial; a lower bound if `is_at_least`,
        otherwise None unless it was found. With several goals, that of the strictest one."""
        return self.search.throughput_fps

    @property
    def is_at_least(self) -> bool:
        """Whether the throughput is a lower bound: the maximum passed, or the tester could not keep a higher
        load."""
        return self.search.is_at_least

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = search_deviations(self.search, self.profile)
        return (
            found
            if self.is_repetition
            else sorted([*found, *too_few(1)], key=lambda deviation: deviation.requirement)
        )

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand throughput --json` writes it."""
        document = throughput_document(self.search, self.profile)
        return {**document, "deviations": [deviation.to_document() for deviation in self.deviations]}


def measure_throughput(
    tester: OpenTester,
    goal: Goal,
    *,
    name: str = "throughput",
    role: Role = Role.MEASUREMENT,
    repetition: int | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Throughput:
    """One search by the goal's own way (R2544-21, or RFC 9971); each trial is kept before the next begins
    (D11).

    Args:
        goal: With `max_fps` UP_TO_LINE_RATE it begins at the maximum theoretical frame rate (MLR-13).
        name: The name of the search in the run file.
        role: See `SearchHead`; also for `repetition`.

    Raises:
        RequestError: The ports do not know their line rate and the goal has no maximum, or one above the line
            rate.
        EvenhandError: The engine could not make a trial at all.
    """
    goal = with_maximum(goal, tester.profile)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=goal.loss_ratio))
    with recording(
        recorder, tester, name, kind="throughput", goal=goal, role=role, repetition=repetition
    ) as record:

        def on_progress(event: SearchEvent) -> None:
            if isinstance(event, TrialFinished):
                record.add_trial(event.trial)
            on_event(event)

        # MLRsearch weighs trials by their durations and losses; the others take the verdict only.
        measurer = tester.measurer(
            on_event, stops_when_failed=not isinstance(goal, MlrGoals) and goal.stops_early
        )
        result = run_search(measurer, goal, on_progress=on_progress, overhead_s=measurer.overhead_s)
        record.finish(result)
    return Throughput(profile=tester.profile, search=result)


def choose_start(
    tester: OpenTester, goal: G, *, on_event: OnEvent = ignore, recorder: Recorder | None = None
) -> tuple[OpenTester, G]:
    """The goal with its maximum, and the tester that knows its ceiling.

    A goal with UP_TO_LINE_RATE gets the line rate, or the tester's ceiling if that is lower or no line rate
    is known. A ceiling that is not known is found first, by trials of a second; nothing above a load at which
    the DUT loses more than any goal allows is tried then, since a search needs nothing above. If an earlier
    search has passed the ceiling, it is checked first whether the tester keeps more. A maximum of the user's
    own stays; if a known ceiling is below it, that is reported.

    Raises:
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """
    wish = wish_of(goal)
    later = search_span(goal, tester.waits.total_s)
    known = rig.find_ceiling(conditions_of(tester, wish))
    if not math.isinf(goal.max_fps):
        if known is None or not known.is_limit or goal.max_fps <= known.rate_fps:
            return tester, goal
        return knowing(tester, known), goal
    known, is_device_slower = settle_ceiling(
        tester,
        wish,
        is_good=lambda known: not (known.is_limit and known.was_reached),
        on_event=followed_by(on_event, later),
        recorder=recorder,
    )
    if is_device_slower:
        return tester, replace(goal, max_fps=known.rate_fps)
    theoretical_fps = tester.profile.theoretical_fps
    if not known.is_limit:
        return tester, replace(goal, max_fps=float(theoretical_fps or known.rate_fps))
    on_event(Note(text=f"{_begin_of(goal)} {describe_known(known)}."))
    return knowing(tester, known), replace(goal, max_fps=known.rate_fps, is_max_ceiling=True)


def _begin_of(goal: Goal) -> str:
    known_fps = None if isinstance(goal, MlrGoals) else goal.known_fps
    if known_fps is None:
        return "The search begins at"
    return f"The search begins at {format_rate(known_fps)} per direction; its maximum is"


def wish_of(goal: Goal) -> CeilingWish:
    """A load may be of interest as long as one goal allows what is lost there, be it in one trial of those
    that are made."""
    if isinstance(goal, MlrGoals):
        return CeilingWish(loss_ratio=max(each.loss_ratio for each in goal.goals))
    return CeilingWish(
        loss_ratio=goal.loss_ratio, losses=LOSSES_THAT_END_THE_WAY_UP + goal.loss_verifications
    )


def measure_from_start(
    tester: OpenTester,
    goal: Goal,
    *,
    name: str = "throughput",
    role: Role = Role.MEASUREMENT,
    repetition: int | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Throughput:
    """One search from `choose_start` on, for which the errors and `measure_throughput` are to be seen. That
    it has passed the tester's ceiling is kept for the next one."""
    started, bounded = choose_start(tester, goal, on_event=on_event, recorder=recorder)
    found = measure_throughput(
        started, bounded, name=name, role=role, repetition=repetition, on_event=on_event, recorder=recorder
    )
    ceiling = started.profile.ceiling
    if ceiling is not None and found.search.is_ceiling_reached:
        rig.keep_ceiling(conditions_of(started, wish_of(goal)), replace(ceiling, was_reached=True))
    return replace(found, is_repetition=repetition is not None)


def with_maximum(goal: Goal, profile: Profile) -> Goal:
    """The goal with a finite maximum. RequestError if there is none, or it is above the line rate, or below
    the goal's minimum."""
    return replace(goal, max_fps=choose_maximum(goal.max_fps, profile, where="max_fps"))


def check_maximum(goal: Goal, profile: Profile) -> None:
    """RequestError if the goal's own maximum is above the line rate. One without is chosen when the search
    begins."""
    if not math.isinf(goal.max_fps):
        with_maximum(goal, profile)


def too_few(repetitions: int, values: int | None = None) -> list[Deviation]:
    """Where the whole search was made less often than the draft wants. A quick command searches once, and
    says so.

    Args:
        values: How many of the searches found one; None: all.
    """
    found = repetitions if values is None else values
    if found >= REPETITIONS:
        return []
    if found < repetitions > 1:
        text = f"{found} of {repetitions} searches found a value, instead of {REPETITIONS}"
    else:
        text = f"{repetitions} search{'es' if repetitions > 1 else ''} instead of {REPETITIONS}"
    return [
        Deviation(
            requirement="SEED-72",
            text=text + ("" if found > 1 else ": the variation of the result is not known"),
        )
    ]


def search_deviations(result: SearchResult, profile: Profile) -> list[Deviation]:
    """Deviations of the trials and conditions, of the goals (RFC 9971), and what was tried again until it
    passed."""
    if isinstance(result, MlrResult):
        own = [*result.goal.deviations]
        for each in result.goals:
            own += _coarser_than_wanted(f"the throughput of {each.goal.name}", each.found_to, each.goal.width)
    else:
        own = _allowed_loss(result)
        own += _coarser_than_wanted("the throughput", result.found_to, result.goal.precision)
    uncharged = result.uncharged if isinstance(result, MlrResult) else (result.uncharged,)
    tried_again = [
        Deviation(requirement="R2544-21", text=each.text) for each in uncharged if each is not None
    ]
    return sorted(
        [*collect_deviations(result.trials, profile), *own, *tried_again],
        key=lambda deviation: deviation.requirement,
    )


def _allowed_loss(result: ThroughputResult) -> list[Deviation]:
    """Throughput is a rate without loss."""
    ratio = result.goal.loss_ratio
    if ratio <= 0:
        return []
    text = f"a trial with a loss of up to {format_ratio(ratio)} counts as passed; RFC 2544 allows none"
    return [Deviation(requirement="R2544-21", text=text)]


def _coarser_than_wanted(what: str, found_to: float | None, wanted: float) -> list[Deviation]:
    """Beside its limit a DUT has not caught up after one lapse of the host before the next."""
    if found_to is None:
        return []
    text = (
        f"{what} is known to {format_ratio(found_to)} instead of {format_ratio(wanted)}: closer to the"
        " limit, too little of the time was clean"
    )
    return [Deviation(requirement="MLR-10", text=text)]


def throughput_document(result: SearchResult, profile: Profile) -> dict[str, Any]:
    """Everything of one search as a document, all trials included."""
    both = None if result.throughput_fps is None else profile.total_fps(result.throughput_fps)
    return result_document(
        profile,
        {
            **result.to_document(),
            "throughput_fps_total": both,
            "one_pair": None if profile.one_pair is None else profile.one_pair.to_document(result),
        },
        trials=(trial.result for trial in result.trials),
        documents=[trial.to_document() for trial in result.trials],
        deviations=search_deviations(result, profile),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputTable:
    """Throughput by frame size, each repeated (R2544-22, SEED-72)."""

    rows: tuple[Row[Throughput], ...]

    @staticmethod
    def statistics(row: Row[Throughput]) -> Statistics | None:
        """Statistics of the throughput per direction, over the searches that found one; None if none did."""
        return throughput_statistics((t.throughput_fps, t.is_at_least) for t in row.repetitions)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of all searches, each once."""
        found = [d for row in self.rows for t in row.repetitions for d in t.deviations]
        counts = [
            (sum(t.throughput_fps is not None for t in row.repetitions), len(row.repetitions))
            for row in self.rows
        ]
        values, searches = min(counts, default=(0, 0))
        return each_once([*found, *too_few(searches, values)] if searches else found, len(self.rows))

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand throughput --json` writes it for several sizes or repetitions."""
        return {
            "rows": [row.to_document(statistics=document_of(self.statistics(row))) for row in self.rows],
            "deviations": [deviation.to_document() for deviation in self.deviations],
        }


def throughput_statistics(found: Iterable[tuple[float | None, bool]]) -> Statistics | None:
    """Statistics of the throughputs that are there; None if there is none.

    Args:
        found: The throughput of each search, and whether that is a lower bound.
    """
    valued = [(value, is_bound) for value, is_bound in found if value is not None]
    return Statistics.of((value for value, _ in valued), lower_bounds=(is_bound for _, is_bound in valued))


def spread_of(found: Sequence[Throughput]) -> float | None:
    """See `SpreadOf`: relative to the median."""
    statistics = throughput_statistics((t.throughput_fps, t.is_at_least) for t in found)
    return None if statistics is None or statistics.count < len(found) else statistics.spread


LossRatioOption = Annotated[str, Option(grammar=RATIO, help="Largest loss ratio with which a trial passes.")]
NO_LOSS = RATIO.default(ThroughputGoal, "loss_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputOptions(SearchOptions):
    """Where to search, how long the trials are, and when to stop."""

    maximum_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="max_fps",
            help=(
                "Maximum rate per direction, which is tried first. Default: the line rate, or the"
                " tester's own ceiling."
            ),
        ),
    ] = None
    minimum_rate: Annotated[
        str | None,
        Option(grammar=RATE, sets="min_fps", help="Minimum rate. Default: a thousandth of the maximum."),
    ] = None
    duration: Annotated[
        str, Option(grammar=DURATION, sets="duration_s", help="Duration of the trials of the search.")
    ] = DURATION.default(ThroughputGoal, "duration_s")
    final_duration: Annotated[
        str,
        Option(
            grammar=DURATION, sets="final_duration_s", help="Duration of the trial that confirms the result."
        ),
    ] = DURATION.default(ThroughputGoal, "final_duration_s")
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = (
        RATIO.default(ThroughputGoal, "precision")
    )
    loss_verification: Annotated[
        int,
        Option(
            sets="loss_verifications",
            metavar="N",
            least=0,
            help="Repeat a trial with loss up to N times before it counts (ETSI TST009).",
        ),
    ] = 0
    loss_ratio: LossRatioOption = NO_LOSS


def _goal(options: ThroughputOptions, retries: Retries, known: KnownThroughput | None) -> Goal:
    own = {"search_kind", "goals", "known_fps", "no_early_stop"}
    given = {keyword: value for keyword, value in values_of(options).items() if keyword not in own}
    return options.choose(ThroughputGoal(**{"max_fps": UP_TO_LINE_RATE, **given}, **retries))


def _describe(goal: Goal, load: str | None) -> str:
    first = describe_maximum(goal.max_fps)
    if isinstance(goal, MlrGoals):
        return f"mlr search from {first} for {', '.join(each.name for each in goal.goals)}"
    loss = f", loss up to {format_ratio(goal.loss_ratio)}" if goal.loss_ratio else ""
    return (
        f"{goal.search} search from {first}, to {format_ratio(goal.precision)}{loss}; trials of"
        f" {format_duration(goal.duration_s)}, confirmed by {format_duration(goal.final_duration_s)}"
    )


THROUGHPUT = Procedure(
    name="throughput",
    verb="throughput",
    help="Find the throughput (RFC 2544 section 26.1) with the chosen search; loads are per direction.",
    example="evenhand throughput lab.toml --plan gateway-v6 --maximum-rate 2Mfps --loss-ratio 0.1%"
    " --run first.evenhand",
    options=ThroughputOptions,
    make_goal=_goal,
    goals=Goal,
    default_goal=lambda retries: ThroughputGoal(max_fps=UP_TO_LINE_RATE, **retries),
    check=check_maximum,
    measure=measure_from_start,
    table=ThroughputTable,
    spread_of=spread_of,
    figure=Figure(name="throughput", unit="fps", is_higher_better=True),
    section=Section.THROUGHPUT,
    found=ThroughputFound,
    value_of=throughput_of,
    left_open=open_above,
    expected_s=shortest_search_s,
    longest_s=longest_search_s,
    expected_parts=search_parts,
    describe=_describe,
    frame_sizes=FrameSizes.SEVERAL,
    load="max_fps",
    gives_throughput=True,
    is_compared_with_one_pair=True,
)
