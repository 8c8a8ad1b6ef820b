# SPDX-License-Identifier: Apache-2.0
"""Python programs that the how-tos show, run on a simulated device. Those that need more are run in
tests/docs and tests/wire."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import evenhand as package
from tests.cli.running import Ended
from tests.docs.documents import blocks

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short")


def shown(document: str, number: int = 0) -> str:
    return blocks("python", document=f"docs/how-to/{document}.md")[number].text


def run_program(text: str) -> str:
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_campaigns_and_runs_are_read_by_their_names(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """As the how-tos read and compare them."""
    for name, fps in (("quick", 640_000), ("before", 640_000), ("after", 576_000)):
        engine_playing(f"simulated-{fps}")
        assert evenhand("throughput", testbed, *SEARCH, "--run", f"{name}.evenhand").code == 0
    key, state, *_ = run_program(shown("run-a-campaign")).split()
    assert key.endswith("/throughput")
    assert state == "measured"
    key, performance = run_program(shown("compare-two-runs")).split()
    assert "/throughput" in key
    assert 0.88 < float(performance) < 0.92


def test_a_script_shows_what_happens_and_measures_a_mix(
    engine_playing: Play, testbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine_playing("simulated-640000")
    names: dict[str, object] = {"evenhand": package}
    exec(shown("measure-from-python", 1), names)
    exec(shown("mix-frames"), names)
    mixed = names["found"]
    assert isinstance(mixed, package.Throughput)
    with package.open_testbed(testbed, on_event=names["show"]) as opened:  # type: ignore[arg-type]
        found = opened.throughput(plan=mixed.profile.plan)
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.split()[1] in {"PASS", "FAIL", "INVALID"} for line in printed) == len(found.search.trials)
