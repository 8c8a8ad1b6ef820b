# SPDX-License-Identifier: Apache-2.0
"""A lab comes and goes without a trace, however its process ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.lab import build as lab_build
from evenhand.lab import lab_down, lab_status, lab_up, linux_lab, state
from evenhand.lab.namespaces import make_namespace, namespace_path, remove_namespace, run_inside
from evenhand.lab.napi import napi_threads
from evenhand.plan import SIDES, make_plan
from tests.errors import raises
from tests.lab.lab_holder import holder

pytestmark = pytest.mark.root
V4, V6 = make_plan("gateway_v4"), make_plan("gateway_v6")
GUARD_S = 30
RTMGRP_LINK = 1


def remains(name: str) -> list[str]:
    """Whatever is there of the lab: names of namespaces, files and kernel threads."""
    names = lab_build.LabNames(name)
    found = [n for n in (names.tester_namespace, names.dut_namespace) if namespace_path(n).exists()]
    found += [p.name for p in state.STATE_DIRECTORY.glob(f"{name}.*")]
    return found + [f"napi {pid}" for side in SIDES for pid in napi_threads(names.dut_interface(side))]


def host_network() -> dict[str, str]:
    """Links, addresses, routes and sysctls of the host's own namespace."""
    facts = {}
    for command in ("link", "address", "-4 route", "-6 route", "rule"):
        facts[command] = subprocess.run(
            ["ip", *command.split()], check=True, capture_output=True, text=True
        ).stdout
    for path in (
        p
        for folder in ("ipv4", "ipv6", "core")
        for p in Path("/proc/sys/net", folder).rglob("*")
        if p.is_file()
    ):
        try:
            facts[str(path)] = path.read_text()
        except OSError:
            continue  # write-only
    return facts


def test_a_lab_can_go_up_and_down_and_up_again(lab_name: str) -> None:
    assert lab_status(lab_name) is None
    assert lab_down(lab_name) is False
    for plan in (V4, V6):
        lab = lab_up(plan, name=lab_name)
        assert lab_status(lab_name) == lab
        assert lab_down(lab_name) is True
        assert lab_down(lab_name) is False
        assert lab_status(lab_name) is None
        assert remains(lab_name) == []


def test_another_plan_replaces_the_lab_of_that_name(lab_name: str) -> None:
    lab_up(V4, name=lab_name)
    lab_up(V6, name=lab_name)
    lab = lab_status(lab_name)
    assert lab is not None
    assert (lab.plan, lab.ip_version) == ("gateway_v6", 6)
    assert lab.facts()["sysctls"]["net.ipv6.conf.all.forwarding"] == "1"
    assert lab.facts()["sysctls"]["net.ipv4.ip_forward"] == "0"


def test_labs_of_two_names_stand_side_by_side(lab_name: str, other_lab_name: str) -> None:
    with linux_lab(V4, name=lab_name) as lab:
        with linux_lab(V4, name=other_lab_name) as other:
            assert [lab_status(lab_name), lab_status(other_lab_name)] == [lab, other]
            assert [len(napi_threads(one.dut_interface("left"))) for one in (lab, other)] == [1, 1]
        assert lab_status(lab_name) == lab
        assert lab.facts()["interfaces"]["right"]["native_xdp"]
    assert remains(lab_name) == remains(other_lab_name) == []


def test_the_hosts_own_network_is_the_same_before_during_and_after(lab_name: str) -> None:
    """R6815-01: no end of the lab is ever in the host's namespace, where other traffic could meet it."""
    before = host_network()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as monitor:
        monitor.bind((0, RTMGRP_LINK))
        for plan in (V4, V6):
            with linux_lab(plan, name=lab_name) as lab:
                assert host_network() == before
                lab.set_forwarding(False)
        assert host_network() == before
        monitor.setblocking(False)
        seen = b""
        while True:
            try:
                seen += monitor.recv(65536)
            except BlockingIOError:
                break
    assert lab_name.encode() not in seen


def test_an_exception_takes_the_lab_down(lab_name: str) -> None:
    with pytest.raises(ZeroDivisionError), linux_lab(V4, name=lab_name):
        _ = 1 / 0
    assert remains(lab_name) == []


