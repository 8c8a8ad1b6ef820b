# SPDX-License-Identifier: Apache-2.0
"""DUTs without a shell, set up over SSH and put back: OpenSSH's server in a namespace of ours, and simulated
devices behind it (simulated_device.py)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from evenhand.cli.main import main
from tests.dut.namespace_dut import TESTBED, NamespaceDut, namespace_dut, wait_until, why_not

pytest.importorskip("scrapli", reason="needs evenhand[devices]")
pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

Config = list[list[str]]
SYSTEMS: dict[str, tuple[list[str], Config]] = {
    "cisco-ios": (
        ["GigabitEthernet0/0/0", "GigabitEthernet0/0/1", "GigabitEthernet0/0/2", "GigabitEthernet0/0/3"],
        [
            ["hostname r1"],
            ["interface GigabitEthernet0/0/0"],
            ["interface GigabitEthernet0/0/0", "description theirs"],
            ["interface GigabitEthernet0/0/0", "ip address 172.16.0.1 255.255.255.0"],
            ["interface GigabitEthernet0/0/0", "shutdown"],
            ["interface GigabitEthernet0/0/1"],
            ["interface GigabitEthernet0/0/1", "shutdown"],
            ["interface GigabitEthernet0/0/2"],
            ["interface GigabitEthernet0/0/3"],
            ["interface GigabitEthernet0/0/4"],
            ["interface GigabitEthernet0/0/4", "ip address 192.0.2.2 255.255.255.0"],
            ["no ip routing"],
            ["ip route 203.0.113.0 255.255.255.0 192.0.2.1"],
        ],
    ),
    "arista-eos": (
        ["Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4"],
        [
            ["interface Ethernet1"],
            ["interface Ethernet1", "switchport access vlan 10"],
            ["interface Ethernet2"],
            ["interface Ethernet2", "shutdown"],
            ["interface Ethernet3"],
            ["interface Ethernet4"],
            ["interface Management0"],
            ["interface Management0", "ip address 192.0.2.2/24"],
            ["no ip routing"],
            ["ip route 203.0.113.0/24 192.0.2.1"],
        ],
    ),
    "junos": (
        ["ge-0/0/0", "ge-0/0/1", "ge-0/0/2", "ge-0/0/3"],
        [
            ["set interfaces fxp0 unit 0 family inet address 192.0.2.2/24"],
            ["set interfaces ge-0/0/1 description theirs"],
            ["set routing-options static route 203.0.113.0/24 next-hop 192.0.2.1"],
        ],
    ),
    "vyos": (
        ["eth1", "eth2", "eth3", "eth4"],
        [
            ["set interfaces ethernet eth0 address '192.0.2.2/24'"],
            ["set interfaces ethernet eth1 hw-id '02:00:00:00:00:01'"],
            ["set interfaces ethernet eth2 hw-id '02:00:00:00:00:02'"],
            ["set protocols static route 203.0.113.0/24 next-hop 192.0.2.1 interface 'eth0'"],
        ],
    ),
    "srlinux": (
        ["ethernet-1/1", "ethernet-1/2", "ethernet-1/3", "ethernet-1/4"],
        [
            ["set / interface ethernet-1/1 admin-state enable"],
            ["set / interface mgmt0 subinterface 0 ipv4 address 192.0.2.2/24"],
            ["set / network-instance mgmt interface mgmt0.0"],
        ],
    ),
    "routeros": (
        ["ether2", "ether3", "ether4", "ether5"],
        [
            ["/ip address add address=192.0.2.2/24 interface=ether1"],
            ["/ip address add address=172.16.0.1/24 comment=theirs interface=ether2"],
            ["/ip settings set ip-forward=no"],
        ],
    ),
}
MANAGEMENT = {
    "cisco-ios": "GigabitEthernet0/0/4",
    "arista-eos": "Management0",
    "junos": "fxp0",
    "vyos": "eth0",
    "srlinux": "mgmt0",
    "routeros": "ether1",
}
SHOWN = ("cisco-ios", "junos")
"""One that takes each line at once and one that commits: those of `make test`."""
TRIED_FIRST = ("arista-eos", "junos", "vyos", "srlinux")
"""Those that have a commit to be confirmed."""


@dataclass
class Device:
    """One that a test has to itself."""

    dut: NamespaceDut
    system: str

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.dut.folder / "device.json").read_text())  # type: ignore[no-any-return]

    def update(self, **values: Any) -> None:
        """What a test wants of it, or does there by hand."""
        path = self.dut.folder / "device.json"
        new = path.with_suffix(".mine")
        new.write_text(json.dumps(self.state | values))
        new.replace(path)

    @property
    def config(self) -> Config:
        return self.state["config"]  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        return "\n".join(": ".join(line) for line in self.config)

    def testbed(self, left: int = 0, right: int = 1, *, name_of_left: str | None = None) -> str:
        ports = SYSTEMS[self.system][0]
        path = self.dut.folder / "lab.toml"
        path.write_text(
            TESTBED.replace('os = "linux"', f'os = "{self.system}"')
            .replace('"left"', f'"{name_of_left or ports[left]}"')
            .replace('"right"', f'"{ports[right]}"')
        )
        return str(path)


def thorough_but_shown(systems: Iterable[str]) -> list[Any]:
    """Those that `make test` leaves out have tests without SSH of all that they print and answer."""
    return [
        system if system in SHOWN else pytest.param(system, marks=pytest.mark.thorough) for system in systems
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    folder = tmp_path_factory.mktemp("dut")
    program = Path(__file__).with_name("simulated_device.py")
    with namespace_dut(folder, instead_of_shell=f"{sys.executable} -S -E {program} {folder}") as dut:
        # A user's name with options, which RouterOS takes, is none of this server's.
        (folder / "bin" / "ssh").write_text(
            f'#!/bin/sh\necho "$*" >> {folder}/calls\n'
            'for word; do shift; set -- "$@" "${word%+ct511w4098h}"; done\n'
            f'exec ip netns exec {dut.tester} {shutil.which("ssh")} -F {folder / "ssh.conf"} "$@"\n'
        )
        yield dut


def device_of(made: NamespaceDut, system: str) -> Device:
    for record in (made.folder / "state").rglob("*.device.json*"):
        record.unlink()
    config = SYSTEMS[system][1]
    ports = [*SYSTEMS[system][0], MANAGEMENT[system]]
    state = {"os": system, "config": config, "saved": config, "pending": None, "log": [], "ports": ports}
    (made.folder / "device.json").write_text(json.dumps(state))
    return Device(made, system)


@pytest.fixture(params=thorough_but_shown(SYSTEMS))
def device(made: NamespaceDut, request: pytest.FixtureRequest) -> Iterator[Device]:
    """As it was before, whatever a test has done to it."""
    found = device_of(made, request.param)
    yield found
    assert as_set(found.config) == as_set(SYSTEMS[found.system][1])
    assert not list((made.folder / "state").rglob("*.device.json*"))


@pytest.fixture(params=thorough_but_shown(TRIED_FIRST))
def trying(made: NamespaceDut, request: pytest.FixtureRequest) -> Device:
    return device_of(made, request.param)


def as_set(config: Config) -> set[tuple[str, ...]]:
    return {tuple(line) for line in config}


def run(device: Device, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process, which saves the start of another."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, device.dut.environment),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        code = main(["dut", *arguments])
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def test_set_up_is_told_held_and_put_back(device: Device) -> None:
    """Both IP versions, each read back; a second set-up waits for the undo of the first."""
    testbed = device.testbed()
    checked = run(device, "check", testbed, "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["held"] is None
    applied = run(device, "apply", testbed, "--plan", "gateway-v4+gateway-v6")
    assert applied.returncode == 0, applied.stderr
    for wanted in ("10.0.0.1", "198.18.0.0", "10.0.1.2", "2001:2:0:9000::1/64", "2001:2:0:8000::/64"):
        assert wanted in device.text
    assert device.state["pending"] is None
    told = json.loads(run(device, "status", testbed, "--json").stdout)
    assert (told["os"], told["held"]["plan"]) == (device.system, "gateway-v4+gateway-v6")
    again = run(device, "apply", testbed, "--plan", "gateway-v4")
    assert again.returncode == 3
    assert "already set up for gateway-v4+gateway-v6" in again.stderr
    undone = run(device, "undo", testbed)
    assert undone.returncode == 0, undone.stderr
    assert "is restored" in undone.stdout
    assert "nothing to restore" in run(device, "undo", testbed).stdout


@pytest.mark.thorough
def test_a_second_run_with_other_ports(device: Device) -> None:
    """It waits for the undo of the first, which any testbed of this DUT may ask for."""
    assert run(device, "apply", device.testbed(), "--plan", "gateway-v6").returncode == 0
    other = device.testbed(2, 3)
    assert "already set up" in run(device, "apply", other, "--plan", "gateway-v6").stderr
    assert run(device, "undo", other).returncode == 0
    assert as_set(device.config) == as_set(SYSTEMS[device.system][1])
    again = run(device, "apply", other, "--plan", "gateway-v6")
    assert again.returncode == 0, again.stderr
    names = SYSTEMS[device.system][0]
    of_routes = [line for line in device.text.splitlines() if names[2] in line]
    assert any("2001:2:0:1000::1/64" in line for line in of_routes)
    assert run(device, "undo", other).returncode == 0


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["applied", "by hand"])
def test_what_others_set_meanwhile_stays(device: Device, first: str) -> None:
    """Set-ups of one IP version each, one of them by hand, undone in any order; and a route, and a text of
    the interface itself."""
    testbed = device.testbed()
    theirs: Config = {
        "cisco-ios": [
            ["interface GigabitEthernet0/0/1", "description new"],
            ["ip route 0.0.0.0 0.0.0.0 192.0.2.9"],
        ],
        "arista-eos": [["interface Ethernet2", "description new"], ["ip route 0.0.0.0/0 192.0.2.9"]],
        "junos": [
            ["set interfaces ge-0/0/0 description new"],
            ["set routing-options static route 0.0.0.0/0 next-hop 192.0.2.9"],
        ],
        "vyos": [
            ["set interfaces ethernet eth2 description 'new'"],
            ["set protocols static route 0.0.0.0/0 next-hop 192.0.2.9 interface 'eth0'"],
        ],
        "srlinux": [
            ["set / interface ethernet-1/2 subinterface 0 description new"],
            ["set / network-instance default static-routes route 0.0.0.0/0 next-hop-group theirs"],
        ],
        "routeros": [["/ip route add dst-address=0.0.0.0/0 gateway=192.0.2.9"]],
    }[device.system]
    before = device.config
    assert run(device, "apply", testbed, "--plan", "gateway-v6").returncode == 0
    of_ipv6 = [line for line in device.config if line not in before]
    assert run(device, "undo", testbed).returncode == 0
    if first == "applied":
        assert run(device, "apply", testbed, "--plan", "gateway-v4").returncode == 0
        of_both = [line for line in of_ipv6 if line not in device.config]
        device.update(config=[*device.config, *theirs, *of_both])
    else:
        by_hand = [*before, *theirs, *of_ipv6]
        device.update(config=by_hand, saved=by_hand)
        assert run(device, "apply", testbed, "--plan", "gateway-v4").returncode == 0
    undone = run(device, "undo", testbed)
    assert undone.returncode == 0, undone.stderr
    left = as_set(device.config)
    assert as_set(theirs) <= left
    assert "198.18.0.0" not in device.text
    assert "10.0.0.1" not in device.text
    assert "2001:2:0:8000::/64" in device.text
    device.update(config=before, saved=before)


def test_a_line_that_is_refused_is_named_and_all_before_it_undone(device: Device) -> None:
    device.update(refuse=r"198\.19\.0\.0")
    refused = run(device, "apply", device.testbed(), "--plan", "gateway-v4+gateway-v6")
    assert refused.returncode == 3
    assert "did not accept the set-up: line " in refused.stderr
    assert "198.19.0.0" in refused.stderr
    assert "the set-up was undone" in refused.stderr


def test_what_is_not_so_afterwards_is_named_and_undone(device: Device) -> None:
    """Each line was taken, and a route is not there."""
    device.update(hide=r"2001:2:0:8000::/64")
    with patch("evenhand.dut.device_setup.READ_BACK_S", 0.0):
        refused = run(device, "apply", device.testbed(), "--plan", "gateway-v6")
    assert refused.returncode == 3
    assert "does not show, or not alone: '2001:2:0:8000::/64" in refused.stderr


def test_a_commit_that_fails_leaves_nothing(trying: Device) -> None:
    trying.update(fail_commit="confirm|timer")
    refused = run(trying, "apply", trying.testbed(), "--plan", "gateway-v4")
    assert refused.returncode == 3
    assert "'commit" in refused.stderr
    assert trying.config == SYSTEMS[trying.system][1]


def stopped_at(device: Device, expression: str, number: signal.Signals) -> int:
    """`dut apply`, which gets this signal when the device has got this line, to which it does not answer, or
    not soon."""
    device.update(**{"hang" if number == signal.SIGKILL else "slow": expression})
    started = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "dut", "apply", device.testbed(), "--plan", "gateway-v4"],
        env=device.dut.environment,
        cwd=device.dut.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any(re.search(expression, line) for line in device.state["log"]), "it does not come")
    started.send_signal(number)
    code = started.wait()
    device.update(hang=None, slow=None)
    return code


@pytest.mark.parametrize("system", ["junos", pytest.param("cisco-ios", marks=pytest.mark.thorough)])
def test_what_is_stopped_by_hand_is_put_back(made: NamespaceDut, system: str) -> None:
    """Ctrl-C in the middle, while the device is at a line."""
    device = device_of(made, system)
    assert stopped_at(device, r"198\.19\.0\.0", signal.SIGINT) == 130
    assert as_set(device.config) == as_set(SYSTEMS[system][1])
    assert not list((made.folder / "state").rglob("*.device.json*"))


def test_what_was_killed_in_the_middle_is_put_back(device: Device) -> None:
    """kill -9 after the first lines: what the device was is written on this machine."""
    stopped_at(device, r"198\.19\.0\.0", signal.SIGKILL)
    assert ("10.0.0.1" in device.text) == (device.system not in TRIED_FIRST)
    undone = run(device, "undo", device.testbed())
    assert undone.returncode == 0, undone.stderr
    assert "is restored" in undone.stdout


READ_BACK = {
    "arista-eos": "show ip route static",
    "junos": "show route protocol static",
    "vyos": "show ip route static",
    "srlinux": "route-table ipv4",
}


@pytest.mark.parametrize("over", [False, True], ids=["within the trial", "after it"])
def test_what_was_killed_before_it_was_kept(trying: Device, over: bool) -> None:
    """kill -9 after the commit and before its confirmation: the device takes it back when the time is over;
    the undo does so at once."""
    stopped_at(trying, READ_BACK[trying.system], signal.SIGKILL)
    pending = trying.state["pending"]
    assert pending is not None
    assert "198.19.0.0" in trying.text
    if over:
        trying.update(pending=pending | {"until": 0})
    undone = run(trying, "undo", trying.testbed())
    assert undone.returncode == 0, undone.stderr
    assert as_set(trying.config) == as_set(SYSTEMS[trying.system][1])
    assert trying.state["pending"] is None
    assert not list((trying.dut.folder / "state").rglob("*.device.json*"))


def test_an_interface_that_cannot_be_is_refused(device: Device) -> None:
    for left, said in (
        (MANAGEMENT[device.system], "carries the SSH connection"),
        ("eth77", "no interface 'eth77'"),
    ):
        for verb in ("check", "apply"):
            refused = run(device, verb, device.testbed(name_of_left=left))
            assert refused.returncode == 2, refused.stderr
            assert said in refused.stderr


@pytest.mark.parametrize("system", ["cisco-ios", "vyos", "routeros"])
def test_a_nat_is_set_and_put_back(made: NamespaceDut, system: str) -> None:
    """With the timeouts that were there; on IOS, while its table is in use."""
    device = device_of(made, system)
    timeouts = ["/ip firewall connection tracking set udp-timeout=20s"]
    before = [*device.config, *([timeouts] if system == "routeros" else [])]
    device.update(config=before, saved=before)
    applied = run(device, "apply", device.testbed(), "--plan", "nat44")
    assert applied.returncode == 0, applied.stderr
    assert re.search(r"10\.16\.0\.0.*198\.18\.0\.0", device.text, re.DOTALL)
    assert "3600" in device.text
    device.update(in_use=True)
    undone = run(device, "undo", device.testbed())
    assert undone.returncode == 0, undone.stderr
    assert as_set(device.config) == as_set(before)


def test_a_hash_is_refused(made: NamespaceDut) -> None:
    device = device_of(made, "junos")
    refused = run(device, "apply", device.testbed(), "--plan", "gateway-v4", "--hash", "type1")
    assert refused.returncode == 2
    assert "no commands here for the hash" in refused.stderr


def test_vyos_would_lose_what_is_not_saved(made: NamespaceDut) -> None:
    device = device_of(made, "vyos")
    device.update(config=[*device.config, ["set interfaces ethernet eth3 address '172.16.0.1/24'"]])
    refused = run(device, "apply", device.testbed(), "--plan", "gateway-v4")
    assert refused.returncode == 2
    assert "committed and not saved" in refused.stderr


def test_what_somebody_has_left_in_a_candidate_is_not_committed(made: NamespaceDut) -> None:
    device = device_of(made, "srlinux")
    device.update(staged=["set / interface ethernet-1/3 admin-state enable"])
    before = device.config
    refused = run(device, "apply", device.testbed(), "--plan", "gateway-v4")
    assert refused.returncode == 2
    assert "not committed" in refused.stderr
    assert device.config == before


def test_routeros_is_told_how_to_show_itself(made: NamespaceDut) -> None:
    device = device_of(made, "routeros")
    assert run(device, "check", device.testbed()).returncode == 0
    assert "-l root+ct511w4098h" in (made.folder / "calls").read_text()


def test_a_user_who_may_not_see_the_configuration(made: NamespaceDut) -> None:
    device = device_of(made, "cisco-ios")
    device.update(deny="show running-config")
    refused = run(device, "check", device.testbed())
    assert refused.returncode == 3
    assert "does not show its configuration" in refused.stderr


def test_another_system_than_said(made: NamespaceDut) -> None:
    """Its prompt is another."""
    device = device_of(made, "routeros")
    testbed = device.testbed()
    device.update(os="srlinux")
    with patch("evenhand.dut.terminal.FIRST_PROMPT_S", 3):
        refused = run(device, "check", testbed)
    assert refused.returncode == 3
    assert "shows no prompt of mikrotik_routeros" in refused.stderr


def test_a_host_key_that_is_not_known(made: NamespaceDut) -> None:
    """What ssh itself says is said."""
    device = device_of(made, "cisco-ios")
    known = made.folder / "known"
    text = known.read_text()
    known.write_text("")
    try:
        refused = run(device, "check", device.testbed())
    finally:
        known.write_text(text)
    assert refused.returncode == 3
    assert "host key is not known" in refused.stderr
