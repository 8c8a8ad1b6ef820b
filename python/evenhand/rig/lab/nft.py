# SPDX-License-Identifier: Apache-2.0
"""Rules of nftables in the DUT's namespace of a Linux lab."""

from __future__ import annotations

import shutil
import subprocess

from evenhand.base.errors import HostError
from evenhand.base.units import format_duration
from evenhand.rig.dut.nat import NFT_INSTALL
from evenhand.rig.lab.machine import system_path

PROGRAM = "nft"
INSTALL = f"sudo {NFT_INSTALL}"
_PATIENCE_S = 30.0


def check_nft(what: str) -> None:
    """HostError if the program that sets the rules of `what` is missing."""
    if shutil.which(PROGRAM, path=system_path()) is None:
        raise HostError(
            f"{what} of the lab needs {PROGRAM}, which is not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install it: {INSTALL}",
        )


def set_rules(rules: str, *, what: str) -> None:
    """Let nft read these rules. Call inside the DUT's namespace.

    Args:
        what: Whose rules they are, such as `the NAT`.

    Raises:
        HostError: No nft, the kernel refuses its rules, or it does not end.
    """
    check_nft(what)
    program = shutil.which(PROGRAM, path=system_path()) or PROGRAM
    try:
        done = subprocess.run(
            [program, "-f", "-"],
            input=rules,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"nft has not set the rules of {what} within {format_duration(_PATIENCE_S)}",
            code="rig.rules-refused",
            where="lab",
            next_step="The host is overloaded, or another program holds its rules: try again.",
        ) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise HostError(
            f"nft cannot set the rules of {what}: {said[0] if said else 'no message'}",
            code="rig.rules-refused",
            where="lab",
            next_step="The kernel needs nf_tables (with NAT, 5.8 or later).",
        )
