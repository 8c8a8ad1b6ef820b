# SPDX-License-Identifier: Apache-2.0
"""Station 7, proof: what the engine counted of its own draws, and every figure that can be judged by a
probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from evenhand.base.errors import EngineError
from evenhand.plan import Direction

MAX_PROOF_FRAMES = 4_000_000_000
"""Most frames of one stream: the engine's counters have 32 bits (contract/request.schema.json)."""
LEAST_EXPECTED = 10
"""Fewer expected hits of a value, and chi-square would not have its distribution (SEED-43)."""

Generator = Literal["philox", "fifteen_bit", "modulo"]

_TOO_EVEN_FROM = 8
"""With fewer degrees of freedom, counts are often exactly even by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofFigure:
    """One statistic, as the probability that a perfect generator gives one as extreme."""

    where: str
    """Direction, stream, field or pair."""
    what: str
    extreme_p: float
    """Probability, at both ends where both are suspicious: a draw can be too even."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquare:
    value: float
    degrees_of_freedom: int
    p: float
    """Probability of chi-square being this large or larger."""

    @property
    def extreme_p(self) -> float:
        return min(1.0, 2 * min(self.p, 1 - self.p)) if self.degrees_of_freedom >= _TOO_EVEN_FROM else self.p


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many values occurred. p: that so many or more are missing by chance."""

    occurred: int
    expected: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    value: float
    spread: float
    """Its standard deviation by chance."""
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairProof:
    """Two fields of a frame, or one field of two frames in a row, counted on a grid."""

    first: str
    second: str
    row_count: int
    column_count: int
    is_exact: bool
    """Every pair of values has a cell of its own."""
    coverage: Coverage | None
    chi_square: ChiSquare | None
    correlation: Correlation | None

    def figures(self, where: str, prefix: str = "") -> Iterator[ProofFigure]:
        if self.coverage is not None:
            yield ProofFigure(where=where, what=f"{prefix}coverage of pairs", extreme_p=self.coverage.p)
        if self.chi_square is not None:
            yield ProofFigure(where=where, what=f"{prefix}independence", extreme_p=self.chi_square.extreme_p)
        if self.correlation is not None:
            yield ProofFigure(where=where, what=f"{prefix}correlation", extreme_p=self.correlation.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProof:
    """One field of the frames."""

    name: str
    values: int
    mode: str
    is_proven: bool
    """False: it is not drawn, or has one value."""
    coverage: Coverage
    expected_per_value: float
    least_hits: int
    most_hits: int
    chi_square: ChiSquare | None
    serial: PairProof | None

    @property
    def frames_wanted(self) -> int:
        """The least number of frames of which chi-square can be judged."""
        return LEAST_EXPECTED * self.values if self.is_proven else 0

    def figures(self, where: str) -> Iterator[ProofFigure]:
        if not self.is_proven:
            return
        yield ProofFigure(where=where, what="coverage", extreme_p=self.coverage.p)
        if self.chi_square is not None:
            yield ProofFigure(where=where, what="chi-square", extreme_p=self.chi_square.extreme_p)
        if self.serial is not None:
            yield from self.serial.figures(where, "serial ")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProof:
    """One stream of one direction."""

    generator: Generator
    direction: Direction
    stream: int
    streams: int
    frames: int
    is_stopped: bool
    fields: tuple[FieldProof, ...]
    pairs: tuple[PairProof, ...]
    raw: dict[str, Any] = field(repr=False)
    """The engine's document without its envelope."""

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> StreamProof:
        """Read a `prove` response. EngineError if it has another shape."""
        try:
            if document["generator"] not in get_args(Generator) or document["direction"] not in get_args(
                Direction
            ):
                raise ValueError(f"generator {document['generator']!r}, direction {document['direction']!r}")
            return cls(
                generator=document["generator"],
                direction=document["direction"],
                stream=int(document["stream"]),
                streams=int(document["streams"]),
                frames=int(document["frames"]),
                is_stopped=bool(document["stopped"]),
                fields=tuple(_field(entry) for entry in document["fields"]),
                pairs=tuple(_pair(entry) for entry in document["pairs"]),
                raw={key: value for key, value in document.items() if key not in ("id", "response")},
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise EngineError(
                f"the engine's proof violates the contract: {problem}",
                code="trial.contract-violated",
                where="prove response",
            ) from error

    @property
    def name(self) -> str:
        return (
            self.direction
            if self.streams == 1
            else f"{self.direction}, stream {self.stream} of {self.streams}"
        )

    def figures(self) -> Iterator[ProofFigure]:
        """Everything that can be judged."""
        for one in self.fields:
            yield from one.figures(f"{self.name}: {title(one.name)}")
        for pair in self.pairs:
            yield from pair.figures(f"{self.name}: {title(pair.first)} and {title(pair.second)}")


def title(name: str) -> str:
    """A field's name as people read it."""
    return name.replace("_", " ")


def _field(entry: Mapping[str, Any]) -> FieldProof:
    coverage = _coverage(entry["coverage"])
    if coverage is None:
        raise ValueError(f"field {entry['field']!r} has no coverage")
    return FieldProof(
        name=str(entry["field"]),
        values=int(entry["values"]),
        mode=str(entry["mode"]),
        is_proven=bool(entry["proven"]),
        coverage=coverage,
        expected_per_value=float(entry["expected_per_value"]),
        least_hits=int(entry["least_hits"]),
        most_hits=int(entry["most_hits"]),
        chi_square=_chi_square(entry["chi_square"]),
        serial=None if entry["serial"] is None else _pair(entry["serial"]),
    )


def _pair(entry: Mapping[str, Any]) -> PairProof:
    correlation = entry["correlation"]
    return PairProof(
        first=str(entry["first"]),
        second=str(entry["second"]),
        row_count=int(entry["rows"]),
        column_count=int(entry["columns"]),
        is_exact=bool(entry["exact"]),
        coverage=_coverage(entry["coverage"]),
        chi_square=_chi_square(entry["chi_square"]),
        correlation=None
        if correlation is None
        else Correlation(
            value=float(correlation["value"]),
            spread=float(correlation["spread"]),
            p=_probability(correlation),
        ),
    )


def _coverage(entry: Mapping[str, Any] | None) -> Coverage | None:
    if entry is None:
        return None
    return Coverage(occurred=int(entry["occurred"]), expected=float(entry["expected"]), p=_probability(entry))


def _chi_square(entry: Mapping[str, Any] | None) -> ChiSquare | None:
    if entry is None:
        return None
    return ChiSquare(
        value=float(entry["value"]),
        degrees_of_freedom=int(entry["degrees_of_freedom"]),
        p=_probability(entry),
    )


def _probability(entry: Mapping[str, Any]) -> float:
    p = float(entry["p"])
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p} is not a probability")
    return p
