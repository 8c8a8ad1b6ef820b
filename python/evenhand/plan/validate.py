# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: refuse plans that contradict themselves (SEED-24)."""

from __future__ import annotations

from evenhand.errors import PlanError
from evenhand.plan.model import BENCHMARKING_BLOCK, AddressPlan


def check_plan(plan: AddressPlan) -> None:
    """Raise PlanError that names the clash and the addresses in it."""
    for side in plan.sides:
        where = f"plan.{side.name}"
        hosts = f"hosts {side.hosts.first_address} .. {side.hosts.last_address}"
        block = BENCHMARKING_BLOCK[plan.ip_version, side.name]
        for version in (side.dut.version, side.gateway.version, side.hosts.base.version, side.route.version):
            if version != plan.ip_version:
                raise PlanError(f"an IPv{version} address in an IPv{plan.ip_version} plan", where=where)
        if side.hosts.first_address not in block or side.hosts.last_address not in block:
            raise PlanError(f"{hosts} lie outside {block}, the benchmarking block of this side", where=where)
        if side.hosts.first_address not in side.route or side.hosts.last_address not in side.route:
            raise PlanError(f"{hosts} lie outside the DUT's route {side.route}", where=where)
        if side.dut.network != side.gateway.network:
            raise PlanError(f"DUT {side.dut} and gateway {side.gateway} are not on one link", where=where)
        if side.dut.ip == side.gateway.ip:
            raise PlanError(f"DUT and gateway have the same address {side.dut.ip}", where=where)
        for other in plan.sides:
            if side.dut.network.overlaps(other.route):
                raise PlanError(f"link {side.dut.network} overlaps the host network {other.route} of the {other.name} side", where=where)
    if plan.left.route.overlaps(plan.right.route):
        raise PlanError(f"the host networks {plan.left.route} and {plan.right.route} overlap", where="plan")
    if plan.left.dut.network.overlaps(plan.right.dut.network):
        raise PlanError(f"the links {plan.left.dut.network} and {plan.right.dut.network} overlap", where="plan")
    if plan.destination_ports.first == 0 or plan.source_ports.first == 0:
        raise PlanError("UDP port 0 is reserved", where="plan.udp_ports", next_step="Start the range at 1 or above (R4814-03).")
