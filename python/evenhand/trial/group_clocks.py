# SPDX-License-Identifier: Apache-2.0
"""Station 7: how far the clocks of several engines are from this host's."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.base.errors import EvenhandError, HostError
from evenhand.trial.group_request import EngineMember, named

CLOCK_LOOKS = 8
LARGEST_OFFSET_S = 0.1
"""Offset of an engine's clock from that of this host: what is less is corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClock:
    """How far an engine's clock is ahead of this host's, and how wrong that may be."""

    offset_us: float = 0.0
    uncertainty_us: float = 0.0

    def to_contract(self) -> dict[str, float]:
        return {"offset_us": self.offset_us, "uncertainty_us": self.uncertainty_us}


def compare_clocks(members: Iterable[EngineMember]) -> dict[str, ComparedClock]:
    """Compare the clock of each engine. HostError if one is off."""
    found = {}
    for member in members:
        try:
            found[member.name] = compare_clock(member)
        except EvenhandError as error:
            raise named(error, member.name) from error
        offset_s = found[member.name].offset_us / 1e6
        if abs(offset_s) - found[member.name].uncertainty_us / 1e6 > LARGEST_OFFSET_S:
            raise HostError(
                f"the clock of engine {member.name} is {abs(offset_s):.3f} s"
                f" {'ahead of' if offset_s > 0 else 'behind'} this host's"
                f" (limit {LARGEST_OFFSET_S:g} s)",
                code="trial.engine-clock-off",
                where=f"engine {member.name}",
                next_step="Synchronise the clocks of both hosts with PTP or NTP.",
            )
    return found


def compare_clock(member: EngineMember) -> ComparedClock:
    """The look with the shortest way there and back says most."""
    if member.is_here:
        return ComparedClock()
    looks = []
    for _ in range(CLOCK_LOOKS):
        before_ns = time.time_ns()
        there_ns = int(member.session.request("clock")["time_unix_ns"])
        after_ns = time.time_ns()
        looks.append(
            ComparedClock(
                offset_us=(there_ns - (before_ns + after_ns) / 2) / 1e3,
                uncertainty_us=(after_ns - before_ns) / 2e3,
            )
        )
    return min(looks, key=lambda look: look.uncertainty_us)
