# SPDX-License-Identifier: Apache-2.0
"""The hash of a Linux DUT: what is set, and in which order. The lab of a virtual machine shows that a driver
takes it (tests/vm)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from evenhand.dut import HashType, describe_setup
from evenhand.dut.items import Item, NotTakenError, moves
from evenhand.dut.linux_answers import read_state
from evenhand.dut.linux_items import linux_items
from evenhand.dut.linux_moves import LinuxReader, move_of
from evenhand.dut.linux_nic import NicWishes, nic_items
from evenhand.dut.linux_state import LinuxState
from evenhand.dut.setup import settle
from evenhand.dut.shell import Answer
from evenhand.plan import make_plan
from tests.errors import raises

LINKS = """[{"ifname": "lo", "flags": ["UP"]}, {"ifname": "ssh0", "flags": ["UP"], "addr_info": [
{"family": "inet", "local": "192.0.2.1", "prefixlen": 24, "scope": "global"}]},
{"ifname": "eth1", "flags": ["UP"], "addr_info": []}, {"ifname": "eth2", "flags": ["UP"], "addr_info": []}]"""
Read = Callable[..., LinuxState]
TABLE = """RX flow hash indirection table for eth1 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
RSS hash key:
6d:5a:56:da
RSS hash function:
    toeplitz: on
"""
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
    """`read_state` of a DUT whose driver says this of receive hashing, and of its table."""

    def state(features: str = "", table: str = "Operation not supported") -> LinuxState:
        told = {
            "cat /proc/sys/kernel/random/boot_id": "one\n",
            "command -v": "/sbin/ip\n",
            "ip -j -d address": LINKS,
            "if ip -4 route": "[]",
            "if ip -6 route": "[]",
            "cd /proc/sys": "".join(
                f"net/ipv{version}/conf/{name}/forwarding:0\n"
                for version in (4, 6)
                for name in ("all", "default", "eth1", "eth2")
            ),
            "ip -j route get": '[{"dev": "ssh0"}]',
            "ip -j neighbor": "[]",
            "ethtool -k": features,
            "ethtool -n": HASH,
            "ethtool -x": table,
            "ethtool -l": "Current hardware settings:\nCombined:\t4\n",
        }
        shell = ScriptedShell(told)
        monkeypatch.setattr(
            "evenhand.dut.linux_answers.read_all",
            lambda _, commands: {name: shell.answer(text) for name, text in commands.items()},
        )
        return read_state(shell, ("eth1", "eth2"), address="192.0.2.1", peer="192.0.2.9")  # type: ignore[arg-type]

    return state


@pytest.mark.parametrize(("hash_type", "fields"), [("type1", "sd"), ("type2", "sdfn")])
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_hash_that_is_asked_for_is_switched_on_first(
    read: Read, plan: str, hash_type: HashType, fields: str
) -> None:
    """RSS-02: virtio_net takes hash fields, reads them back, and uses none of them while receive hashing is
    off, which is its default."""
    state = read("Features for eth1:\n\treceive-hashing: off\n")
    items = linux_items(
        [describe_setup(make_plan(plan), left="eth1", right="eth2", hash_type=hash_type)], state
    )
    about = [item for item in items if item.kind in ("receive_hashing", "hash") and item.key[0] == "eth1"]
    assert [(item.kind, item.before, item.wanted) for item in about] == [
        ("receive_hashing", "off", "on"),
        ("hash", "sd", fields),
        ("hash", "sd", fields),
    ]
    assert [shlex.split(move.command) for move in move_of(about[0], "off", "on")] == [
        ["ethtool", "-K", "eth1", "rxhash", "on"]
    ]
    assert [move.command for move in move_of(about[0], "on", about[0].before)] == [
        "ethtool -K eth1 rxhash off"
    ]


@pytest.mark.parametrize("features", ["\treceive-hashing: off [fixed]\n", ""])
def test_a_driver_that_cannot_switch_it_is_left_alone(read: Read, features: str) -> None:
    items = linux_items(
        [describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2", hash_type="type1")],
        read(features),
    )
    assert [item for item in items if item.kind == "receive_hashing"] == []


def test_without_a_hash_it_is_not_touched(read: Read) -> None:
    items = linux_items(
        [describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2")], read("\treceive-hashing: off\n")
    )
    assert [item for item in items if item.kind in ("receive_hashing", "hash")] == []


def items_of(state: LinuxState, **wishes: Any) -> list[Item]:
    setup = describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2")
    items = linux_items([setup], state, nics=NicWishes(**wishes))
    return [
        item
        for item in items
        if item.kind in ("channels", "hash_key", "hash_table") and item.key == ("eth1",)
    ]


def commands_of(item: Item) -> list[str]:
    """There, and back."""
    return [
        move.command
        for now, target in ((item.before, item.wanted), (item.wanted, item.before))
        for move in move_of(item, now, target)
    ]


def test_queues_table_and_key_are_set_in_this_order_and_put_back(read: Read) -> None:
    """RSS-03, RSS-04: a table may name only queues that are there; the driver's own table is given back as
    such."""
    channels, table, key = items_of(
        read(table=TABLE), channels=3, table_queues=2, hash_key=bytes.fromhex("beac01fa")
    )
    assert commands_of(channels) == ["ethtool -L eth1 combined 3", "ethtool -L eth1 combined 4"]
    # ixgbe refused its own default with more than 16 rings before Linux 6.4.
    assert commands_of(table) == [
        "ethtool -X eth1 equal 2",
        "ethtool -X eth1 default 2> /dev/null || ethtool -X eth1 equal 4",
    ]
    assert commands_of(key) == ["ethtool -X eth1 hkey be:ac:01:fa", "ethtool -X eth1 hkey 6d:5a:56:da"]


def test_a_table_that_somebody_has_set_is_put_back_as_it_was(read: Read) -> None:
    (table,) = items_of(
        read(table=TABLE.replace("0     1     2     3", "0     1     0     1")), table_queues=4
    )
    assert (table.before, table.wanted) == ("equal 2", "equal 4")
    assert commands_of(table) == ["ethtool -X eth1 equal 4", "ethtool -X eth1 equal 2"]


def test_a_table_that_is_already_so_is_no_change(read: Read) -> None:
    """The driver's own and one that was set are the same to a frame."""
    (table,) = items_of(read(table=TABLE), table_queues=4)
    assert not table.is_change
    (table,) = items_of(read(table=TABLE), table_queues=2)
    assert table.is_change


