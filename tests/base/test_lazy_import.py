# SPDX-License-Identifier: Apache-2.0
"""What takes long to load is loaded when it is needed."""

from __future__ import annotations

import subprocess
import sys

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
