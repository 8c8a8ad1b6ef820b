# SPDX-License-Identifier: Apache-2.0
"""Stations 3 to 7: the real engine on ports that need no privileges."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed import lay_out_workers
from evenhand.trial import TrialResult, find_engine
from tests.errors import raises
from tests.wire.captures import sent_frames, without_time
from tests.wire.wire_session import (
    FAST_WAITS,
    NOBODY,
    QUIET_FPS,
    Document,
    assert_all_came,
    cpus,
    drop_captures,
    engine,
    memif_cable,
    one_worker,
    open_ports,
    run_trial,
    thorough,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
BOTH_PLANS = pytest.mark.parametrize(
    "plan",
    [gateway_v4(), gateway_v6(), gateway_v4(1), gateway_v6((1, 3))],
    ids=lambda p: f"{p.name}-{p.pairs}",
)


@BOTH_PLANS
def test_a_cable_brings_every_frame_in_order(plan: AddressPlan, tmp_path: Path) -> None:
    """R2544-01, R2544-06: nothing is lost, doubled, late, out of order or damaged between two joined ports;
    and the result can be read."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        document = valid_trial(session)
    result = TrialResult.from_contract(document)
    assert result.verdict == "PASS", result.reasons
    for direction in document["directions"].values():
        assert_all_came(direction)
        assert direction["intended_frames"] == QUIET_FPS / 2
        assert direction["latency"]["count"] == direction["received_frames"]
        assert sum(count for _, count in direction["latency"]["buckets"]) == direction["received_frames"]
        assert sum(direction["lost_by_tenth"]) == 0
        assert len(direction["lost_by_tenth"]) == 5
    assert abs(document["clock"]["error_ppm"]) < 100


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
@pytest.mark.parametrize("size", [0, 128, 1024, 1518, 1522, 9216])
def test_every_frame_size_passes_the_cable(plan: AddressPlan, size: int, tmp_path: Path) -> None:
    """R2544-04, R5180-09, R5180-10, R8219-01: from the smallest to jumbo frames, where the cable's buffers
    hold them."""
    with engine() as session:
        cable = memif_cable(tmp_path, buffer_octets=max(2048, size))
        open_ports(session, plan, *cable, frame_size=max(size, plan.smallest_frame_size))
        document = valid_trial(session, rate_fps=5_000, duration_s=0.2)
    assert document["verdict"] == "PASS", document["reasons"]
    assert all(d["received_frames"] == 1_000 for d in document["directions"].values())


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
def test_the_wire_holds_what_plan_frames_shows(plan: AddressPlan, tmp_path: Path) -> None:
    """SEED-44, D3: the frames in a capture are the preview, octet by octet but for the send time and the
    checksum over it."""
    capture = tmp_path / "left.pcap"

    def captured() -> tuple[Document, list[Document]]:
        drop_captures(tmp_path)
        with engine() as session:
            opened = open_ports(
                session,
                plan,
                f"net_pcap0,tx_pcap={capture}",
                f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}",
                seed=77,
                frame_size=100,
            )
            document = run_trial(session, trial=9, directions=["forward"], duration_s=0.1)
            session.request("close")
            return document, session.request(
                "frames",
                plan=plan.to_contract(),
                frame_size=100,
                seed=77,
                direction="forward",
                count=QUIET_FPS // 10,
                trial=9,
                source_mac=opened["left"]["mac"],
                destination_mac=NOBODY[0],
            )["frames"]

    _, preview = until(lambda found: was_sent_whole(found[0]), captured)
    sent = sent_frames(capture, plan.ip_version)
    assert len(sent) == len(preview)
    for frame, shown in zip(sent, preview, strict=True):
        assert without_time(frame, plan.ip_version) == without_time(
            bytes.fromhex(shown["octets"]), plan.ip_version
        )


