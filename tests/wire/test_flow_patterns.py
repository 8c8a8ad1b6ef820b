# SPDX-License-Identifier: Apache-2.0
"""Fields that vary within a flow, read from a capture by an own reader: lists and ranges, in turn, drawn, and
in lock-step; and the same frames over a cable, and as `plan frames` shows them."""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan, mix_request
from tests.plan.test_flows import V4, V6
from tests.wire.captures import tag_of
from tests.wire.tagged_flows import (
    INNER,
    OUTER,
    TAGGED,
    captured_flows,
    is_of_trial,
    trial_over_cable,
    without_tags,
)
from tests.wire.test_flows import BOTH, checksums_are_right, dscp_of, ecn_of, ports_of
from tests.wire.wire_session import NOBODY, engine

pytestmark = pytest.mark.wire
SIZE = 108
FRAMES = 3000
CLASSES = [46, 34, 0]
PORTS = [5060, 4000, 80]
PRIORITIES = range(8)
STEPPED = range(1000, 2000, 10)


def flows_of(version: int) -> list[dict[str, Any]]:
    left, right = ("198.18.0.", "198.19.0.") if version == 4 else ("2001:2::", "2001:2:0:8000::")
    calls = {
        "name": "calls",
        "share": 2,
        "dscp": CLASSES,
        "ecn": "CE",
        "destination-port": PORTS,
        "lock-step": ["dscp", "destination-port"],
        "source-port": {"first": 1000, "last": 1990, "step": 10, "mode": "increment"},
        "vlan-priority": "0-7",
        "left": {"first": f"{left}10", "count": 7, "mode": "decrement"},
        "right": [f"{right}5", f"{right}9"],
    }
    labels = {"flow-label": "0-0xFFFFF"} if version == 6 else {}
    return [calls, {"name": "rest", "share": 1, "source-port": {"first": 7, "count": 4}, **labels}]


def plan_of(version: int) -> AddressPlan:
    sides = V4 if version == 4 else V6
    return make_own_plan({**sides, "flow": flows_of(version)}, where="edge.toml", name="edge")


@dataclass(frozen=True)
class Seen:
    """A captured frame."""

    number: int
    source: str
    destination: str
    ports: tuple[int, int]
    dscp: int
    ecn: int
    label: int
    priorities: tuple[int, int]

    @property
    def is_call(self) -> bool:
        return self.number % 3 != FIRST_OF_REST


FIRST_OF_REST = 1
"""Shares of 2 and 1 are spread as call, rest, call."""


def captured(version: int, folder: Path) -> list[Seen]:
    found = []
    addresses, octets_of = (26 if version == 4 else 22), (4 if version == 4 else 16)
    for octets in captured_flows(plan_of(version), folder, frame_size=SIZE, frames=FRAMES, rate_fps=20_000):
        frame = without_tags(octets)
        if not is_of_trial(frame, version):
            continue
        assert checksums_are_right(frame)
        source, destination = (
            str(ipaddress.ip_address(frame[begin : begin + octets_of]))
            for begin in (addresses, addresses + octets_of)
        )
        found.append(
            Seen(
                number=tag_of(frame, version).sequence,
                source=source,
                destination=destination,
                ports=ports_of(frame),
                dscp=dscp_of(frame),
                ecn=ecn_of(frame),
                label=int.from_bytes(frame[14:18]) & 0xFFFFF if version == 6 else 0,
                priorities=(octets[14] >> 5, octets[18] >> 5),
            )
        )
    return found


def is_usual(count: int, expected: float) -> bool:
    """Within six standard deviations of a binomial count."""
    return (count - expected) ** 2 < 36 * expected


@BOTH
def test_a_capture_has_every_pattern_of_each_flow(version: int, tmp_path: Path) -> None:
    frames = captured(version, tmp_path)
    assert [frame.number for frame in frames] == list(range(FRAMES))
    calls = [frame for frame in frames if frame.is_call]
    rest = [frame for frame in frames if not frame.is_call]
    left, right = ("198.18.0.", "198.19.0.") if version == 4 else ("2001:2::", "2001:2:0:8000::")

    assert [frame.ports[0] for frame in calls] == [STEPPED[n % 100] for n in range(len(calls))], "in turn"
    hosts = [ipaddress.ip_address(f"{left}10") + n for n in reversed(range(7))]
    assert [frame.source for frame in calls] == [str(hosts[n % 7]) for n in range(len(calls))], "backwards"

    together = Counter((frame.dscp, frame.ports[1]) for frame in calls)
    assert together.keys() == set(zip(CLASSES, PORTS, strict=True)), "in lock-step"
    apart = Counter((frame.dscp, frame.priorities[0], frame.destination) for frame in calls)
    assert len(apart) == 3 * 8 * 2, "independent"
    assert {frame.destination for frame in calls} == {f"{right}5", f"{right}9"}
    assert all(frame.priorities[0] == frame.priorities[1] for frame in calls)
    for counts in (together, Counter(frame.priorities[0] for frame in calls), apart):
        assert all(is_usual(count, len(calls) / len(counts)) for count in counts.values()), "equally likely"

    assert all((frame.dscp, frame.ecn, *frame.priorities) == (0, 0, 0, 0) for frame in rest)
    assert {frame.ecn for frame in calls} == {3}
    ports = Counter(frame.ports[0] for frame in rest)
    assert ports.keys() == {7, 8, 9, 10}
    assert all(is_usual(count, len(rest) / 4) for count in ports.values())
    assert len({frame.ports[1] for frame in rest}) > 900, "those of the plan"
    if version == 6:
        assert all(frame.label == 0 for frame in calls)
        assert len({frame.label for frame in rest}) > 990
        assert max(frame.label for frame in rest) > 0xF0000


@BOTH
def test_a_cable_brings_each_frame_as_it_was_sent(version: int, tmp_path: Path) -> None:
    """Nothing is remarked, foreign or altered, in either direction, with and without VLAN tags."""
    plan = plan_of(version)
    for vlans in (TAGGED, ([], [])):
        folder = tmp_path / str(len(vlans[0]))
        folder.mkdir()
        document = trial_over_cable(plan, folder, frame_size=SIZE, vlans=vlans)
        for direction in document["directions"].values():
            assert direction["received_frames"] == direction["offered_frames"] > 0
            assert direction["remarked_frames"] == 0


@BOTH
def test_the_preview_shows_what_is_sent(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    frames = captured(version, tmp_path)[:200]
    with engine() as session:
        shown = session.request(
            "frames",
            plan=plan.to_request(),
            frame_size=SIZE,
            seed=77,
            direction="forward",
            count=len(frames),
            source_mac="02:00:00:00:00:01",
            destination_mac=NOBODY[0],
            vlan=[OUTER, INNER],
            **mix_request(plan, SIZE),
        )["frames"]
    for frame, preview in zip(frames, shown, strict=True):
        assert (preview["source"], preview["destination"]) == (frame.source, frame.destination)
        assert (preview["source_port"], preview["destination_port"]) == frame.ports
        octets = bytes.fromhex(preview["octets"])
        assert (octets[14] >> 5, octets[18] >> 5) == frame.priorities
        assert dscp_of(without_tags(octets)) == frame.dscp
