# SPDX-License-Identifier: Apache-2.0
"""Host: the checks of another host, by the Evenhand that is installed there."""

from __future__ import annotations

import json
import subprocess

from evenhand.base.errors import HostError
from evenhand.rig.dut.ssh_command import command_over_ssh
from evenhand.rig.host.survey import HostSurvey

PATIENCE_S = 60.0
"""For all but the watching: the connection, and the checks."""
_COMMAND = "evenhand check --json --watch"


def survey_over_ssh(destination: str, *, watch_s: float) -> HostSurvey:
    """What `evenhand check` finds on that host.

    Args:
        destination: The host as the testbed file has it.
        watch_s: Seconds for which its CPUs and its clock are watched; 0: not at all.

    Raises:
        HostError: It is not reached, has no Evenhand, or reports something else.
    """
    command = f"{_COMMAND} {watch_s:g}s"
    try:
        ended = subprocess.run(
            command_over_ssh(destination, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=watch_s + PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unknown(destination, command, f"no answer within {watch_s + PATIENCE_S:g} s") from None
    if ended.returncode:
        words = " | ".join(ended.stderr.strip().splitlines()[-3:]) or "no word of why"
        raise _unknown(destination, command, f"exit code {ended.returncode}: {words}")
    try:
        return HostSurvey.from_document(json.loads(ended.stdout)["host"])
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise _unknown(destination, command, f"its answer is not that of a check: {error!r}") from error


def _unknown(destination: str, command: str, why: str) -> HostError:
    return HostError(
        f"the host {destination} is not checked: {why}",
        code="rig.host-not-checked",
        where=destination,
        next_step=f"Try it by hand: ssh {destination} {command}",
    )
