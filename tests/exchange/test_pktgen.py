# SPDX-License-Identifier: Apache-2.0
"""Scripts of Pktgen-DPDK, in Lua and as commands: what is sent; and what must not be guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.exchange.formats import kind_of
from evenhand.exchange.outcome import Became, GivenHardware, Imported
from evenhand.exchange.pktgen_import import import_pktgen
from tests.errors import raises

RANGE = """
enable 0 range
range 0 dst mac start 02:00:00:00:00:02
range 0 dst ip 198.19.0.1 198.19.0.1 198.19.0.16 0.0.0.1
range 0 src ip start 198.18.0.1
range 0 src ip min 198.18.0.1
range 0 src ip max 198.18.0.16
range 0 src ip inc 0.0.0.1
range 0 proto udp
range 0 dst port 2000 2000 2999 1
range 0 src port 5000 5000 5000 0
range 0 size 128 128 128 0
set 0 rate 25.5
start 0
"""
LUA = """
package.path = package.path ..";?.lua;test/?.lua;app/?.lua;"
require "Pktgen" -- not "run"
local srcip, count = "198.18.0.1", 4
local base = "198.18.0"
local last = 9
--[[ pktgen.range.src_ip("0", "start", "10.0.0.1")
]]
local function doWait(port)
    while pktgen.isSending(port) do pktgen.delay(100); end
