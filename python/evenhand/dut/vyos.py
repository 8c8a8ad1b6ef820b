# SPDX-License-Identifier: Apache-2.0
"""A VyOS DUT: set and delete of its configuration mode; what `ip` sets beside it does not last. VyOS always
forwards, IPv4 and IPv6."""

from __future__ import annotations

from dataclasses import replace

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.nat import TIMEOUT_S, pool_of
from evenhand.dut.parts import Parts, each, notes_on_hash, set_step, shows_policing
from evenhand.dut.script import (
    Check,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    route_purpose,
)
from evenhand.plan.translation import Nat

_TABLE_SIZES = (1024, 2048, 4096, 8192, 16384, 32768)
"""Neighbours that its tables may be told to keep."""
_KINDS = {"bond": "bonding", "br": "bridge", "eth": "ethernet", "wlan": "wireless"}
_NAT_RULE = 7300


def _interface_of(link: DutLink) -> str:
    name, *vlans = link.interface.split(".")
    kind = _KINDS.get(name.rstrip("0123456789"), "ethernet")
    words = ("vif-s", "vif-c") if len(vlans) > 1 else ("vif",)
    return " ".join((f"interfaces {kind} {name}", *map(" ".join, zip(words, vlans, strict=False))))


def _interface(link: DutLink) -> Step:
    return set_step(
        "interfaces",
        interface_purpose(link),
        [f"{_interface_of(link)} address {address}" for address in link.addresses],
        notes=(
            "A port that is a member of a bridge or a bond is refused at the commit, and nothing changes.",
        )
        if link.side.name == "left"
        else (),
        checks=(
            Check(
                command=f"show configuration commands | match '{_interface_of(link)} address'",
                expected=tuple(f"address '{address}'" for address in link.addresses),
            ),
        ),
    )


def _routes(link: DutLink) -> Step:
    word, show = ("route", "ip") if link.side.ip_version == 4 else ("route6", "ipv6")
    return set_step(
        "routes",
        route_purpose(link),
        [
            f"protocols static {word} {route} next-hop {link.next_hop} interface {link.interface}"
            for route in link.routes
        ],
        cut=(" next-hop",),
        checks=(
            Check(
                command=f"show {show} route static",
                expected=tuple(f"{route} [1/0] via {link.next_hop}" for route in link.routes),
                other=r", [^*>]*\* via ",
            ),
        ),
    )


def _static_neighbors(link: DutLink) -> Step:
    begin = f"protocols static arp interface {link.interface} address"
    return set_step(
        "neighbors",
        neighbor_purpose(link),
        [f"{begin} {address} mac {mac}" for address, mac in link.static_neighbors()],
        cut=(" mac",),
    )


def _limits(setup: DutSetup) -> list[Step]:
    needed = setup.neighbor_entries
    size = next((size for size in _TABLE_SIZES if size > needed), _TABLE_SIZES[-1])
    if needed <= _TABLE_SIZES[0] // 8:
        return []
    word = "ip arp" if setup.plan.ip_version == 4 else "ipv6 neighbor"
    return [
        Step(
            part="limits",
            purpose=f"Room for {needed:,} neighbours of both sides.",
            notes=("The undo leaves it: the router may have had as much before.",),
            do=(f"set system {word} table-size {size}",),
            checks=(
                Check(
                    command=f"show configuration commands | match '{word} table-size'",
                    expected=(f"table-size '{size}'",),
                ),
            ),
        )
    ]


def _refuse(setup: DutSetup) -> None:
    if setup.has_static_neighbors and any(link.side.ip_version == 6 for link in setup.links):
        raise RequestError(
            "VyOS has static neighbours for IPv4 only",
            code="rig.static-neighbors-not-settable",
            where="--static-neighbors",
            next_step="Omit it, or use an IPv4 plan.",
        )
    if setup.neighbor_entries >= _TABLE_SIZES[-1]:
        raise RequestError(
            f"VyOS keeps at most {_TABLE_SIZES[-1]:,} neighbours, and this plan needs"
            f" {setup.neighbor_entries:,}",
            code="rig.too-many-neighbors",
            where="--hosts",
            next_step="Use fewer with --hosts or --networks, or a gateway plan, which needs two neighbours.",
        )


