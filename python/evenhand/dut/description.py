# SPDX-License-Identifier: Apache-2.0
"""What has to be set up on a DUT, made from an address plan. Knows no operating system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evenhand.base.errors import RequestError
from evenhand.dut.nat import USUAL_NAT, NatWishes, Translator, translation_of
from evenhand.plan import Address, AddressPlan, Interface, IpVersion, Network, PlanSide
from evenhand.plan.translation import Translation

HashType = Literal["type1", "type2"]
"""What the DUT spreads frames over its cores by: addresses (type 1), or addresses and UDP ports (type 2)."""

MOST_STATIC_NEIGHBORS = 131_072
"""Most static neighbours of both sides: all hosts of a direct plan with one network. More would be a script
of gigabytes."""

FIRST_TABLE = 7301
"""Table of routes of the first of several pairs."""

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DutLink:
    """One interface of the DUT and all that belongs to it."""

    interface: str
    side: PlanSide
    gateway_mac: str | None
    """MAC of the tester's port; None if the DUT resolves its neighbours."""

    @property
    def addresses(self) -> tuple[Interface, ...]:
        return self.side.dut

    @property
    def next_hop(self) -> Address | None:
        """Next hop of every route; a plain address, without prefix length (SEED-17)."""
        return None if self.side.gateway is None else self.side.gateway.ip

    @property
    def routes(self) -> tuple[Network, ...]:
        return self.side.routes

    @property
    def has_many_routes(self) -> bool:
        """Whether its routes are too many to be listed in `routes`: see `many_routes.py`."""
        return self.side.prefixes is not None and not self.routes and not self.side.is_direct

    def static_neighbors(self) -> Iterator[tuple[Address, str]]:
        """Address and MAC of every neighbour that the DUT must not resolve: the gateway, or each host on the
        link."""
        if self.gateway_mac is None:
            return
        if self.next_hop is not None:
            yield self.next_hop, self.gateway_mac
            return
        host_range = self.side.host_range
        for network in range(host_range.network_count):
            for host in range(host_range.count):
                yield host_range.address(host, network), self.gateway_mac


@dataclass(frozen=True, slots=True, kw_only=True)
class DutSetup:
    """Interfaces, routes, neighbours and hash of a DUT for one plan (SEED-23). Checked by
    `describe_setup`."""

    plan: AddressPlan
    links: tuple[DutLink, DutLink]
    """Left and right."""
    hash_type: HashType | None
    """None: as the DUT has it (SEED-07)."""
    translator: Translator = "tayga"
    """What translates on Linux, if the plan is translated."""
    nat_wishes: NatWishes = USUAL_NAT
    table: int | None = None
    """Table of its routes, for what comes in on its two interfaces alone; None: the main one."""
    outsides_of_all: tuple[str, ...] = ()
    """Right interfaces of all pairs, which have one NAT; empty: there is one pair."""

    @property
    def translation(self) -> Translation | None:
        """See `translation_of`."""
        return translation_of(self.plan)

    @property
    def outsides(self) -> tuple[str, ...]:
        """Interfaces at which a NAT translates."""
        return self.outsides_of_all or (self.links[1].interface,)

    @property
    def ip_versions(self) -> tuple[IpVersion, ...]:
        """IP versions that the DUT forwards."""
        return tuple(version for version in (4, 6) if self.links_of(version))

    def links_of(self, version: IpVersion) -> tuple[DutLink, ...]:
        """Those with this IP version: of a translated plan one."""
        return tuple(link for link in self.links if link.side.ip_version == version)

    @property
    def neighbor_entries(self) -> int:
        """Entries of the DUT's neighbour table, which all its interfaces share."""
        return sum(link.side.dut_neighbors for link in self.links)

    @property
    def has_static_neighbors(self) -> bool:
        return self.links[0].gateway_mac is not None


