# SPDX-License-Identifier: Apache-2.0
"""What the lab of a virtual machine is made of, without a machine: keys, taps, and processes that are found
again. The rest: tests/vm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from evenhand.cli import lab as verb
from evenhand.cli.main import main
from evenhand.dut.nat import MOST_POOL_ADDRESSES
from evenhand.lab import borrow, lab_down, lab_status, lab_up, state, taps, vm, vm_up
from evenhand.lab.build import LabNames, demolish
from evenhand.lab.machine import machine_processes
from evenhand.lab.namespaces import namespace_path, run_inside
from evenhand.lab.state import RECORD_VERSION
from evenhand.lab.vm import KIND, VmLab
from evenhand.lab.vm_access import HOST, Access, boot_script, make_access
from evenhand.lab.vm_boot import recipe
from evenhand.plan import SideCounts, make_plan
from evenhand.rig.lab_rig import make_lab_setup
from tests.errors import raises

V4 = make_plan("gateway_v4")
TWO, ONE = SideCounts(left=2, right=2), SideCounts(left=1, right=1)
SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labs of this test leave their state here."""
    monkeypatch.setattr(state, "STATE_DIRECTORY", tmp_path)
    return tmp_path


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def make_sleeper(lab: str) -> subprocess.Popen[str]:
    """A process whose command line has the monitor that QEMU of this lab would have."""
    monitor = f"unix:{Access(lab).folder}/monitor.sock,server=on,wait=off"
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, "-qmp", monitor], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def lab_of(name: str, **others: object) -> dict[str, object]:
    """As a record has it."""
    known = {
        "name": name,
        "plan": V4.name,
        "ip_version": 4,
        "dut_cpu": 0,
        "tester_cpus": [1],
        "ssh_port": 2222,
    }
    return {**known, **others}


def test_keys_are_of_this_lab_alone_and_nobody_else_may_read_them(folder: Path) -> None:
    """R6815-01: whoever can log in on this machine cannot log into the machine."""
    access = make_access("vm", 2222)
    assert access.folder.stat().st_mode & 0o777 == 0o700
    assert {name: (access.folder / name).stat().st_mode & 0o77 for name in ("key", "keys.tar")} == {
        "key": 0,
        "keys.tar": 0,
    }
    assert not (access.folder / "host_key").exists()
    first = (access.folder / "key.pub").read_text()
    make_access("vm", 2222)
    assert (access.folder / "key.pub").read_text() != first
    access.remove()
    assert not access.folder.exists()


