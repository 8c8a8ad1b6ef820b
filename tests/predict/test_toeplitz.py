# SPDX-License-Identifier: Apache-2.0
"""The Toeplitz hash: known answers, linearity, and what goes into it."""

from __future__ import annotations

import ipaddress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.plan import gateway_v4, gateway_v6
from evenhand.plan.model import AddressPlan
from evenhand.predict import (
    VERIFICATION_KEY,
    DeviceModel,
    element_of,
    hash_input,
    hash_octets,
    predict,
    symmetric_key,
)
from evenhand.predict.flow_fields import contributions

VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5D1809C5, 0x10E828A2),
]


@pytest.mark.parametrize(
    ("source", "source_port", "destination", "destination_port", "type1", "type2"), VECTORS
)
def test_the_hash_has_the_known_answers(
    source: str, source_port: int, destination: str, destination_port: int, type1: int, type2: int
) -> None:
    """RSS-01, RSS-03: the public verification suite; ports do not change a type 1 hash."""
    addresses = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    for ports in ((source_port, destination_port), (1, 1), ()):
        assert hash_octets(VERIFICATION_KEY, hash_input(DeviceModel(), *addresses, ports)) == type1
    of_type2 = hash_input(DeviceModel(hash_type="type2"), *addresses, (source_port, destination_port))
    assert hash_octets(VERIFICATION_KEY, of_type2) == type2


@given(key=st.binary(min_size=40, max_size=52), octets=st.binary(min_size=36, max_size=36))
def test_the_hash_is_the_xor_of_what_its_words_contribute(key: bytes, octets: bytes) -> None:
    """RSS-03: the arrays that make a prediction fast hash as the definition does, at every place of the
    input."""
    total = 0
    for octet in range(0, 36, 2):
        word = np.array([int.from_bytes(octets[octet : octet + 2], "big")], dtype=np.uint32)
        total ^= int(contributions(key, 8 * octet, word)[0])
    assert total == hash_octets(key, octets)


def test_the_low_bits_of_the_hash_choose_the_entry() -> None:
    """RSS-04."""
    model = DeviceModel(elements=128, table=tuple(reversed(range(128))))
    assert element_of(model, "66.9.149.187", "161.142.100.80") == 127 - (0x323E8FC2 & 127)


@pytest.mark.parametrize("plan", [gateway_v4(16), gateway_v6(16)], ids=["v4", "v6"])
def test_a_symmetric_hash_keeps_same_index_pairs_on_one_element(plan: AddressPlan) -> None:
    """RSS-05, SEED-41: host i to host i has the same XOR for every i; independent draws have not."""
    model = DeviceModel(elements=16, symmetric=True)
    same_index = {
        element_of(model, plan.left.host_range.address(i), plan.right.host_range.address(i))
        for i in range(16)
    }
    assert len(same_index) == 1
    assert predict(plan, model).busy_elements > 1
    without = DeviceModel(elements=16)
    assert (
        len(
            {
                element_of(without, plan.left.host_range.address(i), plan.right.host_range.address(i))
                for i in range(16)
            }
        )
        > 1
    )


@given(
    ends=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    ports=st.tuples(st.integers(0, 65535), st.integers(0, 65535)),
)
def test_a_symmetric_hash_is_the_same_both_ways(ends: tuple[int, int], ports: tuple[int, int]) -> None:
    """RSS-05: that is what the option is for: both directions of a flow on one core."""
    model = DeviceModel(elements=128, hash_type="type2", symmetric=True)
    source, destination = (ipaddress.IPv4Address(end) for end in ends)
    assert element_of(model, source, destination, ports) == element_of(
        model, destination, source, ports[::-1]
    )


def test_openbsds_key_is_16_bits_repeated_and_hashes_as_its_kernel_does() -> None:
    """RSS-03, RSS-05: each 16-bit word gives its product with the circulant matrix of the seed, twice; known
    answers 0x6d5a and 0x36ad."""
    key = symmetric_key()
    assert key == bytes.fromhex("6d5a" * 20)
    for octet in range(0, 32, 2):
        for word, answer in ((0x8000, 0x6D5A), (0x0001, 0x36AD)):
            octets = bytes(octet) + word.to_bytes(2, "big") + bytes(30 - octet)
            assert hash_octets(key, octets) == answer << 16 | answer
    answers = {hash_octets(key, word.to_bytes(2, "big") + bytes(6)) for word in range(65536)}
    assert len(answers) == 65536, "a seed of odd parity permutes the 16-bit words"


@pytest.mark.parametrize("plan", [gateway_v4, gateway_v6], ids=["v4", "v6"])
@pytest.mark.parametrize("seed", [0x6D5A, 0x0001, 0xFEED])
def test_with_openbsds_key_a_pair_meets_one_element_in_both_directions(plan: Any, seed: int) -> None:
    """SEED-61, SEED-71, RSS-05: a frame and its answer have one hash, so one pair is worse off there than
    with the common key."""
    model = DeviceModel(elements=4, key=symmetric_key(seed))
    assert predict(plan(1), model).busy_elements == 1
    assert predict(plan(1), DeviceModel(elements=4)).busy_elements <= 2
    assert predict(plan(), model).busiest_to_mean < 1.001
    left, right = plan().left.host_range.address(77), plan().right.host_range.address(4711)
    assert element_of(model, left, right) == element_of(model, right, left)
