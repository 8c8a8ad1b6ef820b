# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict --table FILE`: what a file of ethtool's says is in the prediction, or in an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended
from tests.predict.ethtool_texts import (
    CUT,
    FORMS,
    FUNCTION,
    UDP4_TYPE2,
    UDP6_TYPE1,
    heading,
    key_part,
    rows,
    whole,
)

Run = Callable[..., Ended]


def saved(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    file = folder / "ethtool.txt"
    file.write_bytes(text.encode(encoding))
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_a_file_is_read_as_each_system_saves_it(evenhand: Run, tmp_path: Path, encoding: str) -> None:
    """RSS-04."""
    printed = evenhand("predict", "gateway-v4", "--table", saved(tmp_path, whole()), "--json").json
    other = saved(tmp_path, FORMS["quoted"], encoding)
    assert evenhand("predict", "gateway-v4", "--table", other, "--json").json == printed
    assert printed["notes"] == []


def test_a_cut_table_is_refused(evenhand: Run, tmp_path: Path) -> None:
    """RSS-04: a table of 128 that is read as one of 64 tells of a plateau that the NIC does not have."""
    file = saved(tmp_path, CUT["dots after rows"][0])
    ended = evenhand("predict", "gateway-v4", "--table", file, "--key", "common")
    assert (ended.code, ended.error.code) == (2, "predict.table-cut")
    assert "ethtool -x" in ended.error.next_step


@pytest.mark.parametrize(
    ("plan", "fields", "hash_type"),
    [
        ("gateway-v4", UDP4_TYPE2 + UDP6_TYPE1, "type2"),
        ("gateway-v6", UDP4_TYPE2 + UDP6_TYPE1, "type1"),
        ("gateway-v4", "", "type1"),
    ],
)
def test_the_hashed_fields_are_those_of_the_plans_ip_version(
    evenhand: Run, tmp_path: Path, plan: str, fields: str, hash_type: str
) -> None:
    """RSS-01."""
    file = saved(tmp_path, fields + whole())
    document = evenhand("predict", plan, "--table", file, "--json").json
    assert document["device"]["hash_type"] == hash_type


def test_fields_of_the_other_version_only_are_remarked(evenhand: Run, tmp_path: Path) -> None:
    file = saved(tmp_path, UDP4_TYPE2 + whole())
    ended = evenhand("predict", "gateway-v6", "--table", file)
    assert "does not say which fields are hashed for UDP over IPv6" in ended.out
    assert "does not say" not in evenhand("predict", "gateway-v6", "--table", file, "--hash", "type1").out


@pytest.mark.parametrize(
    ("fields", "options", "code"),
    [
        (UDP4_TYPE2, ("--hash", "type1"), "spec.table-contradicts-hash"),
        (UDP4_TYPE2.replace("IP DA\n", ""), (), "spec.hash-of-other-fields"),
        ("UDP over IPV4 flows use these fields for computing Hash flow key:\nNone\n\n", (), None),
    ],
)
def test_fields_that_cannot_be_predicted_or_contradict_are_refused(
    evenhand: Run, tmp_path: Path, fields: str, options: tuple[str, ...], code: str | None
) -> None:
    """RSS-01."""
    ended = evenhand("predict", "gateway-v4", "--table", saved(tmp_path, fields + whole()), *options)
    assert (ended.code, ended.error.code) == (2, code or "spec.hash-of-other-fields")


@pytest.mark.parametrize("used", [16, 1])
def test_rings_that_the_table_does_not_use_are_remarked(evenhand: Run, tmp_path: Path, used: int) -> None:
    table = "".join(rows([i % used for i in range(128)]))
    file = saved(tmp_path, heading(rings=63) + table + key_part() + FUNCTION)
    line = ("predict", "gateway-v4", "--table", file)
    remark = f"The NIC has 63 RX rings; its table uses {used} of them."
    assert remark in evenhand(*line).out
    assert evenhand(*line, "--json").json["notes"] == [remark]


def test_a_table_that_names_more_rings_than_there_are_is_remarked(evenhand: Run, tmp_path: Path) -> None:
    file = saved(
        tmp_path, heading(rings=4) + "".join(rows([i % 8 for i in range(128)])) + key_part() + FUNCTION
    )
    ended = evenhand("predict", "gateway-v6", "--table", file)
    assert "The NIC has 4 RX rings, but its table names number 7" in ended.out


def test_a_table_that_may_have_been_cut_is_remarked(evenhand: Run, tmp_path: Path) -> None:
    """`head` leaves no mark in a file."""
    ends = saved(tmp_path, heading() + "".join(rows()[:8]))
    ended = evenhand("predict", "gateway-v4", "--table", ends, "--key", "common")
    assert "The output ends after 64 entries, before the key." in ended.out
    small = saved(tmp_path, heading() + "".join(rows()[:8]) + key_part() + FUNCTION)
    assert "The table has 64 entries" in evenhand("predict", "gateway-v4", "--table", small).out


def test_a_file_without_end_is_refused(evenhand: Run) -> None:
    ended = evenhand("predict", "gateway-v4", "--table", "/dev/zero")
    assert (ended.code, ended.error.code) == (2, "spec.not-a-hash-table")
    assert "4 MiB" in ended.error.what
