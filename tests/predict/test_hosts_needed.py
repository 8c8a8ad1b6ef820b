# SPDX-License-Identifier: Apache-2.0
"""From how many hosts on a load is even, and the doubling series."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from evenhand.plan import BOTH_DIRECTIONS, UdpRange, gateway_v4, gateway_v6
from evenhand.plan.topologies import direct_v4_net16, direct_v6
from evenhand.predict import (
    DeviceModel,
    doubling_series,
    even_limit,
    predict,
    smallest_even_hosts,
    with_hosts,
)


@pytest.mark.parametrize("directions", [("forward",), BOTH_DIRECTIONS])
@pytest.mark.parametrize(
    "model",
    [
        DeviceModel(elements=16),
        DeviceModel(elements=36),
        DeviceModel(elements=5, symmetric=True),
        DeviceModel(elements=64, key=bytes(range(40))),
    ],
    ids=["16", "36", "5 symmetric", "64 other key"],
)
@pytest.mark.parametrize("family", [gateway_v4, gateway_v6])
def test_the_smallest_even_number_is_that_of_looking_at_every_number(
    family: Any, model: DeviceModel, directions: Any
) -> None:
    """RSS-06: the search jumps; nothing that is uneven may lie in what it jumps over, and nothing even below
    what it finds."""
    plan = family(300)
    limit = even_limit(model)
    uneven = [
        n for n in range(1, 301) if predict(with_hosts(plan, n), model, directions).busiest_to_mean > limit
    ]
    wanted = uneven[-1] + 1 if uneven else 1
    assert smallest_even_hosts(plan, model, directions=directions) == (None if wanted == 301 else wanted)


def test_a_lucky_number_of_hosts_is_not_the_smallest_even_one() -> None:
    """RSS-06: 32 x 32 is even (1.031), 33 x 33 is not: only from 43 on every number is."""
    plan, model = direct_v4_net16(), DeviceModel(elements=16)
    smallest = smallest_even_hosts(plan, model, directions=("forward",))
    assert smallest is not None
    assert smallest > 32
    assert predict(with_hosts(plan, 32), model, ("forward",)).busiest_to_mean <= even_limit(model)
    assert predict(with_hosts(plan, smallest - 1), model, ("forward",)).busiest_to_mean > even_limit(model)


@pytest.mark.parametrize(
    ("family", "elements", "first_even"),
    [(direct_v4_net16, 16, 32), (direct_v6, 16, 8), (direct_v4_net16, 36, 64)],
    ids=["case 1", "case 2", "case 4"],
)
def test_the_series_becomes_even_about_where_the_published_ones_stop_rising(
    family: Any, elements: int, first_even: int
) -> None:
    """SEED-66, RSS-06: published 16 x 16, 4 x 4 and 64 x 64; without neighbour entries to exhaust a cache it
    never falls."""
    model = DeviceModel(elements=elements)
    series = doubling_series(family(), model, ("forward",))
    even = [
        point.plan.left.host_range.count for point in series if point.busiest_to_mean <= even_limit(model)
    ]
    assert even[0] == first_even
    assert len(even) == len([point for point in series if point.plan.left.host_range.count >= first_even])
    shares = [float(point.share_of_plateau) for point in series]
    assert all(after > before - 0.001 for before, after in pairwise(shares))


@pytest.mark.parametrize(
    ("family", "last"), [(direct_v4_net16, 65533), (direct_v6, 65536), (gateway_v4, 65534)]
)
def test_the_series_doubles_up_to_all_hosts(family: Any, last: int) -> None:
    """SEED-65: 17 points."""
    hosts = [point.plan.left.host_range.count for point in doubling_series(family(), DeviceModel())]
    assert hosts == [*(2**n for n in range(16)), last]


def test_a_short_plan_ends_its_series_with_its_own_number_of_hosts() -> None:
    """SEED-65, for forms with fewer hosts."""
    for maximum, points in ((1, [1]), (2, [1, 2]), (253, [1, 2, 4, 8, 16, 32, 64, 128, 253])):
        series = doubling_series(gateway_v4(maximum), DeviceModel())
        assert [point.plan.right.host_range.count for point in series] == points


def test_ports_in_the_hash_make_any_number_of_hosts_even() -> None:
    """SEED-71: the other side of the negative control: with a type 2 hash one address pair is enough."""
    assert smallest_even_hosts(gateway_v4(), DeviceModel(hash_type="type2")) == 1


def test_a_plan_without_enough_hosts_has_no_even_number() -> None:
    one_port = UdpRange(first=1, last=1)
    assert smallest_even_hosts(gateway_v6(3), DeviceModel()) is None
    assert (
        smallest_even_hosts(
            gateway_v4(1, source_ports=one_port, destination_ports=one_port), DeviceModel(hash_type="type2")
        )
        is None
    )


def test_one_element_is_even_at_once() -> None:
    assert smallest_even_hosts(gateway_v4(), DeviceModel(elements=1)) == 1
