# SPDX-License-Identifier: Apache-2.0
"""`evenhand router`: options become the router that was asked for, and a tester finds it by the file that is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from evenhand.cli.main import main
from evenhand.errors import HostError
from evenhand.programs import ENGINE, ROUTER, find_program

EVENHAND = [sys.executable, "-m", "evenhand"]
CONTRACT = Path(__file__).parents[2] / "contract"


def test_the_configuration_is_printed_and_nothing_started(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--elements 36 --rate 50kfps --queue 100 --hash type2 --symmetric --delay 100us --neighbor-cost 4096,10% --defect loss=0.1%"
    assert main(["router", "gateway-v6", *options.split(), "--print-config"]) == 0
    config = json.loads(capsys.readouterr().out)
    jsonschema.validate(config, json.loads((CONTRACT / "router-config.schema.json").read_text()))
    elements = config["elements"]
    assert (elements["count"], elements["rate_fps"], elements["queue_frames"], elements["hash"]) == (36, 50_000, 100, "type2")
    assert elements["symmetric"]
    assert config["extra_delay_us"] == pytest.approx(100)
    assert config["neighbors"] == {"free_entries": 4096, "growth": 0.1}
    assert config["defects"]["loss"] == {"ratio": 0.001}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--elements 4", "--elements, --rate"),
        ("--rate 50kfps", "--elements, --rate"),
        ("--elements 1000 --rate 50kfps", "1000 elements"),
        ("--defect losses=1%", "losses=1%"),
        ("--neighbor-cost 10%", "--neighbor-cost"),
        ("--delay soon", "--delay"),
    ],
)
def test_what_makes_no_router_is_refused(options: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["router", "gateway-v4", *options.split(), "--print-config"]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.wire
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="router and tester need a CPU each")
def test_a_tester_finds_it_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    for program in (ENGINE, ROUTER):
        try:
            find_program(program)
        except HostError as error:
            pytest.skip(str(error))
    testbed = tmp_path / "reference-router.toml"
    router = subprocess.Popen(
        [*EVENHAND, "router", "gateway-v4", "--elements", "4", "--rate", "100kfps", "--json"], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    give_up = time.monotonic() + 60
    while not testbed.exists():
        assert router.poll() is None, router.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.05)
    trial = subprocess.run(
        [*EVENHAND, "trial", str(testbed), "--rate", "5kfps", "--duration", "1s", "--waits", "short", "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    router.send_signal(signal.SIGINT)
    printed, told = router.communicate(timeout=60)
    assert trial.returncode == 0, trial.stderr
    assert router.returncode == 0, told
    counters = json.loads(printed)
    assert counters["left"]["received_frames"] >= 5_000
    assert len(counters["elements"]) == 4
    assert not testbed.exists()
