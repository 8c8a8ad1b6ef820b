# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: a side with a user's own addresses. Hosts that one 16-bit number can count are a
`HostRange`, as in the draft's plans, and frames to them are the same; all others are a `HostList`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evenhand.base.errors import PlanError, RequestError
from evenhand.plan.generated_prefixes import Lengths, make_prefixes
from evenhand.plan.host_list import Choose, Hosts, hosts_of_prefixes, hosts_of_ranges
from evenhand.plan.prefix_file import Covering, read_prefixes
from evenhand.plan.prefixes import WIDTH, PrefixSet, pack_prefixes, unpacked
from evenhand.plan.ranges import Address, HostRange, Interface, IpVersion, Mode, Network
from evenhand.plan.sides import BENCHMARKING_BLOCK, MOST_ROUTE_OBJECTS, PlanSide, SideName

NO_HOSTS: Mapping[IpVersion, tuple[Network, ...]] = {
    4: tuple(
        map(
            ipaddress.ip_network,
            ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"),
        )
    ),
    6: tuple(map(ipaddress.ip_network, ("::/127", "fe80::/10", "ff00::/8"))),
}
"""This machine, loopback, link-local, multicast, broadcast."""
MOST_LINK_HOSTS = 1 << 24
"""Hosts on the link, each of which the tester answers for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHosts:
    """What a plan file says of a side, by its keys."""

    dut: Interface
    gateway: Address | None
    texts: tuple[str, ...]
    """`hosts`; empty if there are none."""
    step: int
    prefixes: str | None
    covering: Covering
    routes: int | None
    lengths: Lengths | None
    first: Address | None
    spacing: int
    choose: Choose
    mode: Mode


def make_own_side(name: SideName, given: OwnHosts, *, links: Sequence[Network], folder: Path) -> PlanSide:
    """The side. Its errors are of `left`, or a key of it: `left.hosts`.

    Args:
        links: Those of both sides, which generated prefixes do not overlap.
        folder: From where a file of prefixes is named.

    Raises:
        RequestError: A value that cannot be read.
        PlanError: Values that do not go together.
    """
    _check_keys(name, given)
    version: IpVersion = 4 if given.dut.version == 4 else 6
    if given.gateway is not None and given.gateway not in given.dut.network:
        raise PlanError(
            f"the gateway {given.gateway} is not on the DUT's link {given.dut.network}",
            code="plan.gateway-not-on-link",
            where=f"{name}.gateway",
            next_step="Write the tester's own address on that link, or omit it if the hosts are there.",
        )
    _check_is_station(f"{name}.dut", given.dut.ip, given.dut.network)
    gateway = None
    if given.gateway is not None:
        _check_is_station(f"{name}.gateway", given.gateway, given.dut.network)
        gateway = ipaddress.ip_interface((given.gateway, given.dut.network.prefixlen))
    prefixes: PrefixSet | None = None
    routes: tuple[Network, ...] = ()
    if given.prefixes is not None:
        prefixes = read_prefixes(folder / given.prefixes, covering=given.covering)
    elif given.routes is not None:
        prefixes = _generated(name, version, given, links)
    elif len(given.texts) > 1:
        prefixes = _listed(name, given.texts)
    if prefixes is not None:
        host_range: Hosts = hosts_of_prefixes(prefixes, choose=given.choose, mode=given.mode)
        _check_version(name, version, prefixes.version)
        for network in NO_HOSTS[version]:
            if (overlapping := prefixes.overlapping(network)) is not None:
                raise _no_host(f"{name}.{'hosts' if given.texts else 'prefixes'}", str(overlapping), network)
        if gateway is None:
            raise PlanError(
                "several prefixes are behind a gateway, and none is given",
                code="plan.gateway-missing",
                where=f"{name}.gateway",
                next_step="Write the tester's own address on the DUT's link.",
            )
        _check_links(name, prefixes, links)
        if prefixes.count <= MOST_ROUTE_OBJECTS:
            routes = tuple(prefixes.as_networks())
    else:
        host_range, routes = _one_range(name, version, given)
        for network in NO_HOSTS[version]:
            if _has_hosts_in(host_range, network):
                raise _no_host(f"{name}.hosts", given.texts[0], network)
        if gateway is None:
            routes = ()
        elif not isinstance(host_range, HostRange) and "/" in given.texts[0]:
            prefixes = _listed(name, given.texts)
    return PlanSide(
        name=name, dut=(given.dut,), gateway=gateway, host_range=host_range, routes=routes, prefixes=prefixes
    )


def _check_is_station(where: str, address: Address, link: Network) -> None:
    """PlanError for an address of the link that names no station: its first one, and in IPv4 its last one."""
    if link.num_addresses <= 2:
        return
    is_last = address.version == 4 and address == link.broadcast_address
    if is_last or address == link.network_address:
        raise PlanError(
            f"{address} is the {'broadcast' if is_last else 'network'} address of {link}, not a station's",
            code="plan.not-a-station",
            where=where,
            next_step=f"Use another address of it, such as {link[1]}.",
        )


def _has_hosts_in(host_range: Hosts, network: Network) -> bool:
    first, last = host_range.first_address, host_range.last_address
    return int(first) <= int(network.broadcast_address) and int(network.network_address) <= int(last)


def _no_host(where: str, what: str, network: Network) -> PlanError:
    return PlanError(
        f"{what} has addresses of {network}, which no router forwards to a host",
        code="plan.not-hosts",
        where=where,
        next_step="Use addresses that hosts can have.",
    )


def _check_keys(name: SideName, given: OwnHosts) -> None:
    """PlanError for no hosts, or hosts in two ways, or keys without an effect."""
    ways = {"hosts": given.texts or None, "prefixes": given.prefixes, "routes": given.routes}
    stated = [key for key, value in ways.items() if value is not None]
    if len(stated) != 1:
        raise PlanError(
            f"{' and '.join(stated)} each say which hosts there are" if stated else "no hosts are given",
            code="plan.no-hosts" if not stated else "plan.hosts-stated-twice",
            where=name,
            next_step="Write one of: hosts (addresses, a range or prefixes), prefixes (a file) or routes (how"
            " many are generated).",
        )
    idle = {
        "covering": given.covering != "refuse" and given.prefixes is None,
        "lengths": given.lengths is not None and given.routes is None,
        "first": given.first is not None and given.routes is None,
        "spacing": given.spacing != 1 and given.routes is None,
        "step": given.step != 1 and (len(given.texts) != 1 or "/" in given.texts[0]),
        "choose": given.choose != "entry" and len(given.texts) == 1,
    }
    needed = {"covering": "prefixes", "step": "hosts of one range", "choose": "several prefixes"}
    for key, is_idle in idle.items():
        if is_idle:
            raise PlanError(
                f"{key} has an effect only with {needed.get(key, 'routes')}",
                code="plan.key-without-effect",
                where=f"{name}.{key}",
                next_step="Omit it.",
            )


def _check_version(name: SideName, of_dut: IpVersion, of_hosts: int) -> None:
    if of_dut != of_hosts:
        raise PlanError(
            f"the hosts have IPv{of_hosts}, but the DUT's address IPv{of_dut}",
            code="plan.mixed-versions",
            where=name,
            next_step="Write a plan file for each IP version.",
        )


def _check_links(name: SideName, prefixes: PrefixSet, links: Sequence[Network]) -> None:
    for link in links:
        found = prefixes.overlapping(link)
        if found is not None:
            raise PlanError(
                f"the prefix {found} overlaps the link {link}, where the DUT and the gateway are",
                code="plan.networks-overlap",
                where=name,
                next_step="Omit it, or use other addresses for the link.",
            )


def _generated(name: SideName, version: IpVersion, given: OwnHosts, links: Sequence[Network]) -> PrefixSet:
    block = BENCHMARKING_BLOCK[version, name]
    if given.first is not None:
        _check_version(name, version, given.first.version)
    lengths: Lengths = (24 if version == 4 else 64) if given.lengths is None else given.lengths
    try:
        return make_prefixes(
            given.routes or 0,
            lengths,
            first=given.first or block.network_address,
            within=None if given.first is not None else block,
            spacing=given.spacing,
            avoiding=links,
        )
    except PlanError as error:
        error.where = f"{name}.{error.where}"
        if given.first is None and error.code == "plan.no-room-for-prefixes":
            error.next_step = (
                f"Use fewer or longer prefixes, or let them begin elsewhere, such as first ="
                f' "{"16.0.0.0" if version == 4 else "2400::"}"; the testbed file must then confirm that'
                " these addresses are isolated too."
            )
        raise


def networks_of(texts: Sequence[str], *, where: str) -> list[Network]:
    """Prefixes, ascending; an address is one of its own.

    Args:
        where: The key, for errors.

    Raises:
        RequestError: A text is none of both.
        PlanError: They are of two IP versions, or overlap.
    """
    found: list[Network] = []
    for text in texts:
        found.append(_network(where, text))
        if found[-1].version != found[0].version:
            raise PlanError(
                f"{found[0]} and {found[-1]} are of different IP versions",
                code="plan.mixed-versions",
                where=where,
                next_step="Write a plan file for each IP version.",
            )
    found.sort(key=lambda each: (int(each.network_address), each.prefixlen))
    for one, other in pairwise(found):
        if int(one.broadcast_address) >= int(other.network_address):
            raise PlanError(
                f"{one} overlaps {other}",
                code="plan.prefixes-overlap",
                where=where,
                next_step="Remove one of them.",
            )
    return found


def _listed(name: SideName, texts: Sequence[str]) -> PrefixSet:
    """The set of a list of prefixes."""
    found = networks_of(texts, where=f"{name}.hosts")
    version: IpVersion = 4 if found[0].version == 4 else 6
    return pack_prefixes(
        "the plan file's list" if len(texts) > 1 else texts[0],
        version,
        unpacked(b"".join(each.network_address.packed for each in found), version),
        bytes(each.prefixlen for each in found),
    )


def _network(where: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        pass
    try:
        meant = f"Write {ipaddress.ip_network(text.strip(), strict=False)}."
        what = f"{text!r} is an address in a prefix, not a prefix"
    except ValueError:
        meant = "Write a prefix such as 198.18.0.0/24, an address, or a range such as 198.18.0.1-198.18.0.9."
        what = f"{text!r} is not a prefix"
    raise RequestError(what, code="plan.not-a-prefix", where=where, next_step=meant)


def _one_range(name: SideName, version: IpVersion, given: OwnHosts) -> tuple[Hosts, tuple[Network, ...]]:
    """Hosts that are one address, one range or one prefix, and what the DUT routes to reach them."""
    (text,) = given.texts
    is_direct = given.gateway is None
    if "/" not in text:
        first, last = _ends(name, text)
        _check_version(name, version, first.version)
        ranges = [(int(first), int(last))]
        routes: tuple[Network, ...] = (_cover(first, last),)
    else:
        network = _network(f"{name}.hosts", text)
        _check_version(name, version, network.version)
        routes = (network,)
        ranges = [_hosts_of(network)]
        if is_direct:
            link = given.dut.network
            reserved = {int(given.dut.ip), int(link.network_address)}
            reserved |= {int(link.broadcast_address)} if version == 4 else set()
            ranges = list(_without(ranges, reserved))
    for_link = is_direct and sum(end - begin + 1 for begin, end in ranges) > MOST_LINK_HOSTS
    if not ranges or for_link:
        raise PlanError(
            f"{text} has {'more than 16,777,216' if ranges else 'no'} hosts",
            code="plan.count-out-of-range",
            where=f"{name}.hosts",
            next_step="Use a smaller part of the link, or a gateway."
            if ranges
            else "Use a larger prefix: the DUT's own address is none of the hosts.",
        )
    if is_direct and not all(
        ipaddress.ip_address(end.to_bytes(WIDTH[version] // 8, "big")) in given.dut.network
        for ends in ranges
        for end in ends
    ):
        raise PlanError(
            f"{text} is not on the DUT's link {given.dut.network}",
            code="plan.hosts-outside-network",
            where=f"{name}.hosts",
            next_step="Use hosts on the link, or write the gateway that they are behind.",
        )
    counted = _as_counted(version, *ranges[0], given.step, given.mode) if len(ranges) == 1 else None
    if counted is not None:
        return counted, routes
    if given.step != 1:
        raise PlanError(
            f"{text} with a step of {given.step:,}",
            code="plan.wrong-octets",
            where=f"{name}.step",
            next_step="Use 1, or a power of 256 with which up to 65,536 hosts differ in two octets.",
        )
    return hosts_of_ranges(ranges, version, choose="host" if is_direct else "entry", mode=given.mode), routes


def _ends(name: SideName, text: str) -> tuple[Address, Address]:
    try:
        first, last = (ipaddress.ip_address(part.strip()) for part in (text.split("-", 1) * 2)[:2])
        if first.version == last.version and int(first) <= int(last):
            return first, last
    except ValueError:
        pass
    raise RequestError(
        f"{text!r} is neither an address nor a range of addresses",
        code="plan.not-an-address",
        where=f"{name}.hosts",
        next_step="Write 198.18.0.1, 198.18.0.1-198.18.0.254, or a prefix such as 198.18.0.0/16.",
    )


def _hosts_of(network: Network) -> tuple[int, int]:
    inner = 1 if network.version == 4 and network.prefixlen < 31 else 0
    return int(network.network_address) + inner, int(network.broadcast_address) - inner


def _without(ranges: Iterable[tuple[int, int]], taken: Iterable[int]) -> Iterable[tuple[int, int]]:
    for begin, end in ranges:
        for address in sorted(each for each in taken if begin <= each <= end):
            if begin < address:
                yield begin, address - 1
            begin = address + 1
        if begin <= end:
            yield begin, end


def _as_counted(version: IpVersion, first: int, last: int, step: int, mode: Mode) -> HostRange | None:
    """The range as a 16-bit number in the address, in the form that the draft's plans have; None if it is
    none."""
    steps, rest = divmod(last - first, step)
    low_octet = (step.bit_length() - 1) // 8
    offset = WIDTH[version] // 8 - 2 - low_octet
    number = first >> 8 * low_octet & 0xFFFF
    if (
        rest
        or step != 1 << 8 * low_octet
        or offset < 0
        or (version == 4 and offset % 2)
        or number + steps > 0xFFFF
    ):
        return None
    base = first - (number << 8 * low_octet)
    return HostRange(
        base=ipaddress.ip_address(base.to_bytes(WIDTH[version] // 8, "big")),
        offset=offset,
        first=number,
        count=steps + 1,
        mode=mode,
    )


def _cover(first: Address, last: Address) -> Network:
    """The smallest network that has all of them."""
    length = WIDTH[4 if first.version == 4 else 6] - (int(first) ^ int(last)).bit_length()
    return ipaddress.ip_network((first, length), strict=False)