@dataclass
class Nic:
    """One NIC as drivers keep them: a table of its own follows the queues, one that was set stays, and holds
    the queues that it names. Other queues end its hashing, and a table begins it anew."""

    channels: int
    table: str
    draws_key: bool = False
    refuses_default: bool = False
    """As ixgbe does with more rings than its table can name, before Linux 6.4."""
    key: str = "6d:5a:56:da"
    is_hashing: bool = True

    def read(self, empty: LinuxState) -> LinuxState:
        told = (
            self.table.replace("equal", "default")
            if self.table.split()[1] == str(self.channels)
            else self.table
        )
        return replace(
            empty,
            channels={"eth1": f"combined {self.channels}"},
            hash_tables={"eth1": told},
            hash_keys={"eth1": self.key},
            hash_table_entries={"eth1": 128},
        )

    def go(self, items: list[Item], state: LinuxState, *, back: bool) -> dict[Item, str]:
        failures = {}
        for item, now, target in moves(items, LinuxReader(state), back=back):
            for move in move_of(item, now, target):
                tried = (shlex.split(each.replace("2> /dev/null", "")) for each in move.command.split("||"))
                if not any(self._takes(words) for words in tried):
                    failures[item] = "Invalid argument"
        return failures

    def _takes(self, words: list[str]) -> bool:
        is_own, named = self.table.startswith("default"), int(self.table.split()[1])
        match words:
            case ["ethtool", "-L", "eth1", "combined", count]:
                if not is_own and named > int(count):
                    return False
                self.channels, self.is_hashing = int(count), False
                self.table = f"default {count}" if is_own else self.table
                self.key = "00:00:00:01" if self.draws_key else self.key
            case ["ethtool", "-X", "eth1", "default"] if self.refuses_default:
                return False
            case ["ethtool", "-X", "eth1", "default"]:
                self.table, self.is_hashing = f"default {self.channels}", True
            case ["ethtool", "-X", "eth1", "equal", count]:
                if int(count) > self.channels:
                    return False
                self.table, self.is_hashing = f"equal {count}", True
            case ["ethtool", "-X", "eth1", "hkey", key]:
                self.key = key
            case _:
                raise AssertionError(words)
        return True


