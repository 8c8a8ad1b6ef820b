# SPDX-License-Identifier: Apache-2.0
"""What becomes of a verb whose output nobody takes: an exit code of its own, never that of an answer, and no
result is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand.cli import main as cli
from evenhand.cli import registry
from tests.cli.running import run_here

EVENHAND = f"{sys.executable} -m evenhand"
SHOW = f"{EVENHAND} plan show gateway-v4"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "verb",
    [
        SHOW,
        *(
            pytest.param(verb, marks=pytest.mark.thorough)
            for verb in (
                f"{SHOW} --json",
                f"{EVENHAND} --help",
                f"{EVENHAND} plan prove gateway-v4 --frames 10000",
            )
        ),
    ],
)
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_ends_with_5_and_three_lines(verb: str, where: str) -> None:
    """1 means suspicious draws."""
    ended = shell(f"{verb} {where}")
    assert ended.returncode == 5, ended.stderr
    assert [line.split(":")[0] for line in ended.stderr.splitlines()[-3:]] == ["Error", "Where", "Next"]
    assert "stdout" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@pytest.mark.parametrize("verb", [SHOW, f"{SHOW} --json", f"{EVENHAND} plan frames gateway-v4 --count 2000"])
def test_a_pipe_that_nobody_reads_ends_with_141_and_without_a_word(verb: str) -> None:
    """As `cat` would."""
    ended = shell(f"{verb} | true; echo ${{PIPESTATUS[0]}}")
    assert (ended.stdout, ended.stderr) == ("141\n", "")


def test_notes_that_cannot_be_written_spoil_nothing() -> None:
    for where in ("2>/dev/full", "2>&-"):
        ended = shell(f"{SHOW} --hosts 1 {where}")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "gateway-v4" in ended.stdout


def test_characters_that_a_terminal_lacks_are_escaped() -> None:
    ended = shell(f"PYTHONIOENCODING=ascii {EVENHAND} predict gateway-v4 --hosts 1 --rate 1kfps --elements 2")
    assert "UnicodeEncodeError" not in ended.stderr
    assert ended.stdout.isascii()


def test_an_error_that_no_verb_has_foreseen_is_three_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, exit_code, code, word in (
        (PermissionError(13, "Permission denied", "/lab/x"), 3, "cli.refused-by-system", "/lab/x"),
        (ZeroDivisionError("division by zero"), 4, "cli.bug", "ZeroDivisionError: division by zero"),
        (MemoryError(), 3, "cli.out-of-memory", ""),
    ):

        def fail(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(cli, "app_for", lambda _, fail=fail: SimpleNamespace(built=fail))
        ended = run_here([], capsys)
        assert (ended.code, ended.error.code) == (exit_code, code)
        assert word in str(ended.error)
        assert "Traceback" not in ended.err
        assert type(error).__name__ in run_here(["--debug"], capsys).err


def test_a_verb_that_cannot_be_loaded_is_three_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> None:
        raise ImportError(f"no module named {name!r}")

    cli.app_of.cache_clear()
    monkeypatch.setattr(registry, "import_module", fail)
    ended = run_here(["status", "a.evenhand"], capsys)
    assert (ended.code, ended.error.code) == (4, "cli.bug")
    assert "ImportError: no module named 'evenhand.cli.status'" in ended.error.what
    assert "Traceback" not in ended.err


def test_an_error_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    """A file's name may have been chosen by whoever sent it."""
    name = tmp_path / "a\x1b]0;gone\x07[bold]\u202e.toml"
    ended = subprocess.run(
        [sys.executable, "-m", "evenhand", "throughput", name], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "\x1b" not in ended.stderr
    assert "\\x1b]0;gone\\x07[bold]\\u202e.toml" in ended.stderr
