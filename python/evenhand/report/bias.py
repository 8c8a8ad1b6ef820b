# SPDX-License-Identifier: Apache-2.0
"""Station 10: what the choice of test addresses did to a result. One pair, many addresses, and a router that
hashes ports, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.condition_words import show_percent
from evenhand.analysis.ratios import SAME_WITHIN
from evenhand.base.table import Cell, Table, make_table, measured
from evenhand.base.units import format_count, format_duration, format_rate, format_ratio
from evenhand.predict import Prediction
from evenhand.procedure import Profile, WorstTesterFigures, throughput_document
from evenhand.report.result_entry import time_left_out_lines
from evenhand.report.suite import SuiteEntry, sent_lines, suite_deviations
from evenhand.report.throughput import verification_lines
from evenhand.run.campaign_record import AT_LEAST
from evenhand.search import Outcome, ThroughputResult
from evenhand.trial import TimeLeftOut, Verdict

AS_PREDICTED_WITHIN = 0.02
BAR_CELLS = 18
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasCase:
    """One search on a router whose elements, hash and rates are known."""

    profile: Profile
    prediction: Prediction
    result: ThroughputResult
    counters: dict[str, Any]
    """Counters of the router; recorded, never used for a verdict (SEED-07)."""
    given_up: ThroughputResult | None = None
    """A search with longer trials before this one, which ended at the tester's ceiling."""

    @property
    def address_words(self) -> str:
        traffic = self.profile.traffic
        return (
            "one address pair"
            if traffic.is_one_pair
            else f"{format_count(traffic.occurring('left').address_count)} addresses a side"
        )

    @property
    def hash_fields(self) -> str:
        return "addresses only" if self.prediction.model.hash_type == "type1" else "addresses and ports"

    @property
    def predicted_fps(self) -> float:
        """Per direction."""
        fps = self.prediction.throughput_fps
        assert fps is not None, "the elements of a reference router have a rate"
        return fps

    @property
    def plateau_fps(self) -> float:
        """Per direction, if all elements had the same load."""
        fps = self.prediction.plateau_fps
        assert fps is not None, "the elements of a reference router have a rate"
        return fps

    @property
    def found_fps(self) -> float | None:
        """Per direction; None if the search did not end with a number of the router."""
        return self.result.throughput_fps if self.result.outcome is Outcome.FOUND else None

    @property
    def passed_fps(self) -> float | None:
        """Per direction: the highest load that passed, where it is all that is known of the router."""
        return self.result.highest_passed_fps if self.found_fps is None else None

    def found_cell(self, kind: str) -> Cell:
        """What was found, or what it is at least.

        Args:
            kind: As of `measured`.
        """
        if self.found_fps is not None:
            return measured(self.found_fps, kind)
        return measured(self.passed_fps, kind, bound=AT_LEAST)

    @property
    def share(self) -> float | None:
        """Found against the plateau. The one share that is shown, in the table, the picture and the
        sentences."""
        return None if self.found_fps is None else self.found_fps / self.plateau_fps

    @property
    def error(self) -> float | None:
        """Found against predicted, relative."""
        return None if self.found_fps is None else self.found_fps / self.predicted_fps - 1

    @property
    def is_as_predicted(self) -> bool:
        return self.error is not None and abs(self.error) <= AS_PREDICTED_WITHIN

    @property
    def elements_at_work(self) -> int:
        """Number of elements that served at least one frame."""
        return sum(element["served_frames"] > 0 for element in self.counters["elements"])


def bias_picture(cases: Sequence[BiasCase]) -> Table:
    """Bars for a terminal of 80 columns, full length for the plateau."""
    titles = ["router hashes\n  tester sends", "share of plateau, %", "#found", "#predicted"]
    rows: Iterator[list[str | Cell]] = (
        [
            f"{case.hash_fields}\n  {case.address_words}",
            _bar(case),
            case.found_cell("fps"),
            measured(case.predicted_fps, "fps"),
        ]
        for case in cases
    )
    return make_table(titles, rows, title="Throughput per direction")


def has_verdict(cases: Sequence[BiasCase]) -> bool:
    """Whether each search found a limit of the router, so that they can be compared."""
    return all(case.found_fps is not None for case in cases)


