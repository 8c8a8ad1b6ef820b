# SPDX-License-Identifier: Apache-2.0
"""What several pages say, each in its own words: a number of the code is that of the code wherever it is
repeated, a command that needs root has sudo, and a message that is quoted is one that there is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from evenhand.analysis.noise import LEAST_FOR_TEST
from evenhand.cli.main import INTERRUPTED, TERMINATED
from evenhand.dut import OPERATING_SYSTEMS
from evenhand.dut.dialogs import DIALOGS
from evenhand.procedure import DelayTest
from evenhand.procedure.registry import PROCEDURES
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.search.choice import Role
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.testbed import LEAST_MEMORY_MB
from evenhand.testbed.systems import DutSystem
from tests.docs.documents import DOCUMENTS, ROOT, Command, blocks, commands, name_of, read, table_rows

FOR_WHO_MEASURES = ("README.md", "docs/README.md", "docs/tutorial/", "docs/how-to/", "examples/")
MEASURING = {*PROCEDURES, "trial", "learn", "check", "worker"}
ROOTS_TESTBEDS = re.compile(
    r"(testbed|lab)\.toml|examples/testbed-af-packet\.toml|lab:\w+|preset:appendix-a-lab(-vm)?"
)
"""Testbeds with ports that only root opens: NICs, interfaces of the kernel, labs."""
ANYBODYS = re.compile(r"reference|loopback|two-engines")
WORDS = {
    2: "twice",
    8: "eight times",
    4: "four",
    6: "six",
    7: "seven",
    9: "nine",
    16: "sixteen",
    17: "seventeen",
}
TIMES_TWO_MB = 2
FIRST_TRIAL = "docs/tutorial/first-throughput.md"
INVALID_PAGE = "docs/how-to/read-an-invalid-trial.md"
NIGHT_PAGE = "docs/how-to/measure-every-night.md"
QUOTING_PAGES = ("docs/how-to/troubleshooting.md", "docs/how-to/use-nics.md")


def prose(page: str) -> str:
    return " ".join(read(page).split())


def needs_root(command: Command) -> bool:
    words = command.words.split()
    if words[:2] == ["evenhand", "lab"]:
        return words[2] in ("up", "down")
    is_measured = words[1] in MEASURING or (words[1] == "run" and "--workers" not in words)
    return "--dut linux" in command.text or (
        is_measured and any(ROOTS_TESTBEDS.fullmatch(word) for word in words[2:])
    )


OURS = [
    command
    for command in commands()
    if command.words.startswith("evenhand ") and command.block.document.startswith(FOR_WHO_MEASURES)
]


@pytest.mark.parametrize("command", [command for command in OURS if needs_root(command)], ids=str)
def test_a_command_that_needs_root_has_sudo(command: Command) -> None:
    """Whoever copies it must not meet an error first."""
    assert command.text.startswith("sudo ")


def test_a_command_that_needs_no_root_has_no_sudo() -> None:
    """Its run file would be root's."""
    others = [command for command in OURS if not needs_root(command)]
    assert [
        str(command)
        for command in others
        if command.text.startswith("sudo ")
        and (ANYBODYS.search(command.text) or command.words.split()[1] in ("show", "report", "compare"))
    ] == []


def test_how_often_an_invalid_trial_is_repeated_is_said_once_and_right() -> None:
    """R2544-39."""
    text = prose(INVALID_PAGE)
    assert f"up to {WORDS[DEFAULT_INVALID_RETRIES]} if the tester did not offer" in text
    assert f"up to {WORDS[DEFAULT_PATIENCE]} if it did" in text
    others = [name_of(path) for path in DOCUMENTS if name_of(path).startswith(FOR_WHO_MEASURES)]
    said = re.compile(r"(repeated|again) (at the same load: )?(up to )?(twice|eight times)")
    assert [page for page in others if page != INVALID_PAGE and said.search(prose(page))] == []


def test_the_accuracy_of_percentiles_is_that_of_the_histogram() -> None:
    """R8219-12."""
    (buckets,) = re.findall(
        r"then ([\d,]+) buckets for each power of two", read("engine/tally/latency_histogram.hpp")
    )
    width = 100 / int(buckets.replace(",", ""))
    (shown,) = re.findall(r"Percentiles are measured values, accurate to ([\d.]+) %", prose(FIRST_TRIAL))
    assert float(shown) == pytest.approx(width, rel=0.05)


def test_the_trial_of_the_tutorial_has_the_rows_that_there_are() -> None:
    """A row that is missing there is one that nobody explains."""
    (shown,) = [block for block in blocks("console", document=FIRST_TRIAL) if "Trial 1:" in block.text]
    found = [re.match(r" {0,2}(\S.*?) {2,}[\d.,]+", line) for line in shown.text.splitlines()]
    titles = [match[1] for match in found if match]
    rows = re.findall(r'\(\s*"([^"]+)",\s*lambda d:', read("python/evenhand/report/trial.py"))
    assert len(rows) > 20
    # The unit is behind the name.
    assert [re.sub(r", (fps|ms|%)$", "", title) for title in titles] == [row.strip() for row in rows]


def test_the_limit_of_the_night_is_that_of_the_script() -> None:
    (script,) = re.findall(r"FAIL_BELOW:=([\d.]+)\}", read("examples/night.sh"))
    (service,) = re.findall(r"FAIL_BELOW=([\d.]+)", read("examples/evenhand-night.service"))
    (workflow,) = re.findall(r'FAIL_BELOW: "([\d.]+)"', read("examples/github-performance.yml"))
    assert script == service
    text = prose(NIGHT_PAGE)
    assert f"`FAIL_BELOW`, {script} unless you set it" in text
    assert f"a wider limit of {workflow}" in text
    assert set(re.findall(r"--fail-below ([\d.]+)", read("docs/how-to/compare-two-runs.md"))) == {script}


