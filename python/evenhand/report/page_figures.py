# SPDX-License-Identifier: Apache-2.0
"""Station 10: which pictures a campaign has, and with what numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from evenhand.analysis import Analysis
from evenhand.base.units import format_rate
from evenhand.procedure.descriptor import Section
from evenhand.procedure.registry import procedures_in
from evenhand.report.figures import Picture, drawn_or_said
from evenhand.report.figures_throughput import LossCurve, loss_picture
from evenhand.report.figures_times import (
    DelayCurve,
    LossHistory,
    Samples,
    delays_picture,
    history_picture,
    samples_picture,
)
from evenhand.report.page_figures_throughput import (
    MOST_CURVES,
    in_parts,
    name_of,
    point_label,
    size_pictures,
    suites_with,
    throughput_pictures,
    trials_of_point,
)
from evenhand.report.page_words import show_addresses, show_size, show_version
from evenhand.results.delay import DelayName
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.unread_results import may_have, sought
from evenhand.trial import Verdict

_LOST = sought(r'"lost_by_tenth":\s*\[\s*\d')
"""Is in each document of a trial that says when frames were lost."""
DELAY_FIGURES: dict[DelayName, str] = {
    "typical": "typical latency",
    "worst_case": "worst-case latency",
    "latency": "latency",
    "pdv": "PDV",
    "ipdv_median": "median IPDV",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Pictures of a page."""

    by_section: Mapping[Section, tuple[Picture, ...]]
    histories: tuple[Picture, ...]
    """Loss over time, which has a section of its own."""

    @property
    def first(self) -> tuple[Picture, ...]:
        """The one with which the page begins: of the throughput, or else of the loss."""
        return (*self.by_section[Section.THROUGHPUT], *self.by_section[Section.LOSS])[:1]

    @property
    def all(self) -> tuple[Picture, ...]:
        return (*chain.from_iterable(self.by_section.values()), *self.histories)


def pictures_of(record: CampaignRecord, analysis: Analysis) -> Pictures:
    """All that the results so far give; a picture that would be empty is not there."""
    taken: set[str] = set()
    drawn = {
        Section.THROUGHPUT: chain(
            drawn_or_said("Throughput over the number of addresses", throughput_pictures(record, analysis)),
            drawn_or_said("Throughput over the frame size", size_pictures(record)),
        ),
        Section.LOSS: drawn_or_said("Frame loss rate", _loss_pictures(record)),
        Section.LATENCY: chain(
            drawn_or_said("Delay of every frame", _delay_pictures(record)),
            drawn_or_said("Delays of each repetition", _sample_pictures(record)),
        ),
    }
    return Pictures(
        by_section={section: tuple(_named_apart(drawn.get(section, ()), taken)) for section in Section},
        histories=tuple(_named_apart(drawn_or_said("Loss over time", _history_pictures(record)), taken)),
    )


def _named_apart(pictures: Iterable[Picture], taken: set[str]) -> Iterator[Picture]:
    """Suites may have names that differ in other signs than letters and digits only; files and ids of theirs
    must differ too."""
    titles: set[str] = set()
    for picture in pictures:
        names = (picture.name if number == 1 else f"{picture.name}-{number}" for number in count(1))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        title = picture.title if picture.title not in titles else f"{picture.title} (continued)"
        titles.add(picture.title)
        yield replace(picture, name=name, title=title)


def _loss_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """R2544-28."""
    for suite, found in suites_with(record, procedures_in(Section.LOSS)):
        shares = {
            "share_of_theoretical": "theoretical maximum",
            "share_of_maximum": "highest load that was tried",
        }
        drawn = {
            share: [curve for one in found if (curve := _loss_curve(one, share, found)) is not None]
            for share in shares
        }
        known = next((share for share in shares if drawn[share]), None)
        if known is None:
            continue
        curves, of = drawn[known], shares[known]
        for number, some in enumerate(in_parts(curves), start=1):
            yield loss_picture(name_of("frame-loss", suite, number), f"Frame loss rate: {suite}", some, of=of)


def _loss_curve(found: PointRecord, share: str, among: Sequence[PointRecord]) -> LossCurve | None:
    repetitions = []
    for result in found.results:
        shares = [(getattr(point, share), point.loss_ratio) for point in result.found.points]
        line = tuple(
            (100 * load, 100 * loss) for load, loss in shares if load is not None and loss is not None
        )
        repetitions += [line] if line else []
    return LossCurve(label=point_label(found, among), repetitions=tuple(repetitions)) if repetitions else None


def _delay_pictures(record: CampaignRecord) -> Iterator[Picture]:
    for suite, found in suites_with(record, procedures_in(Section.LATENCY)):
        curves = [curve for one in found if (curve := _delay_curve(one, found)) is not None]
        for number, some in enumerate(in_parts(curves), start=1):
            yield delays_picture(name_of("delays", suite, number), f"Delay of every frame: {suite}", some)


