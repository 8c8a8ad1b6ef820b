# SPDX-License-Identifier: Apache-2.0
"""The topologies whose DUT is a router, and those whose DUT translates."""

from __future__ import annotations

from evenhand.plan import TOPOLOGIES

ROUTED = tuple(name for name, topology in TOPOLOGIES.items() if topology.translation is None)
TRANSLATED = tuple(name for name in TOPOLOGIES if name not in ROUTED)
