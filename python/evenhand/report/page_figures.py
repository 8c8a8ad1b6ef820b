# SPDX-License-Identifier: Apache-2.0
"""Station 10: which pictures a campaign has, and with what numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, zip_longest
from typing import Any, TypeVar

from evenhand.analysis import Analysis, Curve
from evenhand.base.units import format_rate
from evenhand.procedure.registry import IPDV, LATENCY, LOSS, PDV, RECOVERY, THROUGHPUT
from evenhand.report.drawn_curves import DrawnCurve, DrawnPoint, Plateau
from evenhand.report.figures import Picture
from evenhand.report.figures_loss import LossCurve, loss_picture
from evenhand.report.figures_throughput import addresses_picture, sizes_picture
from evenhand.report.figures_times import (
    DelayCurve,
    LossHistory,
    Samples,
    delays_picture,
    history_picture,
    samples_picture,
)
from evenhand.report.page_words import show_addresses, show_protocol, show_size, show_version, version_of_plan
from evenhand.run import PointState, StoredSearch, StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.trial import Verdict

T = TypeVar("T")
MOST_CURVES = 4
"""In one picture: as many as there are colours, markers and dashes. What is more goes into the next
picture."""
DELAY_FIGURES = {
    "typical": "typical latency",
    "worst_case": "worst-case latency",
    "latency": "latency",
    "pdv": "PDV",
    "ipdv_median": "median IPDV",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """By the sections of a page."""

    throughput: tuple[Picture, ...]
    sizes: tuple[Picture, ...]
    loss: tuple[Picture, ...]
    delays: tuple[Picture, ...]
    variation: tuple[Picture, ...]
    histories: tuple[Picture, ...]

    @property
    def all(self) -> tuple[Picture, ...]:
        return (*self.throughput, *self.sizes, *self.loss, *self.delays, *self.variation, *self.histories)


def pictures_of(record: CampaignRecord, analysis: Analysis) -> Pictures:
    """All that the results so far give; a picture that would be empty is not there."""
    taken: set[str] = set()
    return Pictures(
        throughput=tuple(_named_apart(_throughput_pictures(record, analysis), taken)),
        sizes=tuple(_named_apart(_size_pictures(record), taken)),
        loss=tuple(_named_apart(_loss_pictures(record), taken)),
        delays=tuple(_named_apart(_delay_pictures(record), taken)),
        variation=tuple(_named_apart(_sample_pictures(record), taken)),
        histories=tuple(_named_apart(_history_pictures(record), taken)),
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


def _throughput_pictures(record: CampaignRecord, analysis: Analysis) -> Iterator[Picture]:
    """One for each frame size, with IPv4 and IPv6 in it, so that they can be compared."""
    points = {found.point.key: found for found in record.points}
    over_sizes = {
        found.point.key for found in record.points if found.point.suite in _suites_over_sizes(record)
    }
    kept = [
        curve
        for curve in analysis.curves
        if curve.key.procedure == THROUGHPUT.name
        and any(point.state != "pending" for point in curve.points)
        # A size alone of a suite over frame sizes is in the picture over frame sizes.
        and (len(curve.points) > 1 or curve.points[0].key not in over_sizes)
    ]
    for curves in _by_sizes(kept):
        for number, some in enumerate(_parts(_versions_in_turn(curves)), start=1):
            versions = _joined({version_of_plan(curve.key.plan) for curve in some})
            ordered = sorted(
                {curve.key.frame_size for curve in some}, key=lambda size: (isinstance(size, str), size)
            )
            by_size = {
                size: show_size(points[c.points[0].key].point)
                for size in ordered
                for c in some
                if c.key.frame_size == size
            }
            sizes = " and ".join(by_size.values())
            title = f"Throughput over the number of addresses: UDP over {versions}, {sizes}"
            drawn = [
                _drawn(
                    curve,
                    with_setting=len({c.key.suite for c in some}) < len(some),
                    with_version=" and " in versions,
                    size=by_size[curve.key.frame_size] if len(by_size) > 1 else "",
                )
                for curve in some
            ]
            limit = _theoretical_fps(points[some[0].points[0].key]) if len(by_size) == 1 else None
            name = _name("throughput-over-addresses", f"UDP over {versions}", sizes, number)
            yield addresses_picture(name, title, drawn, theoretical_fps=limit)


def _joined(versions: Iterable[str]) -> str:
    return " and ".join(sorted({version for one in versions for version in one.split(" and ")}))


def _by_sizes(curves: Sequence[Curve]) -> Iterator[list[Curve]]:
    """Curves of one frame size; where IPv4 and IPv6 share none of theirs, the smallest of each: a plain test
    has 64 and 84 octets."""
    sizes: dict[str, set[int | str]] = {}
    for curve in curves:
        sizes.setdefault(version_of_plan(curve.key.plan), set()).add(curve.key.frame_size)
    share_none = len(sizes) > 1 and not set.intersection(*sizes.values())
    smallest = {
        version: min((size for size in of if isinstance(size, int)), default=None)
        for version, of in sizes.items()
    }
    groups: dict[int | str, list[Curve]] = {}
    for curve in curves:
        is_smallest = curve.key.frame_size == smallest[version_of_plan(curve.key.plan)]
        groups.setdefault("smallest" if share_none and is_smallest else curve.key.frame_size, []).append(
            curve
        )
    yield from groups.values()


def _versions_in_turn(curves: Sequence[Curve]) -> list[Curve]:
    """The first of each IP version, then the second of each: what is compared is in one picture, also where
    there are several."""
    by_version: dict[str, list[Curve]] = {}
    for curve in curves:
        by_version.setdefault(version_of_plan(curve.key.plan), []).append(curve)
    return [curve for turn in zip_longest(*by_version.values()) for curve in turn if curve is not None]


def _drawn(curve: Curve, *, with_setting: bool, with_version: bool, size: str) -> DrawnCurve:
    points = tuple(
        DrawnPoint(
            x=point.addresses,
            values=point.values,
            predicted=point.predicted,
            is_at_least=point.is_at_least,
            lower_bounds=point.lower_bounds,
        )
        for point in curve.points
        if point.values or point.state is PointState.NO_NUMBER
    )
    plateau = None
    if curve.shape is not None and curve.shape.is_plateau_seen and not curve.shape.is_capped:
        flat = curve.shape
        plateau = Plateau(
            first_x=min(flat.plateau),
            last_x=max(flat.plateau),
            low=flat.statistics.minimum,
            level=flat.plateau_level,
            high=flat.statistics.maximum,
        )
    label, version = curve.title if with_setting else curve.key.suite, version_of_plan(curve.key.plan)
    label += f", {version}" if with_version and version not in label else ""
    label += f", {size}" if size and size not in label else ""
    return DrawnCurve(label=label, points=points, plateau=plateau)


def _suites_over_sizes(record: CampaignRecord) -> set[str]:
    """Suites with throughput at several frame sizes."""
    sizes: dict[str, set[Any]] = {}
    for found in record.points:
        if found.point.procedure == THROUGHPUT.name and isinstance(found.point.frame_size, int):
            sizes.setdefault(found.point.suite, set()).add(found.point.frame_size)
    return {suite for suite, several in sizes.items() if len(several) > 1}


def _size_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """R2544-22, for each suite with several sizes; a line for each number of addresses."""
    for suite in record.suites:
        if suite not in _suites_over_sizes(record):
            continue
        of_suite = [
            found
            for found in record.points
            if found.point.suite == suite and found.point.procedure == THROUGHPUT.name
        ]
        lines: dict[str, list[PointRecord]] = {}
        for found in of_suite:
            if isinstance(found.point.frame_size, int) and found.state != "pending":
                lines.setdefault(f"{show_addresses(found.point)}, {show_protocol(found.point)}", []).append(
                    found
                )
        limits = {
            int(found.point.frame_size): limit
            for found in of_suite
            if (limit := _theoretical_fps(found)) is not None
        }
        for number, some in enumerate(_parts(list(lines.items())), start=1):
            drawn = [
                DrawnCurve(
                    label=label,
                    points=tuple(
                        DrawnPoint(
                            x=int(f.point.frame_size),
                            values=f.values,
                            is_at_least=f.is_at_least,
                            lower_bounds=f.lower_bounds,
                        )
                        for f in _by_size(found)
                        if f.values or f.state is PointState.NO_NUMBER
                    ),
                )
                for label, found in some
            ]
            yield sizes_picture(
                _name("throughput-over-frame-sizes", suite, number),
                f"Throughput over the frame size: {suite}",
                drawn,
                sorted(limits.items()),
            )


def _by_size(found: Iterable[PointRecord]) -> list[PointRecord]:
    return sorted(found, key=lambda record: int(record.point.frame_size))


def _loss_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """R2544-28."""
    for suite, found in _of(record, (LOSS.name,)):
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
        for number, some in enumerate(_parts(curves), start=1):
            yield loss_picture(_name("frame-loss", suite, number), f"Frame loss rate: {suite}", some, of=of)


def _loss_curve(found: PointRecord, share: str, among: Sequence[PointRecord]) -> LossCurve | None:
    repetitions = []
    for result in _results(found):
        shares = [(point.get(share), point.get("loss_ratio")) for point in result.get("points") or []]
        line = tuple(
            (100 * load, 100 * loss) for load, loss in shares if load is not None and loss is not None
        )
        repetitions += [line] if line else []
    return LossCurve(label=_label(found, among), repetitions=tuple(repetitions)) if repetitions else None


def _delay_pictures(record: CampaignRecord) -> Iterator[Picture]:
    for suite, found in _of(record, (LATENCY.name, PDV.name, IPDV.name)):
        curves = [curve for one in found if (curve := _delay_curve(one, found)) is not None]
        for number, some in enumerate(_parts(curves), start=1):
            yield delays_picture(_name("delays", suite, number), f"Delay of every frame: {suite}", some)


def _delay_curve(found: PointRecord, among: Sequence[PointRecord]) -> DelayCurve | None:
    buckets: dict[float, int] = {}
    for trial in _trials(found):
        if trial.result.is_valid:
            for direction in trial.result.raw["directions"].values():
                for lowest_ns, frames in direction["latency"].get("buckets") or []:
                    buckets[lowest_ns] = buckets.get(lowest_ns, 0) + frames
    return DelayCurve(label=_label(found, among), buckets=tuple(sorted(buckets.items()))) if buckets else None


def _sample_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """Latency and PDV of each repetition, both directions apart."""
    for suite, found in _of(record, (LATENCY.name, PDV.name, IPDV.name)):
        for name, title in DELAY_FIGURES.items():
            samples = [sample for one in found for sample in _samples(one, name, found)]
            for number, some in enumerate(_parts(samples, most=6), start=1):
                heading = f"{title[0].upper()}{title[1:]} of each repetition: {suite}"
                yield samples_picture(_name("repetitions", suite, name, number), heading, some, what=title)


def _samples(found: PointRecord, name: str, among: Sequence[PointRecord]) -> Iterator[Samples]:
    for direction in found.point.directions:
        values = [
            value
            for result in _results(found)
            for value in (((result.get("figures") or {}).get(direction) or {}).get(name) or {}).get("values")
            or []
            if value is not None
        ]
        if values:
            yield Samples(label=f"{_label(found, among)}, {direction}", values=tuple(values))


def _history_pictures(record: CampaignRecord) -> Iterator[Picture]:
    """Loss over time: of recovery tests, whose load falls, and of the lossy trial of each suite that is
    nearest to its result."""
    for suite, found in _of(record, (RECOVERY.name,)):
        trials = [
            trial
            for one in found
            for trial in _trials(one)
            if trial.result.is_valid and trial.result.lost_frames
        ]
        histories = [
            history
            for one in found
            for trial in [t for t in _trials(one) if t.result.is_valid and t.result.lost_frames][:2]
            for history in _histories(trial, f"{_place(one)}, trial {trial.number}")
        ]
        if histories:
            falls = [after["duration_s"] for trial in trials[:1] if (after := trial.result.raw.get("then"))]
            lasts = trials[0].result.raw["intended_duration_s"]
            yield history_picture(
                _name("loss-over-time", suite),
                f"Loss over time: {suite}",
                histories[:MOST_CURVES],
                falls_at_s=lasts - falls[0] if falls and lasts > falls[0] else None,
            )
    nearest = [
        history
        for suite, found in _of(record, (THROUGHPUT.name,))
        if (nearest_loss := _nearest_loss(found)) is not None
        for history in islice(_histories(nearest_loss[1], f"{suite}: {_place(nearest_loss[0])}"), 1)
    ]
    for number, some in enumerate(_parts(nearest), start=1):
        title = "Loss over time in the trial with the lowest load that failed"
        yield history_picture(_name("loss-over-time", "searches", number), title, some)


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
    """Of the last point with such a trial: the series' end is where a DUT has most to do."""
    for one in reversed(found):
        failed = [
            t
            for t in _trials(one)
            if t.result.verdict is Verdict.FAIL and any(d.lost_by_tenth for d in t.result.directions.values())
        ]
        if failed:
            return one, min(
                failed, key=lambda trial: (trial.result.intended_fps, -trial.result.intended_duration_s)
            )
    return None


