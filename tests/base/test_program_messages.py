# SPDX-License-Identifier: Apache-2.0
"""Messages of the engine and the reference router in one file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from tests.base.program_messages import COMMAND, FILE, as_toml, faults

CONTRACT = Path(__file__).resolve().parents[2] / "contract"


@pytest.mark.wire
def test_the_file_is_what_the_programs_write() -> None:
    try:
        found = faults()
    except HostError as error:
        pytest.skip(f"not built: {error}")
    assert FILE.read_text() == as_toml(found), f"to rewrite it: {COMMAND}"


def test_each_program_has_messages_of_codes_that_the_contract_names() -> None:
    schema = json.loads((CONTRACT / "reply.schema.json").read_text())
    known = set(schema["$defs"]["fault"]["properties"]["fault"]["properties"]["code"]["enum"])
    told = tomllib.loads(FILE.read_text())
    assert set(told["engine"]) == {
        "bad_frame_size",
        "bad_json",
        "bad_order",
        "bad_plan",
        "bad_rate",
        "bad_request",
        "no_cpu",
    }
    assert set(told["router"]) == {"bad_json", "bad_request"}
    assert set(told["engine"]) | set(told["router"]) <= known
    assert all(
        fault["what"] and fault["next"]
        for codes in told.values()
        for each in codes.values()
        for fault in each
    )
