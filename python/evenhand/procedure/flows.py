# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a plan of several flows asks of a testbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan, FieldPattern, Flow, SideName


def _tag_words(flow: Flow) -> str:
    """What of a tag the frames of a flow have: a VLAN, a priority, or nothing."""
    name, value = ("VLAN", flow.vlan) if flow.vlan else ("VLAN priority", flow.vlan_priority)
    return f"{name} {value.words() if isinstance(value, FieldPattern) else value}" if value else ""


def check_tags(plan: AddressPlan, vlans: Mapping[SideName, Sequence[int]]) -> None:
    """RequestError for a VLAN or a VLAN priority in frames that have no VLAN tag.

    Args:
        vlans: VLANs of the tags of each side.
    """
    asked = next((flow for flow in plan.flows if _tag_words(flow)), None)
    if asked is not None and not any(vlans.values()):
        raise RequestError(
            f"the flow {asked.name!r} has {_tag_words(asked)}, but frames have no VLAN tags",
            code="procedure.priority-without-tag",
            where="flow.vlan" if asked.vlan else "flow.vlan-priority",
            next_step="Set vlan under [left] or [right] of the testbed file, or omit it in the flow.",
        )
