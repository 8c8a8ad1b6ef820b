# SPDX-License-Identifier: Apache-2.0
"""The dissector of `evenhand plan dissector` in the real program: it reads the tag of each test frame, and
leaves other frames alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from evenhand.cli.main import main

FRAMES = 300
"""Enough for ports that belong to other protocols."""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["plan", "dissector"]) == 0
    path = tmp_path / "evenhand.lua"
    path.write_text(capsys.readouterr().out)
    return path


def fields(script: Path, capture: Path, *names: str, where: str = "") -> list[list[str]]:
    command = ["tshark", "-X", f"lua_script:{script}", "-r", str(capture), "-T", "fields"]
    command += [word for name in names for word in ("-e", name)] + (["-Y", where] if where else [])
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in shown.splitlines()]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_each_test_frame_is_read(plan: str, direction: str, script: Path, tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    asked = ["plan", "frames", plan, "--count", str(FRAMES), "--direction", direction, "--first", "7"]
    assert main([*asked, "--format", "pcap", "--output", str(path)]) == 0
    tag = [f"evenhand.{name}" for name in ("sequence", "direction", "stream", "time")]
    number = "01"[direction == "reverse"]
    assert fields(script, path, *tag, "_ws.col.Protocol") == [
        [str(k), number, "0", "0", "Evenhand"] for k in range(7, 7 + FRAMES)
    ]
    assert fields(script, path, "frame.number", where="_ws.malformed") == []


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_a_tag_behind_a_payload_is_read(version: str, script: Path, tmp_path: Path) -> None:
    """A payload of an odd length, and one that begins as a tag does."""
    sides = {"v4": ("10.0.0", "198.18.0.1", "10.0.1", "198.19.0.1")}
    sides["v6"] = ("2001:2:0:1000:", "2001:2::2", "2001:2:0:9000:", "2001:2:0:8000::2")
    left, source, right, destination = sides[version]
    dot, length = (".", 24) if version == "v4" else (":", 64)
    text = "".join(
        f'[{side}]\ngateway = "{link}{dot}2"\ndut = "{link}{dot}1/{length}"\nhosts = "{host}"\n'
        for side, link, host in (("left", left, source), ("right", right, destination))
    )
    for payload in ("48656c6c6f", "e5e401" + "00" * 20):
        text += f'[[flow]]\nname = "{len(payload)}"\npayload = "{payload}"\n'
    (tmp_path / "plan.toml").write_text(text)
    path = tmp_path / "frames.pcap"
    asked = ["plan", "frames", str(tmp_path / "plan.toml"), "--count", "20", "--format", "pcap"]
    assert main([*asked, "--output", str(path)]) == 0
    assert fields(script, path, "evenhand.sequence") == [[str(k)] for k in range(20)]


def test_frames_of_others_are_left_to_their_dissectors(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "dns.pcap"
    question = UDP(sport=5555, dport=53) / DNS(qd=DNSQR(qname="example.org"))
    wrpcap(str(path), [Ether() / IP(dst="192.0.2.1") / question])
    assert fields(script, path, "dns.qry.name", "evenhand.sequence") == [["example.org", ""]]
