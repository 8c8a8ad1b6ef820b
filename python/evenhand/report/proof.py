# SPDX-License-Identifier: Apache-2.0
"""Station 10: the proof of the draws, judged and shown for people."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand.base.table import Column, Table, make_table
from evenhand.base.units import format_count
from evenhand.trial.proof import FieldProof, Generator, PairProof, ProofFigure, StreamProof, title

ALARM = 1e-4
"""How often a perfect generator may be called suspicious, all figures of a proof together."""

GENERATOR_NAMES: dict[Generator, str] = {
    "philox": "Evenhand's draw",
    "fifteen_bit": "15-bit generator",
    "modulo": "16 bits modulo N",
}
FIELD_TITLES = (
    Column("field", is_name=True),
    "#values",
    "#occurred",
    "#hits of a value",
    "#expected",
    "#chi-square",
    "#degrees",
    "#p",
)
PAIR_TITLES = (
    Column("pair", is_name=True),
    "#cells",
    "#occurred",
    "#chi-square",
    "#degrees",
    "#p",
    "#correlation",
    "#by chance",
    "#p",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofJudgement:
    """Whether any figure is more extreme than chance allows."""

    figures: int
    suspicious: tuple[ProofFigure, ...]
    most_extreme: ProofFigure | None
    unproven: int
    """Fields and pairs without chi-square, for want of frames."""
    frames_wanted: int
    """How many frames would do for all of them."""

    @property
    def bound(self) -> float:
        """A figure below it is suspicious: the alarm shared by all figures (Bonferroni)."""
        return ALARM / max(1, self.figures)

    @property
    def verdict(self) -> str:
        """`suspicious`, `fine`, or `unproven` if some figures could not be judged at all."""
        if self.suspicious:
            return "suspicious"
        return "unproven" if self.unproven or not self.figures else "fine"


def judge_proof(streams: Iterable[StreamProof]) -> ProofJudgement:
    """All figures of all streams against one bound."""
    streams = tuple(streams)
    figures = [figure for stream in streams for figure in stream.figures()]
    bound = ALARM / max(1, len(figures))
    fields = [one for stream in streams for one in stream.fields if one.is_proven]
    pairs = [pair for stream in streams for pair in stream.pairs]
    return ProofJudgement(
        figures=len(figures),
        suspicious=tuple(sorted((f for f in figures if f.extreme_p < bound), key=lambda f: f.extreme_p)),
        most_extreme=min(figures, key=lambda f: f.extreme_p, default=None),
        # Without a correlation every draw fell into one row or one column: nothing to compare, and the field
        # itself is suspicious.
        unproven=sum(one.chi_square is None for one in fields)
        + sum(pair.chi_square is None and pair.correlation is not None for pair in pairs),
        frames_wanted=max((one.frames_wanted for one in fields), default=0),
    )


def fields_table(stream: StreamProof) -> Table:
    """Each field against an even spread over all its values."""
    rows = (
        _field_cells(one)
        if one.is_proven
        else [
            title(one.name),
            format_count(one.values),
            format_count(one.coverage.occurred),
            _why_unproven(one),
            *["-"] * 4,
        ]
        for one in stream.fields
    )
    return make_table(FIELD_TITLES, rows, title=f"{stream.name}: {format_count(stream.frames)} frames")


def pairs_table(stream: StreamProof) -> Table | None:
    """Each two fields of a frame, and each field and itself one frame later, against independence. None if
    there are no pairs."""
    named = [(f"{title(pair.first)}, {title(pair.second)}", pair) for pair in stream.pairs]
    named += [
        (f"{title(one.name)}, next {title(one.name)}", one.serial)
        for one in stream.fields
        if one.serial is not None
    ]
    if not named:
        return None
    rows = (
        [
            name,
            f"{pair.row_count} x {pair.column_count}",
            "-" if pair.coverage is None else format_count(pair.coverage.occurred),
            *_chi_square_cells(pair),
            *_correlation_cells(pair),
        ]
        for name, pair in named
    )
    return make_table(PAIR_TITLES, rows)


def contrast_table(streams: Sequence[StreamProof]) -> Table:
    """What generators with known faults score on the same figures: so it is known that the proof can fail."""
    rows = []
    for stream in streams:
        name = GENERATOR_NAMES[stream.generator]
        for one in (one for one in stream.fields if one.is_proven):
            rows.append([name, *_field_cells(one)])
            name = ""
    return make_table(
        [Column("generator", is_name=True), *FIELD_TITLES],
        rows,
        title="For contrast: generators with known faults",
    )


def contrast_lines(streams: Sequence[StreamProof]) -> list[str]:
    """Whether the proof sees the known faults, a line for each generator."""
    lines = []
    for stream in streams:
        judgement = judge_proof([stream])
        seen = (
            f"{judgement.verdict}, {len(judgement.suspicious)} of {judgement.figures} figures out of bounds"
        )
        if not judgement.suspicious:
            seen = f"not seen with {format_count(stream.frames)} frames of this plan"
        lines.append(f"{GENERATOR_NAMES[stream.generator]}: {seen}.")
    return lines


def proof_lines(judgement: ProofJudgement) -> list[str]:
    """The verdict in words, with its bounds; first the sentence that counts."""
    lines = []
    if judgement.suspicious:
        lines.append(
            f"Suspicious: {len(judgement.suspicious)} of {judgement.figures} figures are out of bounds."
        )
        lines += [
            f"  {figure.where}: {figure.what}, probability {format_p(figure.extreme_p)}"
            for figure in judgement.suspicious[:10]
        ]
        more = len(judgement.suspicious) - 10
        lines += [f"  and {more} more"] if more > 0 else []
    elif judgement.most_extreme is None:
        lines.append("Unproven: the plan does not draw anything.")
    else:
        extreme = judgement.most_extreme
        lines.append(
            f"{'Unproven' if judgement.unproven else 'Fine'}: none of {judgement.figures} figures is out of"
            " bounds. "
            f"The most extreme has probability {format_p(extreme.extreme_p)} ({extreme.where}:"
            f" {extreme.what})."
        )
    if judgement.unproven:
        lines.append(
            f"{judgement.unproven} fields or pairs had too few frames for chi-square: draw at"
            f" least {format_count(judgement.frames_wanted)} frames of each stream."
        )
    if judgement.figures:
        lines.append(
            f"A figure is suspicious if its probability is below {format_p(judgement.bound)},"
            f" which is {ALARM:g} divided among {judgement.figures} figures, so that a"
            " perfect generator is suspicious in one proof out of"
            f" {format_count(round(1 / ALARM))}. Chi-square is judged at both ends."
        )
    return lines


def format_p(p: float) -> str:
    """`0.632`, `3.9e-06`, `< 1e-300`; close to 1 the distance counts: `> 0.999999`."""
    if p < 1e-300:
        return "< 1e-300"
    if p < 0.001:
        return f"{p:.1e}"
    nines = 12 if p == 1 else math.floor(-math.log10(1 - p))
    return f"> 0.{'9' * min(nines, 12)}" if nines >= 4 else f"{p:.3f}"


def _why_unproven(one: FieldProof) -> str:
    return "one value" if one.values == 1 or one.mode == "fixed" else one.mode


def _field_cells(one: FieldProof) -> list[str]:
    hits = f"{format_count(one.least_hits)} .. {format_count(one.most_hits)}"
    expected = format_count(round(one.expected_per_value, 1))
    return [
        title(one.name),
        format_count(one.values),
        format_count(one.coverage.occurred),
        hits,
        expected,
        *_chi_square_cells(one),
    ]


def _chi_square_cells(one: FieldProof | PairProof) -> list[str]:
    found = one.chi_square
    if found is None:
        return ["-", "-", "-"]
    return [f"{found.value:,.1f}", format_count(found.degrees_of_freedom), format_p(found.p)]


def _correlation_cells(pair: PairProof) -> list[str]:
    found = pair.correlation
    if found is None:
        return ["-", "-", "-"]
    return [f"{found.value:+.6f}", f"{found.spread:.6f}", format_p(found.p)]


_MAGIC_NANOSECONDS = 0xA1B23C4D
_ETHERNET = 1
_SNAPSHOT_OCTETS = 65535


def make_pcap(frames: Iterable[bytes], *, interval_ns: int = 1000) -> bytes:
    """A pcap file of these frames (without FCS), `interval_ns` apart from time 0: a preview has no send
    times."""
    parts = [struct.pack("<IHHiIII", _MAGIC_NANOSECONDS, 2, 4, 0, 0, _SNAPSHOT_OCTETS, _ETHERNET)]
    for index, frame in enumerate(frames):
        seconds, nanoseconds = divmod(index * interval_ns, 10**9)
        parts += [struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)), frame]
    return b"".join(parts)
