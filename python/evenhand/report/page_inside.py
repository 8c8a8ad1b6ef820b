# SPDX-License-Identifier: Apache-2.0
"""Station 10: the part of a campaign's page that looks inside the DUT: which pictures, which tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.inside import SeenPoint, seen_at
from evenhand.base.table import Table, make_table
from evenhand.base.units import format_count
from evenhand.report.figures import Picture, drawn_or_said, short_count
from evenhand.report.figures_inside import UNEVEN, HeatColumn, heat_picture, queues_picture
from evenhand.report.page_words import NONE, addresses_of, show_addresses, show_fact, show_size
from evenhand.run.campaign_record import CampaignRecord, PointRecord

FEWEST_POINTS = 3
"""Fewest points of a suite that has pictures of its own; with fewer, the table shows everything, unless
there is no larger suite."""
MOST_INTERFACES = 16
"""Most interfaces in one table."""
FACTS_OF_INTERFACES = {
    "driver": "driver",
    "driver_version": "version",
    "firmware": "firmware",
    "pci": "PCI id",
    "numa_node": "NUMA node",
    "mtu": "MTU",
    "speed_mbps": "speed, Mbps",
    "threaded_napi": "threaded NAPI",
    "rings": "rings",
    "channels": "channels",
    "coalescing": "coalescing",
    "rps": "RPS",
    "qdisc": "queueing discipline",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A point that a witness saw."""

    found: PointRecord
    seen: SeenPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class InsidePictures:
    """Pictures of the section; both empty if there was no witness."""

    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]


def inside_of(record: CampaignRecord) -> InsidePictures:
    """What witnesses saw in all of a campaign."""
    suites = [(suite, seen) for suite in record.suites if (seen := list(_seen(record, suite)))]
    if not suites:
        return InsidePictures(pictures=(), tables=())
    most = max(len(seen) for _, seen in suites)
    drawn = [(suite, seen) for suite, seen in suites if len(seen) >= min(most, FEWEST_POINTS)]
    pictures = [
        picture
        for number, (suite, seen) in enumerate(drawn, start=1)
        for picture in drawn_or_said(f"Inside the DUT: {suite}", _pictures(suite, seen, number))
    ]
    rows = [_row(suite, one) for suite, seen in suites for one in seen]
    titles = [
        "suite",
        "addresses",
        "frames",
        "#busiest CPU",
        "#busy, %",
        "#in softirqs, %",
        "#dropped by the DUT",
        "#lost",
        "#unexplained",
        "#busiest queue to mean",
        "#predicted",
    ]
    table = make_table(
        titles,
        rows,
        fold=("suite", "frames"),
        caption="In the trials at each point's result; no verdict depends on these figures. Dropped:"
        " packets, as counted by the DUT; lost: frames, as counted by the tester; unexplained:"
        " the difference.",
    )
    return InsidePictures(pictures=tuple(pictures), tables=(table, *_interface_tables(record)))


def _seen(record: CampaignRecord, suite: str) -> Iterator[Seen]:
    for found in record.points:
        if found.point.suite == suite and (seen := seen_at(found)) is not None:
            yield Seen(found, seen)


def _pictures(suite: str, seen: Sequence[Seen], number: int) -> Iterator[Picture]:
    labels, over = _labels(seen)
    columns = [HeatColumn(label=label, cpus=one.seen.cpus) for label, one in zip(labels, seen, strict=True)]
    yield heat_picture(f"dut-cpus-{number}", f"CPUs of the DUT: {suite}", columns, over=over)
    one = _least_even(seen)
    if one is not None and (
        number == 1 or max(queues.busiest_to_mean for queues in one.seen.queues) > UNEVEN
    ):
        title = f"Queues of the DUT: {suite}, {show_addresses(one.found.point)}"
        yield queues_picture(f"dut-queues-{number}", title, one.seen.queues)


def _least_even(seen: Sequence[Seen]) -> Seen | None:
    """The least even of the points with several pairs, if there are any: one pair is in one queue, and needs
    no picture."""
    known = [one for one in seen if one.seen.queues]
    several = [one for one in known if not one.found.point.is_one_pair] or known
    return max(
        several, key=lambda one: max(queues.busiest_to_mean for queues in one.seen.queues), default=None
    )


