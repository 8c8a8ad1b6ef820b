# SPDX-License-Identifier: Apache-2.0
"""Campaign, above the procedures: what a campaign file asks for, point by point."""

from evenhand.campaign.estimate import time_of
from evenhand.campaign.jobs import Job, difference, jobs, seed_of
from evenhand.campaign.outline import Outline, OutlineRow, describe, deviations_of
from evenhand.rig import REFERENCE, testbed_facts, tester_facts
from evenhand.spec.file import CampaignFile, Hooks, Reference, Suite, make_campaign, read_campaign
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.presets import preset_names, preset_text
from evenhand.spec.reference import reference_dut
from evenhand.spec.request import AFTER, PointRequest, plan_of, read_point

__all__ = [
    "AFTER",
    "REFERENCE",
    "CampaignFile",
    "CampaignPlan",
    "Hooks",
    "Job",
    "Outline",
    "OutlineRow",
    "PointRequest",
    "Reference",
    "Suite",
    "describe",
    "deviations_of",
    "difference",
    "expand",
    "jobs",
    "make_campaign",
    "plan_of",
    "preset_names",
    "preset_text",
    "read_campaign",
    "read_point",
    "reference_dut",
    "seed_of",
    "testbed_facts",
    "tester_facts",
    "time_of",
]
