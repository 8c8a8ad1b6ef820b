# SPDX-License-Identifier: Apache-2.0
"""Station 10: which parts of a trial were judged, as a strip over its sending time: of the trials that decide
a result, where they were judged by their clean time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evenhand.base.units import format_count, format_rate
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import PointRecord, Repetition
from evenhand.run.figures import time_left_out_of
from evenhand.trial import LAPSES, CleanTime, LeftOut

MOST_STRIPS = 24
"""Most strips of a point; the table of its trials has all of them."""
WIDTH = 1000
"""The width of a strip, in its own units."""
HEIGHT = 12
NARROWEST = 3
"""A part is drawn at least so wide: a millisecond of a minute could not be seen."""
KINDS = {
    "sender_overdue": ("the sender was overdue", "lapse-sender"),
    "receiver_away": ("a receiver was away", "lapse-receiver"),
    "dut_away": ("the DUT's CPU was away", "lapse-dut"),
}
"""Kinds of lapses: what happened, and the class of their colour."""
NOT_JUDGED = ("R2544-20", "R2544-24")
"""Requirements that a trial deviates from that was not judged as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStrip:
    """One trial."""

    title: str
    verdict: str
    text: str
    """How much of it was judged, and why not all."""
    svg: Markup
    ends: tuple[str, str]
    """Times at both ends of the strip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStrips:
    """All of a point."""

    strips: list[ShownStrip]
    kinds: list[tuple[str, str]]
    """Lapses in them: class of the colour, and words for the legend."""
    more: str
    """How many others there are; empty if there are none."""
    deviations: list[str]
    """What the trials deviate from, each once."""


def shown_strips(found: PointRecord) -> ShownStrips | None:
    """None if no trial that decides a result was judged by its clean time."""
    judged = [
        (repetition, trial)
        for repetition in found.repetitions
        if time_left_out_of(repetition) is not None  # which tells it without looking at each trial
        for trial in repetition.deciding_trials
        if trial.result.is_judged_by_clean_time
    ]
    if not judged:
        return None
    shown, left = judged[:MOST_STRIPS], len(judged) - MOST_STRIPS
    has_several = len(found.repetitions) > 1
    deviations = [
        deviation.line
        for _, trial in judged
        for deviation in trial.result.deviations
        if deviation.requirement in NOT_JUDGED
    ]
    return ShownStrips(
        kinds=_kinds([trial for _, trial in shown]),
        strips=[strip for one, trial in shown for strip in _strip(one if has_several else None, trial)],
        more="" if left <= 0 else f"{format_count(left)} more of them are among the trials below.",
        deviations=list(dict.fromkeys(deviations)),
    )


def strip_of(trial: StoredTrial) -> ShownStrips | None:
    """That of one trial; None if it was not to be judged by its clean time."""
    strips = list(_strip(None, trial))
    return ShownStrips(strips=strips, kinds=_kinds([trial]), more="", deviations=[]) if strips else None


def _kinds(trials: Sequence[StoredTrial]) -> list[tuple[str, str]]:
    cut = {
        kind
        for trial in trials
        if trial.result.clean is not None
        for part in trial.result.clean.left_out
        for kind in part.kinds
    }
    return [(KINDS[kind][1], KINDS[kind][0]) for kind in LAPSES if kind in cut]


def describe_clean(clean: CleanTime) -> str:
    """`judged by 60.0 s in 7 pieces of 62.1 s; 2.1 s left out: the sender was overdue 3 times`."""
    if not clean.left_out_s:
        return f"judged by all of its {_seconds(clean.sent_s)}; nothing was left out"
    pieces = "1 piece" if clean.pieces == 1 else f"{format_count(clean.pieces)} pieces"
    lapses = ", ".join(
        f"{KINDS[kind][0]} {'once' if count == 1 else f'{format_count(count)} times'}"
        for kind in LAPSES
        if (count := clean.lapses[kind])
    )
    why = f": {lapses}" if lapses else ""
    return (
        f"judged by {_seconds(clean.clean_s)} in {pieces} of {_seconds(clean.sent_s)};"
        f" {_seconds(clean.left_out_s)} left out{why}"
    )


def _seconds(time_s: float) -> str:
    """To a tenth of a second, or to two digits: `62.1 s`, `0.059 s`."""
    return f"{time_s:.1f} s" if time_s >= 1 else f"{float(f'{time_s:.2g}'):.10g} s"


def _strip(repetition: Repetition | None, trial: StoredTrial) -> Iterator[ShownStrip]:
    result, clean = trial.result, trial.result.clean
    if clean is None:
        return
    of = "" if repetition is None else f"Repetition {repetition.number}, trial"
    yield ShownStrip(
        title=f"{of or 'Trial'} {trial.number} at {format_rate(result.intended_fps)}",
        verdict=str(result.verdict),
        text=describe_clean(clean),
        svg=draw_strip(clean),
        ends=("0 s", _seconds(clean.sent_s)),
    )


def draw_strip(clean: CleanTime) -> Markup:
    """What was judged as one bar, and over it what was left out, in the colours of its lapses, one above the
    other where there were several."""
    # Numbers only: nothing of what a file says gets into the markup.
    bars = dict.fromkeys(LAPSES, "")
    for (begin, end), kinds in _bars(clean):
        height = HEIGHT / len(kinds)
        for place, kind in enumerate(kinds):
            bars[kind] += f"M{begin} {place * height:.4g}h{end - begin}v{height:.4g}h{begin - end}z"
    paths = Markup("").join(
        Markup('<path class="{}" d="{}"/>').format(KINDS[kind][1], path)
        for kind, path in bars.items()
        if path
    )
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="judged" d="M0 0h{}v{}H0z"/>{}</svg>'
    ).format(WIDTH, HEIGHT, describe_clean(clean), WIDTH, HEIGHT, paths)


def _bars(clean: CleanTime) -> list[tuple[tuple[int, int], tuple[str, ...]]]:
    """Whole places of what was left out, in order; parts that touch each other there are one, of all of their
    kinds."""
    found: list[tuple[tuple[int, int], tuple[str, ...]]] = []
    for begin, end, kinds in sorted(_places(part, clean.sent_s) for part in clean.left_out):
        if found and begin <= found[-1][0][1]:
            (first, last), before = found.pop()
            begin, end = first, max(last, end)
            kinds = tuple(kind for kind in LAPSES if kind in before or kind in kinds)
        found.append(((begin, end), kinds))
    return found


def _places(part: LeftOut, sent_s: float) -> tuple[int, int, tuple[str, ...]]:
    begin, end = (
        round(WIDTH * min(1.0, max(0.0, at_s / sent_s))) if sent_s > 0 else 0
        for at_s in (part.from_s, part.until_s)
    )
    begin = min(begin, WIDTH - NARROWEST)
    return begin, max(end, begin + NARROWEST), tuple(kind for kind in LAPSES if kind in part.kinds)