def _nat(setup: DutSetup) -> list[Step]:
    """Host k of the inside has address k of the pool: a prefix becomes another of the same length."""
    nat = setup.plan.nat
    if nat is None:
        return []
    if nat.prefix is not None:
        return [_nat64(setup, nat)]
    family = "nat" if nat.pool.version == 4 else "nat66"
    outside = setup.links[1].interface
    rule = f"{family} source rule {_NAT_RULE}"
    return [
        set_step(
            "nat",
            f"{nat.title}: its own, and how long a connection is remembered.",
            [
                f"{rule} outbound-interface name {outside}",
                f"{rule} source {'address' if family == 'nat' else 'prefix'} {nat.inside}",
                f"{rule} translation address {'masquerade' if nat.is_own_address else nat.pool}",
            ],
            cut=(" outbound-interface",),
            notes=(f"A rule of yours with a number below {_NAT_RULE} translates first.",),
        ),
        Step(
            part="nat",
            purpose="How long a connection is remembered without a frame.",
            notes=(
                "The undo restores the defaults. To empty the table of connections before each experiment:"
                " sudo conntrack -F",
            ),
            do=tuple(f"set system conntrack timeout udp {kind} {TIMEOUT_S}" for kind in ("other", "stream")),
            undo=tuple(f"delete system conntrack timeout udp {kind}" for kind in ("stream", "other")),
        ),
    ]


def _nat64(setup: DutSetup, nat: Nat) -> Step:
    """Jool's, which draws from all addresses of its pool: they are those of the first hosts."""
    peers = setup.links[1].side.peers
    assert peers is not None
    rule = f"nat64 source rule {_NAT_RULE}"
    pools = [f"{rule} translation pool {number}" for number in range(1, len(pool_of(peers)) + 1)]
    step = set_step(
        "nat",
        f"{nat.title}: its own, which is Jool.",
        [
            f"{rule} source prefix {nat.prefix}",
            *(
                line
                for pool, network in zip(pools, pool_of(peers), strict=True)
                for line in (f"{pool} address {network}", f"{pool} port 1-65535")
            ),
        ],
        notes=(
            "Jool forgets a connection after 300 s without a frame, and VyOS has no words for this time:"
            " say so in"
            " the testbed file (connection_timeout). To empty the table of connections before each"
            " experiment,"
            " delete the rule, commit, set it again and commit.",
        ),
        checks=(
            Check(
                command=f"show configuration commands | match '{rule} source'",
                expected=(f"source prefix '{nat.prefix}'",),
            ),
        ),
    )
    return replace(step, undo=(f"delete {rule}",))


VYOS = OperatingSystem(
    title="VyOS",
    comment="#",
    run="For the operational prompt of VyOS 1.4 or later. Nothing changes before the commit; it is not saved"
    " (save), so a restart undoes it as well. On other interfaces than before, undo the set-up on those"
    " first: two next hops of a route are both used. Its undo removes these statements even if they were"
    " there before it.",
    interfaces=("eth1", "eth2"),
    steps=Parts(
        limits=_limits,
        mtu="set interfaces ethernet {name} mtu 9000",
        interface=each(_interface),
        routes=each(_routes),
        neighbors=each(_static_neighbors),
        more=_nat,
        hash=notes_on_hash(
            "Its configuration has no words for it. Linux' own commands set it until the next restart: sudo"
            " ethtool -N"
            " NAME rx-flow-hash udp4 sdfn (or sd), and udp6; read it back with sudo ethtool -n NAME"
            " rx-flow-hash udp4."
        ),
        policing=shows_policing(
            "Firewall and NAT keep a connection for each pair of addresses and ports (show conntrack table"
            " ipv4, show"
            " firewall summary); without them VyOS tracks none."
        ),
    ).steps,
    begin=("configure",),
    end=("commit", "exit"),
    longest_interface=15,
    refuse=_refuse,
    nats=("NAT44", "NAT64", "NAT66"),
)
