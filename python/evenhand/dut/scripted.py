# SPDX-License-Identifier: Apache-2.0
"""A DUT of another system than Linux set up over SSH: by the script that `dut setup` prints for its shell,
which reads back what it has set, and undone by the script that undoes it.

The undo is written down on the DUT before anything is changed, so that it can be run from anywhere, and after
a kill -9. Whoever makes its folder has the DUT until then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import HostError
from evenhand.dut.description import DutSetup
from evenhand.dut.dialogs import DIALOGS
from evenhand.dut.named_system import MOST_NAMED, NamedSystemDut
from evenhand.dut.readings_queues import quote
from evenhand.dut.record import Holder, NamedRecord, document_of, read_record
from evenhand.dut.ssh import SshShell
from evenhand.testbed import TestbedDut

HELD = "/var/run/evenhand-script"
"""Folder on the DUT; of all these systems, /var/run vanishes with what was set when it restarts."""
CHANGE_S = 300.0
_TAKEN = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRecord(NamedRecord):
    """One set-up by scripts, as it is written on the DUT."""

    before: tuple[str, ...]
    """All addresses and routes before it, a line for each."""
    undo: tuple[str, ...]
    """Scripts that undo it, in the order in which they are to be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedDut(NamedSystemDut[ScriptRecord]):
    """The DUT of a testbed, and root's shell on it."""

    shell: SshShell

    @property
    def title(self) -> str:
        return f"{self.shell.host.kernel}, root"

    @property
    def facts(self) -> dict[str, Any]:
        return {"kernel": self.shell.host.kernel}

    def state(self) -> tuple[str, ...]:
        """All its addresses and routes, a line for each, as the system's functions print them; and `missing
        NAME` for an interface that is not there."""
        asked = (
            "addresses; routes4; routes6",
            *(
                f"{self.system.show_interface.format(name=quote(name))} > /dev/null 2>&1"
                f" || echo missing {quote(name)}"
                for name in self.interfaces
            ),
        )
        lines = (*self.system.begin, *asked, *self.system.end, "")
        answer = self.shell.run("exec sh -e -s", input_text="\n".join(lines))
        if answer.exit_code:
            raise HostError(
                f"the DUT does not report its addresses and routes: {_last(answer.stderr)}",
                code="rig.dut-answer-not-understood",
                where=self.where,
                next_step=f"Check whether it runs {self.system.title}: [dut] os.",
            )
        return tuple(sorted({line for line in answer.stdout.splitlines() if line.strip()}))

    def check(self) -> tuple[tuple[str, ...], ScriptRecord | None]:
        state, names = self._check_interfaces(), set(self.interfaces)
        return tuple(line for line in state if line.split()[-1] in names), self.read_held()

    def apply(self, setups: Sequence[DutSetup], holder: Holder) -> ScriptRecord:
        """See `NamedSystemDut.apply`: the scripts read back themselves what they have set."""
        before = self._check_interfaces()
        there, back = ([one.text() for one in self.scripts(setups, is_undo=undo)] for undo in (False, True))
        record = ScriptRecord(**self.asked(setups, holder), before=before, undo=tuple(back))
        self._take(record)
        try:
            for script in there:
                answer = self.shell.run("exec sh -e -s", input_text=script, timeout_s=CHANGE_S)
                if answer.exit_code:
                    raise self.not_taken(_last(answer.stderr))
        except BaseException as error:
            self.put_back_after(error, record)
            raise
        return record

    def put_back(self, record: ScriptRecord) -> None:
        """Run the undo, without an end at the first error: the set-up may not have got so far."""
        for script in record.undo:
            self.shell.run("exec sh -s", input_text=script, timeout_s=CHANGE_S)
        names = set(record.interfaces)
        unlike = [
            line
            for line in sorted(set(self.state()) ^ set(record.before))
            if line.split()[-1] in names or _is_of_test(line)
        ]
        if unlike:
            raise self.not_restored(unlike, f"the undo is in {HELD}")
        self.shell.run(f"rm -rf {HELD}")

    def read_held(self) -> ScriptRecord | None:
        answer = self.shell.run(f"cat {HELD}/record")
        where = f"{HELD}/record on the DUT"
        return None if answer.exit_code else read_record(ScriptRecord, answer.stdout, where=where)

    def _take(self, record: ScriptRecord) -> None:
        """The folder is the lock; one without a record is of someone who was cut off before any change."""
        answer = self.shell.run(
            f"umask 077; test ! -d {HELD} || test -s {HELD}/record || rm -rf {HELD};"
            f" mkdir {HELD} 2> /dev/null || exit {_TAKEN};"
            f" cat > {HELD}/new && mv {HELD}/new {HELD}/record",
            input_text=json.dumps(document_of(record)),
        )
        held = self.read_held() if answer.exit_code == _TAKEN else None
        if held is not None:
            raise self.held_by(held, f"{HELD} on the DUT")
        if answer.exit_code:
            raise HostError(
                "the record of the set-up cannot be written on the DUT, so nothing was changed:"
                f" {_last(answer.stderr)}",
                code="rig.record-not-writable",
                where=f"{HELD} on the DUT",
                next_step="Free a few kilobytes there, and make the folder writable.",
            )

    def _check_interfaces(self) -> tuple[str, ...]:
        """The DUT's state, if its interfaces can be set up."""
        self.check_pairs()
        state, address = self.state(), self.shell.host.address
        own = {line.split()[-1] for line in state if line.split()[0].split("/")[0] == address}
        for side, name in self.dut.interfaces.items():
            if f"missing {name}" in state:
                shows = self.system.show_interface.format(name="").strip()
                raise self.missing_interface(side, next_step=f"Name it as the DUT does: {shows}")
            if name in own:
                raise self.carries_ssh(side)
        return state


def is_scripted(dut: TestbedDut) -> bool:
    """Whether it is set up by scripts: all systems with a shell but plain Linux, of which everything can be
    read."""
    return dut.os not in (None, "linux", *DIALOGS)


def _is_of_test(line: str) -> bool:
    """A route to a network of the benchmarking blocks, over whatever interface."""
    return line.startswith(("198.18.", "198.19.", "2001:2:"))


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("NOT as intended")] or lines[-1:]
    return "; ".join(said[:MOST_NAMED])[:400] or "no reason was given"
