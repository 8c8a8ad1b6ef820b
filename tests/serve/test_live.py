# SPDX-License-Identifier: Apache-2.0
"""A run that is measured, as pages see it: rates, delays, the search so far, and its end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import pytest

from evenhand.run import RunStore, read_record
from evenhand.run.campaign.events import RunningFile
from evenhand.run.figures import RunningTrial, read_running, running_path, write_running
from evenhand.search import Purpose, TrialStarted
from evenhand.serve.live import LiveRun, slope_of
from tests.run.goldens import copy_recorded
from tests.serve.served import Served, run_process, server_process, wait_until
from tests.serve.simulated_run import measure, phase


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
        begun, first, second, *rest = live.samples
        assert [sample["trial"] for sample in live.samples] == [1, 1, 1, 2, 2, 2]
        # What is seen of a trial first has no rates, but all else.
        assert (begun["forward"]["offered_fps"], begun["forward"]["median_us"]) == (None, 21.5)
        assert begun["forward"]["loss_ratio"] == pytest.approx(0.36)
        assert first["forward"]["offered_fps"] == pytest.approx(1e6)
        assert second["reverse"]["received_fps"] == pytest.approx(640_000)
        assert second["forward"]["loss_ratio"] == pytest.approx(0.36)
        assert rest[-1]["forward"]["lost_frames"] == 0
        # The mean so far is 20 us and 1 us more after each second, so that of the last second is larger.
        assert second["forward"]["mean_us"] == pytest.approx((22.0 * 1.28e6 - 21.0 * 6.4e5) / 6.4e5)
        # The median grows by 1 us a second of the trial, which takes no time here.
        assert [sample["forward"]["median_us"] for sample in live.samples] == [21.5, 22, 23, 21.5, 22, 23]
        assert second["reverse"]["p999_us"] == 60
        now = json.loads(live.events["now"].partition("data: ")[2])
        assert (now["trial"], now["rate_fps"], now["left_of_all_s"]) == (2, 5e5, 9)
        running.end()
        live.look()
        assert json.loads(live.events["now"].partition("data: ")[2]) is None


def test_the_delay_grows_by_what_its_last_samples_say(tmp_path: Path) -> None:
    live = LiveRun(path=tmp_path / "a.evenhand")
    found = []
    for number in range(16):
        counts = {"sent_frames": 100.0 * number, "received_frames": 90.0 * number}
        delay_ns = 1e6 + (0 if number < 8 else 2e3 * (number - 8))
        live._note(
            RunningTrial(
                process=1,
                point="x",
                repetition=1,
                trial=1,
                phase="sending",
                elapsed_s=number,
                total_s=20,
                written_at=1000.0 + number,
                directions={"forward": {**counts, "recent_median_ns": delay_ns}},
            )
        )
        found.append(live.samples[-1]["forward"]["slope_us_per_s"])
    assert found[:3] == [None, None, pytest.approx(0)]  # three are needed for a line
    assert found[-1] == pytest.approx(2.0)
    live.samples.clear()


@pytest.mark.parametrize("kinds", [["sender_overdue"], ["receiver_away", "dut_away"]])
def test_lapses_have_the_time_of_day_and_what_is_told_twice_is_one(tmp_path: Path, kinds: list[str]) -> None:
    live = LiveRun(path=tmp_path / "a.evenhand")

    def tell(sending_s: float, late_s: float, *parts: tuple[float, float]) -> list[list[Any]]:
        live._note(
            RunningTrial(
                process=1,
                point="x",
                repetition=1,
                trial=3,
                phase="sending",
                elapsed_s=sending_s,
                written_at=1000.0 + sending_s + late_s,
                sending_s=sending_s,
                left_out=[(*part, kinds) for part in parts],
            )
        )
        told: list[list[Any]] = json.loads(live.events["lapses"].partition("data: ")[2])
        return told

    assert tell(2.0, 0.0, (1.5, 1.75)) == [[1001.5, 1001.75, kinds]]
    # The first part has grown, and what is read later is written down later.
    assert tell(4.0, 0.3, (3.0, 4.0), (1.25, 1.75)) == [[1001.25, 1001.75, kinds], [1003.0, 1004.0, kinds]]
    # The first is too long ago to be told, and stays.
    assert [part[0] for part in tell(9.0, 0.1, (3.0, 5.0))] == [1001.25, 1003.0]


@pytest.mark.parametrize(
    "left_out",
    [None, 5, [5], [["x", 1, ["dut_away"]]], [[0, 1, ["nobody"]]], [[0, 1e300, ["dut_away"]]], [[]]],
)
def test_what_is_no_part_that_is_left_out_is_not_shown(tmp_path: Path, left_out: Any) -> None:
    path = tmp_path / "a.evenhand"
    running = RunningTrial(process=7, point="x", repetition=1)
    write_running(path, running)
    assert read_running(path, "process 7") is not None
    beside = running_path(path)
    beside.write_text(json.dumps({**json.loads(beside.read_text()), "left_out": left_out}))
    assert read_running(path, "process 7") is None


def test_what_the_duts_cpus_and_queues_did_is_that_of_the_last_trial(tmp_path: Path) -> None:
    live = LiveRun(path=measure(tmp_path / "a.evenhand"))
    live.look()
    inside = json.loads(live.events["found"].partition("data: ")[2])["inside"]
    last = read_record(live.path).points[0].repetitions[0].searches[0].trials[-1]
    assert inside["trial"] == last.number
    assert inside["cpus"] == [{"cpu": 0, "busy": 0.25, "softirq": 0.125}]
    assert [(each["interface"], each["queue"], each["share"]) for each in inside["queues"]] == [
        ("eth0", 0, 0.75),
        ("eth0", 1, 0.25),
    ]
    assert inside["dropped_packets"] == 7


def test_what_another_process_left_beside_a_run_is_not_shown(tmp_path: Path) -> None:
    path = copy_recorded("campaign-cut-short", tmp_path / "a.evenhand")
    RunningFile(path).begin("x")  # by this process, which does not hold the run
    live = LiveRun(path=path)
    live.look()
    assert live.running is None
    found = json.loads(live.events["found"].partition("data: ")[2])
    assert [point["asked"] for point in found["points"]]
    measured = [point for point in found["points"] if point["values"]]
    assert [(point["low"], point["y"], point["high"]) for point in measured] == [
        (min(point["values"]), median(point["values"]), max(point["values"])) for point in measured
    ]
    assert measured


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
        told: list[float] = []
        with urlopen(f"{address}/run/a.evenhand/events") as events:
            for line in events:
                text = line.decode().strip()
                if text.startswith("event: "):
                    kinds.append(text.removeprefix("event: "))
                    if kinds.count("samples") == 2:
                        process.kill()
                if text.startswith("data: ") and kinds[-1] == "samples":
                    told += [sample["at"] for sample in json.loads(text.removeprefix("data: "))]
                if text.startswith("data: ") and kinds[-1] == "ended":
                    assert json.loads(text.removeprefix("data: ")) == "killed"
        assert kinds[-1] == "ended"
        assert {"samples", "now", "found"} <= set(kinds)
        assert told == sorted(set(told))  # each is told once, in order
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
