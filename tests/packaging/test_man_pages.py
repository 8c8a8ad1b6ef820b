# SPDX-License-Identifier: Apache-2.0
"""The man pages and completions of the packages: of every verb, with every option, without a fault that `man`
finds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import evenhand
from evenhand.cli.main import app_of

ROOT = Path(__file__).resolve().parents[2]


def _load(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    made: dict[str, str] = _load("man_pages").pages()
    return made


def _verbs() -> dict[str, Any]:
    verbs: dict[str, Any] = get_command(app_of()).commands  # type: ignore[attr-defined]
    return verbs


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _commands(inner)


def test_every_verb_and_program_has_a_page(pages: dict[str, str]) -> None:
    """`man evenhand throughput` finds evenhand-throughput(1); a new verb gets its page without anybody's
    doing."""
    assert set(pages) == {"evenhand.1", "evenhand-engine.1", *(f"evenhand-{name}.1" for name in _verbs())}
    assert all(f"evenhand\\-{name} (1)" in pages["evenhand.1"] for name in _verbs())


@pytest.mark.parametrize("verb", sorted(_verbs()))
def test_a_page_has_all_options_and_help_of_its_verb(pages: dict[str, str], verb: str) -> None:
    text = " ".join(pages[f"evenhand-{verb}.1"].replace("\\-", "-").replace("\\e", "\\").split())
    for command in _commands(_verbs()[verb]):
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("-") or f"\\fB{option}\\fR" in text
            assert " ".join((parameter.help or "").replace("`", "").split()) in text.replace(
                "\\fB", ""
            ).replace("\\fR", "").replace("\\&", "")


def test_pages_tell_their_version(pages: dict[str, str]) -> None:
    assert all(f'"Evenhand {evenhand.__version__}"' in page for page in pages.values())


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_man_finds_no_fault(pages: dict[str, str], tmp_path: Path) -> None:
    """As lintian asks it."""
    for name, page in pages.items():
        (tmp_path / name).write_text(page)
        command = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(tmp_path / name)]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"},
        )
        assert (ended.returncode, ended.stderr) == (0, ""), name


def test_bash_completes_verbs_and_options(tmp_path: Path) -> None:
    """The file as it is installed, and the command itself, which answers it."""
    _load("completions").main(tmp_path)
    script = f"""
        evenhand() {{ {sys.executable} -m evenhand "$@"; }}
        env() {{ command env "${{@:1:$#-1}}" {sys.executable} -m evenhand; }}
        source {tmp_path}/bash/evenhand
        complete -p evenhand
        COMP_WORDS=(evenhand throu) COMP_CWORD=1; _evenhand_completion evenhand; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(evenhand check --own) COMP_CWORD=2; _evenhand_completion evenhand
        echo "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.stdout.splitlines() == [
        "complete -o default -F _evenhand_completion evenhand",
        "throughput",
        "--own-loop",
    ], ended.stderr


def test_zsh_answers_the_first_question_too(tmp_path: Path) -> None:
    """zsh loads the file when it is asked for the first time."""
    _load("completions").main(tmp_path)
    lines = (tmp_path / "zsh" / "_evenhand").read_text().strip().splitlines()
    assert lines[0] == "#compdef evenhand"
    assert lines[-1] == '_evenhand_completion "$@"'
    assert (tmp_path / "fish" / "evenhand.fish").read_text().startswith("complete --command evenhand ")
