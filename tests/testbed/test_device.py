# SPDX-License-Identifier: Apache-2.0
"""Drivers, their keys and DPDK's options by an allow-list: what runs commands, leaves the lab or overwrites
files is refused (SEED-80)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.testbed import (
    HostNetwork,
    check_device,
    check_eal_arguments,
    make_testbed,
    read_device,
    resources_of,
)
from tests.errors import raises

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden" / "devices.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
NETWORK = HostNetwork(frozenset({"lo", "p0", "d0"}), {"p0": "it carries a default route"})
TESTERS = {"cpus": [0]}


def refusal(line: dict[str, Any]) -> EvenhandError | None:
    try:
        if "device" in line:
            read_device(line["device"], where="left.device")
        else:
            check_eal_arguments(line["eal"], where="tester.extra_eal_arguments")
    except EvenhandError as error:
        return error
    return None


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line.get("device", line.get("eal")))[:60])
def test_both_halves_allow_and_refuse_the_same(line: dict[str, Any]) -> None:
    """SEED-80, R6815-01: the engine's C++ tests read the same lines."""
    error = refusal(line)
    if line["is_allowed"]:
        assert error is None
    else:
        assert isinstance(error, RequestError)
        assert error.what
        assert error.where
        assert error.next_step


@pytest.mark.parametrize(
    "device",
    [
        "net_af_packet_left,iface=p0",
        "net_af_packetX,iface=p0",
        "net_af_xdp0,iface=p0",
        "net_pcap0,rx_iface=d0,tx_iface=p0",
        "net_pcap0,tx_iface=p0,rx_iface=d0",
        "net_pcap0,rx_iface_in=p0",
        "net_tapX,iface=p0",
        "net_virtio_user0,path=/dev/vhost-net,iface=p0",
    ],
)
def test_every_key_that_names_an_interface_is_held_against_the_default_route(device: str) -> None:
    """R6815-01: by DPDK's way of matching names, and whichever key it is."""
    with raises("rig.not-isolated", match="p0"):
        check_device(device, NETWORK, where="left.device")


def test_files_of_a_port_are_never_overwritten(tmp_path: Path) -> None:
    there, link, no_socket = tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path / "c"
    there.write_text("kept")
    link.symlink_to(tmp_path / "nothing")
    no_socket.write_text("kept")
    for device, code in (
        (f"net_pcap0,tx_pcap={there}", "rig.file-exists"),
        (f"net_pcap0,tx_pcap={link}", "rig.file-exists"),
        (f"net_pcap0,rx_pcap={tmp_path / 'missing.pcap'}", "rig.capture-missing"),
        (f"net_pcap0,rx_pcap={tmp_path}", "rig.capture-missing"),
        (f"net_memif0,role=server,socket={no_socket},socket-abstract=no", "rig.not-a-socket"),
        (f"net_vhost0,iface={no_socket}", "rig.not-a-socket"),
        ("net_virtio_user0,path=/dev/null", "rig.not-a-socket"),
    ):
        with raises(code):
            check_device(device, NETWORK, where="left.device")
    check_device(f"net_pcap0,rx_pcap={there},tx_pcap={tmp_path / 'new.pcap'}", NETWORK, where="left.device")


@pytest.mark.parametrize(
    "arguments", ["framesz=3000", "blocksz=16384,framesz=9216", "framesz=4608", "framesz=0"]
)
def test_a_packet_ring_whose_blocks_hold_no_whole_frames_is_refused(arguments: str) -> None:
    """DPDK would say no more than that the device does not open."""
    with raises("rig.device-blocks", match=r"framesz=\d+.* blocksz=\d+") as refused:
        read_device(f"net_af_packet0,iface=d0,{arguments}", where="left.device")
    assert refused.value.where == "left.device"
    for right in ("", ",blocksz=16384,framesz=16384", ",blocksz=8192", ",framesz=4096"):
        read_device(f"net_af_packet0,iface=d0{right}")


