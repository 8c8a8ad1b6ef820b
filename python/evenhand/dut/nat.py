# SPDX-License-Identifier: Apache-2.0
"""What a NAT or a translator without state has to be configured for, and how nftables configures the kernel's
own NAT and TAYGA is configured on Linux; for Jool see jool.py. The Linux lab and the set-up of a DUT both
take it from here.

    inside -- forwarding -- source NAT -- outside

A NAT64 has a translator without state before it, which turns IPv6 hosts into IPv4 hosts of the DUT's own
choice (`translation_of`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.plan import AddressPlan, HostRange, Network
from evenhand.plan.translation import Nat, Translation

Translator = Literal["tayga", "jool"]
TAYGA_INTERFACE = "evenhand-siit"
"""TAYGA's tun device."""
TAYGA_INSTALL = "systemctl mask tayga; apt-get install --no-install-recommends tayga"
"""Debian's package starts a service that sets up an interface and NAT, which no test needs."""
_OWN_ADDRESS = "192.0.2.1"
"""Address of TAYGA itself, for its ICMP errors: no host has it (RFC 5737)."""


def tayga_config(translation: Translation) -> str:
    """The configuration as tayga.conf(5) has it. IPv6 hosts behind the prefix need no mapping, and may have
    none."""
    lines = [f"tun-device {TAYGA_INTERFACE}", f"ipv4-addr {_OWN_ADDRESS}", f"prefix {translation.prefix}"]
    if translation.needs_mapping:
        lines.append(f"map {translation.ipv6_hosts_as_ipv4} {translation.ipv6_hosts}")
    return "\n".join(lines) + "\n"


def routes_to_translator(translation: Translation) -> tuple[Network, Network]:
    """What the kernel hands to TAYGA: the IPv6 hosts as IPv4 knows them, and everything behind the prefix
    that it has no longer route for."""
    return translation.ipv6_hosts_as_ipv4, translation.prefix


def start_tayga(config: str, *, files: str, like: str) -> tuple[str, ...]:
    """Commands of `sh` that start it, unless it runs already.

    Args:
        config: See `tayga_config`.
        files: What the paths of its files begin with.
        like: The interface of the IPv6 side, whose MTU it gets.
    """
    return (
        f"cat > {files}.conf <<'END'\n{config}END",
        f"ip link show dev {TAYGA_INTERFACE} > /dev/null 2>&1 || tayga --config {files}.conf --mktun",
        f"ip link set dev {TAYGA_INTERFACE} up mtu"
        f" $(ip -o link show dev {like} | sed 's/.* mtu \\([0-9]*\\) .*/\\1/')",
        f"echo 1 > /proc/sys/net/ipv4/conf/{TAYGA_INTERFACE}/forwarding",
        f"{_runs(files)} > /dev/null 2>&1 || tayga --config {files}.conf --pidfile {files}.pid",
        # It writes its id there a moment after it has gone into the background.
        f"timeout 5 sh -c 'until {_runs(files)}; do sleep 0.1; done' > /dev/null 2>&1",
    )


def stop_tayga(*, files: str) -> tuple[str, ...]:
    """Commands that end it and remove what it has made; the routes to its interface go with that. Nothing is
    not an error."""
    return (
        f"pkill -F {files}.pid tayga 2> /dev/null || true",
        f"! ip link show dev {TAYGA_INTERFACE} > /dev/null 2>&1 || ip link del dev {TAYGA_INTERFACE}",
        f"rm -f {files}.conf {files}.pid",
    )


def show_tayga(*, files: str) -> str:
    """A command that prints the configuration that it runs with, or one line if something else is in its
    place; it fails if nothing is."""
    there = f"ip link show dev {TAYGA_INTERFACE} > /dev/null 2>&1"
    runs = f"{_runs(files)} > /dev/null 2>&1"
    is_up = f"ip link show up dev {TAYGA_INTERFACE} | grep -q ."
    is_other = f"{{ {there} || {runs}; }} && echo other"
    return f"if {there} && {runs} && {is_up}; then cat {files}.conf; else {is_other}; fi"


def _runs(files: str) -> str:
    """Both must fit: the number may be another process's by now."""
    return f"pgrep -F {files}.pid tayga"


