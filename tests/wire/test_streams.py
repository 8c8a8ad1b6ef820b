# SPDX-License-Identifier: Apache-2.0
"""Stations 3 to 6: a direction over several cores and queues, on the wire (SEED-44, R2544-06, R2544-07,
D3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenhand.plan import AddressPlan, SideName, gateway_v4, gateway_v6
from evenhand.testbed import needed_memory_mb
from evenhand.trial import TrialResult, find_engine
from tests.wire.captures import Tag, sent_frames, tag_of, without_time
from tests.wire.veth_cable import veth_cable
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    NOBODY,
    Document,
    assert_all_came,
    cpus,
    drop_captures,
    engine,
    memif_cable,
    one_worker,
    open_ports,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
SLOT_FPS = 5_000
"""A slot of 200 us: a core that runs at all hits some of them."""


def pcap_device(folder: Path, side: str, queues: int) -> tuple[str, list[Path]]:
    """A port that writes what each of its transmit queues is given, and receives nothing."""
    captures = [folder / f"{side}-{queue}.pcap" for queue in range(queues)]
    return ",".join([f"net_pcap_{side}", *(f"tx_pcap={capture}" for capture in captures)]), captures


def two_workers(*, receive_queues: int) -> list[Document]:
    """Two cores, each with a stream of either direction. With two receive queues each core reads those that
    the other one fills."""
    first, second = cpus()[:2]
    workers: list[Document] = [
        {
            "cpu": cpu,
            "senders": [{"side": side, "stream": stream} for side in ("left", "right")],
            "receivers": [],
        }
        for stream, cpu in enumerate((first, second))
    ]
    for queue in range(receive_queues):
        workers[1 - queue]["receivers"] = [{"side": side, "queue": queue} for side in ("left", "right")]
    return workers


def streams_on_one_worker(streams: int) -> list[Document]:
    (worker,) = one_worker()
    worker["senders"] = [
        {"side": side, "stream": stream} for side in ("left", "right") for stream in range(streams)
    ]
    return [worker]


@PLANS
@pytest.mark.parametrize(
    "streams",
    [
        pytest.param("two cores", marks=pytest.mark.two_cpus),
        *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3)),
        7,
    ],
)
def test_the_streams_of_a_direction_send_its_frames_each_once(
    plan: AddressPlan, streams: int | str, tmp_path: Path
) -> None:
    """SEED-44, D3: the union of all captures is the preview; 1001 frames divide by none of these numbers but
    7."""
    workers = two_workers(receive_queues=1) if isinstance(streams, str) else streams_on_one_worker(streams)
    n = sum(sender["side"] == "left" for worker in workers for sender in worker["senders"])
    devices = {side: pcap_device(tmp_path, side, n) for side in ("left", "right")}

    def captured() -> tuple[Document, list[list[Document]]]:
        drop_captures(tmp_path)
        with engine() as session:
            opened = open_ports(
                session, plan, devices["left"][0], devices["right"][0], workers=workers, seed=44
            )
            document = run_trial(session, trial=3, rate_fps=10_010, duration_s=0.1)
            session.request("close")
            return document, [
                session.request(
                    "frames",
                    plan=plan.to_contract(),
                    frame_size=plan.smallest_frame_size,
                    seed=44,
                    direction=direction,
                    count=1001,
                    trial=3,
                    streams=n,
                    source_mac=opened[side]["mac"],
                    destination_mac=dut_mac,
                )["frames"]
                for direction, side, dut_mac in zip(
                    ("forward", "reverse"), ("left", "right"), NOBODY, strict=True
                )
            ]

    document, previews = until(lambda found: was_sent_whole(found[0]), captured)
    version = plan.ip_version
    for side, direction, preview in zip(("left", "right"), ("forward", "reverse"), previews, strict=True):
        assert document["directions"][direction]["offered_frames"] == 1001
        for stream, capture in enumerate(devices[side][1]):
            sent = [without_time(frame, version) for frame in sent_frames(capture, version)]
            shown = [
                without_time(bytes.fromhex(frame["octets"]), version)
                for frame in preview
                if frame["stream"] == stream
            ]
            assert sent == shown
            assert len(sent) in (1001 // n, 1001 // n + 1)


@pytest.mark.two_cpus
def test_two_cores_send_in_their_slots_of_one_schedule(tmp_path: Path) -> None:
    """SEED-44: frame k of a direction has the slot at k periods, whichever core sends it.

    A core that the machine took away sends late, so what is compared is each core's punctual frames, in each
    quarter of the trial: the earliest ones of both cores, counted from their slots, lie within half a slot.
    No frame is ever before its slot, so a core that began at another time, or whose spacing was another,
    would be found out.
    """
    for attempt in range(MOST_ATTEMPTS):  # until each core has sent all that it should
        (folder := tmp_path / str(attempt)).mkdir()
        devices = {side: pcap_device(folder, side, 2) for side in ("left", "right")}
        with engine() as session:
            open_ports(
                session,
                gateway_v4(),
                devices["left"][0],
                devices["right"][0],
                workers=two_workers(receive_queues=1),
            )
            document = run_trial(session, rate_fps=SLOT_FPS, duration_s=1)
        if was_sent_whole(document):
            break
    slot_ticks = document["clock"]["ticks_per_second"] / SLOT_FPS
    for side in ("left", "right"):
        by_stream = [[tag_of(frame, 4) for frame in sent_frames(capture, 4)] for capture in devices[side][1]]
        assert [len(tags) for tags in by_stream] == [SLOT_FPS // 2] * 2
        first = by_stream[0][0]
        for stream, tags in enumerate(by_stream):
            assert all(tag.stream == stream and tag.reverse == (side == "right") for tag in tags)
        earliest = [
            min(_after_slot(tag, first, slot_ticks) for tag in tags[i : i + len(tags) // 4])
            for tags in by_stream
            for i in range(0, len(tags), len(tags) // 4)
        ]
        assert max(earliest) - min(earliest) < slot_ticks / 2, [ticks / slot_ticks for ticks in earliest]


@pytest.mark.two_cpus
@PLANS
def test_two_cores_receive_on_two_queues_what_two_cores_send(plan: AddressPlan, tmp_path: Path) -> None:
    """R2544-06, R2544-07: over a cable with two queues nothing is lost, doubled or out of order, whoever
    looks at it."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), workers=two_workers(receive_queues=2))
        document = valid_trial(session)
    result = TrialResult.from_contract(document)
    assert result.verdict == "PASS", result.reasons
    for direction in document["directions"].values():
        assert_all_came(direction)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace")
