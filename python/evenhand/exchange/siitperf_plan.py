# SPDX-License-Identifier: Apache-2.0
"""Exchange: the address plan that sends what a siitperf.conf has sent, or the one that is nearest to it, with
the differences."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from evenhand.base.errors import PlanError
from evenhand.exchange.siitperf_file import PARTS, Part, SiitperfFile
from evenhand.exchange.siitperf_prefix import plan_behind, prefixes_between
from evenhand.plan import (
    BENCHMARKING_BLOCK,
    Address,
    AddressPlan,
    HostRange,
    Mode,
    PlanSide,
    SideCounts,
    SideName,
    find_topology,
    make_plan,
    plan_title,
)

Version = Literal[4, 6]
SIDE: Mapping[Part, SideName] = {"L": "left", "R": "right"}
MODES: Sequence[Mode] = ("fixed", "increment", "decrement", "pseudorandom")
"""What 0, 1, 2 and 3 mean in siitperf.conf."""
CLOSEST = " instead: the closest that a plan has"
"""Words that follow an address."""
_CANDIDATES: Mapping[int, Sequence[str]] = {
    4: ("direct_v4_net24", "direct_v4_net16", "gateway_v4"),
    6: ("direct_v6", "gateway_v6"),
}
"""Plans by IP version. Those with the hosts on the link come first, as siitperf's documents have them."""
_BESIDE_TRANSLATED = "gateway_v6"
"""The one plan of native traffic that goes with a translated one."""
WITH_NETWORKS: Mapping[int, str] = {4: "nets_v4_single_host", 6: "nets_v6_direct"}


@dataclass(frozen=True, slots=True)
class WantedSide:
    """The addresses of one side in a siitperf.conf."""

    part: Part
    real: Address
    mode: Mode
    offset: int | None
    """Octet at which the number that varies begins; None if there is one address."""
    first: int
    last: int
    network_count: int

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
    """Name as it is typed."""
    options: tuple[str, ...]
    plan: AddressPlan
    differences: Mapping[str, str] = field(default_factory=dict)
    """Differences by key of siitperf.conf."""


def wanted_side(
    file: SiitperfFile, part: Part, version: Version, which: Literal["Real", "Virt"] = "Real"
) -> WantedSide:
    """RequestError if a key is missing without which siitperf sends from whatever its memory holds."""
    real = file.value(f"IPv{version}-{part}-{which}")
    network_count = file.value(f"Num-{part}-Nets")
    mode = MODES[file.value(f"IP-{part}-var")]
    if mode == "fixed":
        return WantedSide(part, real, mode, None, 0, 0, network_count)
    first, last = file.value(f"IP-{part}-min"), file.value(f"IP-{part}-max")
    return WantedSide(part, real, mode, file.value(f"IPv{version}-{part}-offset"), first, last, network_count)


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
        return try_plan(chosen.name, sides)
    if max(side.network_count for side in sides) > 1:
        return try_plan(WITH_NETWORKS[version], sides)
    return min(
        (try_plan(candidate, sides) for candidate in _CANDIDATES[version]),
        key=lambda found: len(found.differences),
    )


def find_translated(file: SiitperfFile, *, has_background: bool, name: str | None = None) -> list[FoundPlan]:
    """The translated plan for IPv6 on the left and IPv4 on the right, then that of the background.

    Args:
        name: The user's choice of a translated plan; None: by how the file's addresses belong together.

    Raises:
        RequestError: A key is missing, or there is no such plan.
    """
    beside = _BESIDE_TRANSLATED if has_background else None
    prefixes, why_not = _prefixes(file), ""
    by_prefix = [prefix for prefix in prefixes if _is_behind(file, prefix)]
    if name is None:
        plan = "siit" if by_prefix else "siit_eam"
        name, why_not = plan_behind(plan, by_prefix or prefixes, beside=beside)
    elif make_plan(name).translation is None:
        raise PlanError(
            f"{make_plan(name).title} is not for a translator, but this traffic is IPv6 on one side only",
            code="exchange.plan-not-translated",
            where="--plan",
            next_step="Leave it out, or use siit or siit-eam.",
        )
    found = try_plan(make_plan(name).name, (wanted_side(file, "L", 6), wanted_side(file, "R", 4)))
    left, right = found.plan.sides
    assert left.peers is not None
    assert right.peers is not None
    why = CLOSEST if prefixes else " instead: plans have the IPv4 hosts behind a prefix (RFC 6052)"
    if why_not:
        why = f" instead: {why_not}"
    differences = {
        **found.differences,
        **differences_of("IPv4-L-Virt", wanted_side(file, "L", 4, "Virt"), right.peers, CLOSEST),
        **differences_of("IPv6-R-Virt", wanted_side(file, "R", 6, "Virt"), left.peers, why),
    }
    if why_not and by_prefix:
        differences |= differences_of("IPv6-L-Real", wanted_side(file, "L", 6), left.host_range, why)
    plans = [replace(found, differences=differences)]
    return plans + ([find_plan(file, 6, name=_BESIDE_TRANSLATED)] if has_background else [])


