# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: prefixes that are generated: of one length, or of the lengths that Internet tables
have."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from evenhand.base.errors import PlanError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan.prefixes import (
    MOST_PREFIXES,
    WIDTH,
    Addresses,
    PrefixSet,
    pack_prefixes,
    too_many_prefixes,
)
from evenhand.plan.ranges import Address, IpVersion, Network

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")

Lengths = int | Literal["internet"]

INTERNET_LENGTHS: dict[IpVersion, dict[int, int]] = {
    4: {16: 13, 17: 8, 18: 13, 19: 25, 20: 43, 21: 51, 22: 112, 23: 105, 24: 630},
    6: {
        29: 20,
        32: 115,
        33: 15,
        34: 15,
        36: 50,
        38: 10,
        40: 95,
        42: 25,
        44: 100,
        45: 15,
        46: 40,
        47: 40,
        48: 460,
    },
}
"""Prefixes of each length among a thousand, as in the tables of 2024 and 2025, rounded: IPv4 has a million
prefixes, of which more than six in ten are /24, IPv6 over 200,000, of which 46 in a hundred are /48. The few
shorter ones, which cover others, are left out: generated prefixes do not overlap."""

_NEVER: dict[IpVersion, tuple[Network, ...]] = {
    4: tuple(map(ipaddress.ip_network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"))),
    6: tuple(map(ipaddress.ip_network, ("::/16", "fe80::/10", "ff00::/8"))),
}
"""No router forwards to them: this machine, loopback, link-local, multicast and what is reserved."""


def make_prefixes(
    count: int,
    lengths: Lengths,
    *,
    first: Address,
    within: Network | None = None,
    spacing: int = 1,
    avoiding: Sequence[Network] = (),
) -> PrefixSet:
    """Generated prefixes, ascending.

    Args:
        lengths: Prefix length of all; or `internet`: each thousand has the lengths of INTERNET_LENGTHS,
            shortest first.
        first: The first prefix begins there, or at the next address at which it can.
        within: They end with this network; None: with the address space.
        spacing: Prefixes of one length: every such one is used; 1: one after the other; 2: every second.
        avoiding: Networks that none of them overlaps, such as the links.

    Raises:
        PlanError: A count, length or spacing that is out of range, or no room for so many.
    """
    version: IpVersion = 4 if first.version == 4 else 6
    of_internet = lengths == "internet"
    how = f"lengths as in the Internet{'' if version == 4 else ' (IPv6)'}" if of_internet else f"/{lengths}"
    name = f"{count:,} generated, {how}, from {first}" + (f", every {spacing}th" if spacing > 1 else "")
    if count > MOST_PREFIXES[version]:
        raise too_many_prefixes(version, f"routes = {count}")
    if count < 1:
        raise _out_of_range(f"{count} routes", "routes", f"Use 1 to {MOST_PREFIXES[version]:,}.")
    if not of_internet and not 1 <= int(lengths) <= WIDTH[version]:
        raise _out_of_range(
            f"a prefix length of {lengths}", "lengths", f"Use 1 to {WIDTH[version]}, or internet."
        )
    if not 1 <= spacing <= 1 << 24 or (spacing > 1 and of_internet):
        raise _out_of_range(
            f"a spacing of {spacing}" + (" of unlike prefixes" if of_internet else ""),
            "spacing",
            "Use 1 to 16777216, with one prefix length; 2 uses every second prefix.",
        )
    group = INTERNET_LENGTHS[version] if lengths == "internet" else {int(lengths): 1}
    size = sum(group.values())
    placed: list[tuple[Addresses, list[int]]] = []
    left = count
    for start, end in _free(version, first, within, avoiding):
        while left:
            part = group if left >= size else _share_of(group, left)
            offsets, of_part, span, align = _layout(part, version, spacing)
            at = -(-start // align) * align
            # The last one of a row needs its own size, not the space that follows it.
            needed = offsets[-1] + (1 << WIDTH[version] - of_part[-1])
            fits = 0 if end - at < needed else (end - at - needed) // span + 1
            repeats = min(fits, left // len(of_part))
            if not repeats:
                break
            placed.append((_repeated(at, span, offsets, repeats), of_part * repeats))
            left -= repeats * len(of_part)
            start = at + (repeats - 1) * span + (span if spacing > 1 else needed)
    if left:
        block = within or f"the addresses from {first} on"
        raise PlanError(
            f"{count:,} prefixes ({how}) do not fit into {block}: {count - left:,} do",
            code="plan.no-room-for-prefixes",
            where="routes",
            next_step="Use fewer or longer prefixes, or let them begin elsewhere (first).",
        )
    return pack_prefixes(
        name,
        version,
        Addresses(
            np.concatenate([each.high for each, _ in placed]),
            np.concatenate([each.low for each, _ in placed]),
        ),
        np.concatenate([np.array(each, dtype=np.uint8) for _, each in placed]),
    )


def _share_of(group: dict[int, int], count: int) -> dict[int, int]:
    """So many in the same shares, by the largest remainders."""
    total = sum(group.values())
    exact = {length: Fraction(part * count, total) for length, part in group.items()}
    found = {length: int(part) for length, part in exact.items()}
    by_rest = sorted(exact, key=lambda length: (found[length] - exact[length], -length))
    for length in by_rest[: count - sum(found.values())]:
        found[length] += 1
    return {length: part for length, part in found.items() if part}


def _layout(group: dict[int, int], version: IpVersion, spacing: int) -> tuple[list[int], list[int], int, int]:
    """Offsets and lengths of the prefixes of a group, shortest first, so that each begins where it can; how
    far apart two groups begin, and at multiples of what."""
    offsets, lengths, at = [], [], 0
    for length, count in sorted(group.items()):
        size = 1 << WIDTH[version] - length
        for _ in range(count):
            offsets.append(at)
            lengths.append(length)
            at += size * spacing
    align = 1 << WIDTH[version] - min(group)
    return offsets, lengths, -(-at // align) * align, align


def _repeated(at: int, span: int, offsets: list[int], repeats: int) -> Addresses:
    """Addresses of `repeats` groups from `at` on. Sums of 128 bits, of 64 each, with the carry."""
    inner_high, inner_low = _words(offsets)
    outer_high, outer_low = _words([at + span * number for number in range(repeats)])
    low = outer_low[:, None] + inner_low[None, :]
    carry = (low < outer_low[:, None]).astype(np.uint64)
    return Addresses((outer_high[:, None] + inner_high[None, :] + carry).ravel(), low.ravel())


def _words(numbers: list[int]) -> Addresses:
    octets = b"".join(number.to_bytes(16, "big") for number in numbers)
    words = np.frombuffer(octets, dtype=">u8").reshape(-1, 2).astype(np.uint64)
    return Addresses(words[:, 0], words[:, 1])


def _free(
    version: IpVersion, first: Address, within: Network | None, avoiding: Sequence[Network]
) -> Iterator[tuple[int, int]]:
    """Where prefixes may be: first address, and the one after the last."""
    start = int(first)
    end = (1 << WIDTH[version]) if within is None else int(within.broadcast_address) + 1
    taken = [each for each in (*_NEVER[version], *avoiding) if each.version == version]
    for network in sorted(taken, key=lambda each: int(each.network_address)):
        if start < min(int(network.network_address), end):
            yield start, min(int(network.network_address), end)
        start = max(start, int(network.broadcast_address) + 1)
    if start < end:
        yield start, end


def _out_of_range(what: str, where: str, next_step: str) -> PlanError:
    return PlanError(
        f"{what} cannot be generated", code="plan.count-out-of-range", where=where, next_step=next_step
    )
