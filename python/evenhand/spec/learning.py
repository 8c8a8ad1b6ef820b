# SPDX-License-Identifier: Apache-2.0
"""Specification: options of direct plans: the hosts' MACs, and learning before the first trial."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from evenhand.base.errors import RequestError
from evenhand.base.option import Option
from evenhand.plan import AddressPlan
from evenhand.procedure import LearningChoice


class HostMacSet(StrEnum):
    """MACs of the hosts on the link."""

    PORT = "port"
    PSEUDORANDOM = "pseudorandom"


_PANEL = "Direct plans (hosts on the link)"
HostMacsOption = Annotated[
    HostMacSet,
    Option(
        declared="--host-macs",
        metavar="|".join(HostMacSet),
        help="Give all hosts the MAC of the tester's port, or each a MAC of its own, drawn from the"
        " seed (RFC 4814, 4.2).",
        panel=_PANEL,
    ),
]
NoLearningOption = Annotated[
    bool,
    Option(
        declared="--no-learning",
        help="Do not make the DUT resolve every host before the first trial; a deviation.",
        panel=_PANEL,
    ),
]
AllowUnreachableOption = Annotated[
    bool,
    Option(
        declared="--allow-unreachable",
        help="Continue if the DUT does not reach all hosts after learning.",
        panel=_PANEL,
    ),
]


def check_host_macs(macs: HostMacSet, plan: AddressPlan) -> None:
    """RequestError for hosts that are not on the link: they have no MAC there (R4814-06)."""
    if macs is not HostMacSet.PORT and not plan.is_direct:
        raise RequestError(
            f"the hosts of {plan.title} are behind a gateway, and have no MACs of their own on the link",
            code="spec.hosts-without-macs",
            where="--host-macs",
            next_step="Use a direct plan such as direct-v4-net16, or omit the option (RFC 4814, 4.2).",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    """What the DUT learns before the first trial of a direct plan."""

    host_macs: HostMacsOption = HostMacSet.PORT
    no_learning: NoLearningOption = False
    allow_unreachable: AllowUnreachableOption = False

    def read(self, plan: AddressPlan) -> LearningChoice:
        """RequestError for hosts that are not on the link: they have no MAC there."""
        check_host_macs(self.host_macs, plan)
        return LearningChoice(is_skipped=self.no_learning, allows_unreachable=self.allow_unreachable)
