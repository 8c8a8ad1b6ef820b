# SPDX-License-Identifier: Apache-2.0
"""The NAT of a Linux lab whose plan has a DUT that keeps state: nftables and the kernel's connection tracking
in the DUT's namespace.

    ehdl-NAME (inside) -- forwarding -- source NAT -- ehdr-NAME (outside)

A NAT64 has TAYGA before it, which translates without state to IPv4 addresses of this host's own choice
(translator.py). The rules, the timeouts and the table's entries belong to the namespace, and go with it. The
number of buckets and the most entries are of all namespaces together, and stay as they are.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.base.lazy_import import lazy_import
from evenhand.plan import AddressPlan
from evenhand.rig.connections import Emptied
from evenhand.rig.dut.nat import BUCKETS, COUNT, FOLDER, MOST, TIMEOUT_S, TIMEOUTS, NatPorts, nat_rules
from evenhand.rig.lab.nft import set_rules

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

_SYSCTLS = Path("/proc/sys") / FOLDER
_STATISTICS = ("found", "invalid", "insert", "insert_failed", "drop", "early_drop", "error", "clash_resolve")


def start_nat(plan: AddressPlan, outside: str, ports: NatPorts) -> None:
    """Set the rules, the timeouts and a route. Call inside the DUT's namespace.

    Args:
        outside: Its interface to the right.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    assert plan.nat is not None
    set_rules(nat_rules(plan.nat, outside, ports), what="the NAT")
    # After the rules: where it is a module, they have loaded it.
    for name in TIMEOUTS:
        (_SYSCTLS / name).write_text(str(TIMEOUT_S))
    if plan.nat.is_own_address:
        return  # the kernel answers what belongs to no connection
    with pyroute2.IPRoute() as ip:
        # Answers to known connections are translated back before they are routed. All others end here: an
        # error message for each would be a frame that no one asked for.
        family = socket.AF_INET if plan.nat.pool.version == 4 else socket.AF_INET6
        ip.route("add", dst=str(plan.nat.pool), type="blackhole", family=family)


def empty_table() -> Emptied:
    """Delete all connections. Call inside the DUT's namespace."""
    connections = int((_SYSCTLS / COUNT).read_text())
    with pyroute2.NFCTSocket() as table:
        began = time.monotonic()
        table.flush()
        seconds = time.monotonic() - began
    return Emptied(seconds=seconds, connections=connections)


def read_timeout() -> float:
    """Seconds without a frame after which a connection is forgotten. Call inside the DUT's namespace."""
    return float(min(int((_SYSCTLS / name).read_text()) for name in TIMEOUTS))


def read_table() -> dict[str, Any]:
    """How large the table is, how long it remembers, and what the kernel has counted of it since the lab is
    up. Call inside the DUT's namespace."""
    with pyroute2.NFCTSocket() as table:
        per_cpu = [dict(row["attrs"]) for row in table.stat()]
    counted = {
        name: sum(int(cpu.get(f"CTA_STATS_{name.upper()}", 0)) for cpu in per_cpu) for name in _STATISTICS
    }
    return {
        **{
            f"net.netfilter.{name}": int((_SYSCTLS / name).read_text()) for name in (MOST, BUCKETS, *TIMEOUTS)
        },
        "counted": {"connections": int((_SYSCTLS / COUNT).read_text()), **counted},
    }