def test_a_testbed_tells_why_a_device_or_an_option_is_refused_and_what_to_write() -> None:
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0"},
        "right": {"device": "net_ring1"},
        "tester": TESTERS,
    }
    make_testbed(document, where="lab.toml")
    with raises("rig.driver-refused") as refused:
        make_testbed(
            {**document, "left": {"device": "net_failsafe0,exec(touch /tmp/x; echo net_null7)"}},
            where="lab.toml",
        )
    assert refused.value.where == "lab.toml: left.device"
    assert "runs shell commands" in refused.value.what
    assert "net_memif" in refused.value.next_step
    with raises("rig.eal-argument-refused") as refused:
        make_testbed(
            {**document, "tester": {**TESTERS, "extra_eal_arguments": ["--vdev=net_ring0"]}}, where="lab.toml"
        )
    assert refused.value.where == "lab.toml: tester.extra_eal_arguments"
    assert "left.device" in refused.value.next_step


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        ("net_pcap0,tx_pcap=a.pcap", "net_pcap0,tx_pcap=b.pcap", "rig.same-device-twice"),
        ("0000:01:00.0", "01:00.0", "rig.same-device-twice"),
        ("net_af_packet0,iface=d0", "net_af_xdp0,iface=d0", "rig.ports-share-a-resource"),
        ("net_pcap0,tx_pcap=a.pcap", "net_pcap1,tx_pcap=./a.pcap", "rig.ports-share-a-resource"),
        (
            "net_memif0,role=client,socket=/tmp/a,socket-abstract=no",
            "net_memif1,role=client,socket=/tmp/../tmp/a,socket-abstract=no",
            "rig.ports-share-a-resource",
        ),
    ],
)
def test_both_sides_never_stand_on_one_port_unasked(left: str, right: str, code: str) -> None:
    document = {
        "isolated_test_environment": True,
        "left": {"device": left},
        "right": {"device": right},
        "tester": TESTERS,
    }
    with raises(code):
        make_testbed(document, where="lab.toml")


def test_a_port_is_one_thing_however_it_is_written(tmp_path: Path) -> None:
    """What is locked: the device and not its text; with its network namespace where names differ from one to
    the next."""

    def keys(device: str) -> list[str]:
        return [resource.key for resource in resources_of(device)]

    cable = f"socket={tmp_path}/a,socket-abstract=no"
    assert (
        keys("net_af_packet0,iface=d0")
        == keys("net_af_xdp_left,iface=d0,force_copy=1")
        == keys("net_pcap0,tx_iface=d0")
    )
    assert keys("0000:0A:00.0") == keys("0a:00.0") == ["pci 0000:0a:00.0"]
    assert keys(f"net_memif0,role=client,{cable}") == keys(f"net_memif7,id=0,{cable}")
    assert keys(f"net_memif0,role=client,{cable}") != keys(f"net_memif0,role=server,{cable}")
    assert keys(f"net_memif0,id=1,{cable}") != keys(f"net_memif0,id=2,{cable}")
    assert keys("net_null0") == keys("net_ring0") == keys("net_pcap0,rx_pcap=a.pcap") == []
    assert keys(f"net_pcap0,tx_pcap={tmp_path}/b/../a.pcap") == [f"file {tmp_path}/a.pcap"]
    elsewhere = tmp_path / "namespace"
    elsewhere.touch()
    assert resources_of("net_af_packet0,iface=d0", namespace=elsewhere) != resources_of(
        "net_af_packet0,iface=d0"
    )


@pytest.mark.parametrize(
    ("device", "next_step"),
    [
        (
            "eth0",
            "net_af_packet0,iface=eth0 (net_af_packet1 for the other port); for a NIC that belongs to"
            " DPDK, write its PCI address",
        ),
        ("enp1s0f0np0", "net_af_packet0,iface=enp1s0f0np0"),
        ("af_packet", "Did you mean net_af_packet?"),
        ("memif0", "Did you mean net_memif?"),
        ("0000:01:00", "Write a PCI address in full, such as 0000:01:00.0"),
    ],
)
def test_a_port_by_another_name_is_told_how_it_is_written(device: str, next_step: str) -> None:
    """Whoever names an interface as the kernel does has it there, and knows no driver of DPDK."""
    with raises("rig.not-a-device") as refused:
        read_device(device)
    assert next_step in refused.value.next_step
