# SPDX-License-Identifier: Apache-2.0
"""Rig: the table of connections of a DUT that keeps state, emptied out of band (R9693-07)."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.base.errors import HostError
from evenhand.base.programs import run_shell_command
from evenhand.base.units import format_duration
from evenhand.base.validation.document import Documented

LONGEST_S = 300.0
"""Longest time for emptying a table: 10^8 connections at the rates of RFC 9693, 4.8, take minutes."""
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied(Documented):
    """A table that was emptied."""

    seconds: float
    """Seconds from the request until it was done (R9693-13)."""
    connections: int | None = None
    """Connections that were in it; None if the DUT does not report them."""


def empty_by_command(command: str, *, where: str, longest_s: float = LONGEST_S) -> Emptied:
    """Run a command of the user's on this machine. HostError with its last words if it fails, or takes too
    long: then it is ended with all that it started."""
    ended = run_shell_command(command, timeout_s=longest_s)
    if ended.exit_code == 0:
        return Emptied(seconds=ended.duration_s)
    said = ended.output.strip()[-_SHOWN:] or "no output"
    if ended.exit_code is None:
        raise HostError(
            f"{command!r} did not empty the DUT's table of connections within {format_duration(longest_s)},"
            f" and was ended: {said}",
            code="rig.emptying-takes-too-long",
            where=where,
            next_step="Run it by hand, and see what it waits for.",
        )
    raise HostError(
        f"{command!r} ended with {ended.exit_code} instead of emptying the DUT's table of connections:"
        f" {said}",
        code="rig.emptying-failed",
        where=where,
        next_step="Run it by hand until it works.",
    )
