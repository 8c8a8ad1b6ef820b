# SPDX-License-Identifier: Apache-2.0
"""Runs are meant to be shared: whatever goes wrong in a campaign, its file names no folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evenhand.run import read_record
from tests.matrix.cells import Cell, Family, Outcome, Ports, Way
from tests.matrix.measuring import Bench, SimulatedSession
from tests.matrix.test_matrix import RUN, bench

__all__ = ["bench"]
FOLDER = Path("clients/acme smith")
HOOK = '\n[hooks]\nWHEN-point = "echo Error: no router in /home/clients/router.conf; exit 1"\n'


@pytest.mark.parametrize("way", [Way.CAMPAIGN, Way.WORKER])
@pytest.mark.parametrize("what", ["hook before", "hook after", "dead device"])
def test_no_reason_in_a_run_file_names_a_folder(way: Way, what: str, bench: Bench) -> None:
    cell = Cell(
        procedure="throughput", way=way, family=Family.IPV4, ports=Ports.WITHOUT, outcome=Outcome.FOUND
    )
    bench.prepare(cell)
    FOLDER.mkdir(parents=True)
    testbed = shutil.move("testbed.toml", FOLDER)
    campaign = Path("campaign.toml").read_text().replace("testbed.toml", testbed)  # type: ignore[arg-type]
    if what.startswith("hook"):
        campaign += HOOK.replace("WHEN", what.removeprefix("hook "))
    if what == "dead device":
        bench.patch.setattr(SimulatedSession, "dies_at", 2)
    Path("campaign.toml").write_text(campaign)
    bench.run_campaign(RUN)
    found = read_record(RUN)
    assert what == "hook after" or found.points[0].reason is not None
    assert [name for name in ("clients", "acme", "smith") if name.encode() in RUN.read_bytes()] == []
