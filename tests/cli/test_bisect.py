# SPDX-License-Identifier: Apache-2.0
"""`evenhand bisect`: installs, measures, goes on after an interruption, and answers; on simulated devices."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main
from tests.cli.test_json_documents import validate
from tests.serve.simulated_run import measure

BUILDS = [f"v{number}" for number in range(1, 9)]
FIRST = "v6"
CAMPAIGN = """\
name = "Gate"
testbed = "lab.toml"

[[suite]]
name = "gate"
plan = "gateway-v4"
hosts = [1]
"""


class Lab:
    """What `evenhand run` would measure: the limit of the device depends on the build that is installed."""

    def __init__(self, folder: Path, slower: float = 0.9) -> None:
        self.installed = folder / "installed"
        self.slower = slower
        self.commands: list[list[str]] = []
        self.stops_after: int | None = None
        self.disturbed: Callable[[int, str], bool] = lambda number, build: False
        """Whether the measurement of this number, from 1, has no number."""

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(command)
        if self.stops_after is not None and len(self.commands) > self.stops_after:
            raise KeyboardInterrupt
        build = self.installed.read_text().split()[-1]
        is_slower = BUILDS.index(build) >= BUILDS.index(FIRST)
        limit_fps = 640_000 * (self.slower if is_slower else 1)
        is_disturbed = self.disturbed(len(self.commands), build)
        measure(Path(command[command.index("--run") + 1]), limit_fps=1 if is_disturbed else limit_fps)
        return subprocess.CompletedProcess(command, 1 if is_disturbed else 0)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(tmp_path)
    monkeypatch.setattr(subprocess, "run", made.run)
    (tmp_path / "builds").write_text("\n".join(BUILDS))
    (tmp_path / "gate.toml").write_text(CAMPAIGN)
    return made


def arguments(tmp_path: Path, install: str = "true", *more: str) -> list[str]:
    log = f"echo $EVENHAND_BUILD >>{tmp_path / 'installed'}"
    return [
        "bisect",
        str(tmp_path / "builds"),
        *("--install", f"{log}; {install}", "--campaign", str(tmp_path / "gate.toml")),
        *("--testbed", "lab.toml"),
        *("--folder", str(tmp_path / "hunt"), *more),
    ]


def test_the_first_slower_build_is_found(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "true", "--json")) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    validate(found)
    assert "After 1 measurement: no change, with 50 %." in said.err
    assert (found["kind"], found["first"], found["last"], found["skipped"]) == ("found", FIRST, FIRST, [])
    assert found["probability"] >= 0.99
    assert found["after"] < found["before"]
    assert len(list((tmp_path / "hunt").glob("*.evenhand"))) == found["measurements"] == len(lab.commands)
    assert lab.commands[0][3:7] == ["run", str(tmp_path / "gate.toml"), "--testbed", "lab.toml"]
    assert main(arguments(tmp_path)) == 0  # nothing is measured again
    assert f"First changed: {FIRST}, with 99" in capsys.readouterr().out
    assert len(lab.commands) == found["measurements"]


def test_an_interrupted_search_goes_on(tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.stops_after = 7
    assert main(arguments(tmp_path)) == 130
    lab.stops_after = None
    capsys.readouterr()
    assert main(arguments(tmp_path, "true", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["first"] == FIRST
    assert len(lab.commands) == found["measurements"] + 1


def test_a_build_that_cannot_be_installed_is_left_out(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "test $EVENHAND_BUILD != v5", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["first"], found["last"], found["skipped"]) == ("v5", FIRST, ["v5"])
    assert main(arguments(tmp_path, "test $EVENHAND_BUILD != v5")) == 0
    assert "one of v5 to v6" in capsys.readouterr().out


def test_without_a_change_it_says_so(tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.slower = 1.0
    assert main(arguments(tmp_path)) == 0
    assert "No change of 2 % or more is there, with 99 %" in capsys.readouterr().out


def test_a_build_that_was_measured_before_may_fail_to_install_once(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last build, the second time that it is installed."""
    again = f"test $EVENHAND_BUILD-$(grep -c v8 {lab.installed}) != v8-2 || {{ echo busy; exit 1; }}"
    assert main(arguments(tmp_path, again)) == 0
    said = capsys.readouterr()
    assert "It was not installed: the command of --install ended with 1: busy" in said.err
    assert f"First changed: {FIRST}" in said.out


def test_an_end_that_cannot_be_installed_ends_it(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "test $EVENHAND_BUILD != v1")) == 2
    assert "first and the last" in capsys.readouterr().err


