# SPDX-License-Identifier: Apache-2.0
"""The user's command that empties a DUT's table of connections (R9693-07)."""

from __future__ import annotations

import pytest

from evenhand.dut.connections import empty_by_command
from tests.errors import raises


def test_a_command_that_ends_with_0_has_emptied_the_table_and_its_time_is_known() -> None:
    """R9693-13."""
    emptied = empty_by_command("sleep 0.2", where="testbed.toml")
    assert emptied.seconds >= 0.2
    assert emptied.connections is None


@pytest.mark.parametrize(
    ("command", "says"), [("echo no such table; exit 4", "no such table"), ("exit 4", "no output")]
)
def test_a_command_that_fails_is_an_error_with_its_words(command: str, says: str) -> None:
    with raises("rig.emptying-failed", match=f" 4 .*{says}"):
        empty_by_command(command, where="testbed.toml")


def test_a_command_that_takes_too_long_is_ended_and_said() -> None:
    with raises("rig.emptying-takes-too-long", match="500 ms.*asks"):
        empty_by_command("echo asks for a password; sleep 1000", where="testbed.toml", longest_s=0.5)
