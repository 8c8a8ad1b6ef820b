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

from evenhand.base.errors import EvenhandError, HostError
from evenhand.base.programs import uninterrupted
from evenhand.dut.description import DutSetup
from evenhand.dut.dialogs import DIALOGS
from evenhand.dut.items import NotTakenError
from evenhand.dut.named_system import NamedSystemDut
from evenhand.dut.readings_queues import quote
from evenhand.dut.record import Holder
from evenhand.dut.script import DutScript
from evenhand.dut.ssh import SshShell
from evenhand.testbed import TestbedDut

HELD = "/var/run/evenhand-script"
"""Folder on the DUT; of all these systems, /var/run vanishes with what was set when it restarts."""
CHANGE_S = 300.0
_VERSION = 1
_TAKEN = 17
_MOST_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRecord:
    """One set-up by scripts, as it is written on the DUT."""

    plan: str
    system: str
    by: str
    """Who made it, for people."""
    since: str
    interfaces: tuple[str, ...]
    before: tuple[str, ...]
    """All addresses and routes before it, a line for each."""
    undo: tuple[str, ...]
    """Scripts that undo it, in the order in which they are to be run."""

    def to_document(self) -> dict[str, Any]:
        return {"version": _VERSION, **{name: getattr(self, name) for name in self.__dataclass_fields__}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedDut(NamedSystemDut):
    """The DUT of a testbed, and root's shell on it."""

    shell: SshShell

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
                where=f"[dut] ssh, {self.shell.destination}",
                next_step=f"Check whether it runs {self.system.title}: [dut] os.",
            )
        return tuple(sorted({line for line in answer.stdout.splitlines() if line.strip()}))


def is_scripted(dut: TestbedDut) -> bool:
    """Whether it is set up by scripts: all systems with a shell but plain Linux, of which everything can be
    read."""
    return dut.os not in (None, "linux", *DIALOGS)


def check(on: ScriptedDut) -> tuple[tuple[str, ...], ScriptRecord | None]:
    """What its interfaces have, and who has set it up. Changes nothing.

    Raises:
        RequestError: An interface is not there, or carries this connection.
        HostError: The DUT does not answer as its system does.
    """
    state, names = _check_interfaces(on), set(on.interfaces)
    return tuple(line for line in state if line.split()[-1] in names), read_held(on)


def apply(on: ScriptedDut, setups: Sequence[DutSetup], holder: Holder) -> ScriptRecord:
    """Run the scripts of these set-ups, one for each IP version. If one fails, or says that something is not
    as intended, or this is stopped, they are undone.

    Raises:
        RequestError: The system or its interfaces cannot be set up so; nothing was changed.
        NotTakenError: The DUT did not take something; it was put back.
        HostError: Someone else has set it up, or it cannot be reached.
    """
    before = _check_interfaces(on)
    there = [DutScript(setup=setup, system=on.system, is_undo=False).text() for setup in setups]
    back = [DutScript(setup=setup, system=on.system, is_undo=True).text() for setup in setups]
    record = ScriptRecord(
        plan="+".join(setup.plan.title for setup in setups),
        system=str(on.dut.os),
        by=holder.name,
        since=holder.since,
        interfaces=on.interfaces,
        before=before,
        undo=tuple(back[::-1]),
    )
    _take(on, record)
    try:
        for script in there:
            answer = on.shell.run("exec sh -e -s", input_text=script, timeout_s=CHANGE_S)
            if answer.exit_code:
                raise NotTakenError(
                    f"the DUT did not accept the set-up: {_last(answer.stderr)}",
                    code="rig.set-up-not-accepted",
                    where=f"[dut] ssh, {on.shell.destination}",
                    next_step="Nothing was sent, and the set-up was undone. Try the commands there by hand:"
                    f" evenhand dut setup --os {on.dut.os}",
                )
    except BaseException as error:
        with uninterrupted():
            try:
                put_back(on, record)
            except EvenhandError as second:
                error.add_note(f"The DUT is not yet in its previous state: {second}")
        raise
    return record


