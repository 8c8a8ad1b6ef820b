# SPDX-License-Identifier: Apache-2.0
"""Procedure: frame loss rate over the load (RFC 2544, 26.3): from the maximum down, until two loads in a row
lose nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from evenhand.base.option import DURATION, RATE, RATIO, Option
from evenhand.base.units import format_duration, format_ratio
from evenhand.base.validation.document import to_document
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.descriptor import Figure, FrameSizes, Procedure, Section, describe_maximum, goals_of
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.maximum import find_maximum
from evenhand.procedure.profile import (
    Profile,
    attempt_documents,
    attempts_at,
    count_verdicts,
    plain_deviations,
    result_document,
)
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.repetition import Row, document_of, each_once
from evenhand.procedure.statistics import Statistics
from evenhand.procedure.tester import OpenTester
from evenhand.results.loss import LossAtLoad, LossFound, LossGoal, LossOutcome
from evenhand.search import FULL_LENGTH_S
from evenhand.trial import Deviation, Load, TrialResult

LOSSLESS_IN_A_ROW = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPoint:
    """One load of the series, and its trials in order. The last trial counts, if it is valid."""

    share: float
    """Share of the maximum; 1 is 100 %."""
    rate_fps: float
    """Intended rate, per direction."""
    trials: tuple[TrialResult, ...]

    @property
    def trial(self) -> TrialResult | None:
        """The valid trial; None if the tester did not manage one, which says nothing about the DUT."""
        return self.trials[-1] if self.trials[-1].is_valid else None

    @property
    def loss_ratio(self) -> float | None:
        """(input - output) / input over all directions, 0 to 1 (R2544-26); None without a valid trial."""
        return None if self.trial is None else self.trial.loss_ratio

    def found(self, theoretical_fps: float | None) -> LossAtLoad:
        """What was found at this load, without the trials.

        Args:
            theoretical_fps: Maximum theoretical frame rate per direction, if it is known.
        """
        trial = self.trial
        return LossAtLoad(
            share_of_maximum=self.share,
            share_of_theoretical=None if theoretical_fps is None else self.rate_fps / theoretical_fps,
            intended_fps=self.rate_fps,
            offered_fps=max(t.offered_fps for t in self.trials) if trial is None else trial.offered_fps,
            loss_ratio=self.loss_ratio,
            lost_frames=None if trial is None else trial.lost_frames,
            attempts=len(self.trials),
            reasons=tuple(self.trials[-1].reasons) if trial is None else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLoss:
    """Result of one loss series, with its traffic."""

    profile: Profile
    goal: LossGoal
    outcome: LossOutcome
    points: tuple[LossPoint, ...]
    """Points from the highest load down."""

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """All of them, in order."""
        return tuple(trial for point in self.points for trial in point.trials)

    @property
    def unmeasured(self) -> tuple[LossPoint, ...]:
        """Loads at which no trial was valid."""
        return tuple(point for point in self.points if point.trial is None)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        return plain_deviations(self.trials, self.profile)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand loss --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                attempts_at(point.trials for point in self.points),
                "loss",
                is_full_length=self.goal.duration_s >= FULL_LENGTH_S,
            ),
            deviations=self.deviations,
        )

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        return to_document(self.found)

    @property
    def found(self) -> LossFound:
        """What was found, without the trials."""
        return LossFound(
            outcome=str(self.outcome),
            points=tuple(point.found(self.profile.theoretical_fps) for point in self.points),
            verdicts=count_verdicts(self.trials),
            goal=self.goal,
        )


def measure_loss(
    tester: OpenTester,
    goal: LossGoal,
    *,
    name: str = "loss",
    repetition: int | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> FrameLoss:
    """One series (R2544-27). INVALID trials are repeated as in searches; a load that stays INVALID is kept
    without a loss ratio.

    Args:
        goal: With `max_fps` UP_TO_LINE_RATE it begins at the line rate, or, where the ports do not know
            theirs, at the tester's own ceiling.

    Raises:
        RequestError: The maximum is above the line rate.
        HostError: The tester keeps no load at all.
        EvenhandError: The engine could not make a trial at all.
    """
    tester, max_fps = find_maximum(
        tester, goal.max_fps, where="max_fps", on_event=on_event, recorder=recorder
    )
    goal = replace(goal, max_fps=max_fps)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))  # PASS is a trial without loss
    document = goal.to_document()
    with recording(recorder, tester, name, kind="loss", goal=document, repetition=repetition) as record:
        measurer = tester.measurer(on_event)
        attempts = Attempts(
            measurer=measurer,
            on_event=on_event,
            record=record,
            purpose="loss",
            overhead_s=measurer.overhead_s,
            invalid_retries=goal.invalid_retries,
            patience=goal.patience,
        )
        points, outcome = LossSeries(attempts=attempts, goal=goal).run()
        result = FrameLoss(profile=tester.profile, goal=goal, outcome=outcome, points=points)
        record.finish_with(str(outcome), result.summary())
    return result


@dataclass(slots=True, kw_only=True)
class LossSeries:
    """A series that is being measured."""

    attempts: Attempts
    goal: LossGoal
    points: list[LossPoint] = field(default_factory=list)

    def run(self) -> tuple[tuple[LossPoint, ...], LossOutcome]:
        lossless = 0
        for share in self.goal.shares:
            point = LossPoint(
                share=share, rate_fps=self.goal.max_fps * share, trials=tuple(self._measure(share))
            )
            self.points.append(point)
            if point.trials[-1].was_stopped:
                return tuple(self.points), LossOutcome.STOPPED
            # A load that stayed INVALID may have lost frames: what is on both sides of it does not count as
            # in a row.
            lossless = lossless + 1 if point.trial is not None and point.trial.lost_frames == 0 else 0
            if lossless == LOSSLESS_IN_A_ROW:
                return tuple(self.points), LossOutcome.LOSSLESS
        return tuple(self.points), LossOutcome.LOWEST_LOAD

    def _later(self, share: float) -> int:
        """Loads that will follow this one: down to the two that lose nothing, by what the device forwarded
        until now. A series of which nothing is known yet is taken to end half-way down."""
        shares = self.goal.shares
        lossy = [point for point in self.points if point.loss_ratio]
        forwarded = [point.share * (1 - (point.loss_ratio or 0.0)) for point in lossy]
        limit = min(forwarded, default=shares[(len(shares) - 1) // 2])
        lossless = sum(1 for point in self.points[-1:] if point.loss_ratio == 0.0)
        to_lose = sum(limit < each < share for each in shares)
        lower = len(shares) - 1 - shares.index(share)
        missing = LOSSLESS_IN_A_ROW - lossless - (share <= limit)
        return max(0, min(lower, to_lose + missing))

    def _measure(self, share: float) -> Iterator[TrialResult]:
        """Trials at one load: the last one is valid, or the goal allows no more of them."""
        return self.attempts.measure(
            what=f"{format_ratio(share)} of the maximum",
            load=Load(rate_fps=self.goal.max_fps * share, duration_s=self.goal.duration_s),
            later=self._later(share),
            is_full_length=self.goal.duration_s >= FULL_LENGTH_S,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTable:
    """Frame loss rate by frame size and load, each repeated."""

    rows: tuple[Row[FrameLoss], ...]

    @staticmethod
    def statistics(row: Row[FrameLoss]) -> dict[float, Statistics | None]:
        """Statistics of the loss ratio at each load, by its share of the maximum; None where no trial was
        valid."""
        return loss_statistics([_ratios(loss) for loss in row.repetitions])

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of all series, each once."""
        return each_once(
            [d for row in self.rows for loss in row.repetitions for d in loss.deviations], len(self.rows)
        )

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand loss --json` writes it for several sizes or repetitions."""
        rows = [
            row.to_document(
                loss_statistics=[
                    {"share_of_maximum": share, "statistics": document_of(statistics)}
                    for share, statistics in self.statistics(row).items()
                ]
            )
            for row in self.rows
        ]
        return {"rows": rows, "deviations": [deviation.to_document() for deviation in self.deviations]}


def loss_statistics(
    series: Sequence[tuple[Mapping[float, float | None], bool]],
) -> dict[float, Statistics | None]:
    """Statistics of the loss ratio at each load, from the highest one down; None where no trial was valid. A
    series that had lost nothing at two loads above was not tried here, and counts as lossless.

    Args:
        series: For each series, the loss ratio at each load, by its share of the maximum, and whether it
            ended since two loads lost nothing.
    """

    def ratio(ratios: Mapping[float, float | None], is_lossless: bool, share: float) -> float | None:
        found = ratios.get(share)
        return 0.0 if found is None and is_lossless and share < min(ratios, default=share) else found

    shares = sorted({share for ratios, _ in series for share in ratios}, reverse=True)
    at_each = {share: [ratio(*one, share) for one in series] for share in shares}
    return {share: Statistics.of(r for r in found if r is not None) for share, found in at_each.items()}


def _ratios(loss: FrameLoss) -> tuple[dict[float, float | None], bool]:
    return {point.share: point.loss_ratio for point in loss.points}, loss.outcome is LossOutcome.LOSSLESS


def spread_of(found: Sequence[FrameLoss]) -> float | None:
    """See `SpreadOf`: the largest difference of the loss ratios at any load."""
    of_loads = loss_statistics([_ratios(loss) for loss in found]).values()
    if any(statistics is None or statistics.count < len(found) for statistics in of_loads):
        return None
    return max(statistics.maximum - statistics.minimum for statistics in of_loads if statistics is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """Which loads, and how long the trials are."""

    maximum_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="max_fps",
            help="The load that counts as 100 %, per direction. Default: the line rate, or the tester's own"
            " ceiling where the ports do not know theirs.",
        ),
    ] = None
    step: Annotated[
        str, Option(grammar=RATIO, help="Step between loads, as a share of the maximum; at most 10%.")
    ] = RATIO.default(LossGoal, "step")
    duration: Annotated[str, Option(grammar=DURATION, sets="duration_s", help="Duration of each trial.")] = (
        DURATION.default(LossGoal, "duration_s")
    )


def _expected_s(goal: LossGoal, waits_s: float) -> float:
    """A series is taken to end half-way down."""
    return (len(goal.shares) / 2 + 1) * (goal.duration_s + waits_s)


def _expected_parts(goal: LossGoal) -> Iterable[str]:
    trials = f"up to {len(goal.shares)} loads of {format_duration(goal.duration_s)}"
    yield f"{trials}, half of which usually suffice"


def _describe(goal: LossGoal, load: str | None) -> str:
    first = describe_maximum(goal.max_fps)
    trials = f"trials of {format_duration(goal.duration_s)}"
    return f"loss from {first}, steps of {format_ratio(goal.step)}; {trials}"


LOSS = Procedure(
    name="loss",
    verb="loss",
    help="""Find the frame loss rate (RFC 2544 section 26.3) from the maximum down, until two successive
    loads lose nothing.

    A load that the tester itself does not keep is reported, and not charged to the DUT.""",
    example="evenhand loss lab.toml --maximum-rate 1Mfps --step 5% --run loss.evenhand",
    options=LossOptions,
    make_goal=goals_of(LossGoal),
    goals=LossGoal,
    found=LossFound,
    default_goal=lambda retries: LossGoal(**retries),
    measure=measure_loss,
    table=LossTable,
    spread_of=spread_of,
    figure=Figure(name="frame loss ratio at the highest load", unit="ratio", is_higher_better=False),
    section=Section.LOSS,
    value_of=lambda found: found.points[0].loss_ratio if found.points else None,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.SEVERAL,
    load="max_fps",
)
