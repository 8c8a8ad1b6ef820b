# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: a plan as a document."""

from __future__ import annotations

from typing import Any

from evenhand.plan.model import AddressPlan, plan_title
from evenhand.plan.traffic import Traffic


def describe_plan(plan: AddressPlan) -> dict[str, Any]:
    """The contract's document, and what only people and DUTs need (SEED-49); the plan's name as people type
    it."""
    return {
        **plan.to_document(),
        "name": plan_title(plan.name),
        "figure": plan.figure,
        "is_derived": plan.is_derived,
        "is_direct": plan.is_direct,
        "fixed_source": plan.fixed_source,
        "fixed_source_network": plan.fixed_source_network,
        "common_network": plan.common_network,
        **({} if plan.translation is None else {"translation": plan.translation.to_document()}),
        "pairs": plan.pairs,
        "smallest_frame_size": plan.smallest_frame_size,
        "traffic": Traffic(plan=plan).to_document(),
        "addresses": {
            side.name: {
                "count": side.host_range.address_count,
                "networks": side.host_range.network_count,
                "first": str(side.host_range.first_address),
                "last": str(side.host_range.last_address),
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
