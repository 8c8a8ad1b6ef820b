# SPDX-License-Identifier: Apache-2.0
"""The hosts of the draft's plans, which are ranges."""

from __future__ import annotations

from evenhand.plan import HostRange
from evenhand.plan.host_list import HostList


def as_range(hosts: HostRange | HostList) -> HostRange:
    """Not a list, as a plan file can have it."""
    assert isinstance(hosts, HostRange)
    return hosts
