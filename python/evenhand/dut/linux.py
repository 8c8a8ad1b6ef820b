# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: iproute2, sysctl and ethtool, each line a command of a POSIX shell.

What was there before is kept in files under /run, which vanish with the settings when the DUT restarts: see
shell_parts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.many_routes_scripts import linux_many
from evenhand.dut.nat import (
    CONNTRACK_INSTALL,
    JOOL_INSTALL,
    MOST_POOL_ADDRESSES,
    NFT_INSTALL,
    TAYGA_INSTALL,
    TAYGA_INTERFACE,
    TIMEOUT_S,
    hosts_before_nat,
    nat_rules,
    routes_to_translator,
    settings_of_nat,
    start_jool,
    start_jool_nat64,
    start_nat,
    start_tayga,
    stop_jool,
    stop_jool_nat64,
    stop_nat,
    stop_tayga,
    tayga_config,
)
from evenhand.dut.parts import OfLink, Parts, shows_policing
from evenhand.dut.script import SHELL_NOTE, OperatingSystem, Step, neighbor_purpose
from evenhand.dut.shell_parts import (
    END,
    KEPT,
    ShellWords,
    begin_here,
    forwarding_step,
    interface_step,
    keep_settings,
    kept_of,
    previous_step,
    restore_settings,
    routes_step,
)
from evenhand.plan import IpVersion
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

HASH_LETTERS = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0": "f",
    "L4 bytes 2": "n",
    "GTP TEID": "e",
    "IPv6 Flow Label": "l",
    "All matching flows discarded": "r",
}
"""What `ethtool -n` says of each field, and the letters that `ethtool -N` takes, in its order."""
_READ_FIELDS = "; ".join(f"s/^[[:blank:]]*{words}.*/{letter}/p" for words, letter in HASH_LETTERS.items())
"""sed: what `ethtool -n` shows, back to those letters."""


_RP_FILTER_NOTE = (
    "rp_filter is not changed: every host is routed back to the interface on which its frames arrive, so"
    " no frame is dropped."
)


_REACHABLE_NOTE = (
    "The reachable time of neighbours is not changed (base_reachable_time_ms, 30,000 by default): state it"
    " in the"
    " report, and use the same value in all runs (R5180-08)."
)
_READS_ROUTES = (
    'awk \'{ via = dev = ""; for (i = 2; i < NF; i++) { if ($i == "via") via = $(i + 1);'
    ' if ($i == "dev") dev = $(i + 1) } if (!seen[$1]++ && via != "" && $0 !~ /nexthop/) print $1, via, dev'
    " }'"
)
"""The way to each network, that of the lowest metric; several at once are none that a set-up has made."""
FUNCTIONS = (
    "addresses() { ip -o address show | awk '{ print $4, $2 }'; }",
    *(
        f"{name}{version}() {{ ip -o -{version} route show{then}; }}"
        for version in (4, 6)
        for name, then in (("table", ""), ("routes", f" | {_READS_ROUTES}"))
    ),
)
"""See `kept_in`. What was there of routes is kept as it is too, with all that it says."""


def _give_back(version: IpVersion) -> str:
    return (
        f'grep -F -- "$1 " {KEPT}/before.table{version} | grep "^$1 " | sed \'s/\\\\//g; s/ linkdown//g; s/'
        f" dead//g'"
        f" | while read -r line; do ip -{version} route replace $line; done"
    )


LINUX_WORDS = ShellWords(
    # Without duplicate address detection an IPv6 address is there at once, as an IPv4 address is.
    add_address=lambda address, name: (
        f"ip address replace {address} dev {name}{' nodad' if address.version == 6 else ''}"
    ),
    delete_address="ip address del $1 dev $2",
    add_routes=lambda link: [
        f"ip -{link.side.ip_version} route replace {route} via {link.next_hop} dev {link.interface}"
        for route in link.routes
    ],
    delete_route=lambda version: f"ip -{version} route del $1 via $2 dev $3",
    give_back_routes=_give_back,
)


