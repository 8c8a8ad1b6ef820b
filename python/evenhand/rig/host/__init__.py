# SPDX-License-Identifier: Apache-2.0
"""Host: what this machine offers to a tester, and what to do where that is not enough. Reads only."""

from evenhand.rig.host.finding import Finding, Part, PartReadiness, State
from evenhand.rig.host.survey import HostSurvey, survey_host

__all__ = ["Finding", "HostSurvey", "Part", "PartReadiness", "State", "survey_host"]
