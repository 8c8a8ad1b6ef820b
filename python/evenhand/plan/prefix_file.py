# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: prefixes from a file, as a list, a router or a routing table's dump has them.

A megabyte at a time. If every line of it begins with a prefix, one pattern finds them all; otherwise each
line is looked at, to say which line is wrong and which word.
"""

from __future__ import annotations

import codecs
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

_STATUS = r"(?:[A-Za-z]?[ sdhrS]?[*>][*>=]*(?:[sdhrSmbfxqto] | )?[>=]*i? *)"
"""What `show bgp` and `show ip route` have before a prefix: `*> `, `*>i`, `V*> `, `B>* `, `B>q `."""
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

_NOT_SENT_TO = (
    r"\s*(?:unicast\s+)?(?:default|local|broadcast|multicast|anycast|blackhole|unreachable|prohibit|throw)\s"
    r"|\s*(?:unicast\s+)?\S+\s+(?:nhid\s+\d+\s+)?dev\s"
    r"|.*\sproto kernel\b|.*is directly connected|.*\sunreachable \(|[CL][>* ]+\S|[A-Z]>\*?r\s"
    r"|\s*\S+/\d+\s+(?:blackhole|unreachable|prohibit)"
    r"|\s*(?:\S*[*>]\S*\s+)?(?:0\.0\.0\.0/0|::/0)(?:\s|$)|[A-Za-z]   ?\S+/\d|.*\bsubnetted\b"
)
"""Lines of a router's dump that are no route to a next hop, or not the one in use; and the default route, in
which everything lies."""
_CONTINUATION = (
    r"\s+(?:nexthop|via|unicast|blackhole|unreachable|Type:|BGP\.)\b"
    r"|[ A-Za-z]{0,2}\*[*>=i ]{0,4}\s{8,}\S|\s{16,}[^\s/]+\s"
)
"""A further next hop, or path, of the prefix above; or its own next hop, for which there was no room."""
_SKIPPED = re.compile(rf"{_NOT_SENT_TO}|{_CONTINUATION}|\s*[#!]|\s*$", re.ASCII)
_ON_A_LINK = re.compile(r"\s+dev\s", re.ASCII)
"""The prefix above is that of a link."""
_MAY_BE_SKIPPED = re.compile(
    r"proto kernel|directly connected|/0\s|unreachable|blackhole|prohibit|>\*?r |/\d+ (?:nhid \d+ )?dev ",
    re.ASCII,
)
"""What a line may have that looks like any other where it begins."""
_SEVERAL = re.compile(r"^[ \t]*[\da-fA-F.:]+/\d+[ \t]*[,;][ \t]*([\da-fA-F.:]+/\d+)", re.MULTILINE)
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
        lines = np.arange(line, line + chunk.count("\n"), dtype=np.uint32)
        is_plain = self.heading_end is None and _MAY_BE_SKIPPED.search(chunk) is None
        quick = self._read_quickly(chunk, lines) if is_plain else None
        self.found.append(quick or self._read_lines(chunk, line))

    def _read_quickly(self, chunk: str, numbers: NDArray[np.uint32]) -> _Found | None:
        """None if a line has no prefix, or one is wrong.

        Args:
            numbers: Those of the chunk's lines.
        """
        if _SEVERAL.search(chunk) is not None:
            return None
        lines = len(numbers)
        for version in (self.version,) if self.version is not None else (4, 6):
            matches = _QUICK[version].findall(chunk)
            if matches and len(matches) == lines:
                break
        else:
            return None
        addresses, texts = zip(*matches, strict=True)
        lengths = list(map(int, texts))
        try:
            octets = b"".join(map(partial(socket.inet_pton, FAMILY[version]), addresses))
        except OSError:
            return None
        if max(lengths) > WIDTH[version]:
            return None
        found = _Found(octets, bytes(lengths), numbers)
        masks = host_masks(np.frombuffer(found.lengths, dtype=np.uint8), version)
        first = unpacked(octets, version)
        if (first.high & masks.high).any() or (first.low & masks.low).any():
            return None
        if self.version is None:
            self.version, self.version_line = version, int(numbers[0])
        return found

    def _read_lines(self, chunk: str, line: int) -> _Found:
        kept: list[tuple[int, str]] = []
        for number, text in enumerate(chunk.split("\n")[:-1], line):
            if _ON_A_LINK.match(text):
                self._forget(number - 1, kept)
            elif self._counts(text):
                kept.append((number, text))
        lines = np.array([number for number, _ in kept], dtype=np.uint32)
        quick = self._read_quickly("".join(f"{text}\n" for _, text in kept), lines) if kept else None
        if quick is not None:
            return quick
        octets, lengths = bytearray(), bytearray()
        for number, text in kept:
            network = self._network(_word_of(text), number, has_status=_is_of_bgp(text))
            if (several := _SEVERAL.match(text)) is not None:
                raise self._not_a_prefix(f"{several[1]} is a second prefix of its line", number)
            octets += network.network_address.packed
            lengths.append(network.prefixlen)
        return _Found(bytes(octets), bytes(lengths), lines)

    def _forget(self, number: int, kept: list[tuple[int, str]]) -> None:
        """The prefix of this line, if it has one. It may be the last line of the chunk before."""
        last = self.found[-1] if self.found else None
        if kept and kept[-1][0] == number:
            kept.pop()
        elif not kept and last is not None and len(last.lines) and last.lines[-1] == number:
            octets = last.octets[: -(WIDTH[self.version or 4] // 8)]
            self.found[-1] = _Found(octets, last.lengths[:-1], last.lines[:-1])

    def _counts(self, text: str) -> bool:
        """Whether the line should have a prefix."""
        if self.heading_end is not None:
            if self.heading_end.match(text):
                self.heading_end = None
            return False
        if (heading := _HEADING.match(text)) is not None:
            self.heading_end = _HEADING_END.get(heading[0])
            return False
        return _SKIPPED.match(text + " ") is None

    def _not_a_prefix(self, what: str, number: int) -> RequestError:
        return RequestError(
            what,
            code="plan.not-a-prefix",
            where=f"{self.path}, line {number}",
            next_step="Begin each line with a prefix, such as 198.18.0.0/24 or 2001:2:0:1::/64;"
            " lines that begin with # are skipped.",
        )

    def _network(
        self, word: str, number: int, *, has_status: bool
    ) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        where = f"{self.path}, line {number}"
        try:
            network = ipaddress.ip_network(word, strict=False)
            if "/" in word and not word.rpartition("/")[2].isdecimal():
                raise ValueError(word)
        except ValueError:
            raise self._not_a_prefix(f"{short_repr(word)} is not a prefix", number) from None
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


def _word_of(text: str) -> str:
    """What should be the line's prefix."""
    typed = _TYPED.match(text)
    if typed is not None:
        return typed[1]
    found = _LINE.match(text)
    return text.strip() if found is None else found[2]


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
                chunk = chunk.removeprefix(codecs.BOM_UTF8) if line == 1 else chunk
                text = chunk.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
                yield line, text
                line += text.count("\n")
    except OSError as error:
        raise RequestError(
            f"the prefixes cannot be read: {error.strerror}",
            code="plan.unreadable-prefixes",
            where=str(path),
            next_step="Name a file that has one prefix on each line.",
        ) from None
