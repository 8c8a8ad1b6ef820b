# SPDX-License-Identifier: Apache-2.0
"""One machine for all tests of the rung; the last of them may kill it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from evenhand.dut.shell import Shell
from evenhand.dut.ssh import open_ssh
from evenhand.lab import VmLab, lab_down, vm_up
from evenhand.plan import make_plan

ANSWER_WITHIN_S = 120.0


def ask(shell: Shell, command: str) -> str:
    """What it prints; it must not fail."""
    answer = shell.run(command, timeout_s=ANSWER_WITHIN_S)
    assert answer.exit_code == 0, f"{command}: {answer.stderr}"
    return answer.stdout


def suite() -> str:
    """Debian's code name of the machine's system, from the environment (`EVENHAND_VM_DEBIAN=trixie`); this
    machine's if it says nothing."""
    return os.environ.get("EVENHAND_VM_DEBIAN", "")


@pytest.fixture(scope="session")
def lab() -> Iterator[VmLab]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for taps in a namespace")
    name = f"m{os.getpid() % 10_000_000}"
    try:
        yield vm_up(make_plan("gateway_v4"), name=name, suite=suite(), say=print)
    finally:
        lab_down(name, force=True)


@pytest.fixture(scope="session")
def shell(lab: VmLab) -> Iterator[Shell]:
    with open_ssh(lab.ssh_host, config=lab.ssh_config) as shell:
        yield shell
