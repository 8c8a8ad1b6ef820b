# SPDX-License-Identifier: Apache-2.0
"""Exchange: which tester a file is of, before it is read: a file of another one is named, with what can be
read here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import read_foreign
from evenhand.exchange.siitperf_read import KEYS

Kind = Literal["siitperf", "otg", "trex", "pktgen", "dperf", "imix"]
NAMES: Mapping[str, str] = {
    "siitperf": "a configuration of siitperf",
    "otg": "a configuration of the Open Traffic Generator API (OTG)",
    "trex": "a stateless profile of TRex",
    "pktgen": "a script of Pktgen-DPDK",
    "dperf": "a configuration of dperf",
    "imix": "a mix of frame sizes",
}
"""What a file was found to be, by its kind."""
MOST_OCTETS = 4 * 1024 * 1024
READ = (
    "a siitperf.conf, a configuration of the Open Traffic Generator API (OTG) in JSON or YAML, a stateless"
    " profile of TRex, a configuration of dperf, a script of Pktgen-DPDK, or a mix of sizes such as"
    " 64:7,570:4,1518:1"
)
"""All that can be imported."""
_PROFILE = re.compile(r"^\s*def\s+get_streams\s*\(", re.MULTILINE)
_IMIX = re.compile(r"\s*(?:imix\s*[:=]?\s*)?[\"']?(?:\d+\s*:\s*\d+\s*[,;]?\s*)+[\"']?\s*", re.IGNORECASE)
_PKTGEN = "a program of Pktgen-DPDK", "a list of commands of Pktgen-DPDK"
_OTG_IN_YAML = re.compile(r"^flows\s*:\s*(?:#.*)?$(?s:.*?)^\s*(?:-\s+)?tx_rx\s*:", re.MULTILINE)
# By words that only files of that kind have. The first that fits is it.
_FOUND: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(pattern, re.MULTILINE)
    for kind, pattern in (
        (
            "a Python program of TRex or Scapy",
            r"^\s*(?:from|import)\s+(?:trex|scapy)|STLStream|STLProfile|ASTFProfile|STLClient",
        ),
        ("a Python program of OTG (snappi)", r"^\s*(?:import\s+snappi|from\s+snappi)"),
        ("a profile of TRex in YAML", r"^\s*-?\s*(?:cap_info|cap_ipg|port_limit|clients_start)\s*:"),
        (
            "a program of MoonGen or libmoon",
            r"require\s*\(?\s*[\"'](?:moongen|libmoon|dpdk|device|memory)[\"']",
        ),
        ("a program of Pktgen-DPDK", r"\bpktgen\.\w+\s*\(|require\s*\(?\s*[\"']Pktgen[\"']"),
        (
            "a list of commands of Pktgen-DPDK",
            r"^\s*(?:set|range|seq|start|stop|enable|disable|page|sequence)\s+(?:all|\d[\d,-]*|mac|ip)\s+\w+",
        ),
        ("a script of the kernel's pktgen", r"/proc/net/pktgen|\bpgset\b|\bpg_(?:set|ctrl|thread)\b"),
        (
            "a configuration of dperf",
            r"^\s*mode\s+(?:client|server)\b|^\s*(?:launch_num|keepalive|cps|cc)\s+\S+$",
        ),
        ("a packet generator of VPP", r"^\s*packet-generator\s+new\b"),
        ("a file of XML", r"\A\s*<\?xml|\A\s*<\w+[^>]*>\s*<"),
        ("a program of Python", r"^\s*(?:def \w+\s*\(|class \w+|from \w[\w.]* import |import \w+)"),
        ("a script of a shell", r"\A#!.*\b(?:ba|da|z|k)?sh\b"),
        (
            "a testbed file or a campaign file of Evenhand",
            r"^\s*(?:isolated_test_environment\s*=|\[\[suites?\]\])",
        ),
        ("a file of YAML", r"\A(?:---\s|\s*(?:#.*\n\s*)*[\w-]+:\s)"),
    )
}
_NEXT: Mapping[str, str] = {
    "a Python program of OTG (snappi)": "Let it write its configuration: print(config.serialize('json')).",
    "a testbed file or a campaign file of Evenhand": "It needs no import: `evenhand check FILE`,"
    " `evenhand run FILE`.",
}


def kind_of(path: Path) -> Kind:
    """By the name and what is in it.

    Raises:
        RequestError: It cannot be read, or is of a tester whose files cannot be read here.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what=READ)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return "otg"
    if _PROFILE.search(text):
        return "trex"
    if _OTG_IN_YAML.search(text):
        return "otg"
    if any(line.split()[0] in KEYS for line in text.split("\n") if line.split()):
        return "siitperf"
    if _IMIX.fullmatch(text):
        return "imix"
    found = next((kind for kind, pattern in _FOUND.items() if pattern.search(text)), None)
    if found in _PKTGEN:
        return "pktgen"
    if found == "a configuration of dperf":
        return "dperf"
    if found is None and any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n")):
        found = "not a file that is known: none of its lines begins with a key of siitperf.conf"
    if found is None:
        return "siitperf"
    raise RequestError(
        f"this is {found}",
        code="exchange.other-format",
        where=str(path),
        next_step=f"{_NEXT.get(found, 'It cannot be imported.')} `evenhand import` reads {READ}.",
    )
