# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT that is a NAT: what a set-up changes for that, and the commands of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from evenhand.base.errors import RequestError
from evenhand.plan.nat import Nat
from evenhand.rig.dut.description import DutSetup
from evenhand.rig.dut.items import Item, Move, NotTakenError
from evenhand.rig.dut.linux_state import NAT_FILES, LinuxState
from evenhand.rig.dut.nat import (
    MODULE,
    TABLE,
    hosts_before_nat,
    nat_rules,
    settings_of_nat,
    start_nat,
    stop_nat,
)

_PACKAGES = {"nft": "nftables", "conntrack": "conntrack", "awk": "mawk"}


def nat_items(setup: DutSetup, nat: Nat, state: LinuxState) -> Iterator[Item]:
    """The rules, the route that ends what belongs to no connection, timeouts and limits.

    Raises:
        NotTakenError: The DUT lacks a program, or its kernel tracks no connections.
        RequestError: A table of this name is there already.
    """
    if state.missing_for_nat:
        packages = " ".join(_PACKAGES[program] for program in state.missing_for_nat)
        raise NotTakenError(
            f"the plan needs a NAT, and the DUT has no {', '.join(state.missing_for_nat)}",
            code="rig.nat-program-missing-on-dut",
            where="[dut] ssh",
            next_step=f"Install what is missing on the DUT: apt-get install {packages}",
        )
    if state.nat is not None:
        raise RequestError(
            f"the DUT already has a table {TABLE!r} of nftables",
            code="rig.nat-already-there",
            where="[dut] ssh",
            next_step="It belongs to a printed set-up: undo that (evenhand dut setup --undo), or run on the"
            f" DUT: nft delete table ip {TABLE}; nft delete table ip6 {TABLE}",
        )
    wishes, settings = setup.nat_wishes, settings_of_nat(setup.nat_wishes)
    missing = [path for path in settings if path not in state.sysctls]
    if missing:
        raise NotTakenError(
            f"the DUT has no {missing[0].replace('/', '.')}: its kernel tracks no connections yet",
            code="rig.no-connection-tracking-on-dut",
            where="[dut] ssh",
            next_step=f"Load the module on the DUT, which by itself changes nothing: modprobe {MODULE}",
        )
    if not nat.is_own_address:
        yield Item("route", (str(nat.pool),), None, "blackhole")
    inside = hosts_before_nat(nat)
    rules = nat_rules(nat, setup.outsides, wishes.ports, addresses=wishes.addresses, with_hosts=False)
    yield Item("nat", ("nftables", str(inside), str(nat.pool)), None, rules)
    for path, value in settings.items():
        yield Item("sysctl", (path,), state.sysctls[path], str(value))


def move_nat(item: Item, now: str | None, target: str | None) -> Move:
    """What brings the rules to that; None: away."""
    lines = ["set -e"]
    if now is not None or target is None:
        lines += stop_nat(files=NAT_FILES)
    if target is not None:
        inside, pool = (ipaddress.ip_network(text) for text in item.key[1:])
        lines += start_nat(target, inside, pool, files=NAT_FILES)
    return Move(item, "\n".join(lines))
