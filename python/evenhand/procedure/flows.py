# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a plan of several flows asks of a testbed and of the limits of its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan, FieldPattern, Flow, SideName, has_limits
from evenhand.trial import Limits


def limits_for(limits: Limits, plan: AddressPlan) -> Limits:
    """The same for trials of this plan: where flows have limits of their own, no part of a trial is left out,
    since the engine counts the clean time of all frames together."""
    return replace(limits, clean_at_most=None) if has_limits(plan.flows) else limits


def _priority_words(flow: Flow) -> str:
    priority = flow.vlan_priority
    return f"VLAN priority {priority.words() if isinstance(priority, FieldPattern) else priority}"


def check_tags(plan: AddressPlan, vlans: Mapping[SideName, Sequence[int]]) -> None:
    """RequestError for a VLAN priority in frames that have no VLAN tag.

    Args:
        vlans: VLANs of the tags of each side.
    """
    asked = next((flow for flow in plan.flows if flow.vlan_priority), None)
    if asked is not None and not any(vlans.values()):
        raise RequestError(
            f"the flow {asked.name!r} has {_priority_words(asked)}, but frames have no VLAN tags",
            code="procedure.priority-without-tag",
            where="flow.vlan-priority",
            next_step="Set vlan under [left] or [right] of the testbed file, or omit the priority.",
        )