@pytest.mark.parametrize(
    ("nic", "channels", "queues"),
    [
        (Nic(4, "default 4"), 8, 4),
        (Nic(4, "default 4"), 2, 2),
        (Nic(2, "default 2"), 4, 2),
        (Nic(8, "default 8"), 4, 2),
        (Nic(8, "equal 6"), 4, 4),
        (Nic(8, "equal 2"), 4, 3),
        (Nic(4, "default 4"), None, 2),
        (Nic(4, "default 4"), 8, 8),
        (Nic(4, "equal 2"), 8, None),
        (Nic(4, "default 4", draws_key=True), 8, 4),
        (Nic(4, "default 4"), 2, None),
        (Nic(4, "equal 4"), 2, None),
    ],
)
def test_queues_and_table_get_there_and_back_whatever_follows_them(
    read: Read, nic: Nic, channels: int | None, queues: int | None
) -> None:
    """RSS-04: more queues give a new table, fewer wait until none is named that goes; the table that was the
    driver's own is so again."""
    empty, before = read(table=TABLE), replace(nic)
    wishes = NicWishes(channels=channels, table_queues=queues, hash_key=bytes.fromhex("6d5a56da"))
    items = list(nic_items("eth1", nic.read(empty), wishes))
    left, failures = settle(
        items, lambda: nic.read(empty), lambda state: nic.go(items, state, back=False), back=False
    )
    assert (left, nic.channels, nic.key, nic.is_hashing) == (
        [],
        channels or before.channels,
        "6d:5a:56:da",
        True,
    ), failures
    assert nic.table.split()[1] == str(queues or channels)
    left, failures = settle(
        items, lambda: nic.read(empty), lambda state: nic.go(items, state, back=True), back=True
    )
    assert left == [], failures
    # A table over all queues that somebody has set reads like the driver's own, and is given back as that.
    assert nic == replace(before, table=before.read(empty).hash_tables["eth1"])


def test_a_driver_that_refuses_its_own_table_gets_one_that_is_the_same(read: Read) -> None:
    """RSS-04: without it the DUT would stay held for ever."""
    nic, empty = Nic(16, "default 16", refuses_default=True), read(table=TABLE)
    items = list(nic_items("eth1", nic.read(empty), NicWishes(table_queues=4)))
    for back, told in ((False, "equal 4"), (True, "equal 16")):
        go = partial(nic.go, items, back=back)
        left, failures = settle(items, lambda: nic.read(empty), go, back=back)
        assert (left, nic.table) == ([], told), failures


def test_what_never_gets_there_is_told_with_what_the_dut_said(read: Read) -> None:
    nic = Nic(4, "default 4")
    items = list(nic_items("eth1", nic.read(read(table=TABLE)), NicWishes(table_queues=6)))
    left, failures = settle(
        items, lambda: nic.read(read(table=TABLE)), lambda state: nic.go(items, state, back=False), back=False
    )
    assert [item.name for item in left] == ["hash table of eth1"]
    assert failures == {items[0]: "Invalid argument"}


def test_a_flow_that_was_not_hashed_is_given_back_so(read: Read) -> None:
    """An empty list of fields is a value: without a command for it the DUT would stay held for ever."""
    item = Item("hash", ("eth1", "udp4"), "", "sd")
    assert commands_of(item) == [
        "ethtool -N eth1 rx-flow-hash udp4 sd",
        "ethtool -N eth1 rx-flow-hash udp4 ''",
    ]


@pytest.mark.parametrize(
    ("table", "wishes", "code", "named"),
    [
        ("Operation not supported", {"table_queues": 2}, "rig.not-reported-by-nic", "hash table"),
        ("Operation not supported", {"hash_key": b"1234"}, "rig.not-reported-by-nic", "hash key"),
        (
            TABLE.replace("6d:5a:56:da", "Operation not supported"),
            {"hash_key": b"1234"},
            "rig.not-reported-by-nic",
            "hash key",
        ),
        (TABLE, {"table_queues": 9}, "rig.hash-table-too-small", "8 entries, .* 9 queues"),
        (TABLE, {"hash_key": b"12345"}, "rig.hash-key-length", "4 octets, .* 5"),
        (
            TABLE.replace("0     1     2     3", "0     0     0     1"),
            {"table_queues": 2},
            "rig.hash-table-not-restorable",
            ": 0 0 0 1",
        ),
    ],
)
def test_what_could_not_be_put_back_is_not_changed(
    read: Read, table: str, wishes: dict[str, Any], code: str, named: str
) -> None:
    with raises(code, match=named) as refused:
        items_of(read(table=table), **wishes)
    assert isinstance(refused.value, NotTakenError)
    assert refused.value.next_step
