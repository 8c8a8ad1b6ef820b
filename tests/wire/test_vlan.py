# SPDX-License-Identifier: Apache-2.0
"""Stations 2 to 7: VLAN tags on ports, in captures, and through the reference router."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import (
    SIDES,
    AddressPlan,
    SideCounts,
    SideName,
    gateway_v4,
    gateway_v6,
    make_plan,
    mix_request,
    mix_versions,
    parse_imix,
)
from evenhand.procedure import choose_frames
from evenhand.reference import ReferenceDut
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession
from tests.errors import raises
from tests.wire.captures import MAGIC, TAG_AT, tag_of, without_time, without_vlans
from tests.wire.wire_session import (
    NOBODY,
    QUIET_FPS,
    Document,
    drop_captures,
    engine,
    measure,
    memif_cable,
    one_worker,
    router_beside_tester,
    run_trial,
    setup_beside_tester,
    thorough,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
BOTH_PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)


def open_tagged(
    session: EngineSession,
    plan: AddressPlan,
    devices: tuple[str, str],
    vlans: tuple[list[int], list[int]],
    **arguments: Any,
) -> None:
    ports: dict[SideName, dict[str, Any]] = {
        side: {"device": device, "dut_mac": mac, **({"vlan": vlan} if vlan else {})}
        for side, device, mac, vlan in zip(SIDES, devices, NOBODY, vlans, strict=True)
    }
    options: dict[str, Any] = {
        "frame_size": plan.smallest_frame_size + 4 * max(map(len, vlans)),
        "seed": 77,
        "session": 0,
        **arguments,
    }
    session.request(
        "open",
        host={"memory_mb": needed_memory_mb(one_worker(), ports)},
        ports=ports,
        workers=one_worker(),
        plan=plan.to_request(),
        **options,
    )


@pytest.mark.parametrize("plan", [gateway_v6(), *thorough(gateway_v4())], ids=lambda p: p.name)
def test_frames_with_other_tags_than_those_of_the_link_are_foreign(plan: AddressPlan, tmp_path: Path) -> None:
    """R2544-40: on a cable both ends have the same tags, or hear nothing of each other."""
    for vlans, is_heard in (
        (([200, 100], [200, 100]), True),
        (([100], [101]), False),
        (([200, 100], [100]), False),
    ):
        with engine() as session:
            folder = tmp_path / "-".join(str(vlan) for side in vlans for vlan in side)
            folder.mkdir()
            open_tagged(session, plan, memif_cable(folder), vlans)
            for direction in valid_trial(session, duration_s=0.1)["directions"].values():
                frames = direction["offered_frames"]
                assert (direction["received_frames"], direction["foreign_frames"]) == (
                    (frames, 0) if is_heard else (0, frames)
                )
                assert direction["wrong_length_frames"] == direction["corrupted_frames"] == 0


@BOTH_PLANS
def test_the_wire_holds_the_tags_that_plan_frames_shows(plan: AddressPlan, tmp_path: Path) -> None:
    """SEED-44, R5180-09: outer 802.1ad, inner 802.1Q, both in the frame size; behind them the frame as it is
    without."""
    capture = tmp_path / "left.pcap"
    size = plan.smallest_frame_size + 8
    shapes: list[tuple[int, dict[str, Any]]] = [(size, {"vlan": [200, 100]}), (size - 8, {})]

    def captured() -> tuple[Document, list[Any]]:
        drop_captures(tmp_path)
        with engine() as session:
            open_tagged(
                session,
                plan,
                (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}"),
                ([200, 100], []),
            )
            document = run_trial(session, trial=9, directions=["forward"], duration_s=0.01)
            session.request("close")
            return document, [
                session.request(
                    "frames",
                    plan=plan.to_contract(),
                    frame_size=frame_size,
                    seed=77,
                    direction="forward",
                    count=QUIET_FPS // 100,
                    trial=9,
                    destination_mac=NOBODY[0],
                    **vlan,
                )["frames"]
                for frame_size, vlan in shapes
            ]

    _, shown = until(lambda found: was_sent_whole(found[0]), captured)
    tags = bytes.fromhex("88a800c881000064")
    tagged, plain = ([bytes.fromhex(frame["octets"]) for frame in frames] for frames in shown)
    assert [len(frame) for frame in tagged] == [size - 4] * len(tagged)
    assert [frame[:12] + frame[20:] for frame in tagged] == plain
    assert [frame[12:20] for frame in tagged] == [tags] * len(tagged)
    at = TAG_AT[plan.ip_version]
    sent = [frame for frame in without_vlans(capture, tags) if frame[at : at + 3] == MAGIC]
    assert [without_time(frame, plan.ip_version)[12:] for frame in sent] == [
        without_time(frame, plan.ip_version)[12:] for frame in plain
    ]


def test_a_mix_of_sizes_and_versions_has_the_tags_of_its_link(tmp_path: Path) -> None:
    """R6985-01, R5180-14, R5180-09: each frame of the capture has both tags, the size of its letter with
    them, and is as it was shown."""
    plan, size = (
        mix_versions(gateway_v4(), gateway_v6(), (90, 10)),
        parse_imix("imix:AAAFG:A=92:F=1280:G=1518"),
    )
    capture, tags, frames = tmp_path / "left.pcap", bytes.fromhex("88a800c881000064"), 500

    def captured() -> tuple[Document, Any]:
        drop_captures(tmp_path)
        with engine() as session:
            devices = (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}")
            open_tagged(session, plan, devices, ([200, 100], []), frame_size=92, **mix_request(plan, size))
            document = run_trial(
                session, trial=9, directions=["forward"], duration_s=0.1, rate_fps=frames * 10
            )
            session.request("close")
            return document, session.request(
                "frames",
                plan=plan.to_contract(),
                frame_size=92,
                seed=77,
                direction="forward",
                count=frames,
                trial=9,
                vlan=[200, 100],
                destination_mac=NOBODY[0],
                **mix_request(plan, size),
            )["frames"]

    _, shown = until(lambda found: was_sent_whole(found[0]), captured)
    preview = [bytes.fromhex(frame["octets"]) for frame in shown]
    assert [len(frame) + 4 for frame in preview] == [size.octets[k % 5] for k in range(frames)]
    assert [frame[12:20] for frame in preview] == [tags] * frames
    version_of = {b"\x08\x00": 4, b"\x86\xdd": 6}
    sent = {}
    for frame in without_vlans(capture, tags):
        version = version_of.get(frame[12:14])
        if version is not None and frame[TAG_AT[version] :].startswith(MAGIC):
            sent[tag_of(frame, version).sequence] = without_time(frame, version)[12:]
    assert sorted(sent) == list(range(frames))
    for k, frame in enumerate(preview):
        plain = frame[:12] + frame[20:]
        assert sent[k] == without_time(plain, version_of[plain[12:14]])[12:], k
    assert sum(frame[20:22] == b"\x86\xdd" for frame in preview) == frames // 10


def test_a_tagged_cable_brings_every_frame_of_a_mix(tmp_path: Path) -> None:
    """R6985-01, R5180-14: counted by size, as sent, and by version, in both directions."""
    plan, size = (
        mix_versions(gateway_v4(), gateway_v6(), (50, 50)),
        parse_imix("imix:AAAFG:A=92:F=1280:G=1518"),
    )
    with engine() as session:
        open_tagged(
            session,
            plan,
            memif_cable(tmp_path),
            ([200, 100], [200, 100]),
            frame_size=92,
            **mix_request(plan, size),
        )
        directions = valid_trial(session, duration_s=0.1)["directions"]
    for direction in directions.values():
        assert (direction["lost_frames"], direction["foreign_frames"], direction["wrong_length_frames"]) == (
            0,
            0,
            0,
        )
        offered = {
            (entry["ip_version"], entry["frame_size"]): entry["offered_frames"]
            for entry in direction["classes"]
        }
        assert offered == {
            (v, s): QUIET_FPS // 10 * n // 10 for v in (4, 6) for s, n in ((92, 3), (1280, 1), (1518, 1))
        }
        assert all(entry["lost_frames"] == 0 for entry in direction["classes"])


def test_a_size_that_tags_leave_no_room_in_is_refused(tmp_path: Path) -> None:
    plan, size = mix_versions(gateway_v4(), gateway_v6(), (50, 50)), parse_imix("imix:AG:A=84:G=1518")
    with engine() as session, raises("engine.bad-frame-size", match="76 octets") as refused:
        open_tagged(
            session, plan, memif_cable(tmp_path), ([200, 100], []), frame_size=84, **mix_request(plan, size)
        )
    assert refused.value.where.startswith("mix.classes[")
    with raises("procedure.frame-size-out-of-range", match="92 to 9216 "):
        choose_frames(plan, size, tag_octets=SideCounts(8, 0))


@pytest.mark.parametrize(
    ("plan", "vlans"),
    [
        (gateway_v4(), {"left": (100,), "right": (200, 101)}),
        *thorough(
            (gateway_v6(), {"left": (200, 100)}), (make_plan("direct-v6", 20), {"left": (7,), "right": (7,)})
        ),
    ],
    ids=("gateway-v4", "gateway-v6", "direct-v6"),
)
def test_the_reference_router_forwards_between_vlans(
    plan: AddressPlan, vlans: dict[SideName, tuple[int, ...]]
) -> None:
    """R5180-09: neighbours, learning frames and test frames have the tags of their link, which may differ; so
    may the sizes."""
    with router_beside_tester(plan, ReferenceDut(vlans=vlans)) as router:
        setup = setup_beside_tester(router)
        # The same for all trials, since each has an engine of its own, and the DUT remembers hosts on the
        # link.
        ports: dict[str, object] = {
            side: port.model_copy(update={"mac": f"02:00:00:00:a0:0{len(side)}"})
            for side, port in setup.testbed.ports.items()
        }
        setup = replace(setup, testbed=setup.testbed.model_copy(update=ports))
        tags = setup.testbed.tag_octets
        assert measure(setup, plan, plan.smallest_frame_size + max(tags)).verdict == "PASS"
        assert measure(setup, plan, 1518 + min(tags)).verdict == "PASS"
        with raises("procedure.frame-size-out-of-range"):
            measure(setup, plan, plan.smallest_frame_size + 1)
        with raises("rig.frame-too-large", match="1518 octets"):
            measure(setup, plan, 1519 + min(tags))
