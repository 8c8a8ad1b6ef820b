# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: a plan as a document, and what its user should know before anything is sent."""

from __future__ import annotations

from typing import Any

from evenhand.plan.model import AddressPlan

MANY_NEIGHBORS = 2048
"""More hosts on a link than this press on the DUT's neighbour table (SEED-06: "a few thousand")."""


def describe_plan(plan: AddressPlan) -> dict[str, Any]:
    """The contract's document, and what only people and DUTs need (SEED-49)."""
    return {
        **plan.to_contract(),
        "figure": plan.figure,
        "is_direct": plan.is_direct,
        "fixed_source": plan.fixed_source,
        "pairs": plan.pairs,
        "smallest_frame_size": plan.smallest_frame_size,
        "addresses": {
            side.name: {
                "count": side.hosts.addresses,
                "networks": side.hosts.network_count,
                "first": str(side.hosts.first_address),
                "last": str(side.hosts.last_address),
            }
            for side in plan.sides
        },
        "dut": {
            side.name: {
                "interfaces": [str(interface) for interface in side.dut],
                "routes": [str(route) for route in side.routes],
                "next_hop": None if side.gateway is None else str(side.gateway.ip),
                "neighbors": side.dut_neighbors,
            }
            for side in plan.sides
        },
    }


def warn_of_neighbors(plan: AddressPlan) -> str | None:
    """What will distort the results of a direct plan with many hosts (SEED-06, SEED-80); None if nothing will."""
    most = max(side.dut_neighbors for side in plan.sides)
    if most <= MANY_NEIGHBORS:
        return None
    table = "ARP" if plan.ip_version == 4 else "neighbour discovery"
    return (
        f"{plan.name} puts {most:,} hosts on a link: the DUT resolves each of them, which loads its {table} table, lowers what it forwards "
        f"and looks like an attack on the link. The gateway form needs 1 entry per side."
    )
