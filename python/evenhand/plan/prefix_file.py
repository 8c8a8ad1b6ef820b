# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: prefixes from a file, as a list, a router or a routing table's dump has them.

A megabyte at a time. If every line of it begins with a prefix, one pattern finds them all; otherwise each
line is looked at, to say which line is wrong and which word.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from evenhand.base.errors import PlanError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.base.units import short_repr
from evenhand.plan.prefixes import (
    FAMILY,
    MOST_PREFIXES,
    WIDTH,
    Addresses,
    PrefixSet,
    host_masks,
    overlaps,
    pack_prefixes,
    too_many_prefixes,
    unpacked,
)
from evenhand.plan.ranges import IpVersion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_import("numpy")

Covering = Literal["refuse", "leave-out"]
"""What becomes of a prefix that covers others of the file: an error, or it is left out and they stay."""

_CHUNK_OCTETS = 1 << 20
_LONGEST_LINE = 1 << 16
NEWLINE = b"\n"

_STATUS = r"(?:[A-Za-z]?[ sdhrS]?[*>][*>=]*(?:[sdhrSmbfx] | )?[>=]*i? *)"
"""What `show bgp` and `show ip route` have before a prefix: `*> `, `*>i`, `V*> `, `B>* `."""
_END = r"(?![^\s,;])[^\n]*$"
_ADDRESS: dict[IpVersion, str] = {
    4: r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})",
    6: r"([0-9a-fA-F]{0,4}:[0-9a-fA-F:.]{1,44})",
}
_QUICK = {
    version: re.compile(rf"^[ \t]*{_STATUS}?{address}/(\d{{1,3}}){_END}", re.MULTILINE | re.ASCII)
    for version, address in _ADDRESS.items()
}
_LINE = re.compile(rf"\s*({_STATUS})?([^\s,;]+)", re.ASCII)
_TYPED = re.compile(r"\s*unicast\s+(\S+)", re.ASCII)

_NOT_SENT_TO = re.compile(
    r"\s*(default|local|broadcast|multicast|anycast|blackhole|unreachable|prohibit|throw)\s"
    r"|.*\sproto kernel\b|.*is directly connected|[CL][>* ]+\S"
    r"|\s*(\S*[*>]\S*\s+)?(0\.0\.0\.0/0|::/0)(\s|$)|[A-Z]   ?\S+/\d|.*\bsubnetted\b",
    re.ASCII,
)
"""Lines of a router's dump that are no route to a next hop, or not the one in use; and the default route, in
which everything lies."""
_CONTINUATION = re.compile(
    r"\s+(nexthop|via|unicast|blackhole|unreachable|Type:|BGP\.)\b|[ A-Za-z]{0,2}\*[*>=i]{0,3}\s{8,}\S",
    re.ASCII,
)
"""A further next hop, or path, of the prefix above."""
_HEADING = re.compile(
    r"BGP table version|Codes:|\s*Network\s+Next ?Hop|Displayed |Total number|BIRD |Table |Gateway of last"
    r"|IPv[46] unicast VRF"
)
_HEADING_END: dict[str, re.Pattern[str]] = {
    "BGP table version": re.compile(r"\s*Network\s+Next ?Hop"),
    "Codes:": re.compile(r"\s*$"),
}
"""Headings of several lines, and what ends them."""


class _Found(NamedTuple):
    """One chunk's prefixes, with the number of the line of each."""

    octets: bytes
    lengths: bytes
    lines: NDArray[np.uint32]


