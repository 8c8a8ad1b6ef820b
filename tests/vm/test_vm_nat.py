# SPDX-License-Identifier: Apache-2.0
"""A machine that translates: SIIT by TAYGA or Jool, NAT44 by its kernel, NAT64 by both or by Jool alone; and
a campaign that sets one up over SSH, with other queues for each suite."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.dut import Translator
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.ssh import open_ssh
from evenhand.lab import VmLab, lab_down, vm_up
from evenhand.lab.vm_access import CONNECTIONS
from evenhand.plan import make_plan
from evenhand.plan.ranges import UdpRange
from evenhand.rig.lab_rig import make_lab_setup
from evenhand.run import read_record
from evenhand.trial import find_engine
from tests.vm.conftest import ask, suite
from tests.vm.test_vm_lab import evenhand, trial
from tests.wire.wire_session import Document, dut_of, engine, open_to_dut, run_trial, until

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for taps in a namespace"),
]
COUNT = 2 * 50 * 3 * 2
"""2 hosts x 50 ports x 3 hosts x 2 ports."""
LOAD_FPS = 100
UNHARMED = {"no_checksum": 0, "traffic_class": 0, "address_or_port": 0}
MOST_WITHOUT_CHECKSUM = 2
"""How many of hundreds of frames: where the UDP checksum of an IPv6 packet comes out as 0, TAYGA 0.9.2 and
Jool 4.1.9 and 4.1.13 let it be 0. That is one frame of 65,536."""


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[VmLab]:
    """The lab of a plan, or of a plan and Jool with so many hosts."""
    name = f"n{os.getpid() % 10_000_000}"
    plan, hosts = request.param if isinstance(request.param, tuple) else (request.param, None)
    translator: Translator | None = None if hosts is None else "jool"
    try:
        yield vm_up(make_plan(plan, hosts), name=name, translator=translator, suite=suite(), say=print)
    finally:
        lab_down(name, force=True)


def jool(plan: str, *hosts: int) -> Any:
    return pytest.param((plan, hosts), id=f"{plan} by Jool")


def assert_unharmed(direction: Document) -> None:
    harm = direction["mistranslated_frames"]
    assert harm["no_checksum"] <= MOST_WITHOUT_CHECKSUM
    assert {**harm, "no_checksum": 0} == UNHARMED


def new_folder(folder: Path) -> Path:
    """For another run file."""
    return Path(tempfile.mkdtemp(dir=folder))


@pytest.mark.parametrize(
    "lab",
    ["siit", "siit_eam", jool("siit", 5, 7), jool("siit_eam", 5, 7), jool("siit@2001:db8::/40", 300, 300)],
    indirect=True,
)
def test_a_machine_translates_each_frame_as_it_must(lab: VmLab, tmp_path: Path) -> None:
    """R8219-01."""
    document = until(
        # On a busy host an emulated machine may take longer to answer than anybody waits.
        lambda found: found["dut"]["error"] is None,
        lambda: trial(lab, new_folder(tmp_path), "--rate", "50fps", "--duration", "4s")["trial"],
    )
    for direction in document["directions"].values():
        assert direction["received_frames"] > 0
        assert_unharmed(direction)
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0
    counted = document["dut"].get("jool")
    assert (counted is not None) == (lab.translator == "jool")
    if counted is not None:
        received = sum(each["received_frames"] for each in document["directions"].values())
        assert counted["JSTAT_SUCCESS"] >= received


@pytest.mark.parametrize("lab", ["nat44", "nat64", "nat66", jool("nat64", 2, 3)], indirect=True)
def test_connections_are_opened_used_and_forgotten(lab: VmLab) -> None:
    """R9693-01, R9693-06, R9693-07: emptied and counted over SSH."""
    plan = make_plan(
        lab.plan,
        (2, 3),
        source_ports=UdpRange(first=10_000, last=10_049),
        destination_ports=UdpRange(first=1, last=2),
    )
    setup = make_lab_setup(lab, plan)
    assert setup.connection_timeout_s == TIMEOUT_S
    with open_ssh(lab.ssh_host, config=lab.ssh_config) as shell:
        assert int(ask(shell, "cat /proc/sys/net/netfilter/nf_conntrack_max")) == CONNECTIONS
    numbers = iter(range(1, 200))

    def go(direction: str, use: str) -> Document:
        return run_trial(
            session,
            trial=next(numbers),
            rate_fps=LOAD_FPS,
            duration_s=COUNT / LOAD_FPS,
            directions=[direction],
            connections={"use": use, **({"count": COUNT} if use == "establish" else {})},
        )

    def opened() -> Document:
        setup.empty_connections()
        return go("forward", "establish")

    with engine(lab.engine_command(find_engine())) as session:
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        all_known = {"opened": COUNT, "learnt": COUNT, "shared_tuples": 0}
        until(lambda found: bool(found["directions"]["forward"]["connections"] == all_known), opened)
        answered = until(
            lambda found: bool(found["directions"]["reverse"]["received_frames"] == COUNT),
            lambda: go("reverse", "each_once"),
        )
        assert answered["directions"]["reverse"]["mistranslated_frames"] == UNHARMED
        emptied = setup.empty_connections()
        assert emptied.connections is not None
        assert emptied.connections >= COUNT
        if lab.translator == "jool":  # its table has nothing else
            assert emptied.connections == COUNT
        assert go("reverse", "each_once")["directions"]["reverse"]["received_frames"] == 0


@pytest.mark.parametrize("lab", [jool("nat64@2001:db8::/64", 2, 3)], indirect=True)
def test_connections_of_jool_are_there_in_a_trial_and_gone_when_it_is_undone(
    lab: VmLab, tmp_path: Path
) -> None:
    """R9693-07; SEED-07: what Jool counts stands beside what the tester counts."""
    count = 200
    words = ["--established", str(count), "--establish-rate", "50fps", "--rate", "50fps", "--duration", "4s"]
    document = until(
        lambda found: found["dut"].get("connections", {}).get("entries") == [count, count],
        lambda: trial(lab, new_folder(tmp_path), *words)["trial"],
    )
    received = 0
    for direction in document["directions"].values():
        assert_unharmed(direction)
        received += direction["received_frames"]
    assert document["dut"]["jool"]["JSTAT_SUCCESS"] >= received > 0
    assert lab.facts()["translator"].startswith("Jool 4.")
    undo = evenhand(
        *("dut", "setup", "nat64@2001:db8::/64", "--hosts", "2,3", "--os", "linux"),
        *("--left", "left", "--right", "right", "--translator", "jool", "--undo"),
    )
    with open_ssh(lab.ssh_host, config=lab.ssh_config) as shell:
        commands = "\n".join(each["command"] for each in undo["commands"])
        assert shell.run("exec sh -e", input_text=commands, timeout_s=60).exit_code == 0
        assert ask(shell, "jool instance display --csv --no-headers") == ""
        assert "blackhole" not in ask(shell, "ip route")


@pytest.mark.parametrize("lab", ["gateway_v6"], indirect=True)
def test_a_campaign_over_cores_gives_the_machine_other_queues_for_each_suite(
    lab: VmLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R9693-18: by the hooks of `preset:rfc9693-cores`; the machine is as it was at the end."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    suites = "".join(
        f"""
