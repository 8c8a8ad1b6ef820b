# SPDX-License-Identifier: Apache-2.0
"""Learning before the first trial of a direct plan, and the options that shape it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenhand.cli.setup import OpenTester, Setup
from evenhand.errors import HostError, RequestError
from evenhand.plan import AddressPlan
from evenhand.progress import ProgressDisplay
from evenhand.report import learning_lines
from evenhand.trial import LearningResult, Waits, learn
from evenhand.units import format_count

NAMED_IN_THE_ERROR = 5
"""Unreachable hosts; the first hundred stand above it."""


class HostMacSet(StrEnum):
    """MACs of the hosts on the link."""

    PORT = "port"
    PSEUDORANDOM = "pseudorandom"


_PANEL = "Direct plans (hosts on the link)"
HostMacsOption = Annotated[
    HostMacSet,
    typer.Option(
        "--host-macs",
        metavar="|".join(HostMacSet),
        help="All hosts have the MAC of the tester's port, or each its own, drawn from the seed (RFC 4814, 4.2).",
        rich_help_panel=_PANEL,
    ),
]
NoLearningOption = Annotated[
    bool,
    typer.Option(
        "--no-learning", help="Do not have the DUT resolve every host before the first trial; a deviation.", rich_help_panel=_PANEL
    ),
]
AllowUnreachableOption = Annotated[
    bool,
    typer.Option("--allow-unreachable", help="Go on if learning leaves hosts that the DUT does not reach.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningChoice:
    """Whether the DUT learns the hosts of a direct plan first, and whether all of them are wanted."""

    is_skipped: bool = False
    allows_unreachable: bool = False


ALL_HOSTS_FIRST = LearningChoice()


def check_host_macs(macs: HostMacSet, plan: AddressPlan) -> None:
    """RequestError for hosts that are not on the link: they have no MAC there (R4814-06)."""
    if macs is not HostMacSet.PORT and not plan.is_direct:
        raise RequestError(
            f"the hosts of {plan.title} stand behind a gateway, and have no MACs of their own on the link",
            where="--host-macs",
            next_step="Use a direct plan such as direct-v4-net16, or leave it out (RFC 4814, 4.2).",
        )


def learn_first(tester: OpenTester, *, choice: LearningChoice, progress: ProgressDisplay) -> OpenTester:
    """Have the DUT of a direct plan resolve every host, once, before the first trial; gateway plans need none of it (R2544-35).

    Returns:
        The tester with what was learnt in its profile.

    Raises:
        HostError: Hosts stayed unreachable, and that was not allowed.
    """
    profile = tester.profile
    if not profile.plan.is_direct or choice.is_skipped:
        return tester
    result = learn(tester.session, directions=profile.directions, on_progress=progress.on_learning)
    for line in learning_lines(result):
        progress.say(line)
    if not choice.allows_unreachable:
        check_reachable(result, next_step="Is the DUT's neighbour table large enough? --allow-unreachable measures all the same.")
    return replace(tester, profile=replace(profile, learning=result))


def setup_details(setup: Setup, tester: OpenTester, waits: Waits) -> dict[str, Any]:
    """The set-up of a search, for the run file. Of a lab it has the DUT's neighbour table after learning (recorded only, SEED-07)."""
    learning = tester.profile.learning
    return {
        **setup.to_document(),
        "opened": tester.opened,
        "resolved": tester.resolved,
        "waits": waits.to_contract(),
        "single_pair": None if tester.profile.single_pair is None else tester.profile.single_pair.to_document(),
        "host_macs": tester.profile.host_macs,
        "directions": list(tester.profile.directions),
        "traffic": tester.profile.traffic.to_document(macs=tester.profile.macs, host_macs=tester.profile.host_macs),
        "learning": None if learning is None else learning.to_document(),
    }


def check_reachable(result: LearningResult, *, next_step: str) -> None:
    """HostError that names the hosts which the DUT does not reach."""
    if result.is_complete:
        return
    unreachable = [address for side in result.sides.values() for address in side.unreachable]
    more = result.unreachable_hosts - len(unreachable[:NAMED_IN_THE_ERROR])
    named = ", ".join(unreachable[:NAMED_IN_THE_ERROR]) + (f" and {format_count(more)} more" if more else "")
    hosts = sum(side.hosts for side in result.sides.values())
    raise HostError(
        f"the DUT does not reach {format_count(result.unreachable_hosts)} of {format_count(hosts)} hosts: {named}",
        where="learning",
        next_step=next_step,
    )