def _advertised(setup: DutSetup) -> list[Step]:
    """A router forgets what others have advertised to it: perhaps the way to whoever sets it up."""
    if 6 not in setup.ip_versions:
        return []
    return [
        Step(
            part="forwarding",
            purpose="A default route that was learned from a router is lost when IPv6 is forwarded.",
            notes=(
                "The script ends here if that would happen: a DUT that is reached by that route is cut off.",
            ),
            do=(
                "for name in $(ip -6 route show | sed -n '/ proto ra /s/.* dev \\([^ ]*\\) .*/\\1/p' | sort"
                " -u); do"
                ' test "$(cat /proc/sys/net/ipv6/conf/$name/accept_ra)" = 2'
                ' || { echo "$name would lose the routes that it has learned from a router. To keep them:'
                " sysctl -w"
                ' net/ipv6/conf/$name/accept_ra=2" >&2; exit 1; }; done',
            ),
        )
    ]


def _neighbors(setup: DutSetup, link: DutLink) -> Step:
    entries = [f"{address} lladdr {mac}" for address, mac in link.static_neighbors()]
    name = link.interface
    return Step(
        part="neighbors",
        purpose=neighbor_purpose(link),
        do=(_batch(f"neigh replace {entry} dev {name} nud permanent" for entry in entries),),
        undo=(_batch(f"neigh del {entry} dev {name}" for entry in reversed(entries)),),
    )


def _interface(words: ShellWords) -> OfLink:
    def step(setup: DutSetup, link: DutLink) -> Step:
        is_first_of_ipv6 = link.side.ip_version == 6 and link.side.name == "left"
        return interface_step(words, setup, link, notes=(_REACHABLE_NOTE,) if is_first_of_ipv6 else ())

    return step


def linux_parts(words: ShellWords = LINUX_WORDS) -> Parts:
    """The parts of a system with Linux' own network that has other words for some of it."""
    return Parts(
        first=lambda setup: [*_advertised(setup), previous_step(words, setup)],
        limits=lambda setup: _neighbor_limits(setup, kept_of(setup)),
        mtu="ip link set dev {name} mtu 9000",
        interface=_interface(words),
        routes=lambda setup, link: routes_step(words, setup, link),
        many=linux_many,
        neighbors=_neighbors,
        more=_translation,
        hash=lambda setup: _hash(setup, kept_of(setup)),
        policing=shows_policing(
            "Modules that filter, track connections or police are shown here if they are loaded (nft"
            " list ruleset and tc filter show give their rules). nf_conntrack keeps an entry for"
            " each pair of addresses and ports, and drops frames above nf_conntrack_max.",
            do=(f"grep -E '^({'|'.join(_POLICING_MODULES)}) ' /proc/modules || true",),
        ),
        forwarding=_forwarding,
    )


def _translation(setup: DutSetup) -> list[Step]:
    kept, translation, nat = kept_of(setup), setup.translation, setup.plan.nat
    return [
        *([] if translation is None else [_translator(setup, translation, kept)]),
        *([] if nat is None else _nat(setup, nat, kept)),
    ]


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
            do=(*keep_settings(names, f"{kept}.limits", read="sysctl"), *settings),
            undo=restore_settings(names, f"{kept}.limits"),
        )
    ]


def _batch(lines: Iterable[str]) -> str:
    """One process for all lines: 65,000 of them would take minutes."""
    return "\n".join(("ip -batch - <<'END'", *lines, "END"))


def _hash(setup: DutSetup, kept: str) -> list[Step]:
    """Type 1 or type 2 for UDP over both IP versions on both interfaces, read back (RSS-02)."""
    assert setup.hash_type is not None
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
                f"ip -{route.version} route replace {route} dev {TAYGA_INTERFACE}"
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
                *keep_settings(settings, f"{kept}.connections", read="sysctl"),
                *(f"sysctl -w {name}={value}" for name, value in settings.items()),
            ),
            undo=restore_settings(settings, f"{kept}.connections"),
        ),
    ]


_FORWARDING: Mapping[int, str] = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}


def _forwarding(setup: DutSetup) -> list[Step]:
    names = [_FORWARDING[version] for version in setup.ip_versions]
    notes = (_RP_FILTER_NOTE,) if 4 in setup.ip_versions else ()
    return [forwarding_step(setup, names, read="sysctl", write="sysctl -w", notes=notes)]


LINUX = OperatingSystem(
    title="Linux",
    comment="#",
    run=SHELL_NOTE,
    interfaces=("eth1", "eth2"),
    steps=linux_parts().steps,
    begin=begin_here(*FUNCTIONS),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=15,
    translates=True,
    many_routes=True,
)
