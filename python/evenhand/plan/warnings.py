# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what is allowed and yet spoils a result."""

from __future__ import annotations

from evenhand.plan.model import AddressPlan

MOST_UNSUSPICIOUS_DIRECT_HOSTS = 2048
"""Hosts on the link of one side up to which a neighbour table is not a concern (SEED-06)."""


def plan_warnings(plan: AddressPlan) -> list[str]:
    """Sentences for people, before anything is sent or set up; none for gateway forms (SEED-06, SEED-80)."""
    return [warning for part in plan.plans for warning in _warnings(part)]


def _warnings(plan: AddressPlan) -> list[str]:
    crowded = [
        side for side in plan.sides if side.is_direct and side.dut_neighbors > MOST_UNSUSPICIOUS_DIRECT_HOSTS
    ]
    if not crowded:
        return []
    counts = " and ".join(f"{side.dut_neighbors:,} on the {side.name} side" for side in crowded)
    protocol = " and ".join(
        dict.fromkeys("ARP" if side.ip_version == 4 else "Neighbour Discovery" for side in crowded)
    )
    return [
        f"The DUT must resolve every host by {protocol}: {counts}. With more than"
        f" {MOST_UNSUSPICIOUS_DIRECT_HOSTS:,} on a side its neighbour table may distort or"
        " end the test, and to other devices this looks like a denial-of-service attack,"
        " so use isolated test environments only (RFC 6815). Gateway plans need only two"
        " entries, however many hosts there are."
    ]
