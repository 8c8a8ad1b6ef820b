# SPDX-License-Identifier: Apache-2.0
"""The tester's own ceilings, as they are kept from one command to the next."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evenhand.host.known_ceilings import KEPT_FOR, KnownCeiling, ceilings_file, find_ceiling, keep_ceiling

CEILING = KnownCeiling(rate_fps=1e6, above_fps=1.1e6, found_at="2026-01-01T00:00:00Z")
HERE = {"plan": "gateway-v6"}


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _kept_before(age: timedelta) -> None:
    document = json.loads(ceilings_file().read_text())
    document["ceilings"][0]["kept_at"] = (datetime.now(UTC) - age).isoformat()
    ceilings_file().write_text(json.dumps(document))


def test_a_ceiling_is_kept_for_its_conditions_and_found_anew_after_a_week() -> None:
    """MLR-14: what a host does besides changes, and none of the facts that are compared says so."""
    keep_ceiling(HERE, CEILING)
    assert find_ceiling(HERE) == CEILING
    assert find_ceiling({"plan": "gateway-v4"}) is None
    _kept_before(KEPT_FOR - timedelta(hours=1))
    assert find_ceiling(HERE) == CEILING
    _kept_before(KEPT_FOR + timedelta(hours=1))
    assert find_ceiling(HERE) is None


def test_a_ceiling_that_a_search_has_reached_is_no_younger_for_it() -> None:
    keep_ceiling(HERE, CEILING)
    _kept_before(KEPT_FOR - timedelta(hours=1))
    keep_ceiling(HERE, replace(CEILING, was_reached=True))
    assert find_ceiling(HERE) == replace(CEILING, was_reached=True)
    _kept_before(KEPT_FOR + timedelta(hours=1))
    keep_ceiling(HERE, replace(CEILING, was_reached=True))
    assert find_ceiling(HERE) is None


@pytest.mark.parametrize("kept_at", [7, "yesterday", "2026-01-01T00:00:00", None])
def test_a_time_that_is_none_is_not_recent(kept_at: object) -> None:
    keep_ceiling(HERE, CEILING)
    document = json.loads(ceilings_file().read_text())
    document["ceilings"][0]["kept_at"] = kept_at
    ceilings_file().write_text(json.dumps(document))
    assert find_ceiling(HERE) is None
