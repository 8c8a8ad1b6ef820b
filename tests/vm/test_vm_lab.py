# SPDX-License-Identifier: Apache-2.0
"""A router that nobody here wrote: Debian's kernel in a virtual machine. It counts per queue, and its counts
are what was predicted."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from evenhand.dut.readings import parse_reading, reading_command
from evenhand.dut.shell import Shell
from evenhand.lab import VmLab, lab_status
from evenhand.lab.machine import machine_processes
from evenhand.lab.namespaces import namespace_path, run_inside
from evenhand.lab.vm_access import Access
from evenhand.lab.vm_boot import QUEUES
from evenhand.plan import AddressPlan, make_plan
from evenhand.predict import DeviceModel, HashType, element_of, predict
from evenhand.predict.ethtool import read_ethtool
from evenhand.run import read_record as read_campaign_record
from tests.errors import raises
from tests.vm.conftest import ANSWER_WITHIN_S, ask

pytestmark = pytest.mark.vm
FRAMES = 900
AT_ONCE = 100
"""Fewer than any queue on the way holds, so that none is lost."""
COUNTED_WITHIN_S = 60
"""An emulated machine on a busy host needs some seconds for them."""
DUT_MAC, TESTER_MAC = bytes.fromhex("02000000d001"), bytes.fromhex("02000000a001")
LETTERS: dict[HashType, str] = {"type1": "sd", "type2": "sdfn"}
HASHES = pytest.mark.parametrize("hash_type", LETTERS)
VERSIONS = pytest.mark.parametrize("version", [4, 6])


def counted(shell: Shell) -> list[int]:
    """Frames that each queue of the left interface received so far, as the machine's kernel counts them."""
    both = {"left": "left", "right": "right"}
    reading = parse_reading(ask(shell, reading_command(both)), both, where="the machine")
    return [counters["received_packets"] for counters in reading.interfaces["left"].queues.values()]


def model_of(shell: Shell, hash_type: HashType) -> DeviceModel:
    """The machine's own key and table."""
    read = read_ethtool(ask(shell, "ethtool -x left"), where="left")
    assert read.key is not None
    return DeviceModel(
        elements=QUEUES, hash_type=hash_type, key=read.key, table=tuple(int(word) for word in read.words)
    )


