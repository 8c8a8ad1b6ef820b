# SPDX-License-Identifier: Apache-2.0
"""Station 7: the engine watches this machine's CPUs and clock for some seconds; it opens no port and sends
nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evenhand.base.errors import EngineError
from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, EngineSession

DEFAULT_WATCH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuAbsences:
    """How often the machine took one CPU away; short moments do not count (contract/reply.schema.json says
    how short)."""

    cpu: int
    absences: int
    longest_us: float
    away_us: float
    """Sum of the absences."""
    stolen_us: float
    """What of it nothing on this machine explains: the hypervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedClock:
    """The tick counter that the engine reads."""

    source: str | None
    """None if the engine does not report it."""
    ticks_per_second: float
    error_ppm_raw: float
    """Error of its calibration, against CLOCK_MONOTONIC_RAW."""
    error_ppm_monotonic: float
    """Error against CLOCK_MONOTONIC, which NTP steers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One look at a host."""

    seconds: float
    cpus: tuple[CpuAbsences, ...]
    clock: WatchedClock

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> Watch:
        """Read a `watch` response. EngineError if it has another shape or contradicts itself."""
        try:
            clock = document["clock"]
            rate, raw, monotonic = (
                _number(clock, key) for key in ("ticks_per_second", "error_ppm_raw", "error_ppm_monotonic")
            )
            source = clock.get("source")
            return cls(
                seconds=_amount(document, "seconds"),
                cpus=tuple(_cpu(entry) for entry in document["cpus"]),
                clock=WatchedClock(
                    source=None if source is None else str(source),
                    ticks_per_second=rate,
                    error_ppm_raw=raw,
                    error_ppm_monotonic=monotonic,
                ),
            )
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise EngineError(
                f"the engine's watch result violates the contract: {problem}",
                code="trial.contract-violated",
                where="watch response",
            ) from error


def watch(session: EngineSession, *, cpus: Sequence[int], seconds: float = DEFAULT_WATCH_S) -> Watch:
    """Look at these CPUs, all at once, for so long. The caller should do nothing meanwhile.

    Raises:
        RequestError, HostError, EngineError: See `EngineSession.request`; a CPU is not there, or not for this
            process.
    """
    answer_within_s = seconds + ANSWER_TIMEOUT_S
    return Watch.from_contract(
        session.request("watch", answer_within_s=answer_within_s, seconds=seconds, cpus=list(cpus))
    )


def _cpu(document: Mapping[str, Any]) -> CpuAbsences:
    absences, longest_us, away_us = (
        document["absences"],
        _amount(document, "longest_us"),
        _amount(document, "away_us"),
    )
    if absences and longest_us > away_us:
        raise ValueError(
            f"CPU {document['cpu']}: its longest absence of {longest_us} us is longer than"
            f" all absences together, {away_us} us"
        )
    return CpuAbsences(
        cpu=int(document["cpu"]),
        absences=int(absences),
        longest_us=longest_us,
        away_us=away_us,
        stolen_us=_amount(document, "stolen_us"),
    )


def _amount(document: Mapping[str, Any], key: str) -> float:
    value = _number(document, key)
    if value < 0:
        raise ValueError(f"{key} is {value!r}, but must be a number from 0")
    return value


def _number(document: Mapping[str, Any], key: str) -> float:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{key} is {value!r}, but must be a number")
    return float(value)
