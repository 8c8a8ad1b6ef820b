# SPDX-License-Identifier: Apache-2.0
"""Messages of the engine and the reference router: each request that they must refuse is refused with a code
of the contract, and a message that keeps the rules of all messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from tests.base.messages import broken_rules
from tests.base.program_messages import Fault, faults

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
CODES = {
    "engine": {"bad_frame_size", "bad_json", "bad_order", "bad_plan", "bad_rate", "bad_request", "no_cpu"},
    "router": {"bad_json", "bad_request"},
}
"""Those that a request alone brings about."""


@pytest.mark.wire
def test_what_the_programs_refuse_has_a_code_and_a_plain_message() -> None:
    try:
        found = faults()
    except HostError as error:
        pytest.skip(f"not built: {error}")
    codes = {program: {each.code for each in found if each.program == program} for program in CODES}
    assert codes == CODES
    assert _broken(found) == []


def test_the_contract_names_these_codes() -> None:
    schema = json.loads((CONTRACT / "reply.schema.json").read_text())
    known = set(schema["$defs"]["fault"]["properties"]["fault"]["properties"]["code"]["enum"])
    assert CODES["engine"] | CODES["router"] <= known


def _broken(found: set[Fault]) -> list[tuple[Fault, str]]:
    """A value that a message quotes is no word of it."""
    return [
        (fault, broken)
        for fault in sorted(found)
        for broken in broken_rules(fault.what, fault.next_step)
        if fault.next_step == "" or not broken.startswith("longer")
    ]
