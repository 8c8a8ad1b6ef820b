# SPDX-License-Identifier: Apache-2.0
"""Exchange: the address plan that sends what a siitperf.conf has sent, or the one that is nearest to it, with
the differences."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evenhand.base.errors import PlanError
from evenhand.exchange.siitperf_file import PARTS, Part, SiitperfFile
from evenhand.plan import (
    BENCHMARKING_BLOCK,
    TOPOLOGIES,
    Address,
    AddressPlan,
    Mode,
    PlanSide,
    SideName,
    make_plan,
    plan_title,
)

Version = Literal[4, 6]
SIDE: Mapping[Part, SideName] = {"L": "left", "R": "right"}
MODES: Sequence[Mode] = ("fixed", "increment", "decrement", "pseudorandom")
"""What 0, 1, 2 and 3 stand for in siitperf.conf."""
_CANDIDATES: Mapping[int, Sequence[str]] = {
    4: ("direct_v4_net24", "direct_v4_net16", "gateway_v4"),
    6: ("direct_v6", "gateway_v6"),
}
"""With the hosts on the link first: so siitperf's documents have them."""
_WITH_NETWORKS: Mapping[int, str] = {4: "nets_v4_single_host", 6: "nets_v6_direct"}


@dataclass(frozen=True, slots=True)
class WantedSide:
    """The addresses of one side in a siitperf.conf."""

    part: Part
    real: Address
    mode: Mode
    offset: int | None
    """Octet at which the number stands that varies; None if there is one address."""
    first: int
    last: int
    networks: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def first_address(self) -> Address:
        return self.real if self.offset is None else _with_number(self.real, self.offset, self.first)


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan, the options that make it, and where it departs from what was wanted."""

    name: str
    """As it is typed."""
    options: tuple[str, ...]
    plan: AddressPlan
    differences: Mapping[str, str] = field(default_factory=dict)
    """By key of siitperf.conf."""


def wanted_side(file: SiitperfFile, part: Part, version: Version) -> WantedSide:
    """RequestError if a key is missing without which siitperf sends from whatever its memory holds."""
    real = file.value(f"IPv{version}-{part}-Real")
    networks = file.value(f"Num-{part}-Nets")
    mode = MODES[file.value(f"IP-{part}-var")]
    if mode == "fixed":
        return WantedSide(part, real, mode, None, 0, 0, networks)
    first, last = file.value(f"IP-{part}-min"), file.value(f"IP-{part}-max")
    return WantedSide(part, real, mode, file.value(f"IPv{version}-{part}-offset"), first, last, networks)


def find_plan(file: SiitperfFile, version: Version, *, name: str | None = None) -> FoundPlan:
    """The plan with the fewest differences.

    Args:
        name: The user's choice of a plan; None: any that fits.

    Raises:
        RequestError: A key is missing, or there is no such plan.
    """
    return nearest_plan(
        (wanted_side(file, "L", version), wanted_side(file, "R", version)), version, name=name
    )


def nearest_plan(
    sides: tuple[WantedSide, WantedSide], version: Version, *, name: str | None = None
) -> FoundPlan:
    """The same of sides that were read elsewhere; differences have siitperf's names. RequestError if there is
    no such plan."""
    if name is not None:
        chosen = make_plan(name)
        if chosen.ip_version != version:
            raise PlanError(
                f"{chosen.title} is an IPv{chosen.ip_version} plan, but this traffic is IPv{version}",
                code="exchange.plan-of-other-version",
                where="--plan",
            )
        return _try(version, chosen.name, sides)
    if max(side.networks for side in sides) > 1:
        return _try(version, _WITH_NETWORKS[version], sides)
    return min(
        (_try(version, candidate, sides) for candidate in _CANDIDATES[version]),
        key=lambda found: len(found.differences),
    )


def _try(version: Version, name: str, sides: tuple[WantedSide, WantedSide]) -> FoundPlan:
    topology = TOPOLOGIES[name]
    options: list[str] = []
    left, right = (min(side.count, topology.hosts) for side in sides)
    if (left, right) != (topology.hosts, topology.hosts):
        options += ["--hosts", str(left) if left == right else f"{left},{right}"]
    networks: tuple[int, int] | None = None
    if topology.networks is not None:
        networks = (sides[0].networks, sides[1].networks)
        if networks != (topology.networks, topology.networks):
            options += [
                "--networks",
                str(networks[0]) if networks[0] == networks[1] else f"{networks[0]},{networks[1]}",
            ]
        # siitperf varies destination networks alone (RFC 2544, section 12).
        options.append("--fixed-source")
    varying = [side for side in sides if side.mode != "fixed"]
    modes: list[Mode] = [side.mode for side in varying]
    mode: Mode = modes[0] if modes and len(set(modes)) == 1 else "pseudorandom"
    if mode != "pseudorandom":
        options += ["--host-mode", mode]
    plan = make_plan(
        name, (left, right), networks=networks, host_mode=mode, fixed_source=topology.networks is not None
    )
    differences: dict[str, str] = {}
    for side in varying:
        if side.mode != mode:
            differences[f"IP-{side.part}-var"] = f"{mode}: both sides have the same order here"
    for side, made in zip(sides, plan.sides, strict=True):
        differences |= _differences(version, side, made)
        if topology.networks is None and side.networks > 1:
            differences[f"Num-{side.part}-Nets"] = f"{plan.title} has one network"
    return FoundPlan(plan_title(name), tuple(options), plan, differences)


def _differences(version: Version, wanted: WantedSide, made: PlanSide) -> dict[str, str]:
    key = f"IPv{version}-{wanted.part}-Real"
    hosts = made.hosts
    if wanted.offset is None:
        if wanted.real == hosts.first_address:
            return {}
        return {key: f"{hosts.first_address}{_why(wanted.real, version, made)}"}
    found = {}
    if wanted.offset != hosts.offset:
        found[f"IPv{version}-{wanted.part}-offset"] = f"the number is at octet {hosts.offset}"
    elif _with_number(wanted.real, wanted.offset, 0) != _with_number(hosts.base, hosts.offset, 0):
        found[key] = (
            f"{hosts.first_address} .. {hosts.last_address}{_why(wanted.first_address, version, made)}"
        )
    last = hosts.first + hosts.count - 1
    for end, want, have in (("min", wanted.first, hosts.first), ("max", wanted.last, last)):
        if want != have:
            found[f"IP-{wanted.part}-{end}"] = (
                f"{have}: the hosts are {hosts.first_address} .. {hosts.last_address}"
            )
    return found


def _why(address: Address, version: Version, made: PlanSide) -> str:
    block = BENCHMARKING_BLOCK[version, made.name]
    if address not in block:
        return (
            f" instead: plans use only addresses of {block}, the benchmarking block of the {made.name} side"
        )
    return " instead: the closest that a plan has"


def _with_number(address: Address, offset: int, number: int) -> Address:
    octets = bytearray(address.packed)
    octets[offset : offset + 2] = number.to_bytes(2, "big")
    return ipaddress.ip_address(bytes(octets))


def has_background(file: SiitperfFile) -> bool:
    """Whether both IPv6 addresses of the background traffic are given; `::` stands for none."""
    keys = [f"IPv6-{part}-Real" for part in PARTS]
    return all(file.has(key) and int(file.value(key)) for key in keys)
