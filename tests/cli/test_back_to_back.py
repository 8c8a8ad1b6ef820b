# SPDX-License-Identifier: Apache-2.0
"""`evenhand back-to-back`: from options to a table and a stored run; bad input starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = (
    "--rate",
    "1Mfps",
    "--max-burst",
    "10ms",
    "--repetitions",
    "2",
    "--waits",
    "short",
    "--duration",
    "1s",
    "--final-duration",
    "1s",
)
LONGEST = 1422
"""A buffer of 512 frames that is drained at 640 kfps while 1 Mfps come."""


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_throughput_first_then_bursts_and_all_of_it_is_stored(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """R9004-01, R9004-06, R9004-11, D11: a run has the throughput and each search."""
    engine_playing("simulated-640000--512")
    run = tmp_path / "a.evenhand"
    ended = evenhand("back-to-back", testbed, *QUICK, "--plan", plan, "--run", run)
    assert ended.code == 0, ended.err
    assert "1,422" in ended.out
    assert "2 of 2" in ended.out
    assert "Deviation from R9004-06: 2 repetitions instead of 50" in ended.out
    assert ("Deviation from R5180-17" in ended.out) == (plan == "gateway-v6")
    assert "burst of 10,000 frames: 1 Mfps for 10 ms FAIL" in ended.err
    stored = read_run(run).searches
    assert [search.kind for search in stored] == ["throughput", "back-to-back", "back-to-back"]
    assert [search.result["longest_burst_frames"] for search in stored[1:] if search.result] == [
        LONGEST,
        LONGEST,
    ]


def test_a_throughput_that_was_measured_before_is_taken(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """R9004-01: of the same testbed, plan, addresses, size and directions."""
    engine_playing("simulated-640000--512")
    before = tmp_path / "before.evenhand"
    search = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short")
    assert evenhand("throughput", testbed, *search, "--run", before).code == 0
    ended = evenhand("back-to-back", testbed, *QUICK, "--after", before, "--json", "--no-run")
    assert ended.code == 0, ended.err
    (row,) = ended.json["rows"]
    assert row["goal"]["throughput_source"] == "before.evenhand"
    assert row["throughput"] is None
    assert row["values"] == [LONGEST, LONGEST]
    assert "given by the user and not measured first" not in str(ended.json["deviations"])
    assert evenhand("back-to-back", testbed, *QUICK, "--after", before, "--frame-size", "128").code == 2


def test_a_size_at_the_rate_of_the_bursts_is_skipped(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """R9004-02."""
    engine_playing("simulated-2000000")
    ended = evenhand("back-to-back", testbed, *QUICK, "--frame-size", "64,128", "--no-run")
    assert ended.code == 1, ended.err  # no size has a number
    assert ended.out.count("not tested (RFC 9004, 6.1)") == 2
    assert "burst of" not in ended.err


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--max-burst", "31s"), "procedure.out-of-range", "--max-burst"),
        (("--max-burst", "0s"), "procedure.out-of-range", "--max-burst"),
        (("--step", "0"), "base.out-of-range", "--step"),
        (("--repetitions", "0"), "procedure.out-of-range", "--repetitions"),
        (("--rate", "0"), "base.out-of-range", "--rate"),
        (("--frame-size", "IMIX"), "spec.mixed-sizes", "--frame-size"),
        (("--frame-size", "64,128", "--throughput", "1kfps"), "cli.one-frame-size-only", "--throughput"),
        (
            ("--throughput", "1kfps", "--after", "nothing.evenhand"),
            "procedure.two-throughputs",
            "--throughput, --after",
        ),
        (("--after", "nothing.evenhand"), "run.no-such-file", "nothing.evenhand"),
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
    """R9004-04, R6985-02."""
    engine_playing("fair")
    ended = evenhand("back-to-back", testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
