# SPDX-License-Identifier: Apache-2.0
"""The hash of a Linux DUT: what is set, and in which order. The lab of a virtual machine shows that a driver takes it (tests/vm)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

import pytest

from evenhand.dut import HashType, describe_setup
from evenhand.dut.linux_items import linux_items, move_of
from evenhand.dut.linux_state import LinuxState, read_state
from evenhand.dut.shell import Answer
from evenhand.plan import make_plan

LINKS = """[{"ifname": "lo", "flags": ["UP"]}, {"ifname": "ssh0", "flags": ["UP"], "addr_info": [
{"family": "inet", "local": "192.0.2.1", "prefixlen": 24, "scope": "global"}]},
{"ifname": "eth1", "flags": ["UP"], "addr_info": []}, {"ifname": "eth2", "flags": ["UP"], "addr_info": []}]"""
Read = Callable[[str], LinuxState]
HASH = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"


class ScriptedShell:
    """A DUT that answers as it was told, by the first command whose beginning fits."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    def answer(self, command: str) -> Answer:
        for begin, text in self._answers.items():
            if command.startswith(begin):
                return Answer(0, text, "")
        return Answer(1, "", "not there")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """`read_state` of a DUT whose driver says this of receive hashing."""

    def state(features: str) -> LinuxState:
        told = {
            "cat /proc/sys/kernel/random/boot_id": "one\n", "command -v": "/sbin/ip\n", "ip -j -d address": LINKS, "ip -j -4 route": "[]",
            "ip -j -6 route": "[]", "cd /proc/sys": "".join(
                f"net/ipv{version}/conf/{name}/forwarding:0\n" for version in (4, 6) for name in ("all", "default", "eth1", "eth2")
            ), "ip -j route get": '[{"dev": "ssh0"}]', "ip -j neighbor": "[]", "ethtool -k": features, "ethtool -n": HASH,
        }  # fmt: skip
        shell = ScriptedShell(told)
        monkeypatch.setattr(
            "evenhand.dut.linux_state.read_all", lambda _, commands: {name: shell.answer(text) for name, text in commands.items()}
        )
        return read_state(shell, ("eth1", "eth2"), address="192.0.2.1", peer="192.0.2.9")  # type: ignore[arg-type]

    return state


@pytest.mark.parametrize(("hash_type", "fields"), [("type1", "sd"), ("type2", "sdfn")])
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_hash_that_is_asked_for_is_switched_on_first(read: Read, plan: str, hash_type: HashType, fields: str) -> None:
    """RSS-02: virtio_net takes hash fields, reads them back, and uses none of them while receive hashing is off, which is its default."""
    state = read("Features for eth1:\n\treceive-hashing: off\n")
    items = linux_items([describe_setup(make_plan(plan), left="eth1", right="eth2", hash_type=hash_type)], state)
    about = [item for item in items if item.kind in ("receive_hashing", "hash") and item.key[0] == "eth1"]
    assert [(item.kind, item.before, item.wanted) for item in about] == [
        ("receive_hashing", "off", "on"), ("hash", "sd", fields), ("hash", "sd", fields),
    ]  # fmt: skip
    assert [shlex.split(move.command) for move in move_of(about[0], "off", "on")] == [["ethtool", "-K", "eth1", "rxhash", "on"]]
    assert [move.command for move in move_of(about[0], "on", about[0].before)] == ["ethtool -K eth1 rxhash off"]


@pytest.mark.parametrize("features", ["\treceive-hashing: off [fixed]\n", ""])
def test_a_driver_that_cannot_switch_it_is_left_alone(read: Read, features: str) -> None:
    items = linux_items([describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2", hash_type="type1")], read(features))
    assert [item for item in items if item.kind == "receive_hashing"] == []


def test_without_a_hash_it_is_not_touched(read: Read) -> None:
    items = linux_items([describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2")], read("\treceive-hashing: off\n"))
    assert [item for item in items if item.kind in ("receive_hashing", "hash")] == []
