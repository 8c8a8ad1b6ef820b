# SPDX-License-Identifier: Apache-2.0
"""A Junos DUT: set and delete commands of its configuration mode. Its routers always forward, IPv4 and IPv6;
an SRX forwards what its policies permit."""

from __future__ import annotations

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.many_routes_scripts import junos_many
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.parts import Parts, each, notes_on_hash, notes_on_limits, set_step, shows_policing
from evenhand.dut.script import (
    Check,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    route_purpose,
)


def _interface(link: DutLink) -> Step:
    device, unit = _unit(link)
    family = "inet" if link.side.ip_version == 4 else "inet6"
    return set_step(
        "interfaces",
        interface_purpose(link),
        [f"{_family(link)} address {address}" for address in link.addresses],
        notes=(
            f"A port that switches is refused at the commit, and nothing changes: delete interfaces {device}"
            f" unit {unit} family ethernet-switching, in your own words, before this.",
            *(
                ()
                if unit == "0"
                else (
                    f"A unit other than 0 needs a VLAN, which is not set here: set interfaces {device}"
                    f" vlan-tagging, and set interfaces {device} unit {unit} vlan-id {unit}.",
                )
            ),
        )
        if link.side.name == "left"
        else (),
        checks=(
            Check(
                command=f"show interfaces {device}.{unit} terse",
                # With both IP versions only the first has it on its line.
                expected=("up up", family, *map(str, link.addresses)),
            ),
        ),
    )


def _routes(link: DutLink) -> Step:
    version = link.side.ip_version
    shown = "inet.0" if version == 4 else "inet6.0"
    table = "routing-options static" if version == 4 else "routing-options rib inet6.0 static"
    return set_step(
        "routes",
        route_purpose(link),
        [f"{table} route {route} next-hop {link.next_hop}" for route in link.routes],
        cut=(" next-hop",),
        checks=(
            Check(
                command=f"show route protocol static table {shown} terse | no-more",
                expected=tuple(f"{route} S 5 >{link.next_hop}" for route in link.routes),
                other=">?[0-9a-f]+[.:]",
            ),
        ),
    )


def _static_neighbors(link: DutLink) -> Step:
    protocol = "arp" if link.side.ip_version == 4 else "ndp"
    statements = []
    for number, (neighbor, mac) in enumerate(link.static_neighbors()):
        # An entry is written below the interface address of its network; with the hosts on the link, network
        # n has the n-th.
        own = link.addresses[number // link.side.host_range.count if link.side.is_direct else 0]
        statements.append(f"{_family(link)} address {own} {protocol} {neighbor} mac {mac}")
    return set_step("neighbors", neighbor_purpose(link), statements, cut=(" mac",))


def _unit(link: DutLink) -> tuple[str, str]:
    device, _, unit = link.interface.partition(".")
    return device, unit or "0"


def _family(link: DutLink) -> str:
    device, unit = _unit(link)
    return f"interfaces {device} unit {unit} family {'inet' if link.side.ip_version == 4 else 'inet6'}"


def _nat(setup: DutSetup) -> list[Step]:
    """That of an SRX: host k of the inside has address k of the pool (address shifting), without other
    ports."""
    nat = setup.plan.nat
    if nat is None:
        return []
    name, zones = "evenhand", ("evenhand-left", "evenhand-right")
    policies = f"security policies from-zone {zones[0]} to-zone {zones[1]}"
    policy, application = f"{policies} policy {name}", f"applications application {name}"
    pool, rules = f"security nat source pool {name}", f"security nat source rule-set {name}"
    then = f"{rules} rule {name} then source-nat {'interface' if nat.is_own_address else f'pool {name}'}"
    statements = (
        *(
            f"security zones security-zone {zone} interfaces {'.'.join(_unit(link))}"
            for zone, link in zip(zones, setup.links, strict=True)
        ),
        f"{application} protocol udp destination-port 1-65535 inactivity-timeout {TIMEOUT_S}",
        f"{policy} match source-address any",
        f"{policy} match destination-address any",
        f"{policy} match application {name}",
        f"{policy} then permit",
        *(
            ()
            if nat.is_own_address
            else (
                f"{pool} address {nat.pool[1]}/32 to {nat.pool[-2]}/32",
                f"{pool} host-address-base {nat.inside[1]}/32",
            )
        ),
        f"{rules} from zone {zones[0]}",
        f"{rules} to zone {zones[1]}",
        f"{rules} rule {name} match source-address {nat.inside}",
        then,
    )
    own = (rules, *(() if nat.is_own_address else (pool,)), policies, application)
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: that of an SRX, with zones and a policy of its own, and how long a"
            " connection is remembered.",
            notes=(
                "Other routers refuse these lines: their NAT is a service of hardware of its own. The"
                " commit is"
                " refused if one of the interfaces is in a zone already: take it out first. To empty the"
                " table of"
                " connections before each experiment: clear security flow session source-prefix"
                f" {nat.inside}",
            ),
            do=tuple(f"set {statement}" for statement in statements),
            undo=tuple(
                f"delete {statement}"
                for statement in (*own, *(f"security zones security-zone {zone}" for zone in zones[::-1]))
            ),
            checks=(
                Check(
                    command="show configuration security nat source | display set | no-more",
                    expected=(f"set {then}",),
                ),
            ),
        )
    ]


JUNOS = OperatingSystem(
    title="Junos",
    comment="#",
    run="For the operational prompt. Nothing changes before the commit, which rollback 1 and a commit take"
    " back as a"
    " whole. On other interfaces than before, undo the set-up on those first: two next hops of a route are"
    " both used."
    " Its undo removes these statements even if they were there before it.",
    interfaces=("ge-0/0/0", "ge-0/0/1"),
    steps=Parts(
        limits=notes_on_limits(
            "How many a router keeps depends on its platform: before a long test look at the limits (show"
            " system"
            " statistics arp | match limit, show system statistics icmp6 | match limit; system"
            " arp-system-cache-limit"
            " and nd-system-cache-limit set them) and at what it has (show arp no-resolve | count, show"
            " ipv6 neighbors"
            " | count)."
        ),
        mtu="set interfaces {name} mtu 9014",
        interface=each(_interface),
        routes=each(_routes),
        many=junos_many,
        neighbors=each(_static_neighbors),
        more=_nat,
        hash=notes_on_hash(
            "The platform determines how frames are spread over the forwarding engine;"
            " forwarding-options hash-key only chooses among several routes or links. State in"
            " the report what the platform's documents say."
        ),
        policing=shows_policing(
            "DDoS protection of the control plane, the ARP policer and flow sessions of SRX (show"
            " ddos-protection protocols violations, show interfaces policers, show security flow status),"
            " and filters"
            " on the interfaces."
        ),
        forwarding=lambda setup: [
            Step(
                part="forwarding",
                purpose="Forwarding: a router has it on.",
                # A NAT is an SRX's, with zones and a policy of its own.
                notes=()
                if setup.plan.nat is not None
                else (
                    "An SRX forwards nothing before its interfaces are in security zones and a policy"
                    " permits what"
                    " goes between them (its default is deny-all), and by its default drops IPv6 (show"
                    " security flow"
                    " status: Inet6 forwarding mode). To forward without a firewall: set security"
                    " forwarding-options"
                    " family mpls mode packet-based, and family inet6 mode packet-based; a change of the"
                    " mode takes a"
                    " restart. None of it is set here.",
                ),
            )
        ],
    ).steps,
    many_routes=True,
    nats=("NAT44",),
    # A candidate of its own: a commit takes nothing along that somebody else has not committed yet.
    begin=("configure private",),
    end=("commit and-quit",),
)
