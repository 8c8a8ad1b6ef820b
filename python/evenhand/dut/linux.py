# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: iproute2, sysctl and ethtool, each line a command of a POSIX shell.

What was there before is kept in files under /run, which vanish with the settings when the DUT restarts: see
linux_kept.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.linux_state import (
    BEGIN,
    END,
    KEPT,
    forget_uses,
    keep_sysctls,
    note_uses,
    others_use,
    pattern_of,
    restore_sysctls,
)
from evenhand.dut.nat import (
    CONNTRACK_INSTALL,
    NFT_INSTALL,
    TIMEOUT_S,
    hosts_before_nat,
    nat_rules,
    settings_of_nat,
    start_nat,
    stop_nat,
)
from evenhand.dut.script import (
    FORWARDING_NOTE,
    SHELL_NOTE,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)
from evenhand.dut.translator import (
    INTERFACE,
    JOOL_INSTALL,
    MOST_POOL_ADDRESSES,
    TAYGA_INSTALL,
    routes_to_translator,
    start_jool,
    start_jool_nat64,
    start_tayga,
    stop_jool,
    stop_jool_nat64,
    stop_tayga,
    tayga_config,
)
from evenhand.plan import plan_file_name
from evenhand.plan.translation import Nat, Translation

DEFAULT_LIMITS = {"gc_thresh1": 128, "gc_thresh2": 512, "gc_thresh3": 1024}
"""The kernel's own limits of a neighbour table."""

_POLICING_MODULES = (
    "nf_conntrack",
    "nf_tables",
    "ip_tables",
    "ip6_tables",
    "act_police",
    "sch_ingress",
    "br_netfilter",
)

HASH_FIELDS = {"type1": "sd", "type2": "sdfn"}
"""s, d: source and destination address; f, n: octets 0-1 and 2-3 of the UDP header (RSS-02)."""

_READ_FIELDS = "s/^IP SA$/s/p; s/^IP DA$/d/p; s/^L4 bytes 0 .*/f/p; s/^L4 bytes 2 .*/n/p"
"""sed: what `ethtool -n` shows, back to the letters that `ethtool -N` takes."""


_RP_FILTER_NOTE = (
    "rp_filter is not changed: every host is routed back to the interface on which its frames arrive, so"
    " no frame is dropped."
)


def _steps(setup: DutSetup) -> list[Step]:
    kept = f"{KEPT}/{plan_file_name(setup.plan.name)}"
    steps = _neighbor_limits(setup, kept)
    steps.append(
        Step(
            part="interfaces",
            purpose="The previous state of the interfaces, kept so that it can be restored.",
            do=(
                *(
                    f"grep -qs ': {pattern_of(link.interface)}[@:]' {KEPT}/links"
                    f" || ip -o link show dev {link.interface} >> {KEPT}/links"
                    for link in setup.links
                ),
                note_uses("links", (link.interface for link in setup.links), kept),
            ),
            undo=(
                forget_uses("links", kept),
                f"ls {KEPT}/*.uses-links > /dev/null 2>&1 || rm -f {KEPT}/links",
            ),
        )
    )
    steps += [_interface(setup, link, kept) for link in setup.links]
    steps += [_routes(link, kept) for link in setup.links if link.routes]
    if setup.has_static_neighbors:
        steps += [_static_neighbors(link) for link in setup.links]
    if setup.translation is not None:
        steps.append(_translator(setup, setup.translation, kept))
    if setup.plan.nat is not None:
        steps += _nat(setup, setup.plan.nat, kept)
    steps += _hash(setup, kept)
    steps.append(
        policing_step(
            do=(f"grep -E '^({'|'.join(_POLICING_MODULES)}) ' /proc/modules || true",),
            notes=(
                "Modules that filter, track connections or police are shown here if they are loaded (nft"
                " list ruleset and tc filter show give their rules). nf_conntrack keeps an entry for"
                " each pair of addresses and ports, and drops frames above nf_conntrack_max.",
            ),
        )
    )
    steps.append(_forwarding(setup, kept))
    return steps


def _neighbor_limits(setup: DutSetup, kept: str) -> list[Step]:
    """Room for what the plan needs on top of what the kernel has room for anyway; nothing if that suffices
    (SEED-23)."""
    needed = setup.neighbor_entries
    if needed <= DEFAULT_LIMITS["gc_thresh1"]:
        return []
    names = [f"net.ipv{setup.plan.ip_version}.neigh.default.{limit}" for limit in DEFAULT_LIMITS]
    # From the largest down: thresh1 must never be above thresh3.
    settings = [
        f"sysctl -w {name}={default + needed}"
        for name, default in zip(names, DEFAULT_LIMITS.values(), strict=True)
    ][::-1]
    return [
        Step(
            part="limits",
            purpose=f"Room for {needed:,} neighbours of both sides.",
            notes=("The previous values are shown and kept.",),
            do=(*keep_sysctls(names, kept, "limits"), *settings),
            undo=restore_sysctls(names, kept, "limits"),
        )
    ]


