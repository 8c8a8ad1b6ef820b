# SPDX-License-Identifier: Apache-2.0
"""Host: what this machine offers to a tester, and what to do where that is not enough. Reads only."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.host.finding import Finding, Part, PartReadiness, State
    from evenhand.host.survey import HostSurvey, survey_host
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {"finding": ("Finding", "Part", "PartReadiness", "State"), "survey": ("HostSurvey", "survey_host")},
    )

__all__ = ["Finding", "HostSurvey", "Part", "PartReadiness", "State", "survey_host"]
