# SPDX-License-Identifier: Apache-2.0
"""What a lab's record has of the lab, and of the address plan that it was made for."""

from __future__ import annotations

from typing import Any

from evenhand.plan import AddressPlan, SideCounts

RECORD_VERSION = 1


def plan_name(plan: AddressPlan) -> str:
    """As a lab has it: of a mix both names."""
    return "+".join(each.name for each in plan.plans)


def is_for(name: str, plan: AddressPlan) -> bool:
    """Whether a lab that has this name of a plan is for this one; of a mix in either order."""
    return sorted(name.split("+")) == sorted(plan_name(plan).split("+"))


def addresses_of(plan: AddressPlan) -> dict[str, Any]:
    """What a lab knows of the plan that it is made for."""
    return {
        "plan": plan_name(plan),
        "ip_version": plan.versions[0] if len(plan.versions) == 1 else None,
        "hosts": plan.hosts,
        "networks": plan.networks,
    }


def with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists only."""
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
    counts = {name: SideCounts._make(found[name]) for name in ("hosts", "networks") if found.get(name)}
    return found | counts
