# SPDX-License-Identifier: Apache-2.0
"""Rig: what a run asks of a DUT that it sets up over SSH, and what was done to it. How it is done is in
`over_ssh.py`, which few commands load."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.dut import HashType
from evenhand.plan import AddressPlan

if TYPE_CHECKING:
    from evenhand.dut.record import SetupRecord
    from evenhand.testbed import TestbedDut

MOST_LISTED = 1000
"""Changes that a document lists; there may be 131,072 neighbours."""

APPLIED, UNDONE = "dut_apply", "dut_undo"

OnNote = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableDut:
    """A DUT that a run sets up: a router over SSH, or the virtual machine of a lab, which has the hash of no
    point by itself."""

    dut: TestbedDut
    ssh_config: Path | None
    """See `Setup.ssh_config`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DutWish:
    """What a DUT is set up for: a plan, and which fields its NICs hash."""

    plan: AddressPlan
    """All its addresses, whatever a point sends: the DUT is set up for them once. It may be a mix of both IP
    versions."""
    hash_type: HashType | None
    """None: as it is."""
    label: str
    """Name of what wishes it, for errors: `point s/throughput/1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DutChange:
    """What was done to a DUT."""

    when: str
    """APPLIED or UNDONE."""
    record: SetupRecord
    duration_s: float

    @property
    def command(self) -> str:
        """The command that would have done the same."""
        return f"evenhand {self.when.replace('_', ' ')}"

    def to_json(self) -> str:
        """For the run file."""
        record = self.record
        changes = [
            {"name": item.name, "before": item.before, "value": item.wanted} for item in record.changes
        ]
        document = {
            "plan": record.plan,
            "hash": record.hash_type,
            "interfaces": record.interfaces,
            "changes": changes[:MOST_LISTED],
        }
        left_out = len(changes) - MOST_LISTED
        return json.dumps({**document, **({"left_out": left_out} if left_out > 0 else {})})


OnDutChange = Callable[[DutChange], None]
