# SPDX-License-Identifier: Apache-2.0
"""Station 1: UDP port ranges as people write them: the one reader of command lines, campaign files, and what
runs have stored of them."""

from __future__ import annotations

import re

from evenhand.base.errors import RequestError
from evenhand.plan.ranges import Mode, UdpRange

MAX_PORT = 65535
_RANGE = re.compile(
    r"(0x[0-9a-fA-F]{1,20}|\d{1,20})(?:-(0x[0-9a-fA-F]{1,20}|\d{1,20})(?::(increment|decrement))?)?", re.ASCII
)


def parse_ports(text: str | None, default: UdpRange, classic: UdpRange, *, where: str) -> UdpRange:
    """`1024-65535`, `1024-65535:increment`, `7`, or `fixed` for the port of RFC 2544; numbers may be
    hexadecimal (0xC020).

    Args:
        default: What None means.
        classic: What `fixed` means.

    Raises:
        RequestError: It is not a range of UDP ports.
    """
    if text is None:
        return default
    if text == "fixed":
        return classic
    found = _RANGE.fullmatch(text.strip())
    first, last = (0, 0) if found is None else (_number(found[1]), _number(found[2] or found[1]))
    if found is None or not 1 <= first <= last <= MAX_PORT:
        raise RequestError(
            f"{text!r} is not a range of UDP ports",
            code="plan.not-a-port-range",
            where=where,
            next_step=f"Write a range such as {default.first}-{default.last}, one port from 1 to"
            f" {MAX_PORT}, or fixed.",
        )
    return UdpRange(first=first, last=last, mode="fixed" if first == last else _mode(found[3]))


def _number(text: str) -> int:
    """Zeros before a decimal number are allowed: `0080`."""
    return int(text, 16 if text.startswith("0x") else 10)


def _mode(word: str | None) -> Mode:
    return "increment" if word == "increment" else "decrement" if word == "decrement" else "pseudorandom"
