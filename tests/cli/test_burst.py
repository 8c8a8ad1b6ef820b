# SPDX-License-Identifier: Apache-2.0
"""`evenhand burst`: from options to a table and a stored run; bad input starts nothing."""

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
    "--duration",
    "1s",
    "--final-duration",
    "1s",
    "--precision",
    "2%",
    "--waits",
    "short",
)


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_search_for_each_size_is_shown_and_stored(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """R2544-17, D11."""
    engine_playing("simulated-640000--100")
    run = tmp_path / "a.evenhand"
    ended = evenhand("burst", testbed, *QUICK, "--burst", "16,1024", "--plan", plan, "--run", run)
    assert ended.code == 0, ended.err
    assert "no interval up to" in ended.out
    assert "Deviation from R2544-17: bursts of 16, 1,024 frames instead of 16, 64, 256, 1,024" in ended.out
    assert "bursts of 16 frames:" in ended.err
    assert "; mean load " in ended.err
    assert "throughput" not in ended.err
    stored = read_run(run).searches
    assert [(search.kind, search.outcome) for search in stored] == [
        ("burst", "found"),
        ("burst", "below_minimum"),
    ]
    assert stored[0].result is not None
    assert stored[0].result["interval_s"] == pytest.approx(16 / 640e3, rel=0.03)
    assert all(trial.result.raw["burst"]["frames"] == 16 for trial in stored[0].trials)


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--burst", "0"), "base.out-of-range", "--burst"),
        (("--burst", "16,16"), "procedure.not-burst-sizes", "--burst"),
        (("--burst", ""), "base.not-a-quantity", "--burst"),
        (("--rate", "0"), "base.out-of-range", "--rate"),
        (("--precision", "0"), "search.out-of-range", "--precision"),
        (
            ("--rate", "1kfps", "--burst", "1024", "--duration", "1s"),
            "procedure.bursts-too-long",
            "--burst, --duration",
        ),
        (("--frame-size", "64,128"), "spec.several-sizes", "--frame-size"),
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
    ended = evenhand("burst", testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
