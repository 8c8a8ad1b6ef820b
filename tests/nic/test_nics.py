# SPDX-License-Identifier: Apache-2.0
"""The real engine on PCI NICs that QEMU emulates, under vfio-pci: what it does with them, and what it says
when they are not ready.

The tests share one machine and stand in the order of a person's way: nothing prepared, hugepages, drivers,
trials. Rates are those of an emulated CPU: low, and a trial that the host spoiled is repeated.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from tests.nic.nic_machine import MODELS, Model, NicMachine, offered_models
from tests.nic.nic_session import (
    HUGEPAGES,
    JUMBO_MEMORY_MB,
    MEMORY_MB,
    RATE_FPS,
    assert_passes,
    each_of,
    link_changes,
    open_nics,
    prepare,
    refusal,
)
from tests.wire.wire_session import NOBODY, run_trial, valid_trial

pytestmark = [pytest.mark.nic]

Document = dict[str, Any]
E1000E = MODELS[0]
"""Every QEMU has it, and no kernel driver of it is loaded at first."""
FLAPPING = ("vmxnet3", "virtio-rss", "virtio-one-queue")
"""Whose link QEMU brings up at once."""
NEGOTIATING = ("e1000e", "igb")
"""Whose link takes half a second."""


EACH_MODEL = pytest.mark.parametrize("model", each_of(MODELS))


def check(machine: NicMachine) -> dict[str, Document]:
    """The findings of `evenhand check` inside, by name."""
    answer = machine.evenhand("check --watch 0s --json")
    assert answer["code"] == 0, answer
    return {finding["name"]: finding for finding in json.loads(answer["stdout"])["host"]["findings"]}


def without_sudo(command: str) -> str:
    """There is none inside, and nobody else than root."""
    return command.replace("sudo ", "")


def test_without_hugepages_the_engine_says_how_many_to_reserve(machine: NicMachine) -> None:
    error = refusal(machine, E1000E.addresses, "engine.no-memory")
    assert f"hold 0 MB, and memory_mb is {MEMORY_MB}" in error.what
    assert error.next_step.startswith(
        "Reserve them, then start another engine: echo 128 | sudo tee"
        " /sys/kernel/mm/hugepages/hugepages-2048kB/"
    )


def test_a_nic_without_a_driver_is_refused_with_the_command_that_binds_it(machine: NicMachine) -> None:
    machine.reserve_hugepages(HUGEPAGES)
    error = refusal(machine, E1000E.addresses, "engine.no-device")
    assert error.what == f"{E1000E.addresses[0]}: it is bound to no driver"
    assert f"dpdk-devbind.py --bind=vfio-pci {E1000E.addresses[0]}" in error.next_step


def test_a_nic_of_the_kernel_is_refused_with_the_command_that_binds_it(machine: NicMachine) -> None:
    machine.run(f"modprobe {E1000E.kernel_driver}")
    error = refusal(machine, E1000E.addresses, "engine.no-device")
    assert f"{E1000E.addresses[0]}: it is bound to e1000e" in error.what
    assert f"dpdk-devbind.py --bind=vfio-pci {E1000E.addresses[0]}" in error.next_step


def test_a_nic_that_is_not_there_is_refused(machine: NicMachine) -> None:
    error = refusal(machine, ("0000:00:1e.7", E1000E.addresses[1]), "engine.no-device")
    assert error.what.startswith("0000:00:1e.7: there is no such")


def test_the_very_commands_of_check_bind_a_nic_and_take_it_back(machine: NicMachine) -> None:
    """It says for each NIC what is bound, and which driver of DPDK they need; one with an address is left
    alone."""
    left, right = E1000E.addresses
    machine.run(f"modprobe vfio-pci; modprobe {E1000E.kernel_driver}; sleep 1")
    machine.run(f"ip address add 192.0.2.7/24 dev $(ls /sys/bus/pci/devices/{right}/net)")
    found = check(machine)
    nics = {nic["address"]: nic for nic in found["PCI ports"]["facts"]["nics"]}
    assert set(nics) == {address for model in offered_models() for address in model.addresses}
    assert {nics[model.addresses[0]]["kernel_driver"] for model in offered_models()} == {
        model.kernel_driver for model in offered_models()
    }
    assert {nic["missing_package"] for nic in nics.values()} == {None}
    assert nics[right]["bind_command"] is None
    assert nics[right]["warning"] == "it carries 192.0.2.7: the host would lose that network"
    machine.run(without_sudo(nics[left]["bind_command"]))
    assert machine.driver_of(left) == "vfio-pci"
    bound = {nic["address"]: nic for nic in check(machine)["PCI ports"]["facts"]["nics"]}[left]
    assert bound["is_ready"]
    machine.run(without_sudo(bound["give_back_command"]))
    assert machine.driver_of(left) == E1000E.kernel_driver
    assert machine.run(f"cat /sys/bus/pci/devices/{left}/net/*/address").strip() == E1000E.macs[0]


@EACH_MODEL
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def test_a_trial_both_ways_passes_and_the_port_can_be_opened_again(
    machine: NicMachine, model: Model, plan: AddressPlan
) -> None:
    """Link, MAC, driver and counters are the NIC's; frames to other MACs than its own are heard
    (promiscuous)."""
    prepare(machine, model)
    with machine.engine() as session:
        for _ in range(2):
            opened = open_nics(session, model.addresses, plan=plan)
            for side, mac in zip(SIDES, model.macs, strict=True):
                port = opened[side]
                assert (port["driver"], port["mac"], port["link_up"]) == (model.dpdk_driver, mac, True)
                assert port["line_rate_bps"] is None or port["line_rate_bps"] >= 1e9
            before = session.request("counters")
            document = valid_trial(session, rate_fps=RATE_FPS, duration_s=1)
            assert_passes(document)
            after = session.request("counters")
            for side in SIDES:
                # Learning frames, and trials before that were INVALID, count too.
                for count in ("received_frames", "transmitted_frames"):
                    assert after[side]["port"][count] - before[side]["port"][count] >= RATE_FPS, (side, count)
                assert after[side]["port"]["missed_frames"] == after[side]["port"]["receive_errors"] == 0
            session.request("close")


@EACH_MODEL
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def test_answers_leave_by_the_queue_that_they_are_given(
    machine: NicMachine, model: Model, plan: AddressPlan
) -> None:
    """By one of their own, or with the first stream's frames where the driver has no more queues or wants
    as many one way as the other. Each end is the other's neighbour: what comes in and asks nothing is an
    answer."""
    prepare(machine, model)
    for streams in dict.fromkeys((1, min(2, model.most_streams))):
        with machine.engine() as session:
            opened = open_nics(
                session, model.addresses, plan=plan, queues=streams, streams=streams, are_neighbors=True
            )
            has_room = streams < model.most_streams
            queue = model.control_queue if has_room else "shared"
            assert {opened[side]["control_queue"] for side in SIDES} == {queue}, streams
            resolved = session.request("resolve", timeout_s=20)
            assert [resolved[side]["dut_mac"] for side in SIDES] == list(reversed(model.macs))
            give_up = time.monotonic() + 10
            while True:
                counters = session.request("counters")
                for_left, for_right = (
                    counters[side]["port"]["received_frames"] - counters[side]["neighbor"]["requests"]
                    for side in SIDES
                )
                given = [counters[side]["neighbor"]["answers"] for side in reversed(SIDES)]
                if [for_left, for_right] == given and min(given) > 0:
                    break
                assert time.monotonic() < give_up, counters
            session.request("close")


@pytest.mark.parametrize("model", each_of([m for m in MODELS if m.dpdk_driver == "net_virtio"]))
def test_a_virtio_port_is_refused_if_its_host_would_use_queues_that_nobody_reads(
    machine: NicMachine, model: Model
) -> None:
    """Seen before it was refused: with two streams and one receive queue half of what came was lost."""
    if model.most_streams == 1:
        pytest.skip("it has one queue each way")
    prepare(machine, model)
    error = refusal(machine, model.addresses, "engine.bad-request", streams=2)
    assert "2 transmit queues and 1 receive queue;" in error.what
    assert "as many receive queues as streams" in error.next_step


@EACH_MODEL
def test_jumbo_frames_pass_and_larger_ones_than_the_nic_takes_are_refused(
    machine: NicMachine, model: Model
) -> None:
    prepare(machine, model)
    with machine.engine() as session:
        open_nics(session, model.addresses, frame_size=model.jumbo, memory_mb=JUMBO_MEMORY_MB)
        assert_passes(valid_trial(session, rate_fps=RATE_FPS / 10, duration_s=1))
        session.request("close")
    if model.too_large:
        error = refusal(
            machine,
            model.addresses,
            "engine.bad-frame-size",
            frame_size=model.too_large,
            memory_mb=JUMBO_MEMORY_MB,
        )
        assert f"{model.too_large} octets; this port" in error.what


@EACH_MODEL
def test_all_receive_queues_that_a_nic_has_are_read_and_no_more_are_opened(
    machine: NicMachine, model: Model
) -> None:
    """Its hash spreads the flows (RSS); nothing is lost or doubled for it.

    An emulated CPU looks at one queue milliseconds after the other: the order of frames of two queues cannot
    be told (docs/explanation/streams-and-queues.md).
    """
    prepare(machine, model)
    if model.queues > 1:
        with machine.engine() as session:
            open_nics(session, model.addresses, queues=model.queues)
            assert_passes(valid_trial(session, rate_fps=RATE_FPS, duration_s=1), is_order_known=False)
            session.request("close")
    error = refusal(machine, model.addresses, "engine.bad-request", queues=model.most_queues + 1)
    assert f"{model.most_queues + 1} receive and 1 transmit queues;" in error.what
    assert f"has {model.most_queues} and" in error.what


@EACH_MODEL
def test_a_cable_that_is_pulled_makes_the_trial_invalid(machine: NicMachine, model: Model) -> None:
    """Never a loss of the DUT. Plugged in again, the next trial is fine."""
    prepare(machine, model)
    with machine.engine() as session:
        open_nics(session, model.addresses)
        pull = threading.Event()

        def on_event(event: Document) -> None:
            if event.get("phase") == "sending" and not pull.is_set():
                pull.set()
                machine.set_link(model, "left", up=False)

        document = run_trial(session, rate_fps=RATE_FPS / 4, duration_s=3, on_event=on_event)
        assert pull.is_set()
        assert document["verdict"] == "INVALID"
        assert "link" in {reason["code"] for reason in document["reasons"]}, document["reasons"]
        machine.set_link(model, "left", up=True)
        assert_passes(valid_trial(session, trial=2, rate_fps=RATE_FPS, duration_s=1))


@pytest.mark.parametrize("model", each_of([m for m in MODELS if m.name in FLAPPING]))
def test_a_link_that_is_down_for_a_few_milliseconds_makes_the_trial_invalid(
    machine: NicMachine, model: Model
) -> None:
    """The tester looks each millisecond; an emulated CPU misses some. Times that are half as long as the
    20 ms after which it looks at all else, these would see every other one."""
    prepare(machine, model)
    flaps = 20
    with machine.engine() as session:
        open_nics(session, model.addresses)
        found = []
        for trial in range(50, 58):
            down_s: list[float] = []

            def on_event(event: Document, down_s: list[float] = down_s) -> None:
                if event.get("phase") != "sending" or down_s:
                    return
                for _ in range(flaps):
                    began = time.monotonic()
                    machine.set_link(model, "left", up=False)
                    time.sleep(0.003)
                    machine.set_link(model, "left", up=True)
                    down_s.append(time.monotonic() - began)
                    time.sleep(0.05)

            document = run_trial(session, trial=trial, rate_fps=RATE_FPS / 4, duration_s=3, on_event=on_event)
            assert "link" in {reason["code"] for reason in document["reasons"]}, document["reasons"]
            found.append((link_changes(document)["left"] / 2, sum(down_s) / flaps))
            seen, mean_s = found[-1]
            if seen > 0.8 * flaps and mean_s < 0.01:
                break
        else:
            pytest.fail(f"of {flaps} times it saw, with a mean length in s: {found}")
        assert_passes(valid_trial(session, trial=60, rate_fps=RATE_FPS, duration_s=0.5))


@pytest.mark.parametrize("model", each_of([m for m in MODELS if m.name in NEGOTIATING]))
def test_a_cable_that_is_out_for_a_moment_makes_the_trial_invalid(machine: NicMachine, model: Model) -> None:
    """Both changes of the link count: down, and up again once the NIC has negotiated."""
    prepare(machine, model)
    with machine.engine() as session:
        open_nics(session, model.addresses)
        pulled = threading.Event()

        def on_event(event: Document) -> None:
            if event.get("phase") == "sending" and not pulled.is_set():
                pulled.set()
                machine.set_link(model, "left", up=False)
                machine.set_link(model, "left", up=True)

        document = run_trial(session, rate_fps=RATE_FPS / 4, duration_s=4, on_event=on_event)
        assert document["verdict"] == "INVALID"
        assert "link" in {reason["code"] for reason in document["reasons"]}, document["reasons"]
        assert link_changes(document) == {"left": 2, "right": 0}
        assert_passes(valid_trial(session, trial=2, rate_fps=RATE_FPS, duration_s=1))


def test_the_whole_product_makes_a_trial_on_nics(machine: NicMachine) -> None:
    """The testbed file that README shows, with the addresses of this machine."""
    prepare(machine, E1000E)
    ports = "\n".join(
        f'[{side}]\ndevice = "{address}"\ndut_mac = "{mac}"'
        for side, address, mac in zip(SIDES, E1000E.addresses, NOBODY, strict=True)
    )
    tester = '[tester]\ncpus = [1]\nmemory = "512MB"\nhugepages = true'
    machine.run(f"cat >/tmp/nic.toml <<'END'\nisolated_test_environment = true\n{ports}\n{tester}\nEND")
    late = "--overdue-tolerance 99% --longest-overdue 10s --offered-tolerance 10%"  # of an emulated CPU
    for _ in range(5):
        answer = machine.evenhand(
            f"trial /tmp/nic.toml --rate 1kfps --duration 1s --waits short --json --no-run {late}"
        )
        document = json.loads(answer["stdout"])
        trial = document.get("trial", document)
        if trial["verdict"] != "INVALID":
            break
    assert trial["verdict"] == "PASS", trial["reasons"]


def test_without_an_iommu_engine_and_check_say_what_to_switch_on(machine_without_iommu: NicMachine) -> None:
    machine = machine_without_iommu
    machine.reserve_hugepages(HUGEPAGES)
    machine.run(f"modprobe vfio-pci; modprobe {E1000E.kernel_driver}")
    error = refusal(machine, E1000E.addresses, "engine.no-device")
    assert "e1000e" in error.what
    assert "no IOMMU" in error.what
    assert "Switch on the IOMMU" in error.next_step
    vfio = check(machine)["IOMMU/vfio"]
    assert vfio["missing_for"] == ["nics"]
    assert "Enable the IOMMU (VT-d, AMD-Vi)" in vfio["advice"]
