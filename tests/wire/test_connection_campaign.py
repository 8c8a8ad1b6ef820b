# SPDX-License-Identifier: Apache-2.0
"""A campaign of the procedures of RFC 9693 on the reference router as NAT44 and NAT64: what verbs find one by
one is found point by point, stored, shown and drawn."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from evenhand.procedure.registry import CAPACITY, CONNECTIONS, TEAR_DOWN, THROUGHPUT
from evenhand.run import PointState, read_record
from tests.preloaded.commands import evenhand_command
from tests.report.pages import Page

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
CAPACITY_OF_TABLE = 700
CAMPAIGN = f"""
name = "NAT"
testbed = "reference"

[reference]
elements = 1
rate = "8kfps"
table-capacity = {CAPACITY_OF_TABLE}

[every-suite]
hosts = 20
repetitions = 1
one-pair-first = false
waits = "short"
overdue-tolerance = "99%"
longest-overdue = "10s"
offered-tolerance = "10%"
patience = 30

[[suite]]
name = "rate"
procedure = "connections"
plan = "nat64"
connections = "300"
maximum-rate = "4kfps"
precision = "20%"

[[suite]]
name = "capacity"
procedure = "capacity"
plan = "nat44"
from = "350"
most = "800"
maximum-rate = "2kfps"
rate-precision = "90%"
precision = "20%"

[[suite]]
name = "tear-down"
procedure = "tear-down"
plan = "nat64"
rate = "2kfps"
connections = "300"

[[suite]]
name = "with connections"
procedure = "throughput"
plan = "nat44"
established = "300"
establish-rate = "2kfps"
maximum-rate = "2kfps"
duration = "300ms"
final-duration = "300ms"
"""
GUARD_S = 600


@pytest.mark.thorough
def test_a_campaign_has_rate_capacity_tear_down_and_throughput_with_connections(tmp_path: Path) -> None:
    """R9693-01, R9693-14, R9693-19: a point has a value, or says that the host did not let the tester find
    one."""

    def evenhand(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*evenhand_command(), *arguments],
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )

    (tmp_path / "nat.toml").write_text(CAMPAIGN)
    ended = evenhand("run", "nat.toml", "--run", "nat.evenhand")
    assert ended.returncode in (0, 1), ended.stderr
    points = read_record(tmp_path / "nat.evenhand").points
    assert [point.point.procedure for point in points] == [
        CONNECTIONS.name,
        CAPACITY.name,
        TEAR_DOWN.name,
        THROUGHPUT.name,
    ]
    for point in points:
        assert point.repetitions[0].searches, point.point.key
        if point.state is PointState.NO_NUMBER:
            assert point.repetitions[0].outcome == "tester_ceiling", ended.stderr
    if points[1].values:
        assert 0.7 * CAPACITY_OF_TABLE <= points[1].values[0] <= CAPACITY_OF_TABLE
    page = Page((tmp_path / "nat.html").read_text())
    assert "opened at" in page.shown
    assert "per second before each trial" in page.shown
    assert all(figure in page.shown for figure in ("connection establishment rate", "tear-down rate"))
    exported = json.loads(evenhand("export", "nat.evenhand", "--format", "json").stdout)
    assert [len(point["values"]) for point in exported["points"]] == [len(point.values) for point in points]
    assert evenhand("show", "nat.evenhand", "--point", "2").returncode == 0
    shown = " ".join(evenhand("show", "nat.evenhand", "--point", "4").stdout.split())
    assert "Established connections: 300, opened at 2,000 per second before each trial." in shown
