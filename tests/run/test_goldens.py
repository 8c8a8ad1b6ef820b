# SPDX-License-Identifier: Apache-2.0
"""Exports of recorded run files are the same, octet for octet, whatever version of the file they come
from."""

from __future__ import annotations

import json

import pytest

from tests.run.goldens import FILES, GOLDENS, digests_of

RECORDED: dict[str, dict[str, str]] = json.loads(GOLDENS.read_text(encoding="utf-8"))


def test_every_recorded_file_has_its_digests() -> None:
    assert RECORDED.keys() == {path.stem for path in FILES.glob("*.evenhand")}


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_exported_of_a_recorded_file_stays_the_same(name: str) -> None:
    """D11: who has made a table of a run finds the same numbers in it with every later Evenhand."""
    assert digests_of(FILES / f"{name}.evenhand") == RECORDED[name]