def queue_facts(found: PointRecord) -> list[tuple[str, str | None]]:
    """Facts of one point: what each queue got, and what was predicted."""
    seen = seen_at(found)
    facts: list[tuple[str, str | None]] = []
    for queues in () if seen is None else seen.queues:
        of = f"queues of {queues.interface} ({queues.direction})"
        facts.append((f"{of}, counted", _percent(queues.shares)))
        facts += [] if queues.predicted is None else [(f"{of}, predicted", _percent(queues.predicted))]
    return facts


def _percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{queue}: {100 * share:.3g} %" for queue, share in enumerate(shares))


def _labels(seen: Sequence[Seen]) -> tuple[list[str], str]:
    """What the points of the suite differ by."""
    points = [one.found.point for one in seen]
    if len({point.routes for point in points}) == len(points) and all(point.routes for point in points):
        return [short_count(addresses_of(point)) for point in points], "routes on a side"
    if len({(point.hosts, point.networks) for point in points}) == len(points) and all(
        point.addresses.left == point.addresses.right for point in points
    ):
        return [short_count(addresses_of(point)) for point in points], "addresses on each side"
    if len({point.frame_size for point in points}) == len(points):
        return [show_size(point).removesuffix(" octets") for point in points], "frame size, octets"
    return [str(place) for place in range(1, len(points) + 1)], "points in the order of the table below"


def _row(suite: str, one: Seen) -> list[str]:
    point, seen = one.found.point, one.seen
    busiest = seen.busiest
    assert busiest is not None
    uneven = max(seen.queues, key=lambda queues: queues.busiest_to_mean, default=None)
    predicted = None if uneven is None else uneven.predicted_to_mean
    return [
        suite,
        show_addresses(point).removesuffix(" addresses"),
        show_size(point),
        str(busiest.cpu),
        f"{100 * busiest.busy:.0f}",
        f"{100 * busiest.softirq:.0f}",
        format_count(seen.dropped_packets),
        format_count(seen.lost_frames),
        format_count(seen.lost_frames - seen.dropped_packets),
        NONE if uneven is None else f"{uneven.busiest_to_mean:.3f}",
        NONE if predicted is None else f"{predicted:.3f}",
    ]


def _interface_tables(record: CampaignRecord) -> Iterator[Table]:
    """R2544-02: how the interfaces were set, as it was read there."""
    for name, testbed in record.testbeds.items():
        facts = (testbed.get("inside_dut") or {}) if isinstance(testbed, Mapping) else {}
        interfaces = _mapping(_mapping(_mapping(facts).get("facts")).get("interfaces"))
        sides = [_mapping(of) for place, of in interfaces.items() if isinstance(place, str)][:MOST_INTERFACES]
        if not any(sides):
            continue
        rows = [
            [title, *(_shown(side.get(key)) for side in sides)] for key, title in FACTS_OF_INTERFACES.items()
        ]
        rows.append(["offloads that are on", *(_on(side.get("offloads")) for side in sides)])
        rows.append(["interrupts and their CPUs", *(_interrupts(side.get("interrupts")) for side in sides)])
        shown = [row for row in rows if any(cell != NONE for cell in row[1:])]
        titles = ["interface", *(_shown(side.get("name")) for side in sides)]
        of = f" of {name}" if len(record.testbeds) > 1 else ""
        yield make_table(titles, shown, caption=f"Read on the DUT{of} before its first point.")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{str(key).replace('_', ' ')} {show_fact(item)}" for key, item in value.items())
            or NONE
        )
    return show_fact(value) or NONE


def _on(value: Any) -> str:
    return ", ".join(name for name, state in _mapping(value).items() if state == "on") or NONE


def _interrupts(value: Any) -> str:
    entries = [_mapping(entry) for entry in value] if isinstance(value, list) else []
    return (
        "; ".join(f"{entry.get('name') or entry.get('irq')}: {entry.get('cpus')}" for entry in entries)
        or NONE
    )