def _delay_curve(found: PointRecord, among: Sequence[PointRecord]) -> DelayCurve | None:
    buckets: dict[float, int] = {}
    for trial in trials_of_point(found):
        if trial.result.is_valid:
            for direction in trial.result.raw["directions"].values():
                for lowest_ns, frames in direction["latency"].get("buckets") or []:
                    if frames > 0:  # of none, nothing can be drawn
                        buckets[lowest_ns] = buckets.get(lowest_ns, 0) + frames
    return (
        DelayCurve(label=point_label(found, among), buckets=tuple(sorted(buckets.items())))
        if buckets
        else None
    )


def _sample_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """Latency and PDV of each repetition, both directions apart."""
    for suite, found in suites_with(record, procedures_in(Section.LATENCY)):
        for name, title in DELAY_FIGURES.items():
            samples = [sample for one in found for sample in _samples(one, name, found)]
            for number, some in enumerate(in_parts(samples, most=6), start=1):
                heading = f"{title[0].upper()}{title[1:]} of each repetition: {suite}"
                yield samples_picture(name_of("repetitions", suite, name, number), heading, some, what=title)


def _samples(found: PointRecord, name: DelayName, among: Sequence[PointRecord]) -> Iterator[Samples]:
    for direction in found.point.directions:
        values = [
            value
            for one in found.results
            if (of := one.found.figures.get(direction)) is not None
            and (figure := of.of.get(name)) is not None
            for value in figure.values
            if value is not None
        ]
        if values:
            yield Samples(label=f"{point_label(found, among)}, {direction}", values=tuple(values))


def _history_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """Loss over time: of recovery tests, whose load falls, and of the lossy trial of each suite that is
    nearest to its result."""
    for suite, found in suites_with(record, procedures_in(Section.RECOVERY)):
        trials = [
            trial
            for one in found
            for trial in trials_of_point(one)
            if trial.result.is_valid and trial.result.lost_frames
        ]
        histories = [
            history
            for one in found
            for trial in [t for t in trials_of_point(one) if t.result.is_valid and t.result.lost_frames][:2]
            for history in _histories(trial, f"{_place(one)}, trial {trial.number}")
        ]
        if histories:
            falls = [after["duration_s"] for trial in trials[:1] if (after := trial.result.raw.get("then"))]
            lasts = trials[0].result.raw["intended_duration_s"]
            yield history_picture(
                name_of("loss-over-time", suite),
                f"Loss over time: {suite}",
                histories[:MOST_CURVES],
                falls_at_s=lasts - falls[0] if falls and lasts > falls[0] else None,
            )
    nearest = [
        list(_histories(nearest_loss[1], _trial_of(suite, *nearest_loss)))
        for suite, found in suites_with(record, procedures_in(Section.THROUGHPUT))
        if (nearest_loss := _nearest_loss(found)) is not None
    ]
    for number, some in enumerate(in_parts(nearest, most=MOST_CURVES // 2), start=1):
        title = "Loss over time in the trial with the lowest load that failed"
        histories = [history for of_trial in some for history in of_trial]
        yield history_picture(name_of("loss-over-time", "searches", number), title, histories)


def _trial_of(suite: str, found: PointRecord, trial: StoredTrial) -> str:
    """`direct: IPv4, 16 x 16 addresses, 64 octets, repetition 2, trial 7`."""
    number = next(
        (
            repetition.number
            for repetition in found.repetitions
            if any(trial is one for one in repetition.trials)
        ),
        None,
    )
    of_repetition = "" if number is None or len(found.repetitions) < 2 else f", repetition {number}"
    return f"{suite}: {_place(found)}{of_repetition}, trial {trial.number}"


def _place(found: PointRecord) -> str:
    """Which point it is: `IPv6, 16 x 16 addresses, 64 octets, type1`."""
    point = found.point
    return ", ".join(
        [
            show_version(point),
            show_addresses(point),
            show_size(point),
            *([point.hash_type] if point.hash_type else []),
        ]
    )


def _nearest_loss(found: Sequence[PointRecord]) -> tuple[PointRecord, StoredTrial] | None:
    """The trial of the last point that has one: the series' end is where a DUT has most to do."""
    for one in reversed(found):
        failed = sorted(
            (t for t in trials_of_point(one) if t.result.verdict is Verdict.FAIL),
            key=lambda trial: (trial.result.intended_fps, -trial.result.intended_duration_s),
        )
        for trial in failed:
            if may_have(trial.result, _LOST) and any(
                direction.lost_by_tenth for direction in trial.result.directions.values()
            ):
                return one, trial
    return None


def _histories(trial: StoredTrial, label: str) -> Iterator[LossHistory]:
    """One for each direction, also for one that lost nothing: a reader must see that it did not."""
    load = format_rate(trial.result.intended_fps)
    for name, direction in trial.result.directions.items():
        if direction.lost_by_tenth:
            yield LossHistory(label=f"{label}; {load}, {name}", lost_by_tenth=direction.lost_by_tenth)
