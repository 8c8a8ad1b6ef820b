# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan`: what is shown is the plan, and what is written can be read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]


def test_the_default_is_the_gateway_form_with_the_maximum_of_hosts(evenhand: Run) -> None:
    """SEED-05."""
    assert evenhand("plan", "show", "gateway-v4", "--json").json["left"]["hosts"]["host"]["count"] == 65534
    text = evenhand("plan", "show", "gateway-v6").out
    assert "65,536" in text
    assert "2001:2:0:8000::ffff:2" in text


def test_hosts_are_for_both_sides_or_for_each(evenhand: Run) -> None:
    """SEED-42."""
    plan = evenhand("plan", "show", "gateway_v4", "--hosts", "1000,1", "--json").json
    assert [plan[side]["hosts"]["host"]["count"] for side in ("left", "right")] == [1000, 1]
    assert plan["pairs"] == 1000


@pytest.mark.parametrize("hosts", ["0", "65535", "1,2,3", "many", "-1", ""])
def test_bad_hosts_are_refused(evenhand: Run, hosts: str) -> None:
    ended = evenhand("plan", "show", "gateway-v4", f"--hosts={hosts}")
    assert ended.code == 2
    assert "hosts" in ended.err


def test_frames_are_written_in_every_format(evenhand: Run, engine_playing: Play, tmp_path: Path) -> None:
    from scapy.utils import rdpcap

    engine_playing("fair")
    table = evenhand("plan", "frames", "gateway-v4")
    assert "198.18.171.201" in table.out
    lines = [json.loads(line) for line in evenhand("plan", "frames", "gateway-v4", "--format", "jsonl").out.splitlines()]
    assert lines == evenhand("plan", "frames", "gateway-v4", "--json").json["frames"]
    rows = list(csv.DictReader(io.StringIO(evenhand("plan", "frames", "gateway-v4", "--format", "csv").out)))
    assert [row["octets"] for row in rows] == [frame["octets"] for frame in lines]
    capture = tmp_path / "frames.pcap"
    assert evenhand("plan", "frames", "gateway-v4", "--format", "pcap", "--output", capture).code == 0
    assert [bytes(packet).hex() for packet in rdpcap(str(capture))] == [frame["octets"] for frame in lines]


def test_a_64_octet_ipv6_frame_is_replaced_and_that_is_said(evenhand: Run, engine_playing: Play) -> None:
    """R5180-10."""
    engine_playing("fair")
    ended = evenhand("plan", "frames", "gateway-v6", "--frame-size", "64", "--json")
    assert ended.code == 0
    assert ended.json["frame_size"] == 84
    assert "84 is used instead" in " ".join(ended.err.split())


@pytest.mark.parametrize(("plan", "size"), [("gateway-v6", "83"), ("gateway-v4", "63"), ("gateway-v4", "1519"), ("gateway-v4", "big")])
def test_frame_sizes_out_of_range_are_refused(evenhand: Run, engine_playing: Play, tmp_path: Path, plan: str, size: str) -> None:
    """R2544-04, R5180-10."""
    engine_playing("fair")
    ended = evenhand("plan", "frames", plan, "--frame-size", size)
    assert ended.code == 2
    assert size in ended.err
    assert not (tmp_path / "engine-was-started").exists()


def test_a_wrong_direction_is_refused(evenhand: Run) -> None:
    assert evenhand("plan", "frames", "gateway-v4", "--direction", "up").code == 2
