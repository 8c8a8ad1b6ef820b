# SPDX-License-Identifier: Apache-2.0
"""The topologies whose DUT is a router, those whose DUT translates, and those whose DUT keeps state."""

from __future__ import annotations

from evenhand.plan import TOPOLOGIES

ROUTED = tuple(
    name for name, topology in TOPOLOGIES.items() if topology.translation is None and topology.nat is None
)
TRANSLATED = tuple(name for name, topology in TOPOLOGIES.items() if topology.translation is not None)
STATEFUL = tuple(name for name, topology in TOPOLOGIES.items() if topology.nat is not None)
PREFIXES = tuple(f"2001:db8::/{length}" for length in (32, 40, 48, 56, 64, 96))
"""Prefixes of a translator, one of each length (RFC 6052, 2.2)."""
WITH_PREFIX = tuple(f"{name}@{prefix}" for name in ("siit", "siit_eam", "nat64") for prefix in PREFIXES)
