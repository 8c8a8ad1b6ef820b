# SPDX-License-Identifier: Apache-2.0
"""Loads of plans with flows: every combination of every flow hashed by itself, in the flows' shares."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from evenhand.plan import AddressPlan, Direction, make_own_plan
from evenhand.predict import DeviceModel, HashType, doubling_series, element_of, predict, smallest_even_hosts
from tests.errors import raises
from tests.plan.test_flows import V4, V6

SIDES = {4: V4, 6: V6}
HOSTS = {
    4: (["198.18.0.1", "198.18.0.2", "198.18.0.3"], ["198.19.0.1", "198.19.0.2"]),
    6: (["2001:2::1", "2001:2::2", "2001:2::3"], ["2001:2:0:8000::1", "2001:2:0:8000::2"]),
}
PORTS = {"source-ports": "1024-1030", "destination-ports": "1-5"}
SOURCES, DESTINATIONS = range(1024, 1031), range(1, 6)


def plan_of(version: int, *flows: dict[str, Any], **others: Any) -> AddressPlan:
    left, right = HOSTS[version]
    sides = {
        "left": {**SIDES[version]["left"], "hosts": f"{left[0]}-{left[-1]}"},
        "right": {**SIDES[version]["right"], "hosts": f"{right[0]}-{right[-1]}"},
    }
    return make_own_plan({**sides, **PORTS, **others, "flow": list(flows)}, where="edge.toml", name="edge")


def model_of(hash_type: HashType, *, symmetric: bool = False) -> DeviceModel:
    return DeviceModel(elements=3, hash_type=hash_type, symmetric=symmetric, rate_fps=1000)


Combination = tuple[str, str, tuple[int, int]]


def shares(model: DeviceModel, flows: list[tuple[int, list[Combination]]]) -> tuple[Fraction, ...]:
    """The share of each element, where so many frames are of these combinations."""
    found: defaultdict[int, Fraction] = defaultdict(Fraction)
    total = sum(share for share, _ in flows)
    for share, combinations in flows:
        for source, destination, ports in combinations:
            element = element_of(model, source, destination, ports if model.hash_type == "type2" else ())
            found[element] += Fraction(share, total * len(combinations))
    return tuple(Fraction(found[element]) for element in range(model.elements))


def each(*values: Any, ports: list[tuple[int, int]]) -> list[Combination]:
    return [(a, b, both) for a, b, both in product(*values, ports)]


MODELS = pytest.mark.parametrize(
    "model",
    [model_of("type1"), model_of("type2"), model_of("type2", symmetric=True)],
    ids=["type1", "type2", "symmetric"],
)
BOTH = pytest.mark.parametrize("version", [4, 6])


@MODELS
@BOTH
def test_each_flow_counts_by_its_share(version: int, model: DeviceModel) -> None:
    """Ports: one, several, those of the plan; hosts of its own, as source and as destination."""
    left, right = HOSTS[version]
    plan = plan_of(
        version,
        {"name": "voice", "share": 1, "destination-port": 5060, "source-port": [7, 9]},
        {"name": "video", "share": 3, "left": [left[2]], "source-port": {"first": 80, "count": 3, "step": 5}},
        {"name": "rest", "share": 5},
    )
    all_ports = list(product(SOURCES, DESTINATIONS))
    ports = {
        "voice": [(7, 5060), (9, 5060)],
        "video": list(product((80, 85, 90), DESTINATIONS)),
        "rest": all_ports,
    }
    found = predict(plan, model)
    assert found.loads("forward") == shares(
        model,
        [
            (1, each(left, right, ports=ports["voice"])),
            (3, each([left[2]], right, ports=ports["video"])),
            (5, each(left, right, ports=ports["rest"])),
        ],
    )
    assert found.loads("reverse") == shares(
        model,
        [
            (1, each(right, left, ports=ports["voice"])),
            (3, each(right, [left[2]], ports=ports["video"])),
            (5, each(right, left, ports=ports["rest"])),
        ],
    )


@MODELS
@BOTH
def test_fields_in_lock_step_go_together(version: int, model: DeviceModel) -> None:
    left, right = HOSTS[version]
    plan = plan_of(
        version,
        {
            "name": "pairs",
            "left": left[:2],
            "right": [right[1], right[0]],
            "source-port": [4000, 4001],
            "lock-step": ["left", "right", "source-port"],
        },
    )
    together = [(left[0], right[1], 4000), (left[1], right[0], 4001)]
    of_forward = [(a, b, (port, d)) for a, b, port in together for d in DESTINATIONS]
    of_reverse = [(b, a, (port, d)) for a, b, port in together for d in DESTINATIONS]
    found = predict(plan, model)
    assert found.loads("forward") == shares(model, [(1, of_forward)])
    assert found.loads("reverse") == shares(model, [(1, of_reverse)])


@BOTH
def test_directions_have_the_loads_of_their_own_flows(version: int) -> None:
    left, right = HOSTS[version]
    model = model_of("type2")
    plan = plan_of(
        version,
        {"name": "up", "direction": "reverse", "source-port": 1, "destination-port": 2},
        {"name": "down", "direction": "forward", "source-port": 3, "destination-port": 4},
    )
    found = predict(plan, model)
    expected: dict[Direction, tuple[Fraction, ...]] = {
        "forward": shares(model, [(1, each(left, right, ports=[(3, 4)]))]),
        "reverse": shares(model, [(1, each(right, left, ports=[(1, 2)]))]),
    }
    assert {direction: found.loads(direction) for direction in found.directions} == expected
    alone = plan_of(version, {"name": "up", "direction": "reverse"})
    with raises("plan.no-flow-of-direction"):
        predict(alone, model)
    assert predict(alone, model, ["reverse"]).directions == ("reverse",)


def test_hosts_of_a_flow_differ_in_any_word_of_an_address_of_a_list() -> None:
    sides = {
        "left": {**V6["left"], "hosts": "2001:2::/64"},
        "right": {**V6["right"], "hosts": f"{HOSTS[6][1][0]}-{HOSTS[6][1][1]}"},
    }
    step = (1 << 17) + 1
    flow = {"name": "a", "left": {"first": "2001:2::ffff:fff0", "count": 50, "step": step}, "source-port": 1}
    plan = make_own_plan({**sides, "flow": [flow]}, where="edge.toml", name="edge")
    first = int(ipaddress.ip_address("2001:2::ffff:fff0"))
    hosts = [str(ipaddress.ip_address(first + n * step)) for n in range(50)]
    model = model_of("type1")
    expected = shares(model, [(1, each(HOSTS[6][1], hosts, ports=[(0, 0)]))])
    assert predict(plan, model, ["reverse"]).loads("reverse") == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize(
    ("flows", "others"),
    [
        ([{"left": "198.18.0.1-198.18.0.3:increment", "right": "198.19.0.1-198.19.0.2:increment"}], {}),
        ([{"source-port": "1-4:decrement"}], {"destination-ports": "1-5:increment"}),
        ([{}, {}], {"destination-ports": "1-5:increment"}),
    ],
)
def test_what_steps_together_is_refused(flows: list[dict[str, Any]], others: dict[str, Any]) -> None:
    plan = plan_of(4, *({"name": f"f{n}", **flow} for n, flow in enumerate(flows)), **others)
    with raises("predict.fields-step-together"):
        predict(plan, model_of("type2"))


def test_fields_of_one_flow_that_step_in_lock_step_are_one() -> None:
    stepping = {"first": 1000, "count": 4, "mode": "increment"}
    flow = {"name": "a", "source-port": stepping, "destination-port": stepping}
    plan = plan_of(4, {**flow, "lock-step": ["source-port", "destination-port"]}, {"name": "b"})
    predict(plan, model_of("type2"))
    with raises("predict.fields-step-together", match="source-port of a .increment., destination-port of a"):
        predict(plan_of(4, flow), model_of("type2"))


def test_a_plan_whose_flow_has_hosts_is_predicted_with_one_and_with_all() -> None:
    plan = plan_of(4, {"name": "a", "left": ["198.18.0.3"]})
    model = model_of("type2")
    assert [point.plan.hosts.left for point in doubling_series(plan, model)] == [1, 3]
    assert smallest_even_hosts(plan, model) is None


def test_flows_that_say_nothing_of_what_is_hashed_change_nothing() -> None:
    model = model_of("type2")
    plain = predict(plan_of(4), model)
    marked = predict(plan_of(4, {"name": "a", "dscp": "EF", "share": 1}, {"name": "b", "share": 6}), model)
    assert marked.loads("forward") == plain.loads("forward")


@MODELS
@BOTH
def test_hosts_of_a_flows_prefixes_count_as_they_are_drawn(version: int, model: DeviceModel) -> None:
    """Each prefix equally often, and each host within it."""
    small, large = ("198.18.0.4", "198.18.0.8/29") if version == 4 else ("2001:2::4", "2001:2::8/125")
    left, right = HOSTS[version]
    sides = {
        "left": {
            **SIDES[version]["left"],
            "hosts": f"{left[0]}-{left[0][:-1]}ff" if version == 6 else "198.18.0.1-198.18.0.254",
        },
        "right": {**SIDES[version]["right"], "hosts": f"{right[0]}-{right[-1]}"},
    }
    flows = [{"name": "a", "left": [small + ("/32" if version == 4 else "/128"), large]}]
    plan = make_own_plan({**sides, **PORTS, "flow": flows}, where="edge.toml", name="edge")
    ports = list(product(SOURCES, DESTINATIONS))
    of_large = [str(host) for host in ipaddress.ip_network(large)]
    expected = shares(
        model, [(1, each([small], right, ports=ports)), (1, each(of_large, right, ports=ports))]
    )
    assert predict(plan, model, ("forward",)).loads("forward") == expected
