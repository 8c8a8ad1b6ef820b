# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the draft's topologies by name."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Literal

from evenhand.errors import PlanError
from evenhand.plan.model import AddressPlan, HostRange, Mode, PlanSide, SideName, UdpRange
from evenhand.plan.validate import check_plan

RFC4814_SOURCE_PORTS = UdpRange(first=1024, last=65535)
"""R4814-02."""
RFC4814_DESTINATION_PORTS = UdpRange(first=1, last=49151)
"""R4814-03."""


def gateway_v4(
    hosts: int | tuple[int, int] | None = None,
    *,
    host_mode: Mode = "pseudorandom",
    source_ports: UdpRange = RFC4814_SOURCE_PORTS,
    destination_ports: UdpRange = RFC4814_DESTINATION_PORTS,
) -> AddressPlan:
    """Figure 3: IPv4 hosts behind gateways (SEED-13, SEED-14).

    Args:
        hosts: Hosts per side, or (left, right); 1 to 65534, default the maximum. One is a single address pair.
    """
    left, right = _counts("gateway_v4", hosts, maximum=65534)

    def side(name: SideName, link: str, block: str, count: int) -> PlanSide:
        return PlanSide(
            name=name,
            dut=ipaddress.ip_interface(f"{link}.1/24"),
            gateway=ipaddress.ip_interface(f"{link}.2/24"),
            hosts=HostRange(base=ipaddress.ip_address(f"{block}.0.0"), offset=2, first=1, count=count, mode=host_mode),
            route=ipaddress.ip_network(f"{block}.0.0/16"),
        )

    return _plan(
        "gateway_v4", "Figure 3", 4, side("left", "10.0.0", "198.18", left), side("right", "10.0.1", "198.19", right),
        source_ports, destination_ports,
    )  # fmt: skip


def gateway_v6(
    hosts: int | tuple[int, int] | None = None,
    *,
    host_mode: Mode = "pseudorandom",
    source_ports: UdpRange = RFC4814_SOURCE_PORTS,
    destination_ports: UdpRange = RFC4814_DESTINATION_PORTS,
) -> AddressPlan:
    """Figure 5: IPv6 hosts behind gateways (SEED-15, SEED-16, SEED-17).

    Args:
        hosts: Hosts per side, or (left, right); 1 to 65536, default the maximum. One is a single address pair.
    """
    left, right = _counts("gateway_v6", hosts, maximum=65536)

    def side(name: SideName, link: str, block: str, count: int) -> PlanSide:
        return PlanSide(
            name=name,
            dut=ipaddress.ip_interface(f"{link}::1/64"),
            gateway=ipaddress.ip_interface(f"{link}::2/64"),
            hosts=HostRange(base=ipaddress.ip_address(f"{block}::2"), offset=12, first=0, count=count, mode=host_mode),
            route=ipaddress.ip_network(f"{block}::/64"),
        )

    return _plan(
        "gateway_v6", "Figure 5", 6,
        side("left", "2001:2:0:1000", "2001:2", left), side("right", "2001:2:0:9000", "2001:2:0:8000", right),
        source_ports, destination_ports,
    )  # fmt: skip


TOPOLOGIES: dict[str, Callable[..., AddressPlan]] = {"gateway_v4": gateway_v4, "gateway_v6": gateway_v6}
"""Every plan that can be named; the recommended form comes first (SEED-05)."""


def make_plan(name: str, hosts: int | tuple[int, int] | None = None, **options: object) -> AddressPlan:
    """The plan of this name; `-` and `_` are the same. PlanError names the plans there are."""
    make = TOPOLOGIES.get(name.replace("-", "_"))
    if make is None:
        raise PlanError(f"there is no plan {name!r}", next_step=f"Use one of: {', '.join(TOPOLOGIES)}.")
    return make(hosts, **options)


def _counts(name: str, hosts: int | tuple[int, int] | None, *, maximum: int) -> tuple[int, int]:
    left, right = hosts if isinstance(hosts, tuple) else (hosts, hosts)
    left, right = (maximum if n is None else n for n in (left, right))
    for n in (left, right):
        if not 1 <= n <= maximum:
            raise PlanError(f"{n} hosts per side: {name} has 1 to {maximum}", where="hosts")
    return left, right


def _plan(
    name: str, figure: str, ip_version: Literal[4, 6], left: PlanSide, right: PlanSide, source: UdpRange, destination: UdpRange
) -> AddressPlan:
    plan = AddressPlan(
        name=name, figure=figure, ip_version=ip_version, left=left, right=right,
        source_ports=source, destination_ports=destination,
    )  # fmt: skip
    check_plan(plan)
    return plan