def test_control_c_takes_the_lab_down(lab_name: str) -> None:
    process = holder(lab_name)
    process.send_signal(signal.SIGINT)
    process.wait(GUARD_S)
    assert remains(lab_name) == []


def test_what_a_killed_run_leaves_is_replaced_by_the_next(lab_name: str) -> None:
    process = holder(lab_name)
    process.kill()
    process.wait(GUARD_S)
    assert remains(lab_name) != []
    with linux_lab(V6, name=lab_name) as lab:
        assert lab_status(lab_name) == lab
        assert lab.facts()["interfaces"]["left"]["native_xdp"]
    assert remains(lab_name) == []


def test_what_a_killed_run_leaves_can_be_taken_down(lab_name: str) -> None:
    process = holder(lab_name)
    process.kill()
    process.wait(GUARD_S)
    assert lab_down(lab_name) is True
    assert remains(lab_name) == []


@pytest.mark.parametrize(
    "stage", ["no namespace", "a name without a namespace", "one namespace", "a record cut off"]
)
def test_a_run_killed_half_way_through_set_up_is_no_obstacle(lab_name: str, stage: str) -> None:
    state.write_record(lab_name, {"version": 1, "is_complete": False, "lab": {}})
    names = lab_build.LabNames(lab_name)
    if stage == "a name without a namespace":
        namespace_path(names.dut_namespace).parent.mkdir(exist_ok=True)
        namespace_path(names.dut_namespace).touch()
    elif stage != "no namespace":
        make_namespace(names.dut_namespace)
    if stage == "a record cut off":
        state.record_path(lab_name).write_text('{"version": 1, "lab"')
    assert lab_status(lab_name) is None
    with linux_lab(V4, name=lab_name) as lab:
        assert lab_status(lab_name) == lab
    assert remains(lab_name) == []


def test_a_lab_in_use_is_neither_replaced_nor_removed_by_others(lab_name: str) -> None:
    """Else a second run would pull the DUT from under a trial of the first."""
    process = holder(lab_name)
    try:
        for attempt in (lambda: lab_up(V4, name=lab_name), lambda: lab_down(lab_name)):
            with raises("rig.lab-in-use", match=f"process {process.pid}"):
                attempt()
        assert lab_status(lab_name) is not None
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(GUARD_S)


def test_a_process_left_inside_does_not_keep_the_links_alive(lab_name: str) -> None:
    lab = lab_up(V4, name=lab_name)
    process = subprocess.Popen(
        ["nsenter", f"--net={namespace_path(lab.tester_namespace)}", "cat"], stdin=subprocess.PIPE
    )
    own = os.stat("/proc/self/ns/net").st_ino
    while os.stat(f"/proc/{process.pid}/ns/net").st_ino == own:
        assert process.poll() is None
    try:
        lab_down(lab_name)
        devices = Path(f"/proc/{process.pid}/net/dev").read_text()
        assert "lo:" in devices
        assert lab_name not in devices
        assert remains(lab_name) == []
    finally:
        process.communicate()


def test_a_namespace_of_somebody_else_is_not_touched(lab_name: str) -> None:
    """Only what a record says we made is ours, whatever its name."""
    namespace = lab_build.LabNames(lab_name).dut_namespace
    make_namespace(namespace)
    try:
        for attempt in (lambda: lab_up(V4, name=lab_name), lambda: lab_down(lab_name)):
            with raises("rig.namespace-not-ours") as refusal:
                attempt()
            assert refusal.value.where == namespace
        assert run_inside(namespace, lambda: Path("/sys/class/net/lo").exists())
    finally:
        remove_namespace(namespace)


def test_a_refusal_half_way_leaves_nothing(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(interface: str, cpu: int) -> None:
        raise HostError("no threaded NAPI", code="rig.no-threaded-napi", where=interface)

    monkeypatch.setattr(lab_build, "pin_napi", refuse)
    with raises("rig.no-threaded-napi"):
        lab_up(V4, name=lab_name)
    assert remains(lab_name) == []


def test_the_record_is_readable_by_everybody(lab_name: str) -> None:
    """`lab status` needs no root."""
    lab_up(V4, name=lab_name)
    path = state.record_path(lab_name)
    assert path.stat().st_mode & 0o444 == 0o444
    assert json.loads(path.read_text())["lab"]["plan"] == "gateway_v4"
