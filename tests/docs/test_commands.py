# SPDX-License-Identifier: Apache-2.0
"""Documented commands: each is run, or is on a list that says why not and how it is checked instead."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.lab import lab_status
from evenhand.report.check import nics_table
from tests.docs.documents import ROOT, Command, blocks, commands, matches
from tests.host.test_checks import survey

Run = Callable[[str], subprocess.CompletedProcess[str]]

RUN_AS_THEY_ARE = ("evenhand plan ", "evenhand lab status", "evenhand --version")
RUN_WITHOUT_AN_ENGINE = ("evenhand predict ", "evenhand dut setup ", "evenhand import ")
RUN_WITH_THE_ENGINE = (
    "evenhand trial examples/testbed-loopback.toml",
    "evenhand trial examples/testbed-two-engines.toml",
)
CHECKS_OF_THE_HOST = ("evenhand check",)
NOT_RUN = {
    "evenhand demo": "takes minutes; tests/cli runs it",
    "evenhand throughput testbed.toml": "needs the reader's own DUT",
    "evenhand compare ": "needs runs to compare: tests/cli/test_compare.py makes some",
    "evenhand back-to-back testbed.toml": "needs the reader's own DUT",
    "evenhand burst testbed.toml": "needs the reader's own DUT",
    "evenhand latency testbed.toml": "needs the reader's own DUT",
    "evenhand loss testbed.toml": "needs the reader's own DUT",
    "evenhand pdv testbed.toml": "needs the reader's own DUT",
    "evenhand recovery testbed.toml": "needs the reader's own DUT",
    "evenhand trial testbed.toml": "needs the reader's own DUT",
    "evenhand trial examples/testbed-reference.toml": "needs the router beside it: test_reference_router.py"
    " walks that walk",
    "evenhand trial examples/testbed-af-packet.toml": "needs root: test_kernel_ports.py walks it",
    "evenhand trial examples/testbed-one-armed.toml": "the same",
    "evenhand trial examples/testbed-tunnel.toml": "the same",
    "evenhand check examples/testbed-af-packet.toml": "the same",
    "evenhand learn testbed.toml": "needs the reader's own DUT",
    "evenhand dut check lab.toml": "needs the reader's own DUT: tests/dut/test_over_ssh.py has one",
    "evenhand dut apply lab.toml": "the same",
    "evenhand dut status lab.toml": "the same",
    "evenhand dut undo lab.toml": "the same",
    "evenhand throughput lab.toml": "needs the reader's own DUT",
    "evenhand connections reference-router.toml": "tests/wire/test_connections.py walks it",
    "evenhand connections lab:linux": "takes minutes: tests/wire/test_linux_nat.py has such a lab",
    "evenhand tear-down lab:linux": "the same",
    "evenhand capacity lab:linux": "the same",
    "evenhand connections": "the name of a verb in a table",
    "evenhand tear-down": "the same",
    "evenhand capacity": "the same",
    "evenhand check testbed.toml": "needs the reader's own DUT",
    "evenhand check --own-loop": "takes up to a minute and a half on a busy machine: tests/wire/test_check.py"
    " does it with one load",
    "evenhand check --watch 60s": "takes a minute",
    "evenhand run examples/": "takes a minute: tests/run and tests/wire/test_campaign.py run campaigns",
    "evenhand run preset:": "takes ten minutes, and root for a lab: tests/wire/test_lab_presets.py runs them",
    "evenhand run series.toml": "needs the reader's own DUT",
    "evenhand run --resume series.evenhand": "needs the reader's own campaign: tests/run/campaign does it",
    "evenhand status series.evenhand": "needs the reader's own campaign: tests/run/campaign does it",
    "evenhand worker ": "runs until Ctrl-C: tests/run and tests/wire/test_scheduled.py run two beside a"
    " scheduler",
    "evenhand throughput lab:linux": "takes a minute",
    "evenhand predict gateway-v4 --dut testbed.toml": "needs the reader's own DUT:"
    " tests/cli/test_predict_dut.py asks one",
    "evenhand predict gateway-v4 --hosts 16 --dut testbed.toml": "the same",
    "evenhand report appendix-a.evenhand": "needs that campaign's file: tests/cli/test_report.py has one",
    "evenhand status appendix-a.evenhand": "the same: tests/run/campaign does it",
    "evenhand run --resume appendix-a.evenhand": "the same",
    "evenhand show first.evenhand": "needs the run before it: test_first_number.py walks it",
    "evenhand report first.evenhand": "the same",
    "evenhand merge ": "needs runs to merge: tests/cli/test_merge.py makes some",
    "evenhand bisect ": "needs the reader's own DUT: tests/cli/test_bisect.py has simulated ones",
    "evenhand serve": "runs until Ctrl-C: tests/serve asks one",
    "evenhand show both.evenhand": "the same",
    "evenhand trend ": "needs runs: tests/cli/test_trend.py makes some",
    "evenhand prune ": "needs runs: tests/cli/test_prune.py has some",
    "evenhand show monday.evenhand": "needs a run: tests/cli/test_show.py does it",
    "evenhand export monday.evenhand": "needs a run: tests/cli/test_export.py does it",
    "evenhand export tuesday.evenhand": "the same",
    "evenhand export after.evenhand": "the same",
    "evenhand otg reference": "runs until Ctrl-C: tests/wire/test_otg.py runs it, with its script",
    "evenhand show otg-DATE-TIME.evenhand": "needs the run of that server",
    "evenhand router ": "runs until Ctrl-C: tests/cli/test_router.py does it",
    "evenhand throughput reference-router.toml": "needs that router beside it: tests/cli/test_router.py"
    " makes a trial so",
    "evenhand trial reference-router.toml": "needs that router beside it: tests/cli/test_router.py makes the"
    " same mix",
    "evenhand trial lab:linux": "needs root: the walk through the tutorial runs it",
    "evenhand lab up linux": "needs root: the walk through the tutorial runs it",
    "evenhand lab down linux": "needs root: the walk through the tutorial runs it",
    "evenhand lab up vm": "needs root and minutes: tests/vm has such a lab",
    "evenhand trial lab:vm": "needs root and that lab: tests/vm does it",
    "evenhand dut apply lab:vm": "the same",
    "evenhand dut undo lab:vm": "the same",
    "evenhand predict gateway-v4 --hosts 16 --dut lab:vm": "the same",
    "evenhand lab down vm": "needs root and that lab: tests/lab/test_vm_parts.py does it",
}
"""Beginnings of commands, and why they are not run one by one. Their options are checked by the command line
itself."""
_CHECKED: dict[str, subprocess.CompletedProcess[str]] = {}
"""A check takes seconds, and documents show the same one several times."""
OURS = [command for command in commands() if command.words.startswith(("evenhand", "make "))]


def _beginning_with(*beginnings: str) -> list[Command]:
    return [command for command in OURS if command.words.startswith(beginnings)]


def test_every_documented_command_is_accounted_for() -> None:
    """A command that nobody checks is out of date one day, and nobody knows."""
    known = (
        "make ",
        *RUN_AS_THEY_ARE,
        *RUN_WITHOUT_AN_ENGINE,
        *RUN_WITH_THE_ENGINE,
        *CHECKS_OF_THE_HOST,
        *NOT_RUN,
    )
    assert [str(command) for command in OURS if not command.words.startswith(known)] == []


def test_no_reason_is_left_over() -> None:
    """A reason without a command would hide the next one that begins alike."""
    assert [beginning for beginning in NOT_RUN if not _beginning_with(beginning)] == []


@pytest.mark.parametrize("command", _beginning_with("make "), ids=str)
def test_make_verb_exists(command: Command) -> None:
    verbs = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(command.words.split()[1:]) <= verbs


@pytest.mark.wire
@pytest.mark.parametrize("command", _beginning_with(*RUN_AS_THEY_ARE), ids=str)
def test_command_prints_what_the_document_shows(command: Command, run: Run) -> None:
    """D3: what a reader sees is what the reader's own engine draws."""
    _prints_what_the_document_shows(command, run)


@pytest.mark.parametrize(
    "command",
    [
        command
        for command in _beginning_with(*RUN_WITHOUT_AN_ENGINE)
        if not command.words.startswith(tuple(NOT_RUN))
    ],
    ids=str,
)
def test_command_without_an_engine_prints_what_the_document_shows(command: Command, run: Run) -> None:
    """D13: a prediction is exact, so it is the same everywhere, to the last digit."""
    _prints_what_the_document_shows(command, run)


def _prints_what_the_document_shows(command: Command, run: Run) -> None:
    ended = run(command.words)
    assert ended.returncode == 0, ended.stderr
    if command.output is not None:
        shown, printed = command.output.rstrip().splitlines(), ended.stdout.rstrip().splitlines()
        assert [line.rstrip() for line in printed] == shown


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.two_cpus if "engines" in command.words else ())
        for command in _beginning_with(*RUN_WITH_THE_ENGINE)
    ],
    ids=str,
)
def test_trial_over_a_cable_runs_without_hardware(command: Command, run: Run) -> None:
    """Also on a busy machine, where it is INVALID: then it must still say so in the form that the document
    shows."""
    ended = run(command.words)
    assert ended.returncode == 0, ended.stderr
    assert re.match(
        r"Trial 1: (PASS|INVALID) at [\d,]+ fps per direction for 2 s, 64 octet frames\n", ended.stdout
    )


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.alone if "--require" in command.words else ())
        for command in _beginning_with(*CHECKS_OF_THE_HOST)
        if not command.words.startswith(tuple(NOT_RUN))
    ],
    ids=str,
)
def test_check_of_a_host_has_the_tables_that_the_document_shows(command: Command, run: Run) -> None:
    """What stands in them is this machine's; which checks there are, and which parts, is the same
    everywhere."""
    if command.words not in _CHECKED:
        _CHECKED[command.words] = run(command.words)
    ended = _CHECKED[command.words]
    if "--require" in command.words and ended.returncode == 3:
        assert "--require" in ended.stderr
    else:
        assert ended.returncode == 0, ended.stderr
    (shown,) = [
        block
        for block in blocks("text", document="docs/how-to/check-a-host.md")
        if block.text.startswith("This machine")
    ]
    assert _first_words(ended.stdout) == _first_words(shown.text)