@pytest.mark.two_cpus
def test_two_cores_share_the_ports(tmp_path: Path) -> None:
    """A core can run any set of senders and receivers: here one sends what the other receives."""
    workers = [
        {
            "cpu": cpus()[0],
            "senders": [{"side": "left", "stream": 0}],
            "receivers": [{"side": "left", "queue": 0}],
        },
        {
            "cpu": cpus()[1],
            "senders": [{"side": "right", "stream": 0}],
            "receivers": [{"side": "right", "queue": 0}],
        },
    ]
    with engine() as session:
        open_ports(session, gateway_v6(), *memif_cable(tmp_path), workers=workers)
        document = valid_trial(session)
    assert document["verdict"] == "PASS", document["reasons"]


def test_a_port_into_the_void_loses_everything() -> None:
    """R2544-26: loss is a result, never an error: FAIL with loss ratio 1."""
    with engine() as session:
        open_ports(session, gateway_v4(), "net_null0,no-rx=1", "net_null1,no-rx=1")
        document = valid_trial(session)
    assert document["verdict"] == "FAIL"
    assert document["loss_ratio"] == 1
    forward = document["directions"]["forward"]
    assert forward["lost_frames"] == forward["offered_frames"] == sum(forward["lost_by_tenth"])
    assert forward["first_lost"] == list(range(10))
    assert forward["latency"]["p50_ns"] is None


@pytest.mark.parametrize("plan", [gateway_v6(), *thorough(gateway_v4())], ids=lambda p: p.name)
def test_a_silence_ends_no_trial_early(plan: AddressPlan) -> None:
    """R2544-19: RFC 2544's two seconds begin when the stream has ended, and nothing has overtaken what is
    missing."""
    limits = {"overdue_tolerance": 1, "offered_tolerance": 0.1, "longest_overdue_us": 1e5}
    with engine() as session:
        open_ports(session, plan, "net_null0,no-rx=1", "net_null1,no-rx=1")
        document = valid_trial(session, duration_s=2, stop_when_failed=True, limits=limits)
    assert document["verdict"] == "FAIL"
    assert "stopped_early_s" not in document


def test_a_trial_that_passes_lasts_to_its_end(tmp_path: Path) -> None:
    """R2544-20."""
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        document = valid_trial(
            session,
            duration_s=1,
            stop_when_failed=True,
            limits={"longest_overdue_us": 2e5, "overdue_tolerance": 1},
        )
    assert document["verdict"] == "PASS"
    assert "stopped_early_s" not in document
    assert document["directions"]["forward"]["offered_frames"] == QUIET_FPS


def test_frames_out_of_nothing_are_no_test_frames() -> None:
    """R2544-05, R2544-40: net_null receives buffers with old contents; without the trial's number in a valid
    frame none of them counts."""
    with engine() as session:
        open_ports(session, gateway_v4(), "net_null0", "net_null1")
        document = valid_trial(session, duration_s=0.1)
    assert document["verdict"] == "FAIL"
    for direction in document["directions"].values():
        assert direction["received_frames"] == 0
        assert direction["foreign_frames"] > 0


def test_own_frames_on_the_wrong_side_are_foreign() -> None:
    """R6815-02: net_ring gives a port its own frames back; they are not the other direction's."""
    with engine() as session:
        open_ports(session, gateway_v4(), "net_ring0", "net_ring1")
        document = run_trial(session, duration_s=0.1)
    for direction in document["directions"].values():
        assert direction["received_frames"] == 0
        assert direction["foreign_frames"] == direction["offered_frames"]


def test_a_tester_asked_for_too_much_is_invalid_not_failed() -> None:
    """D5, R2544-39: beyond what a core can build, the trial says that the load was not offered."""
    with engine() as session:
        open_ports(session, gateway_v4(), "net_null0,no-rx=1", "net_null1,no-rx=1")
        document = run_trial(session, rate_fps=1e9, duration_s=0.2, limits={})
    assert document["verdict"] == "INVALID"
    assert {reason["code"] for reason in document["reasons"]} >= {"offered_load", "sender_overdue"}
    for direction in document["directions"].values():
        assert direction["offered_frames"] < direction["intended_frames"]
        assert sum(direction["lost_by_tenth"]) == direction["lost_frames"], "what never left is not lost"


