# SPDX-License-Identifier: Apache-2.0
"""Specification: a point: one procedure under one set of conditions, which is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.plan import ONE_EACH, Direction, SideCounts

HashType = Literal["type1", "type2"]
"""What the DUT's RSS hashes: addresses only, or addresses and ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a campaign: one procedure under one set of conditions, which is repeated. Only what its
    suite says of it."""

    key: str
    """Unique in the campaign, and the same each time its file is read: `direct, type1/throughput/64/n=16`."""
    suite: str
    number: int
    """Its place in the suite as a reader wants to see it, from 0; the single address pair is first
    (SEED-02)."""
    procedure: str
    """The name of one of `PROCEDURES`."""
    plan: str
    """`gateway-v4`; of a mix `gateway-v4+gateway-v6`."""
    plan_options: Mapping[str, Any]
    """Keywords of `make_plan` other than the counts, such as `host_mode`; `mix` for a share of two. Empty:
    all as the draft has it."""
    hosts: SideCounts
    networks: SideCounts
    frame_size: int | str
    """Octets with the FCS, or a sequence such as `imix:aaafg`."""
    directions: tuple[Direction, ...]
    hash_type: HashType | None
    """What the DUT is set to while this point is measured; None: the campaign does not say."""
    goal: Mapping[str, Any]
    """Options of the procedure by the names of its verb (`duration`, `precision`, `search`, ...), as the file
    has them or by default."""
    repetitions: int
    """How many were asked for."""
    rounds: int = 1
    """Number of blocks in which they are made; between two of them come all other points of the suite. 1: one
    after the other, as before there were rounds."""

    @property
    def is_single_pair(self) -> bool:
        """Whether every frame of a direction has the same two addresses."""
        return self.addresses == ONE_EACH

    @property
    def addresses(self) -> SideCounts:
        """Addresses of each side, over all its networks."""
        return self.hosts.times(self.networks)
