# SPDX-License-Identifier: Apache-2.0
"""Rates of the line, rates of the directions, and delays at shares of the throughput: from the command line
to the engine's requests and the run file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.run import read_run
from tests.cli.running import Ended
from tests.run.campaign.small_campaign import write_campaign
from tests.trial.test_contract_golden import validator

Run = Callable[..., Ended]
Play = Callable[[str], Path]
TRIAL = ("--duration", "1s", "--waits", "short")
SEARCH = ("--duration", "1s", "--final-duration", "1s", "--waits", "short")
DELAY = ("--duration", "1s", "--repetitions", "1", "--waits", "short", "--from", "0.5s")


@pytest.fixture
def line(testbed: Path) -> Path:
    """Ports that know their line rate: 1 Gbps, 1,488,095 frames of 64 octets."""
    text = testbed.read_text()
    for side in ("left", "right"):
        text = text.replace(f"[{side}]\n", f'[{side}]\nline_rate = "1Gbps"\n')
    assert text.count("line_rate") == 2
    testbed.write_text(text)
    return testbed


def trials_of(requests: Path) -> list[dict[str, Any]]:
    made = [json.loads(text) for text in requests.read_text().splitlines() if text.strip()]
    return [each for each in made if each["request"] == "trial"]


@pytest.mark.parametrize(
    ("plan", "size", "rate", "fps"),
    [
        ("gateway-v4", "64", "50%", 744_047),
        ("gateway-v6", "128", "50%", 422_297),
        ("gateway-v4", "64", "500Mbit/s", 744_047),
    ],
)
def test_a_trial_at_a_share_of_the_line(
    evenhand: Run, engine_playing: Play, line: Path, plan: str, size: str, rate: str, fps: int
) -> None:
    engine_playing("simulated-640000000")
    given = ("--plan", plan, "--frame-size", size, "--rate", rate)
    ended = evenhand("trial", line, *TRIAL, *given)
    assert ended.code == 0, ended.err
    assert f"at {fps:,} fps per direction (50 % of the line rate, 500 Mbit/s on the line)" in ended.out
    document = json.loads(evenhand("trial", line, *TRIAL, *given, "--json").out)
    assert document["trial"]["intended_fps"] == fps


@pytest.fixture
def unlike(testbed: Path) -> Path:
    """10 Gbps on the left, 1 Gbps on the right."""
    text = testbed.read_text()
    for side, rate in (("left", "10Gbps"), ("right", "1Gbps")):
        text = text.replace(f"[{side}]\n", f'[{side}]\nline_rate = "{rate}"\n')
    testbed.write_text(text)
    return testbed


def test_of_unlike_ports_a_share_is_of_the_one_that_sends(
    evenhand: Run, engine_playing: Play, unlike: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000000")
    ended = evenhand("trial", unlike, *TRIAL, "--rate", "10%", "--run", "a.evenhand")
    assert ended.code == 0, ended.err
    told = " ".join(ended.out.split())
    assert "at 1,488,095 fps forward (10 % of left's line rate)" in told
    assert "and 148,809 fps reverse (10 % of right's line rate)" in told
    assert "Line rates: 10 Gbps left, 1 Gbps right" in told
    document = json.loads(evenhand("trial", unlike, *TRIAL, "--rate", "10%", "--json").out)
    assert document["line_rates"] == {"left_bps": 1e10, "right_bps": 1e9}
    validator("result").validate(document)
    one_way = evenhand("trial", unlike, *TRIAL, "--rate", "2Gbit/s", "--direction", "forward").out
    assert "at 2,976,190 fps per direction (20 % of left's line rate, 2 Gbit/s on the line)" in one_way
    (search,) = read_run(tmp_path / "a.evenhand").searches
    assert search.trials[0].result.directions["reverse"].intended_fps == 148_809


def test_a_load_may_overload_the_port_that_receives_and_never_the_one_that_sends(
    evenhand: Run, engine_playing: Play, unlike: Path
) -> None:
    engine_playing("simulated-640000000")
    assert evenhand("trial", unlike, *TRIAL, "--rate", "14.8Mfps/1Mfps").code == 0
    for rate, direction in (("2Mfps", "reverse"), ("15Mfps", "forward"), ("2Mfps", "both")):
        ended = evenhand("trial", unlike, *TRIAL, "--rate", rate, "--direction", direction)
        assert (ended.code, ended.error.code) == (2, "rig.above-line-rate")
    ended = evenhand("trial", unlike, *TRIAL, "--rate", "14Mfps/2Mfps")
    assert (ended.code, ended.error.code) == (2, "rig.above-line-rate")


def test_a_search_begins_at_what_the_slower_line_of_a_direction_carries(
    evenhand: Run, engine_playing: Play, unlike: Path
) -> None:
    engine_playing("simulated-640000000")
    ended = evenhand("throughput", unlike, *SEARCH, "--direction", "forward", "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert document["throughput_fps_per_direction"] == 1_488_095
    told = " ".join(evenhand("throughput", unlike, *SEARCH).out.split())
    assert "theoretical limit 1,488,095 fps per direction (10 Gbps left, 1 Gbps right)" in told
    burst = evenhand("burst", unlike, "--burst", "16", "--rate", "50%", "--waits", "short", "--json")
    assert burst.code == 0, burst.err
    assert json.loads(burst.out)["goal"]["rate_fps_per_direction"] == 744_047


def test_a_share_of_no_line_is_refused_before_anything_is_sent(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("simulated-640000")
    ended = evenhand("trial", testbed, *TRIAL, "--rate", "50%")
    assert (ended.code, ended.error.code) == (2, "base.no-line-rate")
    ended = evenhand("throughput", testbed, *SEARCH, "--maximum-rate", "50%")
    assert (ended.code, ended.error.code) == (2, "base.no-line-rate")
    assert evenhand("trial", testbed, *TRIAL, "--rate", "100Mbit/s").code == 0


def test_a_table_of_frame_sizes_has_the_same_share_for_each(
    evenhand: Run, engine_playing: Play, line: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000000")
    run = tmp_path / "a.evenhand"
    ended = evenhand(
        "throughput", line, *SEARCH, "--maximum-rate", "50%", "--frame-size", "64,128", "--run", run
    )
    assert ended.code == 0, ended.err
    found = {search.frame_size: search.goal["max_fps"] for search in read_run(run).searches}
    assert found == {64: 744_047, 128: 422_297}


def test_a_trial_with_a_rate_for_each_direction(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("trial", testbed, *TRIAL, "--rate", "400kfps/100kfps", "--run", run)
    assert ended.code == 0, ended.err
    assert "at 400,000 fps forward and 100,000 fps reverse" in ended.out
    assert "forward and reverse 4:1" in ended.out
    (search,) = read_run(run).searches
    directions = search.trials[0].result.directions
    assert {name: of.intended_fps for name, of in directions.items()} == {
        "forward": 400_000,
        "reverse": 100_000,
    }
    assert {name: of.offered_frames for name, of in directions.items()} == {
        "forward": 400_000,
        "reverse": 100_000,
    }
    shown = evenhand("show", run).out
    assert "400,000" in shown
    assert "100,000" in shown


@pytest.mark.parametrize("search", ["binary", "tst009", "mlr"])
def test_a_search_moves_both_directions_in_their_ratio(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, search: str
) -> None:
    """The device forwards 640 kfps in each direction: the faster one finds it."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    given = ("--maximum-rate", "1Mfps", "--search", search, "--ratio", "1:4")
    ended = evenhand("throughput", testbed, *SEARCH, *given, "--run", run, "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    found = document["throughput_fps_per_direction"]
    assert 640_000 * 0.99 < found <= 640_000
    assert document["throughput_fps_total"] == pytest.approx(found * 1.25)
    assert document["rates"] == {"ratio": [1.0, 4.0]}
    for trial in read_run(run).searches[-1].trials:
        directions = trial.result.directions
        assert directions["reverse"].intended_fps == trial.result.intended_fps
        assert directions["forward"].intended_fps == pytest.approx(trial.result.intended_fps / 4)
    told = evenhand("throughput", testbed, *SEARCH, *given).out
    assert f"{round(found / 4):,} fps forward, {round(found):,} fps reverse" in " ".join(told.split())
    assert "load forward" in told


def test_one_direction_is_held_while_the_other_is_searched(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    given = ("--maximum-rate", "1Mfps", "--hold", "reverse=10kfps")
    ended = evenhand("throughput", testbed, *SEARCH, *given, "--run", run)
    assert ended.code == 0, ended.err
    assert "reverse held at 10 kfps" in ended.out
    for trial in read_run(run).searches[-1].trials:
        directions = trial.result.directions
        assert directions["forward"].intended_fps == trial.result.intended_fps
        assert directions["reverse"].intended_fps == pytest.approx(10_000)


@pytest.mark.parametrize(
    ("verb", "given", "code"),
    [
        ("trial", ("--rate", "1Mfps/1kfps", "--ratio", "4:1"), "spec.rates-given-twice"),
        ("trial", ("--rate", "1Mfps", "--ratio", "4:1", "--hold", "forward=1kfps"), "spec.rates-given-twice"),
        ("trial", ("--rate", "1Mfps", "--ratio", "4"), "spec.not-a-ratio"),
        ("trial", ("--rate", "1Mfps", "--ratio", "0:1"), "spec.not-a-ratio"),
        ("trial", ("--rate", "1Mfps", "--hold", "up=1kfps"), "spec.not-a-held-direction"),
        ("trial", ("--rate", "1Mfps", "--hold", "reverse"), "spec.not-a-held-direction"),
        ("trial", ("--rate", "1Mfps/", "--waits", "short"), "base.not-a-quantity"),
        (
            "trial",
            ("--rate", "1Mfps", "--ratio", "4:1", "--direction", "forward"),
            "procedure.rates-need-both-directions",
        ),
        ("burst", ("--burst", "16", "--rate", "1Mfps", "--ratio", "4:1"), "procedure.rates-not-possible"),
        ("recovery", ("--throughput", "1Mfps", "--hold", "forward=1kfps"), "procedure.rates-not-possible"),
        ("latency", ("--rate", "1Mfps", "--at", "0%"), "procedure.out-of-range"),
        ("latency", ("--rate", "1Mfps", "--at", "10%,x"), "base.not-a-quantity"),
        ("trial", ("--rate", "1Mfps", "--capture-all"), "cli.no-capture-file"),
    ],
)
def test_what_cannot_be_is_refused(
    evenhand: Run, engine_playing: Play, testbed: Path, verb: str, given: tuple[str, ...], code: str
) -> None:
    engine_playing("simulated-640000")
    ended = evenhand(verb, testbed, *given)
    assert (ended.code, ended.error.code) == (2, code)


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_delays_at_shares_of_the_throughput(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """As FD.io CSIT reports them: 10, 50 and 90 percent."""
    engine_playing("simulated-640000")
    before, run = tmp_path / "before.evenhand", tmp_path / "latency.evenhand"
    search = ("--maximum-rate", "1Mfps", *SEARCH, "--plan", plan, "--run", before)
    assert evenhand("throughput", testbed, *search).code == 0
    (found,) = read_run(before).searches
    assert found.result is not None
    throughput_fps = found.result["throughput_fps_per_direction"]
    given = (*DELAY, "--plan", plan, "--after", before, "--at", "10%,50%,90%")
    ended = evenhand("latency", testbed, *given, "--run", run)
    assert ended.code == 0, ended.err
    searches = read_run(run).searches
    assert [each.name for each in searches] == [f"latency at {share}" for share in ("10%", "50%", "90%")]
    loads = [each.trials[0].result.intended_fps for each in searches]
    assert loads == [int(share * throughput_fps) for share in (0.1, 0.5, 0.9)]
    assert ended.out.count("typical (median)") >= 3
    document = json.loads(evenhand("latency", testbed, *given, "--json").out)
    assert [row["share"] for row in document["rows"]] == ["10%", "50%", "90%"]
    assert [row["repetitions"][0]["goal"]["rate_fps_per_direction"] for row in document["rows"]] == loads


def test_the_shares_may_be_of_a_rate_that_is_given(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("simulated-640000")
    ended = evenhand(
        "pdv",
        testbed,
        "--duration",
        "1s",
        "--repetitions",
        "1",
        "--waits",
        "short",
        "--rate",
        "200kfps",
        "--at",
        "50%",
        "--json",
    )
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["goal"]["rate_fps_per_direction"] == 100_000


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_campaign_reads_them_as_the_shell_does(
    evenhand: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    """Half of the line, forward and reverse 4:1; and it says so wherever its results are shown."""
    text = f"""
name = "rates"
testbed = "testbed.toml"

[[suite]]
name = "unlike"
plan = "{plan}"
hosts = [4]
repetitions = 1
maximum-rate = "50%"
ratio = "4:1"
frame-sizes = [128]
duration = "1s"
final-duration = "1s"
waits = "short"
one-pair-first = false
"""
    path = write_campaign(tmp_path, text, part="simulated-64000000", name="rates.toml")
    testbed = tmp_path / "testbed.toml"
    testbed.write_text(
        testbed.read_text()
        .replace("[left]\n", '[left]\nline_rate = "1Gbps"\n')
        .replace("[right]\n", '[right]\nline_rate = "1Gbps"\n')
    )
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    ended = evenhand("run", path, "--run", "rates.evenhand")
    assert ended.code == 0, ended.err
    (trial, *_) = trials_of(tmp_path / "requests.jsonl")
    assert trial["rate_fps"] == 422_297
    assert trial["relative_rates"] == {"forward": 1.0, "reverse": 0.25}
    assert "loads forward:reverse 4:1" in evenhand("show", "rates.evenhand").out
    assert evenhand("report", "rates.evenhand", "--output", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "loads forward:reverse 4:1" in page
    assert "load reverse" in page
    assert "per direction (4" not in page


def test_two_points_with_other_loads_of_the_directions_are_not_alike(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("simulated-640000")
    search = ("throughput", testbed, "--maximum-rate", "1Mfps", *SEARCH, "--run")
    assert evenhand(*search, "a.evenhand").code == 0
    assert evenhand(*search, "b.evenhand", "--ratio", "4:1").code == 0
    ended = evenhand("compare", "a.evenhand", "b.evenhand")
    assert "ratio" in ended.out + ended.err


def test_learning_and_exported_flows_take_rates_of_the_line(
    evenhand: Run, engine_playing: Play, line: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    learnt = evenhand("learn", line, "--plan", "direct-v6", "--hosts", "4", "--rate", "10%")
    assert learnt.code == 0, learnt.err
    exported = evenhand(
        "plan", "export", "gateway-v6", "--frame-size", "128", "--rate", "500Mbit/s", "--json"
    )
    assert exported.code == 0, exported.err
    rates = {flow["rate"]["pps"] for flow in exported.json["otg"]["flows"]}
    assert rates == {422_297}
    refused = evenhand("plan", "export", "gateway-v4", "--rate", "50%")
    assert (refused.code, refused.error.code) == (2, "base.no-line-rate")
