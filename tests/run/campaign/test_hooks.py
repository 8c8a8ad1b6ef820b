# SPDX-License-Identifier: Apache-2.0
"""The user's own commands: what they are told, what is shown of one that failed, and those that documents
show."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from evenhand.run import read_record
from evenhand.run.campaign.events import MOST_SHOWN, environment_of_suite, run_hook, why_failed
from evenhand.spec.file import Hooks
from tests.cli.running import TESTBED
from tests.preloaded.commands import evenhand_command
from tests.run.campaign.campaigns import expanded
from tests.run.campaign.small_campaign import OPTIONS, write_campaign

ROOT = Path(__file__).resolve().parents[3]
SHOWN = re.compile(r'^(?:# )?(before|after)-(suite|point) = (".*")$', re.MULTILINE)
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.toml")]


def shown_hooks() -> list[tuple[str, str]]:
    """The hooks of all documents and examples, by moment, each once."""
    found = {
        (f"{when}-{what}", command)
        for path in DOCUMENTS
        for when, what, command in SHOWN.findall(path.read_text())
    }
    return sorted(found)


@pytest.mark.parametrize(
    ("suite", "plan", "hash_type"),
    [
        ({"plan": "gateway-v6", "hosts": 4, "hash-types": ["type2"]}, "gateway-v6", "type2"),
        ({"plan": "direct-v4-net16", "hosts": 4}, "direct-v4-net16", ""),
        ({"hosts": 4, "hash-types": ["type1", "type2"]}, "gateway-v4", ""),
    ],
)
def test_a_hook_of_a_suite_knows_its_plan_and_the_hash_that_all_points_have(
    suite: dict[str, object], plan: str, hash_type: str
) -> None:
    told = environment_of_suite(expanded(suite).points)
    assert told == {"EVENHAND_SUITE": "a", "EVENHAND_PLAN": plan, "EVENHAND_HASH_TYPE": hash_type}


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (r"printf 'one\nError: no lab\nNext: evenhand lab up\n'", "Error: no lab Next: evenhand lab up"),
        (r"printf 'ssh: error reaching dut\nbye\n'", "ssh: error reaching dut bye"),
        (r"printf 'one\ntwo\n\n'", "two"),
        ("true", ""),
    ],
)
def test_what_a_failed_hook_printed_is_shown_from_its_error_on(script: str, shown: str) -> None:
    """What to do next stands behind the error, and the last line alone would lose it."""
    hook = run_hook(f"{script}; exit 7", when="before_suite", timeout_s=10, environment={})
    assert why_failed(hook, 10) == "the hook before-suite ended with exit code 7" + (
        f": {shown}" if shown else ""
    )


def test_a_hook_that_prints_a_book_is_cut() -> None:
    hook = run_hook("echo Error: $(seq 9999); exit 1", when="before_point", timeout_s=10, environment={})
    assert len(why_failed(hook, 10) or "") < MOST_SHOWN + 100


def test_a_hook_comes_before_the_testbed_is_looked_at(tmp_path: Path) -> None:
    """It makes the testbed file, without which nothing could be measured."""
    campaign = (
        'name = "x"\ntestbed = "made.toml"\nhooks.before-suite = "cp testbed.toml'
        f' made.toml"\n[[suite]]\nname = "s"\nhosts = 1\n{OPTIONS}'
    )
    write_campaign(tmp_path, campaign, name="x.toml")
    ended = run_campaign(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert [str(point.state) for point in read_record(tmp_path / "x.evenhand").points] == ["measured"]


def run_campaign(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "EVENHAND_ENGINE": str(folder / "engine"),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    command = [*evenhand_command(), "run", "x.toml", "--run", "x.evenhand", "--no-html"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(("moment", "command"), shown_hooks())
def test_each_hook_that_a_document_shows_gets_what_it_asks_for(
    tmp_path: Path, moment: str, command: str
) -> None:
    """Run in a campaign as it is written. The DUT of the documents is a folder here, where `ssh` runs its
    programs; a program that a hook calls on this machine is in the campaign's folder."""
    assert TESTBED
    Hooks.model_validate({moment: command.strip('"')})
    dut = tmp_path / "dut"
    dut.mkdir()
    (tmp_path / "ssh").write_text(f'#!/bin/sh\nshift\ncd {dut} && exec "$@"\n')
    folder = dut if "ssh dut" in command else tmp_path
    programs = re.findall(r"(?:^|\s)\./(\S+)", command.strip('"'))
    for program in programs:
        write_program(folder / program, 'echo "$0" "$@" >>called')
    (tmp_path / "ssh").chmod(0o755)
    write_program(tmp_path / "make", 'test "$1" = router')
    write_program(tmp_path / "curl", 'shift 2; echo "$@" >>called')
    suite = f'[[suite]]\nname = "s"\nplan = "gateway-v6"\nhosts = 1\nhash-types = ["type1"]\n{OPTIONS}'
    write_campaign(
        tmp_path,
        f'name = "x"\ntestbed = "testbed.toml"\n[hooks]\n{moment} = {command}\n{suite}',
        name="x.toml",
    )
    ended = run_campaign(tmp_path)
    assert ended.returncode == 0, ended.stderr
    if not programs:
        told = (tmp_path / "called").read_text()
        assert told == f"s of {tmp_path}/x.evenhand has ended https://ntfy.example.org/lab\n"
        return
    wanted = (
        command.strip('"')
        .partition("./")[2]
        .replace("$EVENHAND_PLAN", "gateway-v6")
        .replace("$EVENHAND_HASH_TYPE", "type1")
    )
    assert (folder / "called").read_text() == f"./{wanted}\n"


def write_program(path: Path, command: str) -> None:
    """One that refuses an empty argument, which a variable without a value would be."""
    path.write_text(f'#!/bin/sh\nset -eu\nfor given in "$@"; do test -n "$given"; done\n{command}\n')
    path.chmod(0o755)