def evenhand(*words: str) -> dict[str, Any]:
    command = [str(Path(sys.executable).parent / "evenhand"), *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{shlex.join(command)}: {ended.stderr}"
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def set_hash(shell: Shell, letters: str) -> None:
    for flow in ("udp4", "udp6"):
        ask(shell, f"ethtool -N left rx-flow-hash {flow} {letters}")


def send(lab: VmLab, shell: Shell, frames: list[bytes]) -> list[int]:
    """What each queue counted of these frames. A few go at a time, and the next ones once they are counted,
    however slow the machine is."""
    before = counted(shell)
    now = [0] * len(before)
    interface = lab.tester_interface("left")
    with run_inside(lab.tester_namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as tester:
        tester.bind((interface, 0))
        for first in range(0, len(frames), AT_ONCE):
            batch = frames[first : first + AT_ONCE]
            for frame in batch:
                tester.send(frame)
            give_up = time.monotonic() + COUNTED_WITHIN_S
            while sum(now) < first + len(batch):
                if time.monotonic() > give_up:
                    return now
                time.sleep(0.1)
                now = [after - earlier for after, earlier in zip(counted(shell), before, strict=True)]
    return now


def frame(document: dict[str, Any]) -> bytes:
    """The octets of `plan frames`, between the MACs of the lab."""
    return DUT_MAC + TESTER_MAC + bytes.fromhex(document["octets"])[12:]


def drawn(plan: str, *options: str, count: int = FRAMES) -> list[dict[str, Any]]:
    command = [
        str(Path(sys.executable).parent / "evenhand"),
        "plan",
        "frames",
        plan,
        "--count",
        str(count),
        "--format",
        "jsonl",
        *options,
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def every_pair(plan: AddressPlan) -> list[bytes]:
    """Each pair of addresses once, from a frame of the plan whose addresses are replaced. No router looks at
    the UDP checksum."""
    model = bytes.fromhex(drawn(plan.title, count=1)[0]["octets"])[12:]
    start, octets = (14, 4) if plan.ip_version == 4 else (10, 16)
    frames = []
    for left in range(plan.left.host_range.count):
        for right in range(plan.right.host_range.count):
            pair = plan.left.host_range.address(left).packed + plan.right.host_range.address(right).packed
            frames.append(DUT_MAC + TESTER_MAC + model[:start] + pair + model[start + 2 * octets :])
    return frames


@VERSIONS
@HASHES
def test_each_queue_counts_the_very_frames_that_were_predicted_for_it(
    lab: VmLab, shell: Shell, version: Literal[4, 6], hash_type: HashType
) -> None:
    """RSS-01, RSS-02, RSS-03, RSS-04: by the machine's own key, table and fields, not one frame is in another
    queue than predicted."""
    set_hash(shell, LETTERS[hash_type])
    frames = drawn(f"gateway-v{version}")
    model = model_of(shell, hash_type)
    queues = Counter(
        element_of(model, f["source"], f["destination"], (f["source_port"], f["destination_port"]))
        for f in frames
    )
    assert send(lab, shell, [frame(f) for f in frames]) == [queues[queue] for queue in range(QUEUES)]
    assert len(queues) == QUEUES


@VERSIONS
def test_all_pairs_of_a_plan_share_the_queues_as_predict_says(
    lab: VmLab, shell: Shell, version: Literal[4, 6]
) -> None:
    """SEED-40, RSS-04: `predict` for few hosts, with all their unevenness, is what this kernel counts."""
    set_hash(shell, "sd")
    plan = make_plan(f"gateway_v{version}", 16)
    prediction = predict(plan, model_of(shell, "type1"), ("forward",))
    assert prediction.combinations == 256
    assert tuple(send(lab, shell, every_pair(plan))) == prediction.counts["forward"]


def test_another_key_and_table_are_taken_and_predicted_as_well(lab: VmLab, shell: Shell) -> None:
    """RSS-04: three queues of unlike weight, by a table of its own, and the key of the verification suite."""
    before = model_of(shell, "type1")
    key = DeviceModel(elements=1, hash_type="type1").key
    set_hash(shell, "sd")
    ask(shell, f"ethtool -X left weight 3 2 1 0 && ethtool -X left hkey {key[: len(before.key)].hex(':')}")
    try:
        model = model_of(shell, "type1")
        assert model.table != before.table
        assert model.key == key[: len(before.key)]
        plan = make_plan("gateway_v4", 16)
        counts = send(lab, shell, every_pair(plan))
        assert tuple(counts) == predict(plan, replace(model), ("forward",)).counts["forward"]
        assert counts[3] == 0
    finally:
        ask(shell, f"ethtool -X left equal {QUEUES} && ethtool -X left hkey {before.key.hex(':')}")
    assert model_of(shell, "type1") == before


def test_the_hash_is_taken_read_back_and_undone_and_other_fields_are_refused(shell: Shell) -> None:
    """RSS-02: virtio_net takes addresses, and addresses with ports, and nothing else; what it refuses it does
    not change."""

    def read() -> str:
        return ask(shell, "ethtool -n left rx-flow-hash udp4")

    set_hash(shell, "sdfn")
    before = read()
    assert "L4 bytes 2 & 3" in before
    set_hash(shell, "sd")
    assert "IP DA" in (addresses := read())
    assert "L4" not in addresses
    for letters in ("s", "sdf", "fn", "v"):
        # Not by the exit code: ethtool 6.1 ends with 0 all the same.
        said = shell.run(f"ethtool -N left rx-flow-hash udp4 {letters}", timeout_s=ANSWER_WITHIN_S).stderr
        assert "Cannot change RX network flow hashing options" in said
    assert read() == addresses
    set_hash(shell, "sdfn")
    assert read() == before


def test_the_hash_that_is_read_back_is_not_in_use_without_rxhash(lab: VmLab, shell: Shell) -> None:
    """RSS-02: why the lab switches `rxhash` on. Without it virtio_net keeps what it is told for later, and
    says that it is so."""
    set_hash(shell, "sdfn")
    ask(shell, "ethtool -K left rxhash off")
    try:
        set_hash(shell, "sd")
        assert "L4" not in ask(shell, "ethtool -n left rx-flow-hash udp4")
        plan = make_plan("gateway_v4", 16)
        assert (
            tuple(send(lab, shell, every_pair(plan)))
            != predict(plan, model_of(shell, "type1"), ("forward",)).counts["forward"]
        )
    finally:
        ask(shell, "ethtool -K left rxhash on")


def test_the_verbs_set_the_hash_up_predict_by_it_and_put_it_back(lab: VmLab, shell: Shell) -> None:
    """RSS-02, SEED-40: `dut apply` switches on what its hash needs, `predict --dut` has it, and `dut undo`
    leaves all as it was."""

    def state() -> list[str]:
        reads = [
            f"ethtool -n {side} rx-flow-hash {flow}"
            for side in ("left", "right")
            for flow in ("udp4", "udp6")
        ]
        hashing = [f"ethtool -k {side} | grep receive-hashing" for side in ("left", "right")]
        return [
            ask(shell, command)
            for command in [
                *reads,
                *hashing,
                "ip -j address",
                "ip -j route",
                "sysctl net.ipv4.conf net.ipv6.conf",
            ]
        ]

    testbed = f"lab:{lab.name}"
    set_hash(shell, LETTERS["type2"])
    ask(shell, "ethtool -K left rxhash off")
    before = state()
    try:
        assert evenhand("dut", "check", testbed)["interfaces"][0]["hash"] == {
            "udp4": LETTERS["type2"],
            "udp6": LETTERS["type2"],
        }
        applied = evenhand("dut", "apply", testbed, "--hash", "type1")
        assert {change["name"] for change in applied["held"]["changes"]} >= {
            "receive hashing of left",
            "hash of left for udp4",
        }
        plan = make_plan(lab.plan, 16)
        predicted = evenhand(
            "predict", plan.title, "--hosts", "16", "--dut", testbed, "--direction", "forward"
        )
        assert predicted["device"]["hash_type"] == "type1"
        assert (
            tuple(send(lab, shell, every_pair(plan)))
            == predict(plan, model_of(shell, "type1"), ("forward",)).counts["forward"]
        )
        assert evenhand("dut", "undo", testbed)["undone"] is not None
        assert state() == before
    finally:
        ask(shell, "ethtool -K left rxhash on")


def test_apply_sets_queues_table_and_key_and_undo_gives_them_back(lab: VmLab, shell: Shell) -> None:
    """RSS-03, RSS-04: a driver of another's takes a key and a table over two of its queues, counts by them,
    and has its own again."""
    testbed, reads = (
        f"lab:{lab.name}",
        [f"ethtool {option} {side}" for option in ("-x", "-l") for side in ("left", "right")],
    )

    def state() -> list[str]:
        return [ask(shell, command) for command in reads]

    before, own = state(), model_of(shell, "type1")
    key = DeviceModel(elements=1, hash_type="type1").key[: len(own.key)]
    channels = QUEUES - 1
    evenhand(
        "dut",
        "apply",
        testbed,
        "--hash",
        "type1",
        "--channels",
        str(channels),
        "--key",
        key.hex(),
        "--table-queues",
        "2",
    )
    try:
        model = model_of(shell, "type1")
        assert model.key == key != own.key
        assert set(model.table) == {0, 1}
        plan = make_plan(lab.plan, 16)
        counts = send(lab, shell, every_pair(plan))
        predicted = predict(plan, model, ("forward",)).counts["forward"]
        assert (counts, predicted[channels:]) == (list(predicted[:channels]), (0,) * (QUEUES - channels))
        assert counts[2:] == [0] * (channels - 2)
        assert f"Combined:\t{channels}" in re.sub(
            r"[ \t]+", "\t", ask(shell, "ethtool -l left").partition("Current")[2]
        )
    finally:
        evenhand("dut", "undo", testbed)
    assert state() == before


def test_fewer_queues_than_a_table_names_still_hash_and_all_come_back(lab: VmLab, shell: Shell) -> None:
    """RSS-04: a table that somebody has set holds its queues. The driver stops hashing when they change and
    says that it goes on: what the queues count tells, here and after undo."""
    testbed, plan = f"lab:{lab.name}", make_plan(lab.plan, 16)
    set_hash(shell, LETTERS["type1"])
    ask(shell, f"ethtool -X left equal {QUEUES}")
    before = model_of(shell, "type1")
    try:
        evenhand("dut", "apply", testbed, "--hash", "type1", "--channels", "2")
        model = replace(model_of(shell, "type1"), elements=2)
        assert send(lab, shell, every_pair(plan)) == list(
            predict(plan, model, ("forward",)).counts["forward"]
        )
        evenhand("dut", "undo", testbed)
        assert model_of(shell, "type1") == before
        assert (
            tuple(send(lab, shell, every_pair(plan))) == predict(plan, before, ("forward",)).counts["forward"]
        )
    finally:
        ask(shell, "ethtool -X left default")


@pytest.mark.parametrize("hash_type", LETTERS)
def test_a_campaign_sets_the_machines_hash_and_puts_it_back(
    lab: VmLab, shell: Shell, tmp_path: Path, hash_type: HashType
) -> None:
    """RSS-02: what a point says of the hash is so, by the counts of the queues: one address pair meets one
    queue, or by its ports all."""
    other = next(letters for known, letters in LETTERS.items() if known != hash_type)
    set_hash(shell, other)
    (tmp_path / "series.toml").write_text(
        f'''
name = "hash"
testbed = "lab:{lab.name}"
[[suite]]
name = "a"
plan = "gateway-v4"
hosts = 1
hash-types = "{hash_type}"
repetitions = 1
maximum-rate = "100fps"
minimum-rate = "10fps"
duration = "2s"
final-duration = "2s"
waits = "short"
invalid-retries = 50
patience = 50
'''
    )
    run = tmp_path / "hash.evenhand"
    evenhand("run", str(tmp_path / "series.toml"), "--run", str(run), "--no-html")
    (search,) = read_campaign_record(run).points[0].repetitions[-1].searches
    queues = search.trials[-1].result.raw["dut"]["interfaces"]["left"]["queues"]
    counts = sorted(queue["received_packets"] for queue in queues)
    assert sum(counts) >= 100
    assert (counts[-2] < 10) == (hash_type == "type1"), counts
    fields = ask(shell, "ethtool -n left rx-flow-hash udp4")
    assert ("L4 bytes 0" in fields) == ("f" in other)


def test_a_trial_goes_through_the_machine(lab: VmLab, tmp_path: Path) -> None:
    """SEED-19, SEED-20: the machine resolves the tester's gateways by itself, and forwards both ways."""
    document = trial(lab, tmp_path, "--rate", "50fps", "--duration", "4s")
    for direction in document["trial"]["directions"].values():
        assert direction["received_frames"] > 0
        assert direction["corrupted_frames"] == direction["foreign_frames"] == 0


def test_a_machine_that_dies_in_a_trial_is_no_loss_of_any_load(lab: VmLab, tmp_path: Path) -> None:
    """The trial ends with what happened, and no search takes the frames that nobody forwarded for a load that
    was too high. The lab stays until it is taken down, with its ports."""
    command = command_of(lab, tmp_path, "--rate", "50fps", "--duration", "20s")
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    before = packets(lab)
    while packets(lab) < before + 100:
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    for process in machine_processes(lab.name):
        os.kill(process, signal.SIGKILL)
    _, said = running.communicate()
    assert running.returncode == 3
    assert "the machine of this lab has ended" in said
    assert lab_status(lab.name) == lab
    assert namespace_path(lab.tester_namespace).exists()


def test_a_machine_that_has_ended_is_told_before_anything_is_sent(lab: VmLab, tmp_path: Path) -> None:
    """After the test above, which ends it. The lab's keys are still nobody's but root's."""
    with raises("rig.machine-ended") as refusal:
        lab.check_running()
    assert "lab up vm" in refusal.value.next_step
    before = packets(lab)
    ended = subprocess.run(
        command_of(lab, tmp_path, "--rate", "50fps", "--duration", "1s"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert "has ended" in ended.stderr
    assert packets(lab) == before
    assert Access(lab.name).folder.stat().st_mode & 0o777 == 0o700


def packets(lab: VmLab) -> int:
    """That the tester sent on the left tap, whether the machine took them or not."""
    statistics = f"/sys/class/net/{lab.tester_interface('left')}/statistics"
    counts = run_inside(
        lab.tester_namespace,
        lambda: [int(Path(statistics, name).read_text()) for name in ("tx_packets", "tx_dropped")],
    )
    return sum(counts)


def command_of(lab: VmLab, folder: Path, *options: str) -> list[str]:
    program = str(Path(sys.executable).parent / "evenhand")
    return [
        program,
        "trial",
        f"lab:{lab.name}",
        "--waits",
        "short",
        "--json",
        "--run",
        str(folder / "run.evenhand"),
        *options,
    ]


def trial(lab: VmLab, folder: Path, *options: str) -> dict[str, Any]:
    command = command_of(lab, folder, *options)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{shlex.join(command)}: {ended.stderr}"
    document: dict[str, Any] = json.loads(ended.stdout)
    return document