def _prefixes(file: SiitperfFile) -> list[ipaddress.IPv6Network]:
    """Those by which the IPv6 side may know the IPv4 hosts."""
    return prefixes_between(
        wanted_side(file, "R", 6, "Virt").first_address, wanted_side(file, "R", 4).first_address
    )


def _is_behind(file: SiitperfFile, prefix: ipaddress.IPv6Network) -> bool:
    """Whether the IPv6 hosts lie behind it too, so that no mapping is needed."""
    return prefix in prefixes_between(
        wanted_side(file, "L", 6).first_address, wanted_side(file, "L", 4, "Virt").first_address
    )


def try_plan(name: str, sides: tuple[WantedSide, WantedSide], *, has_fixed_source: bool = True) -> FoundPlan:
    """This plan, with the hosts and networks of these sides as far as it has so many.

    Args:
        has_fixed_source: siitperf varies destination networks alone (RFC 2544, section 12).
    """
    topology = find_topology(name)
    assert topology is not None  # its plan was made before, or is one of those above
    options: list[str] = []
    hosts = SideCounts(*(min(side.count, topology.most_hosts) for side in sides))
    if hosts != (topology.most_hosts, topology.most_hosts):
        options += ["--hosts", hosts.written]
    networks: SideCounts | None = None
    if topology.most_networks is not None:
        networks = SideCounts(*(min(side.network_count, topology.most_networks) for side in sides))
        if networks != (topology.most_networks, topology.most_networks):
            options += ["--networks", networks.written]
        if has_fixed_source:
            options.append("--fixed-source")
    varying = [side for side in sides if side.mode != "fixed"]
    modes: list[Mode] = [side.mode for side in varying]
    mode: Mode = modes[0] if modes and len(set(modes)) == 1 else "pseudorandom"
    if mode != "pseudorandom":
        options += ["--host-mode", mode]
    fixed_source = has_fixed_source and topology.most_networks is not None
    plan = make_plan(name, hosts, networks=networks, host_mode=mode, fixed_source=fixed_source)
    differences: dict[str, str] = {}
    for side in varying:
        if side.mode != mode:
            differences[f"IP-{side.part}-var"] = f"{mode}: both sides have the same order here"
    for side, made in zip(sides, plan.sides, strict=True):
        key = f"IPv{side.real.version}-{side.part}-Real"
        differences |= differences_of(key, side, made.host_range, _why(side.first_address, made))
        if topology.most_networks is None and side.network_count > 1:
            differences[f"Num-{side.part}-Nets"] = f"{plan.title} has one network"
        elif topology.most_networks is not None and side.network_count > topology.most_networks:
            differences[f"Num-{side.part}-Nets"] = f"{plan.title} has {topology.most_networks} networks"
    return FoundPlan(plan_title(name), tuple(options), plan, differences)


def differences_of(key: str, wanted: WantedSide, host_range: HostRange, why: str) -> dict[str, str]:
    """Where these hosts depart from what was wanted, by key.

    Args:
        key: The key of the address.
        why: What is said behind the addresses of the hosts.
    """
    if wanted.offset is None:
        if wanted.real == host_range.first_address:
            return {}
        return {key: f"{host_range.first_address}{why}"}
    found = {}
    if (wanted.offset, wanted.offset + 1) != host_range.number_octets:
        at = (
            f"octet {host_range.offset}"
            if not host_range.gap
            else "octets {} and {}".format(*host_range.number_octets)
        )
        found[f"IPv{wanted.real.version}-{wanted.part}-offset"] = f"the number is at {at}"
    elif _with_number(wanted.real, wanted.offset, 0) != _with_number(host_range.base, host_range.offset, 0):
        found[key] = f"{host_range.first_address} .. {host_range.last_address}{why}"
    last = host_range.first + host_range.count - 1
    for end, want, have in (("min", wanted.first, host_range.first), ("max", wanted.last, last)):
        if want != have:
            found[f"IP-{wanted.part}-{end}"] = (
                f"{have}: the hosts are {host_range.first_address} .. {host_range.last_address}"
            )
    return found


def _why(address: Address, made: PlanSide) -> str:
    block = BENCHMARKING_BLOCK[made.ip_version, made.name]
    if address not in block and made.host_range.first_address in block:
        return (
            f" instead: plans use only addresses of {block}, the benchmarking block of the {made.name} side"
        )
    return CLOSEST


def _with_number(address: Address, offset: int, number: int) -> Address:
    octets = bytearray(address.packed)
    octets[offset : offset + 2] = number.to_bytes(2, "big")
    return ipaddress.ip_address(bytes(octets))


def has_background(file: SiitperfFile) -> bool:
    """Whether both IPv6 addresses of the background traffic are given; `::` means none."""
    keys = [f"IPv6-{part}-Real" for part in PARTS]
    return all(file.has(key) and int(file.value(key)) for key in keys)
