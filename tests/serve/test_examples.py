# SPDX-License-Identifier: Apache-2.0
"""The files in examples/serve: a systemd unit, and a dashboard for Grafana."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from evenhand.cli.main import app_of
from evenhand.serve.app import HELP, metrics_text
from evenhand.serve.pages import Pages
from tests.run.goldens import copy_recorded
from tests.serve.served import Served, recorded_folder

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "serve"


def test_every_option_of_the_unit_is_one_of_the_verb() -> None:
    text = (EXAMPLES / "evenhand-serve.service").read_text()
    known = {name for option in app_of().built.commands["serve"].params for name in option.opts}
    commands = re.findall(r"ExecStart=(.*)", text)
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "/usr/bin/evenhand"
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_knows_every_line_of_the_unit() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(EXAMPLES / "evenhand-serve.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not re.search(r"Unknown|Failed to parse|Invalid", done.stderr), done.stderr


def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path) -> None:
    panels = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"evenhand_\w+", target["expr"])
    }
    assert asked
    assert asked <= set(HELP)
    mine = Served.of(recorded_folder(tmp_path))
    text = metrics_text(mine.watcher, Pages(watcher=mine.watcher))
    labels = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    }
    assert labels - {"direction"} <= set(re.findall(r"[{,](\w+)=", text))


def test_a_lower_bound_says_that_it_is_one(tmp_path: Path) -> None:
    found = {}
    for name in ("throughput-lower-bound", "throughput-v6"):
        (folder := tmp_path / name).mkdir()
        copy_recorded(name, folder / "a.evenhand")
        mine = Served.of(folder)
        text = metrics_text(mine.watcher, Pages(watcher=mine.watcher))
        (line,) = [each for each in text.splitlines() if each.startswith("evenhand_point_is_lower_bound{")]
        found[name] = float(line.rpartition(" ")[2])
    assert found == {"throughput-lower-bound": 1.0, "throughput-v6": 0.0}


def test_what_cannot_be_made_now_is_a_page_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for what a download needs, for example."""
    copy_recorded("throughput-v6", tmp_path / "a.evenhand")

    def fail(*arguments: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory")

    mine = Served.of(tmp_path)
    monkeypatch.setattr("evenhand.serve.app.print_pdf", lambda *_, **__: fail())
    answer = mine.get("/run/a.evenhand/download/pdf")
    assert answer.status == 503
    assert "No usable temporary directory" in answer.text
