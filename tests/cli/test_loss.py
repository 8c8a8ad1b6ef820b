# SPDX-License-Identifier: Apache-2.0
"""`evenhand loss`: from options to a table and a stored run; bad input starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import TESTBED, Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--waits", "short")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_series_is_shown_and_stored(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """R2544-26, R2544-27, D11: every trial, with its load and attempt."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("loss", testbed, *QUICK, "--plan", plan, "--run", run)
    assert ended.code == 0, ended.err
    assert "trial 1: 100 % of the maximum" not in ended.out
    assert "100 % of the maximum: 1 Mfps for 1 s FAIL loss 36 %" in ended.err
    assert "two successive loads lost nothing" in ended.out
    assert f"UDP over IPv{plan[-1]}" in ended.out
    (search,) = read_run(run).searches
    assert (search.kind, search.outcome) == ("loss", "lossless")
    assert [trial.result.intended_fps for trial in search.trials] == pytest.approx(
        [1e6, 9e5, 8e5, 7e5, 6e5, 5e5]
    )
    assert search.result is not None
    assert search.result["points"][0]["loss_ratio"] == pytest.approx(0.36)


def test_the_line_rate_is_the_maximum(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """R2544-27, R2544-28: 100 % is the maximum theoretical rate."""
    engine_playing("simulated-2000000")
    testbed.write_text(TESTBED.replace("[right]", 'line_rate = "1Gbps"\n[right]'))
    document = evenhand("loss", testbed, "--duration", "1s", "--waits", "short", "--json", "--no-run").json
    assert document["goal"]["max_fps"] == document["theoretical_fps_per_direction"] == 1_488_095
    assert [point["share_of_theoretical"] for point in document["points"]] == pytest.approx([1, 0.9])


@pytest.mark.parametrize(
    ("verb", "where"),
    [("loss", "max_fps"), ("back-to-back", "rate_fps_per_direction"), ("burst", "rate_fps_per_direction")],
)
def test_ports_without_a_line_rate_begin_at_the_testers_own_ceiling(
    evenhand: Run, engine_playing: Play, testbed: Path, verb: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLR-14: as the search for a throughput does; found once, and used by what comes after, whatever it
    measures and with however many hosts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(testbed.parent / "state"))
    engine_playing("simulated-300000-2500000-64")
    quick = {"back-to-back": ("--repetitions", "2", "--max-burst", "10ms"), "burst": ("--burst", "16")}
    short = ("--duration", "1s", *(() if verb == "loss" else ("--final-duration", "1s", *quick[verb])))
    first = evenhand(verb, testbed, *short, "--waits", "short", "--json", "--no-run")
    document = first.json.get("rows", [first.json])[0]
    ceiling_fps = document["goal"][where]
    assert 2_300_000 <= ceiling_fps <= 2_500_000
    assert "found just now" in first.err
    if verb != "loss":
        told = " ".join(deviation["text"] for deviation in first.json["deviations"])
        assert "the rate of the bursts is the tester's own ceiling" in told
    again = evenhand(
        "loss", testbed, "--hosts", "9", "--duration", "1s", "--waits", "short", "--json", "--no-run"
    )
    assert again.json["goal"]["max_fps"] == ceiling_fps
    assert "own ceiling of" in again.err
    assert "found on" in again.err


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--step", "11%"), "procedure.out-of-range", "--step"),
        (("--step", "0"), "procedure.out-of-range", "--step"),
        (("--duration", "0s"), "procedure.out-of-range", "--duration"),
        (("--maximum-rate", "0"), "base.out-of-range", "--maximum-rate"),
        (("--frame-size", "9217"), "procedure.frame-size-out-of-range", "--frame-size"),
        (("--plan", "gateway-v5"), "plan.unknown-name", "--plan"),
    ],
)
def test_bad_options_start_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    code: str,
    where: str,
) -> None:
    engine_playing("fair")
    ended = evenhand("loss", testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
