# SPDX-License-Identifier: Apache-2.0
"""Where Evenhand is installed there is no Makefile: what people are told to do must be possible there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.base import programs
from tests.errors import raises


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As below a virtualenv's lib/python3.x/site-packages."""
    monkeypatch.setattr(programs, "CHECKOUT", tmp_path)
    return tmp_path


def test_this_is_a_checkout() -> None:
    assert programs.is_checkout()
    assert programs.how_to_get_programs() == "Run `make build`"
    assert (programs.CHECKOUT / programs.how_to_get_extra("serve").split()[-1]).is_file()


def test_installed_nobody_is_sent_to_the_makefile(installed: Path) -> None:
    assert programs.how_to_get_extra("serve") == "pip install 'evenhand[serve]'"
    with raises("base.program-missing") as caught:
        programs.find_program(
            replace(programs.ENGINE, checkout=installed / "none"), environment={"PATH": str(installed)}
        )
    assert "make" not in str(caught.value)
    assert caught.value.where == "PATH"
    assert caught.value.next_step.startswith(
        "Install the package evenhand-engine of the same version, or give its path with --engine"
    )


def test_a_program_that_was_named_and_is_not_there(installed: Path) -> None:
    with raises("base.program-missing") as caught:
        programs.find_program(programs.ENGINE, installed / "none")
    assert (
        caught.value.next_step == "Install the package evenhand-engine of the same version, or name another."
    )
