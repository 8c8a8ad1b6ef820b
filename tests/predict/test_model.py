# SPDX-License-Identifier: Apache-2.0
"""The device of a prediction: what it is by default, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from evenhand.predict import DeviceModel, round_robin_table
from evenhand.predict.model import round_robin_unevenness
from tests.errors import raises


def test_the_table_has_128_entries_round_robin_by_default() -> None:
    """RSS-04."""
    table = DeviceModel(elements=36).table
    assert len(table) == 128
    assert table[:38] == (*range(36), 0, 1)


@pytest.mark.parametrize(("elements", "size"), [(1, 128), (128, 128), (129, 256), (513, 1024), (4096, 4096)])
def test_the_table_has_an_entry_for_each_element(elements: int, size: int) -> None:
    model = DeviceModel(elements=elements)
    assert len(model.table) == size
    assert set(model.table) == set(range(elements))


def test_the_table_tells_how_even_any_load_can_be() -> None:
    """RSS-06: 36 queues never come below 1.125 with 128 entries, whatever is sent."""
    assert DeviceModel(elements=36).table_unevenness == Fraction(9, 8)
    assert DeviceModel(elements=16).table_unevenness == 1
    assert DeviceModel(elements=36, table=round_robin_table(36, 1024)).table_unevenness < Fraction(102, 100)


@pytest.mark.parametrize("size", [1, 2, 8, 128, 512])
@pytest.mark.parametrize("elements", [1, 3, 16, 36, 100, 128])
def test_no_table_is_evener_than_a_round_robin_one(elements: int, size: int) -> None:
    """RSS-06: what a table of the DUT's own is held against."""
    model = DeviceModel(elements=elements, table=round_robin_table(elements, size))
    assert round_robin_unevenness(elements, size) == model.table_unevenness >= 1


@pytest.mark.parametrize(
    ("field", "code", "value"),
    [
        ({"elements": 0}, "predict.out-of-range", "0 elements"),
        ({"elements": 4097}, "predict.out-of-range", "4097"),
        ({"hash_type": "type3"}, "predict.not-a-hash-type", "'type3'"),
        ({"key": bytes(35)}, "predict.key-too-short", "35 octets"),
        ({"hash_type": "type2", "key": bytes(39)}, "predict.key-too-short", "39 octets"),
        ({"table": (0, 1, 2)}, "predict.table-size", "3 entries"),
        ({"table": (0,) * 131072}, "predict.table-size", "131072 entries"),
        ({"table": (0, 16)}, "predict.unknown-element", "entry 1 is element 16"),
        ({"table": (0, -1)}, "predict.unknown-element", "element -1"),
        ({"rate_fps": 0.0}, "predict.out-of-range", "0.0"),
        ({"rate_fps": float("inf")}, "predict.out-of-range", "inf"),
        ({"queue_frames": 0}, "predict.out-of-range", "0 frames"),
    ],
    ids=str,
)
def test_a_wrong_field_is_refused_with_its_name_and_value(
    field: dict[str, Any], code: str, value: str
) -> None:
    with raises(code) as caught:
        DeviceModel(**field)
    (name,) = [key for key in field if key != "hash_type" or len(field) == 1]
    assert caught.value.where == f"device.{name}"
    assert value in caught.value.what


def test_the_shortest_keys_reach_the_end_of_every_hash_input() -> None:
    """RSS-03: with a key of 4 octets more than the input, the last bit of the input has its 32 bits of
    key."""
    DeviceModel(key=bytes(36))
    DeviceModel(hash_type="type2", key=bytes(40))
