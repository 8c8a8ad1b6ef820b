# SPDX-License-Identifier: Apache-2.0
"""Station 10: pictures of throughput: over the number of addresses, and over the frame size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

from evenhand.analysis import Analysis, Curve
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.curve_drawing import DrawnCurve, DrawnPoint, Plateau
from evenhand.report.figures import Picture
from evenhand.report.figures_throughput import addresses_picture, sizes_picture
from evenhand.report.page_words import show_addresses, show_protocol, show_size, version_of_plan
from evenhand.run import PointState, StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord

T = TypeVar("T")
MOST_CURVES = 4
"""Most curves in one picture: as many as there are colours, markers and dashes. What is more goes into the
next picture."""


def suites_with(
    record: CampaignRecord, procedures: tuple[str, ...]
) -> Iterator[tuple[str, list[PointRecord]]]:
    """Suites with points of these procedures that have begun."""
    for suite in record.suites:
        found = [
            one
            for one in record.points
            if one.point.suite == suite and one.point.procedure in procedures and one.state != "pending"
        ]
        if found:
            yield suite, found


def point_label(found: PointRecord, among: Sequence[PointRecord]) -> str:
    """What distinguishes the point from the others of its suite."""
    points = [one.point for one in among]
    parts = [show_size(found.point)]
    if len({(p.routes, p.hosts, p.networks) for p in points}) > 1:
        parts.append(show_addresses(found.point))
    if len({p.plan for p in points}) > 1:
        parts.append(found.point.plan)
    if len({p.procedure for p in points}) > 1:
        parts.append(found.point.procedure)
    return ", ".join(parts)


def trials_of_point(found: PointRecord) -> Iterator[StoredTrial]:
    """Trials of all its repetitions."""
    for repetition in found.repetitions:
        yield from repetition.trials


def theoretical_fps_of(found: PointRecord) -> float | None:
    """Per direction, as the results of the point state it."""
    return next(
        (fps for one in found.results if (fps := getattr(one.found, "theoretical_fps", None)) is not None),
        None,
    )


def in_parts(items: Sequence[T], most: int = MOST_CURVES) -> Iterator[Sequence[T]]:
    """As few parts as possible, and about equal: not four curves and one alone."""
    parts = -(-len(items) // most)
    for part in range(parts):
        yield items[part * len(items) // parts : (part + 1) * len(items) // parts]


def name_of(*parts: str | int) -> str:
    """The name of a file and of ids; the first of several parts has no number."""
    words = [str(part) for part in parts if part != 1]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def throughput_pictures(record: CampaignRecord, analysis: Analysis) -> Iterator[Picture]:
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
    kinds = [[curve for curve in kept if curve.is_over_routes is over] for over in (False, True)]
    for curves in (some for kind in kinds for some in _by_sizes(kind)):
        counted = "routes" if curves[0].is_over_routes else "addresses"
        for number, some in enumerate(in_parts(_versions_in_turn(curves)), start=1):
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
            title = f"Throughput over the number of {counted}: UDP over {versions}, {sizes}"
            drawn = [
                _drawn(
                    curve,
                    with_setting=len({c.key.suite for c in some}) < len(some),
                    with_version=" and " in versions,
                    size=by_size[curve.key.frame_size] if len(by_size) > 1 else "",
                )
                for curve in some
            ]
            limit = theoretical_fps_of(points[some[0].points[0].key]) if len(by_size) == 1 else None
            name = name_of(f"throughput-over-{counted}", f"UDP over {versions}", sizes, number)
            yield addresses_picture(name, title, drawn, theoretical_fps=limit, counted=counted)


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
            x=point.address_count,
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


def size_pictures(record: CampaignRecord) -> Iterator[Picture]:
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
            if (limit := theoretical_fps_of(found)) is not None
        }
        for number, some in enumerate(in_parts(list(lines.items())), start=1):
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
                        for f in sorted(found, key=lambda record: int(record.point.frame_size))
                        if f.values or f.state is PointState.NO_NUMBER
                    ),
                )
                for label, found in some
            ]
            yield sizes_picture(
                name_of("throughput-over-frame-sizes", suite, number),
                f"Throughput over the frame size: {suite}",
                drawn,
                sorted(limits.items()),
            )