def test_what_never_left_is_not_lost_with_several_streams_either(tmp_path: Path) -> None:
    """R2544-07: each stream stops at a frame of its own; over a cable nothing is lost, and nothing may look
    so."""
    cpu = cpus()[0]
    workers = [
        {
            "cpu": cpu,
            "senders": [{"side": "left", "stream": n} for n in range(3)] + [{"side": "right", "stream": 0}],
            "receivers": [{"side": side, "queue": 0} for side in ("left", "right")],
        }
    ]
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path), workers=workers)
        document = run_trial(session, rate_fps=5e7, duration_s=0.3, directions=["forward"], limits={})
    forward = document["directions"]["forward"]
    assert document["verdict"] == "INVALID"
    assert forward["offered_frames"] < forward["intended_frames"]
    assert sum(forward["lost_by_tenth"]) == forward["lost_frames"]


def test_progress_is_told_while_a_trial_runs(tmp_path: Path) -> None:
    """Twice a second: phase, time and counts."""
    events: list[Document] = []
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        run_trial(session, duration_s=1.3, on_event=events.append)
    sending = [event for event in events if event["phase"] == "sending"]
    assert len(sending) >= 2
    assert sending[-1]["sent_frames"] > 0


def test_waits_are_kept_and_short_ones_told(tmp_path: Path) -> None:
    """R2544-14, R2544-18, R2544-20: the phases stand in order with their waits; shorter ones are
    deviations."""
    waits = {"after_routing_s": 0.1, "after_learning_s": 0.3, "residual_s": 0.2, "restabilize_s": 0.4}
    numbers = count(1)

    def in_time(document: Document) -> bool:
        # The last three end at fixed times of the loops; when the session notices is up to it, hence the room
        # for the last two.
        return all(
            phase["seconds"] >= least
            for phase, least in zip(document["phases"][-3:], (0.2, 0.1, 0.3), strict=True)
        )

    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        document = until(
            in_time, lambda: run_trial(session, trial=next(numbers), duration_s=0.2, limits={}, waits=waits)
        )
    phases = document["phases"]
    assert [phase["phase"] for phase in phases] == [
        "routing",
        "learning",
        "sending",
        "residual",
        "restabilize",
    ]
    assert phases[0]["seconds"] >= 0.1
    assert phases[1]["seconds"] >= 0.3
    ends = [phase["start_s"] + phase["seconds"] for phase in phases]
    assert ends[-1] - ends[1] >= 0.2 + 0.2 + 0.4
    assert {d["requirement"] for d in document["deviations"]} == {"R2544-14", "R2544-18", "R2544-20"}


def test_ports_can_be_opened_again_after_close(tmp_path: Path) -> None:
    """D2: one process, several openings, any of them with other ports."""
    with engine() as session:
        for plan in (gateway_v4(), gateway_v6()):
            open_ports(session, plan, *memif_cable(tmp_path))
            with raises("engine.bad-order"):
                open_ports(session, plan, *memif_cable(tmp_path))
            assert valid_trial(session, duration_s=0.1)["verdict"] == "PASS"
            session.request("close")
        with raises("engine.bad-order"):
            run_trial(session)


def test_a_device_that_does_not_exist_is_named_and_the_session_lives_on(tmp_path: Path) -> None:
    """Errors are part of the interface: code, exit code 2 or 3, the device, its place. Who is not root gets
    no packet socket, whatever the device."""
    no_device = "engine.no-device" if os.geteuid() == 0 else "engine.no-permission"
    wrong = [("net_nonsense0", "engine.bad-request", 2), ("net_af_packet0,iface=nothing0", no_device, 3)]
    with engine() as session:
        for device, code, exit_code in wrong:
            with raises(code, match=device.partition(",")[0]) as error:
                open_ports(session, gateway_v4(), "net_null0", device)
            assert error.value.exit_code == exit_code
            assert error.value.where == "right.device"
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        assert valid_trial(session, duration_s=0.1)["verdict"] == "PASS"


def test_a_device_string_may_be_longer_than_dpdk_takes_in_its_call_for_any_device(tmp_path: Path) -> None:
    """D1: rte_dev_probe of DPDK 24.11 refuses 128 octets, and the paths of two files soon have more."""
    files = [tmp_path / f"{side}-{'x' * 100}.pcap" for side in ("left", "right")]
    with engine() as session:
        open_ports(session, gateway_v4(), f"net_pcap0,tx_pcap={files[0]}", f"net_pcap1,tx_pcap={files[1]}")
        session.request("close")
    assert all(file.exists() for file in files)


