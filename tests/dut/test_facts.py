# SPDX-License-Identifier: Apache-2.0
"""Facts of a DUT from what its commands print, and what a prediction makes of them (files/README.md says
where the files are from)."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evenhand.dut.facts import (
    changes_since_last,
    differences,
    facts_command,
    parse_facts,
    reported_facts,
    without_set_up,
)
from evenhand.dut.facts_interface import device_of, predict_queues, read_fields, read_hash, read_interface
from evenhand.dut.readings import MARK
from evenhand.plan import make_plan
from evenhand.predict import VERIFICATION_KEY, DeviceModel, predict, round_robin_table
from tests.errors import raises

FILES = Path(__file__).parent / "files"
LINK = "exit 0\n3: eth1: <BROADCAST,UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000"
DEVICE = """pci 0x8086 0x1528
speed 10000
threaded 0
numa_node 0
rps rx-0 00000000
rps rx-1 0000000f
irq 51 0 eth1-TxRx-0
irq 52 1 eth1-TxRx-1"""
COMMAND_LINE = "BOOT_IMAGE=/vmlinuz root=UUID=secret hostname=r1 isolcpus=2-7 mitigations=off"


def text(name: str) -> str:
    return (FILES / f"{name}.txt").read_text()


def parts(driver: str = "ixgbe", **changed: str) -> dict[str, str]:
    told = {
        part: f"exit 0\n{text(f'{driver}-{letter}')}"
        for part, letter in zip(
            ("table", "udp4", "rings", "channels", "offloads", "coalescing", "driver"), "xnglkci", strict=True
        )
    }
    udp6 = told["udp4"].replace("IPV4", "IPV6")
    return {**told, "udp6": udp6, "link": LINK, "device": DEVICE, **changed}


def interface(**changed: str) -> dict[str, Any]:
    return read_interface("eth1", parts(**changed), where="r1")


def test_an_interface_is_read_with_all_that_a_rate_depends_on() -> None:
    """R2544-02, RSS-02: driver, firmware, rings, channels, offloads, interrupts, and the hash as it is read
    back."""
    found = interface()
    assert (found["driver"], found["driver_version"], found["firmware"]) == (
        "ixgbe",
        "6.1.0-18-amd64",
        "0x8000095c, 16.5.20",
    )
    assert found["pci"] == "8086:1528"
    assert found["rings"] == {"rx_max": 4096, "tx_max": 4096, "rx": 512, "tx": 1024}
    assert (found["channels"]["combined"], found["channels"]["combined_max"]) == (16, 63)
    assert found["offloads"] == {
        "rx-checksumming": "on",
        "tx-checksumming": "on",
        "scatter-gather": "on",
        "generic-receive-offload": "on",
        "large-receive-offload": "off",
        "ntuple-filters": "off",
        "receive-hashing": "on",
        "rx-gro-hw": "off",
    }
    assert found["coalescing"] == {"Adaptive RX": "off", "rx-usecs": "1", "tx-usecs": "0"}
    assert found["rps"] == {"rx-1": "0000000f"}
    assert [(irq["name"], irq["cpus"]) for irq in found["interrupts"]] == [
        ("eth1-TxRx-0", "0"),
        ("eth1-TxRx-1", "1"),
    ]
    assert (found["mtu"], found["qdisc"]) == (1500, "mq")
    assert found["hash"] == {
        "function": "toeplitz",
        "key": VERIFICATION_KEY.hex(),
        "table": list(round_robin_table(2)),
        "is_symmetric": False,
        "fields": {"udp4": "sd", "udp6": "sd"},
    }
    assert found["answers"] == {}


@pytest.mark.parametrize(("driver", "fields"), [("ixgbe", "sd"), ("mlx5_core", "sdfn"), ("ice", "dn")])
def test_hash_fields_are_the_letters_that_ethtool_takes(driver: str, fields: str) -> None:
    """RSS-01: `sd` is type 1, `sdfn` type 2; the order is the RFC's and ethtool's."""
    assert read_fields(text(f"{driver}-n")) == fields


def test_symmetric_xor_is_read_and_another_function_is_refused_with_its_name() -> None:
    """RSS-05."""
    told: dict[str, str] = {}
    assert read_hash({"table": text("ice-x")}, told)["is_symmetric"] is True
    assert told == {}
    found = read_hash({"table": text("mlx5_core-xor-x")}, told)
    assert (found["table"], found["function"]) == ([], "xor")
    assert "hashes with xor" in told["table"]


def test_the_duts_own_table_and_key_are_predicted_for() -> None:
    """RSS-04: the very device, and both IP versions."""
    for version, name in ((4, "gateway-v4"), (6, "gateway-v6")):
        model = device_of(interface(), version, where="--dut")  # type: ignore[arg-type]
        assert model == DeviceModel(elements=2, hash_type="type1", table=round_robin_table(2))
        plan = make_plan(name, 4)
        facts = {"interfaces": {"left": interface(), "right": interface()}}
        assert predict_queues(facts, plan, "reverse", where="").loads("reverse") == predict(
            plan, model, ("reverse",)
        ).loads("reverse")


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        (
            {"table": "exit 1\nCannot get RX ring count: Operation not supported"},
            "rig.not-reported-by-nic",
            "Cannot get RX ring count: Operation not supported",
        ),
        (
            {"table": f"exit 0\n{text('ixgbe-vf-x')}"},
            "rig.not-reported-by-nic",
            "hash key: Operation not supported",
        ),
        (
            {"udp4": "exit 1\nCannot get RX network flow hashing options: Operation not supported"},
            "rig.not-reported-by-nic",
            "flow hashing options: Operation not",
        ),
        ({"udp4": f"exit 0\n{text('ice-n')}"}, "rig.hash-of-other-fields", "'dn'"),
        ({"table": f"exit 0\n{text('mlx5_core-xor-x')}"}, "rig.not-reported-by-nic", "xor"),
        ({"table": "exit 127\nsh: ethtool: not found"}, "rig.not-reported-by-nic", "ethtool"),
    ],
)
def test_a_driver_that_does_not_tell_is_refused_with_its_answer(
    changed: dict[str, str], code: str, said: str
) -> None:
    """RSS-02: no default stands in for what is not known."""
    with raises(code, match="eth1") as refused:
        device_of(interface(**changed), 4, where="--dut")
    assert said in refused.value.what
    assert refused.value.next_step


def test_an_interface_that_is_not_there_is_named() -> None:
    with raises("rig.dut-interface-missing", match="'eth1'"):
        interface(link='exit 1\nDevice "eth1" does not exist.')


def output(places: Iterable[str] = ("left", "right")) -> str:
    of = {
        "kernel": "Linux\n6.1.0-18-amd64\n#1 SMP\nx86_64",
        "system": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
        "machine": "Dell\nR740",
        "cpuinfo": "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2100.5",
        "cpus": "16\n0-15\n2",
        "smt": "off",
        "no_turbo": "1",
        "governors": "     16 performance",
        "clock_min": "1200000",
        "clock_max": "3500000",
        "memory": "MemTotal:  131072000 kB",
        "mitigations": "spectre_v1:Mitigation: usercopy/swapgs barriers",
        "command_line": COMMAND_LINE,
        "sysctls": "net/ipv4/ip_forward 1\nnet/ipv4/neigh/default/gc_thresh3 131072",
    }
    lines = [f"{MARK} {name}\n{part}" for name, part in of.items()]
    lines += [
        f"{MARK} interface {place} {name}\n{part}" for place in places for name, part in parts().items()
    ]
    return "\n".join([*lines, f"{MARK} end"])


INTERFACES = {"left": "eth1", "right": "eth2"}


def facts() -> dict[str, Any]:
    return parse_facts(output(), INTERFACES, where="r1")


def test_facts_fill_what_a_report_says_of_a_dut() -> None:
    """SEED-84, SEED-81: every key of `[dut.facts]` but the one that only its owner knows."""
    assert reported_facts(facts()) == {
        "machine": "Dell R740",
        "system": "Debian GNU/Linux 12 (bookworm)",
        "kernel": "6.1.0-18-amd64 (x86_64)",
        "cpu_model": "AMD EPYC, family 25, model 17",
        "sockets": "2",
        "cores": "16 CPUs, online 0-15",
        "clock": "1200 to 3500 MHz, governor performance",
        "turbo": "off",
        "hyper_threading": "off",
        "memory_size": "128000 MB",
        "nic": "PCI 8086:1528",
        "driver": "ixgbe 6.1.0-18-amd64, firmware 0x8000095c, 16.5.20",
        "kernel_parameters": "isolcpus=2-7 mitigations=off",
        "flow_hash": "type 1 (udp4 sd, udp6 sd)",
    }


def test_a_name_and_the_whole_command_line_are_not_kept() -> None:
    """A run is made to be sent to others."""
    assert "secret" not in str(facts())
    assert "uname -n" not in facts_command({"left": "a", "right": "b"})
    assert "hostname" not in facts_command({"left": "a", "right": "b"})


def test_only_a_linux_tells_facts() -> None:
    with raises("rig.dut-answer-not-understood"):
        parse_facts(output().replace("Linux\n", "OpenBSD\n", 1), INTERFACES, where="r1")


def test_what_a_campaign_sets_is_no_change_of_the_dut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2544-02: hash, sysctls, channels and MTU belong to a point; a kernel, a ring, an interrupt that moved
    are the DUT's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, other = facts(), copy.deepcopy(facts())
    assert changes_since_last("root@r1", INTERFACES.values(), first) is None
    other["interfaces"]["left"]["hash"]["fields"]["udp4"] = "sdfn"
    other["sysctls"]["net.ipv4.ip_forward"] = "0"
    assert without_set_up(other) == without_set_up(first)
    assert changes_since_last("root@r1", INTERFACES.values(), other) is None
    other["kernel"] = "6.12.1"
    other["interfaces"]["right"]["interrupts"][1]["cpus"] = "7"
    assert differences(first, other) == [
        "kernel: 6.12.1, and was 6.1.0-18-amd64",
        "interfaces.right.interrupts.eth1-TxRx-1: 7, and was 1",
    ]
    assert changes_since_last("root@r2", INTERFACES.values(), other) is None  # another DUT
    said = changes_since_last("root@r1", INTERFACES.values(), other)
    assert said is not None
    assert "kernel: 6.12.1, and was 6.1.0-18-amd64; interfaces.right" in said
    assert changes_since_last("root@r1", INTERFACES.values(), other) is None


def test_a_state_file_that_is_damaged_only_costs_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "evenhand").mkdir()
    (tmp_path / "evenhand" / "duts.json").write_text('{"version": 1, "duts": {"root@r1 eth1 eth2": []}}')
    assert changes_since_last("root@r1", INTERFACES.values(), facts()) is None


@pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
def test_this_hosts_own_shell_reads_facts_of_its_loopback() -> None:
    """The command is one that `sh` takes, and changes nothing: it is run here as it is sent."""
    both = {"left": "lo", "right": "lo"}
    done = subprocess.run(
        ["sh", "-c", facts_command(both)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    found = parse_facts(done.stdout, both, where="here")
    assert found["cpus"] >= 1
    assert found["interfaces"]["left"]["mtu"] == 65536
