# SPDX-License-Identifier: Apache-2.0
"""Plan files on the wire: the engine draws from their prefixes, the reference router forwards to them, and a
plan file that repeats a plan of the draft sends its frames."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.plan_frames import ask_for_frames
from evenhand.plan import AddressPlan, HostList, make_own_plan, make_plan, read_plan_file
from evenhand.trial import find_engine
from tests.wire.wire_session import measure, router_beside_tester, setup_beside_tester

pytestmark = pytest.mark.wire
FRAMES = 2000
LEFT = {
    4: {"dut": "10.0.0.1/24", "gateway": "10.0.0.2", "hosts": "198.18.0.0/16"},
    6: {"dut": "2001:2:0:1000::1/64", "gateway": "2001:2:0:1000::2", "hosts": "2001:2::2-2001:2::ffff:2"},
}
RIGHT = {
    4: {"dut": "10.0.1.1/24", "gateway": "10.0.1.2", "prefixes": "table.txt"},
    6: {"dut": "2001:2:0:9000::1/64", "gateway": "2001:2:0:9000::2", "prefixes": "table.txt"},
}
TABLES = {
    4: ["16.0.0.0/24", "16.0.1.0/30", "17.0.0.0/9", "198.19.3.4/32", "198.19.128.0/17"],
    6: ["2400::/32", "2400:1::/64", "2600::/20", "2001:2:0:8000::7/128", "2001:2:0:8001::/112"],
}


def plan_of(version: int, folder: Path, **of_right: Any) -> AddressPlan:
    (folder / "table.txt").write_text("".join(f"{prefix}\n" for prefix in TABLES[version]))
    left = LEFT[version] | ({"step": 65536} if version == 6 else {})
    document = {"left": left, "right": RIGHT[version] | of_right}
    return make_own_plan(document, where="edge.toml", folder=folder, name="edge")


def frames_of(plan: AddressPlan, direction: Any = "forward", count: int = FRAMES) -> list[dict[str, Any]]:
    return ask_for_frames(
        find_engine(None),
        plan,
        size=plan.smallest_frame_size,
        seed=7,
        direction=direction,
        ranges=[(0, count)],
    )


@pytest.mark.parametrize("version", [4, 6])
def test_a_plan_file_is_measured_through_the_reference_router(version: int, tmp_path: Path) -> None:
    plan = plan_of(version, tmp_path)
    with router_beside_tester(plan) as router:
        found = measure(setup_beside_tester(router), plan, plan.smallest_frame_size)
    assert found.verdict == "PASS"
    assert {each.received_frames for each in found.directions.values()} == {200}
    assert [each.foreign_frames for each in found.directions.values()] == [0, 0]


@pytest.mark.parametrize("version", [4, 6])
def test_each_prefix_is_equally_likely_and_no_address_is_outside(version: int, tmp_path: Path) -> None:
    plan = plan_of(version, tmp_path)
    hosts = plan.right.host_range
    assert isinstance(hosts, HostList)
    for direction, end in (("forward", "destination"), ("reverse", "source")):
        addresses = [ipaddress.ip_address(frame[end]) for frame in frames_of(plan, direction)]
        assert all(address in hosts for address in addresses)
        assert plan.right.prefixes is not None
        numbers = [plan.right.prefixes.find(address) for address in addresses]
        # 5 prefixes, 2000 frames: 400 each, with a deviation of 18.
        assert all(abs(numbers.count(number) - FRAMES / 5) < 110 for number in range(5))
        assert len(set(addresses)) > FRAMES / 5


def test_in_steps_frame_k_has_host_k(tmp_path: Path) -> None:
    plan = plan_of(4, tmp_path, mode="increment")
    hosts = plan.right.host_range
    assert isinstance(hosts, HostList)
    found = [frame["destination"] for frame in frames_of(plan, count=300)]
    assert found == [str(hosts.address(number)) for number in range(300)]


@pytest.mark.parametrize("name", ["gateway-v4", "gateway-v6"])
def test_a_plan_file_that_repeats_a_plan_has_the_same_octets(name: str, tmp_path: Path) -> None:
    drafts = make_plan(name)
    lines = []
    for side in drafts.sides:
        assert side.gateway is not None
        hosts = f"{side.host_range.first_address}-{side.host_range.last_address}"
        lines += [f"[{side.name}]", f'dut = "{side.dut[0]}"', f'gateway = "{side.gateway.ip}"']
        lines += [f'hosts = "{hosts}"', f"step = {1 if drafts.ip_version == 4 else 65536}"]
    (tmp_path / "same.toml").write_text("\n".join(lines))
    own = read_plan_file(tmp_path / "same.toml")
    for direction in ("forward", "reverse"):
        assert frames_of(own, direction) == frames_of(drafts, direction)
