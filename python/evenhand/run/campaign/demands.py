# SPDX-License-Identifier: Apache-2.0
"""Campaign: what its points ask of a testbed, in the words of the rig."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenhand.plan import SideCounts, largest_octets
from evenhand.rig import USUAL_MAX_FRAME_SIZE, Demand, DutWish, LabWish
from evenhand.spec.frames import read_size
from evenhand.spec.plan import build_plan
from evenhand.spec.point import Point
from evenhand.spec.request import plan_of

WITHOUT_HASH = 'Write hash-types = "not-stated" in that suite, or in [every-suite] for all suites'
"""What takes a key out of a preset."""


def demands_of(points: Iterable[Point]) -> Iterator[Demand]:
    """What these points ask, each that asks for something else once."""
    suites: dict[str, dict[tuple[object, ...], Point]] = {}
    for point in points:
        asked = (point.plan, point.hosts, point.networks, point.frame_size, point.directions, point.hash_type)
        suites.setdefault(point.suite, {})[asked] = point
    for suite, of_suite in suites.items():
        lab_wish = lab_wish_of(of_suite.values())
        for point in of_suite.values():
            yield Demand(
                suite=f"suite {suite!r}",
                plan=plan_of(point),
                frame_size=read_size(point.frame_size),
                directions=point.directions,
                wish=dut_wish_of(point),
                lab_wish=lab_wish,
                without_hash=WITHOUT_HASH,
            )


def dut_wish_of(point: Point) -> DutWish:
    """What the DUT is set up for while the point is measured."""
    return DutWish(plan=plan_of(point, is_whole=True), hash_type=point.hash_type, label=f"point {point.key}")


def lab_wish_of(
    points: Iterable[Point], of_all: Iterable[Point] = (), *, rules: int | None = None
) -> LabWish:
    """What a lab must be set up for to measure all these points, which have one plan.

    Args:
        of_all: All points of the campaign: the links take the frames of each, so that all are measured on the
            same links.
        rules: See `LabWish.rules`.
    """
    known = list(points)
    first = known[0]
    # Any share: the addresses are the same.
    plan = build_plan(
        first.plan, None, None, {key: value for key, value in first.plan_options.items() if key != "mix"}
    )
    largest = max(largest_octets(read_size(point.frame_size)) for point in (*known, *of_all))
    return LabWish(
        plan=plan.title,
        hosts=SideCounts.largest(point.hosts for point in known),
        networks=SideCounts.largest(point.networks for point in known)
        if plan.left.host_range.network_range is not None
        else None,
        largest_frame_size=max(largest, USUAL_MAX_FRAME_SIZE),
        rules=rules,
    )