def _histories(trial: StoredTrial, label: str) -> Iterator[LossHistory]:
    for name, direction in trial.result.directions.items():
        if any(direction.lost_by_tenth):
            load = format_rate(trial.result.intended_fps)
            yield LossHistory(label=f"{label}; {load}, {name}", lost_by_tenth=direction.lost_by_tenth)


def _of(record: CampaignRecord, procedures: tuple[str, ...]) -> Iterator[tuple[str, list[PointRecord]]]:
    """Suites with points of these procedures that have begun."""
    for suite in record.suites:
        found = [
            one
            for one in record.points
            if one.point.suite == suite and one.point.procedure in procedures and one.state != "pending"
        ]
        if found:
            yield suite, found


def _label(found: PointRecord, among: Sequence[PointRecord]) -> str:
    """What tells the point from the others of its suite."""
    points = [one.point for one in among]
    parts = [show_size(found.point)]
    if len({(p.hosts, p.networks) for p in points}) > 1:
        parts.append(show_addresses(found.point))
    if len({p.plan for p in points}) > 1:
        parts.append(found.point.plan)
    if len({p.procedure for p in points}) > 1:
        parts.append(found.point.procedure)
    return ", ".join(parts)


def _results(found: PointRecord) -> list[Mapping[str, Any]]:
    return [one.result for one in found.repetitions if one.finished_at is not None and one.result is not None]


def _searches(found: PointRecord) -> Iterator[StoredSearch]:
    for repetition in found.repetitions:
        yield from repetition.searches


def _trials(found: PointRecord) -> Iterator[StoredTrial]:
    for search in _searches(found):
        yield from search.trials


def _theoretical_fps(found: PointRecord) -> float | None:
    """Per direction, as the results of the point tell it."""
    return next(
        (
            fps
            for result in _results(found)
            if (fps := result.get("theoretical_fps_per_direction")) is not None
        ),
        None,
    )


def _parts(items: Sequence[T], most: int = MOST_CURVES) -> Iterator[Sequence[T]]:
    """As few as can be, and about equal: not four curves and one alone."""
    parts = -(-len(items) // most)
    for part in range(parts):
        yield items[part * len(items) // parts : (part + 1) * len(items) // parts]


def _name(*parts: str | int) -> str:
    """Of a file and of ids; a first part of several has no number."""
    words = [str(part) for part in parts if part != 1]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
