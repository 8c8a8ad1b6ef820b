# SPDX-License-Identifier: Apache-2.0
"""OTG: addresses that no named plan has, as a plan of their own: those of the flows' fields, behind the links
that devices, the DUT's plan or, where nothing is known of the DUT, a gateway plan has."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.refusals import OtgError
from evenhand.otg.stations import Station
from evenhand.plan import (
    SIDES,
    Address,
    AddressPlan,
    Interface,
    IpVersion,
    Mode,
    Network,
    SideName,
    make_own_plan,
    make_plan,
    plan_named,
)

NAME = "otg"
"""The name of a plan that is made of a configuration, where the DUT's has no name."""
MOST_LISTED = 1 << 16
"""Addresses of a field that do not lie side by side."""
USUAL: Mapping[int, str] = {4: "gateway-v4", 6: "gateway-v6"}
"""Where nothing says what the DUT is set up for."""
OTHER_LINKS: Mapping[int, tuple[tuple[str, str], ...]] = {
    4: (("192.168.254.0/24", "192.168.255.0/24"), ("172.31.254.0/24", "172.31.255.0/24")),
    6: (("fd00:0:0:fffe::/64", "fd00:0:0:ffff::/64"), ("fec0:0:0:fffe::/64", "fec0:0:0:ffff::/64")),
}
"""Links in place of theirs, if hosts of the flows lie there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValues:
    """The addresses of a field, ascending, and their order in the frames."""

    mode: Mode
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowAddresses:
    """What of a flow decides on the plan."""

    at: str
    version: IpVersion
    values: Mapping[SideName, FieldValues]
    """By the side where these hosts are."""
    stations: Mapping[SideName, tuple[Station, ...]]
    """None of a side: the flow is between ports."""


def read_values(at: str, field: Mapping[str, Any], version: IpVersion) -> FieldValues:
    """The addresses of a field.

    Raises:
        OtgError: They cannot be sent.
    """
    choice = choice_of(field, "value")
    if choice == "value":
        number = _number(at, field.get("value"), version)
        return FieldValues(mode="fixed", numbers=(number,))
    if choice == "values":
        return _listed(at, [_number(at, value, version) for value in field.get("values", [])])
    inner = field.get(choice, {})
    if choice == "random":
        first, last = (_number(at, inner.get(end), version) for end in ("min", "max"))
        if first > last:
            raise OtgError([f"{at}: random from {inner.get('min')} to {inner.get('max')}"])
        return FieldValues(mode="pseudorandom", numbers=range(first, last + 1))
    if choice not in ("increment", "decrement"):
        raise OtgError([f"{at}: {choice} is not known here"])
    start = _number(at, inner.get("start"), version)
    step, count = _number(at, inner.get("step"), version), int(inner.get("count", 1))
    if count == 1 or step == 0:
        return FieldValues(mode="fixed", numbers=(start,))
    first = start if choice == "increment" else start - (count - 1) * step
    last = first + (count - 1) * step
    if count < 1 or first < 0 or last >= 1 << (32 if version == 4 else 128):
        raise OtgError([f"{at}: {choice} of {count:,} values leaves the field"])
    return FieldValues(mode=choice, numbers=range(first, last + 1, step))  # type: ignore[arg-type]


def _listed(at: str, numbers: Sequence[int]) -> FieldValues:
    """Values in ascending or descending order."""
    if len(numbers) == 1:
        return FieldValues(mode="fixed", numbers=numbers)
    rises, falls = (
        all(b > a for a, b in pairwise(each)) for each in (numbers, [-number for number in numbers])
    )
    if not numbers or not (rises or falls):
        raise OtgError(
            [f"{at}: these {len(numbers):,} values neither rise nor fall throughout, as addresses here do"]
        )
    return FieldValues(mode="increment" if rises else "decrement", numbers=tuple(sorted(numbers)))


def _number(at: str, value: object, version: IpVersion) -> int:
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    try:
        return int(kind(str(value)))
    except ValueError:
        raise OtgError([f"{at}: {str(value)[:60]!r} is no IPv{version} address"]) from None


def own_plan_of(flows: Sequence[FlowAddresses], known: str | None) -> AddressPlan:
    """A plan with the addresses of these flows, one or one in each direction.

    Args:
        known: The plan that the DUT is set up for: its links and networks are those of the DUT then. None: it
            is not known.

    Raises:
        OtgError: There is none.
    """
    first = flows[0]
    for other in flows[1:]:
        if other.version != first.version:
            raise OtgError([f"{other.at}: the other direction has another IP version"])
        for side in SIDES:
            mine, its = first.values[side], other.values[side]
            if (mine.mode, *mine.numbers[:2], len(mine.numbers)) != (
                its.mode,
                *its.numbers[:2],
                len(its.numbers),
            ) or mine.numbers[-1] != its.numbers[-1]:
                raise OtgError(
                    [
                        f"{other.at}: the hosts on the {side} are not those of {first.at}, with source and"
                        " destination exchanged"
                    ]
                )
    base = plan_named(known) if known is not None else make_plan(USUAL[first.version])
    if base.ip_version != first.version:
        raise OtgError([f"{first.at}: IPv{first.version}, but the DUT is set up for {base.title}"])
    links = None if known is not None else _free_links(base, flows)
    document: dict[str, Any] = {"name": NAME}
    for made in base.sides:
        stations = first.stations.get(made.name, ()) or next(
            (flow.stations[made.name] for flow in flows if flow.stations.get(made.name)), ()
        )
        values = first.values[made.name]
        dut, gateway = (made.dut[0], made.gateway) if links is None else links[made.name]
        if stations:
            if known is not None and stations[0].gateway != dut:
                raise OtgError(
                    [
                        f"devices: the gateway on the {made.name} is {stations[0].gateway}, but the DUT has"
                        f" {dut} there"
                    ]
                )
            dut, gateway = stations[0].gateway, ipaddress.ip_interface(stations[0].address)
        ends = [_address(number, first.version) for number in (values.numbers[0], values.numbers[-1])]
        is_direct = all(end in dut.network for end in ends)
        if known is not None and not stations and is_direct != made.is_direct:
            raise OtgError(
                [f"{first.at}: {ends[0]} is {'' if is_direct else 'not '}on the DUT's link {dut.network}"]
            )
        if known is not None and not any(
            all(end in network for end in ends) for network in (*made.host_networks, dut.network)
        ):
            raise OtgError(
                [f"{first.at}: no network that the DUT has on the {made.name} has {ends[0]} .. {ends[1]}"]
            )
        document[made.name] = {
            "dut": str(dut),
            **({} if is_direct or gateway is None else {"gateway": str(gateway.ip)}),
            **_hosts(first.at, values, first.version),
        }
    try:
        plan = make_own_plan(document, where="flows")
    except EvenhandError as error:
        raise OtgError([f"{error}. {error.next_step}" if error.next_step else str(error)]) from error
    return plan if known is None else replace(plan, name=base.name)


def _free_links(
    base: AddressPlan, flows: Sequence[FlowAddresses]
) -> Mapping[SideName, tuple[Interface, Interface]]:
    """The DUT's address and the tester's on both links, where nothing says what they are: no host of the
    flows lies on these links."""
    taken = [(values.numbers[0], values.numbers[-1]) for flow in flows for values in flow.values.values()]
    usual = [tuple(side.dut[0].network for side in base.sides)]
    for links in (*usual, *(tuple(map(ipaddress.ip_network, pair)) for pair in OTHER_LINKS[base.ip_version])):
        ends = [(int(link[0]), int(link[-1])) for link in links]
        if not any(low <= end and start <= high for low, high in taken for start, end in ends):
            break
    return {side: (_interface(link, 1), _interface(link, 2)) for side, link in zip(SIDES, links, strict=True)}


def _interface(link: Network, number: int) -> Interface:
    return ipaddress.ip_interface(f"{link[number]}/{link.prefixlen}")


def _hosts(at: str, values: FieldValues, version: IpVersion) -> dict[str, Any]:
    """Keys of a plan file."""
    numbers = values.numbers
    first, last = (_address(number, version) for number in (numbers[0], numbers[-1]))
    if len(numbers) == 1:
        return {"hosts": str(first), "mode": values.mode}
    step = numbers[1] - numbers[0]
    if isinstance(numbers, range) or numbers[-1] - numbers[0] == step * (len(numbers) - 1):
        span = {"hosts": f"{first}-{last}", "mode": values.mode}
        if step == 1:
            return span
        octet = (step.bit_length() - 1) // 8
        has_number = step == 1 << 8 * octet and (version == 6 or octet == 2)
        if has_number and (numbers[0] >> 8 * octet & 0xFFFF) + len(numbers) <= 1 << 16:
            return {**span, "step": step}
    if len(numbers) > MOST_LISTED:
        raise OtgError(
            [f"{at}: {len(numbers):,} addresses that are not side by side, at most {MOST_LISTED:,}"]
        )
    return {"hosts": [str(_address(number, version)) for number in numbers], "mode": values.mode}


def _address(number: int, version: IpVersion) -> Address:
    return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)
