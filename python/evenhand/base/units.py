# SPDX-License-Identifier: Apache-2.0
"""Rates, sizes and durations as people write them: one table for reading and for printing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple

from evenhand.base.errors import RequestError


class Quantity(NamedTuple):
    """One kind of value: the factors of its units, and what to show when a text is refused."""

    name: str
    units: dict[str, Decimal]
    """Unit to factor; the empty unit is a plain number."""
    forms: str
    others: dict[str, str]
    """How other programs and people write it, in lower case, to the unit that is meant. Not read, but named
    in the refusal."""


def _others(**meant: str) -> dict[str, str]:
    """Spellings by the unit that is meant: `fps="pps frames/s"`."""
    return {spelling: unit for unit, spellings in meant.items() for spelling in spellings.split()}


RATE = Quantity(
    "a frame rate",
    {
        "": Decimal(1),
        "fps": Decimal(1),
        "kfps": Decimal(10**3),
        "Mfps": Decimal(10**6),
        "Gfps": Decimal(10**9),
    },
    "500000, 500kfps, 1Mfps, 14.88Mfps",
    _others(
        fps="pps p/s pkt/s pkts/s packets/s f/s fr/s frame/s frames/s frames hz",
        kfps="k kpps kpkt/s kf/s kframes/s khz",
        Mfps="m mpps mpkt/s mf/s mframes/s mhz",
        Gfps="g gpps gpkt/s gf/s gframes/s ghz",
    ),
)
LINE_RATE = Quantity(
    "a line rate with its unit",  # "10" does not mean 10 bit/s to anyone
    {"bps": Decimal(1), "kbps": Decimal(10**3), "Mbps": Decimal(10**6), "Gbps": Decimal(10**9)},
    "10Gbps, 25Gbps, 100Mbps",
    _others(
        bps="b/s bit bit/s bits/s",
        kbps="k kb kb/s kbit kbit/s kbits/s",
        Mbps="m mb mb/s mbit mbit/s mbits/s mbe",
        Gbps="g gb gb/s gbit gbit/s gbits/s gbe gige",
    ),
)
BIT_RATE = Quantity(
    "a rate in bit/s",
    {
        f"{prefix}{unit}": Decimal(10**power)
        for unit in ("bit/s", "bps")
        for prefix, power in (("", 0), ("k", 3), ("M", 6), ("G", 9))
    },
    "2.5Gbit/s, 100Mbps",
    _others(**{"bit/s": "b/s", "kbit/s": "kb/s", "Mbit/s": "mb/s", "Gbit/s": "gb/s"}),
)
"""On the line, with preamble and gap."""
LINE_SHARE = Quantity("a share of the line rate", {"%": Decimal("0.01")}, "50%, 12.5%", {})
SHARES = Quantity("a share", {"": Decimal(1)}, "4, 2.5", {})
SIZE = Quantity(
    "a frame size in octets with the FCS",
    {"": Decimal(1), "B": Decimal(1)},
    "64, 84, 1518B",
    _others(B="byte bytes octet octets o"),
)
MEMORY = Quantity(
    "an amount of memory with its unit",
    {"MB": Decimal(1), "GB": Decimal(1024)},
    "512MB, 2GB",
    _others(MB="m mi mib mbyte mbytes", GB="g gi gib gbyte gbytes"),
)
FILES = Quantity(
    "a size of files with its unit",
    {"MB": Decimal(10**6), "GB": Decimal(10**9), "TB": Decimal(10**12)},
    "500MB, 20GB",
    _others(MB="m mi mib mbyte mbytes", GB="g gi gib gbyte gbytes", TB="t ti tib tbyte tbytes"),
)
DURATION = Quantity(
    "a duration",
    {
        "": Decimal(1),
        "s": Decimal(1),
        "ms": Decimal("1e-3"),
        "us": Decimal("1e-6"),
        "ns": Decimal("1e-9"),
        "min": Decimal(60),
        "h": Decimal(3600),
    },
    "60, 60s, 2.5ms, 100us, 2min",
    _others(
        s="sec secs second seconds",
        ms="msec msecs millis millisecond milliseconds",
        us="\N{MICRO SIGN}s \N{GREEK SMALL LETTER MU}s usec usecs micros microsecond microseconds",
        ns="nsec nsecs nanos nanosecond nanoseconds",
        min="m mins minute minutes",
        h="hr hrs hour hours",
    ),
)
COUNT = Quantity(
    "a whole number",
    {"": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9)},
    "1000000, 1e8, 100M, 1G",
    {"frames": "", **_others(k="thousand kframes", M="mio million mframes", G="b bn billion gframes")},
)
RATIO = Quantity(
    "a ratio",
    {"": Decimal(1), "%": Decimal("0.01"), "ppm": Decimal("1e-6")},
    "0.5%, 0.005, 100ppm",
    {"percent": "%", "per cent": "%", "pct": "%"},
)

LONGEST_TEXT = 100
"""Characters of a quantity."""
MOST_DIGITS = 20
LARGEST_EXPONENT = 30
"""The largest power of ten in a quantity: neither a rate nor a time has more. What is larger is refused
before it is computed: its integer may have millions of digits, and its float may be infinite or 0."""

ETHERNET_GAP_OCTETS = 20
"""8 octets of preamble and 12 of inter-frame gap (RFC 2544 appendix B)."""


LONGEST_S = 1_000_000
"""The engine takes no longer time than this; nor does anyone wait longer for a trial."""


def is_whole(text: str) -> bool:
    """Whether it is a whole number from 0, with no more digits than any number has that is asked for."""
    return text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) <= MOST_DIGITS


def short_repr(text: str, most: int = 60) -> str:
    """The text in quotes for an error; of a long one the beginning, and how long it is."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}... ({len(text):,} characters)"