def describe_setup(
    plan: AddressPlan,
    *,
    left: str,
    right: str,
    hash_type: HashType | None = None,
    gateway_macs: tuple[str, str] | None = None,
    translator: Translator | None = None,
    nat_wishes: NatWishes = USUAL_NAT,
) -> DutSetup:
    """What the DUT needs for this plan.

    Args:
        left: Name of the DUT's left interface; `right` likewise.
        hash_type: None to leave the hash alone.
        gateway_macs: MACs of the tester's left and right port, for static neighbours; None if the DUT
            resolves them (R5180-07).
        translator: None: TAYGA, if the plan needs one.
        nat_wishes: For a plan whose DUT keeps state.

    Raises:
        RequestError: A translator or wishes of a NAT for what is routed, both interfaces are one, a MAC that
            no port can have, or more static neighbours than a script can hold.
    """
    if nat_wishes != USUAL_NAT and plan.nat is None:
        raise RequestError(
            f"the DUT of {plan.title} keeps no state, so it has no NAT to configure",
            code="rig.no-nat-to-set",
            where="--nat-ports, --nat-addresses, --nat-table",
            next_step="Leave them out, or name a plan whose DUT is a NAT: nat44, nat64, nat66.",
        )
    if plan.nat is not None and plan.nat.is_own_address and nat_wishes.addresses != USUAL_NAT.addresses:
        raise RequestError(
            f"the pool of {plan.title} is one address: that of the DUT's own interface",
            code="rig.no-nat-addresses-to-choose",
            where="--nat-addresses",
            next_step=f"Omit it, or use {plan.title.replace('-masquerade', '')}.",
        )
    if translator is not None and translation_of(plan) is None:
        raise RequestError(
            f"{plan.title} has one IP version on both sides, so nothing is translated",
            code="rig.nothing-to-translate",
            where="--translator",
            next_step="Leave it out, or name a plan with translation: siit, siit-eam, nat64.",
        )
    if translator == "jool" and nat_wishes != USUAL_NAT:
        raise RequestError(
            "Jool is the NAT itself, and chooses addresses and ports by itself",
            code="rig.no-nat-to-set",
            where="--nat-ports, --nat-addresses, --nat-table",
            next_step="Leave them out, or let TAYGA and the kernel's NAT translate (--translator tayga).",
        )
    if left == right:
        raise RequestError(
            f"{left!r} is given for both interfaces of the DUT",
            code="rig.same-interface-twice",
            where="--left, --right",
            next_step="Name two interfaces.",
        )
    macs = (
        (None, None) if gateway_macs is None else (_check_mac(gateway_macs[0]), _check_mac(gateway_macs[1]))
    )
    setup = DutSetup(
        plan=plan,
        links=(
            DutLink(interface=left, side=plan.left, gateway_mac=macs[0]),
            DutLink(interface=right, side=plan.right, gateway_mac=macs[1]),
        ),
        hash_type=hash_type,
        translator=translator or "tayga",
        nat_wishes=nat_wishes,
    )
    if setup.has_static_neighbors and setup.neighbor_entries > MOST_STATIC_NEIGHBORS:
        raise RequestError(
            f"{setup.neighbor_entries:,} static neighbours: a script contains at most"
            f" {MOST_STATIC_NEIGHBORS:,}",
            code="rig.too-many-neighbors",
            where="--static-neighbors",
            next_step="Use fewer with --hosts or --networks, or a gateway plan, which needs two neighbours.",
        )
    return setup


def describe_setups(
    plans: Sequence[AddressPlan],
    pairs: Sequence[tuple[str, str]],
    *,
    hash_type: HashType | None = None,
    gateway_macs: Sequence[tuple[str, str]] | None = None,
    nat_wishes: NatWishes = USUAL_NAT,
) -> list[DutSetup]:
    """What the DUT needs for these plans, one of each IP version, on each pair of its interfaces. All pairs
    have the same addresses, so each of several has a table of routes of its own.

    Args:
        pairs: Left and right of each engine.
        gateway_macs: MACs of each pair.

    Raises:
        RequestError: As `describe_setup`; or TAYGA with several pairs.
    """
    of_several = len(pairs) > 1
    for plan in plans:
        # What TAYGA has translated comes from its one device, and is of no pair any more.
        if of_several and translation_of(plan) is not None:
            raise RequestError(
                f"{plan.title} needs TAYGA, which has one device for all that it translates: Evenhand does"
                " not set it up for several engines",
                code="rig.not-with-several-engines",
                where="--plan",
                next_step="Use a testbed file with one engine, or set up a translator for each pair by hand,"
                " each in a network namespace of its own.",
            )
    has_nat = any(plan.nat is not None for plan in plans)
    return [
        replace(
            describe_setup(
                plan,
                left=left,
                right=right,
                hash_type=hash_type,
                gateway_macs=None if gateway_macs is None else gateway_macs[number],
                nat_wishes=USUAL_NAT if has_nat and plan.nat is None else nat_wishes,
            ),
            table=FIRST_TABLE + number if of_several else None,
            outsides_of_all=tuple(outside for _, outside in pairs),
        )
        for plan in plans
        for number, (left, right) in enumerate(pairs)
    ]


def _check_mac(text: str) -> str:
    mac = text.strip().lower()
    if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise RequestError(
            f"{text!r} is not the MAC of a port",
            code="rig.not-a-mac",
            where="--static-neighbors",
            next_step="Write the MACs of the tester's ports, left and right:"
            " 02:00:00:00:00:01,02:00:00:00:00:02.",
        )
    return mac
