# SPDX-License-Identifier: Apache-2.0
"""`evenhand latency` and `evenhand pdv`: from options to a table and a stored run; bad input starts
nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--duration", "1s", "--repetitions", "3", "--waits", "short")
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_latency_is_measured_at_the_throughput_of_an_earlier_run(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """R8219-07, R8219-11: the throughput is known first; then a row for each direction and figure."""
    engine_playing("simulated-640000")
    before, run = tmp_path / "before.evenhand", tmp_path / "latency.evenhand"
    assert evenhand("throughput", testbed, *SEARCH, "--plan", plan, "--run", before).code == 0
    (search,) = read_run(before).searches
    assert search.result is not None
    ended = evenhand(
        "latency", testbed, *QUICK, "--plan", plan, "--after", before, "--from", "0.5s", "--run", run
    )
    assert ended.code == 0, ended.err
    assert "typical (median)" in ended.out
    assert "worst case (99.9th percentile)" in ended.out
    assert f"UDP over IPv{plan[-1]}" in ended.out
    assert "the throughput for this frame size was not measured before" not in ended.out
    (stored,) = read_run(run).searches
    assert (stored.kind, stored.outcome, len(stored.trials)) == ("latency", "measured", 3)
    assert {trial.result.intended_fps for trial in stored.trials} == {
        search.result["throughput_fps_per_direction"]
    }
    assert all(
        len(direction.delays.tagged_ns) == 500
        for trial in stored.trials
        for direction in trial.result.directions.values()
        if direction.delays
    )


def test_a_throughput_of_other_conditions_does_not_count(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    before = tmp_path / "before.evenhand"
    assert evenhand("throughput", testbed, *SEARCH, "--run", before).code == 0
    for other in (
        ("--frame-size", "128"),
        ("--plan", "gateway-v6"),
        ("--hosts", "7"),
        ("--direction", "forward"),
    ):
        ended = evenhand("pdv", testbed, *QUICK, "--after", before, *other)
        assert ended.code == 2
        assert ended.error.code == "cli.no-throughput"


@pytest.mark.parametrize(("profile", "name"), [("rfc8219", "latency"), ("rfc2544", "latency-rfc2544")])
def test_a_run_names_the_latency_test_that_was_made(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, profile: str, name: str
) -> None:
    engine_playing("simulated-640000")
    run = tmp_path / "latency.evenhand"
    ended = evenhand("latency", testbed, *QUICK, "--rate", "1kfps", "--profile", profile, "--run", run)
    assert ended.code == 0, ended.err
    (stored,) = read_run(run).searches
    assert (stored.name, stored.kind) == (name, name)


def test_delay_variation_is_shown_with_its_differences(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """R8219-12, R8219-13."""
    engine_playing("simulated-640000")
    ended = evenhand("pdv", testbed, *QUICK, "--rate", "1kfps", "--ipdv", "--no-run")
    assert ended.code == 0, ended.err
    for words in ("PDV (99.9th percentile minus minimum)", "IPDV minimum", "IPDV median", "IPDV maximum"):
        assert words in ended.out
    assert (
        "Deviation from R8219-12: the throughput for this frame size was not measured before; the rate"
        " was given by the user" in ended.out
    )


@pytest.mark.parametrize("verb", ["latency", "pdv"])
@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        ((), "procedure.no-load", "--rate, --after"),
        (("--rate", "0"), "base.out-of-range", "--rate"),
        (("--rate", "1kfps", "--repetitions", "0"), "procedure.out-of-range", "--repetitions"),
        (("--rate", "1kfps", "--duration", "0s"), "procedure.out-of-range", "--duration"),
        (("--rate", "1kfps", "--duration", "1s", "--from", "1s"), "procedure.delays-after-the-end", "--from"),
        (("--rate", "1kfps", "--after", "nothing.evenhand"), "run.no-such-file", "nothing.evenhand"),
    ],
)
def test_bad_options_start_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    verb: str,
    options: tuple[str, ...],
    code: str,
    where: str,
) -> None:
    engine_playing("fair")
    ended = evenhand(verb, testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
