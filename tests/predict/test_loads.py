# SPDX-License-Identifier: Apache-2.0
"""Exact loads: the published table, every combination counted by hand, and sums that 63 bits do not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.plan import (
    BOTH_DIRECTIONS,
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    AddressPlan,
    UdpRange,
    find_topology,
    gateway_v4,
    gateway_v6,
    make_plan,
)
from evenhand.plan.topologies import direct_v4_net16, direct_v6, nets_v6_gateway
from evenhand.predict import DeviceModel, element_of, flow_fields, loads, predict
from evenhand.predict.flow_fields import walsh_hadamard
from tests.errors import raises
from tests.plan.host_ranges import as_range
from tests.plan.routed import PREFIXES, ROUTED
from tests.predict.plans import FEW_DESTINATION_PORTS, FEW_SOURCE_PORTS, brute_force

PUBLISHED = {
    ("v4", 16): {
        1: 16.0,
        2: 4.0,
        4: 2.0,
        8: 1.5,
        16: 1.125,
        32: 1.031,
        64: 1.004,
        128: 1.0,
        1024: 1.0,
        65533: 1.0,
    },
    ("v4", 36): {
        1: 36.0,
        2: 9.0,
        4: 4.5,
        8: 2.812,
        16: 1.688,
        32: 1.23,
        64: 1.16,
        128: 1.127,
        1024: 1.125,
        65533: 1.125,
    },
    ("v6", 16): {1: 16.0, 2: 4.0, 4: 2.0, 8: 1.0, 16: 1.0, 1024: 1.0, 65536: 1.0},
}


@pytest.mark.parametrize(
    ("family", "elements", "hosts", "published"),
    [
        (family, elements, hosts, value)
        for (family, elements), row in PUBLISHED.items()
        for hosts, value in row.items()
    ],
)
def test_the_loads_are_those_of_the_reference_table(
    family: str, elements: int, hosts: int, published: float
) -> None:
    """RSS-06: busiest queue relative to the mean, one direction, direct plans, type 1."""
    plan = direct_v4_net16(hosts) if family == "v4" else direct_v6(hosts)
    prediction = predict(plan, DeviceModel(elements=elements), ("forward",))
    assert float(prediction.busiest_to_mean) == pytest.approx(published, abs=0.001)


@pytest.mark.parametrize("family", [gateway_v4, gateway_v6])
def test_one_address_pair_keeps_one_element_busy_in_each_direction(family: Any) -> None:
    """SEED-71, SEED-61: the unfairness: pseudorandom ports do not help a type 1 hash."""
    model = DeviceModel(elements=4, rate_fps=1e6)
    prediction = predict(family(1), model)
    assert [prediction.only(direction).busy_elements for direction in BOTH_DIRECTIONS] == [1, 1]
    assert prediction.busy_elements <= 2
    many = predict(family(), model)
    assert prediction.throughput_fps is not None
    assert many.throughput_fps is not None
    assert 1 < many.throughput_fps / prediction.throughput_fps <= 4
    assert predict(family(1), replace(model, hash_type="type2")).busy_elements == 4


def test_with_a_fixed_source_and_unlike_sides_both_directions_weigh_the_same() -> None:
    """SEED-35: forward has one source and 64 destinations, reverse one and 4, at the same rate."""
    both = predict(make_plan("nets_v4_single_host", networks=(4, 64), fixed_source=True), DeviceModel())
    forward = predict(make_plan("nets_v4_single_host", networks=(1, 64)), DeviceModel(), ("forward",))
    reverse = predict(make_plan("nets_v4_single_host", networks=(4, 1)), DeviceModel(), ("reverse",))
    assert both.loads("forward") == forward.loads("forward")
    assert both.loads("reverse") == reverse.loads("reverse")
    assert (
        both.busiest_to_mean
        == max(map(sum, zip(forward.loads("forward"), reverse.loads("reverse"), strict=True))) * 16 / 2
    )


@st.composite
def devices(draw: st.DrawFn) -> DeviceModel:
    elements = draw(st.integers(1, 20))
    size = draw(st.sampled_from([1, 2, 16, 128]))
    return DeviceModel(
        elements=elements,
        hash_type=draw(st.sampled_from(["type1", "type2"])),
        symmetric=draw(st.booleans()),
        key=draw(st.binary(min_size=40, max_size=52)),
        table=tuple(draw(st.lists(st.integers(0, elements - 1), min_size=size, max_size=size))),
    )


@st.composite
def plans(draw: st.DrawFn) -> AddressPlan:
    """A few hosts, networks and ports of any topology of a router, or of a translator with any prefix."""
    names = [*ROUTED, *(f"{name}@{prefix}" for name in ("siit", "siit-eam") for prefix in PREFIXES)]
    topology = find_topology(draw(st.sampled_from(names)))
    assert topology is not None

    def few(maximum: int, most: int) -> tuple[int, int]:
        count = st.integers(1, min(maximum, most))
        return draw(count), draw(count)

    networks = topology.most_networks or 1
    plan = topology(
        few(topology.most_hosts, 10 if networks == 1 else 3),
        network_counts=few(networks, 3),
        source_ports=FEW_SOURCE_PORTS,
        destination_ports=FEW_DESTINATION_PORTS,
    )
    first = draw(st.integers(0, 60000 if networks == 1 or plan.left.ip_version == 6 else 200))
    if plan.translation is None:
        return replace(
            plan, left=replace(plan.left, host_range=replace(as_range(plan.left.host_range), first=first))
        )
    sides = []
    for side in plan.sides:
        assert side.peers is not None
        sides.append(
            replace(
                side,
                host_range=replace(as_range(side.host_range), first=first),
                peers=replace(side.peers, first=first),
            )
        )
    return replace(plan, left=sides[0], right=sides[1])


@settings(max_examples=40, deadline=None)
@given(plan=plans(), model=devices())
def test_the_convolution_counts_what_brute_force_counts(plan: AddressPlan, model: DeviceModel) -> None:
    """RSS-01/03/04/05, SEED-33: any topology, any key, any table, both hash types, symmetric or not, every
    element, both directions."""
    prediction = predict(plan, model)
    for direction in BOTH_DIRECTIONS:
        assert prediction.counts[direction] == brute_force(plan, model, direction)
        assert sum(prediction.loads(direction)) == 1


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("family", [gateway_v4, gateway_v6])
def test_forty_hosts_a_side_count_as_by_brute_force(family: Any, symmetric: bool) -> None:
    """RSS-04/05."""
    plan, model = family((40, 37)), DeviceModel(elements=36, symmetric=symmetric)
    for direction in BOTH_DIRECTIONS:
        assert predict(plan, model).counts[direction] == brute_force(plan, model, direction)


@pytest.mark.parametrize("family", [gateway_v4, gateway_v6])
@pytest.mark.parametrize("symmetric", [False, True])
def test_all_hosts_with_all_ports_are_counted_exactly(family: Any, symmetric: bool) -> None:
    """RSS-06, R4814-02/03: 1.4 * 10^19 combinations, more than 63 bits hold: a sum that wraps or rounds would
    not be this one."""
    plan = family()
    hosts = plan.left.host_range.count
    prediction = predict(plan, DeviceModel(elements=36, hash_type="type2", symmetric=symmetric))
    assert prediction.combinations == hosts * hosts * 64512 * 49151 > 2**63
    for direction in BOTH_DIRECTIONS:
        assert sum(prediction.counts[direction]) == prediction.combinations
        assert min(prediction.counts[direction]) >= 0
    # A field that takes all 2^16 values makes every value of the hash's low bits equally frequent, so that
    # the table alone decides: 3 or 4 of its 128 entries. One lost combination would show.
    if hosts == 65536 and not symmetric:
        entry = prediction.combinations // 128
        assert set(prediction.counts["forward"]) == {3 * entry, 4 * entry}


def test_the_work_grows_with_the_values_and_not_with_their_combinations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RSS-06: 65,536 x 65,536 pairs are predicted at once because each value of each field is hashed once."""
    hashed: list[int] = []
    real = flow_fields.contributions

    def counting(key: bytes, bit_offset: int, values: Any) -> Any:
        hashed.append(len(values))
        return real(key, bit_offset, values)

    monkeypatch.setattr(loads, "contributions", counting)
    loads._spectrum.cache_clear()
    prediction = predict(gateway_v6(), DeviceModel(hash_type="type2"), ("forward",))
    assert prediction.combinations > 10**19
    constant_words = 14
    assert sum(hashed) == 2 * 65536 + 64512 + 49151 + constant_words


