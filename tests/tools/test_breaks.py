# SPDX-License-Identifier: Apache-2.0
"""The list of breaks on purpose fits this checkout, and tools/breaks.py tells a test that fails from one that
does not."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tools import breaks, conformance
from tools.breaks import Break
from tools.breaks_worktree import Ran, Worktree

HERE = "tests/tools/test_breaks.py"
ENTRY = """
[[break]]
ids = ["SEED-03"]
what = "w"
file = "VERSION"
old = "0"
new = ""
tests = ["a.py::test_a"]
"""
SEES = Break(
    ids=("SEED-03",),
    what="a block is too large",
    file="python/evenhand/plan/sides.py",
    old='(4, "right"): ipaddress.ip_network("198.19.0.0/16")',
    new='(4, "right"): ipaddress.ip_network("198.18.0.0/15")',
    tests=("tests/plan/test_validate.py::test_hosts_outside_the_block_of_their_side",),
)
SEES_NOT = replace(SEES, tests=("tests/plan/test_warnings.py::test_gateway_plans_are_never_warned_of",))


IN_GIT = pytest.mark.skipif(
    subprocess.run(
        ["git", "-C", str(breaks.ROOT), "rev-parse", "HEAD"], capture_output=True, check=False
    ).returncode
    != 0,
    reason="a worktree needs a git checkout that is ours",
)


def listed() -> list[Break]:
    return breaks.read_breaks((breaks.ROOT / breaks.LIST).read_text())


def test_every_break_still_applies_and_every_tested_requirement_has_one() -> None:
    """Else the list rots: each text stands exactly once, each test exists and names the requirement that it
    must see broken."""
    assert breaks.problems(listed(), breaks.ROOT) == []


@pytest.mark.parametrize("broken", [b for b in listed() if b.file.endswith(".py")], ids=lambda b: b.name)
def test_a_broken_python_file_still_compiles(broken: Break) -> None:
    """Else its tests would fail whatever they test."""
    ast.parse(broken.applied_to((breaks.ROOT / broken.file).read_text()))


def test_a_list_that_does_not_fit_is_told() -> None:
    wrong = [
        replace(SEES, old="no such text"),
        replace(SEES, old="ipaddress"),
        replace(SEES, file="none.py"),
        replace(SEES, tests=("tests/plan/test_validate.py::test_none",)),
        replace(SEES, ids=("SEED-71",)),
    ]
    fitting = [b for b in listed() if "RSS-06" not in b.ids]
    told = breaks.problems([*wrong, *fitting], breaks.ROOT)
    for words in (
        "RSS-06 is tested, and has no break",
        "occurs 0 times in python/evenhand/plan/sides.py",
        "sides.py, not once",
        "No such file",
        "there is no tests/plan/test_validate.py::test_none",
        "none of its tests names SEED-71",
    ):
        assert any(words in line for line in told), words


def test_what_needs_a_break_is_what_the_page_calls_tested() -> None:
    required = breaks.required_ids(breaks.ROOT, conformance.all_claims(breaks.ROOT))
    page = (breaks.ROOT / conformance.PAGE).read_text()
    for name in required:
        assert f"\n- {name}: " in page  # without another status, which would follow the name
    assert {"SEED-84", "R2544-21"} & set(required) == set()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('what = "w"\n', "", "want file, ids, new, old, tests, what"),
        ('what = "w"', 'what = ""', "may be empty"),
        ('new = ""', 'new = "0"', "the same"),
        ("SEED-03", "SEED-3", "SEED-3"),
        ("a.py::test_a", "a.py", "a.py"),
        ("[[break]]", "[[brake]]", "brake"),
    ],
)
def test_an_entry_with_a_slip_is_refused(old: str, new: str, words: str) -> None:
    assert len(breaks.read_breaks(ENTRY)) == 1
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        breaks.read_breaks(ENTRY.replace(old, new))


@pytest.mark.thorough
@IN_GIT
def test_a_break_is_caught_by_a_test_that_fails_and_the_checkout_stays_as_it_is() -> None:
    """For real, in a worktree: a test that sees it, one that does not, one that is not there, a text that is
    gone."""
    before = (breaks.ROOT / SEES.file).read_bytes()
    status = _git("status", "--porcelain")
    with Worktree(breaks.ROOT) as tree:
        folder = tree.path.parent
        assert (tree.path / HERE).read_bytes() == Path(__file__).read_bytes(), "with what is not committed"
        assert tree.run_unbroken([*SEES.tests, *SEES_NOT.tests]) == dict.fromkeys(
            [*SEES.tests, *SEES_NOT.tests], Ran(Ran.PASSED)
        )
        assert breaks.try_break(tree, SEES).verdict == breaks.CAUGHT
        missed = breaks.try_break(tree, SEES_NOT)
        assert (missed.verdict, missed.why) == (breaks.NOT_CAUGHT, f"passed: {SEES_NOT.tests[0]}")
        both = breaks.try_break(tree, replace(SEES, tests=(*SEES.tests, *SEES_NOT.tests)))
        assert both.verdict == breaks.NOT_CAUGHT, "each test that a break names must fail"
        absent = breaks.try_break(tree, replace(SEES, tests=("tests/plan/test_warnings.py::test_none",)))
        assert absent.verdict == breaks.NOT_CAUGHT
        assert absent.why.startswith("not found")
        assert breaks.try_break(tree, replace(SEES, old="no such text")).verdict == breaks.DOES_NOT_APPLY
        assert tree.run(SEES.tests[0]) == Ran(Ran.PASSED), "mended after each"
        (tree.path / SEES.file).write_text(SEES.applied_to((tree.path / SEES.file).read_text()))
        ran = tree.run_unbroken([*SEES.tests, *SEES_NOT.tests])
        assert [ran[test].result for test in (*SEES.tests, *SEES_NOT.tests)] == [Ran.FAILED, Ran.PASSED], (
            "a checkout that fails by itself"
        )
    assert not folder.exists()
    assert str(folder) not in _git("worktree", "list")
    assert (breaks.ROOT / SEES.file).read_bytes() == before
    assert _git("status", "--porcelain") == status


@pytest.mark.thorough
@IN_GIT
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_an_interrupted_run_leaves_no_worktree(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [
        sys.executable,
        str(breaks.ROOT / "tools" / "breaks.py"),
        "--only",
        "SEED-03",
        "SEED-70",
        "RSS-03",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"In {tmp_path}/evenhand-breaks-")
    time.sleep(1)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in _git("worktree", "list")


def test_the_list_can_be_shown_and_an_unknown_requirement_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert breaks.main(["--list", "--only", "SEED-70"]) == 0
    shown = capsys.readouterr().out
    assert "SEED-70: results that differ are called about equal" in shown
    assert "RSS-03" not in shown
    assert breaks.main(["--only", "SEED-70", "SEED-99"]) == 2
    assert "no break of SEED-99" in capsys.readouterr().err


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(breaks.ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout
