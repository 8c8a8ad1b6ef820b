# SPDX-License-Identifier: Apache-2.0
"""Specification: how much a campaign may ask for, checked before anything is made of it."""

from __future__ import annotations

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.spec.file import CampaignFile

MOST_POINTS = 10_000
"""Of a campaign. One that takes a minute takes a week for them."""
MOST_SUITES = 500
MOST_DOUBLED = 17
"""Numbers of hosts that `doubling` gives, at most."""
MOST_ENTRIES = 5_000
"""Of a list, such as `hosts`: each is a point."""


def check_sizes(file: CampaignFile) -> None:
    """RequestError for more suites, or longer lists, than there may be."""
    if len(file.suite) > MOST_SUITES:
        raise _too_many(f"{format_count(len(file.suite))} suites", MOST_SUITES, "suites", file.where)
    for suite in file.suite:
        for key, entries in (("hosts", suite.host_counts), ("frame-sizes", suite.frame_sizes or ())):
            if len(entries) > MOST_ENTRIES:
                what = f"{format_count(len(entries))} entries"
                raise _too_many(what, MOST_ENTRIES, "entries", file.where_of(suite.name, key))
    points = sum(
        sum(MOST_DOUBLED if each == "doubling" else 1 for each in suite.host_counts)
        * max(1, len(suite.frame_sizes or ()))
        * len(suite.procedure)
        * max(1, len(suite.hash_types or ()))
        for suite in file.suite
    )
    check_points(points, file.where)


def check_points(point_count: int, where: str) -> None:
    """RequestError for more points than a campaign may have."""
    if point_count > MOST_POINTS:
        raise _too_many(f"{format_count(point_count)} points", MOST_POINTS, "points", where)


def _too_many(what: str, most: int, things: str, where: str) -> RequestError:
    return RequestError(
        f"{what} are more than a campaign may have",
        code="spec.too-many",
        where=where,
        next_step=f"Ask for at most {format_count(most)} {things}, or make several campaigns of it.",
    )
