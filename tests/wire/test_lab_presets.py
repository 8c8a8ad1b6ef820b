# SPDX-License-Identifier: Apache-2.0
"""The presets for routers inside this machine, run as the documents say: each ends in numbers, or says of
each point why it has none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evenhand.lab import lab_status
from evenhand.run import PointState, read_record
from tests.preloaded.commands import evenhand_command

pytestmark = [pytest.mark.wire, pytest.mark.slow]
GUARD_S = 3000
needs_root = [pytest.mark.root]


@pytest.mark.parametrize(
    ("name", "lab"),
    [
        ("appendix-a-reference", None),
        pytest.param("appendix-a-lab", "linux", marks=needs_root),
        pytest.param("appendix-a-lab-vm", "vm", marks=[*needs_root, pytest.mark.vm]),
    ],
)
def test_a_preset_for_a_lab_ends_in_numbers_and_a_page(name: str, lab: str | None, tmp_path: Path) -> None:
    """SEED-02, SEED-60: over IPv4 and IPv6, in one testbed; a lab of this name is as it was before."""
    before = None if lab is None else lab_status(lab)
    command = [*evenhand_command(), "run", f"preset:{name}", "--run", "lab.evenhand"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=GUARD_S, check=False)
    assert done.returncode in (0, 1), done.stderr
    record = read_record(tmp_path / "lab.evenhand")
    without = [point for point in record.points if point.state is not PointState.MEASURED]
    # A host that is away all the time leaves no number, and says so.
    assert all("the tester's ceiling" in (point.reason or "") for point in without), done.stderr
    assert len(record.testbeds) == 1
    assert {
        version for point in record.points for version in ("v4", "v6") if version in point.point.plan
    } == {"v4", "v6"}
    assert "IPv6" in (tmp_path / "lab.html").read_text()
    assert before is None or lab_status(str(lab)) == before
