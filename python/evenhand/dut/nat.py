# SPDX-License-Identifier: Apache-2.0
"""What a NAT has to be configured for, and how nftables configures the kernel's own on Linux. The Linux lab
and the set-up of a DUT both take it from here.

    inside -- forwarding -- source NAT -- outside

A NAT64 has a translator without state before it, which turns IPv6 hosts into IPv4 hosts of the DUT's own
choice (`translation_of`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.dut.translator import empty_jool, jool_timeout, or_of_jool
from evenhand.plan import AddressPlan, Network
from evenhand.plan.translation import Nat, Translation

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
