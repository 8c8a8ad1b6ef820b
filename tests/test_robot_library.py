# SPDX-License-Identifier: Apache-2.0
"""The example library for Robot Framework, with an engine that plays a part."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evenhand.run import read_record
from tests.cli.running import TESTBED
from tests.preloaded.commands import scripted_engine_command

ROOT = Path(__file__).resolve().parents[1]
QUIET = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
"""Nothing is left in examples/."""
SUITE = """
*** Settings ***
Library         EvenhandLibrary    bed.toml    folder=${OUTPUT DIR}    retries=${1}

*** Test Cases ***
Passes
    ${trial} =    Make Trial    rate=500kfps    duration=1s    frame_size=${128}
    Trial Should Pass    ${trial}

Fails
    ${trial} =    Make Trial    rate=700kfps    duration=1s
    Trial Should Pass    ${trial}

Searches
    ${found} =    Find Throughput    maximum=1Mfps    duration=1s    precision=0.1
    Throughput Should Be At Least    ${found}    600kfps
    Run Keyword And Expect Error    *but at least 900,000 fps is required*
    ...    Throughput Should Be At Least    ${found}    900kfps
"""


def run(folder: Path, part: str) -> dict[str, tuple[str, str]]:
    """Status and message of each test, when the engine plays this part."""
    engine = folder / "engine"
    engine.write_text(f"#!/bin/sh\nexec {shlex.join(scripted_engine_command())} {part} {folder}/requests\n")
    engine.chmod(0o755)
    (folder / "bed.toml").write_text(TESTBED)
    (folder / "a.robot").write_text(SUITE)
    line = ["robot", "--outputdir", "out", "--pythonpath", str(ROOT / "examples"), "a.robot"]
    ended = subprocess.run(
        [sys.executable, "-m", *line],
        cwd=folder,
        env={**QUIET, "EVENHAND_ENGINE": str(engine)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = folder / "out" / "output.xml"
    assert output.exists(), ended.stdout + ended.stderr
    found = {}
    for test in ElementTree.parse(output).iter("test"):
        status = test.find("status")
        assert status is not None
        found[test.attrib["name"]] = (status.attrib["status"], status.text or "")
    return found


@pytest.mark.thorough
def test_the_router_passes_and_fails(tmp_path: Path) -> None:
    found = run(tmp_path, "simulated-640000")
    assert found["Passes"] == ("PASS", "")
    assert found["Fails"][0] == "FAIL"
    assert "FAIL at 700,000 fps" in found["Fails"][1]
    assert found["Searches"][0] == "PASS", found["Searches"]
    record = read_record(tmp_path / "out" / "Passes.evenhand")
    assert record.other_searches[0].frame_size == 128


@pytest.mark.thorough
def test_what_the_tester_could_not_decide_is_skipped(tmp_path: Path) -> None:
    found = run(tmp_path, "simulated-640000-400000")
    assert found["Passes"][0] == found["Fails"][0] == "SKIP"
    assert "INVALID 2 times" in found["Passes"][1]


def test_its_keywords_are_documented() -> None:
    options = ["--pythonpath", str(ROOT / "examples"), "EvenhandLibrary::reference", "show"]
    ended = subprocess.run(
        [sys.executable, "-m", "robot.libdoc", *options],
        env=QUIET,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    for keyword in ("Make Trial", "Find Throughput", "Trial Should Pass", "Throughput Should Be At Least"):
        assert keyword in ended.stdout
