# SPDX-License-Identifier: Apache-2.0
"""pytest-evenhand, as a router's repository has it: pytest in a process of its own, which finds the plugin by
its entry point, with an engine that plays a part."""

from __future__ import annotations

import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, Properties, TestCase

from evenhand.run import read_record
from tests.cli.running import TESTBED
from tests.preloaded.commands import scripted_engine_command

CONDITIONS = 'plan="gateway-v4", waits=evenhand.SHORT_WAITS'


@dataclass(frozen=True)
class Suite:
    """How a test suite ended."""

    code: int
    out: str
    cases: dict[str, TestCase]

    def kinds(self, name: str) -> list[type]:
        """What JUnit has of a test: Failure, Error, or nothing where it passed."""
        return [type(result) for result in self.cases[name].result]

    def properties(self, name: str) -> dict[str, str]:
        """What a test recorded for its report."""
        case: Any = self.cases[name]
        return {each.name: each.value for each in case.child(Properties)}


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Suite]:
    """Run these tests against an engine that plays this part."""

    def run(part: str, body: str, *options: str, testbed: bool = True) -> Suite:
        (tmp_path / "engine").write_text(
            f"#!/bin/sh\nexec {shlex.join(scripted_engine_command())} {part} {tmp_path}/requests.jsonl\n"
        )
        (tmp_path / "engine").chmod(0o755)
        (tmp_path / "bed.toml").write_text(TESTBED)
        (tmp_path / "test_it.py").write_text("import pytest, evenhand\n" + textwrap.dedent(body))
        bed = ["--evenhand-testbed", "bed.toml"] if testbed else []
        quiet = ["-p", "no:cacheprovider", "-p", "no:xdist", "--junit-xml=junit.xml"]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *bed, *options, "test_it.py"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "EVENHAND_ENGINE": str(tmp_path / "engine")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        suites = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        cases = {case.name: case for suite in suites for case in suite}
        return Suite(ended.returncode, ended.stdout + ended.stderr, cases)

    return run


def test_what_the_dut_loses_is_a_failure_with_its_reason(suite: Callable[..., Suite]) -> None:
    ended = suite(
        "simulated-640000",
        f"""
        @pytest.mark.evenhand({CONDITIONS})
        def test_passes(tester):
            tester.require_pass(tester.trial(rate_fps=500e3, duration_s=1))

        @pytest.mark.evenhand({CONDITIONS})
        def test_fails(tester):
            tester.require_pass(tester.trial(rate_fps=700e3, duration_s=1))
        """,
    )
    assert (ended.code, ended.kinds("test_passes"), ended.kinds("test_fails")) == (1, [], [Failure])
    message = ended.cases["test_fails"].result[0].message
    assert "FAIL at 700,000 fps: " in message
    assert "lost" in message
    assert "1 failed, 1 passed" in ended.out


def test_what_the_tester_could_not_decide_is_an_error_and_no_failure(suite: Callable[..., Suite]) -> None:
    """A tester that offers no more than 400 kfps. First the trial is repeated."""
    ended = suite(
        "simulated-640000-400000",
        f"""
        @pytest.mark.evenhand({CONDITIONS})
        def test_it(tester):
            tester.require_pass(tester.trial(rate_fps=500e3, duration_s=1))
        """,
        "--evenhand-retries=1",
        "--evenhand-runs=runs",
    )
    assert (ended.code, ended.kinds("test_it")) == (1, [Error])
    assert "INVALID 2 times" in ended.cases["test_it"].result[0].message
    assert "1 error" in ended.out
    assert "1 failed" not in ended.out


def test_a_figure_is_held_against_its_limits_and_kept_as_a_property(
    suite: Callable[..., Suite], tmp_path: Path
) -> None:
    goal = "evenhand.ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=1)"
    ended = suite(
        "simulated-640000",
        f"""
        @pytest.mark.evenhand({CONDITIONS})
        def test_is_fast(tester):
            assert tester.require(tester.throughput(goal={goal}), at_least=600e3) < 640e3

        @pytest.mark.evenhand({CONDITIONS})
        def test_is_too_slow(tester):
            tester.require(tester.measure("throughput", {goal}), at_least=700e3)

        @pytest.mark.evenhand({CONDITIONS})
        def test_is_a_lower_bound(tester):
            low = evenhand.ThroughputGoal(max_fps=1e5, duration_s=1, final_duration_s=1)
            tester.require(tester.throughput(goal=low), at_least=700e3)
        """,
        "--evenhand-runs=runs",
    )
    assert (ended.kinds("test_is_fast"), ended.kinds("test_is_too_slow")) == ([], [Failure])
    assert ended.kinds("test_is_a_lower_bound") == [Error]
    message = ended.cases["test_is_too_slow"].result[0].message
    assert "but at least 700,000 fps is required" in message
    assert "FAIL at 1,000,000 fps" in message or "FAIL at 6" in message
    properties = ended.properties("test_is_fast")
    record = read_record(Path(properties["evenhand.run"]))
    assert Path(properties["evenhand.run"]).parent == tmp_path / "runs"
    assert float(properties["evenhand.throughput"]) == record.points[0].values[0]


def test_a_host_that_is_not_ready_and_a_missing_testbed_are_errors(suite: Callable[..., Suite]) -> None:
    body = """
        def test_it(tester):
            tester.trial(rate_fps=1e3, duration_s=1)

        def test_of_something_else():
            pass

        @pytest.mark.evenhand(testbed="no.toml")
        def test_marked(tester):
            pass
        """
    ended = suite("crash", body)
    assert (ended.kinds("test_it"), ended.kinds("test_of_something_else")) == ([Error], [])
    assert ended.kinds("test_marked") == [Error]
    ended = suite("crash", body, testbed=False)
    assert (ended.kinds("test_it"), ended.kinds("test_of_something_else")) == ([Error], [])
    assert "--evenhand-testbed" in ended.out


def test_a_suite_without_it_loads_nothing_of_evenhand(suite: Callable[..., Suite]) -> None:
    """The plugin is in every pytest of an environment that has Evenhand."""
    ended = suite(
        "crash",
        """
        import sys
        def test_it():
            loaded = {name for name in sys.modules if name.startswith("evenhand")}
            assert loaded <= {"evenhand", "evenhand.pytest_plugin", "evenhand.base", "evenhand.base.version"}
        """,
    )
    assert ended.code == 0, ended.out
