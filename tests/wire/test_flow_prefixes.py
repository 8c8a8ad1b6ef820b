# SPDX-License-Identifier: Apache-2.0
"""Hosts of a flow in prefixes of its own, read from a capture by an own reader: all of them, no others, each
prefix equally often; and the same frames over a cable, checked by the receiver. Sides are a range, or
prefixes."""

from __future__ import annotations

import ipaddress
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan
from tests.plan.test_flows import V4, V6
from tests.wire.captures import tag_of
from tests.wire.tagged_flows import captured_flows, is_of_trial, trial_over_cable, without_tags
from tests.wire.test_flow_patterns import is_usual
from tests.wire.test_flows import checksums_are_right

pytestmark = pytest.mark.wire
SIZE, FRAMES = 108, 3000
RANGES = {4: ["198.18.7.16/28", "198.18.9.0/29"], 6: ["2001:2::7:0:10/124", "2001:2::7:0:20/125"]}
LISTED = {
    4: (["198.19.0.0/20", "198.19.64.0/18"], ["198.19.2.0/28", "198.19.80.0/21"]),
    6: (["2001:2:0:a000::/52", "2001:2:0:b000::/56"], ["2001:2:0:a500::/56", "2001:2:0:b0ff::/120"]),
}
BOTH = pytest.mark.parametrize("version", [4, 6])


def plan_of(version: int, *, is_listed: bool) -> AddressPlan:
    """Two of three frames are of the flow that has prefixes: on the right side if that has some itself."""
    sides: dict[str, Any] = dict(V4 if version == 4 else V6)
    flow: dict[str, Any] = {"name": "voice", "share": 2}
    if is_listed:
        hosts, own = LISTED[version]
        sides["right"] = {**sides["right"], "hosts": hosts}
        flow["right"] = own
    else:
        sides["left"] = {**sides["left"], "hosts": "198.18.0.0/16" if version == 4 else "2001:2::7:0:0/112"}
        flow["left"] = RANGES[version]
    return make_own_plan(
        {**sides, "flow": [flow, {"name": "rest", "share": 1}]}, where="edge.toml", name="edge"
    )


@BOTH
@pytest.mark.parametrize("is_listed", [False, True])
def test_frames_have_the_hosts_of_the_flows_prefixes(version: int, is_listed: bool, tmp_path: Path) -> None:
    plan = plan_of(version, is_listed=is_listed)
    octets_of = 4 if version == 4 else 16
    at = (26 if version == 4 else 22) + (octets_of if is_listed else 0)
    own = [ipaddress.ip_network(text) for text in (LISTED[version][1] if is_listed else RANGES[version])]
    by_prefix: Counter[int] = Counter()
    seen, others = set(), set()
    frames = captured_flows(plan, tmp_path, frame_size=SIZE, frames=FRAMES, rate_fps=20_000)
    for octets in frames:
        frame = without_tags(octets)
        if not is_of_trial(frame, version):
            continue
        assert checksums_are_right(frame)
        address = ipaddress.ip_address(frame[at : at + octets_of])
        if tag_of(frame, version).sequence % 3 == 1:
            others.add(address)
            continue
        (which,) = (number for number, network in enumerate(own) if address in network)
        by_prefix[which] += 1
        seen.add(address)
    assert all(is_usual(count, FRAMES * 2 / 3 / len(own)) for count in by_prefix.values())
    assert len(by_prefix) == len(own)
    assert len(seen) == 24 or is_listed, "every host"
    assert len(others) > 900, "all hosts of the side"
    assert sum(address in network for network in own for address in others) < 200


@BOTH
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_cable_brings_them_as_they_were_sent(version: int, is_listed: bool, tmp_path: Path) -> None:
    document = trial_over_cable(plan_of(version, is_listed=is_listed), tmp_path, frame_size=SIZE)
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] > 0
        assert direction["wrong_address_frames"] == 0