[[suite]]
name = "{cores} cores"
plan = "nat44"
hosts = 2
[suite.hooks]
before-suite = '''evenhand dut apply "$EVENHAND_TESTBED" --plan "$EVENHAND_PLAN" --channels {cores}
evenhand dut status "$EVENHAND_TESTBED"'''
"""
        for cores in (1, 2)
    )
    (tmp_path / "cores.toml").write_text(
        f"""
name = "cores"
testbed = "lab:{lab.name}"
[hooks]
after-suite = 'evenhand dut undo "$EVENHAND_TESTBED"'
timeout = "5min"
[every-suite]
procedure = "connections"
connections = "400"
maximum-rate = "100fps"
minimum-rate = "50fps"
precision = "50%"
repetitions = 1
one-pair-first = false
waits = "short"
invalid-retries = 50
patience = 50
{suites}"""
    )
    run = tmp_path / "cores.evenhand"
    evenhand("run", str(tmp_path / "cores.toml"), "--run", str(run), "--no-html")
    record = read_record(run)
    queues = {
        point.point.suite: len(
            point.repetitions[-1].searches[-1].trials[-1].result.raw["dut"]["interfaces"]["left"]["queues"]
        )
        for point in record.points
    }
    assert queues == {"1 cores": 1, "2 cores": 2}
    with open_ssh(lab.ssh_host, config=lab.ssh_config) as shell:
        assert "Combined:\t4" in ask(shell, "ethtool -l left").partition("Current")[2].replace(" ", "")
        assert not ask(shell, "nft list ruleset")
