# SPDX-License-Identifier: Apache-2.0
"""An OpenWrt DUT: uci, for its shell, which is BusyBox'. Sections of its own, so that the undo deletes these
and nothing else."""

from __future__ import annotations

import zlib

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.linux import FUNCTIONS, LINUX_WORDS, linux_parts
from evenhand.dut.nat import TIMEOUT_S, TIMEOUTS
from evenhand.dut.parts import Parts, notes_on_hash, shows_policing
from evenhand.dut.script import OperatingSystem, Step, interface_purpose, route_purpose
from evenhand.dut.shell_parts import (
    END,
    forget_uses,
    intended,
    keep_settings,
    kept_in,
    kept_of,
    note_uses,
    read_back,
    restore_settings,
)

_FUNCTIONS = (
    *FUNCTIONS,
    # A section of the file network with its type and values, anew.
    "section() { uci -q delete network.$1 || true; uci set network.$1=$2; shift 2;"
    ' for value; do uci add_list "network.$value"; done; }',
    # Those that begin so: an earlier set-up may have had more.
    "no_sections() { for old in $(uci -q show network |"
    ' sed -n "s/^network[.]\\($1[0-9][0-9]*\\)=.*/\\1/p"); do uci delete network.$old; done; }',
    "reload() { uci commit network; uci commit firewall; ubus call network reload;"
    " /etc/init.d/firewall reload > /dev/null 2>&1; }",
)


def _section(setup: DutSetup, link: DutLink) -> str:
    """A name that no other plan has; OpenWrt's are short."""
    return f"eh{zlib.crc32(setup.plan.name.encode()):08x}{link.side.name[0]}"


def _first(setup: DutSetup) -> list[Step]:
    names = "|".join(link.interface.replace(".", "[.]") for link in setup.links)
    return [
        Step(
            part="interfaces",
            purpose="A port of a bridge takes no addresses.",
            notes=(
                "The script ends here if one of the two is in the list of ports of a device, such as br-lan.",
            ),
            do=(
                f"if uci -q show network | grep -E \"[.]ports=.*'({names})'\"; then"
                " echo 'Take it out of the bridge first: uci del_list network.@device[0].ports=NAME' >&2;"
                " exit 1; fi",
            ),
        )
    ]


def _interface(setup: DutSetup, link: DutLink) -> Step:
    own, name = f"{kept_of(setup)}.{link.side.name}", _section(setup, link)
    key = "ipaddr" if link.side.ip_version == 4 else "ip6addr"
    values = " ".join(f"{name}.{key}={address}" for address in link.addresses)
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            note_uses("addresses", (f"{address} {link.interface}" for address in link.addresses), own),
            f"section {name} interface {values}",
            f"uci set network.{name}.proto=static",
            f"uci set network.{name}.device={link.interface}",
            # OpenWrt before 21.02 has another word for it.
            f"uci set network.{name}.ifname={link.interface}",
            "reload",
            intended("addresses", own),
        ),
        undo=(f"uci -q delete network.{name} || true", "reload", forget_uses("addresses", own)),
    )


def _routes(setup: DutSetup, link: DutLink) -> Step:
    version, own, name = link.side.ip_version, f"{kept_of(setup)}.{link.side.name}", _section(setup, link)
    kind = "route" if version == 4 else "route6"
    sections = [f"{name}{number}" for number in range(len(link.routes))]
    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=(
            note_uses(f"routes{version}", (LINUX_WORDS.route(link, to) for to in link.routes), own),
            f"no_sections {name}",
            *(
                f"section {section} {kind}; uci set network.{section}.interface={name};"
                f" uci set network.{section}.target={route}; uci set"
                f" network.{section}.gateway={link.next_hop}"
                for section, route in zip(sections, link.routes, strict=True)
            ),
            "reload",
            intended(f"routes{version}", own),
        ),
        undo=(f"no_sections {name}", "reload", forget_uses(f"routes{version}", own)),
    )