def _interface(setup: DutSetup, link: DutLink, kept: str) -> Step:
    # Without duplicate address detection an IPv6 address is there at once, as an IPv4 address is.
    no_wait = " nodad" if link.side.ip_version == 6 else ""
    name, own = link.interface, f"{kept}.{link.side.name}"
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            f"ip link set dev {name} up",
            *(f"ip address replace {address} dev {name}{no_wait}" for address in link.addresses),
            note_uses("addresses", (f"{address} dev {name}" for address in link.addresses), own),
        ),
        undo=(
            *(
                f"{others_use('addresses', f'{address} dev {name}', own)}"
                f" || ip address del {address} dev {name}"
                for address in reversed(link.addresses)
            ),
            forget_uses("addresses", own),
            # What is routed over a link that goes down is lost, so the last that uses it takes it down.
            f"if ! {others_use('links', name, kept)}"
            f" && grep ': {pattern_of(name)}[@:]' {KEPT}/links | grep -qv '[<,]UP[,>]';"
            f" then ip link set dev {name} down; fi",
        ),
        notes=(
            "The reachable time of neighbours is not changed (base_reachable_time_ms, 30,000 by"
            " default): state it in the report, and use the same value in all runs (R5180-08).",
        )
        if link.side.ip_version == 6 and link.side.name == "left"
        else (),
    )


def _routes(link: DutLink, kept: str) -> Step:
    own = f"{kept}.{link.side.name}"
    routes = [f"{route} via {link.next_hop} dev {link.interface}" for route in link.routes]
    ip = f"ip -{link.side.ip_version} route"
    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=(*(f"{ip} replace {route}" for route in routes), note_uses("routes", routes, own)),
        undo=(
            *(f"{others_use('routes', route, own)} || {ip} del {route}" for route in reversed(routes)),
            forget_uses("routes", own),
        ),
    )


def _static_neighbors(link: DutLink) -> Step:
    entries = [f"{address} lladdr {mac}" for address, mac in link.static_neighbors()]
    name = link.interface
    return Step(
        part="neighbors",
        purpose=neighbor_purpose(link),
        do=(_batch(f"neigh replace {entry} dev {name} nud permanent" for entry in entries),),
        undo=(_batch(f"neigh del {entry} dev {name}" for entry in reversed(entries)),),
    )


def _batch(lines: Iterable[str]) -> str:
    """One process for all lines: 65,000 of them would take minutes."""
    return "\n".join(("ip -batch - <<'END'", *lines, "END"))


def _hash(setup: DutSetup, kept: str) -> list[Step]:
    """Type 1 or type 2 for UDP over both IP versions on both interfaces, read back (RSS-02)."""
    if setup.hash_type is None:
        return []
    flows = [(link.interface, flow) for link in setup.links for flow in ("udp4", "udp6")]
    fields = HASH_FIELDS[setup.hash_type]

    def file(name: str, flow: str) -> str:
        return f"{kept}.hash-{name}-{flow}"

    return [
        Step(
            part="hash",
            purpose="The fields that the NICs hash, kept so that they can be restored.",
            do=tuple(
                f"test -s {file(n, f)} || ethtool -n {n} rx-flow-hash {f} > {file(n, f)}" for n, f in flows
            ),
            undo=tuple(f"rm -f {file(n, f)}" for n, f in reversed(flows)),
        ),
        Step(
            part="hash",
            purpose=f"Hash of {setup.hash_type}:"
            f" {'addresses' if setup.hash_type == 'type1' else 'addresses and ports'}.",
            do=tuple(f"ethtool -N {n} rx-flow-hash {f} {fields}" for n, f in flows),
            undo=tuple(
                f"ethtool -N {n} rx-flow-hash {f} \"$(sed -n '{_READ_FIELDS}' {file(n, f)} | tr -d '\\n')\""
                for n, f in reversed(flows)
            ),
        ),
        Step(
            part="hash",
            purpose="The hash, read back.",
            notes=("State it in the report: not every NIC does what it is configured to do.",),
            do=tuple(f"ethtool -n {n} rx-flow-hash {f}" for n, f in flows),
        ),
    ]