@dataclass(slots=True)
class _Reader:
    """What is known of the file so far."""

    path: Path
    version: IpVersion | None = None
    version_line: int = 0
    heading_end: re.Pattern[str] | None = None
    found: list[_Found] = field(default_factory=list)

    def read(self, chunk: str, line: int) -> None:
        """Lines of which the first has this number."""
        quick = None if self.heading_end is not None else self._read_quickly(chunk, line)
        self.found.append(quick or self._read_lines(chunk, line))

    def _read_quickly(self, chunk: str, line: int) -> _Found | None:
        """None if a line has no prefix, or one is wrong, or some do not count."""
        if "proto kernel" in chunk or "directly connected" in chunk or "/0" in chunk:
            return None
        lines = chunk.count("\n")
        for version in (self.version,) if self.version is not None else (4, 6):
            matches = _QUICK[version].findall(chunk)
            if matches and len(matches) == lines:
                break
        else:
            return None
        addresses, lengths = zip(*matches, strict=True)
        numbers = list(map(int, lengths))
        try:
            octets = b"".join(map(partial(socket.inet_pton, FAMILY[version]), addresses))
        except OSError:
            return None
        if max(numbers) > WIDTH[version]:
            return None
        found = _Found(octets, bytes(numbers), np.arange(line, line + lines, dtype=np.uint32))
        masks = host_masks(np.frombuffer(found.lengths, dtype=np.uint8), version)
        first = unpacked(octets, version)
        if (first.high & masks.high).any() or (first.low & masks.low).any():
            return None
        if self.version is None:
            self.version, self.version_line = version, line
        return found

    def _read_lines(self, chunk: str, line: int) -> _Found:
        octets, lengths, lines = bytearray(), bytearray(), []
        for number, text in enumerate(chunk.split("\n")[:-1], line):
            word = self._word_of(text)
            if word is None:
                continue
            network = self._network(word, number, has_status=_is_of_bgp(text))
            octets += network.network_address.packed
            lengths.append(network.prefixlen)
            lines.append(number)
        return _Found(bytes(octets), bytes(lengths), np.array(lines, dtype=np.uint32))

    def _word_of(self, text: str) -> str | None:
        """What should be the line's prefix; None if the line needs none."""
        if self.heading_end is not None:
            if self.heading_end.match(text):
                self.heading_end = None
            return None
        if (heading := _HEADING.match(text)) is not None:
            self.heading_end = _HEADING_END.get(heading[0])
            return None
        stripped = text.strip()
        if not stripped or stripped[0] in "#!" or _CONTINUATION.match(text) or _NOT_SENT_TO.match(text + " "):
            return None
        typed = _TYPED.match(text)
        if typed is not None:
            return typed[1]
        found = _LINE.match(text)
        return stripped if found is None else found[2]

    def _network(
        self, word: str, number: int, *, has_status: bool
    ) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        where = f"{self.path}, line {number}"
        try:
            network = ipaddress.ip_network(word, strict=False)
            if "/" in word and not word.rpartition("/")[2].isdecimal():
                raise ValueError(word)
        except ValueError:
            raise RequestError(
                f"{short_repr(word)} is not a prefix",
                code="plan.not-a-prefix",
                where=where,
                next_step="Begin each line with a prefix, such as 198.18.0.0/24 or 2001:2:0:1::/64;"
                " lines that begin with # are skipped.",
            ) from None
        if has_status and "/" not in word:
            raise RequestError(
                f"{short_repr(word)} has no prefix length",
                code="plan.not-a-prefix",
                where=where,
                next_step=f"Write {word}/8, or whatever length the table means.",
            )
        if network.network_address != ipaddress.ip_interface(word).ip:
            raise RequestError(
                f"{word} is an address in {network}, not a prefix",
                code="plan.not-a-prefix",
                where=where,
                next_step=f"Write {network}.",
            )
        version: IpVersion = 4 if network.version == 4 else 6
        if self.version is None:
            self.version, self.version_line = version, number
        if version != self.version:
            raise RequestError(
                f"{word} is an IPv{version} prefix, but that of line {self.version_line} is of"
                f" IPv{self.version}",
                code="plan.mixed-versions",
                where=where,
                next_step="Write a file for each IP version: a side has one.",
            )
        return network


def _is_of_bgp(text: str) -> bool:
    found = _LINE.match(text)
    return found is not None and found[1] is not None


