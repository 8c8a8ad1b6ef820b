# SPDX-License-Identifier: Apache-2.0
"""A run that is measured, as pages see it: rates, delays, the search so far, and its end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.request import urlopen

import pytest

from evenhand.run import RunStore
from evenhand.run.campaign.events import RunningFile
from evenhand.search import Purpose, TrialStarted
from evenhand.serve.live import LiveRun, slope_of
from tests.run.goldens import copy_recorded
from tests.serve.served import Served, run_process, server_process, wait_until
from tests.serve.simulated_run import phase


def started(number: int, rate_fps: float) -> TrialStarted:
    return TrialStarted(
        number=number,
        purpose=next(iter(Purpose)),
        attempt=1,
        rate_fps=rate_fps,
        duration_s=2,
        remaining_trials=3,
        remaining_s=9,
    )


def test_rates_are_those_between_two_moments_of_one_trial(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"
    with RunStore.create(path, command=["evenhand", "throughput"]):
        running, live = RunningFile(path), LiveRun(path=path)
        running.begin("throughput")
        for number, rate_fps in ((1, 1e6), (2, 5e5)):
            running.on_event(started(number, rate_fps))
            live.look()
            for elapsed_s in (0.5, 1.0, 2.0):
                running._written_s = float("-inf")
                running.on_event(phase(elapsed_s, 2.0, rate_fps))
                live.look()
        first, second, *rest = live.samples
        assert [sample["trial"] for sample in live.samples] == [1, 1, 2, 2]
        assert first["forward"]["offered_fps"] == pytest.approx(1e6)
        assert second["reverse"]["received_fps"] == pytest.approx(640_000)
        assert second["forward"]["loss_ratio"] == pytest.approx(0.36)
        assert rest[-1]["forward"]["lost_frames"] == 0
        # The mean so far is 20 us and 1 us more after each second, so that of the last second is larger.
        assert second["forward"]["mean_us"] == pytest.approx((22.0 * 1.28e6 - 21.0 * 6.4e5) / 6.4e5)
        now = json.loads(live.now_event.partition("data: ")[2])
        assert (now["trial"], now["rate_fps"], now["left_of_all_s"]) == (2, 5e5, 9)
        assert [sample["number"] for sample in live.samples_after(2)] == [3, 4]
        running.end()
        live.look()
        assert json.loads(live.now_event.partition("data: ")[2]) is None


def test_what_another_process_left_beside_a_run_is_not_shown(tmp_path: Path) -> None:
    path = copy_recorded("campaign-cut-short", tmp_path / "a.evenhand")
    RunningFile(path).begin("x")  # by this process, which does not hold the run
    live = LiveRun(path=path)
    live.look()
    assert live.running is None
    found = json.loads(live.found_event.partition("data: ")[2])
    assert [point["asked"] for point in found["points"]]


def test_a_slope_is_that_of_the_straight_line() -> None:
    assert slope_of([(0, 5.0), (1, 7.0), (2, 9.0)]) == pytest.approx(2.0)
    assert slope_of([(0, 5.0), (1, 7.0)]) is None
    assert slope_of([(3, 5.0), (3, 7.0), (3, 1.0)]) is None


def test_pages_of_a_running_run_are_told_what_happens_until_it_is_killed(tmp_path: Path) -> None:
    """The whole way, over HTTP: samples come while trials are made; after kill -9 the last event says so, and
    the page of the run does too."""
    path = tmp_path / "a.evenhand"
    with server_process(tmp_path) as address, run_process(path, version=6, trial_s=0.6) as process:

        def is_running() -> bool:
            with urlopen(f"{address}/api/runs") as answer:
                return [run["state"] for run in json.load(answer)["runs"]] == ["running"]

        wait_until(is_running, "the run is listed as running")
        with urlopen(f"{address}/run/a.evenhand") as page:
            assert b'id="live"' in page.read()
        kinds: list[str] = []
        with urlopen(f"{address}/run/a.evenhand/events") as events:
            for line in events:
                text = line.decode().strip()
                if text.startswith("event: "):
                    kinds.append(text.removeprefix("event: "))
                    if kinds.count("samples") == 2:
                        process.kill()
                if text.startswith("data: ") and kinds[-1] == "ended":
                    assert json.loads(text.removeprefix("data: ")) == "killed"
        assert kinds[-1] == "ended"
        assert {"samples", "now", "found"} <= set(kinds)
        with urlopen(f"{address}/run/a.evenhand") as page:
            assert b"killed" in page.read()


def test_a_run_that_ends_in_order_is_shown_as_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"
    mine = Served.of(tmp_path)
    with run_process(path, trial_s=0.1) as process:
        assert process.wait(60) == 0
    mine.look()
    assert mine.get("/api/runs").document["runs"][0]["state"] == "finished"
    assert not os.path.lexists(f"{path}-running")
