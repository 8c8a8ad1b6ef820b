# SPDX-License-Identifier: Apache-2.0
"""Station 7: whether the document of a trial can be read again once it is stored, by the limits of the reader
(`base/validation/hostile_json.py`), looked at before the trial is made."""

from __future__ import annotations

import math

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.validation.hostile_json import MAX_TEXT, MAX_VALUES

_OTHER_VALUES, _OTHER_OCTETS = 30_000, 1 << 20
"""Of a trial's document without its lists: histograms, slices, ports, notes."""
_OF_A_TAG = (3, 40)
"""Values, as the reader counts them, and octets: `[1234567890,12345678.901234567],`."""
_OF_A_TENTH = (1, 10)
"""The same of a tenth of a second, for which a trial lists the frames that it lost."""
_TENTHS_PER_S = 10


def check_document_size(*, directions: int, tagged_frames: int, sending_s: float) -> None:
    """RequestError if a trial would record more than can be read."""
    if not math.isfinite(sending_s):
        return  # the engine session says what is wrong with it
    room = [
        (most - others) / directions - share * _TENTHS_PER_S * sending_s
        for most, others, share in zip(
            (MAX_VALUES, MAX_TEXT), (_OTHER_VALUES, _OTHER_OCTETS), _OF_A_TENTH, strict=True
        )
    ]
    most_tags = int(min(left / each for left, each in zip(room, _OF_A_TAG, strict=True)))
    if tagged_frames <= most_tags:
        return
    if most_tags < 0:
        longest_s = (MAX_VALUES - _OTHER_VALUES) / directions / _TENTHS_PER_S
        raise RequestError(
            f"a trial of {format_duration(sending_s)} records more than a run file may hold",
            code="trial.too-much-to-record",
            where="duration",
            next_step=f"Use at most {format_duration(longest_s)}.",
        )
    raise RequestError(
        f"{format_count(tagged_frames)} tagged frames are more than a run file may hold of one trial",
        code="trial.too-much-to-record",
        where="tagged_frames",
        next_step=f"Tag at most {format_count(most_tags)} frames.",
    )