@pytest.mark.two_cpus
@PLANS
def test_frames_that_a_hash_spreads_over_two_cores_are_in_order(plan: AddressPlan) -> None:
    """R2544-06, R2544-07: the kernel hands each flow to one of two sockets (PACKET_FANOUT), as a NIC does
    with its queues.

    Each core sees every second number or so of either stream, whenever it happens to look: nothing of that is
    disorder.
    """
    with veth_cable() as namespace, engine(["ip", "netns", "exec", namespace, find_engine()]) as session:
        devices = [f"net_af_packet_{side},iface={side},qpairs=2,framecnt=4096" for side in ("left", "right")]
        open_ports(session, plan, *devices, workers=two_workers(receive_queues=2))
        document = valid_trial(session)
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] == direction["intended_frames"]
        assert direction["duplicated_frames"] == direction["reordered_frames"] == 0


@pytest.mark.parametrize(("streams", "queues", "ring_frames"), [(8, 1, 2048), (1, 4, 2048), (2, 3, 8192)])
def test_buffers_of_many_queues_fit_into_the_memory_that_is_asked_for(
    streams: int, queues: int, ring_frames: int
) -> None:
    """A testbed that says nothing of memory opens, however many CPUs it names."""
    (worker,) = streams_on_one_worker(streams)
    worker["receivers"] = [
        {"side": side, "queue": queue} for side in ("left", "right") for queue in range(queues)
    ]
    rings = {"receive_ring_frames": ring_frames, "transmit_ring_frames": ring_frames}
    ports: dict[SideName, Document] = {
        side: {"device": f"net_null_{side},no-rx=1", "dut_mac": NOBODY[0], **rings}
        for side in ("left", "right")
    }
    memory_mb = needed_memory_mb([worker], ports)
    with engine() as session:
        session.request(
            "open",
            host={"memory_mb": memory_mb},
            ports=ports,
            workers=[worker],
            plan=gateway_v4().to_contract(),
            frame_size=64,
            seed=1,
        )
        document = until(was_sent_whole, lambda: run_trial(session, rate_fps=1000, duration_s=0.1))
    assert document["directions"]["forward"]["offered_frames"] == 100


def _after_slot(tag: Tag, first: Tag, slot_ticks: float) -> float:
    """How long after its slot a frame was sent, on a scale that begins anywhere."""
    half = 1 << 47
    elapsed = (tag.time_ticks - first.time_ticks + half) % (2 * half) - half
    return elapsed - (tag.sequence - first.sequence) * slot_ticks
