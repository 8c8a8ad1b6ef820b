# SPDX-License-Identifier: Apache-2.0
"""Testbed: both sides on one port. What must be said alike of it, how CPUs share it, what its line
carries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.base.units import max_theoretical_fps
from evenhand.base.validation.checked_file import UnfitError
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6, line_of, mix_versions
from evenhand.rig import Setup
from evenhand.testbed import Testbed, lay_out_workers, make_testbed
from tests.errors import raises
from tests.plan.translated import translated

G = 1e9
DEVICE = "net_af_packet0,iface=arm0"


def read_bed(**changes: Any) -> Testbed:
    """`right__vlan=20` changes a key of the right side; others are of the file."""
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "one_armed": True,
        "left": {"device": DEVICE, "vlan": 10, "line_rate": "1Gbps"},
        "right": {"device": DEVICE, "vlan": 20, "line_rate": "1Gbps"},
        "tester": {"cpus": [1]},
    }
    for key, value in changes.items():
        side, _, of_side = key.partition("__")
        if of_side:
            document[side][of_side] = value
        else:
            document[key] = value
    return make_testbed(document, where="stick.toml")


def test_both_sides_name_one_port_which_is_locked_once() -> None:
    bed = read_bed(left__dut_mac="02:00:00:00:00:01", right__mac="02:00:00:00:00:02")
    request = bed.open_request(gateway_v4(), frame_size=68, seed=1)
    assert request["ports"]["left"]["device"] == request["ports"]["right"]["device"] == DEVICE
    assert (request["ports"]["left"]["vlan"], request["ports"]["right"]["vlan"]) == ([10], [20])
    with Setup(name="stick", testbed=bed).locked() as descriptors:
        assert len(descriptors) == 1


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"right__device": "net_af_packet1,iface=arm1"}, "'net_af_packet0' and 'net_af_packet1'"),
        ({"right__device": "net_af_packet0,iface=arm1"}, "another device"),
        ({"right__line_rate": "10Gbps"}, "another line_rate"),
        ({"left__receive_ring_frames": 4096}, "another receive_ring_frames"),
        ({"left__transmit_ring_frames": 4096}, "another transmit_ring_frames"),
        ({"left__link_timeout": "5s"}, "another link_timeout"),
    ],
)
def test_what_is_said_otherwise_of_one_port_is_refused(changes: dict[str, Any], what: str) -> None:
    with raises("rig.one-armed", match=what):
        read_bed(**changes)


def engines(*, b_right: str = "0000:02:00.0", **b: Any) -> Testbed:
    """Two of this machine, each with one port; `b` changes keys of the second one."""

    def sides(left: str, right: str) -> dict[str, Any]:
        return {
            "left": {"device": left, "vlan": 10, "line_rate": "1Gbps"},
            "right": {"device": right, "vlan": 20, "line_rate": "1Gbps"},
        }

    first = {"name": "a", "cpus": [1, 2, 3], **sides("0000:01:00.0", "0000:01:00.0")}
    second = {"name": "b", "cpus": [4, 5, 6], **sides("0000:02:00.0", b_right), **b}
    return make_testbed(
        {"isolated_test_environment": True, "one_armed": True, "engine": [first, second]}, where="stick.toml"
    )


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: plan.name)
def test_each_of_several_engines_has_one_port(plan: AddressPlan) -> None:
    """Two of three CPUs send for both sides: as many streams as the engine is said to have."""
    bed = engines()
    assert [engine.streams(one_armed=True) for engine in bed.engine] == [2, 2]
    for request, cpu in zip(bed.open_requests(plan, frame_size=88, seed=1), (3, 6), strict=True):
        ports = request["ports"]
        assert ports["left"]["device"] == ports["right"]["device"]
        assert [each["cpu"] for each in request["workers"] if "receivers" in each] == [cpu]
    with Setup(name="stick", testbed=bed).locked() as descriptors:
        assert len(descriptors) == 2
    assert bed.highest_load_fps(bed.streams(plan, 88)) == max_theoretical_fps(2 * G, 88 + 20 + 88)


@pytest.mark.parametrize(
    ("changes", "code", "what"),
    [
        ({"b_right": "0000:02:00.1"}, "rig.one-armed", "engine b: .*two devices"),
        ({"left": {"device": "0000:02:00.0", "vlan": 10}}, "rig.one-armed", "engine b: .*another line_rate"),
        (
            {side: {"device": "0000:01:00.0", "vlan": n} for side, n in (("left", 10), ("right", 20))},
            "rig.ports-share-a-resource",
            "engine a and engine b both use",
        ),
        ({"cpus": [4, 5, 6, 7]}, "rig.engines-differ", "engine b has 3 streams"),
    ],
)
def test_what_does_not_fit_one_of_several_engines_is_refused_by_its_name(
    changes: dict[str, Any], code: str, what: str
) -> None:
    with raises(code, match=what):
        engines(**changes)


def test_one_port_for_both_sides_by_mistake_is_refused_with_the_key_that_wants_it() -> None:
    with raises("rig.same-device-twice", match="one_armed = true"):
        read_bed(one_armed=False)


@given(st.integers(min_value=1, max_value=9), st.integers(min_value=1, max_value=4))
def test_each_cpu_sends_or_receives_for_both_sides(cpus: int, queues: int) -> None:
    """The queues of one port have the frames of both sides."""
    try:
        lay_out_workers(range(cpus), queues)
    except UnfitError:
        with pytest.raises(UnfitError):
            lay_out_workers(range(cpus), queues, one_armed=True)
        return
    workers = lay_out_workers(range(cpus), queues, one_armed=True)
    assert [worker["cpu"] for worker in workers] == list(range(cpus))
    for kind, number in (("senders", "stream"), ("receivers", "queue")):
        left, right = (
            [[each[number] for each in worker.get(kind, []) if each["side"] == side] for worker in workers]
            for side in ("left", "right")
        )
        assert left == right
        numbers = [each for of_worker in left for each in of_worker]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) == queues if kind == "receivers" else numbers
    assert all(len(worker) == 2 or cpus == 1 for worker in workers)


def test_the_line_carries_both_directions_each_way() -> None:
    plan = gateway_v4()
    bed = read_bed()
    of_two = max_theoretical_fps(G, 68 + 20 + 68)
    assert bed.highest_load_fps(bed.streams(plan, 68)) == of_two
    assert bed.highest_load_fps(bed.streams(plan, 68, ["forward"])) == max_theoretical_fps(G, 68)
    assert line_of(bed.streams(plan, 68), bed.line_rates).most_fps == of_two
    unknown = read_bed(left__line_rate="1Gbps", right__line_rate="1Gbps").streams(plan, 68)
    assert line_of(unknown, {"left": None, "right": None}).most_fps is None


def test_the_larger_of_what_is_sent_and_what_arrives_fills_the_line() -> None:
    """A translator makes one direction 20 octets larger, and the other as much smaller; two tags beside one
    make the same difference."""
    bed = read_bed(left__vlan=[200, 10])
    size = 100
    found = bed.highest_load_fps(bed.streams(translated(10), size))
    ends = [stream.ends for stream in bed.streams(translated(10), size)]
    sums = [sum(end[k].mean_octets for end in ends) for k in (0, 1)]
    assert found == max_theoretical_fps(G, max(sums) + 20)
    mixed = bed.streams(mix_versions(gateway_v4(), gateway_v6(), (50, 50)), size)
    assert bed.highest_load_fps(mixed) == max_theoretical_fps(G, 2 * size + 20)
