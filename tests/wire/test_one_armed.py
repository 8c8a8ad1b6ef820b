# SPDX-License-Identifier: Apache-2.0
"""A router on a stick: both sides on one port. The kernel's own router, with both networks on one link; a
router between VLANs that is a loop of Python; and what the one port changes of a trial."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.plan import AddressPlan, SideName, gateway_v4, gateway_v6, make_plan
from evenhand.reference import ReferenceDut
from evenhand.testbed import lay_out_workers
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.wire.kernel_sticks import VNI_OF, kernel_on_a_stick
from tests.wire.lying_dut import LEFT, Sent, is_test_frame, lying_dut, routed, sequence_of
from tests.wire.tunnels import tunnel
from tests.wire.wire_session import (
    AMISS,
    FAST_WAITS,
    NOBODY,
    Document,
    assert_all_came,
    cpus,
    engine,
    measure,
    open_ports,
    proved,
    router_beside_tester,
    run_trial,
    setup_beside_tester,
    thorough,
    valid_trial,
)

pytestmark = pytest.mark.wire
in_namespaces = pytest.mark.root
PLANS = (gateway_v4(50), gateway_v6(50))
DEVICES = {
    "net_af_packet": "net_af_packet0,iface=arm",
    "net_af_xdp": "net_af_xdp0,iface=arm,start_queue=0,queue_count=1,force_copy=1,busy_budget=0",
}
TESTER_MAC = b"\x02\x00\x00\x00\xa0\x01"
"""MAC of the left tap."""


def open_one_armed(
    session: EngineSession,
    plan: AddressPlan,
    device: str,
    *,
    vlans: tuple[list[int], list[int]] = ([], []),
    dut_macs: tuple[str, str] | None = NOBODY,
    frame_size: int | None = None,
    tunnels: dict[SideName, Document] | None = None,
    **of_ports: Any,
) -> Document:
    """Both sides on this device."""
    sides: tuple[SideName, SideName] = ("left", "right")
    ports = {
        side: {
            "device": device,
            **({"dut_mac": mac} if mac is not None else {}),
            **({"vlan": vlan} if vlan else {}),
            **({"tunnel": tunnels[side]} if tunnels else {}),
            **of_ports,
        }
        for side, mac, vlan in zip(sides, dut_macs or (None, None), vlans, strict=True)
    }
    return session.request(
        "open",
        host={"memory_mb": 1024},
        ports=ports,
        workers=lay_out_workers([cpus()[-1]], one_armed=True),
        plan=plan.to_request(),
        frame_size=frame_size or plan.smallest_frame_size + 4 * max(map(len, vlans)),
        seed=5,
        session=0,
    )


@in_namespaces
@pytest.mark.parametrize(
    ("driver", "plan"),
    [
        ("net_af_packet", PLANS[0]),
        ("net_af_packet", PLANS[1]),
        ("net_af_xdp", PLANS[1]),
        *proved(("net_af_xdp", PLANS[0])),
    ],
)
def test_the_kernel_routes_between_two_networks_of_one_link(driver: str, plan: AddressPlan) -> None:
    """SEED-18, SEED-19, R2544-40: the DUT finds both gateways on one link, and each side receives what the
    other one sent."""
    with kernel_on_a_stick(plan) as namespace:
        command: list[Any] = ["ip", "netns", "exec", namespace, find_engine()]
        with engine(command) as session:
            open_one_armed(session, plan, DEVICES[driver], dut_macs=None)
            resolved = session.request("resolve")
            assert resolved["left"]["dut_mac"] == resolved["right"]["dut_mac"]
            document = valid_trial(session, rate_fps=2_000, duration_s=0.5)
    assert document["verdict"] == "PASS", document["reasons"]
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] == 1_000
        # What the kernel says of itself, such as its multicast groups, is foreign.
        assert not any(direction[f"{kind}_frames"] for kind in AMISS if kind != "foreign")
    assert "hop_limit" not in {note["code"] for note in document["notes"]}


@in_namespaces
@pytest.mark.parametrize(("plan", "outer"), [(PLANS[0], 6), (PLANS[1], 4)], ids=("v4-in-v6", "v6-in-v4"))
def test_the_kernel_routes_between_two_tunnels_of_one_link(plan: AddressPlan, outer: int) -> None:
    """RFC 7348: the tester asks for the one end once, for each gateway in its tunnel, and the VNI says whose
    a frame is."""
    with kernel_on_a_stick(plan, outer) as namespace:
        command: list[Any] = ["ip", "netns", "exec", namespace, find_engine()]
        with engine(command) as session:
            tunnels = {side: {**tunnel("vxlan", outer), "vni": vni} for side, vni in VNI_OF.items()}
            open_one_armed(session, plan, DEVICES["net_af_packet"], dut_macs=None, tunnels=tunnels)
            session.request("resolve", timeout_s=10)
            document = valid_trial(session, rate_fps=1_000, duration_s=0.5)
    assert document["verdict"] == "PASS", document["reasons"]
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] == 500
        assert not any(direction[f"{kind}_frames"] for kind in AMISS if kind != "foreign")


def vlan_router(plan: AddressPlan, to: dict[int, int], *, drops: int = 0) -> Any:
    """A behaviour: forwards test frames from one VLAN to another of the same port; drops the first ones of
    VLAN 10, in each trial."""

    def behaviour(side: int, frame: bytes) -> Sent:
        assert side == LEFT
        vlan = int.from_bytes(frame[14:16], "big") & 0xFFF
        plain = frame[:12] + frame[16:]
        if frame[12:14] != b"\x81\x00" or vlan not in to or not is_test_frame(plan, plain):
            return []
        if vlan == 10 and sequence_of(plan, plain) < drops:
            return []
        out = routed(plan, plain, TESTER_MAC)
        return [(LEFT, out[:12] + b"\x81\x00" + to[vlan].to_bytes(2, "big") + out[12:])]

    return behaviour


def through_vlans(plan: AddressPlan, to: dict[int, int], **arguments: Any) -> Document:
    with lying_dut(vlan_router(plan, to, **arguments), "stick") as dut, engine(dut.engine_command) as session:
        open_one_armed(session, plan, dut.left_device, vlans=([10], [20]))
        # A loop of Python may be seconds behind on a busy machine.
        return valid_trial(session, rate_fps=200, duration_s=0.5, waits={**FAST_WAITS, "residual_s": 2})


@in_namespaces
@pytest.mark.two_cpus
@pytest.mark.parametrize("plan", [PLANS[1], *thorough(PLANS[0])], ids=lambda plan: plan.name)
def test_a_router_between_vlans_brings_each_side_its_frames(plan: AddressPlan) -> None:
    """R5180-09: both directions on one port, counted apart."""
    document = through_vlans(plan, {10: 20, 20: 10})
    assert document["verdict"] == "PASS", document["reasons"]
    for direction in document["directions"].values():
        assert_all_came(direction)
    ports = document["ports"]
    assert ports["left"]["after"] == ports["right"]["after"]  # which are those of both directions
    taken = ports["left"]["after"]["transmitted_frames"] - ports["left"]["before"]["transmitted_frames"]
    assert taken >= sum(direction["offered_frames"] for direction in document["directions"].values())


@in_namespaces
@pytest.mark.two_cpus
def test_what_one_direction_loses_is_charged_to_it_alone() -> None:
    document = through_vlans(PLANS[0], {10: 20, 20: 10}, drops=7)
    assert document["verdict"] == "FAIL"
    directions = document["directions"]
    assert (directions["forward"]["lost_frames"], directions["reverse"]["lost_frames"]) == (7, 0)


@in_namespaces
@pytest.mark.two_cpus
def test_frames_that_come_back_in_their_own_vlan_are_received_by_nobody() -> None:
    """R2544-40: a switch that floods, or a DUT that does not route, brings no frame to the other side."""
    document = through_vlans(PLANS[1], {10: 10, 20: 10})
    forward, reverse = document["directions"]["forward"], document["directions"]["reverse"]
    assert forward["lost_frames"] == forward["offered_frames"]
    assert forward["foreign_frames"] == 0
    assert reverse["received_frames"] == reverse["offered_frames"]
    assert reverse["foreign_frames"] == forward["offered_frames"]


def test_what_is_said_otherwise_of_one_device_is_refused() -> None:
    """Bad requests of a client of the engine itself."""
    with engine() as session:
        with raises("engine.bad-request", match="both sides are net_null0"):
            open_ports(session, PLANS[0], "net_null0,no-rx=1", "net_null0")
        apart = lay_out_workers(cpus()[:2])
        if len(apart) == 2:
            with raises("engine.bad-request", match="other queues of the left side"):
                open_ports(session, PLANS[0], "net_null0,no-rx=1", "net_null0,no-rx=1", workers=apart)


def test_both_directions_together_must_fit_the_line() -> None:
    """R2544-16: 100 Mbit/s carry 74,404 frames of 64 octets each way, and one direction alone all of them."""
    with engine() as session:
        open_one_armed(session, PLANS[0], "net_null0,no-rx=1", line_rate_bps=1e8)
        with raises("engine.bad-rate", match="both directions together") as refused:
            run_trial(session, rate_fps=75_000, duration_s=0.1)
        assert "74404 fps" in refused.value.next_step
        for trial, rate_fps, directions in ((1, 74_404, ["forward", "reverse"]), (2, 148_809, ["reverse"])):
            document = run_trial(
                session, trial=trial, rate_fps=rate_fps, duration_s=0.01, directions=directions
            )
            assert list(document["directions"]) == directions
        with raises("engine.bad-rate", match="the line carries"):
            run_trial(session, trial=3, rate_fps=148_810, duration_s=0.01, directions=["reverse"])


@pytest.mark.parametrize(
    ("plan", "vlans"),
    [
        (gateway_v4(), {"left": (10,), "right": (20,)}),
        (gateway_v6(), {"left": (200, 10), "right": (200, 20)}),
        *thorough((make_plan("direct-v6", 20), {"left": (6,), "right": (7,)})),
    ],
    ids=("gateway-v4", "gateway-v6", "direct-v6"),
)
def test_the_reference_router_on_a_stick(plan: AddressPlan, vlans: dict[SideName, tuple[int, ...]]) -> None:
    """R5180-09: one memif, neighbours and test frames of both VLANs on it."""
    with router_beside_tester(plan, ReferenceDut(vlans=vlans, one_armed=True)) as router:
        setup = setup_beside_tester(router)
        assert setup.testbed.one_armed
        tags = setup.testbed.tag_octets
        result = measure(setup, plan, plan.smallest_frame_size + max(tags))
        assert result.verdict == "PASS", result.reasons
        counted = router.counters()
    assert min(counted[side]["received_frames"] for side in ("left", "right")) > 0
