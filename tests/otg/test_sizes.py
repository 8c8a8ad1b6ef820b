# SPDX-License-Identifier: Apache-2.0
"""Frame sizes of OTG: drawn, in shares, and unlike in the two directions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from evenhand.otg.flow_counts import FlowCounts, counts_together
from evenhand.otg.traffic import OtgTraffic, traffic_of
from evenhand.plan import Direction, flows_in, mix_request
from tests.otg.configs import SHARES, SIZE, config, document, several

LONGEST = 65_536


def drawn(least: int, largest: int) -> dict[str, Any]:
    return {"choice": "random", "random": {"min": least, "max": largest}}


def read(
    made: Any, *sizes: dict[str, Any], change: Callable[[dict[str, Any]], None] | None = None
) -> OtgTraffic:
    """The configuration with these sizes of its first flows."""

    def changed(found: dict[str, Any]) -> None:
        for flow, size in zip(found["flows"], sizes, strict=False):
            flow["size"] = size
        if change is not None:
            change(found)

    return traffic_of(document(made, changed))


def sequence(found: OtgTraffic, direction: Direction = "forward") -> list[int]:
    """The sizes of the frames in their order, until they repeat."""
    mix = mix_request(found.plan, found.frame_size, direction)["mix"]
    return [mix["classes"][number]["frame_size"] for number in mix["cycle"]]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("count", [2, 3, 64])
def test_each_size_is_drawn_exactly_as_often_as_any_other(version: int, count: int) -> None:
    found = read(config(version, names=("only",)), drawn(100, 99 + count))
    sizes = sequence(found)
    assert Counter(sizes) == dict.fromkeys(range(100, 100 + count), LONGEST // count)
    assert found.mean_octets_of("forward") == Fraction(sum(sizes), len(sizes))
    assert (found.largest_octets, found.flows[0].places) == (99 + count, ())
    # So many independent draws are as the one before; six standard deviations of that.
    same = sum(a == b for a, b in pairwise(sizes))
    expected = len(sizes) / count
    assert abs(same - expected) < 6 * (expected * (1 - 1 / count)) ** 0.5


@pytest.mark.parametrize(("least", "largest"), [(64, 1518), (100, 164), (84, 9216)])
def test_of_more_sizes_than_can_be_sent_an_even_choice_has_the_same_mean(least: int, largest: int) -> None:
    sizes = Counter(sequence(read(config(4, names=("only",)), drawn(least, largest))))
    assert set(sizes.values()) == {1024}
    assert len(sizes) == 64
    assert (min(sizes), max(sizes)) == (least, largest)
    assert Fraction(sum(sizes), 64) == Fraction(least + largest, 2)
    ordered = sorted(sizes)
    gaps = {b - a for a, b in pairwise(ordered)}
    assert max(gaps) - min(gaps) <= 1


def test_the_configuration_is_the_seed_of_the_sizes() -> None:
    first, again, other = (
        sequence(read(config(4, names=("only",), pps=pps), drawn(64, 127))) for pps in (1000, 1000, 1001)
    )
    assert first == again != other


def test_drawn_sizes_of_both_directions_are_the_same() -> None:
    found = read(config(6), drawn(100, 120), drawn(100, 120))
    assert {flow.direction for flow in found.plan.flows} == {None}
    assert sequence(found, "forward") == sequence(found, "reverse")


def test_a_flow_with_drawn_sizes_takes_turns_with_others_of_its_port() -> None:
    found = read(several(4, names="there"), drawn(64, 1518))
    flows = flows_in(found.plan.flows, "forward")
    voice, video, rest = (flow.places for flow in found.flows)
    assert (len(voice), video, rest) == (62, (62,), (63,))
    cycle = mix_request(found.plan, found.frame_size, "forward")["mix"]["cycle"]
    for begin in range(0, len(cycle), 10):
        of_each = Counter(max(number, 61) for number in cycle[begin : begin + 10])
        assert [of_each[number] for number in (61, 62, 63)] == list(SHARES.values()), "of every ten"
    assert len(set(Counter(number for number in cycle if number < 62).values())) == 1
    assert len(cycle) == LONGEST // 620 * 620
    assert len({flow.share for flow in flows[:62]}) == 1
    assert found.flows[0].mean_octets == 791


@pytest.mark.parametrize("version", [4, 6])
def test_shares_of_sizes_beside_a_dscp_are_exact(version: int) -> None:
    def marked(found: dict[str, Any]) -> None:
        ip = found["flows"][0]["packet"][1][f"ipv{version}"]
        key = "priority" if version == 4 else "traffic_class"
        ip[key] = {"choice": "raw", "raw": {"value": 185}} if version == 4 else {"value": 185}

    pairs = [{"size": 100, "weight": 7}, {"size": 570, "weight": 4}, {"size": 1518, "weight": 1}]
    size = {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": pairs}}
    found = read(config(version, names=("only",)), size, change=marked)
    assert Counter(sequence(found)) == {100: 7, 570: 4, 1518: 1}
    assert {(flow.dscp, flow.ecn) for flow in found.plan.flows} == {(46, 1)}
    assert read(config(version, names=("only",)), size).plan.flows == ()


@pytest.mark.parametrize("version", [4, 6])
def test_directions_have_sizes_of_their_own(version: int) -> None:
    """A rate in bits is another one in frames then."""

    def in_bits(found: dict[str, Any]) -> None:
        for flow in found["flows"]:
            flow["rate"] = {"choice": "mbps", "mbps": 10}
            flow["duration"] = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1}}

    sizes = ({"choice": "fixed", "fixed": 100}, {"choice": "fixed", "fixed": 1518})
    found = read(config(version), *sizes, change=in_bits)
    assert [(flow.direction, flow.frame_size) for flow in found.plan.flows] == [
        ("forward", 100),
        ("reverse", 1518),
    ]
    assert [found.mean_octets_of(direction) for direction in found.directions] == [100, 1518]
    assert [flow.rate_fps for flow in found.flows] == [1e7 / 8 / 120, 1e7 / 8 / 1538]
    assert [flow.places for flow in found.flows] == [(), ()]
    assert (found.frame_size, found.largest_octets) == (1518, 1518)
    mixed = read(config(version), sizes[0], drawn(200, 263))
    assert (sequence(mixed, "forward"), len(sequence(mixed, "reverse"))) == ([100], LONGEST)


def test_ecn_in_turn_is_a_flow_of_the_plan_for_each_value() -> None:
    def change(found: dict[str, Any]) -> None:
        values = {"choice": "increment", "increment": {"start": 184, "step": 1, "count": 4}}
        found["flows"][0]["packet"][1]["ipv6"]["traffic_class"] = values

    found = read(config(6, names=("only",), hosts=1), change=change)
    assert [(flow.dscp, flow.ecn) for flow in found.plan.flows] == [(46, 0), (46, 1), (46, 2), (46, 3)]
    assert mix_request(found.plan, SIZE, "forward")["mix"]["cycle"] == [0, 1, 2, 3]


def test_the_counts_of_a_flow_are_those_of_all_its_sizes() -> None:
    one = FlowCounts(
        frames_tx=10,
        frames_rx=5,
        octets_tx=1000,
        octets_rx=500,
        tx_fps=10,
        rx_fps=5,
        loss_percent=50,
        min_ns=3.0,
        mean_ns=4.0,
        max_ns=9.0,
    )
    other = FlowCounts(
        frames_tx=30,
        frames_rx=15,
        octets_tx=60,
        octets_rx=30,
        tx_fps=30,
        rx_fps=15,
        loss_percent=50,
        min_ns=2.0,
        mean_ns=8.0,
        max_ns=8.0,
    )
    none = FlowCounts()
    for parts in ([one, other, none], [none, other, one]):
        found = counts_together(parts)
        assert (found.frames_tx, found.frames_rx, found.octets_tx, found.octets_rx) == (40, 20, 1060, 530)
        assert (found.tx_fps, found.rx_fps, found.loss_percent) == (40, 20, 50)
        assert (found.min_ns, found.mean_ns, found.max_ns) == (2.0, 7.0, 9.0)
    assert counts_together([none]) == none
