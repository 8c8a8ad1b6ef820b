# SPDX-License-Identifier: Apache-2.0
"""Errors: their codes, and their messages in one file."""

from __future__ import annotations

import pickle
import re
import tomllib

import pytest

from evenhand.base.errors import EvenhandError, HostError, OutputError
from evenhand.rig.dut.record import Holder, SetupRecord
from evenhand.rig.dut.setup import HeldError
from tests.base.messages import COMMAND, FILE, as_toml, messages
from tests.errors import raises

SHAPE = re.compile(r"[a-z]+\.[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST = 40
HELD = SetupRecord(
    identity="a",
    holder=Holder(kind="run", user="u", host="h", process=1, started_ticks=1, since="2026-01-01T00:00:00"),
    system="linux",
    boot_id="b",
    plan="gateway-v4",
    hash_type=None,
    fingerprint="f",
    interfaces=("eth1", "eth2"),
    items=(),
    options={},
)


def test_the_file_of_messages_is_that_of_the_source() -> None:
    assert FILE.read_text() == as_toml(messages()), f"to rewrite it: {COMMAND}"


def test_the_file_of_messages_can_be_read() -> None:
    told = tomllib.loads(FILE.read_text())
    assert {f"{room}.{words}" for room, codes in told.items() for words in codes} == {
        message.code for message in messages()
    }


def test_codes_have_one_shape() -> None:
    assert [
        message.code
        for message in messages()
        if not SHAPE.fullmatch(message.code) or len(message.code) > LONGEST
    ] == []


def test_a_code_begins_with_the_room_that_raises_it() -> None:
    assert [message for message in messages() if message.code.partition(".")[0] != message.room] == []


@pytest.mark.parametrize(
    "error",
    [
        HostError("no device", code="engine.no-device", where="left", next_step="Plug it in."),
        OutputError("no room", code="cli.output-not-writable", is_closed_pipe=True),
        HeldError(HELD),
    ],
)
def test_an_error_of_a_worker_arrives_as_it_was(error: EvenhandError) -> None:
    error.add_note("engine: a line")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)


def test_another_code_is_another_error() -> None:
    with pytest.raises(AssertionError, match="instead of"), raises("plan.unknown-name"):
        raise HostError("no device", code="engine.no-device")