_JOOL_NOTES = (
    f"Its modules are built for the running kernel when they are installed: {JOOL_INSTALL}",
    "Jool wants frames as they arrived: ethtool --offload on both interfaces with gro off and lro off. The"
    " module is not unloaded by the way back.",
)


def _jool(setup: DutSetup, translation: Translation) -> Step:
    nat, pool = setup.plan.nat, setup.links[1].side.peers
    if nat is None:
        return Step(
            part="translator",
            purpose="Jool: the prefix and the mappings, in an instance of its own.",
            notes=_JOOL_NOTES,
            do=start_jool(translation),
            undo=stop_jool(),
        )
    assert pool is not None
    return Step(
        part="translator",
        purpose="Jool: the prefix and the pool, in an instance of its own; it keeps the connections.",
        notes=(
            *_JOOL_NOTES,
            f"Its pool has the addresses of the first hosts, {MOST_POOL_ADDRESSES} at most, with all ports.",
            "To empty its table of connections: these commands once more, from modprobe on.",
        ),
        do=start_jool_nat64(nat, pool, TIMEOUT_S),
        undo=stop_jool_nat64(),
    )


def _translator(setup: DutSetup, translation: Translation, kept: str) -> Step:
    if setup.translator == "jool":
        return _jool(setup, translation)
    files = f"{kept}.tayga"
    (ipv6,) = setup.links_of(6)
    return Step(
        part="translator",
        purpose="TAYGA: it translates, and the kernel routes to it what is to be translated.",
        notes=(f"Debian's package would start a service of its own; to install it without: {TAYGA_INSTALL}",),
        do=(
            *start_tayga(tayga_config(translation), files=files, like=ipv6.interface),
            *(
                f"ip -{route.version} route replace {route} dev {INTERFACE}"
                for route in routes_to_translator(translation)
            ),
        ),
        undo=stop_tayga(files=files),
    )


def _nat(setup: DutSetup, nat: Nat, kept: str) -> list[Step]:
    """The kernel's NAT, its timeouts and limits, and an end for what belongs to no connection."""
    version = nat.pool.version
    steps = (
        []
        if nat.is_own_address
        else [
            Step(
                part="nat",
                purpose=f"Frames to {nat.pool} that belong to no connection end here, without an error"
                " message.",
                do=(f"ip -{version} route replace blackhole {nat.pool}",),
                undo=(f"ip -{version} route del blackhole {nat.pool}",),
            )
        ]
    )
    if setup.translator == "jool" and nat.prefix is not None:
        return steps
    wishes = setup.nat_wishes
    rules = nat_rules(
        nat, setup.links[1].interface, wishes.ports, addresses=wishes.addresses, with_hosts=False
    )
    settings = {path.replace("/", "."): value for path, value in settings_of_nat(wishes).items()}
    return [
        *steps,
        Step(
            part="nat",
            purpose=f"{nat.title}: the kernel's own, by nftables, and how it is to be emptied.",
            notes=(
                f"nft is in Debian's package nftables ({NFT_INSTALL}).",
                f"To empty the table of connections before each experiment: conntrack -F"
                f" ({CONNTRACK_INSTALL}).",
            ),
            do=start_nat(rules, hosts_before_nat(nat), nat.pool, files=f"{kept}.nat"),
            undo=stop_nat(files=f"{kept}.nat"),
        ),
        Step(
            part="nat",
            purpose="How long a connection is remembered without a frame"
            + ("." if wishes.table_size is None else ", and how many there may be."),
            notes=("The previous values are shown and kept.",),
            do=(
                *keep_sysctls(settings, kept, "connections"),
                *(f"sysctl -w {name}={value}" for name, value in settings.items()),
            ),
            undo=restore_sysctls(settings, kept, "connections"),
        ),
    ]


_FORWARDING: Mapping[int, str] = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}


def _forwarding(setup: DutSetup, kept: str) -> Step:
    names = [_FORWARDING[version] for version in setup.ip_versions]
    return Step(
        part="forwarding",
        purpose="Forwarding.",
        do=(*keep_sysctls(names, kept, "forwarding"), *(f"sysctl -w {name}=1" for name in names)),
        undo=restore_sysctls(names, kept, "forwarding"),
        notes=(FORWARDING_NOTE, *((_RP_FILTER_NOTE,) if 4 in setup.ip_versions else ())),
    )


LINUX = OperatingSystem(
    title="Linux",
    comment="#",
    run=SHELL_NOTE,
    interfaces=("eth1", "eth2"),
    steps=_steps,
    begin=BEGIN,
    end=END,
    longest_interface=15,
    translates=True,
)