def test_the_check_of_a_host_that_is_shown_has_the_table_of_its_nics(tmp_path: Path) -> None:
    """It has a PCI NIC, of which its other tables speak."""
    (shown,) = [
        block
        for block in blocks("text", document="docs/how-to/check-a-host.md")
        if block.text.startswith("This machine")
    ]
    table = nics_table(survey(tmp_path))
    assert table is not None
    heading = re.search(r"^NICs\n(.+)$", shown.text, re.MULTILINE)
    assert heading is not None
    assert re.split(r" {2,}", heading[1].strip()) == [column.title for column in table.columns]


def _first_words(text: str) -> list[str]:
    """The first column of both tables; not that of the NICs, which not every host has."""
    tables = re.split(r"^(?:NICs|What to do) *$", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [line[:11].rstrip() for line in tables.splitlines() if line[:1].strip()]


@pytest.mark.parametrize("command", _beginning_with(*NOT_RUN), ids=str)
def test_options_of_commands_that_are_not_run_exist(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` at the end: the command line reads all options, refuses unknown ones, and starts nothing."""
    assert main([*command.words.split()[1:], "--help"]) == 0, capsys.readouterr().err
    assert "Usage:" in capsys.readouterr().out


def _program_commands() -> list[Command]:
    programs = ("build/engine/evenhand-engine", "build/router/evenhand-router")
    return [c for c in commands() if any(program in c.text for program in programs) and c.output is not None]


@pytest.mark.wire
@pytest.mark.parametrize("command", _program_commands(), ids=str)
def test_program_by_hand_answers_as_shown(command: Command, run: Run) -> None:
    """D2: a session is lines on stdin and stdout, and needs no client."""
    ended = run(command.text)
    assert ended.returncode == 0, ended.stderr
    assert command.output is not None

    def replies(text: str) -> list[str]:
        # How many progress events come depends on time.
        return [line for line in text.splitlines() if '"event":"progress"' not in line]

    shown, printed = replies(command.output), replies(ended.stdout)
    assert len(printed) == len(shown)
    for one_shown, one_printed in zip(shown, printed, strict=True):
        assert matches(one_shown, one_printed), one_printed


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
def test_a_script_ends_a_campaign_in_order_as_the_how_to_shows(run: Run) -> None:
    """A shell's `&` ignores SIGINT for what it starts, so a script needs SIGTERM: exit code 143, and a file
    that can be resumed."""
    shown = [
        block
        for block in blocks("sh", document="docs/how-to/run-a-campaign.md", indented=True)
        if "kill -TERM" in block.text
    ]
    assert len(shown) == 1
    # On a busy host five seconds may end before the first trial, and without one no file is kept.
    status = "evenhand status background.evenhand --json"
    stored = f"until {status} | grep -Eq '\"trials\": [1-9]'; do sleep 1; done"
    ended = run(shown[0].text.replace("sleep 5", stored))
    assert ended.returncode == 128 + signal.SIGTERM, ended.stderr
    left = run(status)
    assert left.returncode == 0, left.stderr
    document = json.loads(left.stdout)
    assert document["finished_at"] is None
    assert document["worker"] is None


@pytest.mark.wire
@pytest.mark.root
def test_tutorial_on_the_linux_lab(run: Run) -> None:
    """SEED-19: the tutorial's own commands in their order, from `lab up` on, without the long search and the
    demo."""
    if lab_status("linux") is not None:
        pytest.skip("somebody works with the lab of this name")
    walk = [
        c
        for c in commands()
        if c.block.document == "docs/tutorial/first-throughput.md" and c.text.startswith("sudo ")
    ]
    walk = [c for c in walk if not c.words.startswith(("evenhand throughput", "evenhand demo"))]
    assert walk[0].words == "evenhand lab up linux"
    assert walk[-1].words == "evenhand lab down linux"
    try:
        for command in walk:
            ended = run(command.text)
            assert ended.returncode == 0, (command.text, ended.stderr)
            if command.words.startswith("ip -n"):
                assert sorted(line.split()[0] for line in ended.stdout.splitlines() if "lladdr" in line) == [
                    "10.0.0.2",
                    "10.0.1.2",
                ]
            elif command.output is not None:
                # The first word is a verdict for a trial, which the load of the machine decides.
                shown = re.sub(r": PASS at.*", "", command.output.splitlines()[0]).split(" on CPU ")[0]
                assert ended.stdout.startswith(shown)
    finally:
        run("evenhand lab down linux")
