# SPDX-License-Identifier: Apache-2.0
"""What the engine is asked is octet for octet what it was when the golden lines were written."""

from __future__ import annotations

from tests.plan.contract_goldens import FILE, lines


def test_every_plan_asks_the_engine_for_what_the_golden_lines_have() -> None:
    """All topologies with all kinds of options: the order of the keys included, since runs keep the text."""
    assert lines() == FILE.read_text().splitlines()
