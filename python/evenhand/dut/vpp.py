# SPDX-License-Identifier: Apache-2.0
"""A VPP DUT: vppctl, for a shell on the host that VPP runs on. VPP forwards as soon as its interfaces are
up."""

from __future__ import annotations

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.script import (
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)

_DEFAULT_LIMIT = 50_000
"""Neighbours of one IP version that VPP keeps unless configured otherwise."""


def _steps(setup: DutSetup) -> list[Step]:
    steps = []
    if setup.neighbor_entries > _DEFAULT_LIMIT:
        limit = f"vppctl set ip neighbor-config ip{setup.plan.ip_version} limit"
        steps.append(
            Step(
                part="limits",
                purpose=f"Room for {setup.neighbor_entries:,} neighbours of both sides.",
                notes=(f"{_DEFAULT_LIMIT:,} is the default, and is restored.",),
                do=("vppctl show ip neighbor-config", f"{limit} {_DEFAULT_LIMIT + setup.neighbor_entries}"),
                undo=(f"{limit} {_DEFAULT_LIMIT}",),
            )
        )
    steps += [_interface(link) for link in setup.links]
    steps += [_routes(link) for link in setup.links if link.routes]
    if setup.has_static_neighbors:
        steps += [_static_neighbors(link) for link in setup.links]
    if setup.hash_type is not None:
        steps.append(
            Step(
                part="hash",
                purpose="Hash: it cannot be set while VPP runs.",
                notes=(
                    "VPP configures the NIC's hash when it starts: startup.conf, section dpdk, dev ...,"
                    " next to num-rx-queues. The hash in use is shown here: state it in the report.",
                ),
                do=tuple(f"vppctl show hardware-interfaces {link.interface}" for link in setup.links),
            )
        )
    steps.append(
        policing_step(
            do=tuple(f"vppctl show interface features {link.interface}" for link in setup.links),
            notes=(
                "Features of the interfaces are shown here: acl-plugin with sessions, policers, NAT, flow"
                " probes.",
            ),
        )
    )
    return steps


def _interface(link: DutLink) -> Step:
    name = link.interface
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            f"vppctl set interface state {name} up",
            *(f"vppctl set interface ip address {name} {address}" for address in link.addresses),
        ),
        undo=(
            *(
                f"vppctl set interface ip address del {name} {address}"
                for address in reversed(link.addresses)
            ),
            f"vppctl set interface state {name} down",
        ),
    )


def _routes(link: DutLink) -> Step:
    def line(verb: str, route: object) -> str:
        return f"vppctl ip route {verb} {route} via {link.next_hop} {link.interface}"

    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=tuple(line("add", route) for route in link.routes),
        undo=tuple(line("del", route) for route in reversed(link.routes)),
    )


def _static_neighbors(link: DutLink) -> Step:
    entries = [f"{link.interface} {address} {mac}" for address, mac in link.static_neighbors()]
    purpose = neighbor_purpose(link)
    add, delete = "set ip neighbor static", "set ip neighbor del static"
    if link.side.is_direct:
        # A command with a count would do for the hosts of an IPv4 network; but it counts the MAC up too, and
        # ours have one.
        return Step(
            part="neighbors",
            purpose=purpose,
            do=_file(link, add, entries),
            undo=_file(link, delete, entries[::-1]),
        )
    return Step(
        part="neighbors",
        purpose=purpose,
        do=tuple(f"vppctl {add} {entry}" for entry in entries),
        undo=tuple(f"vppctl {delete} {entry}" for entry in reversed(entries)),
    )


def _file(link: DutLink, command: str, entries: list[str]) -> tuple[str, ...]:
    """One process for all lines."""
    path = f"/run/evenhand-neighbors-{link.side.name}"
    lines = (f"{command} {entry}" for entry in entries)
    return ("\n".join((f"cat > {path} <<'END'", *lines, "END")), f"vppctl exec {path}", f"rm -f {path}")


VPP = OperatingSystem(
    title="VPP",
    comment="#",
    run="To be saved as a file, and run with sh -e as root on the host that VPP runs on.",
    interfaces=("TenGigabitEthernet5/0/0", "TenGigabitEthernet5/0/1"),
    steps=_steps,
)
