# SPDX-License-Identifier: Apache-2.0
"""A Nokia SR Linux DUT: set and delete in its candidate. Routes of the default network instance name a group
of next hops, of which each side has one."""

from __future__ import annotations

from dataclasses import replace

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.parts import Parts, each, notes_on_hash, notes_on_limits, set_step, shows_policing
from evenhand.dut.script import (
    Check,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    route_purpose,
)
from evenhand.plan import plan_file_name

_VERB = "set / "
_INSTANCE = "network-instance default"


def _subinterface(link: DutLink) -> str:
    device, _, unit = link.interface.partition(".")
    return f"interface {device} subinterface {unit or 0}"


def _family(link: DutLink) -> str:
    return f"{_subinterface(link)} ipv{link.side.ip_version}"


def _interface(link: DutLink) -> Step:
    device, _, unit = link.interface.partition(".")
    step = set_step(
        "interfaces",
        interface_purpose(link),
        [f"{_family(link)} address {address}" for address in link.addresses],
        verb=_VERB,
        checks=(
            Check(
                command=f"info / {_family(link)}",
                expected=("admin-state enable", *(f"address {address}" for address in link.addresses)),
            ),
        ),
    )
    enabled = (
        f"{_VERB}interface {device} admin-state enable",
        f"{_VERB}{_subinterface(link)} admin-state enable",
        f"{_VERB}{_family(link)} admin-state enable",
        f"{_VERB}{_INSTANCE} interface {device}.{unit or 0}",
    )
    vlan = (
        f"A subinterface other than 0 needs a VLAN, which is not set here: {_VERB}interface {device}"
        f" vlan-tagging true, and {_VERB}{_subinterface(link)} vlan encap single-tagged vlan-id {unit}."
    )
    needs_vlan = unit not in ("", "0") and link.side.name == "left"
    return replace(step, do=(*enabled, *step.do), notes=(vlan,) if needs_vlan else ())


def _routes(setup: DutSetup, link: DutLink) -> Step:
    group = f"evenhand-{plan_file_name(setup.plan.name)}-{link.side.name}"
    return set_step(
        "routes",
        route_purpose(link),
        [
            f"{_INSTANCE} next-hop-groups group {group} nexthop 1 ip-address {link.next_hop}",
            *(f"{_INSTANCE} static-routes route {route} next-hop-group {group}" for route in link.routes),
        ],
        cut=(" nexthop ", " next-hop-group "),
        verb=_VERB,
        checks=(
            Check(
                command=f"show {_INSTANCE} route-table ipv{link.side.ip_version}-unicast summary",
                expected=tuple(map(str, link.routes)),
            ),
        ),
    )


def _static_neighbors(link: DutLink) -> Step:
    protocol = "arp" if link.side.ip_version == 4 else "neighbor-discovery"
    return set_step(
        "neighbors",
        neighbor_purpose(link),
        [
            f"{_family(link)} {protocol} neighbor {address} link-layer-address {mac}"
            for address, mac in link.static_neighbors()
        ],
        cut=(" link-layer-address",),
        verb=_VERB,
    )


SRLINUX = OperatingSystem(
    title="Nokia SR Linux",
    comment="#",
    run="For the operational prompt of sr_cli. Nothing changes before the commit; it is not saved (save"
    " startup), so"
    " a restart undoes it as well. On other interfaces than before, undo the set-up on those first. The"
    " undo leaves"
    " interfaces enabled and in the network instance.",
    interfaces=("ethernet-1/1", "ethernet-1/2"),
    steps=Parts(
        limits=notes_on_limits(
            "How many it keeps depends on the ASIC: before a long test look at used and free entries (info"
            " from state /"
            " platform linecard 1 forwarding-complex 0 datapath), and at what it has (show arpnd"
            " arp-entries, show"
            " arpnd neighbors)."
        ),
        mtu="set / interface {name} mtu 9014",
        interface=each(_interface),
        routes=_routes,
        neighbors=each(_static_neighbors),
        hash=notes_on_hash(
            "An ASIC has no cores to spread frames over. Its hash only chooses among several next hops or"
            " the ports of"
            " a LAG (info / system load-balancing)."
        ),
        policing=shows_policing(
            "Control plane filters and policers, and access lists of the subinterfaces (info / acl), and"
            " info from state / interface * statistics for what was discarded."
        ),
        forwarding=lambda setup: [
            Step(
                part="forwarding",
                purpose="Forwarding: the network instance has it on.",
                do=(f"{_VERB}{_INSTANCE} type default", f"{_VERB}{_INSTANCE} admin-state enable"),
            )
        ],
    ).steps,
    # A candidate of its own: a commit takes nothing along that somebody has not committed yet. The one
    # without a name is the user's, and stays from session to session.
    begin=("enter candidate private name evenhand",),
    end=("commit now",),
)
