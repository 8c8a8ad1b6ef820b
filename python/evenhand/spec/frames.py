# SPDX-License-Identifier: Apache-2.0
"""Specification: frame sizes, as verbs and campaign files have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from evenhand.base.errors import RequestError
from evenhand.base.option import Option, needed_field
from evenhand.base.units import parse_size
from evenhand.plan import NO_TAGS, AddressPlan, FrameSize, SideCounts, is_imix, is_weighted, parse_imix
from evenhand.procedure import (
    FRAME_SIZE_SETS,
    MAX_FRAME_SIZE,
    USUAL_MAX_FRAME_SIZE,
    check_frame_sizes,
    choose_frame_size,
    choose_frames,
)
from evenhand.procedure.descriptor import FrameSizes, Procedure
from evenhand.procedure.registry import PROCEDURES

_LIST = re.compile(r"\s*\d+\s*B?(?:\s*[,; ]\s*\d+\s*B?)+\s*")
_RANGE = "Frame size with FCS: IPv4 from 64, IPv6 from 84, up to 9216."
_IMIX = (
    " imix:aaafg is the sequence IMIX - aaafg of RFC 6985; imix:aaafg:frames=250 shuffles 250 frames of it;"
    " 64:7,570:4,1518:1 are sizes with weights."
)
_SMALLEST = " Default: the smallest."
_SETS = " all: those of RFC 2544 and RFC 5180, up to 1518; jumbo: 4096, 8192, 9216; rfc8219: all of RFC 8219."
_SIZE = Option(metavar="OCTETS", help=_RANGE + _SMALLEST)
_FRAMES = Option(metavar="OCTETS|imix:LETTERS", help=_RANGE + _IMIX + _SMALLEST)
_SIZES = Option(
    declared="--frame-size",
    key="frame-sizes",
    metavar="OCTETS|imix:LETTERS,...|all|jumbo|rfc8219",
    help=_RANGE + _IMIX + " Several sizes make one table." + _SETS + _SMALLEST,
)
FrameSizeOption = Annotated[str | None, _SIZE]
FramesOption = Annotated[str | None, _FRAMES]
FrameSizesOption = Annotated[list[str] | None, _SIZES]
FRAME_SIZES = needed_field("frame_size", FrameSizesOption)
FRAME_SIZE_OPTIONS = {
    FrameSizes.ONE: FrameSizeOption,
    FrameSizes.ONE_OR_MIX: FramesOption,
    FrameSizes.WHOLE: FrameSizesOption,
    FrameSizes.SEVERAL: FrameSizesOption,
}
"""The type of a verb's parameter `frame_size`."""
LargestFrameOption = Annotated[
    str | None,
    Option(
        metavar="OCTETS",
        help=(
            f"Largest frame that the DUT's links accept, with FCS, up to {MAX_FRAME_SIZE};"
            " more than 1518 for jumbo frames. Default: 1518."
        ),
    ),
]
VlanOption = Annotated[
    str | None,
    Option(
        metavar="ID|ID,ID",
        help="VLAN of both links, or left,right; OUTER.INNER means two tags (802.1ad and 802.1Q), none"
        " means no tag. Default: none.",
    ),
]


def read_size(size: int | str) -> FrameSize:
    """The frame size of a point: octets, or a sequence."""
    return parse_imix(size, where="--frame-size") if isinstance(size, str) and is_imix(size) else int(size)


def read_frame_size(plan: AddressPlan, text: str | None) -> tuple[int, str | None]:
    """Where all frames are of one size; see `choose_frame_size`."""
    _refuse_several(text)
    if text is not None and is_imix(text):
        raise RequestError(
            f"{text!r}: frames of several sizes are not allowed here (back-to-back: RFC 9004, section 3)",
            code="spec.mixed-sizes",
            where="--frame-size",
            next_step="Give one size.",
        )
    return choose_frame_size(plan, None if text is None else parse_size(text, where="--frame-size"))


def read_frames(
    plan: AddressPlan, text: str | None, *, tag_octets: SideCounts = NO_TAGS
) -> tuple[FrameSize, str | None]:
    """Where a sequence of sizes is possible as well (R6985-01); see `choose_frames`."""
    _refuse_several(text)
    return choose_frames(plan, None if text is None else _parse_frames(text), tag_octets=tag_octets)


def _refuse_several(text: str | None) -> None:
    """RequestError where one size is taken, and several are given."""
    if text is None or is_imix(text) or not (text.strip() in FRAME_SIZE_SETS or _LIST.fullmatch(text)):
        return
    verbs = [each.verb for each in PROCEDURES.values() if each.verb and each.frame_sizes.takes_several]
    raise RequestError(
        f"{text!r}: several frame sizes, but one is taken here",
        code="spec.several-sizes",
        where="--frame-size",
        next_step=f"Give one size. Verbs that take several, one after the other: {', '.join(verbs)}.",
    )


def read_frame_sizes(
    plan: AddressPlan, texts: Sequence[str] | None
) -> tuple[tuple[FrameSize, ...], list[str]]:
    """Where several are possible, and sequences of sizes among them; see `check_frame_sizes`."""
    # "IMIX - aaz (z=1400)" is one of them whatever is in its brackets.
    words = [
        word
        for text in texts or []
        for word in ([text] if is_weighted(text) else re.split(r",(?![^(]*\))", text))
    ]
    sizes: list[FrameSize | None] = []
    for word in words:
        sizes += FRAME_SIZE_SETS.get(word.strip()) or [_parse_frames(word)]
    return check_frame_sizes(plan, sizes or [None])


def read_sizes_of(
    procedure: Procedure, plan: AddressPlan, written: str | Sequence[str] | None
) -> tuple[tuple[FrameSize, ...], list[str]]:
    """The `--frame-size` of a procedure's verb: the sizes, and notes on them. RequestError for what the
    procedure cannot be made with."""
    if procedure.frame_sizes.takes_several:
        texts = [written] if isinstance(written, str) else list(written or [])
        if not procedure.frame_sizes.takes_mixes:
            _refuse_mixes(procedure, texts)
        return read_frame_sizes(plan, texts)
    assert written is None or isinstance(written, str)
    read = read_frames if procedure.frame_sizes.takes_mixes else read_frame_size
    size, note = read(plan, written)
    return (size,), [] if note is None else [note]


def _refuse_mixes(procedure: Procedure, texts: Sequence[str]) -> None:
    """RequestError: a burst has frames of one size (R6985-02)."""
    for text in texts:
        if is_imix(text) or "imix" in text.lower():
            raise RequestError(
                f"{text!r}: {procedure.name} tests do not use mixed frame sizes (RFC 9004, 3)",
                code="spec.mixed-sizes",
                where="--frame-size",
                next_step="Give separate sizes, such as 64,128,512: each is measured on its own.",
            )


def read_largest_frame(text: str | None) -> int:
    """`--largest-frame`. RequestError below 1518, which all links take, or above 9216."""
    size = USUAL_MAX_FRAME_SIZE if text is None else parse_size(text, where="--largest-frame")
    if not USUAL_MAX_FRAME_SIZE <= size <= MAX_FRAME_SIZE:
        raise RequestError(
            f"{size} octets is not a valid largest frame size",
            code="spec.out-of-range",
            where="--largest-frame",
            next_step=f"Write {USUAL_MAX_FRAME_SIZE} to {MAX_FRAME_SIZE}.",
        )
    return size


def _parse_frames(text: str) -> FrameSize:
    return parse_imix(text, where="--frame-size") if is_imix(text) else parse_size(text, where="--frame-size")