def read_prefixes(path: Path | str, *, covering: Covering = "refuse") -> PrefixSet:
    """Read the prefixes of a file: one at the beginning of each line, whatever follows it; or what `ip
    route`, `show bgp` and `show ip route` of FRR and its like, and BIRD's `show route`, print. Default,
    connected and local routes and routes to nowhere are skipped, for no host behind a gateway is reached by
    them.

    Args:
        covering: What becomes of a prefix that covers others, as in every full table: it is refused, or left
            out and counted. Which of two equal ones is left out makes no difference.

    Raises:
        RequestError: The file cannot be read; or a word is not a prefix: names line and word.
        PlanError: No prefix, too many, or two that overlap: names both lines.
    """
    path = Path(path)
    reader = _Reader(path)
    count = 0
    for line, chunk in _chunks(path):
        reader.read(chunk, line)
        count += len(reader.found[-1].lengths)
        if reader.version is not None and count > MOST_PREFIXES[reader.version]:
            raise too_many_prefixes(reader.version, str(path))
    if reader.version is None:
        raise PlanError(
            "no line has a prefix to which frames could be sent",
            code="plan.no-prefix",
            where=str(path),
            next_step="Write one on each line, such as 198.18.0.0/24.",
        )
    first = unpacked(b"".join(each.octets for each in reader.found), reader.version)
    lengths = np.frombuffer(b"".join(each.lengths for each in reader.found), dtype=np.uint8)
    lines = np.concatenate([each.lines for each in reader.found])
    order = np.lexsort((lengths, first.low, first.high))
    first, lengths, lines = first.part(order), lengths[order], lines[order]
    clashes = overlaps(first, lengths, reader.version)
    if clashes.any() and covering == "refuse":
        raise _overlap(path, reader.version, first, lengths, lines, int(np.flatnonzero(clashes)[0]))
    # A prefix that covers any other covers the one that follows it.
    kept = np.append(~clashes, True)
    return pack_prefixes(
        path.name, reader.version, first.part(kept), lengths[kept], left_out=int(np.count_nonzero(clashes))
    )


def _overlap(
    path: Path,
    version: IpVersion,
    first: Addresses,
    lengths: NDArray[np.uint8],
    lines: NDArray[np.uint32],
    index: int,
) -> PlanError:
    def shown(at: int) -> str:
        address = socket.inet_ntop(FAMILY[version], first.part([at]).packed(version).tobytes())
        return f"{address}/{lengths[at]} of line {lines[at]}"

    return PlanError(
        f"{shown(index)} overlaps {shown(index + 1)}",
        code="plan.prefixes-overlap",
        where=str(path),
        next_step='Remove one of them; or write covering = "leave-out" beside the file: what covers others,'
        " as in every full table, is then left out.",
    )


def _chunks(path: Path) -> Iterator[tuple[int, str]]:
    """Whole lines, and the number of the first of them."""
    line = 1
    try:
        if not path.is_file():
            raise FileNotFoundError(2, "No such file" if not path.exists() else "Not a file of its own")
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_OCTETS):
                chunk += file.readline(_LONGEST_LINE)
                if not chunk.endswith(b"\n"):
                    if len(chunk) - chunk.rfind(b"\n") > _LONGEST_LINE:
                        raise RequestError(
                            f"a line has more than {_LONGEST_LINE:,} characters",
                            code="plan.not-a-prefix",
                            where=f"{path}, line {line + chunk.count(NEWLINE)}",
                            next_step="Write one prefix on each line.",
                        )
                    chunk += b"\n"  # the last line
                text = chunk.decode("latin-1").replace("\r\n", "\n")
                yield line, text
                line += text.count("\n")
    except OSError as error:
        raise RequestError(
            f"the prefixes cannot be read: {error.strerror}",
            code="plan.unreadable-prefixes",
            where=str(path),
            next_step="Name a file that has one prefix on each line.",
        ) from None
