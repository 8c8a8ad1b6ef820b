# SPDX-License-Identifier: Apache-2.0
"""A `Shell` whose commands run in a network namespace of this machine: the kernel's own router, without a way
to it that could fail."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from evenhand import testbed as testbeds
from evenhand.base.errors import HostError
from evenhand.dut.shell import Answer
from evenhand.dut.ssh import DutHost
from evenhand.lab import LinuxLab
from evenhand.rig import Setup, make_lab_setup


@dataclass
class NamespaceShell:
    """Commands are counted; what is in `broken` is no longer answered."""

    namespace: str
    commands: list[str] = field(default_factory=list)
    is_lost: bool = False
    host: DutHost = field(default_factory=lambda: DutHost(kernel="Linux", user_id=0, peer=None, address=None))

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        self.commands.append(command)
        if self.is_lost:
            raise HostError(
                "the connection to the DUT was lost", code="rig.connection-lost", where=self.namespace
            )
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, "sh", "-c", command],
            input=input_text,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Answer(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def reachable_lab(lab: LinuxLab, monkeypatch: pytest.MonkeyPatch) -> tuple[Setup, NamespaceShell]:
    """The lab as a testbed whose DUT can be looked into; its shell is the namespace's instead of ssh's."""
    shell = NamespaceShell(lab.dut_namespace)

    @contextmanager
    def open_shell(dut: testbeds.TestbedDut, *, config: Path | None) -> Iterator[NamespaceShell]:
        assert config is None
        yield shell

    monkeypatch.setattr("evenhand.rig.inside.open_shell", open_shell)
    setup = make_lab_setup(lab)
    reach = {
        "ssh": f"root@{lab.dut_namespace}",
        "os": "linux",
        "left": (lab.dut_interface("left"),),
        "right": (lab.dut_interface("right"),),
    }
    dut = setup.testbed.dut.model_copy(update=reach)
    return replace(setup, testbed=setup.testbed.model_copy(update={"dut": dut})), shell
