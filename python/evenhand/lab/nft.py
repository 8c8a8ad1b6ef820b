# SPDX-License-Identifier: Apache-2.0
"""Rules of nftables in the DUT's namespace of a Linux lab."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from evenhand.base.errors import HostError
from evenhand.base.units import format_duration
from evenhand.dut.nat import NFT_INSTALL
from evenhand.lab.machine import system_path

PROGRAM = "nft"
INSTALL = f"sudo {NFT_INSTALL}"
_PATIENCE_S = 30.0


def check_nft(what: str) -> None:
    """HostError if the program that sets the rules of `what` is missing."""
    if shutil.which(PROGRAM, path=system_path()) is None:
        raise HostError(
            f"{what} of the lab needs {PROGRAM}, which is not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install it: {INSTALL}",
        )


def set_rules(rules: str, *, what: str) -> None:
    """Let nft read these rules. Call inside the DUT's namespace.

    Args:
        what: Whose rules they are, such as `the NAT`.

    Raises:
        HostError: No nft, the kernel refuses its rules, or it does not end.
    """
    check_nft(what)
    program = shutil.which(PROGRAM, path=system_path()) or PROGRAM
    try:
        done = subprocess.run(
            [program, "-f", "-"],
            input=rules,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"nft has not set the rules of {what} within {format_duration(_PATIENCE_S)}",
            code="rig.rules-refused",
            where="lab",
            next_step="The host is overloaded, or another program holds its rules: try again.",
        ) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise HostError(
            f"nft cannot set the rules of {what}: {said[0] if said else 'no message'}",
            code="rig.rules-refused",
            where="lab",
            next_step="The kernel needs nf_tables (with NAT, 5.8 or later).",
        )


MOST_RULES = 10_000
_TABLE = "evenhand_firewall"
_FAMILIES = ("ip", "ip6")
_OCTETS = "@nh,96,32"
"""Octets 12 to 15 of the IP header: the source address of IPv4, and the second quarter of that of IPv6. A
whole address of IPv6 would be compared by another way of the kernel, which takes ten times as long: then the
curves of the two versions would say nothing of each other."""
_DOCUMENTATION = 0xC0000200
"""192.0.2.0, of a network for documentation (RFC 5737): no plan has its addresses, and none of IPv6 has that
in its second quarter."""


def start_firewall(rules: int) -> None:
    """Set so many rules for each IP version. Call inside the DUT's namespace.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    set_rules(firewall_rules(rules), what="the firewall")


def firewall_rules(rules: int) -> str:
    """What nft reads. Each rule is of its own: nft makes no set of them. A rule costs the same with both IP
    versions."""
    return "\n".join(line for family in _FAMILIES for line in _table(family, rules))


def _table(family: str, rules: int) -> Iterator[str]:
    yield f"table {family} {_TABLE} {{"
    yield "  chain forward {"
    yield "    type filter hook forward priority 0; policy accept;"
    for number in range(rules):
        yield f"    {_OCTETS} {_DOCUMENTATION + 1 + number % 99:#x} counter drop"
    yield "  }"
    yield "}"
