# SPDX-License-Identifier: Apache-2.0
"""Station 7, results: the addresses and ports with which one frame came through a DUT that translates."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.trial.contract_values import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFlow:
    """As it came to the tester."""

    frame: int
    """Its number."""
    source: str
    destination: str
    source_port: int
    destination_port: int


def read_seen_flow(document: Mapping[str, Any] | None) -> SeenFlow | None:
    """ValueError, KeyError or TypeError if the document is outside the contract."""
    if document is None:
        return None
    return SeenFlow(
        frame=whole(document, "frame"),
        source=str(ipaddress.ip_address(document["source"])),
        destination=str(ipaddress.ip_address(document["destination"])),
        source_port=whole(document, "source_port"),
        destination_port=whole(document, "destination_port"),
    )
