# SPDX-License-Identifier: Apache-2.0
"""Rig: the table of connections of a DUT that keeps state, emptied out of band (R9693-07)."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

from evenhand.base.errors import HostError

LONGEST_S = 300.0
"""Of emptying a table: 10^8 connections at the rates of RFC 9693, 4.8, take minutes."""
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """A table that was emptied."""

    seconds: float
    """From the request until it was done (R9693-13)."""
    connections: int | None = None
    """That were in it; None if the DUT does not tell."""


def empty_by_command(command: str, *, where: str) -> Emptied:
    """Run a command of the user's on this host. HostError with its last words if it fails."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            shell=True,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"{command!r} did not empty the DUT's table of connections within {LONGEST_S:.0f} s",
            code="rig.emptying-takes-too-long",
            where=where,
        ) from error
    seconds = time.monotonic() - began
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-_SHOWN:] or "it says nothing"
        raise HostError(
            f"{command!r} ended with {done.returncode} instead of emptying the DUT's table of connections:"
            f" {said}",
            code="rig.emptying-failed",
            where=where,
            next_step="Run it by hand until it works.",
        )
    return Emptied(seconds=seconds)