def test_a_cpu_that_is_not_ours_is_refused() -> None:
    workers = one_worker()
    workers[0]["cpu"] = 4095
    with engine() as session, raises("engine.no-cpu", match="CPU 4095"):
        open_ports(session, gateway_v4(), "net_null0", "net_null1", workers=workers)


@pytest.mark.two_cpus
def test_a_cpu_that_the_kernel_keeps_its_own_work_off_is_the_testers(tmp_path: Path) -> None:
    """With isolcpus a CPU is not among those that a new process may use by itself; taskset makes one so
    here."""
    kept = next(cpu for cpu in cpus() if cpu != one_worker()[0]["cpu"])
    with engine(["taskset", "-c", str(kept), find_engine()]) as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        assert run_trial(session, duration_s=0.2)["directions"]["forward"]["received_frames"] > 0


def test_a_link_that_came_up_before_the_first_trial_has_not_changed_in_it(tmp_path: Path) -> None:
    """The left end of a cable has its link only when the right one is open. Without waits nobody has looked
    at it since."""
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        document = run_trial(session, duration_s=0.2, waits=dict.fromkeys(FAST_WAITS, 0))
    assert [document["ports"][side]["after"]["link_changes"] for side in ("left", "right")] == [0, 0]
    assert "link" not in {reason["code"] for reason in document["reasons"]}


def test_stop_ends_a_trial_early(tmp_path: Path) -> None:
    """A stopped trial is INVALID, and the session goes on."""
    process = subprocess.Popen(
        [find_engine()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    left, right = memif_cable(tmp_path)
    ports = {"left": {"device": left, "dut_mac": NOBODY[0]}, "right": {"device": right, "dut_mac": NOBODY[1]}}
    requests = [
        {
            "id": 1,
            "request": "open",
            "ports": ports,
            "workers": one_worker(),
            "plan": gateway_v4().to_contract(),
            "frame_size": 64,
            "seed": 1,
        },
        {"id": 2, "request": "trial", "trial": 1, "rate_fps": 1000, "duration_s": 3600},
    ]
    for request in requests:
        process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    replies = []
    for line in process.stdout:
        replies.append(json.loads(line))
        if replies[-1].get("event") == "progress" and len(replies) == 2:
            process.stdin.write('{"id": 3, "request": "stop"}\n{"id": 4, "request": "about"}\n')
            process.stdin.flush()
        if replies[-1].get("id") == 4:
            break
    process.stdin.close()
    assert process.wait(20) == 0
    trial = next(reply for reply in replies if reply.get("response") == "trial")
    assert trial["verdict"] == "INVALID"
    assert trial["reasons"][0]["code"] == "stopped"
    assert [reply["response"] for reply in replies if "response" in reply] == [
        "open",
        "trial",
        "stop",
        "about",
    ]


def test_the_end_of_stdin_ends_a_trial_and_the_engine(tmp_path: Path) -> None:
    """A client that is gone (also by kill -9) leaves no engine behind."""
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        sending = threading.Event()
        results: list[dict[str, Any]] = []
        runner = threading.Thread(
            target=lambda: results.append(
                run_trial(session, duration_s=3600, rate_fps=1000, on_event=lambda _: sending.set())
            ),
            daemon=True,
        )
        runner.start()
        assert sending.wait(20)
        assert session._process.stdin is not None
        session._process.stdin.close()
        assert session._process.wait(20) == 0
        runner.join(20)
    assert results[0]["reasons"][0]["code"] == "stopped"


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
def test_one_cpu_hears_a_memif_whose_other_end_sends_on_several_queues(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """Open vSwitch answers on its queue 1: with one queue that nobody polled, every answer was lost without a
    word."""
    (worker,) = lay_out_workers([cpus()[-1]], receive_queues=2)
    worker["senders"] = [{"side": side, "stream": stream} for side in ("left", "right") for stream in (0, 1)]
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), workers=[worker])
        document = valid_trial(session)
    assert document["verdict"] == "PASS", document["reasons"]
