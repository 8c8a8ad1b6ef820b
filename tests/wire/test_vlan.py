# SPDX-License-Identifier: Apache-2.0
"""Stations 2 to 7: VLAN tags on ports, in captures, and through the reference router."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from captures import MAGIC, TAG_AT, without_time, without_vlans
from wire_session import NOBODY, QUIET_FPS, cpus, engine, measure, memif_cable, one_worker, run_trial, valid_trial

from evenhand.errors import RequestError
from evenhand.plan import AddressPlan, SideName, gateway_v4, gateway_v6, make_plan
from evenhand.procedure.setup import make_reference_setup
from evenhand.reference import ReferenceDut, reference_router
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession

pytestmark = [pytest.mark.wire, pytest.mark.skipif(len(cpus()) < 2, reason="needs two CPUs")]
BOTH_PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)


def open_tagged(
    session: EngineSession, plan: AddressPlan, devices: tuple[str, str], vlans: tuple[list[int], list[int]], **arguments: Any
) -> None:
    ports: dict[SideName, dict[str, Any]] = {
        side: {"device": device, "dut_mac": mac, **({"vlan": vlan} if vlan else {})}
        for side, device, mac, vlan in zip(("left", "right"), devices, NOBODY, vlans, strict=True)
    }
    session.request(
        "open", host={"memory_mb": needed_memory_mb(one_worker(), ports)}, ports=ports, workers=one_worker(), plan=plan.to_contract(),
        **{"frame_size": plan.smallest_frame_size + 4 * max(map(len, vlans)), "seed": 77, "session": 0, **arguments},
    )  # fmt: skip


@BOTH_PLANS
def test_frames_with_other_tags_than_those_of_the_link_are_foreign(plan: AddressPlan, tmp_path: Path) -> None:
    """R2544-40: on a cable both ends have the same tags, or hear nothing of each other."""
    for vlans, is_heard in ((([200, 100], [200, 100]), True), (([100], [101]), False), (([200, 100], [100]), False)):
        with engine() as session:
            folder = tmp_path / "-".join(str(vlan) for side in vlans for vlan in side)
            folder.mkdir()
            open_tagged(session, plan, memif_cable(folder), vlans)
            for direction in valid_trial(session, duration_s=0.1)["directions"].values():
                frames = direction["offered_frames"]
                assert (direction["received_frames"], direction["foreign_frames"]) == ((frames, 0) if is_heard else (0, frames))
                assert direction["wrong_length_frames"] == direction["corrupted_frames"] == 0


@BOTH_PLANS
def test_the_wire_holds_the_tags_that_plan_frames_shows(plan: AddressPlan, tmp_path: Path) -> None:
    """SEED-44, R5180-09: outer 802.1ad, inner 802.1Q, both in the frame size; behind them the frame as it is without."""
    capture = tmp_path / "left.pcap"
    size = plan.smallest_frame_size + 8
    with engine() as session:
        open_tagged(session, plan, (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}"), ([200, 100], []))
        run_trial(session, trial=9, directions=["forward"], duration_s=0.01)
        session.request("close")
        shown = [
            session.request(
                "frames", plan=plan.to_contract(), frame_size=frame_size, seed=77, direction="forward", count=QUIET_FPS // 100, trial=9,
                destination_mac=NOBODY[0], **vlan,
            )["frames"]
            for frame_size, vlan in ((size, {"vlan": [200, 100]}), (size - 8, {}))
        ]  # fmt: skip
    tags = bytes.fromhex("88a800c881000064")
    tagged, plain = ([bytes.fromhex(frame["octets"]) for frame in frames] for frames in shown)
    assert [len(frame) for frame in tagged] == [size - 4] * len(tagged)
    assert [frame[:12] + frame[20:] for frame in tagged] == plain
    assert [frame[12:20] for frame in tagged] == [tags] * len(tagged)
    at = TAG_AT[plan.ip_version]
    sent = [frame for frame in without_vlans(capture, tags) if frame[at : at + 3] == MAGIC]
    assert [without_time(frame, plan.ip_version)[12:] for frame in sent] == [without_time(frame, plan.ip_version)[12:] for frame in plain]


@pytest.mark.parametrize(
    ("plan", "vlans"),
    [
        (gateway_v4(), {"left": (100,), "right": (200, 101)}),
        (gateway_v6(), {"left": (200, 100)}),
        (make_plan("direct-v6", 20), {"left": (7,), "right": (7,)}),
    ],
    ids=("gateway-v4", "gateway-v6", "direct-v6"),
)
def test_the_reference_router_forwards_between_vlans(plan: AddressPlan, vlans: dict[SideName, tuple[int, ...]]) -> None:
    """R5180-09: neighbours, learning frames and test frames have the tags of their link, which may differ; so may the sizes."""
    with reference_router(plan, ReferenceDut(vlans=vlans)) as router:
        setup = make_reference_setup(router)
        # The same for all trials, since each has an engine of its own, and the DUT remembers hosts on the link.
        ports = {side: port.model_copy(update={"mac": f"02:00:00:00:a0:0{len(side)}"}) for side, port in setup.testbed.ports.items()}
        setup = replace(setup, testbed=setup.testbed.model_copy(update=ports))
        tags = [port.tag_octets for port in setup.testbed.ports.values()]
        assert measure(setup, plan, plan.smallest_frame_size + max(tags)).verdict == "PASS"
        assert measure(setup, plan, 1518 + min(tags)).verdict == "PASS"
        with pytest.raises(RequestError, match="octets with FCS"):
            measure(setup, plan, plan.smallest_frame_size + 1)
        with pytest.raises(RequestError, match="takes frames of 1518 octets"):
            measure(setup, plan, 1519 + min(tags))
