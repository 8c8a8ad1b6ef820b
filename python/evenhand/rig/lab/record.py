# SPDX-License-Identifier: Apache-2.0
"""What a lab's record has of the lab, and of the address plan that it was made for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from evenhand.base.errors import HostError
from evenhand.plan import AddressPlan, SideCounts, find_topology
from evenhand.plan.nat import Nat

RECORD_VERSION = 1
_AnyLab = TypeVar("_AnyLab")


def plan_name(plan: AddressPlan) -> str:
    """Name of the plan as a lab has it; for a mix, both names."""
    return "+".join(each.name for each in plan.plans)


def is_for(name: str, plan: AddressPlan) -> bool:
    """Whether a lab that has this name of a plan is for this one; of a mix in either order."""
    return sorted(name.split("+")) == sorted(plan_name(plan).split("+"))


def addresses_of(plan: AddressPlan) -> dict[str, Any]:
    """What a lab knows of the plan that it is made for."""
    return {
        "plan": plan_name(plan),
        "ip_version": plan.versions[0] if len(plan.versions) == 1 else None,
        "hosts": _most(each.hosts for each in plan.plans),
        "networks": _most(each.networks for each in plan.plans),
    }


def _most(counts: Iterable[SideCounts]) -> SideCounts:
    """The most of each side: the plans of a mix may have room for unlike numbers."""
    left, right = zip(*counts, strict=True)
    return SideCounts(max(left), max(right))


def networks_to_ask_for(name: str, networks: SideCounts | None) -> SideCounts | None:
    """The networks of a lab with this name of a plan, as they are asked for; None where its plans have one
    that has no number, so that nothing can be asked."""
    topologies = [find_topology(each) for each in name.split("+")]
    return (
        networks if any(each is not None and each.most_networks is not None for each in topologies) else None
    )


def nat_of(name: str) -> Nat | None:
    """The NAT that the DUT of a lab with this name of a plan was configured for; None: it keeps no state."""
    topology = find_topology(name)  # none of a mix, in which no plan has state
    return None if topology is None else topology.nat


def translates(name: str) -> bool:
    """Whether it translates without state; of a mix one of the plans."""
    return any(
        topology.translation is not None
        for each in name.split("+")
        if (topology := find_topology(each)) is not None
    )


def with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists only."""
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
    counts = {name: SideCounts._make(found[name]) for name in ("hosts", "networks") if found.get(name)}
    return found | counts


def lab_of(kind: Callable[..., _AnyLab], name: str, document: dict[str, Any]) -> _AnyLab:
    """The lab of that name, from what its record has of it. HostError if another version of Evenhand wrote
    that."""
    try:
        return kind(**with_tuples(document))
    except TypeError as error:
        raise HostError(
            f"the lab {name} was set up by another version of Evenhand",
            code="rig.lab-of-another-version",
            where=f"lab {name}",
            next_step=f"Remove it, and set it up again: evenhand lab down {name}",
        ) from error