def parse_rate(text: str, *, where: str = "") -> float:
    """Frames per second, > 0. RequestError shows the text and the accepted forms."""
    return float(_positive(RATE, text, where))


def parse_quantity(quantity: Quantity, text: str, *, where: str = "") -> Decimal:
    """A value > 0 in the quantity's base unit."""
    return _positive(quantity, text, where)


def parse_line_rate(text: str, *, where: str = "") -> float:
    """Bits per second, > 0."""
    return float(_positive(LINE_RATE, text, where))


def parse_duration(text: str, *, where: str = "") -> float:
    """Seconds, from 0 to `LONGEST_S`."""
    value = _parse(DURATION, text, where)
    if value > LONGEST_S:
        raise _refusal(
            DURATION,
            text,
            where,
            f"must be at most {LONGEST_S}s, which is eleven days",
            code="base.out-of-range",
        )
    return float(value)


def parse_size(text: str, *, where: str = "") -> int:
    """Octets including the FCS, a whole number > 0."""
    return _whole(SIZE, _positive(SIZE, text, where), text, where)


def parse_count(text: str, *, where: str = "") -> int:
    """Frames, a whole number > 0."""
    return _whole(COUNT, _positive(COUNT, text, where), text, where)


def parse_memory(text: str, *, where: str = "") -> int:
    """Mebibytes, a whole number > 0."""
    return _whole(MEMORY, _positive(MEMORY, text, where), text, where)


def parse_files(text: str, *, where: str = "") -> int:
    """Octets of files, a whole number > 0."""
    return _whole(FILES, _positive(FILES, text, where), text, where)


def parse_ratio(text: str, *, where: str = "") -> float:
    """A share from 0 to below 1."""
    value = _parse(RATIO, text, where)
    if value >= 1:
        raise _refusal(
            RATIO, text, where, "must be less than 1, that is, less than 100%", code="base.out-of-range"
        )
    return float(value)


def format_rate(rate_fps: float) -> str:
    """Short form with four significant digits: `14.88 Mfps`. Exact values are printed by `format_count`."""
    return _scaled(rate_fps, (("Gfps", 1e9), ("Mfps", 1e6), ("kfps", 1e3)), "fps")


def format_line_rate(rate_bps: float) -> str:
    """`10 Gbps`."""
    return _scaled(rate_bps, (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)), "bps")


def format_bit_rate(rate_bps: float) -> str:
    """`5 Gbit/s`."""
    return _scaled(rate_bps, (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)), "bit/s")


def format_duration(duration_s: float) -> str:
    """`2.5 ms`, `60 s`; from two minutes on `3 min 20 s`."""
    if round(duration_s) >= 7200:
        hours, minutes = divmod(round(duration_s / 60), 60)
        return f"{hours} h {minutes} min"
    if duration_s >= 120:
        minutes, seconds = divmod(round(duration_s), 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    return _scaled(duration_s, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)), "ns", last=1e-9)


def format_ratio(ratio: float) -> str:
    """Percent with at most four significant digits: `0.5 %`, `0.0062 %`."""
    return f"{_four_digits(ratio * 100)} %"


def format_count(count: float) -> str:
    """Whole number in groups of three: `14,880,952`; a fraction keeps one digit, unless it is 0."""
    return f"{count:,}" if isinstance(count, int) else f"{count:,.1f}".removesuffix(".0")


