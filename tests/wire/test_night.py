# SPDX-License-Identifier: Apache-2.0
"""Unattended measurements as the examples make them: a night's script, its systemd units, and the shell steps
of the workflow for GitHub Actions. All on the reference router."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenhand.base.errors import EvenhandError
from evenhand.run import read_record
from evenhand.run.folder import runs_in
from tests.docs.documents import ROOT
from tests.preloaded.commands import put_on_path
from tests.wire.quick_campaign import quick_campaign
from tests.wire.wire_session import built_router

EXAMPLES = ROOT / "examples"
WORKFLOW = EXAMPLES / "github-performance.yml"
GUARD_S = 800
"""Only against a command that never ends."""
SUITES = """
hosts = 16
one-pair-first = false
maximum-rate = "80kfps"
"""
FAST, SLOW = (
    quick_campaign("night", elements=1, rate=rate, every_suite=SUITES) for rate in ("40kfps", "15kfps")
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With `evenhand` on the path, and a home of its own."""
    built_router()
    programs = tmp_path / "programs"
    programs.mkdir()
    put_on_path(programs)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "COLUMNS": "200",
    }


def night(folder: Path, environment: dict[str, str], campaign: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", EXAMPLES / "night.sh", campaign, "nights", "--no-html"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.two_cpus
def test_a_night_ends_with_1_if_the_router_became_slower(tmp_path: Path, environment: dict[str, str]) -> None:
    """The first night makes the baseline; a file that is wrong is another code, and leaves no run."""
    (tmp_path / "night.toml").write_text(FAST)
    first = night(tmp_path, environment, "night.toml")
    assert first.returncode == 0, first.stderr
    nights = tmp_path / "nights"
    assert "The first run is the baseline" in first.stdout
    assert "One run has no trend yet" in first.stdout
    (tmp_path / "slow.toml").write_text(SLOW)
    second = night(tmp_path, environment, "slow.toml")
    assert second.returncode == 1, second.stderr
    assert "Failed: 2 are below 0.97" in second.stdout
    assert {path.name for path in nights.iterdir()} == {
        "baseline.evenhand",
        "comparison.html",
        "runs",
        "trend.html",
    }
    assert len(runs_in(nights / "runs")) == 2
    (tmp_path / "wrong.toml").write_text("name = 1\n")
    assert night(tmp_path, environment, "wrong.toml").returncode == 2
    assert len(runs_in(nights / "runs")) == 2


@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_a_night_that_is_ended_ends_its_campaign_in_order(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """systemd sends SIGTERM to the script alone: the campaign must not be killed behind it."""
    (tmp_path / "night.toml").write_text(FAST)
    script = subprocess.Popen(
        ["sh", EXAMPLES / "night.sh", "night.toml", "nights", "--no-html"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while script.poll() is None and not _trials(tmp_path / "nights" / "runs"):
        time.sleep(0.2)
    script.send_signal(signal.SIGTERM)
    _, said = script.communicate(timeout=GUARD_S)
    assert script.returncode == 128 + signal.SIGTERM, said
    (run,) = runs_in(tmp_path / "nights" / "runs")
    assert "--resume" in said
    assert read_record(run).finished_at is None
    assert not (tmp_path / "nights" / "baseline.evenhand").exists()


def _trials(runs: Path) -> int:
    try:
        return sum(
            len(search.trials)
            for path in (runs_in(runs) if runs.is_dir() else ())
            for point in read_record(path).points
            for repetition in point.repetitions
            for search in repetition.searches
        )
    except EvenhandError:
        return 0  # it is just being made


def test_the_script_asks_for_campaign_and_folder(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", EXAMPLES / "night.sh", "only.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "usage" in ended.stderr


def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    return found


def test_the_workflow_has_what_github_asks_for() -> None:
    """YAML reads `on` as true."""
    document = workflow()
    assert document[True] == "push"
    (job,) = document["jobs"].values()
    assert {"runs-on", "steps", "container", "timeout-minutes"} <= set(job)
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert "name" in step
        # What a push brings along is never part of a shell's text.
        assert "${{" not in step.get("run", "")
    assert all(re.fullmatch(r"[\w/-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.two_cpus
def test_the_steps_of_the_workflow_measure_both_commits_and_fail_on_a_regression(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (job,) = workflow()["jobs"].values()
    steps = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    environment |= {
        **{key: value for key, value in job["env"].items() if "${{" not in value},
        "TESTBED": "reference",
        "BEFORE": "0" * 40,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        # As GitHub starts a step with `shell: bash`.
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
        )

    made = shell("git init -q after && cd after && git commit -q --allow-empty -m before && mkdir .evenhand")
    assert made.returncode == 0, made.stderr
    (tmp_path / "after" / ".evenhand" / "campaign.toml").write_text(SLOW)
    assert shell("cd after && git add . && git commit -q -m after").returncode == 0
    measured = shell(steps["Measure before and after"])
    assert measured.returncode == 0, measured.stderr
    alike = shell(steps["Compare"].replace("$FAIL_BELOW", "0.5"))
    assert alike.returncode == 0, alike.stdout + alike.stderr
    assert "passed" in (tmp_path / "summary.md").read_text()
    drawn = shell(steps["Draw the trend"])
    assert drawn.returncode == 0, drawn.stderr
    assert {"before.evenhand", "comparison.html", "trend.html", "runs"} <= {
        p.name for p in tmp_path.iterdir()
    }
    # The commit before was faster.
    (tmp_path / "before.evenhand").unlink()
    (tmp_path / "fast.toml").write_text(FAST)
    assert shell("evenhand run fast.toml --run before.evenhand --no-html").returncode == 0
    worse = shell(steps["Compare"])
    assert worse.returncode == 1
    assert "Failed: 2 are below 0.95" in worse.stdout
    assert "2 failed" in (tmp_path / "summary.md").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_service_and_timer(tmp_path: Path) -> None:
    for name in ("evenhand-night.service", "evenhand-night.timer"):
        text = (EXAMPLES / name).read_text()
        # The script is where the how-to puts it, which is not here.
        text = text.replace("/usr/local/bin/evenhand-night", str(EXAMPLES / "night.sh"))
        (tmp_path / name).write_text(text)
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    calendar = re.search(r"^OnCalendar=(.*)$", (EXAMPLES / "evenhand-night.timer").read_text(), re.MULTILINE)
    assert calendar is not None
    said = subprocess.run(["systemd-analyze", "calendar", calendar[1]], capture_output=True, check=False)
    assert said.returncode == 0
