# SPDX-License-Identifier: Apache-2.0
"""What the demos measure: the points of a preset, which a user can measure as a campaign, and change."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Traffic
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand


def read_demo(preset: str, changed: Mapping[str, str] | None = None) -> CampaignPlan:
    """The preset as a campaign.

    Args:
        changed: Keys of all suites that this demo has otherwise than the preset.
    """
    every = {"every-suite": dict(changed)} if changed else {}
    return expand(make_campaign({"preset": preset, **every}, where="demo"))


def addresses_in_words(plan: AddressPlan) -> str:
    """`one address pair`, or how many there are of each side."""
    if plan.pairs == 1:
        return "one address pair"
    return Traffic(plan=plan, directions=BOTH_DIRECTIONS).address_words