def _forwarding(setup: DutSetup) -> list[Step]:
    """A zone of its own, in which everything may pass."""
    left, right = (_section(setup, link) for link in setup.links)
    zone = left[:-1]
    return [
        Step(
            part="forwarding",
            purpose="Forwarding: a zone of the firewall with both interfaces.",
            notes=("The kernel forwards on OpenWrt anyway.",),
            do=(
                f"uci -q delete firewall.{zone} || true; uci set firewall.{zone}=zone",
                *(f"uci set firewall.{zone}.{key}" for key in (f"name={zone}", "input=ACCEPT")),
                *(f"uci set firewall.{zone}.{key}" for key in ("output=ACCEPT", "forward=ACCEPT")),
                *(f"uci add_list firewall.{zone}.network={name}" for name in (left, right)),
                "reload",
            ),
            undo=(f"uci -q delete firewall.{zone} || true", "reload"),
        )
    ]


def _nat(setup: DutSetup) -> list[Step]:
    """A rule of firewall4 has one address, so all hosts have the pool's first; it has no words for a network
    that becomes another."""
    nat, right = setup.plan.nat, setup.links[1]
    if nat is None:
        return []
    name, own = f"{_section(setup, right)}nat", f"{kept_of(setup)}.nat"
    values = {
        "name": name,
        "family": f"ipv{nat.pool.version}",
        "device": right.interface,
        "src_ip": nat.inside,
        "target": "MASQUERADE" if nat.is_own_address else "SNAT",
        **({} if nat.is_own_address else {"snat_ip": nat.pool[1]}),
    }
    settings = [f"net.netfilter.{timeout}" for timeout in TIMEOUTS]
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: a rule of the firewall, and how long a connection is remembered.",
            notes=(
                "All hosts have one address: the first of the pool, or that of the interface. This needs"
                " OpenWrt"
                " 22.03 or later (firewall4). The timeouts before are kept. To empty the table of connections"
                " before each experiment: conntrack -F, of the package conntrack.",
            ),
            do=(
                *keep_settings(settings, own, read="sysctl"),
                *(f"sysctl -w {setting}={TIMEOUT_S}" for setting in settings),
                *(read_back(setting, str(TIMEOUT_S)) for setting in settings),
                f"uci -q delete firewall.{name} || true; uci set firewall.{name}=nat",
                *(f"uci set firewall.{name}.{key}={value}" for key, value in values.items()),
                "reload",
                f"nft list chain inet fw4 srcnat | grep -qF '!fw4: {name}'"
                f" || {{ echo 'NOT as intended, {name}: the firewall should have this rule' >&2; wrong=yes;"
                " }",
            ),
            undo=(f"uci -q delete firewall.{name} || true", "reload", *restore_settings(settings, own)),
        )
    ]


_LINUX = linux_parts()

OPENWRT = OperatingSystem(
    title="OpenWrt",
    comment="#",
    run="For a root shell that ends at the first error, such as: ssh root@DUT sh -e. It is saved: only the"
    " undo takes"
    " it away.",
    interfaces=("eth1", "eth2"),
    steps=Parts(
        first=_first,
        limits=_LINUX.limits,
        mtu="ip link set dev {name} mtu 9000",
        interface=_interface,
        routes=_routes,
        neighbors=_LINUX.neighbors,
        more=_nat,
        hash=notes_on_hash(
            "Few of its NICs have one that can be set (ethtool, a package of its own, shows it); packet"
            " steering"
            " (uci get network.globals.packet_steering) spreads frames by software."
        ),
        policing=shows_policing(
            "The firewall keeps a connection for each pair of addresses and ports, up to nf_conntrack_max,"
            " shown here."
            " Flow offloading, shown if it is on, takes known connections around the rest of the kernel,"
            " and changes what"
            " is measured.",
            do=(
                "sysctl net.netfilter.nf_conntrack_max || true",
                "uci -q show firewall | grep flow_offloading || true",
            ),
        ),
        forwarding=_forwarding,
    ).steps,
    begin=kept_in("/tmp/evenhand-dut", *_FUNCTIONS, waits=15),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=15,
    nats=("NAT44", "NAT66"),
)
