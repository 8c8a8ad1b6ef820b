# SPDX-License-Identifier: Apache-2.0
"""Addresses that only this machine reaches."""

from __future__ import annotations

import ipaddress


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches it; False for a name, whatever that resolves to."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