def test_the_machine_and_this_host_know_each_other_before_they_speak(folder: Path) -> None:
    access = make_access("vm", 4711)
    with tarfile.open(access.disk) as disk:
        files = {
            name: (disk.extractfile(name) or sys.stdin.buffer).read().decode() for name in disk.getnames()
        }
        modes = {entry.name: entry.mode for entry in disk.getmembers()}
    assert files["root/.ssh/authorized_keys"] == (access.folder / "key.pub").read_text().strip() + "\n"
    assert modes["etc/ssh/evenhand_host_key"] == modes["root/.ssh/authorized_keys"] == 0o600
    told = subprocess.run(
        ["ssh", "-G", "-F", str(access.config), HOST], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert {
        "hostname 127.0.0.1",
        "port 4711",
        "user root",
        "identitiesonly yes",
        "stricthostkeychecking true",
    } <= set(told)
    known = (access.folder / "known_hosts").read_text().split()
    public = subprocess.run(
        ["ssh-keygen", "-y", "-f", "/dev/stdin"],
        input=files["etc/ssh/evenhand_host_key"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert known[0] == HOST
    if public.returncode == 0:  # ssh-keygen looks at the mode of what it reads
        assert public.stdout.split()[:2] == known[1:]
    assert access.disk.stat().st_size % 512 == 0


def test_the_boot_script_is_one(tmp_path: Path) -> None:
    script = tmp_path / "boot"
    script.write_text(boot_script())
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert "{" not in boot_script()


def test_without_ssh_the_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with raises("rig.program-missing", match="openssh-client"):
        make_access("vm", 2222)


def test_a_lab_whose_machine_has_ended_is_there_and_says_so(folder: Path) -> None:
    lab = VmLab(
        name="vm",
        plan=V4.name,
        ip_version=4,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
        ssh_port=2222,
    )
    with raises("rig.machine-ended") as refusal:
        lab.check_running()
    assert refusal.value.where == "lab:vm"
    assert "evenhand lab up vm --plan gateway-v4" in refusal.value.next_step
    assert lab.dut_threads() == []


def test_a_name_that_is_none_is_refused() -> None:
    with raises("rig.not-a-lab-name"):
        vm_up(V4, name="a lab")


@pytest.mark.skipif(os.geteuid() == 0, reason="only others than root are refused")
def test_others_than_root_are_told_why(folder: Path) -> None:
    with raises("rig.root-needed", match="taps"):
        vm_up(V4)


@pytest.mark.root
def test_taps_have_queues_and_stay_when_the_machine_is_gone(lab_name: str) -> None:
    names = LabNames(lab_name)
    try:
        queues = taps.make_taps(names, 4, 1500)
        assert [len(side) for side in queues] == [4, 4]
        assert all(not os.get_inheritable(descriptor) for side in queues for descriptor in side)
        taps.close(queues)

        def look() -> dict[str, tuple[str, str, int]]:
            found = {}
            for side in ("left", "right"):
                interface = Path("/sys/class/net", names.tester_interface(side))
                receive = len(list((interface / "queues").glob("rx-*")))
                found[side] = (
                    (interface / "address").read_text().strip(),
                    (interface / "tx_queue_len").read_text().strip(),
                    receive,
                )
            return found

        assert run_inside(names.tester_namespace, look) == {
            "left": ("02:00:00:00:a0:01", "1000", 1),
            "right": ("02:00:00:00:a0:02", "1000", 1),
        }
    finally:
        demolish(names)
    assert not namespace_path(names.tester_namespace).exists()


@pytest.mark.root
def test_a_machine_that_a_killed_run_left_is_swept_with_its_keys(
    lab_name: str, sleepers: list[subprocess.Popen[str]]
) -> None:
    """Known by its command line: no file has to be written in time."""
    record = {"version": RECORD_VERSION, "kind": KIND, "is_complete": False, "lab": lab_of(lab_name)}
    for take_away in (lambda: lab_down(lab_name), lambda: lab_up(V4, name=lab_name)):
        state.write_record(lab_name, record)
        make_access(lab_name, 2222)
        names = LabNames(lab_name)
        taps.close(taps.make_taps(names, 1, 1500))
        sleepers.append(make_sleeper(lab_name))
        other = make_sleeper(f"{lab_name[:6]}x")
        sleepers.append(other)
        assert machine_processes(lab_name) == [sleepers[-2].pid]
        assert lab_status(lab_name) is None
        take_away()
        assert sleepers[-2].wait(10) != 0
        assert machine_processes(lab_name) == []
        assert other.poll() is None
        assert not Access(lab_name).folder.exists()
    assert (status := lab_status(lab_name)) is not None
    assert status.kind == "linux"


@pytest.mark.thorough
@pytest.mark.root
def test_a_machine_that_ignores_sigterm_is_killed(
    lab_name: str, sleepers: list[subprocess.Popen[str]]
) -> None:
    state.write_record(
        lab_name, {"version": RECORD_VERSION, "kind": KIND, "is_complete": False, "lab": lab_of(lab_name)}
    )
    make_access(lab_name, 2222)
    monitor = f"unix:{Access(lab_name).folder}/monitor.sock,server=on,wait=off"
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
    process = subprocess.Popen(
        [sys.executable, "-c", stubborn, "-qmp", monitor], stdout=subprocess.PIPE, text=True
    )
    sleepers.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    started = time.monotonic()
    assert lab_down(lab_name) is True
    assert process.wait(10) == -9
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    ("now", "wish", "stays"),
    [
        ("gateway_v4", "gateway_v6", True),
        ("gateway_v4", "nat44", False),
        ("gateway_v6", "nat44", True),
        ("gateway_v6", "siit", True),
        ("nat44", "nat44", False),
        ("nat44", "gateway_v4", False),
        ("siit", "gateway_v6", False),
    ],
)
def test_a_machine_whose_set_up_would_be_in_the_way_of_a_campaign_is_booted_anew(
    monkeypatch: pytest.MonkeyPatch, now: str, wish: str, stays: bool
) -> None:
    """What a plan that is translated changes is set up over SSH, and so can be taken away again."""
    monkeypatch.setattr(VmLab, "is_running", True)
    lab = VmLab(
        name="vm", plan=now, ip_version=None, hosts=TWO, networks=ONE, dut_cpu=0, tester_cpus=(1,), ssh_port=1
    )
    booted: list[str] = []
    monkeypatch.setattr(borrow, "lab_status", lambda _: lab)
    monkeypatch.setattr(vm, "vm_up", lambda plan, **_: booted.append(plan.name))
    wanted = borrow.LabWish(plan=wish, hosts=TWO, networks=None)
    borrow.BorrowedLab(name="vm").set_up_for(wanted)
    assert (not booted) == stays
    assert booted in ([], ["gateway_v6"] if wish in ("nat44", "siit") else [wish])


def test_a_machine_that_a_campaign_boots_anew_keeps_its_debian(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both for the campaign and when it is given back: its kernel is what is measured."""
    booted: list[tuple[str, str]] = []
    monkeypatch.setattr(VmLab, "is_running", True)
    monkeypatch.setattr(vm, "vm_up", lambda plan, *, suite, **_: booted.append((plan.name, suite)))
    monkeypatch.setattr(borrow, "BORROWED_DIRECTORY", tmp_path)
    before = replace(JOOL, suite="trixie", translator="tayga")
    record = {"version": borrow.VERSION, "before": {"kind": KIND, "lab": asdict(before)}}
    (tmp_path / "vm.json").write_text(json.dumps(record))
    now: list[VmLab] = [before]
    monkeypatch.setattr(borrow, "lab_status", lambda _: now[0])
    lab = borrow.BorrowedLab(name="vm")
    lab.set_up_for(borrow.LabWish(plan="gateway_v4", hosts=TWO, networks=None))
    now[0] = replace(before, suite="")
    lab.give_back()
    assert booted == [("gateway_v4", "trixie"), ("nat64", "trixie")]
    assert before.options == "--plan nat64 --debian trixie"


JOOL = VmLab(
    name="vm",
    plan="nat64",
    ip_version=None,
    hosts=SideCounts(100, 100),
    networks=ONE,
    dut_cpu=0,
    tester_cpus=(1,),
    ssh_port=1,
    translator="jool",
    translator_version="4.1.9.0",
)


def test_a_campaign_takes_no_lab_whose_translator_it_would_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be TAYGA that is measured; a plan that is routed is no translator's business."""
    booted: list[str] = []
    monkeypatch.setattr(VmLab, "is_running", True)
    monkeypatch.setattr(borrow, "lab_status", lambda _: JOOL)
    monkeypatch.setattr(borrow, "lab_before", lambda _: JOOL)
    monkeypatch.setattr(vm, "vm_up", lambda plan, **_: booted.append(plan.name))
    lab = borrow.BorrowedLab(name="vm")
    for plan in ("nat64", "siit"):
        with raises("rig.jool-in-a-campaign") as refusal:
            lab.set_up_for(borrow.LabWish(plan=plan, hosts=TWO, networks=None))
        assert "throughput" in refusal.value.next_step
    lab.set_up_for(borrow.LabWish(plan="gateway_v4", hosts=TWO, networks=None))
    assert booted == ["gateway_v4"]


def test_a_test_has_no_fewer_hosts_than_the_pool_of_jool_has_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It draws from all of them, and the tester would take the others for somebody else's."""
    monkeypatch.setattr(VmLab, "is_running", True)
    make_lab_setup(JOOL, make_plan("nat64", (MOST_POOL_ADDRESSES, 1)))
    with raises("rig.pool-too-large") as refusal:
        make_lab_setup(JOOL, make_plan("nat64", (MOST_POOL_ADDRESSES - 1, 1)))
    assert refusal.value.next_step.endswith("lab up vm --plan nat64 --translator jool --hosts 31,1")
    make_lab_setup(replace(JOOL, hosts=SideCounts(2, 9)), make_plan("nat64", (2, 5)))
    make_lab_setup(replace(JOOL, translator="tayga"), make_plan("nat64", (1, 1)))


def test_only_an_image_with_jool_has_a_compiler_and_others_are_those_of_before() -> None:
    """An image that somebody has made is not made again for what it does not have."""
    without = recipe()
    assert without.key(["deb x"]) == recipe(translator="tayga").key(["deb x"])
    assert "linux-headers-amd64" not in without.packages
    assert recipe("trixie", "jool").name == "lab-router-jool-trixie"
    assert {"linux-headers-amd64", "jool-dkms"} <= set(recipe(translator="jool").packages)


def test_the_status_names_the_translator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(VmLab, "is_running", True)
    lab = replace(JOOL, system="Debian", kernel="6.1", accelerator="kvm")
    monkeypatch.setattr(verb, "lab_status", lambda _: lab)
    assert main(["lab", "status", "vm"]) == 0
    shown = capsys.readouterr().out
    assert "\n  DUT    Debian, Linux 6.1, by KVM, translating by Jool 4.1.9.0\n" in shown
    assert "\n  NAT64  2001:2::/112 to 198.18.0.0/16, ports of its choice\n" in shown
    assert main(["lab", "status", "vm", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["translator"] == lab.facts()["translator"] == "Jool 4.1.9.0"
    assert "nat_ports" not in told
    monkeypatch.setattr(VmLab, "is_running", False)
    with raises("rig.machine-ended") as refusal:
        lab.check_running()
    assert refusal.value.next_step.endswith("lab up vm --plan nat64 --translator jool")


def test_all_programs_that_a_machine_lacks_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of QEMU, of OpenSSH and of the image, which who has none has to make first."""
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    monkeypatch.setattr("shutil.which", lambda *_args, **_keys: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with raises("rig.program-missing") as error:
        vm.check_vm_programs()
    for package in ("qemu-system-x86", "openssh-client", "mmdebstrap", "e2fsprogs"):
        assert package in error.value.what
        assert f" {package}" in error.value.next_step
    (tmp_path / "evenhand" / "images" / f"gateway-{'0' * 16}").mkdir(parents=True)
    with raises("rig.program-missing") as error:
        vm.check_vm_programs()
    assert "mmdebstrap" not in error.value.what
