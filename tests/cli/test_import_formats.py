# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of files that it cannot read: which tester they are of, and what can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended

Run = Callable[..., Ended]

FILES = {
    "trex.py": ("from trex_stl_lib.api import *\nclient = STLClient()\nclient.connect()\n", "TRex"),
    "trex.yaml": (
        "- duration : 10\n  generator :\n    clients_start : '16.0.0.1'\n  cap_info :\n    - name: a.pcap\n",
        "TRex",
    ),
    "trex_cfg.yaml": ("- port_limit : 2\n  version : 2\n  interfaces : ['03:00.0']\n", "TRex"),
    "pktgen.sh": ("#!/bin/bash\nPGDEV=/proc/net/pktgen/eth1\npgset 'count 100'\n", "kernel's pktgen"),
    "moongen.lua": ('local mg = require "moongen"\nlocal memory = require "memory"\n', "MoonGen"),
    "snappi.py": ("import snappi\napi = snappi.api()\n", "snappi"),
    "other.yaml": ("---\ntest: 1\n", "YAML"),
    "session.ossn": ("<?xml version='1.0'?>\n<session/>\n", "XML"),
    "notes.txt": ("some words\nof somebody\n", "none of its lines begins with a key of siitperf.conf"),
    "lab.txt": ('isolated_test_environment = true\n[left]\ndevice = "0000:01:00.0"\n', "Evenhand"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_tester_is_named_with_what_can_be_read(
    evenhand: Run, tmp_path: Path, name: str
) -> None:
    content, named = FILES[name]
    (tmp_path / name).write_text(content)
    ended = evenhand("import", name)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == ("exchange.other-format", name)
    assert named in ended.error.what
    assert "a siitperf.conf, a configuration of the Open Traffic Generator API (OTG) in JSON or YAML" in (
        ended.error.next_step
    )
    assert not list(tmp_path.glob("*.toml"))


def test_a_mistyped_key_of_siitperf_is_still_found(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "siitperf.conf").write_text("IP-L-Vers 4\nIP-R-Verz 4\n")
    ended = evenhand("import", "siitperf.conf")
    assert ended.error.code == "exchange.unknown-key"
    assert "IP-R-Vers" in ended.error.next_step


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.conf", "mode client\nprotocol udp\ncps 1k\nclient 198.18.0.2 1\nserver 198.19.0.2 1\n", "dperf"),
        ("a.pkt", "set 0 src ip 198.18.0.2/24\nset 0 dst ip 198.19.0.2\nset 0 size 64\n", "Pktgen-DPDK"),
        ("a.txt", "64:7,570:4,1518:1\n", "a mix of frame sizes"),
    ],
)
def test_a_file_is_told_by_its_content_and_named(
    evenhand: Run, tmp_path: Path, name: str, content: str, what: str
) -> None:
    (tmp_path / name).write_text(content)
    ended = evenhand("import", name)
    assert ended.code == 0, ended.err
    assert what in ended.out.split("\n")[0]
    assert (tmp_path / "a.toml").exists()
