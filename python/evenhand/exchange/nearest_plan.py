# SPDX-License-Identifier: Apache-2.0
"""Exchange: the address plan that sends what another tester's file has sent, or the one that is nearest to
it, with the differences."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evenhand.base.errors import PlanError
from evenhand.plan import (
    BENCHMARKING_BLOCK,
    Address,
    AddressPlan,
    HostRange,
    Hosts,
    Mode,
    PlanSide,
    SideCounts,
    SideName,
    find_topology,
    make_plan,
    plan_title,
)

Version = Literal[4, 6]
Part = Literal["L", "R"]
PARTS: tuple[Part, Part] = ("L", "R")
SIDE: Mapping[Part, SideName] = {"L": "left", "R": "right"}
CLOSEST = " instead: the closest that a plan has"
"""Words that follow an address."""
WITH_NETWORKS: Mapping[int, str] = {4: "nets_v4_single_host", 6: "nets_v6_direct"}
# Plans by IP version. Those with the hosts on the link come first, as siitperf's documents have them.
_CANDIDATES: Mapping[int, Sequence[str]] = {
    4: ("direct_v4_net24", "direct_v4_net16", "gateway_v4"),
    6: ("direct_v6", "gateway_v6"),
}


@dataclass(frozen=True, slots=True)
class WantedSide:
    """The addresses of one side in another tester's file."""

    part: Part
    real: Address
    mode: Mode = "fixed"
    offset: int | None = None
    """Octet at which the number that varies begins; None if there is one address."""
    first: int = 0
    last: int = 0
    network_count: int = 1

    def address_of(self, number: int) -> Address:
        """The address of the host with this number."""
        return self.real if self.offset is None else _with_number(self.real, self.offset, number)

    @property
    def first_address(self) -> Address:
        return self.address_of(self.first)


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan, the options that make it, and where it departs from what was wanted."""

    name: str
    """Name as it is typed."""
    options: tuple[str, ...]
    plan: AddressPlan
    differences: Mapping[str, str] = field(default_factory=dict)
    """Differences by key of siitperf.conf."""


def nearest_plan(
    sides: tuple[WantedSide, WantedSide], version: Version, *, name: str | None = None
) -> FoundPlan:
    """The plan with the fewest differences, which have siitperf's names.

    Args:
        name: The user's choice of a plan; None: any that fits.

    Raises:
        RequestError: There is no such plan, or it is one of the other IP version.
    """
    if name is not None:
        chosen = make_plan(name)
        if chosen.ip_version != version:
            raise PlanError(
                f"{chosen.title} is an IPv{chosen.ip_version} plan, but this traffic is IPv{version}",
                code="exchange.plan-of-other-version",
                where="--plan",
            )
        return try_plan(chosen.name, sides)
    has_networks = max(side.network_count for side in sides) > 1
    candidates = (WITH_NETWORKS[version],) if has_networks else _CANDIDATES[version]
    return min(
        (try_plan(candidate, sides) for candidate in candidates), key=lambda found: len(found.differences)
    )


def try_plan(name: str, sides: tuple[WantedSide, WantedSide], *, has_fixed_source: bool = True) -> FoundPlan:
    """This plan, with the hosts and networks of these sides as far as it has so many.

    Args:
        has_fixed_source: siitperf varies destination networks alone (RFC 2544, section 12).
    """
    topology = find_topology(name)
    assert topology is not None  # its plan was made before, or is one of those above
    most_hosts, most_networks = topology.most_hosts, topology.most_networks
    hosts = SideCounts(*(min(side.last - side.first + 1, most_hosts) for side in sides))
    options = [] if hosts == (most_hosts, most_hosts) else ["--hosts", hosts.written]
    networks: SideCounts | None = None
    if most_networks is not None:
        networks = SideCounts(*(min(side.network_count, most_networks) for side in sides))
        options += [] if networks == (most_networks, most_networks) else ["--networks", networks.written]
        options += ["--fixed-source"] if has_fixed_source else []
    modes = {side.part: side.mode for side in sides if side.mode != "fixed"}
    mode: Mode = next(iter(modes.values())) if len(set(modes.values())) == 1 else "pseudorandom"
    options += [] if mode == "pseudorandom" else ["--host-mode", mode]
    fixed_source = has_fixed_source and most_networks is not None
    plan = make_plan(name, hosts, networks=networks, host_mode=mode, fixed_source=fixed_source)
    differences = {
        f"IP-{part}-var": f"{mode}: both sides have the same order here"
        for part, wanted in modes.items()
        if wanted != mode
    }
    for side, made in zip(sides, plan.sides, strict=True):
        key = f"IPv{side.real.version}-{side.part}-Real"
        differences |= differences_of(key, side, made.host_range, _why(side.first_address, made))
        if side.network_count > (most_networks or 1):
            have = "one network" if most_networks is None else f"{most_networks} networks"
            differences[f"Num-{side.part}-Nets"] = f"{plan.title} has {have}"
    return FoundPlan(plan_title(name), tuple(options), plan, differences)


def differences_of(key: str, wanted: WantedSide, made: Hosts, why: str) -> dict[str, str]:
    """Where these hosts depart from what was wanted, by key.

    Args:
        key: The key of the address.
        why: What is said behind the addresses of the hosts.
    """
    assert isinstance(made, HostRange)  # of a plan that has a name
    if wanted.offset is None:
        is_same = wanted.real == made.first_address
        return {} if is_same else {key: f"{made.first_address}{why}"}
    found, ends = {}, f"{made.first_address} .. {made.last_address}"
    if (wanted.offset, wanted.offset + 1) != made.number_octets:
        octets = "octets {} and {}".format(*made.number_octets) if made.gap else f"octet {made.offset}"
        found[f"IPv{wanted.real.version}-{wanted.part}-offset"] = f"the number is at {octets}"
    elif wanted.address_of(0) != _with_number(made.base, made.offset, 0):
        found[key] = f"{ends}{why}"
    last = made.first + made.count - 1
    for end, want, have in (("min", wanted.first, made.first), ("max", wanted.last, last)):
        if want != have:
            found[f"IP-{wanted.part}-{end}"] = f"{have}: the hosts are {ends}"
    return found


def span(host_range: Hosts) -> str:
    """The first and the last address."""
    ends = dict.fromkeys((str(host_range.first_address), str(host_range.last_address)))
    return " .. ".join(ends)


def _why(address: Address, made: PlanSide) -> str:
    block = BENCHMARKING_BLOCK[made.ip_version, made.name]
    if address in block or made.host_range.first_address not in block:
        return CLOSEST
    return f" instead: plans use only addresses of {block}, the benchmarking block of the {made.name} side"


def _with_number(address: Address, offset: int, number: int) -> Address:
    octets = bytearray(address.packed)
    octets[offset : offset + 2] = number.to_bytes(2, "big")
    return ipaddress.ip_address(bytes(octets))
