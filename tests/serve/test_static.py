# SPDX-License-Identifier: Apache-2.0
"""What browsers get besides pages."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from tests.serve.served import Served

STATIC = files("evenhand.serve") / "static"
UPLOT_SHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
MOST_LINES = 600
MOST_OCTETS = 200_000


def test_the_chart_library_is_the_one_that_was_published_with_its_licence() -> None:
    assert hashlib.sha256((STATIC / "uPlot.iife.min.js").read_bytes()).hexdigest() == UPLOT_SHA256
    assert (STATIC / "uPlot.LICENSE").read_text().startswith("The MIT License (MIT)")


def test_own_scripts_are_few_and_free_of_what_the_policy_forbids() -> None:
    text = (STATIC / "serve.js").read_text()
    assert len(text.splitlines()) <= MOST_LINES
    for forbidden in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "eval(",
        "document.write",
        "http://",
        "https://",
    ):
        assert forbidden not in text


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_script_can_be_parsed() -> None:
    subprocess.run(["node", "--check", str(STATIC / "serve.js")], check=True)


def test_all_of_it_is_small_and_has_its_type(tmp_path: Path) -> None:
    mine, octets = Served.of(tmp_path), 0
    for name, kind in (
        ("serve.js", "text/javascript"),
        ("uPlot.iife.min.js", "text/javascript"),
        ("uPlot.min.css", "text/css"),
        ("serve.css", "text/css"),
        ("style.css", "text/css"),
        ("icon.svg", "image/svg+xml"),
    ):
        answer = mine.get(f"/static/{name}")
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        octets += len(answer.body)
    assert octets + len(mine.get("/").body) < MOST_OCTETS
