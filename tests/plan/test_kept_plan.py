# SPDX-License-Identifier: Apache-2.0
"""A plan file's plan from what a run keeps of it: the same frames, or no plan at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, make_own_plan
from evenhand.plan.kept_plan import kept_plan
from evenhand.predict import DeviceModel, predict
from tests.plan.test_flows import V4, V6

RANGES = {
    4: ("198.18.0.1-198.18.3.254", "198.19.0.1-198.19.0.9"),
    6: ("2001:2::1-2001:2::ffff", "2001:2:0:8000::1-2001:2:0:8000::9"),
}
FLOWS: dict[int, list[dict[str, Any]]] = {
    version: [
        {
            "name": "calls",
            "share": 3,
            "left": [hosts[0], hosts[1]],
            "right": hosts[2],
            "dscp": ["EF", 0],
            "ecn": "ECT(1)",
            "shuffle": 0,
            "source-port": "1-2",
            "lock-step": ["dscp", "source-port", "left"],
            "vlan": "3-9:increment",
            "loss-at-most": "0%",
        },
        {"name": "down", "share": 4, "direction": "forward", "frame-size": 1518},
        {
            "name": "up",
            "share": 5,
            "direction": "reverse",
            "destination-port": {"first": 5, "count": 4, "step": 3},
        },
    ]
    for version, hosts in {
        4: ("198.18.0.5", "198.18.1.7", "198.19.0.4"),
        6: ("2001:2::5", "2001:2::17", "2001:2:0:8000::4"),
    }.items()
}
BOTH = pytest.mark.parametrize("version", [4, 6])


def plan_of(version: int, **others: Any) -> AddressPlan:
    sides = V4 if version == 4 else V6
    left, right = RANGES[version]
    document = {
        "left": {**sides["left"], "hosts": left},
        "right": {**sides["right"], "hosts": right},
        "flow": FLOWS[version],
        "source-ports": "1024-2047",
        **others,
    }
    return make_own_plan(document, where="edge.toml", name="edge")


def as_kept(plan: AddressPlan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(plan.to_contract()))
    return found


@BOTH
def test_a_kept_plan_sends_the_same_frames(version: int) -> None:
    plan = plan_of(version)
    kept = kept_plan(as_kept(plan))
    assert kept is not None
    assert kept.streams(84) == plan.streams(84)
    assert kept.flows == plan.flows
    assert [side.dut_neighbors for side in kept.sides] == [side.dut_neighbors for side in plan.sides]
    model = DeviceModel(elements=5, hash_type="type2", rate_fps=100)
    assert predict(kept, model).counts == predict(plan, model).counts
    one = kept_plan(as_kept(plan.one_pair()))
    assert one is not None
    assert one.streams(84) == plan.one_pair().streams(84)


def test_hosts_of_a_list_are_not_kept() -> None:
    sides = {**V4, "right": {**V4["right"], "hosts": ["198.19.0.0/24", "198.19.2.0/24"]}}
    assert kept_plan(as_kept(make_own_plan(sides, where="edge.toml", name="edge"))) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"left": None},
        {"udp_ports": {}},
        {"flows": [{"name": "a"}]},
        {"flows": [{"name": "a", "share": 1, "dscp": "high"}]},
        {"flows": [{"name": "a", "share": 1, "left_host": {"first": "10.0.0.1", "count": 1, "step": 1}}]},
        {"flows": 7},
        {"stateful": True},
        {"common_network": True},
    ],
)
def test_what_is_no_such_document_is_no_plan(changed: dict[str, Any]) -> None:
    assert kept_plan(as_kept(plan_of(4)) | changed) is None


def test_a_plan_with_a_name_is_kept_as_it_is_sent() -> None:
    plan = gateway_v4()
    kept = kept_plan(as_kept(plan))
    assert kept is not None
    assert kept.streams(84) == plan.streams(84)


@BOTH
def test_flows_with_prefixes_are_kept_by_their_prefixes(version: int) -> None:
    flow = {"name": "a", "left": "198.18.1.0/24" if version == 4 else "2001:2::400/120"}
    plan = plan_of(version, flow=[flow, {"name": "b"}])
    kept = kept_plan(as_kept(plan))
    assert kept is not None
    assert kept.flows == plan.flows
    changed = as_kept(plan)
    changed["flows"][0]["left_host"]["list"]["digest"] = "0" * 64
    assert kept_plan(changed) is None