end
pktgen.range.dst_mac("0", "start", "0200:0000:0002");
pktgen.range.src_ip("all", "start", base..".1"); pktgen.range.src_ip("all", "min", base..".1")
pktgen.range.src_ip("all", "max", base..".9");
pktgen.range.src_ip("all", "inc", "0.0.0.1");
pktgen.set_ipaddr("0", "dst", "198.19.0.7/24");
pktgen.set("0", "rate", 10);
pktgen.set("0", "size", 256);
pktgen.range.dst_ip("0", "start", "198.19.0.7");
pktgen.set_proto("0", "udp");
pktgen.set("0", "dport", last);
pktgen.set("0", "sport", 7);
pktgen.set_range("0", "on");
pktgen.start("0");
"""


def read(tmp_path: Path, text: str, name: str = "a.pkt") -> Imported:
    (path := tmp_path / name).write_text(text)
    assert kind_of(path) == "pktgen"
    return import_pktgen(path, GivenHardware(), plan=None, testbed=Path("a.toml"))


def test_ranges_of_commands_are_a_trial(tmp_path: Path) -> None:
    imported = read(tmp_path, RANGE)
    (command,) = imported.commands
    said = " ".join(command.words)
    assert "--plan gateway-v4 --hosts 16 --host-mode increment" in said
    assert "--destination-ports 2000-2999:increment --frame-size 128 --rate 25.5% --duration 60s" in said
    assert "--source-ports 5000" in said
    assert said.endswith("--direction forward")
    assert 'dut_mac = "02:00:00:00:00:02"' in imported.testbed
    rows = {row.key: row for row in imported.rows}
    assert (rows["src_ip of port 0"].line, rows["src_ip of port 0"].became) == (5, Became.MAPPED)
    assert rows["start"].became is Became.MEANINGLESS
    assert any(row.key == "count" and row.became is Became.DIFFERS for row in imported.rows)
    assert not imported.is_any(Became.REFUSED)


def test_a_program_is_read_by_its_constants(tmp_path: Path) -> None:
    imported = read(tmp_path, LUA.replace("local srcip, count", "local srcip"), "a.lua")
    said = " ".join(imported.commands[0].words)
    assert "--frame-size 256" in said
    assert "--source-ports 7 --destination-ports 9" in said
    assert "--hosts 9,1" in said
    rows = [row for row in imported.rows if row.became is Became.REFUSED]
    assert not rows, rows


def test_both_ports_are_both_directions(tmp_path: Path) -> None:
    back = RANGE.replace(" 0 ", " 1 ").replace("start 0", "start 1")
    back = back.replace("198.18", "X").replace("198.19", "198.18").replace("X", "198.19")
    imported = read(tmp_path, RANGE + back)
    said = " ".join(imported.commands[0].words)
    assert "--direction" not in said
    both = read(tmp_path, RANGE.replace(" 0 ", " all ").replace("start 0", "start all"))
    assert any(row.key == "all" and row.became is Became.DIFFERS for row in both.rows)


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (("198.18.0.16", "198.18.0.300"), 7, "is no IPv4 address"),
        (("0 rate 25.5", "0 rate fast"), 13, "is no rate in percent"),
        (("128 128 128 0", "128"), 0, ""),
        (("range 0 proto", "range x proto"), 9, "are no ports"),
        (("dst mac start 02:00:00:00:00:02", "dst mac start 02:00"), 3, "is no MAC"),
        (("src ip start 198.18.0.1", "src ip start 198.18.1.1"), 5, "outside of its range"),
        (("2000 2000 2999 1", "2000 2000"), 10, "start, min, max and inc"),
    ],
)
def test_what_a_command_cannot_have_is_said_with_its_line(
    tmp_path: Path, change: tuple[str, str], line: int, what: str
) -> None:
    text = RANGE.replace(*change)
    if not line:
        assert "--frame-size 128" in " ".join(read(tmp_path, text).commands[0].words)
        return
    with raises("exchange.script-not-read") as caught:
        read(tmp_path, text)
    assert caught.value.where.endswith(f"line {line}")
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('for i = 1, 9 do\npktgen.set("0", "rate", i)\nend\n', "in a block"),
        ('pktgen.set("0", "size", os.time())\n', "is computed"),
        ('pktgen.set("0", "size", size)\n', "no constant that stands before"),
        ('x = pktgen.range.src_ip("0", "start", "198.18.0.1")\n', "not a line of its own"),
    ],
)
def test_a_program_that_computes_is_refused_with_the_line(tmp_path: Path, text: str, what: str) -> None:
    with raises("exchange.script-not-read") as caught:
        read(tmp_path, "require 'Pktgen'\n" + text, "a.lua")
    assert what in caught.value.what
    assert ", line " in caught.value.where


def test_what_is_no_single_range_is_refused_in_its_row(tmp_path: Path) -> None:
    text = RANGE + "seq 0 all 0000:4455:6677 0000:1234:5678 10.11.0.1 10.10.0.1/16 5 6 ipv4 udp 1 128\n"
    text += "warp 0 on\nset 5 size 64\nrange 0 gre start 1\nrange 0 vlan 100 100 100 0\n"
    imported = read(tmp_path, text)
    refused = {row.key for row in imported.rows if row.became is Became.REFUSED}
    assert refused == {"seq", "warp", "port 5", "range gre"}
    assert "vlan = [100]" in imported.testbed
    several = read(tmp_path, RANGE.replace("size 128 128 128 0", "size 128 64 1518 1"))
    assert not several.commands
    tcp = read(tmp_path, RANGE.replace("proto udp", "proto tcp"))
    assert not tcp.commands


def test_a_tag_is_sent_where_it_is_enabled(tmp_path: Path) -> None:
    for setting in ("set 0 vlan 100", "vlan 0 100"):
        text = RANGE + setting + "\n"
        assert "vlan = [100]" in read(tmp_path, text + "enable 0 vlan\n").testbed
        without = read(tmp_path, text + "enable 0 vlan\ndisable 0 vlan\n")
        assert "vlan" not in without.testbed
        assert [row.text for row in without.rows if row.key == "vlan_id"] == ["no tag: vlan is never enabled"]


@pytest.mark.parametrize("flag", ["random", "rnd_s_ip", "qinq", "mpls", "gre", "vxlan"])
def test_frames_of_another_kind_are_refused(tmp_path: Path, flag: str) -> None:
    rows = {row.key: row.became for row in read(tmp_path, RANGE + f"enable 0 {flag}\nenable 0 icmp\n").rows}
    assert (rows[flag], rows["icmp"]) == (Became.REFUSED, Became.MEANINGLESS)
    assert read(tmp_path, RANGE + f"disable 0 {flag}\n").commands


def test_a_script_without_addresses_sends_nothing_that_is_known(tmp_path: Path) -> None:
    with raises("exchange.script-without-frames"):
        read(tmp_path, "stop 0\nset 0 rate 10\nstart 0\n")
