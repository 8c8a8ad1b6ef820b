# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what a plan file's plan sends, from what a run file keeps of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.plan.flow_tables import FlowTable, flows_of_tables
from evenhand.plan.model import AddressPlan
from evenhand.plan.ranges import HostRange, NetworkRange, UdpRange
from evenhand.plan.sides import PlanSide, SideName

_TOLD = ("not_reserved",)
"""What follows from parts of a plan that are not kept."""


def kept_plan(document: Mapping[str, Any]) -> AddressPlan | None:
    """The plan whose `AddressPlan.to_contract` this is, without routes and prefix lengths of its links: for
    its streams, its flows and the neighbours that the DUT needs. None if it is the document of no plan file's
    plan, or hosts are those of a list, of which counts and digest are kept. Anyone may have made it.
    """
    try:
        sides: dict[SideName, PlanSide] = {
            "left": _side("left", document["left"]),
            "right": _side("right", document["right"]),
        }
        ports = document["udp_ports"]
        plan = AddressPlan(
            name=str(document["name"]),
            figure="plan file",
            left=sides["left"],
            right=sides["right"],
            source_ports=UdpRange(**ports["source"]),
            destination_ports=UdpRange(**ports["destination"]),
            fixed_source=document.get("fixed_source", False) is True,
            flows=flows_of_tables(
                [FlowTable.model_validate(_flow_table(flow)) for flow in document.get("flows", ())],
                {name: side.host_range for name, side in sides.items()},
            ),
            is_own=True,
        )
        made = plan.to_contract()
    except (EvenhandError, LookupError, TypeError, ValueError, AttributeError):
        return None
    return plan if _without_told(made) == _without_told(document) else None


def _without_told(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _TOLD}


def _side(name: SideName, document: Mapping[str, Any]) -> PlanSide:
    gateway = document.get("gateway")
    hosts = document["hosts"]
    number, network = hosts["host"], hosts.get("network")
    return PlanSide(
        name=name,
        dut=(ipaddress.ip_interface(document["dut_address"]),),
        gateway=None if gateway is None else ipaddress.ip_interface(gateway),
        host_range=HostRange(
            base=ipaddress.ip_address(hosts["base"]),
            **number,
            network_range=None if network is None else NetworkRange(**network),
        ),
        routes=(),
    )


def _flow_table(document: Mapping[str, Any]) -> dict[str, Any]:
    """As a plan file has it."""
    table: dict[str, Any] = {}
    lock_step = []
    for key, value in document.items():
        name = key.removesuffix("_host").replace("_", "-")
        if isinstance(value, Mapping) and value.get("lock_step"):
            lock_step.append(name)
            value = {part: each for part, each in value.items() if part != "lock_step"}
        if isinstance(value, Mapping) and "prefixes" in value:
            value = value["prefixes"]
        table[name] = value
    return {**table, "lock-step": lock_step}
