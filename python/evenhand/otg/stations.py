# SPDX-License-Identifier: Apache-2.0
"""OTG: devices of a configuration: an address of the tester on a link, and the DUT's there, its gateway. The
tester answers ARP and ND for them as it does for all its hosts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.exchange.otg_flow import LARGEST_VLAN
from evenhand.otg.refusals import OtgError, other_keys
from evenhand.plan import Address, Interface, IpVersion, SideName

TAGGED = "x8100"
"""The type of every tag, as OTG writes it."""
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_DEFAULT_PREFIX: Mapping[int, int] = {4: 24, 6: 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One address of a device."""

    names: tuple[str, ...]
    """What a flow may call it: the names of the device, its Ethernet and its address."""
    ethernet: str
    side: SideName
    address: Address
    gateway: Interface
    """The DUT's address there, with the link's prefix length."""
    mac: str | None
    gateway_mac: str | None
    """None: it is asked for."""
    vlans: tuple[int, ...]

    @property
    def version(self) -> IpVersion:
        return 4 if self.address.version == 4 else 6


def read_stations(
    devices: Sequence[Mapping[str, Any]], sides: Mapping[str, SideName], errors: list[str]
) -> tuple[Station, ...]:
    """The stations of all devices.

    Args:
        sides: Those of the ports, by their names.
        errors: What of them cannot be had is added here.
    """
    found: list[Station] = []
    for number, device in enumerate(devices):
        at = f"devices[{number}]"
        errors += other_keys(device, "devices[]", at)
        for place, ethernet in enumerate(device.get("ethernets", [])):
            found += _stations_of(device, ethernet, f"{at}.ethernets[{place}]", sides, errors)
    return tuple(found)


def _stations_of(
    device: Mapping[str, Any],
    ethernet: Mapping[str, Any],
    at: str,
    sides: Mapping[str, SideName],
    errors: list[str],
) -> Iterable[Station]:
    errors += other_keys(ethernet, "devices[].ethernets[]", at)
    connection = ethernet.get("connection", {})
    errors += other_keys(connection, "devices[].ethernets[].connection", f"{at}.connection")
    side = sides.get(port := connection.get("port_name", ""))
    if side is None:
        errors.append(f"{at}.connection.port_name: there is no port {port!r}")
        return
    mac = _mac(ethernet.get("mac"), f"{at}.mac", errors)
    vlans = []
    for place, vlan in enumerate(ethernet.get("vlans", [])):
        errors += other_keys(vlan, "devices[].ethernets[].vlans[]", f"{at}.vlans[{place}]")
        vlans.append(_vlan(vlan, f"{at}.vlans[{place}]", errors))
    for version in (4, 6):
        for place, ip in enumerate(ethernet.get(f"ipv{version}_addresses", [])):
            inside = f"{at}.ipv{version}_addresses[{place}]"
            errors += other_keys(ip, "devices[].ethernets[].ip_addresses[]", inside)
            errors += other_keys(
                ip.get("gateway_mac", {}),
                "devices[].ethernets[].ip_addresses[].gateway_mac",
                f"{inside}.gateway_mac",
            )
            try:
                address = ipaddress.ip_address(ip.get("address", ""))
                gateway = ipaddress.ip_interface(
                    f"{ip.get('gateway', '')}/{ip.get('prefix', _DEFAULT_PREFIX[version])}"
                )
            except ValueError as error:
                errors.append(f"{inside}: {error}")
                continue
            if not address.version == gateway.version == version or address not in gateway.network:
                errors.append(f"{inside}.gateway: {gateway.ip} is not on the link of {address}")
                continue
            yield Station(
                names=(str(device.get("name")), str(ethernet.get("name")), str(ip.get("name"))),
                ethernet=str(ethernet.get("name")),
                side=side,
                address=address,
                gateway=gateway,
                mac=mac,
                gateway_mac=_mac(ip.get("gateway_mac", {}).get("value"), f"{inside}.gateway_mac", errors),
                vlans=tuple(vlans),
            )


def _vlan(vlan: Mapping[str, Any], at: str, errors: list[str]) -> int:
    """The VLAN of a tag; what its other keys ask for, frames of devices do not have."""
    number = int(vlan.get("id", 1))
    if not 1 <= number <= LARGEST_VLAN:
        errors.append(f"{at}.id: {number} is not from 1 to {LARGEST_VLAN:,}")
    if (tpid := vlan.get("tpid", TAGGED)) != TAGGED:
        errors.append(f"{at}.tpid: {tpid}: tags here have {TAGGED}")
    if vlan.get("priority", 0) != 0:
        errors.append(f"{at}.priority: {vlan['priority']}: set it in the packet of the flow")
    return number


def _mac(text: str | None, at: str, errors: list[str]) -> str | None:
    if text is None:
        return None
    if not _MAC.fullmatch(text.lower()) or int(text[:2], 16) & 1:
        errors.append(f"{at}: {text!r} is not a MAC that a port can have")
        return None
    return text.lower()


def stations_named(
    names: Sequence[str], stations: Sequence[Station], version: int, at: str
) -> tuple[Station, ...]:
    """Those that a flow of this IP version names, on one side, on one link and behind one gateway.

    Raises:
        OtgError: There is none of a name, or they are not all in one place.
    """
    found: list[Station] = []
    for name in names:
        each = [one for one in stations if name in one.names and one.version == version]
        if not each:
            raise OtgError([f"{at}: {name!r} is no device with an IPv{version} address"])
        found += [one for one in each if one not in found]
    if not found:
        raise OtgError([f"{at}: names no device"])
    first = found[0]
    for one in found[1:]:
        if (one.side, one.gateway, one.vlans) != (first.side, first.gateway, first.vlans):
            raise OtgError(
                [
                    f"{at}: {one.names[-1]} and {first.names[-1]} differ in port, gateway or VLAN, of"
                    " which a side has one"
                ]
            )
    return tuple(found)
