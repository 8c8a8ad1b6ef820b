# SPDX-License-Identifier: Apache-2.0
"""Every bench of `make bench` runs, and its table sets the newest figures beside the last ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHES = re.findall(r"^names=\((.*)\)$", (ROOT / "tools/bench").read_text(), re.MULTILINE)[0].split()


def short(*names: str) -> str:
    """What it prints. A busy host may leave so short a run without a figure: it gets a second one."""
    for _ in range(2):
        done = subprocess.run(
            [ROOT / "tools/bench", "--short", *names], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(done.stdout + done.stderr)


def recorded(folder: Path, name: str, **document: object) -> None:
    whole = {"name": name, "at": "2026-11-28T04:00:00+00:00", "host": {"cpu_model": "AMD EPYC"}, **document}
    (folder / f"{name}.json").write_text(json.dumps(whole))


def test_a_shortened_bench_records_nothing() -> None:
    results = ROOT / "bench/results/predict.json"
    before = results.read_bytes()
    assert "predict: shortened, nothing recorded" in short("predict")
    assert results.read_bytes() == before


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_runs(name: str) -> None:
    printed = short(name).splitlines()
    assert [line for line in printed if line.endswith("nothing recorded")] == [
        f"{name}: shortened, nothing recorded"
    ]


def test_the_table_shows_newest_beside_last(tmp_path: Path) -> None:
    last = {"at": "2026-11-20T04:00:00+00:00", "cpu_model": "Intel Xeon", "figures": {"IPv4 (ns)": 5.0}}
    recorded(tmp_path, "a", figures={"IPv4 (ns)": 6.0, "IPv6 (ns)": 7.0}, last=last)
    recorded(tmp_path, "b")
    done = subprocess.run(
        [sys.executable, ROOT / "bench/table.py", tmp_path], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines() if line]
    assert ["IPv4", "(ns)", "6", "5", "1.200"] in lines
    assert ["IPv6", "(ns)", "7", "-", "-"] in lines
    assert "a: 2026-11-28, AMD EPYC; last: 2026-11-20, Intel Xeon" in done.stdout
    assert "run this bench again" in done.stdout