def test_both_directions_share_the_elements() -> None:
    """RSS-06, SEED-61: the busiest element of forward and reverse together decides, not the busiest of
    either."""
    prediction = predict(gateway_v4(16), DeviceModel(elements=16))
    forward, reverse = (prediction.loads(direction) for direction in BOTH_DIRECTIONS)
    busiest = max(a + b for a, b in zip(forward, reverse, strict=True))
    assert prediction.busiest_to_mean == busiest / Fraction(2, 16)
    assert prediction.busiest_to_mean < max(prediction.only(d).busiest_to_mean for d in BOTH_DIRECTIONS)


@pytest.mark.parametrize("directions", [("forward",), ("reverse",), BOTH_DIRECTIONS])
def test_at_the_predicted_throughput_the_busiest_element_is_just_full(directions: Any) -> None:
    """R2544-15: the throughput is per direction."""
    prediction = predict(gateway_v4(7), DeviceModel(elements=6, rate_fps=250_000.0), directions)
    assert prediction.throughput_fps is not None
    assert prediction.plateau_fps == 6 * 250_000 / len(directions)
    shares = [sum(of_all) for of_all in zip(*(prediction.loads(d) for d in directions), strict=True)]
    assert prediction.throughput_fps * float(max(shares)) == pytest.approx(250_000)
    assert predict(gateway_v4(7), DeviceModel(elements=6), directions).throughput_fps is None


