# SPDX-License-Identifier: Apache-2.0
"""Exports of recorded run files are the same, octet for octet, in every later state of the code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from evenhand.plan import make_mix
from evenhand.procedure.registry import PROCEDURES
from evenhand.run import read_record
from evenhand.run.run_file import VERSION
from tests.run.goldens import GOLDENS, NAMES, digests_of, recorded_file
from tests.run.record_files import FILES

RECORDED: dict[str, dict[str, str]] = json.loads(GOLDENS.read_text(encoding="utf-8"))


def test_every_recorded_file_has_its_digests_and_can_be_measured_anew() -> None:
    assert set(NAMES) == RECORDED.keys() == FILES.keys()


def test_every_procedure_is_recorded_with_both_ip_versions() -> None:
    """A new procedure needs its files: `python -m tests.run.record_files NAME`."""
    found = {
        (point.point.procedure, version)
        for name in NAMES
        for point in read_record(recorded_file(name)).points
        if point.values
        for version in make_mix(point.point.plan).versions
    }
    assert found >= {(procedure, version) for procedure in PROCEDURES for version in (4, 6)}


def test_what_is_recorded_has_the_present_version() -> None:
    for name in NAMES:
        with closing(sqlite3.connect(recorded_file(name))) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,), name


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_exported_of_a_recorded_file_stays_the_same(name: str) -> None:
    """D11: who has made a table of a run finds the same numbers in it with every later Evenhand."""
    assert digests_of(name) == RECORDED[name]
