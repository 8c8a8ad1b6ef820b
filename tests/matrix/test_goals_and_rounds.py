# SPDX-License-Identifier: Apache-2.0
"""Searches with several goals where no line rate is known, and campaigns in rounds, on the simulated engine
of the matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, run_here
from tests.matrix.cells import Cell, Family, Outcome, Ports, Way
from tests.matrix.measuring import Bench

LIMIT_FPS = 3_000_000
BASE_LOSS = 0.0001
LOSSY = f"{LIMIT_FPS}-----{BASE_LOSS}"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def evenhand(*arguments: str | Path) -> Ended:
        return run_here(arguments, capsys)

    return Bench(folder=tmp_path, evenhand=evenhand, patch=monkeypatch)


def found_by(bench: Bench, device: str, *goals: str) -> dict[str, dict[str, Any]]:
    """What `--search mlr` finds on ports without a line rate, by the names of the goals."""
    cell = Cell(
        procedure="throughput", way=Way.VERB, family=Family.IPV4, ports=Ports.WITHOUT, outcome=Outcome.FOUND
    )
    bench.prepare(cell)
    bench.patch.setattr("tests.matrix.measuring.SimulatedSession.device", device)
    asked = [word for goal in goals for word in ("--goal", goal)]
    ended = bench.evenhand(
        *("throughput", "testbed.toml", "--search", "mlr", *asked, "--hosts", "20", "--seed", "7"),
        *("--waits", "short", "--duration", "1s", "--final-duration", "2s", "--json"),
    )
    assert ended.code in (0, 1), ended.failure or ended.err
    return {goal["name"]: goal for goal in ended.json["goals"]}


def test_the_partial_drop_rate_of_a_device_that_always_loses_a_little_is_its_limit(bench: Bench) -> None:
    """MLR-14: where no line rate is known the way up to the ceiling may end only where the loss is more than
    any goal allows: 0.01 % is more than NDR does, and far less than PDR."""
    goals = found_by(bench, LOSSY)
    pdr = goals["PDR"]
    assert pdr["lower_fps_per_direction"] == pytest.approx(LIMIT_FPS, rel=0.02)
    assert pdr["upper_fps_per_direction"] is not None
    assert goals["NDR"]["lower_fps_per_direction"] is None


def test_three_goals_find_their_loads_where_no_line_rate_is_known(bench: Bench) -> None:
    """A load above the limit loses 1 - limit / load of its frames: each goal has a load of its own."""
    goals = found_by(bench, str(LIMIT_FPS), "NDR", "PDR=20%", "RFC2544")
    for name, ratio in (("NDR", 0.0), ("PDR", 0.2), ("RFC2544", 0.0)):
        goal = next(goal for of, goal in goals.items() if of.startswith(name))
        lower, upper = (goal[f"{end}_fps_per_direction"] for end in ("lower", "upper"))
        assert lower <= LIMIT_FPS / (1 - ratio) * (1 + 1e-6)
        assert lower == pytest.approx(LIMIT_FPS / (1 - ratio), rel=0.02), name
        assert upper > lower


def test_a_point_that_is_measured_in_rounds_ends_once_and_after_its_last_repetition(bench: Bench) -> None:
    """Who follows `--progress json` takes a point that has ended for done."""
    cell = Cell(
        procedure="throughput",
        way=Way.CAMPAIGN,
        family=Family.IPV4,
        ports=Ports.WITH_LINE_RATE,
        outcome=Outcome.FOUND,
    )
    bench.prepare(cell)
    campaign = bench.folder / "campaign.toml"
    text = campaign.read_text().replace("hosts = 20", "hosts = [1, 4]")
    campaign.write_text(text.replace("repetitions = 1", "repetitions = 3\nrounds = 3"))
    ended = bench.run_campaign(Path("a.evenhand"), "--progress", "json")
    events = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    told = [
        (event["event"], event["point"])
        for event in events
        if event["event"] in ("point_ended", "repetition_ended")
    ]
    points = list(dict.fromkeys(point for _, point in told))
    assert len(points) == 2
    for point in points:
        of_point = [name for name, key in told if key == point]
        assert of_point == ["repetition_ended"] * 3 + ["point_ended"]