def test_all_networks_with_all_hosts_are_counted_exactly() -> None:
    """SEED-33/34: 2^48 address pairs with all ports."""
    prediction = predict(nets_v6_gateway(), DeviceModel(elements=36, hash_type="type2"))
    assert prediction.combinations == 2**48 * 64512 * 49151
    assert sum(prediction.counts["forward"]) == prediction.combinations


def test_fixed_hosts_are_one_address() -> None:
    """SEED-40: the comparison modes."""
    assert (
        predict(gateway_v4(50, host_mode="fixed"), DeviceModel()).counts
        == predict(gateway_v4(1), DeviceModel()).counts
    )


def test_fields_that_count_together_are_refused_unless_the_hash_reads_only_one() -> None:
    """SEED-41: two counters at the same pace make N pairs, not N x N; the prediction would be of other
    traffic."""
    with raises("predict.fields-step-together", match=r"left hosts \(increment\), right hosts \(increment\)"):
        predict(gateway_v4(10, host_mode="increment"), DeviceModel())
    one = gateway_v4(
        (10, 1), host_mode="increment", source_ports=UdpRange(first=1024, last=2000, mode="decrement")
    )
    assert predict(one, DeviceModel()).counts == predict(gateway_v4((10, 1)), DeviceModel()).counts
    with raises("predict.fields-step-together", match=r"source ports \(decrement\)"):
        predict(one, DeviceModel(hash_type="type2"))


@given(
    st.integers(0, 7).flatmap(lambda n: st.lists(st.integers(-(2**40), 2**40), min_size=2**n, max_size=2**n))
)
def test_the_transform_twice_is_the_array_times_its_length(values: list[int]) -> None:
    """In both dtypes that a prediction uses."""
    for dtype in (np.int64, object):
        assert walsh_hadamard(walsh_hadamard(np.array(values, dtype=dtype))).tolist() == [
            len(values) * value for value in values
        ]


@pytest.mark.parametrize("name", ["nets_v4_gateway", "nets_v6_gateway", "classic_v4"])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_one_network_number_for_both_addresses_is_counted_as_it_occurs(name: str, is_symmetric: bool) -> None:
    """SEED-82: every source and destination host in every network, and never two networks."""
    hosts = 1 if name == "classic_v4" else 3
    plan = make_plan(name, hosts, networks=5, common_network=True)
    model = DeviceModel(elements=7, symmetric=is_symmetric)
    for direction in BOTH_DIRECTIONS:
        sent = plan.stream_of(direction).sent
        source, destination = sent.sources, sent.destinations
        wanted = [0] * model.elements
        for network in range(5):
            for s in range(hosts):
                for d in range(hosts):
                    wanted[
                        element_of(model, source.address(s, network), destination.address(d, network))
                    ] += 1
        assert predict(plan, model, (direction,)).counts[direction] == tuple(wanted)
        assert plan.pairs_of(direction) == sum(wanted)


def test_ports_that_are_fixed_give_a_hash_of_ports_nothing_to_work_with() -> None:
    """SEED-46, R2544-31: with one pair and RFC 2544's two ports every frame of a direction is one flow."""
    plan = make_plan(
        "gateway_v4", 1, source_ports=CLASSIC_SOURCE_PORT, destination_ports=CLASSIC_DESTINATION_PORT
    )
    assert predict(plan, DeviceModel(hash_type="type2")).busy_elements <= 2
    assert predict(make_plan("gateway_v4", 1), DeviceModel(hash_type="type2")).busy_elements == 16
