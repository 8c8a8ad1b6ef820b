# SPDX-License-Identifier: Apache-2.0
"""Procedure: learning before the first trial of a direct plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.base.errors import HostError
from evenhand.base.units import format_count
from evenhand.base.validation.typed_fields import check_types
from evenhand.procedure.events import Learned, OnEvent, ignore
from evenhand.procedure.tester import OpenTester
from evenhand.trial import LearningResult, learn, name_first


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningChoice:
    """Whether the DUT learns the hosts of a direct plan first, and whether all of them must be reachable."""

    is_skipped: bool = False
    allows_unreachable: bool = False

    def __post_init__(self) -> None:
        check_types(self)


ALL_HOSTS_FIRST = LearningChoice()


def learn_first(
    tester: OpenTester, choice: LearningChoice = ALL_HOSTS_FIRST, *, on_event: OnEvent = ignore
) -> OpenTester:
    """Have the DUT of a direct plan resolve every host, once, before the first trial; gateway plans need none
    of it (R2544-35).

    Returns:
        The tester with what was learnt in its profile.

    Raises:
        HostError: Hosts stayed unreachable, and that was not allowed.
    """
    profile = tester.profile
    if not profile.plan.is_direct or choice.is_skipped:
        return tester
    result = learn(tester.session, directions=profile.directions, on_progress=on_event)
    on_event(Learned(result=result))
    if not choice.allows_unreachable:
        check_reachable(
            result, next_step="Is the DUT's neighbour table large enough? allows_unreachable measures anyway."
        )
    return replace(tester, profile=replace(profile, learning=result))


def check_reachable(result: LearningResult, *, next_step: str) -> None:
    """HostError that names the hosts which the DUT does not reach."""
    if result.is_complete:
        return
    unreachable = [address for side in result.sides.values() for address in side.unreachable]
    named = name_first(unreachable, result.unreachable_hosts)
    host_count = sum(side.host_count for side in result.sides.values())
    raise HostError(
        f"the DUT does not reach {format_count(result.unreachable_hosts)} of {format_count(host_count)}"
        f" hosts: {named}",
        code="procedure.hosts-unreachable",
        where="learning",
        next_step=next_step,
    )
