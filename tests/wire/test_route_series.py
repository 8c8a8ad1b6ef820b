# SPDX-License-Identifier: Apache-2.0
"""A series over routes on the reference router: it has all of them for each point, and forwards to as many as
the point uses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.preloaded.commands import evenhand_command

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
LINES = """
[every-suite]
routes = [1, 16, "1k"]
repetitions = 1
procedure = "loss"
maximum-rate = "4kfps"
duration = "300ms"
waits = "short"
overdue-tolerance = "99%"
longest-overdue = "10s"
offered-tolerance = "10%"
patience = 30

[[suite]]
name = "IPv4"
plan = "four.toml"

[[suite]]
name = "IPv6"
plan = "six.toml"
"""
PLANS = {
    "four": """
[left]
dut = "10.0.0.1/24"
gateway = "10.0.0.2"
hosts = "198.18.0.0/16"
[right]
dut = "10.0.1.1/24"
gateway = "10.0.1.2"
routes = 1024
lengths = 28
""",
    "six": """
[left]
dut = "2001:2:0:1000::1/64"
gateway = "2001:2:0:1000::2"
hosts = "2001:2::/64"
[right]
dut = "2001:2:0:9000::1/64"
gateway = "2001:2:0:9000::2"
routes = 1024
lengths = 64
first = "2001:2:0:a000::"
""",
}
GUARD_S = 600


@pytest.mark.thorough
def test_a_series_over_routes_of_both_versions(tmp_path: Path) -> None:
    for name, text in PLANS.items():
        (tmp_path / f"{name}.toml").write_text(text)
    campaign, run = tmp_path / "series.toml", tmp_path / "series.evenhand"
    campaign.write_text(f'name = "series"\ntestbed = "reference"\n{LINES}')
    command = [*evenhand_command(), "run", str(campaign), "--run", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
    assert done.returncode == 0, done.stderr
    record = read_record(run)
    assert [point.state for point in record.points] == [PointState.MEASURED] * 6
    assert [point.point.routes for point in record.points] == [(1, 1), (1, 16), (1, 1000)] * 2
    for point in record.points:
        (repetition,) = point.repetitions
        assert point.point.routes is not None
        plan = repetition.searches[-1].plan
        assert plan["right"]["hosts"]["list"]["entries"] == point.point.routes.right
        assert plan["right"]["prefixes"]["count"] == 1024
        assert repetition.value == 0.0
        assert all(trial.result.verdict == "PASS" for trial in repetition.trials)
        # The router has the routes of the whole plan file.
        config = repetition.searches[-1].setup["dut"]["config"]
        assert len(config["routes"]) == 1025
