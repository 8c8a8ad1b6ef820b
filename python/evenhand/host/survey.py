# SPDX-License-Identifier: Apache-2.0
"""Host: all checks, and which parts can run by them. Reads files and asks the kernel for its interfaces;
sends nothing, changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError, HostError
from evenhand.dut.ssh import command_over_ssh
from evenhand.host.clock import check_absences, check_clock
from evenhand.host.devices import check_nics, check_vfio, read_nics
from evenhand.host.finding import Finding, Part, PartReadiness, State
from evenhand.host.programs import ProgramUse, check_namespaces, check_privileges
from evenhand.host.system import (
    check_cpus,
    check_engine,
    check_frequency,
    check_hugepages,
    check_isolation,
    check_system,
)
from evenhand.testbed import HostNetwork, read_host_network
from evenhand.trial import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """What a host offers."""

    findings: tuple[Finding, ...]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> HostSurvey:
        """What `to_document` has written, on another machine. KeyError, TypeError or ValueError if that is
        not so."""
        return cls(findings=tuple(Finding.from_document(finding) for finding in document["findings"]))

    @property
    def parts(self) -> list[PartReadiness]:
        """Each part, and what is in its way."""
        return [
            PartReadiness(
                part=part,
                missing=tuple(finding.name for finding in self.findings if part in finding.missing_for),
            )
            for part in Part
        ]

    def unmet(self, parts: Sequence[Part]) -> list[Finding]:
        """What is in the way of any of these."""
        return [finding for finding in self.findings if set(parts) & set(finding.missing_for)]

    @property
    def with_advice(self) -> list[Finding]:
        """What is missing first, then what is weak."""
        return [
            finding
            for state in (State.MISSING, State.WEAK)
            for finding in self.findings
            if finding.state is state
        ]

    def to_document(self) -> dict[str, Any]:
        """For `--json` (contract/check.schema.json)."""
        return {
            "findings": [finding.to_document() for finding in self.findings],
            "parts": [part.to_document() for part in self.parts],
        }


def survey_host(
    *,
    about: Mapping[str, Any] | EvenhandError,
    watched: Watch | EvenhandError | None,
    programs: Sequence[ProgramUse] = (),
    root: Path = Path("/"),
    allowed: Collection[int] | None = None,
    network: HostNetwork | None = None,
    has_program: Callable[[str], bool] | None = None,
) -> HostSurvey:
    """Run every check.

    Args:
        about: What the engine says of itself, or why there is none.
        watched: What the engine saw of CPUs and clock; an error if it could not look, None if it was not
            asked.
        programs: What else used the CPUs while the engine looked.
        root: Where /proc, /sys, /dev, /etc and /lib are read.
        allowed: CPUs that this process may use; default: asks the kernel.
        network: The kernel's interfaces; default: asks the kernel.
        has_program: Whether a program is on PATH.
    """
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    has_program = has_program or (lambda name: shutil.which(name) is not None)
    nics = read_nics(root, network or read_host_network())
    return HostSurvey(
        findings=(
            check_system(root),
            check_engine(about),
            check_cpus(root, allowed),
            check_isolation(root, allowed),
            check_frequency(root),
            check_clock(root, watched),
            check_absences(watched, programs),
            check_privileges(root),
            check_namespaces(root, has_program),
            check_hugepages(root),
            check_vfio(root, nics),
            check_nics(nics, has_devbind=has_program("dpdk-devbind.py")),
        )
    )


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
