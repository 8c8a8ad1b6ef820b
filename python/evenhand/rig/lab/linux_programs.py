# SPDX-License-Identifier: Apache-2.0
"""Programs that a Linux lab needs besides the kernel: which of them its plan and rules need, and which of
these this host lacks, all of them at once."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from evenhand.base.errors import HostError
from evenhand.plan import AddressPlan
from evenhand.rig.lab import nft, translator
from evenhand.rig.lab.build import translations_of
from evenhand.rig.lab.machine import system_path


@dataclass(frozen=True, slots=True)
class _Need:
    what: str
    """What needs it."""
    program: str
    name: str
    """For people."""
    install: str


def check_linux_programs(plan: AddressPlan, rules: int) -> None:
    """HostError that names all programs that such a lab needs and this host does not have.

    Args:
        rules: Number of rules of its firewall.
    """
    needs = (
        [_Need("a translator as DUT", translator.PROGRAM, "TAYGA", translator.INSTALL)]
        if (translations_of(plan))
        else []
    )
    ruled = [*(["the NAT"] if plan.nat is not None else []), *(["the firewall"] if rules else [])]
    if ruled:
        needs.append(_Need(" and ".join(ruled), nft.PROGRAM, nft.PROGRAM, nft.INSTALL))
    lacking = [need for need in needs if shutil.which(need.program, path=system_path()) is None]
    if lacking:
        named = ", and ".join(f"{need.name} for {need.what}" for need in lacking)
        raise HostError(
            f"the lab needs {named}, which {'are' if len(lacking) > 1 else 'is'} not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install {'them' if len(lacking) > 1 else 'it'}:"
            f" {'; '.join(need.install for need in lacking)}",
        )
