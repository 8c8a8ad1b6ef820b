# SPDX-License-Identifier: Apache-2.0
"""Station 10: the pieces of which a page is made, and how values are written in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from evenhand.base.rates import split_pair
from evenhand.base.table import Cell, Row, measured
from evenhand.base.units import (
    LEFT_OUT,
    format_count,
    format_duration,
    format_line_rate,
    format_rate,
    format_ratio,
    write_alone,
)
from evenhand.plan import describe_size, find_topology, parse_imix
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import PointRecord, bounds_of
from evenhand.run.campaign_status import PointStatus
from evenhand.spec.request import Point
from evenhand.trial import TimeLeftOut

NONE = "-"
DASH = "\N{EN DASH}"


def show_value(value: float | None, unit: str) -> str:
    """A figure in its unit, as `FIGURES` has it: `14.88 Mfps`, `12.5 us`, `0.5 %`."""
    match unit:
        case _ if value is None:
            return NONE
        case "fps":
            return format_rate(value)
        case "ratio":
            return format_ratio(value)
        case "us":
            return write_alone(value, unit)  # a delay: in ms, as RFC 8219 asks, wherever people read it
        case "s":
            return format_duration(value)
        case _:
            return f"{format_count(round(value, 1))} {unit}"


def show_time(text: str) -> str:
    """`2026-03-02 08:00:00 UTC`; what is not a time in UTC stays as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def show_ns(value: float | None) -> str:
    """A delay; None means that of a lost frame, which never comes (R8219-16)."""
    return "infinite" if value is None else write_alone(value / 1e3, "us")


def show_statistics(found: PointRecord | PointStatus, show: Callable[[float], str]) -> tuple[str, str, str]:
    """Median, minimum and maximum, with `>= ` before lower bounds."""
    statistics = found.statistics
    if statistics is None:
        return NONE, NONE, NONE
    bounds = bounds_of(found.values, found.lower_bounds)
    values = (statistics.median, statistics.minimum, statistics.maximum)
    median, low, high = (f"{bound}{show(value)}" for bound, value in zip(bounds, values, strict=True))
    return median, low, high


def measured_cells(found: PointRecord | PointStatus, kind: str) -> tuple[Cell, Cell, Cell]:
    """Median, minimum and maximum, as cells of a table."""
    statistics = found.statistics
    if statistics is None:
        return Cell(NONE), Cell(NONE), Cell(NONE)
    bounds = bounds_of(found.values, found.lower_bounds)
    values = (statistics.median, statistics.minimum, statistics.maximum)
    median, low, high = (
        measured(value, kind, bound=bound) for bound, value in zip(bounds, values, strict=True)
    )
    return median, low, high


def show_median(record: PointRecord) -> str:
    """`5 Mfps`; `>= 5 Mfps` where that is a lower bound."""
    median, _, _ = show_statistics(record, partial(show_value, unit=unit_of(record.point)))
    return median


def show_range(record: PointRecord, figures: Row) -> str:
    """`4.9 Mfps - 5.1 Mfps`; one value alone has none.

    Args:
        figures: Its median, minimum and maximum.
    """
    if len(record.values) < 2:
        return ""
    low, high = figures[1].text, figures[2].text
    return low if low == high else f"{low} {DASH} {high}"


def time_share_cell(found: TimeLeftOut | None) -> Cell:
    """Share of the sending time that was not judged, in percent; `-` where all trials were judged as a
    whole."""
    return measured(None if found is None else found.share, LEFT_OUT, none=NONE)


def unit_of(point: Point) -> str:
    return PROCEDURES[point.procedure].figure.unit


def median_of(record: PointRecord) -> float | None:
    statistics = record.statistics
    return None if statistics is None else statistics.median


def addresses_of(point: Point) -> int:
    """Addresses on a side, or routes in a series over them; the larger number, if the sides differ."""
    if point.routes is not None:
        return max(point.routes)
    return max(point.addresses)


