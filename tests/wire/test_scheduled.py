# SPDX-License-Identifier: Apache-2.0
"""A campaign over two workers of dask on this machine, each with a reference router, one of them killed with
-9 in a point."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.run.campaign.dask_processes import cluster, wait_until

pytest.importorskip("distributed")
pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
RATE_FPS = 2_000
"""The limit of a router that could be faster: two of them and two testers on the same CPUs have room, and a
search ends where it begins."""
CAMPAIGN = f"""
name = "two testbeds"
[reference]
[every-suite]
maximum-rate = "{RATE_FPS / 1000:g}kfps"
precision = "20%"
duration = "100ms"
final-duration = "200ms"
invalid-retries = 6
patience = 30
overdue-after = "100ms"
overdue-tolerance = "99%"
longest-overdue = "10s"
offered-tolerance = "10%"
waits = "short"
wait-after-routing = "0s"
wait-residual = "100ms"
wait-restabilize = "20ms"
hooks = {{ before-point = "echo $EVENHAND_POINT >> begun.txt" }}
[[suite]]
name = "v4"
hosts = [1, 64]
repetitions = 2
[[suite]]
name = "v6"
plan = "gateway-v6"
hosts = [1, 64]
repetitions = 2
"""


@pytest.mark.thorough
def test_two_workers_measure_a_campaign_and_one_that_is_killed_costs_nothing_but_time(tmp_path: Path) -> None:
    """D11, SEED-02: IPv4 and IPv6; complete, nothing twice, and both repetitions of a point on one
    testbed."""
    (tmp_path / "wire.toml").write_text(CAMPAIGN)
    with cluster(tmp_path) as running:
        for name in ("one", "two"):
            running.begin_worker(name, "reference")
        running.wait_for("one", "two")
        process = running.begin_run(
            "run", "wire.toml", "--scheduler", running.address, "--run", "wire.evenhand", "--no-html"
        )

        def in_a_point() -> str | None:
            """The worker whose last line tells of a point that it has begun."""
            last = {name: running.log(name).splitlines()[-1] for name in ("one", "two")}
            return next(
                (name for name, line in last.items() if line.startswith("v4/throughput/64/n=1:")), None
            )

        wait_until(lambda: in_a_point() is not None, lambda: running.log("run"), process)
        lost = str(in_a_point())
        running.kill(lost)
        assert process.wait(180) == 0, running.log("run")
        assert f"Testbed '{lost}' is lost" in running.log("run")
    record = read_record(tmp_path / "wire.evenhand")
    assert [(point.state, len(point.values)) for point in record.points] == [(PointState.MEASURED, 2)] * 4
    for point in record.points:
        assert Counter(repetition.number for repetition in point.repetitions) == {1: 1, 2: 1}
        assert point.values == (RATE_FPS, RATE_FPS)
        assert len({repetition.testbed for repetition in point.repetitions}) == 1
    assert [point.point.is_one_pair for point in record.points] == [True, False, True, False]
    begun = Counter((tmp_path / "begun.txt").read_text().splitlines())
    assert begun == {**{point.point.key: 1 for point in record.points}, "v4/throughput/64/n=1": 2}
