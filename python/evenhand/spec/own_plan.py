# SPDX-License-Identifier: Apache-2.0
"""Specification: plan files by name: `edge.toml`, and the title of one that was read, by which a campaign's
points name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import PlanError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan import AddressPlan, Counts, SideCounts, is_plan_file, with_routes

if TYPE_CHECKING:
    from evenhand.plan import plan_file
else:
    plan_file = lazy_import("evenhand.plan.plan_file")

_by_title: dict[str, AddressPlan] = {}
"""The last that was read of each title: that of the campaign that is expanded or measured."""
_SHAPING = ("fixed_source", "routes", "source_ports", "destination_ports")
"""Options that a plan file's plan takes beside the counts."""


def register_own_plan(plan: AddressPlan) -> None:
    """Let the plan be found by its title, in place of any other that had it."""
    _by_title[plan.title] = plan


def find_own_plan(name: str) -> AddressPlan | None:
    """The plan of a plan file, by its path or, if it was read before, by its title; None if the name is none
    of one.

    Raises:
        RequestError, PlanError: As `read_plan_file`.
    """
    parts = name.split("+")
    if len(parts) > 1 and any(map(is_plan_file, parts)) and not Path(name).exists():
        raise RequestError(
            f"{name!r} is a mix with a plan file",
            code="spec.plan-file-in-a-mix",
            where="plan",
            next_step="Name the plan file alone, or mix two plans that have names.",
        )
    if not is_plan_file(name):
        return _by_title.get(name)
    plan = plan_file.read_plan_file(name)
    register_own_plan(plan)
    return plan


def shape_own_plan(
    plan: AddressPlan, host_counts: Counts, network_counts: Counts, values: Mapping[str, Any]
) -> AddressPlan:
    """The plan with options of the command line or a campaign.

    Raises:
        RequestError: An option that is written in the plan file instead.
        PlanError: More hosts, or routes, than there are.
    """
    for key, value in values.items():
        if key not in _SHAPING and value not in (None, False, "pseudorandom"):
            raise RequestError(
                f"{plan.title} is of a plan file, which says this itself",
                code="spec.written-in-plan-file",
                where=f"--{key.replace('_', '-')}",
                next_step="Omit it, and write it in the plan file: mode, choose.",
            )
    hosts, networks = _pair(host_counts), _pair(network_counts)
    if networks not in (None, SideCounts(1, 1)):
        raise RequestError(
            f"{plan.title} has no numbered networks",
            code="spec.written-in-plan-file",
            where="networks",
            next_step="Omit it: the plan file says which prefixes there are.",
        )
    shaped = replace(
        plan,
        fixed_source=plan.fixed_source or bool(values.get("fixed_source")),
        source_ports=values.get("source_ports") or plan.source_ports,
        destination_ports=values.get("destination_ports") or plan.destination_ports,
    )
    if (routes := values.get("routes")) is not None:
        shaped = with_routes(shaped, SideCounts(*routes) if isinstance(routes, tuple) else routes)
    if hosts is None or hosts == shaped.hosts:
        return shaped
    if any(asked > there for asked, there in zip(hosts, shaped.hosts, strict=True)) or min(hosts) < 1:
        raise PlanError(
            f"{hosts.written} hosts: {plan.title} has {shaped.hosts.written}",
            code="spec.more-hosts-than-there-are",
            where="hosts",
            next_step="Use fewer.",
        )
    return shaped.with_side_counts(hosts)


def _pair(counts: Counts) -> SideCounts | None:
    if counts is None:
        return None
    return SideCounts(*counts) if isinstance(counts, tuple) else SideCounts(counts, counts)
