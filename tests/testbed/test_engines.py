# SPDX-License-Identifier: Apache-2.0
"""Testbed: several engines in one file; each mistake is refused by the name of its engine before anything
starts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import gateway_v4, make_plan, theoretical_fps
from evenhand.rig import Setup
from evenhand.testbed import Testbed, make_testbed, read_testbed
from tests.errors import raises

FILE = """
isolated_test_environment = true

[[engine]]
name = "a"
cpus = [1, 2]
left = { device = "0000:01:00.0", line_rate = "10Gbps" }
right = { device = "0000:01:00.1", line_rate = "10Gbps" }

[[engine]]
name = "b"
ssh = "root@tester2"
cpus = [1, 2]
left = { device = "0000:01:00.0", line_rate = "25Gbps" }
right = { device = "0000:01:00.1", line_rate = "25Gbps" }
"""

DUT = {"ssh": "root@r1", "os": "linux", "left": ["eth1", "eth3"], "right": ["eth2", "eth4"]}


def document(**changes: Any) -> dict[str, Any]:
    """`b__cpus=[3]` changes a key of engine b; others are of the file."""
    found = tomllib.loads(FILE)
    for key, value in changes.items():
        engine, _, of_engine = key.partition("__")
        if of_engine:
            found["engine"]["ab".index(engine)][of_engine] = value
        else:
            found[key] = value
    return found


def read_bed(**changes: Any) -> Testbed:
    return make_testbed(document(**changes), where="several.toml")


def test_a_file_with_several_engines_is_read(tmp_path: Path) -> None:
    file = tmp_path / "several.toml"
    file.write_text(FILE)
    read = read_testbed(file)
    assert [(engine.name, engine.ssh, engine.streams(one_armed=False)) for engine in read.engine] == [
        ("a", None, 1),
        ("b", "root@tester2", 1),
    ]
    assert read.left == read.engine[0].left
    assert read.tester.cpus == (1, 2)
    assert [port.device for port in read.local_ports] == ["0000:01:00.0", "0000:01:00.1"]


def test_each_engine_opens_its_own_ports_and_all_have_one_plan_and_seed() -> None:
    both = read_bed(b__memory="1GB", b__cpus=[3, 4])
    a, b = both.open_requests(gateway_v4(), frame_size=64, seed=7)
    assert a["plan"] == b["plan"]
    assert a["seed"] == b["seed"] == 7
    assert [worker["cpu"] for worker in b["workers"]] == [3, 4]
    assert b["host"]["memory_mb"] == 1024
    assert b["ports"]["left"]["line_rate_bps"] == 25e9


def test_the_line_rate_is_that_of_the_slowest_engine_times_their_number() -> None:
    """Each has the same share: the faster one's port is not full when the slower one's is."""
    both = read_bed()
    assert theoretical_fps(both.streams(gateway_v4(), 64), both.line_rates) == 29_761_904
    unknown = read_bed(b__left={"device": "0000:01:00.0"}, b__right={"device": "0000:01:00.1"})
    assert theoretical_fps(unknown.streams(gateway_v4(), 64), unknown.line_rates) is None


def test_a_dut_on_this_host_is_watched_by_one_engine_here() -> None:
    both = read_bed(dut={"cpus": [0], "ring_frames": 512})
    a, b = both.open_requests(gateway_v4(), frame_size=64, seed=7)
    assert a["dut"]["ring_frames"] == 512
    assert "dut" not in b


def test_a_run_stores_every_key_of_its_testbed_also_those_that_are_not_set() -> None:
    one = {key: value for key, value in document()["engine"][0].items() if key in ("left", "right")}
    alone = make_testbed(
        {"isolated_test_environment": True, **one, "tester": {"cpus": [1]}}, where="one.toml"
    )
    stored = Setup(name="one", testbed=alone).to_document()["testbed"]
    assert stored["engine"] == []
    assert stored["limits"]["start_difference"] is None
    several = Setup(name="several", testbed=read_bed(limits={"start_difference": "2ms"})).to_document()[
        "testbed"
    ]
    assert [engine["name"] for engine in several["engine"]] == ["a", "b"]
    assert several["limits"]["start_difference"] == 0.002


@pytest.mark.parametrize(
    ("changes", "code", "match"),
    [
        ({"b__name": "a"}, "rig.engine-twice", "'a'"),
        ({"b__name": "-x"}, "base.wrong-value", "engine.1.name"),
        ({"b__name": "x y"}, "base.wrong-value", "engine.1.name"),
        ({"b__ssh": "-oProxyCommand=x"}, "rig.not-an-ssh-destination", "engine.1.ssh"),
        ({"b__cpus": []}, "base.empty", "engine.1.cpus"),
        ({"b__cpus": [1, 1]}, "rig.cpu-twice", "engine.1"),
        ({"b__core": 1}, "base.unknown-key", "engine.1.core"),
        ({"b__left": {"device": "net_bond0"}}, "rig.driver-refused", "engine.1.left"),
        ({"b__cpus": [1, 2, 3, 4, 5, 6]}, "rig.engines-differ", "engine b .*2 streams"),
        ({"b__receive_queues": 2}, "rig.engines-differ", "engine b .*1 streams .*2 receive"),
        ({"a__ssh": "root@tester2"}, "rig.ports-share-a-resource", "engine a, left and engine b, left"),
        (
            {"b__right": {"device": "0000:01:00.0"}},
            "rig.ports-share-a-resource",
            "engine b, left and engine b, right",
        ),
        ({"b__left": {"device": "0000:01:00.0", "vlan": 7}}, "rig.engines-differ", "engine b .* VLAN"),
        ({"left": {"device": "0000:02:00.0"}}, "rig.engine-and-tester", "left together"),
        ({"tester": {"cpus": [1]}}, "rig.engine-and-tester", "tester together"),
        ({"dut": {**DUT, "left": "eth1", "right": "eth2"}}, "rig.pairs-of-interfaces", "1 pair .* 2 engines"),
        ({"dut": {**DUT, "right": "eth2"}}, "rig.pairs-of-interfaces", "left .*2 .*right 1"),
        ({"dut": {**DUT, "right": ["eth2", "eth1"]}}, "rig.same-interface-twice", "'eth1'"),
        ({"dut": {**DUT, "left": []}}, "base.empty", "dut.left"),
        ({"dut": {**DUT, "left": ["eth1", "-x"]}}, "rig.not-an-interface-name", "dut.left.1"),
    ],
)
def test_each_mistake_is_refused_by_name(changes: dict[str, Any], code: str, match: str) -> None:
    with raises(code, match=match):
        read_bed(**changes)


def test_a_dut_over_ssh_has_a_pair_of_interfaces_for_each_engine() -> None:
    dut = read_bed(dut=DUT).dut
    assert dut.interface_pairs == (("eth1", "eth2"), ("eth3", "eth4"))
    assert dut.interfaces == {"left": "eth1", "right": "eth2", "left-2": "eth3", "right-2": "eth4"}


def test_a_dut_with_one_pair_is_read_and_stored_as_it_was() -> None:
    """A plain name, or a list of one; two for one engine are one too many."""
    one = {"isolated_test_environment": True, "tester": {"cpus": [1]}}
    one |= {side: document()["engine"][0][side] for side in ("left", "right")}
    for left in ("eth1", ["eth1"]):
        read = make_testbed({**one, "dut": {**DUT, "left": left, "right": "eth2"}}, where="one.toml")
        assert read.dut.interfaces == {"left": "eth1", "right": "eth2"}
        assert Setup(name="one", testbed=read).to_document()["testbed"]["dut"]["left"] == "eth1"
    with raises("rig.pairs-of-interfaces", match="2 pairs .*1 engine:"):
        make_testbed({**one, "dut": DUT}, where="one.toml")


def test_two_engines_of_one_host_share_neither_ports_nor_cpus() -> None:
    here = document()
    del here["engine"][1]["ssh"]
    with raises("rig.ports-share-a-resource", match="engine a, left and engine b, left .*PCI device"):
        make_testbed(here, where="several.toml")
    for side, device in (("left", "0000:02:00.0"), ("right", "0000:02:00.1")):
        here["engine"][1][side]["device"] = device
    with raises("rig.engines-share-a-cpu", match="a and b .*CPU 1"):
        make_testbed(here, where="several.toml")
    here["engine"][1]["cpus"] = [3, 4]
    assert len(make_testbed(here, where="several.toml").local_ports) == 4


def test_engines_elsewhere_are_reached_over_ssh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = tmp_path / "evenhand-engine"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    here, there = Setup(name="several", testbed=read_bed()).engine_commands(engine)
    assert here == [str(engine)]
    assert there[0].endswith("ssh")
    assert there[-3:] == ["--", "root@tester2", "evenhand-engine"]
    assert "BatchMode=yes" in there
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises("rig.program-missing", match="ssh"):
        Setup(name="several", testbed=read_bed()).engine_commands(engine)


def test_a_plan_of_the_dut_is_as_with_one_engine() -> None:
    setup = Setup(name="several", testbed=read_bed(dut={"plan": "gateway-v6"}))
    with raises("rig.dut-of-other-plan", match="gateway-v6"):
        setup.check_plan(make_plan("gateway-v4"))
