# SPDX-License-Identifier: Apache-2.0
"""What the Linux lab offers to the tester: an open loop, devices, and an engine inside the tester's
namespace."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from evenhand.lab import LinuxLab, lab_down, lab_status, lab_up, linux_lab
from evenhand.lab.build import OFFLOADS, read_offloads
from evenhand.lab.namespaces import run_inside
from evenhand.plan import AddressPlan, SideCounts, make_mix, make_plan
from tests.errors import raises

V4, V6 = make_plan("gateway_v4"), make_plan("gateway_v6")
LAB = LinuxLab(
    name="linux",
    plan="gateway_v4",
    ip_version=4,
    hosts=SideCounts(1, 1),
    networks=SideCounts(1, 1),
    dut_cpu=0,
    tester_cpus=(1,),
)


def test_device_strings_name_the_testers_ends() -> None:
    assert (
        LAB.device("left")
        == "net_af_xdp0,iface=ehtl-linux,start_queue=0,queue_count=1,force_copy=1,busy_budget=0"
    )
    assert (
        LAB.device("right")
        == "net_af_xdp1,iface=ehtr-linux,start_queue=0,queue_count=1,force_copy=1,busy_budget=0"
    )
    assert LAB.device("right", "af_packet") == "net_af_packet1,iface=ehtr-linux"


def test_interface_names_of_the_longest_lab_name_fit_into_15_characters() -> None:
    lab = LinuxLab(
        name="123456789",
        plan="p",
        ip_version=4,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
    )
    names = {f(side) for f in (lab.tester_interface, lab.dut_interface) for side in ("left", "right")}
    assert len(names) == 4
    assert max(map(len, names)) <= 15


@pytest.mark.parametrize("name", ["", "1234567890", "Linux", "../x", "a b", "-x", "x/y", "é"])
def test_a_name_that_no_interface_can_carry_is_refused(name: str) -> None:
    for attempt in (lambda: lab_up(V4, name=name), lambda: lab_down(name), lambda: lab_status(name)):
        with raises("rig.not-a-lab-name") as refusal:
            attempt()
        assert refusal.value.exit_code == 2


def test_without_root_the_error_says_what_to_do(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        with raises("rig.root-needed") as refusal:
            lab_up(V4, name=lab_name)
        with raises("rig.root-needed"), linux_lab(V4, name=lab_name):
            pass
        assert lab_down(lab_name) is False
        assert lab_status(lab_name) is None
    assert refusal.value.exit_code == 3
    assert "sudo" in refusal.value.next_step


@pytest.mark.root
@pytest.mark.parametrize("plan", [V4, V6], ids=lambda p: p.name)
def test_the_set_up_is_open_loop(plan: AddressPlan, lab_name: str) -> None:
    """A slow DUT must lose frames and not slow the tester: XDP on both DUT ends, NAPI threads on the DUT's
    CPU alone."""
    with linux_lab(plan, name=lab_name) as lab:
        facts = lab.facts()
    for side in ("left", "right"):
        interface = facts["interfaces"][side]
        assert interface["native_xdp"]
        assert list(interface["napi_threads"].values()) == [[lab.dut_cpu]]
        assert interface["rx_flow_hash"] == {"udp4": None, "udp6": None}, "veth has no hash (RSS-02, SEED-49)"


@pytest.mark.root
def test_a_mix_of_gateway_plans_has_both_and_one_of_direct_plans_is_refused(lab_name: str) -> None:
    """R5180-14: addresses and routes of both IP versions; their neighbours would need room in two tables."""
    mix = make_mix("gateway-v4+gateway-v6")
    with linux_lab(mix, name=lab_name) as lab:
        assert lab.plan == "gateway_v4+gateway_v6"
        assert "translator" not in lab.facts()
        for version, network in (("-4", "198.18.0.0/16"), ("-6", "2001:2:0:8000::/64")):
            show = ["ip", "-n", lab.dut_namespace, version, "route", "show", network]
            assert "via" in subprocess.run(show, check=True, capture_output=True, text=True).stdout
    with raises("rig.lab-mix-of-direct-plans"):
        lab_up(make_mix("direct-v4-net24+direct-v6", SideCounts(2, 2)), name=lab_name)


@pytest.mark.root
def test_dut_and_tester_share_no_cpu_where_there_are_two(lab_name: str) -> None:
    allowed = os.sched_getaffinity(0)
    for wish in (None, max(allowed)):
        with linux_lab(V4, name=lab_name, dut_cpu=wish) as lab:
            assert lab.dut_cpu == (min(allowed) if wish is None else wish)
            assert set(lab.tester_cpus) == (allowed - {lab.dut_cpu} or {lab.dut_cpu})


@pytest.mark.root
@pytest.mark.parametrize("cpu", [-1, 100_000])
def test_a_cpu_that_does_not_exist_is_refused(lab_name: str, cpu: int) -> None:
    with raises("rig.no-such-cpu", match=f"CPU {cpu} "):
        lab_up(V4, name=lab_name, dut_cpu=cpu)
    assert lab_status(lab_name) is None


@pytest.mark.root
def test_the_testers_ends_are_silent_and_alter_no_frame(lab_name: str) -> None:
    """R6815-02: the tester is the only sender on its side; no address, no IPv6, nothing left for a NIC to
    fill in."""
    with linux_lab(V6, name=lab_name) as lab:
        for side in ("left", "right"):
            interface = lab.tester_interface(side)
            show = subprocess.run(
                ["ip", "-n", lab.tester_namespace, "address", "show", interface],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            assert "inet" not in show
            assert ",UP,LOWER_UP" in show
            offloads = run_inside(lab.tester_namespace, partial(read_offloads, interface))
            assert offloads == dict.fromkeys(OFFLOADS, False)


def host_mounts() -> list[str]:
    """But for network namespaces, which other tests make and remove meanwhile."""
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if " nsfs " not in line]


@pytest.mark.root
def test_the_engine_runs_inside_the_testers_namespace_and_is_the_process_started(lab_name: str) -> None:
    """What kills the process kills the engine, so no engine outlives its run; a bpffs is there for AF_XDP,
    and only for it."""
    with linux_lab(V4, name=lab_name) as lab:
        script = "ls /sys/class/net; grep -c '/sys/fs/bpf bpf' /proc/self/mounts; echo $$; exec cat"
        before = host_mounts()
        with subprocess.Popen(
            [*lab.engine_command(Path("/bin/sh")), "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as engine:
            assert engine.stdout is not None
            seen = [engine.stdout.readline().strip() for _ in range(5)]
            assert seen == [
                lab.tester_interface("left"),
                lab.tester_interface("right"),
                "lo",
                "1",
                str(engine.pid),
            ]
            assert host_mounts() == before
            engine.kill()
        assert engine.returncode == -9


@pytest.mark.root
def test_a_lab_that_is_gone_is_a_host_error(lab_name: str) -> None:
    lab = lab_up(V4, name=lab_name)
    lab_down(lab_name)
    for attempt in (lab.neighbors, lab.facts, lambda: lab.set_forwarding(True)):
        with raises("rig.kernel-refuses") as refusal:
            attempt()
        assert refusal.value.where == lab.dut_namespace
