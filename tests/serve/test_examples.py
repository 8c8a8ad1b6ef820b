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
