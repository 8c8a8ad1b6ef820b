# SPDX-License-Identifier: Apache-2.0
"""The NAT of a Linux lab whose plan has a DUT that keeps state: nftables and the kernel's connection tracking
in the DUT's namespace.

    ehdl-NAME (inside) -- forwarding -- source NAT -- ehdr-NAME (outside)

A NAT64 has TAYGA before it, which translates without state to IPv4 addresses of this host's own choice
(translator.py). The rules, the timeouts and the table's entries belong to the namespace, and go with it. The
number of buckets and the most entries are of all namespaces together, and stay as they are.
"""

from __future__ import annotations

import ipaddress
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan import AddressPlan
from evenhand.plan.nat import Nat
from evenhand.plan.translation import Translation
from evenhand.rig.connections import Emptied
from evenhand.rig.lab.machine import system_path

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

NatPorts = Literal["kept", "random"]
"""What becomes of the port of a host: it is kept unless another connection has it already, which is the
kernel's default; or it is another one in any case."""
NAT_PORTS: tuple[NatPorts, ...] = ("kept", "random")
PROGRAM = "nft"
INSTALL = "sudo apt-get install nftables"
TABLE = "evenhand"
TIMEOUT_S = 3600
"""After so long without a frame the DUT forgets a connection: no phase of an experiment outlasts it. The
kernel's own are 30 s, and 120 s once there was an answer."""
INSIDE_IPV4_OF_NAT64 = ipaddress.IPv4Network("10.16.0.0/16")
"""What TAYGA gives the IPv6 hosts before the NAT44: never on a link."""
_SYSCTLS = Path("/proc/sys/net/netfilter")
_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")
_LIMITS = ("nf_conntrack_max", "nf_conntrack_buckets")
_COUNT = "nf_conntrack_count"
_STATISTICS = ("found", "invalid", "insert", "insert_failed", "drop", "early_drop", "error", "clash_resolve")
_PATIENCE_S = 30.0


def check_nat() -> None:
    """HostError if the program that sets the rules is missing."""
    if shutil.which(PROGRAM, path=system_path()) is None:
        raise HostError(
            f"the plan needs a NAT as DUT, and {PROGRAM} is not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install it: {INSTALL}",
        )


def before_nat(nat: Nat) -> Translation | None:
    """What must be translated without state before the NAT: nothing, unless it is a NAT64."""
    if nat.prefix is None:
        return None
    assert isinstance(nat.inside, ipaddress.IPv6Network)
    return Translation(prefix=nat.prefix, ipv6_hosts=nat.inside, ipv6_hosts_as_ipv4=INSIDE_IPV4_OF_NAT64)


def start_nat(plan: AddressPlan, outside: str, ports: NatPorts) -> None:
    """Set the rules, the timeouts and a route. Call inside the DUT's namespace.

    Args:
        outside: Its interface to the right.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    assert plan.nat is not None
    check_nat()
    program = shutil.which(PROGRAM, path=system_path()) or PROGRAM
    done = subprocess.run(
        [program, "-f", "-"],
        input=nat_rules(plan.nat, outside, ports),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise HostError(
            f"nft cannot set the rules of the NAT: {said[0] if said else 'it says nothing'}",
            code="rig.nat-rules-refused",
            where="lab",
            next_step="The kernel needs nf_tables with NAT (5.8 or later).",
        )
    # After the rules: where it is a module, they have loaded it.
    for name in _TIMEOUTS:
        (_SYSCTLS / name).write_text(str(TIMEOUT_S))
    with pyroute2.IPRoute() as ip:
        # Answers to known connections are translated back before they are routed. All others end here: an
        # error message for each would be a frame that nobody asked for.
        family = socket.AF_INET if plan.nat.pool.version == 4 else socket.AF_INET6
        ip.route("add", dst=str(plan.nat.pool), type="blackhole", family=family)


def nat_rules(nat: Nat, outside: str, ports: NatPorts, *, with_hosts: bool = True) -> str:
    """As nft(8) reads it. Host k of the inside has address k of the pool, as RFC 4787 wants it ("paired",
    REQ-2): so its ports never run out because another host has the same address.

    Args:
        with_hosts: Otherwise without what there is for each of 65,534 hosts, for people.
    """
    inside = nat.inside if nat.prefix is None else INSIDE_IPV4_OF_NAT64
    ip = "ip" if nat.pool.version == 4 else "ip6"
    addresses = ""
    if ports == "kept":
        to = f"snat {ip} prefix to {ip} saddr map {{ {inside} : {nat.pool} }}"
    else:
        # nft forgets `prefix` beside `fully-random`; addresses one by one are the same.
        addresses = f"  map pool {{ type ipv{nat.pool.version}_addr : ipv{nat.pool.version}_addr;\n"
        if with_hosts:
            pairs = (f"{inside[k]} : {nat.pool[k]}" for k in range(1, inside.num_addresses - 1))
            addresses += f"    elements = {{ {', '.join(pairs)} }}\n"
        addresses += "  }\n"
        to = f"snat to {ip} saddr map @pool fully-random"
    return (
        f"table {ip} {TABLE} {{\n"
        f"{addresses}"
        "  chain outgoing {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f'    oifname "{outside}" {ip} saddr {inside} {to}\n'
        "  }\n"
        "}\n"
    )


def empty_table() -> Emptied:
    """Delete all connections. Call inside the DUT's namespace."""
    connections = int((_SYSCTLS / _COUNT).read_text())
    with pyroute2.NFCTSocket() as table:
        began = time.monotonic()
        table.flush()
        seconds = time.monotonic() - began
    return Emptied(seconds=seconds, connections=connections)


def read_timeout() -> float:
    """After so many seconds without a frame a connection is forgotten. Call inside the DUT's namespace."""
    return float(min(int((_SYSCTLS / name).read_text()) for name in _TIMEOUTS))


def read_table() -> dict[str, Any]:
    """How large the table is, how long it remembers, and what the kernel has counted of it since the lab is
    up. Call inside the DUT's namespace."""
    with pyroute2.NFCTSocket() as table:
        per_cpu = [dict(row["attrs"]) for row in table.stat()]
    counted = {
        name: sum(int(cpu.get(f"CTA_STATS_{name.upper()}", 0)) for cpu in per_cpu) for name in _STATISTICS
    }
    return {
        **{f"net.netfilter.{name}": int((_SYSCTLS / name).read_text()) for name in (*_LIMITS, *_TIMEOUTS)},
        "counted": {"connections": int((_SYSCTLS / _COUNT).read_text()), **counted},
    }
