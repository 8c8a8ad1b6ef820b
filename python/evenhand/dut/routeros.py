# SPDX-License-Identifier: Apache-2.0
"""A MikroTik RouterOS 7 DUT: lines for its terminal, each entry with a comment by which the undo finds it,
and nothing else."""

from __future__ import annotations

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.parts import Parts, notes_on_hash, shows_policing
from evenhand.dut.script import (
    Check,
    OperatingSystem,
    Part,
    Step,
    interface_purpose,
    neighbor_purpose,
    route_purpose,
)
from evenhand.plan import plan_file_name

_MENU = {4: "/ip", 6: "/ipv6"}


def _entries(
    setup: DutSetup, link: DutLink, part: Part, purpose: str, menu: str, values: list[str], **more: object
) -> Step:
    """Entries of one menu, anew: those of an earlier set-up of this side go first, on whatever interface."""
    comment = f"evenhand-{plan_file_name(setup.plan.name)}-{link.side.name}"
    remove = f'{menu} remove [find comment="{comment}"]'
    return Step(
        part=part,
        purpose=purpose,
        do=(remove, *(f"{menu} add {value} comment={comment}" for value in values)),
        undo=(remove,),
        **more,  # type: ignore[arg-type]
    )


def _interface(setup: DutSetup, link: DutLink) -> Step:
    version, name = link.side.ip_version, link.interface
    more = "" if version == 4 else " advertise=no"
    menu = f"{_MENU[version]} address"
    return _entries(
        setup,
        link,
        "interfaces",
        interface_purpose(link),
        menu,
        [f"address={address} interface={name}{more}" for address in link.addresses],
        notes=(
            "A port of a bridge takes none: /interface bridge port print where interface=NAME shows whether"
            " it is one."
            " An address that is there already is refused, and stays as it is.",
        )
        if link.side.name == "left"
        else (),
        checks=(
            Check(
                # One of a disabled interface is shown too, as invalid.
                command=f"{menu} print where interface={name} invalid=no disabled=no",
                expected=tuple(map(str, link.addresses)),
            ),
        ),
    )


def _routes(setup: DutSetup, link: DutLink) -> Step:
    menu = f"{_MENU[link.side.ip_version]} route"
    return _entries(
        setup,
        link,
        "routes",
        route_purpose(link),
        menu,
        [f"dst-address={route} gateway={link.next_hop}" for route in link.routes],
        notes=(
            "A route of yours to the same network would be a second path: its line has a + before it (ECMP).",
        )
        if link.side.name == "left"
        else (),
        checks=(
            Check(
                command=f"{menu} print where gateway={link.next_hop} active=yes",
                expected=tuple(f"{route} {link.next_hop}" for route in link.routes),
            ),
        ),
    )


def _neighbors(setup: DutSetup, link: DutLink) -> Step:
    menu = "/ip arp" if link.side.ip_version == 4 else "/ipv6 neighbor"
    values = [
        f"address={address} mac-address={mac} interface={link.interface}"
        for address, mac in link.static_neighbors()
    ]
    return _entries(setup, link, "neighbors", neighbor_purpose(link), menu, values)


def _limits(setup: DutSetup) -> list[Step]:
    needed = setup.neighbor_entries
    if not setup.plan.is_direct:
        return []
    settings = f"{_MENU[setup.plan.ip_version]} settings"
    return [
        Step(
            part="limits",
            purpose=f"Room for {needed:,} neighbours of both sides.",
            notes=("The limit is raised only if it is lower, and the undo leaves it.",),
            do=(
                f":if ([{settings} get max-neighbor-entries] < {needed * 2})"
                f" do={{ {settings} set max-neighbor-entries={needed * 2} }}",
            ),
            checks=(
                Check(
                    command=f":put ([{settings} get max-neighbor-entries] >= {needed})", expected=("true",)
                ),
            ),
        )
    ]


def _nat(setup: DutSetup) -> list[Step]:
    nat, (_, right) = setup.plan.nat, setup.links
    if nat is None:
        return []
    menu = f"{_MENU[nat.pool.version]} firewall nat"
    to = "to-addresses" if nat.pool.version == 4 else "to-address"
    action = "action=masquerade" if nat.is_own_address else f"action=netmap {to}={nat.pool}"
    rule = f"chain=srcnat src-address={nat.inside} out-interface={right.interface} {action}"
    return [
        _entries(
            setup,
            right,
            "nat",
            f"{nat.title}: its own.",
            menu,
            [rule],
            notes=("A rule of yours that stands before it translates first.",),
        ),
        Step(
            part="nat",
            purpose="How long a connection is remembered without a frame.",
            notes=(
                "10 s and 3 min are the defaults, and are restored. To empty the table of connections"
                " before each"
                " experiment: /ip firewall connection remove [find]",
            ),
            do=(
                f"/ip firewall connection tracking set udp-timeout={TIMEOUT_S}s"
                f" udp-stream-timeout={TIMEOUT_S}s",
            ),
            undo=("/ip firewall connection tracking set udp-timeout=10s udp-stream-timeout=3m",),
        ),
    ]


def _forwarding(setup: DutSetup) -> list[Step]:
    word = {4: "/ip settings set ip-forward=yes", 6: "/ipv6 settings set disable-ipv6=no forward=yes"}
    return [
        Step(
            part="forwarding",
            purpose="Forwarding.",
            notes=("It is on unless it was switched off, and stays on.",),
            do=tuple(word[version] for version in setup.ip_versions),
        )
    ]


ROUTEROS = OperatingSystem(
    title="MikroTik RouterOS",
    comment="#",
    run="For the terminal of an administrator. It is kept over a restart: only the undo takes it away.",
    interfaces=("ether2", "ether3"),
    steps=Parts(
        limits=_limits,
        mtu="/interface ethernet set {name} mtu=9000",
        interface=_interface,
        routes=_routes,
        neighbors=_neighbors,
        more=_nat,
        hash=notes_on_hash(
            "It cannot be set on this system. /interface ethernet print and /system resource irq print show"
            " what shares"
            " frames out to cores; state in the report what the device's documents say."
        ),
        policing=shows_policing(
            "Firewall rules, connection tracking and queues are shown here. Fast path, shown too, takes"
            " frames around"
            " all of them: it wants no firewall rules, no connection tracking, no queues and no sniffer."
            " FastTrack does"
            " the same for connections that are known.",
            do=(
                "/ip firewall filter print count-only",
                "/ip firewall connection tracking print",
                "/queue simple print count-only",
                "/ip settings print",
            ),
        ),
        forwarding=_forwarding,
    ).steps,
    nats=("NAT44", "NAT66"),
)