def set_up_by_hand(plan: AddressPlan) -> str:
    """All that a translator or a NAT needs for this plan, as one sentence."""
    translation = plan.translation
    needed = []
    if translation is not None:
        needed.append(f"the translation prefix {translation.prefix}")
        if translation.needs_mapping:
            needed.append(
                f"the mapping {translation.ipv6_hosts_as_ipv4} = {translation.ipv6_hosts} (RFC 7757)"
            )
    if plan.nat is not None:
        needed.append(f"the hosts {plan.nat.inside} behind the pool {plan.nat.pool}")
        if plan.nat.prefix is not None:
            needed.append(f"the translation prefix {plan.nat.prefix}")
    for side in plan.sides:
        needed.append(f"on the {side.name} interface {', '.join(map(str, side.dut))}")
        if side.gateway is not None:
            needed += [f"the route to {route} by {side.gateway.ip}" for route in side.routes]
    versions = " and ".join(f"IPv{version}" for version in sorted({side.ip_version for side in plan.sides}))
    return f"Set it up by hand: {', '.join(needed)}, and forwarding of {versions}."


JOOL_INSTANCE = "evenhand"
JOOL_MODULES = ("jool", "jool_siit")
JOOL_PACKAGES = ("jool-dkms", "jool-tools")
JOOL_INSTALL = f"apt-get install linux-headers-$(uname -r) {' '.join(JOOL_PACKAGES)}"
MOST_POOL_ADDRESSES = 32
"""Most addresses of a pool, with state. For each new connection Jool copies the list of them all, so it does
not suit thousands."""
SESSIONS = "JSTAT_SESSIONS"
"""Its counter of connections that are there now."""
_SCRIPT = "/run/evenhand-jool"
"""Script of the instance with state, which is made anew when its table is emptied."""
_NAT64 = f"jool --instance {JOOL_INSTANCE}"
_IS_NAT64 = f"{_NAT64} stats display > /dev/null 2>&1"


def start_jool(translation: Translation) -> tuple[str, ...]:
    """Commands that load the module and make an instance, anew if there is one."""
    lines = [
        "modprobe jool_siit",
        f"jool_siit instance remove {JOOL_INSTANCE} > /dev/null 2>&1 || true",
        f"jool_siit instance add {JOOL_INSTANCE} --netfilter --pool6 {translation.prefix}",
    ]
    if translation.needs_mapping:
        lines.append(
            f"jool_siit --instance {JOOL_INSTANCE} eamt add"
            f" {translation.ipv6_hosts_as_ipv4} {translation.ipv6_hosts}"
        )
    return (*lines, f"jool_siit --instance {JOOL_INSTANCE} eamt display")


def stop_jool() -> tuple[str, ...]:
    """The module stays: without an instance it does nothing."""
    return (f"jool_siit instance remove {JOOL_INSTANCE}",)


def start_jool_nat64(nat: Nat, pool: HostRange, timeout_s: int) -> tuple[str, ...]:
    """The same with state, and how long a connection is remembered.

    Args:
        pool: The addresses that the other side expects of the hosts.
    """
    assert nat.prefix is not None
    hours, rest = divmod(timeout_s, 3600)
    made = (
        f"jool instance add {JOOL_INSTANCE} --netfilter --pool6 {nat.prefix}",
        # Without --force it refuses ports that the kernel might give to a program of the DUT.
        *(f"{_NAT64} pool4 add --udp {network} 1-65535 --force" for network in pool_of(pool)),
        f"{_NAT64} global update udp-timeout {hours}:{rest // 60:02}:{rest % 60:02}",
    )
    return (
        "modprobe jool",
        f"jool instance remove {JOOL_INSTANCE} > /dev/null 2>&1 || true",
        "\n".join((f"cat > {_SCRIPT} <<'END'", *made, "END")),
        f"sh -e {_SCRIPT}",
        f"{_NAT64} pool4 display",
        f"{_NAT64} global display",
    )


def stop_jool_nat64() -> tuple[str, ...]:
    """Its connections go with it."""
    return (f"jool instance remove {JOOL_INSTANCE}", f"rm -f {_SCRIPT}")


def pool_of(host_range: HostRange) -> list[ipaddress.IPv4Network]:
    """The first of these addresses, as few networks."""
    first = ipaddress.IPv4Address(int(host_range.first_address))
    last = first + min(host_range.count, MOST_POOL_ADDRESSES) - 1
    return list(ipaddress.summarize_address_range(first, last))


def or_of_jool(command: str, of_jool: str) -> str:
    """A command of `sh` that runs the second one where Jool keeps the connections, else the first."""
    return f"if {_IS_NAT64}; then {of_jool}; else {command}; fi"


def empty_jool() -> str:
    """See `nat.empty_command`: Jool can forget all connections only with its instance. What is measured is
    that; making the instance anew comes after it."""
    count = f"{jool_counters_command('jool')} | sed -n 's/^{SESSIONS},//p'"
    return (
        f"{count} && began=$(date +%s%N) && jool instance remove {JOOL_INSTANCE} > /dev/null"
        f" && ended=$(date +%s%N) && sh -e {_SCRIPT} > /dev/null && echo $((ended - began))"
    )


