# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: exit codes, three lines for an error, help with an example."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand.base.version import VERSION
from evenhand.cli import main as cli
from tests.cli.running import Ended

Run = Callable[..., Ended]
VERBS = [
    ("demo",),
    ("predict",),
    ("router",),
    ("throughput",),
    ("trial",),
    ("show",),
    ("plan", "show"),
    ("plan", "frames"),
    ("dut", "setup"),
    ("lab", "up"),
    ("lab", "down"),
    ("lab", "status"),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_has_help_with_an_example(evenhand: Run, verb: tuple[str, ...]) -> None:
    ended = evenhand(*verb, "--help")
    assert ended.code == 0
    assert "Example:" in ended.out
    assert "--json" in ended.out


def test_the_version_is_told(evenhand: Run) -> None:
    assert evenhand("--version").out.startswith("evenhand 0.")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nonsense", "cli.unknown-command"),
        ("throughput", "cli.argument-missing"),
        ("plan show gateway-v4 --nonsense", "cli.unknown-option"),
        ("plan frames gateway-v4 --count 0", "base.out-of-range"),
        ("lab up vpp", "base.not-one-of"),
    ],
)
def test_usage_errors_end_with_2(evenhand: Run, line: str, code: str) -> None:
    ended = evenhand(*line.split())
    assert ended.code == 2
    assert ended.out == ""
    assert ended.error.code == code


def test_an_error_is_three_lines_on_stderr(evenhand: Run) -> None:
    ended = evenhand("throughput", "none.toml", "--maximum-rate", "1Mbit")
    assert ended.code == 2
    assert ended.out == ""
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["Error", "Where", "Next"]
    assert "'1Mbit'" in ended.err


def test_debug_shows_the_trace_wherever_it_stands(evenhand: Run) -> None:
    for line in ("--debug plan show none", "plan show none --debug"):
        ended = evenhand(*line.split())
        assert ended.code == 2
        assert "Traceback" in ended.err
        assert ended.error.code == "plan.unknown-name"
        assert f"PlanError: {ended.error}" in ended.err


def test_a_missing_engine_is_3_and_a_dead_one_is_4(
    evenhand: Run, engine_playing: Callable[[str], Path], tmp_path: Path
) -> None:
    missing = evenhand("plan", "frames", "gateway-v4", "--engine", tmp_path / "none")
    assert (missing.code, missing.error.code) == (3, "base.program-missing")
    engine_playing("crash")
    ended = evenhand("plan", "frames", "gateway-v4")
    assert ended.code == 4
    assert ended.error.code == "trial.engine-ended"
    assert "PANIC" in ended.error.what


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_signals_end_the_engine_and_leave_a_readable_run(
    number: signal.Signals, code: int, engine_playing: Callable[[str], Path], testbed: Path, tmp_path: Path
) -> None:
    """Ctrl-C within a trial: engine ended, run kept with the trials before, exit code 130."""
    from evenhand.run import read_run

    engine_playing("stuck-trial-3")
    run = tmp_path / "a.evenhand"
    process = _start("throughput", testbed, "--maximum-rate", "1Mfps", "--waits", "short", "--run", run)
    said = _signal_after(process, number, run, trials=2)
    assert process.returncode == code
    assert f"2 trials are stored in {run}." in said
    assert said.splitlines()[-1] == ("Interrupted." if number is signal.SIGINT else "Terminated.")
    (search,) = read_run(run).searches
    assert search.outcome == "stopped"
    assert len(search.trials) == 2


def test_a_signal_within_the_first_trial_leaves_no_run_and_says_so(
    engine_playing: Callable[[str], Path], testbed: Path, tmp_path: Path
) -> None:
    """Without it, the run said to hold the trials so far, and held none."""
    engine_playing("stuck-trial-1")
    run = tmp_path / "a.evenhand"
    process = _start("trial", testbed, "--rate", "1kfps", "--run", run)
    said = _signal_after(process, signal.SIGINT, run, trials=0)
    assert process.returncode == 130
    assert "No trial is stored." in said
    assert not run.exists()


@pytest.mark.parametrize(
    "module",
    ["evenhand.base.version", "evenhand.base.errors", "typer", "evenhand.cli.main", "evenhand.report.proof"],
)
def test_ctrl_c_while_the_command_loads_leaves_no_trace(module: str) -> None:
    """A second, or five on a busy machine, in which an early Ctrl-C showed where Python was."""
    program = (
        "import builtins, signal, sys; import evenhand_command; real = builtins.__import__\n"
        "def interrupted(name, *others, **named):\n"
        f"    if name == {module!r}: builtins.__import__ = real; signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *others, **named)\n"
        "builtins.__import__ = interrupted; sys.argv = ['evenhand', 'plan', 'show', 'gateway-v4'];"
        " evenhand_command.run()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "Interrupted.\n")


def test_python_m_evenhand_is_the_command(tmp_path: Path) -> None:
    """So Ctrl-C while it loads leaves no trace either."""
    program = (
        "import evenhand_command, runpy; evenhand_command.run = lambda: print('the same')\n"
        "runpy.run_module('evenhand', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "the same\n", "")


@pytest.mark.parametrize(
    ("signal_of", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143), (SystemExit(2), 4)]
)
def test_what_goes_wrong_because_of_a_signal_is_no_bug(
    signal_of: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait that SIGTERM ended released a lock that it did not hold: "a bug in Evenhand"."""

    def fail(*_: object, **__: object) -> None:
        try:
            raise signal_of
        finally:
            raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(cli, "app_for", lambda _: SimpleNamespace(built=fail, params=[]))
    assert cli.main([]) == code


def test_the_command_is_what_catches_that() -> None:
    (entry,) = entry_points(group="console_scripts", name="evenhand")
    assert entry.value == "evenhand_command:run"


def _start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "from evenhand.cli.main import run; run()", *arguments],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        process_group=0,
    )


def _signal_after(process: subprocess.Popen[bytes], number: signal.Signals, run: Path, *, trials: int) -> str:
    """Wait for a search with so many trials, send the signal; what was said on stderr. No engine is left."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (run.exists() and _has_search(run) and _trials(run) == trials):
        assert process.poll() is None, process.communicate()
    engines = [int(pid) for pid in children.read_text().split()]
    assert engines
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert not any(Path(f"/proc/{pid}").exists() for pid in engines)
    return said.decode()


def _trials(run: Path) -> int:
    return _count(run, "trials")


def _has_search(run: Path) -> bool:
    return _count(run, "searches") > 0


def _count(run: Path, table: str) -> int:
    import sqlite3

    connection = sqlite3.connect(run)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.Error:
        return 0
    finally:
        connection.close()


def test_the_version_is_told_without_loading_a_verb() -> None:
    """Other programs ask for it often."""
    program = (
        "import sys, evenhand_command\nsys.argv = ['evenhand', '--version']\n"
        "try:\n    evenhand_command.run()\nexcept SystemExit as ended:\n"
        "    print(ended.code, sorted({'typer', 'rich', 'evenhand.cli.main'} & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == [f"evenhand {VERSION}", "0 []"]