def show_addresses(point: Point) -> str:
    """`16 x 16 addresses`, or `1 x 16 routes`."""
    if point.routes is not None:
        return f"{point.routes} routes"
    if point.is_one_pair:
        return "1 address pair"
    return f"{point.addresses} addresses"


def show_size(point: Point) -> str:
    """`64 octets`, or a sequence of sizes."""
    size = point.frame_size
    return describe_size(size if isinstance(size, int) else parse_imix(size, where="frame_size"))


def show_protocol(point: Point) -> str:
    """`UDP over IPv6`."""
    return f"UDP over {show_version(point)}"


def show_version(point: Point) -> str:
    """`IPv4`, `IPv6` or both, from the plan's name; `IPv6/IPv4` where the DUT translates the one into the
    other."""
    return version_of_plan(point.plan)


def version_of_plan(plan: str) -> str:
    """As `show_version`."""
    found: list[str] = []
    for part in plan.replace("-", "_").split("+"):
        topology = find_topology(part)
        if topology is None:  # of another version of Evenhand
            found += [f"IPv{version}" for version in ("4", "6") if f"v{version}" in part]
        else:
            versions = dict.fromkeys(side.ip_version for side in (topology.left, topology.right))
            found.append("/".join(f"IPv{version}" for version in versions))
    return " and ".join(sorted(dict.fromkeys(found), key=lambda text: (text.count("/") == 0, text))) or "IP"


READABLE = {"notsupported": "not supported", "notimplemented": "not implemented", "forceoff": "off, forced"}
"""What the kernel writes into smt/control, in words; run files keep the kernel's."""


def direction_words(point: Point) -> str:
    """`both directions, loads forward:reverse 4:1`."""
    if len(point.directions) != 2:
        return f"{point.directions[0]} only"
    return f"both directions{load_words(point)}"


def load_words(point: Point) -> str:
    """How the loads of the directions differ, as it was asked for; empty if they do not."""
    ratio, hold = point.goal.get("ratio"), point.goal.get("hold")
    if isinstance(ratio, str):
        return f", loads forward:reverse {ratio}"
    if isinstance(hold, str):
        return f", {hold.replace('=', ' held at ')}"
    load = PROCEDURES[point.procedure].load_option.name
    written = point.goal.get(load)
    is_pair = isinstance(written, str) and split_pair(written) is not None
    return f", {load} {written} (forward/reverse)" if is_pair else ""


def established_connections(found: PointRecord) -> str:
    """The connections to which the frames belong; empty where none are established before."""
    for repetition in found.repetitions:
        for search in repetition.searches:
            match search.setup.get("established"):
                case {"count": int(count), "rate_fps": int() | float() as rate_fps}:
                    opened_at = f"opened at {format_count(rate_fps)} per second"
                    return f"{format_count(count)}, {opened_at} before each trial"
    return ""


def in_words(text: str) -> str:
    """A raw word of the kernel as people write it; all other texts as they are."""
    return READABLE.get(text, text)


def flatten(document: Mapping[str, Any], *, prefix: str = "") -> list[tuple[str, str | None]]:
    """Names and values for a list of facts; what lies deeper has the names above it before its own."""
    found: list[tuple[str, str | None]] = []
    for key, value in document.items():
        name = f"{prefix}{str(key).replace('_', ' ')}"
        if isinstance(value, Mapping):
            found += flatten(value, prefix=f"{name}: ")
        else:
            is_rate = name.endswith("line rate") and isinstance(value, int | float)
            found.append((name, format_line_rate(value) if is_rate else show_fact(value)))
    return found


def show_fact(value: Any) -> str | None:
    """None stays None: the fact is not known."""
    match value:
        case None:
            return None
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return " ".join(f"{key} {show_fact(item)}" for key, item in value.items())
        case list() | tuple() if any(isinstance(item, Mapping) for item in value):
            return "; ".join(str(show_fact(item)) for item in value)
        case list() | tuple():
            return ", ".join(str(show_fact(item)) for item in value) or "none"
        case _:
            return in_words(str(value))
