# SPDX-License-Identifier: Apache-2.0
"""Plans and devices that the tests of predictions share, and the same prediction without any cleverness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from evenhand.plan import AddressPlan, Direction, HostRange, UdpRange, gateway_v4, gateway_v6
from evenhand.predict import DeviceModel, element_of

FEW_SOURCE_PORTS = UdpRange(first=1024, last=1030)
FEW_DESTINATION_PORTS = UdpRange(first=1, last=5)


def direct_v4_net16(hosts: int = 65533) -> AddressPlan:
    """The hosts of Figure 2: 198.18.0.2 and 198.19.0.2 on. Only the hosts matter to a hash, not the links."""
    plan = gateway_v4(hosts)
    left, right = (replace(side, hosts=replace(side.hosts, first=2)) for side in plan.sides)
    return replace(plan, left=left, right=right)


def direct_v6(hosts: int = 65536) -> AddressPlan:
    """The hosts of Figure 4, which are those of Figure 5."""
    return gateway_v6(hosts)


def brute_force(plan: AddressPlan, model: DeviceModel, direction: Direction) -> tuple[int, ...]:
    """Every combination hashed by itself, bit by bit."""
    source, destination = plan.sides if direction == "forward" else plan.sides[::-1]
    ports: list[tuple[int, int]] = [(0, 0)]
    if model.hash_type == "type2":
        ports = list(product(*(range(udp.first, udp.last + 1) for udp in (plan.source_ports, plan.destination_ports))))
    combinations = product(_addresses(source.hosts), _addresses(destination.hosts), ports)
    counts = Counter(element_of(model, *combination) for combination in combinations)
    return tuple(counts[element] for element in range(model.elements))


def _addresses(hosts: HostRange) -> Iterator[str]:
    return (str(hosts.address(index)) for index in range(hosts.count))