def undo(on: ScriptedDut) -> ScriptRecord | None:
    """Put the DUT back, whoever has set it up; None if nobody has. Errors as `put_back`."""
    record = read_held(on)
    if record is not None:
        with uninterrupted():
            put_back(on, record)
    return record


def put_back(on: ScriptedDut, record: ScriptRecord) -> None:
    """Run the undo, without an end at the first error: the set-up may not have got so far.

    Raises:
        HostError: It cannot be reached, or its addresses and routes are not those of before; then the undo
            stays written down.
    """
    for script in record.undo:
        on.shell.run("exec sh -s", input_text=script, timeout_s=CHANGE_S)
    now = on.state()
    names = set(record.interfaces)
    unlike = [
        line
        for line in sorted(set(now) ^ set(record.before))
        if line.split()[-1] in names or _is_of_test(line)
    ]
    if unlike:
        shown = "; ".join(unlike[:_MOST_LINES])
        raise HostError(
            f"not restored: {shown}" + (" and more" if len(unlike) > _MOST_LINES else ""),
            code="rig.not-restored",
            where=f"[dut] ssh, {on.shell.destination}",
            next_step=f"Correct this on the DUT, and run evenhand dut undo TESTBED again; the undo is in"
            f" {HELD}.",
        )
    on.shell.run(f"rm -rf {HELD}")


def read_held(on: ScriptedDut) -> ScriptRecord | None:
    """The record that the DUT has; None if it has none."""
    answer = on.shell.run(f"cat {HELD}/record")
    if answer.exit_code:
        return None
    try:
        document = json.loads(answer.stdout)
        if document.pop("version") != _VERSION:
            raise ValueError("of another version of Evenhand")
        lists = {
            name: tuple(str(each) for each in document.pop(name)) for name in ("interfaces", "before", "undo")
        }
        return ScriptRecord(**{name: str(value) for name, value in document.items()}, **lists)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(
            f"the record of the set-up cannot be read: {error!r}",
            code="rig.record-not-readable",
            where=f"{HELD}/record on the DUT",
            next_step="Restore the DUT by hand (evenhand dut setup --undo prints the commands), then remove"
            " that folder.",
        ) from error


def _take(on: ScriptedDut, record: ScriptRecord) -> None:
    """The folder is the lock; one without a record is of someone who was cut off before any change."""
    answer = on.shell.run(
        f"umask 077; test ! -d {HELD} || test -s {HELD}/record || rm -rf {HELD};"
        f" mkdir {HELD} 2> /dev/null || exit {_TAKEN};"
        f" cat > {HELD}/new && mv {HELD}/new {HELD}/record",
        input_text=json.dumps(record.to_document()),
    )
    held = read_held(on) if answer.exit_code == _TAKEN else None
    if held is not None:
        raise HostError(
            f"the DUT is already set up for {held.plan}, by {held.by}",
            code="rig.dut-held",
            where=f"{HELD} on the DUT",
            next_step="If it is no longer needed, restore the DUT: evenhand dut undo TESTBED",
        )
    if answer.exit_code:
        raise HostError(
            "the record of the set-up cannot be written on the DUT, so nothing was changed:"
            f" {_last(answer.stderr)}",
            code="rig.record-not-writable",
            where=f"{HELD} on the DUT",
            next_step="Free a few kilobytes there, and make the folder writable.",
        )


def _check_interfaces(on: ScriptedDut) -> tuple[str, ...]:
    """The DUT's state, if its interfaces can be set up."""
    on.check_pairs()
    state, address = on.state(), on.shell.host.address
    own = {line.split()[-1] for line in state if line.split()[0].split("/")[0] == address}
    for side, name in on.dut.interfaces.items():
        if f"missing {name}" in state:
            raise on.missing_interface(
                side, next_step=f"Name it as the DUT does: {on.system.show_interface.format(name='').strip()}"
            )
        if name in own:
            raise on.carries_ssh(side)
    return state


def _is_of_test(line: str) -> bool:
    """A route to a network of the benchmarking blocks, over whatever interface."""
    return line.startswith(("198.18.", "198.19.", "2001:2:"))


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("NOT as intended")] or lines[-1:]
    return "; ".join(said[:_MOST_LINES])[:400] or "no reason was given"
