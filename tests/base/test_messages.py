# SPDX-License-Identifier: Apache-2.0
"""Errors: their codes, and what their messages must be."""

from __future__ import annotations

import pickle
import re

import pytest

from evenhand.base.errors import EvenhandError, HostError, OutputError
from evenhand.dut.record import Holder, SetupRecord
from evenhand.dut.setup import HeldError
from tests.base.messages import broken_rules, messages
from tests.errors import raises

SHAPE = re.compile(r"[a-z]+\.[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST = 40
BEGINNINGS = {**dict.fromkeys(("testbed", "dut", "host", "reference", "lab"), "rig"), "results": "procedure"}
KNOWN: set[tuple[str, str]] = set()
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


def test_each_message_is_plain_and_names_the_value_or_the_next_step() -> None:
    found = {
        (message.code, broken)
        for message in messages()
        for broken in broken_rules(message.what, message.next_step)
    }
    assert found - KNOWN == set()


@pytest.mark.parametrize(
    ("what", "next_step", "broken"),
    [
        ("{value} is not a rate", "Write 1Mfps.", 0),
        ("{value} is not a rate.", "Write 1Mfps.", 1),
        ("{value} is not a rate", "Write 1Mfps", 1),
        ("this is not a rate", "", 1),
        ("nobody stands there", "Of these use 1.", 2),
        ("{value}" + 400 * "x", "Write a shorter one.", 1),
    ],
)
def test_the_rules_find_what_breaks_them(what: str, next_step: str, broken: int) -> None:
    assert len(list(broken_rules(what, next_step))) == broken


def test_codes_have_one_shape() -> None:
    assert [
        message.code
        for message in messages()
        if not SHAPE.fullmatch(message.code) or len(message.code) > LONGEST
    ] == []


def test_a_code_begins_with_the_room_that_raises_it() -> None:
    """The rooms of tester and DUT have one beginning, as procedures and what they are asked for have: who
    reads an error need not know them apart."""
    found = [
        message
        for message in messages()
        if message.code.partition(".")[0] != BEGINNINGS.get(message.room, message.room)
    ]
    assert found == []


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
