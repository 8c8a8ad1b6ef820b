# SPDX-License-Identifier: Apache-2.0
"""Configurations of dperf, and mixes of frame sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.exchange.dperf_import import import_dperf
from evenhand.exchange.formats import kind_of
from evenhand.exchange.imix_import import import_imix
from evenhand.exchange.outcome import Became, GivenHardware, Imported
from tests.errors import raises

FLOOD = """
mode            client  # who asks
cpu             0 1-3
slow_start      30
payload_size    58
duration        1.5m
protocol        udp
flood
cc              30k
cps             1k
keepalive       1ms
#port           pci             addr        gateway
port            0000:5e:00.1    198.18.0.2  198.18.0.1 02:00:00:00:00:01
client          {left}       4
server          {right}       2
listen          80              3
"""
ENDS = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:8000::2")}


def read(tmp_path: Path, text: str) -> Imported:
    (path := tmp_path / "dperf.conf").write_text(text)
    assert kind_of(path) == "dperf"
    return import_dperf(path, GivenHardware(), plan=None, testbed=Path("a.toml"))


def flood(version: int = 4) -> str:
    left, right = ENDS[version]
    return FLOOD.format(left=left, right=right)


@pytest.mark.parametrize(("version", "size"), [(4, 104), (6, 124)])
def test_a_flood_is_the_clients_direction(tmp_path: Path, version: int, size: int) -> None:
    """A payload of 58 octets; 30,000 connections that each send a request every millisecond."""
    imported = read(tmp_path, flood(version))
    (command,) = imported.commands
    said = " ".join(command.words)
    assert f"--frame-size {size} --rate 30000000 --duration 90s --direction forward" in said
    assert "--source-ports 1-65535:increment --destination-ports 80-82:increment" in said
    assert 'dut_mac = "02:00:00:00:00:01"' in imported.testbed
    rows = {row.key: row for row in imported.rows}
    assert rows["cps"].became is Became.DIFFERS
    assert rows["cpu"].became is Became.MEANINGLESS
    assert not imported.is_any(Became.REFUSED)
    said_of = {row.line for row in imported.rows}
    lines = flood(version).split("\n")
    assert said_of == {number for number, line in enumerate(lines, 1) if line and line[0] != "#"}


def test_without_flood_answers_come_back(tmp_path: Path) -> None:
    imported = read(
        tmp_path, flood().replace("flood", "quiet").replace("cc ", "#").replace("cps", "cps 2m #")
    )
    said = " ".join(imported.commands[0].words)
    assert "--rate 2000000" in said
    old = read(tmp_path, flood().replace("keepalive ", "keepalive_request_interval "))
    assert "--rate 30000000" in " ".join(old.commands[0].words)
    assert "--direction" not in said
    assert any(row.key == "protocol" and row.became is Became.DIFFERS for row in imported.rows)


def test_connections_of_tcp_are_refused_and_every_line_is_said(tmp_path: Path) -> None:
    imported = read(tmp_path, flood().replace("protocol        udp", "mss 1460"))
    assert not imported.commands
    refused = {row.key for row in imported.rows if row.became is Became.REFUSED}
    assert {"protocol", "server", "listen"} <= refused


@pytest.mark.parametrize(
    ("change", "line", "code"),
    [
        (("mode            client", "mode            server"), 2, "exchange.dperf-server"),
        (("1.5m", "long"), 6, "exchange.dperf-not-read"),
        (("198.18.0.2       4", "198.18.0.2       0"), 14, "exchange.dperf-not-read"),
        (("198.18.0.2       4", "198.18.0.999       4"), 14, "exchange.dperf-not-read"),
        (("80              3", "65535              3"), 16, "exchange.dperf-not-read"),
        (("30k", "[Concurrent Connections]"), 9, "exchange.dperf-not-read"),
        (("server ", "#"), 1, "exchange.dperf-not-read"),
        (("payload_size    58", "payload_size    x"), 5, "exchange.dperf-not-read"),
        (("198.19.0.2", "2001:2::9"), 15, "exchange.dperf-not-read"),
    ],
)
def test_what_dperf_would_not_take_is_said_with_its_line(
    tmp_path: Path, change: tuple[str, str], line: int, code: str
) -> None:
    with raises(code) as caught:
        read(tmp_path, flood().replace(*change))
    assert caught.value.where.endswith(f"line {line}")


def test_a_load_is_never_made_up(tmp_path: Path) -> None:
    quiet = flood().replace("cc ", "#").replace("cps ", "#")
    with raises("exchange.dperf-not-read", match="no cps"):
        read(tmp_path, quiet)
    for numbers in ("-1 10", "1 0"):
        with raises("exchange.dperf-not-read", match="apart"):
            read(tmp_path, flood() + f"change_dip 198.19.0.2 {numbers}\n")


def test_what_is_not_here_is_refused_in_its_row(tmp_path: Path) -> None:
    more = (
        "vxlan 1 01:02:03:04:05:aa 01:02:03:04:05:bb 6.6.215.3 1 6.6.213.3 1\nwarp 9\nclient 198.18.1.2 1\n"
    )
    imported = read(tmp_path, flood() + more + "vlan 100\nchange_dip 198.19.0.9 1 20\n")
    refused = {row.key for row in imported.rows if row.became is Became.REFUSED}
    assert refused == {"vxlan", "warp", "client"}
    assert "vlan = [100]" in imported.testbed


@pytest.mark.parametrize(
    "text", ["64:7,570:4,1518:1", "imix = 64:7, 570:4, 1518:1\n", '"64:7;570:4;1518:1"\n']
)
def test_a_mix_is_the_frame_size_of_a_command(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "mix.txt").write_text(text)
    assert kind_of(path) == "imix"
    imported = import_imix(path, GivenHardware(), plan=None, testbed=Path("a.toml"))
    assert imported.commands[0].words[-2:] == ("--frame-size", "64:7,570:4,1518:1")
    assert [row.text for row in imported.rows] == ["7 of 12 frames", "4 of 12 frames", "1 of 12 frames"]


def test_a_mix_that_no_frames_have_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "mix.txt").write_text("64:0")
    with raises("exchange.mix-without-frames"):
        import_imix(path, GivenHardware(), plan=None, testbed=Path("a.toml"))
    path.write_text("7:1,64:3")
    with raises("procedure.frame-size-out-of-range"):
        import_imix(path, GivenHardware(), plan=None, testbed=Path("a.toml"))