def bias_verdict(cases: Sequence[BiasCase]) -> list[str]:
    """Sentences: what one pair shows, whether many addresses cure it, and how that compares with a hash of
    ports.

    What was found decides, never the model (SEED-07); the percentage is that of the table.
    """
    one, many, ports = cases
    if not has_verdict(cases):
        without = sum(case.found_fps is None for case in cases)
        return [
            f"No verdict: {without} of {len(cases)} searches ended without a result for the"
            " router. See which trials were INVALID, and why; `evenhand check` shows what"
            " this machine does to the tester's CPUs."
        ]
    assert one.share is not None
    assert one.found_fps is not None
    assert many.found_fps is not None
    assert ports.found_fps is not None
    elements = many.prediction.model.elements
    lines = []
    if one.found_fps < (1 - SAME_WITHIN) * many.found_fps:
        lines.append(
            f"Biased: one address pair shows {show_percent(one.share)} of what this router can"
            " forward. Its hash uses addresses only, so all frames of a direction go to"
            f" one element, and {_at_work(one.elements_at_work, elements)}; pseudorandom ports do not help."
        )
    else:
        lines.append(
            f"Not biased: one address pair shows {show_percent(one.share)} of what this router"
            " can forward, about as much as many addresses do."
        )
    ratio = many.found_fps / ports.found_fps
    how = "about equal to" if abs(ratio - 1) <= SAME_WITHIN else "not equal to"
    lines.append(
        f"Even-handed: {many.address_words} behind gateways make {many.elements_at_work} of"
        f" {elements} elements work. The result is {how} that of the same router when it"
        f" hashes ports as well (ratio {ratio:.3f})."
    )
    return lines


def _at_work(elements: int, of: int) -> str:
    if elements == 1:
        return f"only 1 of {of} works, for both directions"
    return f"only {elements} of {of} work, one for each direction"


def bias_lines(cases: Sequence[BiasCase]) -> list[str]:
    """The verdict, and what else a reader must know."""
    first = cases[0]
    model = first.prediction.model
    lines = ["", *bias_verdict(cases), ""]
    errors = [abs(case.error) for case in cases if case.error is not None]
    if errors:
        which = (
            "Each search"
            if len(errors) == len(cases)
            else f"In {len(errors)} of {len(cases)} searches the result"
        )
        lines.append(
            f"{which} is within {show_percent(max(errors))} of its prediction (the searches stop at"
            f" {format_ratio(max(case.result.goal.precision for case in cases))})."
        )
    assert model.rate_fps is not None
    lines.append(
        f"The router: {model.elements} elements of {format_rate(model.rate_fps)} with queues of"
        f" {model.queue_frames} frames, Toeplitz"
        f" hash, {len(model.table)} entries in the table. {first.profile.protocol},"
        f" {first.profile.frame_size} octets,"
        " both directions, zero loss."
    )
    counts = ", ".join("/".join(str(case.result.count(verdict)) for verdict in Verdict) for case in cases)
    lines.append(
        f"Trials PASS/FAIL/INVALID: {counts}. INVALID trials were repeated; they say nothing"
        " about the router."
    )
    for given_up in (case.given_up for case in cases if case.given_up is not None):
        lines.append(
            f"Before these, a search with trials of {format_duration(given_up.goal.duration_s)}"
            f" was abandoned after {format_count(len(given_up.trials))} trials, because too"
            " many of them were INVALID on this machine."
        )
    figures = WorstTesterFigures.of(trial.result for case in cases for trial in case.result.trials)
    away_us = max(case.counters["model"]["longest_gap_us"] for case in cases)
    late_us = figures.max_overdue_us or 0.0
    counted = "No trial was valid; in these" if figures.is_of_invalid_trials else "In valid trials"
    lines.append(
        f"{counted} the tester's latest frame was {format_duration(late_us / 1e6)} late. In all trials the"
        f" router was away from its ports for at most {format_duration(away_us / 1e6)}."
    )
    lines += time_left_out_lines(
        TimeLeftOut.of(trial.result for case in cases for trial in case.result.trials)
    )
    lines += verification_lines(first.result.goal)
    lines += dict.fromkeys(line for case in cases for line in sent_lines(case.profile))
    lines += [d.line for d in suite_deviations(bias_entries(cases))]
    return lines


def bias_entries(cases: Sequence[BiasCase]) -> list[SuiteEntry]:
    """The same searches as rows of a suite."""
    return [SuiteEntry(profile=case.profile, result=case.result) for case in cases]


def bias_document(cases: Sequence[BiasCase]) -> dict[str, Any]:
    """The document for programs."""
    return {
        "searches": [
            {
                **throughput_document(case.result, case.profile),
                "hash_type": case.prediction.model.hash_type,
                "found_fps_per_direction": case.found_fps,
                "predicted_fps_per_direction": case.predicted_fps,
                "plateau_fps_per_direction": case.plateau_fps,
                "error": case.error,
                "is_as_predicted": case.is_as_predicted,
                "elements_at_work": case.elements_at_work,
                "trials_given_up": 0 if case.given_up is None else len(case.given_up.trials),
                "router": case.counters,
            }
            for case in cases
        ],
        "model": cases[0].prediction.model.to_document(),
        "verdict": bias_verdict(cases),
        "deviations": [d.to_document() for d in suite_deviations(bias_entries(cases))],
    }


def _bar(case: BiasCase) -> Cell:
    if case.share is None:
        return Cell("no number: " + str(case.result.outcome).replace("_", " "), "flag")
    eighths = round(max(0.0, min(case.share, 1.0)) * BAR_CELLS * 8)
    bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    share = show_percent(case.share).removesuffix(" %")  # that is in the heading
    return Cell(f"{bar} {share}", "good" if case.share >= 1 - SAME_WITHIN else "bad")