def test_an_end_that_failed_once_has_another_try_when_the_command_is_repeated(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as for a network that was down."""
    (tmp_path / "down").touch()
    install = f"test ! -e {tmp_path / 'down'}"
    assert main(arguments(tmp_path, install)) == 2
    assert lab.installed.read_text().split() == ["v1"] * 3
    (tmp_path / "down").unlink()
    assert main(arguments(tmp_path, install)) == 0
    assert f"First changed: {FIRST}" in capsys.readouterr().out


def test_what_was_stopped_before_it_began_is_measured_again(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path)) == 0
    for path in sorted((tmp_path / "hunt").glob("*.evenhand"))[2:]:
        path.unlink()
    empty = tmp_path / "hunt" / "0003-build0.evenhand"
    empty.write_bytes((tmp_path / "hunt" / "0001-build0.evenhand").read_bytes())
    with closing(sqlite3.connect(empty)) as connection, connection:
        for table in ("trials", "searches", "repetitions", "points", "run"):
            connection.execute(f"DELETE FROM {table}")
    capsys.readouterr()
    assert main(arguments(tmp_path)) == 0
    assert f"First changed: {FIRST}" in capsys.readouterr().out
    assert not any("--resume" in command for command in lab.commands)


def test_a_measurement_that_was_cut_short_does_not_hide_failed_installations(
    tmp_path: Path, lab: Lab
) -> None:
    """They are counted, so that it ends."""
    assert main(arguments(tmp_path)) == 0
    cut = tmp_path / "hunt" / "0004-build5.evenhand"
    for path in sorted((tmp_path / "hunt").glob("*.evenhand"))[3:]:
        path.unlink()
    cut.write_bytes((tmp_path / "hunt" / "0001-build0.evenhand").read_bytes())
    with closing(sqlite3.connect(cut)) as connection, connection:
        connection.execute("UPDATE run SET finished_at = NULL")
    main(arguments(tmp_path, "test $EVENHAND_BUILD != v6"))
    assert sorted((tmp_path / "hunt").glob("*-build5.skipped"))
    assert not cut.with_suffix(".skipped").exists()


def test_another_campaign_of_the_same_name_is_not_mixed_up_with_it(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path)) == 0
    (tmp_path / "gate.toml").write_text(CAMPAIGN + 'loss-ratio = "1%"\n')
    assert main(arguments(tmp_path)) == 2
    assert "of another campaign" in capsys.readouterr().err


def test_another_search_is_not_mixed_up_with_it(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path)) == 0
    (tmp_path / "builds").write_text("\n".join(BUILDS[:-1]))
    assert main(arguments(tmp_path)) == 2
    assert "other builds" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "one", "one\ntwo\none", "\xff\xfe"])
def test_builds_that_are_none_are_refused(tmp_path: Path, lab: Lab, text: str) -> None:
    (tmp_path / "builds").write_text(text, encoding="latin-1")
    assert main(arguments(tmp_path)) == 2
    assert lab.commands == []


def test_a_measurement_that_is_not_possible_ends_it(
    tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 3))
    assert main(arguments(tmp_path)) == 3


@pytest.mark.parametrize("point", ["none", None])
def test_without_a_point_that_counts_nothing_is_measured(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str], point: str | None
) -> None:
    """One address pair is measured too, wherever a campaign has others."""
    (tmp_path / "gate.toml").write_text(CAMPAIGN.replace("[1]", "[4]"))
    assert main(arguments(tmp_path, "true", *([] if point is None else ["--point", point]))) == 2
    said = capsys.readouterr().err
    assert "gate/throughput/64/n=1, gate/throughput/64/n=4" in " ".join(said.split())
    assert (lab.commands, (tmp_path / "hunt").exists()) == ([], False)


def test_a_measurement_without_a_number_is_repeated_and_its_build_left_out_only_after_three(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tester's machine may have been disturbed: that says nothing of the build, also not of the first."""
    lab.disturbed = lambda number, build: number in (1, 2, 4) or build == "v5"
    assert main(arguments(tmp_path, "true", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["first"], found["last"], found["skipped"]) == ("v5", FIRST, ["v5"])
    assert len(lab.commands) == found["measurements"] + 3 + 3


def test_an_end_that_never_has_a_number_ends_it(
    tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.disturbed = lambda number, build: build == "v8"
    assert main(arguments(tmp_path)) == 2
    assert "have a number" in " ".join(capsys.readouterr().err.split())
