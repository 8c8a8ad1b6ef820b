# SPDX-License-Identifier: Apache-2.0
"""Labs of all kinds, by name: what a record says is there."""

from __future__ import annotations

from evenhand.lab import state, vm
from evenhand.lab.linux import LinuxLab
from evenhand.lab.linux_life import read_lab
from evenhand.lab.state import RECORD_VERSION
from evenhand.lab.vm import VmLab

Lab = LinuxLab | VmLab
LABS: tuple[type[Lab], ...] = (LinuxLab, VmLab)
"""Every kind."""


def lab_class(kind: str) -> type[Lab]:
    """Class of a lab of this kind."""
    return next(lab for lab in LABS if lab.kind == kind)


def lab_status(name: str = "linux") -> Lab | None:
    """The lab of that name if it is up and whole; `check_running` says whether its DUT still is. Needs no
    root."""
    state.check_name(name)
    record = state.read_record(name)
    if record is None or record.get("version") != RECORD_VERSION:
        return None
    return vm.read_lab(name, record) if record.get("kind") == vm.KIND else read_lab(name, record)


def lab_names() -> list[str]:
    """Names of all labs that are up, or were left behind by a run that was killed, in alphabetical order."""
    return sorted(path.stem for path in state.STATE_DIRECTORY.glob("*.json"))
