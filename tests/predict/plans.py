# SPDX-License-Identifier: Apache-2.0
"""Short port ranges, and the same prediction without any cleverness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from evenhand.plan import AddressPlan, Direction, HostRange, UdpRange
from evenhand.plan.host_list import HostList
from evenhand.predict import DeviceModel, element_of

FEW_SOURCE_PORTS = UdpRange(first=1024, last=1030)
FEW_DESTINATION_PORTS = UdpRange(first=1, last=5)


def brute_force(plan: AddressPlan, model: DeviceModel, direction: Direction) -> tuple[int, ...]:
    """Every combination hashed by itself, bit by bit."""
    source, destination = plan.sides if direction == "forward" else plan.sides[::-1]
    ports: list[tuple[int, int]] = [(0, 0)]
    if model.hash_type == "type2":
        of_source, of_destination = (
            range(udp.first, udp.last + 1) for udp in (plan.source_ports, plan.destination_ports)
        )
        ports = list(product(of_source, of_destination))
    combinations = product(
        _addresses(source.host_range), _addresses(source.peers or destination.host_range), ports
    )
    counts = Counter(element_of(model, *combination) for combination in combinations)
    return tuple(counts[element] for element in range(model.elements))


def _addresses(hosts: HostRange | HostList) -> Iterator[str]:
    return (
        str(hosts.address(host, network))
        for network in range(hosts.network_count)
        for host in range(hosts.count)
    )
