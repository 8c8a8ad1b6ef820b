# SPDX-License-Identifier: Apache-2.0
"""Values that are taken as they are: each verb gets what Typer would give it, and refuses what it would."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from evenhand.cli.verbs import Verbs
from tests.run.goldens import recorded_file


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"


def ran(app: typer.Typer, line: list[str]) -> Any:
    """What the verb got, or why it got nothing."""
    found: dict[str, Any] = {}

    def verb(
        place: Annotated[Path, typer.Argument()],
        name: Annotated[str | None, typer.Option()] = None,
        title: Annotated[str, typer.Option()] = "none",
        count: Annotated[int, typer.Option(min=1)] = 3,
        ratio: Annotated[float | None, typer.Option()] = None,
        form: Annotated[Form, typer.Option()] = Form.TEXT,
        output: Annotated[Path | None, typer.Option()] = None,
        there: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
        each: Annotated[list[str] | None, typer.Option()] = None,
        more: Annotated[list[Path] | None, typer.Argument()] = None,
        is_all: Annotated[bool | None, typer.Option("--all/--some")] = None,
    ) -> None:
        found.update(locals())

    app.command("verb")(verb)
    app.command("other")(lambda: None)
    try:
        get_command(app)(["verb", *line], standalone_mode=False)
    except typer.TyperException as error:
        return type(error).__name__, str(error)
    return {name: value for name, value in found.items() if name != "found"}


@pytest.mark.parametrize(
    "line",
    [
        ["file"],
        ["file", "second", "third"],
        ["/no/such/folder/file", "--output", "x/../y", "--name", "", "--title", "5"],
        ["file", "--count", "7", "--ratio", "0.5", "--form", "json", "--all"],
        ["file", "--each", "a", "--each", "b", "--some"],
        ["file", "--count", "0"],
        ["file", "--count", "many"],
        ["file", "--ratio", "half"],
        ["file", "--form", "xml"],
        ["file", "--there", "/no/such/file"],
        ["file", "--there", "/"],
        ["file", "--there", sys.executable],
        ["--all"],
    ],
)
def test_a_verb_gets_what_typer_gives(line: list[str]) -> None:
    assert ran(Verbs(), line) == ran(typer.Typer(), line)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody who may not read a file")
def test_a_file_that_cannot_be_read_is_refused() -> None:
    apps = (Verbs(), typer.Typer())
    assert ran(Verbs(), ["file", "--count", "7"])  # what is loaded for it, somebody else may not read either
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        secret = Path(folder) / "secret"
        secret.touch(0o600)
        os.setresuid(65534, 65534, 0)
        try:
            of_ours, of_typer = (ran(app, [str(secret)]) for app in apps)
        finally:
            os.setresuid(0, 0, 0)
    assert of_ours == of_typer
    assert "not readable" in of_ours[1]


def test_a_run_is_shown_without_validators_and_operating_systems() -> None:
    """They took a sixth of the time of `show`, and as much of its memory."""
    program = (
        "import sys; from evenhand.cli.main import main; main(['show', sys.argv[1]])\n"
        "print([name for name in ('pydantic', 'evenhand.dut.systems', 'evenhand.analysis.whole')"
        " if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, str(recorded_file("throughput-v4"))],
        capture_output=True,
        text=True,
        check=True,
    )
    *text, loaded = shown.stdout.splitlines()
    assert len(text) > 5
    assert loaded == "[]"
