# SPDX-License-Identifier: Apache-2.0
"""Two routers in network namespaces of one host, which share /run: each is set up, held and put back by
itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from evenhand.dut import record as records
from evenhand.dut.record import Holder, SetupRecord
from evenhand.dut.shell import Answer

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")]
RECORD = SetupRecord(
    identity="",
    holder=Holder.here("hand"),
    system="linux",
    boot_id="boot",
    plan="gateway-v4",
    hash_type=None,
    interfaces=("left", "right"),
    fingerprint="",
    items=(),
    options={},
)


@dataclass(frozen=True)
class NamespaceShell:
    """A `Shell` in a namespace of this machine."""

    namespace: str

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, "sh", "-c", command],
            input=input_text,
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture
def shells() -> Iterator[list[NamespaceShell]]:
    names = [f"evenhand-shared-run-{os.getpid()}-{n}" for n in range(2)]
    made = [NamespaceShell(name) for name in names]
    kept: list[Path] = []
    try:
        for shell in made:
            subprocess.run(["ip", "netns", "add", shell.namespace], check=True)
            number = shell.run("readlink /proc/self/ns/net | tr -dc 0-9").stdout
            kept.append(Path(f"/run/evenhand-dut-{number}"))
        yield made
    finally:
        for folder in kept:
            assert [path.name for path in folder.iterdir()] == []
            folder.rmdir()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def test_routers_in_namespaces_that_share_run_are_held_one_by_one(shells: list[NamespaceShell]) -> None:
    """The second was said to be set up already, so that every other set-up of a series was missing."""
    first, second = (replace(RECORD, identity=digit * 32) for digit in "12")
    assert records.take(shells[0], first) is None
    assert records.read_held(shells[1]) is None
    assert not records.is_begun(shells[1])
    assert records.take(shells[1], second) is None
    for shell, own, other in ((shells[0], first, second), (shells[1], second, first)):
        assert records.take(shell, other) == own
        # Its commands have the folder too: rules and translators keep their files there.
        (said,) = records.run_held(shell, own.identity, ["echo $evenhand; false"], timeout_s=10)
        assert said is not None
        assert said.startswith("/run/evenhand-dut-")
        records.drop(shell, own.identity)
        assert records.read_held(shell) is None
