# SPDX-License-Identifier: Apache-2.0
"""What takes long to load is loaded when it is needed."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval

import pytest

from evenhand.base.lazy_import import lazy_import


def test_a_command_loads_no_package_that_it_does_not_use() -> None:
    """Half of the time that a command took to start went into these."""
    slow = (
        "numpy.linalg",
        "pyroute2.iproute",
        "MLRsearch.config",
        "markupsafe",
        "evenhand.report.page",
        "evenhand.report.comparison_page",
    )
    program = (
        f"import sys; from evenhand.cli.main import app_of; app_of(); print([name for name in {slow}"
        " if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_command_line_loads_the_verb_that_it_names_and_no_other() -> None:
    """To load all of them takes a third longer."""
    program = (
        "import sys; from evenhand.cli.main import main; main(['lab', 'status', 'linux'])\n"
        "print([f'evenhand.cli.{name}' in sys.modules for name in %s])"
    )
    modules = ["lab", "plan", "router", "measure", "demo", "run"]
    loaded = subprocess.run(
        [sys.executable, "-c", program % modules], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.splitlines()[-1] == "[True, False, False, False, False, False]"


@pytest.mark.parametrize("line", [["plan", "show", "gateway-v4"], ["run", "--help"]])
def test_what_measures_nothing_loads_no_procedure(line: list[str]) -> None:
    """To show a plan took twice as long as it needs, and the help of `run` five times."""
    program = (
        "import sys\nfrom evenhand.cli.main import main\n"
        f"try: main({line})\nexcept SystemExit: pass\n"
        "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('evenhand.')}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = set(literal_eval(loaded.stdout.splitlines()[-1]))
    assert rooms >= {"base", "cli"}
    assert not rooms & {"procedure", "trial", "search", "run", "report", "analysis"}


def test_a_module_is_what_it_would_be_without_delay() -> None:
    program = (
        "from evenhand.base.lazy_import import lazy_import; m = lazy_import('wave'); import wave; print(m is"
        " wave, wave.open is m.open)"
    )
    assert subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split() == ["True", "True"]


def test_a_module_that_is_missing_is_missed_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        lazy_import("no_such_module")