def jool_timeout() -> str:
    """See `nat.timeout_command`; Jool writes H:MM:SS."""
    return (
        f"{_NAT64} global display --csv --no-headers | awk -F '[,:]' '$1 == \"udp-timeout\""
        " { print $2 * 3600 + $3 * 60 + $4 }'"
    )


def jool_counters_command(program: str) -> str:
    """A command that prints what an instance of `jool` or `jool_siit` counts: a name and a number in each
    line. Nothing where none is."""
    return f"{program} --instance {JOOL_INSTANCE} stats display --all --csv --no-headers 2>/dev/null"


def read_jool_counters(text: str) -> dict[str, int]:
    """What it has printed."""
    rows = (line.split(",") for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}


NatPorts = Literal["kept", "random"]
"""What becomes of the port of a host: it is kept unless another connection has it already, which is the
kernel's default; or it is another one in any case."""
NAT_PORTS: tuple[NatPorts, ...] = ("kept", "random")
NatAddresses = Literal["paired", "one"]
"""What becomes of the address of a host: each has one of the pool for itself; or all have the pool's first,
as behind a NAT that masquerades."""
NAT_ADDRESSES: tuple[NatAddresses, ...] = ("paired", "one")
TABLE = "evenhand"
"""Table of nftables."""
NFT_INSTALL = "apt-get install nftables"
CONNTRACK_INSTALL = "apt-get install conntrack"
MODULE = "nf_conntrack"
TIMEOUT_S = 3600
"""Seconds without a frame after which the DUT forgets a connection: no phase of an experiment outlasts it.
The kernel's own are 30 s, and 120 s once there was an answer."""
TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")
MOST, BUCKETS, COUNT = "nf_conntrack_max", "nf_conntrack_buckets", "nf_conntrack_count"
FOLDER = "net/netfilter"
"""Folder of all of them, below /proc/sys."""
INSIDE_IPV4_OF_NAT64 = ipaddress.IPv4Network("10.16.0.0/16")
"""What TAYGA gives the IPv6 hosts before the NAT44: never on a link."""
_BUCKETS_OF_PAGE = 8192
"""The kernel rounds the buckets up to whole pages of 8 octets each; no page is larger than 64 KiB."""
_PAIRED_HOSTS = 65_534
"""Hosts of the inside: those of 16 bits, without the first and the last."""
_CKSUM_OF_NOTHING = "4294967295 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class NatWishes:
    """What the user may choose of a NAT. None of it changes what the tester expects."""

    ports: NatPorts = "kept"
    addresses: NatAddresses = "paired"
    table_size: int | None = None
    """Connections that the table takes at most, with a bucket for each; None: as the DUT has it."""


USUAL_NAT = NatWishes()


def translation_of(plan: AddressPlan) -> Translation | None:
    """The translation without state that the DUT must be configured for; for a NAT64, the one before its
    NAT44. None: nothing is translated so."""
    nat = plan.nat
    if nat is None:
        return plan.translation
    if nat.prefix is None:
        return None
    assert isinstance(nat.inside, ipaddress.IPv6Network)
    return Translation(prefix=nat.prefix, ipv6_hosts=nat.inside, ipv6_hosts_as_ipv4=INSIDE_IPV4_OF_NAT64)


def hosts_before_nat(nat: Nat) -> Network:
    """The hosts of the inside, as the kernel's NAT sees them."""
    return nat.inside if nat.prefix is None else INSIDE_IPV4_OF_NAT64


def nat_rules(
    nat: Nat,
    outside: str | Sequence[str],
    ports: NatPorts,
    *,
    addresses: NatAddresses = "paired",
    with_hosts: bool = True,
) -> str:
    """The rules as nft(8) reads them. Host k of the inside has address k of the pool, as RFC 4787 wants it
    ("paired", REQ-2): so its ports never run out because another host has the same address.

    Args:
        outside: The interface to the right, or those of all pairs if there are several.
        with_hosts: False: leave out what there is for each of 65,534 hosts, for people, and where `start_nat`
            adds it.
    """
    inside = hosts_before_nat(nat)
    ip = _family(nat.pool)
    names = [outside] if isinstance(outside, str) else outside
    interfaces = ", ".join(f'"{name}"' for name in names)
    pool = ""
    if nat.is_own_address:
        to = f"masquerade{' fully-random' if ports == 'random' else ''}"
    elif addresses == "one":
        to = f"snat to {nat.pool[1]}{' fully-random' if ports == 'random' else ''}"
    elif ports == "kept":
        to = f"snat {ip} prefix to {ip} saddr map {{ {inside} : {nat.pool} }}"
    else:
        # nft drops `prefix` together with `fully-random`; addresses one by one are the same.
        pool = f"  map pool {{ type ipv{nat.pool.version}_addr : ipv{nat.pool.version}_addr;\n"
        if with_hosts:
            pairs = (f"{inside[k]} : {nat.pool[k]}" for k in range(1, _PAIRED_HOSTS + 1))
            pool += f"    elements = {{ {', '.join(pairs)} }}\n"
        pool += "  }\n"
        to = f"snat to {ip} saddr map @pool fully-random"
    return (
        f"table {ip} {TABLE} {{\n"
        f"{pool}"
        "  chain outgoing {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f"    oifname {interfaces if len(names) == 1 else f'{{ {interfaces} }}'} {ip} saddr {inside} {to}\n"
        "  }\n"
        "}\n"
    )


def start_nat(rules: str, inside: Network, pool: Network, *, files: str) -> tuple[str, ...]:
    """Commands of `sh` that set the rules, anew if they are there.

    Args:
        rules: See `nat_rules`, without hosts; `inside` and `pool` are those of the rules.
        files: What the paths of its files begin with.
    """
    table = f"{_family(pool)} {TABLE}"
    added: tuple[str, ...] = ()
    if "map pool" in rules:
        pairs = (
            f"awk 'BEGIN {{ for (k = 1; k <= {_PAIRED_HOSTS}; k++)"
            f' printf "%s {_numbered(inside)} : {_numbered(pool)}",'
            f' k == 1 ? "add element {table} pool {{" : ",", {_numbers(inside)}, {_numbers(pool)};'
            ' print " }" }\''
        )
        added = (f"{pairs} | nft -f -",)
    return (
        f"cat > {files}.nft <<'END'\n{rules}END",
        f"{{ echo 'table {table}'; echo 'delete table {table}'; cat {files}.nft; }} | nft -f -",
        *added,
        f"{_list()} > {files}.sum",
    )


def stop_nat(*, files: str) -> tuple[str, ...]:
    """Commands that remove the rules. Nothing is not an error."""
    return (
        *(
            f"! nft list table {family} {TABLE} > /dev/null 2>&1 || nft delete table {family} {TABLE}"
            for family in ("ip", "ip6")
        ),
        f"rm -f {files}.nft {files}.sum",
    )


def show_nat(*, files: str) -> str:
    """A command that prints the rules that a set-up has set, or one line if others are in their place; it
    fails if there are none."""
    return (
        f"sum=$({_list()}); case $sum in '{_CKSUM_OF_NOTHING}') false ;;"
        f' "$(cat {files}.sum 2> /dev/null)") cat {files}.nft ;; *) echo other ;; esac'
    )


def _list() -> str:
    return f"for family in ip ip6; do nft list table $family {TABLE} 2> /dev/null || true; done | cksum"


def settings_of_nat(wishes: NatWishes) -> dict[str, int]:
    """Paths below /proc/sys, and what they are to be, in the order in which they are set."""
    found = {f"{FOLDER}/{name}": TIMEOUT_S for name in TIMEOUTS}
    if wishes.table_size is not None:
        pages = -(-wishes.table_size // _BUCKETS_OF_PAGE)
        found |= {f"{FOLDER}/{MOST}": wishes.table_size, f"{FOLDER}/{BUCKETS}": pages * _BUCKETS_OF_PAGE}
    return found


def empty_command() -> str:
    """A command of `sh` that deletes all connections, those of each IP version, or those of Jool: prints how
    many there were, and the nanoseconds that it took."""
    of_kernel = (
        f"cat /proc/sys/{FOLDER}/{COUNT} && began=$(date +%s%N) && conntrack -F > /dev/null"
        " && ended=$(date +%s%N) && echo $((ended - began))"
    )
    return or_of_jool(of_kernel, empty_jool())


def timeout_command() -> str:
    """A command that prints after how many seconds without a frame a connection is forgotten, one for each
    of its states."""
    of_kernel = "cat " + " ".join(f"/proc/sys/{FOLDER}/{name}" for name in TIMEOUTS)
    return or_of_jool(of_kernel, jool_timeout())


def _family(network: Network) -> str:
    return "ip" if network.version == 4 else "ip6"


def _numbered(network: Network) -> str:
    """A format of awk's for host k: its last 16 bits are the number."""
    if network.version == 4:
        return ".".join(str(network.network_address).split(".")[:2]) + ".%d.%d"
    groups = network.network_address.exploded.split(":")[:7]
    return ":".join(f"{int(group, 16):x}" for group in groups) + ":%x"


def _numbers(network: Network) -> str:
    """What goes there."""
    return "k / 256, k % 256" if network.version == 4 else "k"
