# SPDX-License-Identifier: Apache-2.0
"""The operating systems of DUTs, as users name them."""

from typing import Literal

DutSystem = Literal[
    "linux",
    "frr",
    "bird",
    "vyos",
    "openwrt",
    "sonic",
    "openbsd",
    "freebsd",
    "opnsense",
    "pfsense",
    "vpp",
    "routeros",
    "cisco-ios",
    "arista-eos",
    "junos",
    "srlinux",
]
"""What a DUT may run that is reached over SSH."""