def max_theoretical_fps(line_rate_bps: float, frame_size: int | Fraction) -> int:
    """Maximum theoretical frame rate of Ethernet, rounded down (R2544-16); of frames of several sizes by
    their mean (RFC 6985)."""
    return int(Fraction(line_rate_bps) // (8 * (frame_size + ETHERNET_GAP_OCTETS)))


def _parse(quantity: Quantity, text: str, where: str) -> Decimal:
    value = _value(quantity, text.strip())
    if value is None:
        if _is_too_large(text):
            what = "has too many digits, or is too large or too small"
            raise _refusal(quantity, text, where, what, code="base.out-of-range")
        raise _refusal(quantity, text, where, f"is not {quantity.name}", code="base.not-a-quantity")
    if value < 0:
        raise _refusal(quantity, text, where, "must not be negative", code="base.out-of-range")
    return value


def _is_too_large(text: str) -> bool:
    """Whether it is refused for its length or its magnitude: what it means is not computed."""
    parts = re.fullmatch(r"\s*([\d._]{1,20}\d*?)(\d*(?:[eE][-+]?\d+)?)\s*[^\d,]*", text[: LONGEST_TEXT + 1])
    if parts is None:
        return False
    if len(text) > LONGEST_TEXT:
        return True
    try:
        return not _is_usual(Decimal((parts[1] + parts[2]).replace("_", "")))
    except InvalidOperation:
        return "e" in parts[2].lower()


def _is_usual(number: Decimal) -> bool:
    return number.is_finite() and (number == 0 or abs(number.adjusted()) <= LARGEST_EXPONENT)


def _value(quantity: Quantity, text: str) -> Decimal | None:
    """None if it is not a number, not finite, or of no magnitude that any quantity has."""
    if len(text) > LONGEST_TEXT:
        return None
    # The longest unit that fits, so that `ms` is not read as `s`.
    for unit in sorted(quantity.units, key=len, reverse=True):
        if unit and not text.lower().endswith(unit.lower()):
            continue
        try:
            number = Decimal(text[: len(text) - len(unit)].rstrip().replace("_", ""))
        except InvalidOperation:
            return None
        return number * quantity.units[unit] if _is_usual(number) else None
    return None


def _positive(quantity: Quantity, text: str, where: str) -> Decimal:
    value = _parse(quantity, text, where)
    if value <= 0:
        raise _refusal(quantity, text, where, "must be greater than 0", code="base.out-of-range")
    return value


def _whole(quantity: Quantity, value: Decimal, text: str, where: str) -> int:
    if value != int(value):
        raise _refusal(quantity, text, where, "must be a whole number", code="base.not-whole")
    return int(value)


def _refusal(quantity: Quantity, text: str, where: str, problem: str, *, code: str) -> RequestError:
    meant = _meant(quantity, text.strip()) if len(text) <= LONGEST_TEXT else ""
    return RequestError(
        f"{short_repr(text)} {problem}",
        code=code,
        where=where,
        next_step=f"{meant}Write {quantity.name} like {quantity.forms}.",
    )


_NUMBER_AND_UNIT = re.compile(r"([\d.,_]+(?:[eE][-+]?\d+)?)\s*(.*)")


def _meant(quantity: Quantity, text: str) -> str:
    """The nearest text that would have been read, as the beginning of a sentence; empty if there is none."""
    parts = _NUMBER_AND_UNIT.fullmatch(text)
    if parts is None:
        return ""
    number, unit = _with_point(parts[1]), parts[2].lower()
    near = _with_unit(quantity, number, unit)
    if near is not None and near != text and _value(quantity, near) is not None:
        return f"Did you mean {near}? "
    return _meant_frames(number, unit) if quantity is RATE else ""


def _with_unit(quantity: Quantity, number: str, unit: str) -> str | None:
    """The number with the quantity's own unit that this spelling means; None if it means none."""
    own = next((each for each in quantity.units if each.lower() == unit), quantity.others.get(unit))
    return None if own is None else f"{number}{own}"


def _meant_frames(number: str, unit: str) -> str:
    """What a bit rate, or a share of a line, is in frames: people think in these, and the frame size
    decides."""
    line, share, what = _with_unit(LINE_RATE, number, unit), Decimal(1), ""
    if unit.startswith("%"):
        line, share, what = "10Gbps", _value(RATIO, f"{number}%") or Decimal(0), f"{number}% of "
    rate_bps = None if line is None else _value(LINE_RATE, line)
    frames = 0 if rate_bps is None else max_theoretical_fps(float(share * rate_bps), 64)
    return f"A rate counts frames: {what}{line} is {frames}fps with 64 octet frames. " if frames else ""


def _with_point(number: str) -> str:
    """`14,880,952` as we print it, and `0,5` as half of the world writes it."""
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", number):
        return number.replace(",", "")
    return number.replace(",", ".") if number.count(",") == 1 else number


def _scaled(value: float, steps: tuple[tuple[str, float], ...], rest: str, *, last: float = 1.0) -> str:
    for unit, factor in steps:
        # 999.96 kfps would print as "1000 kfps": the next unit takes over where rounding does.
        if abs(value) >= factor * 0.99995:
            return f"{_four_digits(value / factor)} {unit}"
    return f"{_four_digits(value / last)} {rest}"


def _four_digits(value: float) -> str:
    text = f"{value:.4g}"
    return f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text else text


SIGNIFICANT = 4
"""Digits that the smallest value keeps."""
MOST_DECIMALS = 6
"""A nanosecond where the unit is a millisecond."""
WHOLE_FPS = "whole fps"
"""Kind of loads that are shown in full, as `--rate` takes them."""
LOSS, SHARE, LEFT_OUT = "lost frames of all", "share of a maximum", "time left out"
"""Kinds of ratios that stand beside other ratios in a table: of the frames, of a maximum or a whole, of the
time. Each keeps its own number of decimals."""
MULTIPLE = "multiple"
"""Kind of ratios that are not read in percent, such as 1.25 times the mean."""
MEAN_FRAMES = "mean frames"
"""Kind of counts that are means: with a decimal if any of them has one."""
_SCALES: dict[str, Sequence[tuple[str, float]]] = {
    "fps": (("Gfps", 1e9), ("Mfps", 1e6), ("kfps", 1e3), ("fps", 1.0)),
    "us": (("ms", 1e3),),
    "s": (("s", 1.0),),
    "ratio": (("%", 0.01),),
    WHOLE_FPS: (("fps", 1.0),),
    LOSS: (("%", 0.01),),
    SHARE: (("%", 0.01),),
    LEFT_OUT: (("%", 0.01),),
    MULTIPLE: (("", 1.0),),
    MEAN_FRAMES: (("frames", 1.0),),
}
"""Kinds of values by the unit in which they are kept: units in which people read them, and their factors. For
several values, the largest in which no value is below 1. Delays are read in milliseconds, as RFC 8219
asks."""
_DIGITS: dict[str, tuple[int, int, int]] = {
    LOSS: (2, 2, 9),
    SHARE: (2, 2, MOST_DECIMALS),
    LEFT_OUT: (2, 1, MOST_DECIMALS),
    MEAN_FRAMES: (0, 1, 1),
}
"""Kinds whose values may be magnitudes apart: digits that the smallest keeps, and the fewest and the most
decimals. A loss of 0.0031 % beside one of 56.25 % needs four decimals, not six; one frame of a billion is
never shown as no loss."""


@dataclass(frozen=True, slots=True)
class OneUnit:
    """How all values of a kind are written."""

    unit: str
    factor: float
    """The unit in the unit in which values are kept."""
    decimals: int

    def write(self, value: float) -> str:
        """`5.200`, without the unit."""
        return f"{value / self.factor:,.{self.decimals}f}"


def one_unit(values: Iterable[float], kind: str) -> OneUnit:
    """
    Args:
        values: Without any the unit is the smallest.
        kind: The unit in which they are kept: fps, us, s, ratio, or one of the kinds above; anything else is
            a count.
    """
    known = [abs(value) for value in values if math.isfinite(value)]
    above = [value for value in known if value]
    scales = _SCALES.get(kind, ((kind, 1.0),))
    least = min(above, default=0.0)
    # 999.96 kfps would be written as "1000.0 kfps": the next unit takes over where rounding does.
    unit, factor = next((scale for scale in scales if least >= scale[1] * 0.99995), scales[-1])
    if kind not in _SCALES or kind == WHOLE_FPS:
        return OneUnit(unit, factor, 0)
    significant, fewest, most = _DIGITS.get(kind, (SIGNIFICANT, 0, MOST_DECIMALS))
    places = max(significant - 1 - math.floor(math.log10(least / factor)), fewest) if least else 0
    decimals = min(max(places, 0), most)
    # Zeros that all of them would end in say nothing.
    while decimals and all(f"{value / factor:.{decimals}f}".endswith("0") for value in known):
        decimals -= 1
    return OneUnit(unit, factor, decimals)


def representatives(values: Iterable[float], *kinds: str) -> list[float]:
    """A few of these values, beside which `one_unit` writes any other value as beside all of them.

    Args:
        kinds: As for `one_unit`; the few are right for each of them.
    """
    known = [value for value in values if math.isfinite(value)]
    found = {min((value for value in known if value), key=abs, default=0.0)}
    for kind in kinds:
        for _, factor in () if kind == WHOLE_FPS else _SCALES.get(kind, ()):
            for decimals in range(1, MOST_DECIMALS + 1):
                last_digits = (f"{value / factor:.{decimals}f}"[-1] for value in known)
                place = next((place for place, digit in enumerate(last_digits) if digit != "0"), None)
                found |= set() if place is None else {known[place]}
    return list(found)


def write_alone(value: float, kind: str) -> str:
    """One value with its unit, where it has no column: `5.2 kfps`, `0.0125 ms`."""
    unit = one_unit([value], kind)
    return f"{unit.write(value)} {unit.unit}".rstrip()
