# SPDX-License-Identifier: Apache-2.0
"""Station 1: frames of several sizes in a sequence that repeats, in the notation of RFC 6985."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from string import ascii_uppercase
from typing import TypeVar

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_type, check_types

LETTERS = {
    "a": 64,
    "b": 128,
    "c": 256,
    "d": 512,
    "e": 1024,
    "f": 1280,
    "g": 1518,
    "h": 2112,
    "i": 9000,
    "j": 16000,
}
"""Sizes of RFC 6985, section 4, in octets with the FCS."""
MTU_LETTER = "z"
"""Has no size of its own: each result states it (RFC 6985, section 4)."""
MOST_FRAMES = 256
"""Most frames of a sequence."""
FORMS = (
    "IMIX - aaafg, imix:aaafg, imix:aaz:z=1400, imix:AAAG:A=84:G=1518, imix:aaafg:frames=200:seed=7, or"
    " 64:7,570:4,1518:1"
)
ALGORITHM = "SplitMix64 and Fisher-Yates"
"""How an order is drawn; each result states it with the seed (RFC 6985, section 5)."""

_Place = TypeVar("_Place")
_LONG = re.compile(
    r"(?P<custom>CUSTOM\s+)?IMIX\s*-\s*(?P<sequence>[a-zA-Z]+)\s*(?:\((?P<sizes>[^)]*)\))?", re.IGNORECASE
)
_SHORT = re.compile(r"imix:(?P<sequence>[a-zA-Z]+)(?P<sizes>(?::[^:]*)*)", re.IGNORECASE)
_WEIGHTED = re.compile(r"\s*\d{1,5}:\d{1,4}(?:\s*,\s*\d{1,5}:\d{1,4})+\s*")
_SIZE = re.compile(r"\s*([a-zA-Z])\s*=\s*(\d{1,5})\s*")
_DRAW = re.compile(r"\s*(frames|seed)\s*=\s*(\d{1,20})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnOrder:
    """The letters, repeated up to a number of frames, in a pseudorandom order. Their shares stay exact, and a
    seed always gives the same order."""

    frames: int
    """Frames after which the order repeats; a multiple of the number of letters."""
    seed: int = 1
    """0 to 2^64 - 1."""

    def __post_init__(self) -> None:
        for number, where in ((self.frames, "frames"), (self.seed, "seed")):
            if not isinstance(number, int):  # how large it may be, the sequence says
                check_type(number, int, where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imix:
    """A sequence of frame sizes that repeats: frame k of a direction has the size of letter k modulo its
    length, or of place k in a drawn order. Printed as RFC 6985 writes it; a drawn order with its number of
    frames and seed."""

    sequence: str
    """A letter for each frame: small letters have the sizes of the RFC, capital letters sizes of your own."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Sizes of z and of capital letters, in octets with the FCS."""
    drawn: DrawnOrder | None = None
    """None if frames are sent in the order of the letters."""

    def __post_init__(self) -> None:
        check_types(self)
        _check(self)

    @property
    def letters(self) -> str:
        """Letter of each frame, in the order in which they are sent."""
        if self.drawn is None:
            return self.sequence
        return "".join(
            in_drawn_order(self.sequence * (self.drawn.frames // len(self.sequence)), self.drawn.seed)
        )

    @property
    def octets(self) -> tuple[int, ...]:
        """Size of each frame in the order in which they are sent, with the FCS."""
        known = LETTERS | dict(self.sizes)
        return tuple(known[letter] for letter in self.letters)

    @property
    def mean(self) -> Fraction:
        """Exact mean size of a frame, in octets."""
        octets = self.octets
        return Fraction(sum(octets), len(octets))

    @property
    def is_custom(self) -> bool:
        """Whether it has sizes of your own."""
        return not self.sequence.islower()

    def __str__(self) -> str:
        stated = ", ".join(self._stated)
        return (
            f"{'CUSTOM ' if self.is_custom else ''}IMIX - {self.sequence}{f' ({stated})' if stated else ''}"
        )

    @property
    def short(self) -> str:
        """`imix:aaz:z=1400`: the form that the command line and campaign files take without quotes."""
        return ":".join(["imix", self.sequence, *self._stated])

    @property
    def _stated(self) -> list[str]:
        order = [] if self.drawn is None else [f"frames={self.drawn.frames}", f"seed={self.drawn.seed}"]
        return [f"{letter}={size}" for letter, size in self.sizes] + order

    @property
    def order(self) -> str:
        """`in the order of the letters`, or how they are drawn, for use in a sentence."""
        if self.drawn is None:
            return "in the order of the letters"
        return f"in a pseudorandom order of {self.drawn.frames} frames ({ALGORITHM}, seed {self.drawn.seed})"

    @property
    def counted(self) -> str:
        """`3 x 64, 1280 and 1518 octets`: how often each size is among the frames that repeat."""
        parts = [
            f"{count} x {size}" if count > 1 else str(size)
            for size, count in sorted(Counter(self.octets).items())
        ]
        return (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]) + " octets"


FrameSize = int | Imix
"""Octets with the FCS of all frames, or a sequence of sizes."""


def is_weighted(text: str) -> bool:
    """Whether these are sizes with weights, `64:7,570:4,1518:1`, as other testers write them."""
    return _WEIGHTED.fullmatch(text) is not None


def is_imix(text: str) -> bool:
    """Whether a frame size is meant as a sequence; it may be a wrong one."""
    return is_weighted(text) or re.match(r"\s*(custom\s+)?imix\b", text, re.IGNORECASE) is not None


def parse_imix(text: str, *, where: str = "") -> Imix:
    """`IMIX - aaafg` or `imix:aaafg`; sizes of z and of capital letters follow it. RequestError shows the
    text and the forms."""
    check_type(text, str, where=where or "text")
    if is_weighted(text):
        return _of_weights(text, where)
    long, short = _LONG.fullmatch(text.strip()), _SHORT.fullmatch(text.strip())
    found = long or short
    if found is None:
        raise RequestError(
            f"{text!r} is not a sequence of frame sizes",
            code="plan.not-an-imix",
            where=where,
            next_step=f"Write it as {FORMS}.",
        )
    stated = (found["sizes"] or "").split("," if long else ":")
    sizes, order = [], {}
    for part in stated if long and found["sizes"] else stated[1:]:
        if draw := _DRAW.fullmatch(part):
            if draw[1].lower() in order:
                raise RequestError(
                    f"{text!r} has {draw[1].lower()} twice",
                    code="plan.imix-given-twice",
                    where=where,
                    next_step="Write it once.",
                )
            order[draw[1].lower()] = int(draw[2])
            continue
        size = _SIZE.fullmatch(part)
        if size is None:
            raise RequestError(
                f"{part.strip()!r} in {text!r} is neither the size of a letter nor frames="
                " or seed= of a drawn order",
                code="plan.imix-unknown-part",
                where=where,
                next_step="Write, for example, A=84 or frames=200.",
            )
        sizes.append((size[1], int(size[2])))
    if "seed" in order and "frames" not in order:
        raise RequestError(
            f"{text!r} has a seed, but its order is not drawn",
            code="plan.imix-seed-without-order",
            where=where,
            next_step="Add the number of frames in the order: frames=200.",
        )
    try:
        return Imix(
            sequence=found["sequence"], sizes=tuple(sizes), drawn=DrawnOrder(**order) if order else None
        )
    except RequestError as error:
        raise RequestError(error.what, code=error.code, where=where, next_step=error.next_step) from error


def _of_weights(text: str, where: str) -> Imix:
    """The shortest sequence with these shares, its sizes as evenly mixed as they can be: each next frame has
    the size that is furthest behind its share."""
    pairs = [(int(size), int(weight)) for size, weight in re.findall(r"(\d+):(\d+)", text)]
    sizes, divisor = dict(pairs), gcd(*(weight for _, weight in pairs))
    total = sum(sizes.values()) // max(divisor, 1)
    for is_wrong, what, code in (
        (len(sizes) < len(pairs), "a size is given twice", "plan.imix-given-twice"),
        (0 in sizes.values(), "a weight is 0", "plan.imix-no-weight"),
        (len(sizes) > len(ascii_uppercase), f"{len(sizes)} sizes", "plan.imix-too-many-sizes"),
        (total > MOST_FRAMES, f"{total} frames until the sizes repeat", "plan.imix-length"),
    ):
        if is_wrong:
            raise RequestError(
                f"{text.strip()!r}: {what}",
                code=code,
                where=where,
                next_step=f"Write up to {len(ascii_uppercase)} sizes with weights of at most {MOST_FRAMES}"
                " together: 64:7,570:4,1518:1.",
            )
    weights = {
        letter: weight // divisor for letter, weight in zip(ascii_uppercase, sizes.values(), strict=False)
    }
    sequence = ""
    for place in range(1, total + 1):
        sequence += max(weights, key=lambda each: weights[each] * place - total * sequence.count(each))
    return Imix(sequence=sequence, sizes=tuple(zip(weights, sizes, strict=True)))


def mean_octets(size: FrameSize) -> Fraction:
    """Mean size of a frame, with the FCS."""
    return size.mean if isinstance(size, Imix) else Fraction(size)


def largest_octets(size: FrameSize) -> int:
    """Size of its largest frame, with the FCS."""
    return max(size.octets) if isinstance(size, Imix) else size


def whole_octets(size: FrameSize) -> int:
    """The same as a whole number, for columns that hold one."""
    return round(mean_octets(size))


def describe_size(size: FrameSize) -> str:
    """`64 octets`, `IMIX - aaafg (mean 598 octets)`."""
    if not isinstance(size, Imix):
        return f"{size} octets"
    return (
        f"{size} (mean {float(size.mean):.6g}"
        f" octets{'' if size.drawn is None else f', order by {ALGORITHM}'})"
    )


def describe_frames(size: FrameSize) -> str:
    """`64 octet frames`, `frames of IMIX - aaafg (mean 598 octets)`."""
    return f"frames of {describe_size(size)}" if isinstance(size, Imix) else f"{size} octet frames"


def _check(imix: Imix) -> None:
    name = f"IMIX - {imix.sequence}"
    if not 1 <= len(imix.sequence) <= MOST_FRAMES:
        raise RequestError(
            f"an IMIX of {len(imix.sequence)} frames",
            code="plan.imix-length",
            next_step=f"Write 1 to {MOST_FRAMES} letters.",
        )
    if not imix.sequence.islower() and not imix.sequence.isupper():
        raise RequestError(
            f"{name}: letters of RFC 6985 are lower case and those of a custom sequence"
            " are upper case, but this sequence has both",
            code="plan.imix-mixed-case",
            next_step=(
                "Use upper-case letters for all frames, and give a size for each: imix:AAAG:A=84:G=1518."
            ),
        )
    stated = dict(imix.sizes)
    if len(stated) < len(imix.sizes):
        raise RequestError(
            f"{name}: a letter has two sizes",
            code="plan.imix-given-twice",
            next_step="Give one size for each letter.",
        )
    for letter in dict.fromkeys(imix.sequence):
        if letter in stated or letter in LETTERS:
            continue
        if letter.isupper() or letter == MTU_LETTER:
            raise RequestError(
                f"{name}: the size of {letter} is missing",
                code="plan.imix-size-missing",
                next_step=f"Add it: imix:{imix.sequence}:{letter}=1400.",
            )
        raise RequestError(
            f"{name}: {letter!r} is not a letter of a sequence",
            code="plan.imix-unknown-letter",
            next_step=f"Use {', '.join(LETTERS)} or {MTU_LETTER} (RFC 6985), or upper-case letters.",
        )
    for letter in stated:
        if letter in LETTERS:
            raise RequestError(
                f"{name}: {letter} means {LETTERS[letter]} octets in RFC 6985",
                code="plan.imix-size-of-rfc-letter",
                next_step="Use upper-case letters for other sizes.",
            )
        if letter not in imix.sequence:
            raise RequestError(
                f"{name}: a size is given for {letter}, but no frame uses {letter}",
                code="plan.imix-size-unused",
                next_step="Leave it out.",
            )
    if imix.drawn is not None:
        _check_order(name, len(imix.sequence), imix.drawn)


def _check_order(name: str, letters: int, order: DrawnOrder) -> None:
    most = MOST_FRAMES // letters * letters
    multiple = f"Write a multiple of {letters}, at most {most}: frames={most}."
    if not letters <= order.frames <= MOST_FRAMES:
        raise RequestError(
            f"{name}: an order must have {letters} to {MOST_FRAMES} frames, not {order.frames}",
            code="plan.imix-order-length",
            next_step=multiple,
        )
    if order.frames % letters:
        raise RequestError(
            f"{name}: an order of {order.frames} frames cannot contain each of {letters}"
            " letters equally often",
            code="plan.imix-order-uneven",
            next_step=multiple,
        )
    if not 0 <= order.seed < 2**64:
        raise RequestError(
            f"{name}: {order.seed} is not a seed",
            code="plan.imix-not-a-seed",
            next_step="Write 0 to 2^64 - 1.",
        )


def in_drawn_order(letters: Sequence[_Place], seed: int) -> list[_Place]:
    """From the last place down, each place changes with one that is drawn of those up to itself: number r *
    count / 2^64, rounded down."""
    places, state, mask = list(letters), seed, 2**64 - 1
    for last in range(len(places) - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & mask
        r = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        r = ((r ^ (r >> 27)) * 0x94D049BB133111EB) & mask
        other = ((r ^ (r >> 31)) * (last + 1)) >> 64
        places[last], places[other] = places[other], places[last]
    return places
