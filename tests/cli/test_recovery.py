# SPDX-License-Identifier: Apache-2.0
"""`evenhand recovery`: from options to a table and a stored run; bad input starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--duration", "1s", "--observe", "1s", "--repetitions", "2", "--waits", "short")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_overloads_by_the_throughput_of_a_run_are_shown_and_stored(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """R2544-29, D11."""
    engine_playing("simulated-640000")
    before, run = tmp_path / "before.evenhand", tmp_path / "a.evenhand"
    search = (
        "--maximum-rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        "--waits",
        "short",
        "--plan",
        plan,
    )
    assert evenhand("throughput", testbed, *search, "--run", before).code == 0
    ended = evenhand("recovery", testbed, *QUICK, "--plan", plan, "--after", before, "--run", run)
    assert ended.code == 0, ended.err
    assert "as measured in before.evenhand" in ended.out
    assert "Deviation from R2544-29: the overload lasted 1 s instead of 60 s" in ended.out
    (stored,) = read_run(run).searches
    assert (stored.kind, stored.outcome, len(stored.trials)) == ("recovery", "measured", 2)
    assert stored.result is not None
    measured_fps = stored.goal["throughput_fps_per_direction"]
    assert stored.result["overload_fps_per_direction"] == pytest.approx(1.1 * measured_fps)
    assert stored.trials[0].result.raw["then"]["rate_fps"] == pytest.approx(0.55 * measured_fps)


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        ((), "procedure.no-load", "--throughput, --after"),
        (
            ("--throughput", "1kfps", "--after", "nothing.evenhand"),
            "procedure.two-throughputs",
            "--throughput, --after",
        ),
        (("--after", "nothing.evenhand"), "run.no-such-file", "nothing.evenhand"),
        (("--throughput", "0"), "base.out-of-range", "--throughput"),
        (("--throughput", "1kfps", "--repetitions", "0"), "procedure.out-of-range", "--repetitions"),
        (("--throughput", "1kfps", "--observe", "0s"), "procedure.out-of-range", "--observe"),
        (("--throughput", "1kfps", "--duration", "0s"), "procedure.out-of-range", "--duration"),
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
    ended = evenhand("recovery", testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
