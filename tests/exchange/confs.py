# SPDX-License-Identifier: Apache-2.0
"""Files of siitperf for the tests, and what they send, worked out from siitperf's own rules and not by the
code under test."""

from __future__ import annotations

import ipaddress
from pathlib import Path

FILES = Path(__file__).resolve().parent / "files"
EXAMPLE, SIIT = FILES / "example.conf", FILES / "siit.conf"
ROUTER_KEYS = {
    "IP-L-Vers": "4",
    "IP-R-Vers": "4",
    "IPv4-L-Real": "198.18.0.2",
    "IPv4-R-Real": "198.19.0.2",
    "IPv6-L-Real": "2001:2::2",
    "IPv6-R-Real": "2001:2:0:8000::2",
    "CPU-L-Send": "2",
    "CPU-R-Recv": "4",
    "CPU-R-Send": "6",
    "CPU-L-Recv": "8",
}
"""A router between two hosts: the least that siitperf needs, but for MACs."""
PORTS = {f"{way}-var-{port}": "3" for way in ("Fwd", "Rev") for port in ("sport", "dport")}
MANY_V4 = {
    **ROUTER_KEYS,
    **PORTS,
    "IP-L-var": "3",
    "IP-R-var": "3",
    "IP-L-min": "2",
    "IP-L-max": "65534",
    "IP-R-min": "2",
    "IP-R-max": "65534",
    "IPv4-L-offset": "2",
    "IPv4-R-offset": "2",
}
"""What siitperf's README has for IPv4 with many addresses."""
MANY_V6 = {
    **ROUTER_KEYS,
    **PORTS,
    "IP-L-Vers": "6",
    "IP-R-Vers": "6",
    "IP-L-var": "3",
    "IP-R-var": "3",
    "IP-L-min": "0",
    "IP-L-max": "0xffff",
    "IP-R-min": "0",
    "IP-R-max": "0xffff",
    "IPv6-L-offset": "12",
    "IPv6-R-offset": "12",
}
"""The same for IPv6."""


def write_conf(path: Path, keys: dict[str, str]) -> Path:
    path.write_text("".join(f"{key} {value} # as it was\n" for key, value in keys.items()))
    return path


def ends_of(keys: dict[str, str], part: str) -> tuple[str, str]:
    """The first and the last address of a side, as siitperf makes them: 16 bits at an octet of the address,
    put to each number."""
    version = keys[f"IP-{part}-Vers"]
    real = ipaddress.ip_address(keys[f"IPv{version}-{part}-Real"])
    if keys.get(f"IP-{part}-var", "0") == "0":
        return str(real), str(real)
    offset = int(keys[f"IPv{version}-{part}-offset"])
    found = []
    for end in ("min", "max"):
        octets = bytearray(real.packed)
        octets[offset], octets[offset + 1] = divmod(int(keys[f"IP-{part}-{end}"], 0), 256)
        found.append(str(ipaddress.ip_address(bytes(octets))))
    return found[0], found[1]
