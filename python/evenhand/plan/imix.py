# SPDX-License-Identifier: Apache-2.0
"""Station 1: frames of several sizes in a sequence that repeats, in the notation of RFC 6985."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from evenhand.errors import RequestError

LETTERS = {"a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000, "j": 16000}
"""Sizes of RFC 6985, section 4, in octets with the FCS."""
MTU_LETTER = "z"
"""Has no size of its own: each result states it (RFC 6985, section 4)."""
MOST_FRAMES = 256
"""Of a sequence."""
FORMS = "IMIX - aaafg, imix:aaafg, imix:aaz:z=1400, imix:AAAG:A=84:G=1518"

_LONG = re.compile(r"(?P<custom>CUSTOM\s+)?IMIX\s*-\s*(?P<sequence>[a-zA-Z]+)\s*(?:\((?P<sizes>[^)]*)\))?", re.IGNORECASE)
_SHORT = re.compile(r"imix:(?P<sequence>[a-zA-Z]+)(?P<sizes>(?::[^:]*)*)", re.IGNORECASE)
_SIZE = re.compile(r"\s*([a-zA-Z])\s*=\s*(\d{1,5})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imix:
    """A sequence of frame sizes: frame k of a direction has that of letter k modulo its length. Printed as RFC 6985 writes it."""

    sequence: str
    """A letter for each frame: small ones as the RFC has them, capital ones with sizes of one's own."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Of z and of capital letters, in octets with the FCS."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def octets(self) -> tuple[int, ...]:
        """Of each frame of the sequence, with the FCS."""
        known = LETTERS | dict(self.sizes)
        return tuple(known[letter] for letter in self.sequence)

    @property
    def mean(self) -> Fraction:
        """Octets of a frame, exactly."""
        return Fraction(sum(self.octets), len(self.sequence))

    @property
    def is_custom(self) -> bool:
        """Whether sizes are one's own."""
        return not self.sequence.islower()

    def __str__(self) -> str:
        stated = ", ".join(f"{letter}={size}" for letter, size in self.sizes)
        return f"{'CUSTOM ' if self.is_custom else ''}IMIX - {self.sequence}{f' ({stated})' if stated else ''}"

    @property
    def short(self) -> str:
        """`imix:aaz:z=1400`, as the command line and campaign files take it without quotes."""
        return ":".join(["imix", self.sequence, *(f"{letter}={size}" for letter, size in self.sizes)])

    @property
    def counted(self) -> str:
        """`3 x 64, 1280 and 1518 octets`: how often each size is in the sequence."""
        parts = [f"{count} x {size}" if count > 1 else str(size) for size, count in sorted(Counter(self.octets).items())]
        return (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]) + " octets"


FrameSize = int | Imix
"""Octets with the FCS of all frames, or a sequence of sizes."""


def is_imix(text: str) -> bool:
    """Whether a frame size is meant as a sequence; it may be a wrong one."""
    return re.match(r"\s*(custom\s+)?imix\b", text, re.IGNORECASE) is not None


def parse_imix(text: str, *, where: str = "") -> Imix:
    """`IMIX - aaafg` or `imix:aaafg`; sizes of z and of capital letters stand behind it. RequestError shows the text and the forms."""
    long, short = _LONG.fullmatch(text.strip()), _SHORT.fullmatch(text.strip())
    found = long or short
    if found is None:
        raise RequestError(f"{text!r} is no sequence of frame sizes", where=where, next_step=f"Write it like {FORMS}.")
    stated = (found["sizes"] or "").split("," if long else ":")
    sizes = []
    for part in stated if long and found["sizes"] else stated[1:]:
        size = _SIZE.fullmatch(part)
        if size is None:
            raise RequestError(f"{part.strip()!r} in {text!r} is no size of a letter", where=where, next_step="Write it like A=84.")
        sizes.append((size[1], int(size[2])))
    try:
        return Imix(sequence=found["sequence"], sizes=tuple(sizes))
    except RequestError as error:
        raise RequestError(error.what, where=where, next_step=error.next_step) from error


def mean_octets(size: FrameSize) -> Fraction:
    """Of a frame, with the FCS."""
    return size.mean if isinstance(size, Imix) else Fraction(size)


def largest_octets(size: FrameSize) -> int:
    """Of its largest frame, with the FCS."""
    return max(size.octets) if isinstance(size, Imix) else size


def whole_octets(size: FrameSize) -> int:
    """The same as a whole number, for columns that hold one."""
    return round(mean_octets(size))


def describe_size(size: FrameSize) -> str:
    """`64 octets`, `IMIX - aaafg (mean 598 octets)`."""
    return f"{size} (mean {float(size.mean):.6g} octets)" if isinstance(size, Imix) else f"{size} octets"


def describe_frames(size: FrameSize) -> str:
    """`64 octet frames`, `frames of IMIX - aaafg (mean 598 octets)`."""
    return f"frames of {describe_size(size)}" if isinstance(size, Imix) else f"{size} octet frames"


def _check(imix: Imix) -> None:
    name = f"IMIX - {imix.sequence}"
    if not 1 <= len(imix.sequence) <= MOST_FRAMES:
        raise RequestError(f"an IMIX of {len(imix.sequence)} frames", next_step=f"Write 1 to {MOST_FRAMES} letters.")
    if not imix.sequence.islower() and not imix.sequence.isupper():
        raise RequestError(
            f"{name}: letters of RFC 6985 are small, those of a custom sequence capital, and here are both",
            next_step="Use capital letters for all frames, and give each its size: imix:AAAG:A=84:G=1518.",
        )
    stated = dict(imix.sizes)
    if len(stated) < len(imix.sizes):
        raise RequestError(f"{name}: a letter has two sizes", next_step="Give each letter one.")
    for letter in dict.fromkeys(imix.sequence):
        if letter in stated or letter in LETTERS:
            continue
        if letter.isupper() or letter == MTU_LETTER:
            raise RequestError(f"{name}: the size of {letter} is not stated", next_step=f"Add it: imix:{imix.sequence}:{letter}=1400.")
        raise RequestError(
            f"{name}: there is no letter {letter!r}", next_step=f"Use {', '.join(LETTERS)} or {MTU_LETTER} (RFC 6985), or capital letters."
        )
    for letter in stated:
        if letter in LETTERS:
            raise RequestError(
                f"{name}: {letter} is {LETTERS[letter]} octets by RFC 6985", next_step="Use capital letters for other sizes."
            )
        if letter not in imix.sequence:
            raise RequestError(f"{name}: {letter} has a size, but no frame is {letter}", next_step="Leave it out.")
