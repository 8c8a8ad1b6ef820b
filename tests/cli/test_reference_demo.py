# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo` for real, on the reference router: three searches, a verdict, a page; and what is left when
it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.base.programs import ENGINE, ROUTER, find_program
from evenhand.run import read_run
from tests.cli.test_json_documents import validate

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
EVENHAND = [sys.executable, "-m", "evenhand"]
GUARD_S = 240
STALLED_GUARD_S = 1200
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _needs_programs() -> None:
    for program in (ENGINE, ROUTER):
        try:
            find_program(program)
        except HostError as error:
            pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_quick_demo_shows_the_bias(tmp_path: Path, plan: str) -> None:
    """SEED-69, SEED-70, SEED-71: one pair meets one element a direction, many addresses meet all, and each
    search has its prediction."""
    run, page = tmp_path / "demo.evenhand", tmp_path / "demo.html"
    command = [*EVENHAND, "demo", "--quick", "--plan", plan, "--json", "--run", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S, check=False)
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    validate(document)
    one, many, ports = document["searches"]
    assert [s["hash_type"] for s in (one, many, ports)] == ["type1", "type1", "type2"]
    assert one["hosts"]["left"] == ports["hosts"]["left"] == 1
    assert many["hosts"]["left"] > 65_000
    assert one["predicted_fps_per_direction"] == 50_000
    assert 0.95 * 400_000 < many["predicted_fps_per_direction"] <= 400_000
    assert one["elements_at_work"] == 2
    assert many["elements_at_work"] == ports["elements_at_work"] == 16
    found = [s["found_fps_per_direction"] for s in (one, many, ports)]
    if None in found:
        # A busy machine can end a search with "tester ceiling". It says so, and claims nothing.
        assert document["verdict"][0].startswith("No verdict")
        assert done.returncode == 1
    else:
        assert done.returncode == 0
        assert found[0] < found[1] / 4
        assert document["verdict"][0].startswith("Biased: one address pair shows")
    stored = read_run(run)
    assert sum(len(search.trials) for search in stored.searches) == sum(
        len(s["trials"]) for s in (one, many, ports)
    )
    text = page.read_text()
    assert "<svg" in text
    report = [*EVENHAND, "report", str(run)]
    told = subprocess.run(report, capture_output=True, text=True, timeout=GUARD_S, check=True).stdout
    assert "demo-report.html" in told
    assert page.read_text() == text
    for reference in ("http://", "https://", "src=", "@import"):  # static, without network access
        assert reference not in text.replace("http://www.w3.org/", "").replace(
            "http://purl.org/", ""
        ).replace("http://creativecommons.org/", "")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="taking a CPU away needs root")
@pytest.mark.parametrize("cpu", [0, -1], ids=["of-the-router", "of-the-tester"])
def test_a_demo_comes_to_its_end_on_a_host_that_takes_cpus_away(tmp_path: Path, cpu: int) -> None:
    """SEED-69, SEED-70, SEED-71: three numbers, none of them that of the host, however many trials it
    spoils."""
    stalled = sorted(os.sched_getaffinity(0))[cpu]
    injector = subprocess.Popen(
        [sys.executable, ROOT / "tests" / "stall.py", str(stalled), str(STALLED_GUARD_S), "1500", "7"]
    )
    try:
        command = [*EVENHAND, "demo", "--json", "--run", str(tmp_path / "demo.evenhand")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STALLED_GUARD_S, check=False)
        assert injector.poll() is None
    finally:
        injector.kill()
        injector.wait()
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    validate(document)
    assert [search["is_as_predicted"] for search in document["searches"]] == [True] * 3, done.stderr
    stored = [len(search.trials) for search in read_run(tmp_path / "demo.evenhand").searches]
    assert sum(stored) == sum(
        len(search["trials"]) + search["trials_given_up"] for search in document["searches"]
    )


@pytest.mark.patient
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGTERM, id="term", marks=pytest.mark.thorough),
    ],
)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """No router, no engine, no folder of sockets stays behind."""
    environment = {**os.environ, "TMPDIR": tempfile.mkdtemp(prefix="eh-", dir="/tmp")}
    folder = Path(environment["TMPDIR"])
    process = subprocess.Popen(
        [*EVENHAND, "demo", "--quick", "--no-run"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    give_up = time.monotonic() + 60
    while len(children := _children(process.pid)) < 2:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < give_up
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert list(folder.iterdir()) == []
    folder.rmdir()


def _children(parent: int) -> list[int]:
    listed = subprocess.run(
        ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
    ).stdout.split()
    return [int(pid) for pid in listed]
