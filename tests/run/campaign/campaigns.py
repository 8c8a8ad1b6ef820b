# SPDX-License-Identifier: Apache-2.0
"""Campaigns that tests expand."""

from __future__ import annotations

from typing import Any

from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand


def campaign(*suites: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """The document of a file; a suite without a name is called `a`."""
    return {
        "name": "test",
        **keys,
        **({"suite": [{"name": "a", **suite} for suite in suites]} if suites else {}),
    }


def expanded(*suites: dict[str, Any], **keys: Any) -> CampaignPlan:
    return expand(make_campaign(campaign(*suites, **keys), where="c.toml"))
