# SPDX-License-Identifier: Apache-2.0
"""Analysis: address plans made anew from what a record states of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.plan import SIDES, AddressPlan, find_topology
from evenhand.run.campaign_record import PointRecord
from evenhand.spec.plan import build_plan, plan_of_document
from evenhand.spec.request import Point


def sent_plan(record: PointRecord) -> Mapping[str, Any] | None:
    """The plan as the engine got it; None if nothing was measured yet."""
    return next(
        (search.plan for repetition in record.repetitions for search in repetition.searches if search.plan),
        None,
    )


def plan_of(point: Point) -> AddressPlan | None:
    """The plan of the point; None if it is a mix, or its options are not such as a plan takes."""
    if not is_known_plan(point.plan):
        return None
    try:
        return build_plan(point.plan, point.hosts, point.networks, point.plan_options)
    except RequestError:
        return None  # options that do not exist, or do not go together


def known_plan(record: PointRecord) -> AddressPlan | None:
    """The same; None as well if another one was sent: the run of a verb does not state all options of its
    plan. For a plan file, the plan as it was sent; None if its hosts are those of a list."""
    plan, sent = plan_of(record.point), sent_plan(record)
    if plan is None and sent is not None and is_own_plan(record.point.plan):
        from evenhand.plan.kept_plan import (
            kept_plan,  # validates with pydantic, which `show` needs for nothing else
        )

        return kept_plan(sent)
    return None if plan is None or (sent is not None and sent != plan.to_contract()) else plan


def second_of_mix(versions: Mapping[str, Any]) -> AddressPlan | None:
    """The second plan of a mix, as the set-up of a search has it. None if what is made is not the one that
    was sent."""
    with suppress(RequestError, LookupError, TypeError, ValueError, AttributeError):
        other = versions["other_plan"]
        made = plan_of_document(other)
        if made.to_document() | {"name": made.title} == other and len(versions["share"]) == len(SIDES):
            return made
    return None


def is_own_plan(name: str) -> bool:
    """Whether it is the name of no plan and no mix, so that a plan file has it."""
    return all(find_topology(each) is None for each in name.split("+"))


def is_known_plan(name: str) -> bool:
    """False for a mix of two."""
    return find_topology(name) is not None


def ip_version(name: str) -> int | None:
    """4 or 6; None for a mix."""
    topology = find_topology(name)
    return None if topology is None else topology.ip_version


def is_direct(name: str) -> bool:
    """Whether hosts are on the link; a mix is as the first of its two."""
    topology = find_topology(name.split("+")[0])
    return topology is not None and topology.left.gateway is None