def test_exit_codes_of_signals_are_those_of_the_command() -> None:
    assert f"After {INTERRUPTED} or {TERMINATED} (" in prose(NIGHT_PAGE)
    assert f"It exits with {TERMINATED}" in prose("docs/how-to/run-a-campaign.md")
    assert f"{INTERRUPTED}, {TERMINATED}" in prose("docs/reference/cli.md")


def test_systems_are_as_many_as_there_are() -> None:
    """What is printed for, and what is set up over SSH."""
    over_ssh = get_args(DutSystem)
    with_shell = len([system for system in over_ssh if system not in DIALOGS])
    assert f"scripts for {WORDS[len(OPERATING_SYSTEMS) - 1]} other systems" in prose(
        "docs/tutorial/first-number.md"
    )
    assert f"for {len(OPERATING_SYSTEMS)} operating systems" in prose("docs/how-to/reproduce-appendix-a.md")
    assert (
        f"{WORDS[with_shell - 1]} other systems with a shell, {WORDS[len(over_ssh) - with_shell]} without;"
        f" prints the commands for {WORDS[len(OPERATING_SYSTEMS)]} systems" in prose("docs/README.md")
    )


def test_least_repetitions_are_those_of_the_comparison() -> None:
    at_least = WORDS[LEAST_FOR_TEST]
    assert f"both need at least {at_least} repetitions" in prose("docs/how-to/compare-two-runs.md")
    assert f"which takes {at_least} repetitions of each" in prose("docs/how-to/follow-a-trend.md")


def test_hooks_of_points_run_for_each_of_two_rounds() -> None:
    """As the page on campaigns says."""
    campaign = make_campaign(
        {"name": "x", "hooks": {"before-point": "true"}, "suite": [{"name": "a", "repetitions": 10}]},
        where="x",
    )
    assert {point.rounds for point in expand(campaign).points} == {2}
    assert "once for each [round](../reference/campaign-file.md#order), which are two by default" in prose(
        "docs/how-to/run-a-campaign.md"
    )


def test_pages_reserve_the_hugepages_that_a_check_suggests() -> None:
    """Twice what the tester takes at least; no page and no example names another size."""
    for path in (path for path in DOCUMENTS if name_of(path).startswith(FOR_WHO_MEASURES)):
        text = path.read_text(encoding="utf-8")
        for pages in re.findall(r"echo (\d+) \| sudo tee \S*hugepages-2048kB", text):
            assert int(pages) * TIMES_TWO_MB == 2 * LEAST_MEMORY_MB, path
        for needed in re.findall(r"memory_mb is (\d+)", text):
            assert int(needed) == LEAST_MEMORY_MB, path
        assert "memory = " not in text, path
    for path in (ROOT / "examples").glob("testbed-*.toml"):
        assert not re.search(r"^memory\b", path.read_text(), re.MULTILINE), path


def test_keep_a_run_lists_every_role_and_kind_of_search() -> None:
    (row,) = [row for row in table_rows("docs/how-to/keep-a-run.md", "table") if row[0] == "searches"]
    listed = dict(re.findall(r"(role|kind) \(([^)]+)\)", row[1]))
    roles, kinds = (set(listed[name].split(", ")) for name in ("role", "kind"))
    sources = "".join(path.read_text() for path in (ROOT / "python/evenhand/procedure").glob("*.py"))
    named = set(re.findall(r'kind="([a-z0-9-]+)"', sources))
    assert roles == set(Role)
    assert kinds == named | {str(test) for test in DelayTest} - {"ipdv"}


@cache
def sources() -> str:
    """All texts that a user can meet, each as one line; what is filled in is left out."""
    files = [
        path
        for folder, kind in (("engine", "*.cpp"), ("engine", "*.hpp"), ("python/evenhand", "*.py"))
        for path in (ROOT / folder).rglob(kind)
        if "tests" not in path.relative_to(ROOT).parts
    ]
    text = " ".join(path.read_text(encoding="utf-8") for path in sorted(files))
    text = re.sub(r'"\s*f?"', "", text)  # a text in several pieces
    return " ".join(re.sub(r"\{[^{}]*\}", "", text).split())


@pytest.mark.parametrize("page", QUOTING_PAGES)
def test_a_message_that_is_quoted_is_one_that_there_is(page: str) -> None:
    """Whoever searches for it finds the page, and the page speaks of what is really said."""
    quoted = [
        text
        for line in read(page).splitlines()
        if line.startswith("| *")
        for text in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", line.split("|")[1])
    ]
    assert len(quoted) >= 7
    missing = []
    for text in quoted:
        # Numbers and names are filled in; so is what an ellipsis stands for.
        pieces = [piece.strip(" ,:") for piece in re.split(r"\.\.\.|\d+|ixgbe|vfio-pci|/dev/vfio/", text)]
        if not all(piece in sources() for piece in pieces if len(piece) > 3):
            missing.append(text)
    assert missing == []


def test_no_page_is_named_that_is_not_there() -> None:
    """Programs name pages in what they print."""
    named = set(re.findall(r"docs/[\w-]+/[\w-]+\.md", sources()))
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []
    assert Path(ROOT / INVALID_PAGE).is_file()
