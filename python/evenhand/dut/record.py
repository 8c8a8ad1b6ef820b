# SPDX-License-Identifier: Apache-2.0
"""What was set up on a DUT, and what was there before: written on the DUT and here before anything is
changed.

On the DUT it is also the lock: whoever makes its folder has the DUT until it is put back. It lies in a place
that vanishes when the DUT restarts, as the set-up does. Routers in several network namespaces of a host share
that place, and have a folder each.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from evenhand.base.errors import EvenhandError, HostError
from evenhand.base.programs import uninterrupted
from evenhand.base.validation.document import at_key, from_document, to_document
from evenhand.dut.items import Item
from evenhand.dut.readings_queues import quote, run_each
from evenhand.dut.shell import Shell
from evenhand.dut.shell_parts import KEPT, KEPT_HERE

FOLDER, HELD = KEPT, f"{KEPT}/held"
"""As the DUT's shell knows them after `KEPT_HERE`."""
SHOWN = "/run/evenhand-dut-*/held on the DUT"
"""For people: the number is that of its network namespace."""
VERSION = 1
"""The version of all records of set-ups."""
HolderKind = Literal["hand", "run"]
_TAKEN = 17
Record = TypeVar("Record")


@contextmanager
def restoring_after(error: BaseException) -> Iterator[None]:
    """The block puts a DUT back after an error, which is the one to report; what to do if that fails is
    reported with it."""
    try:
        with uninterrupted():
            yield
    except EvenhandError as second:
        error.add_note(f"The DUT is not yet in its previous state: {second}")
        if isinstance(error, EvenhandError):
            error.next_step = (
                f"The DUT could not be restored ({second.what}). When it can be reached:"
                " evenhand dut undo TESTBED"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has set it up."""

    kind: HolderKind
    """`hand`: a person who also takes it back by hand. `run`: a run, until its end."""
    user: str
    host: str
    process: int
    started_ticks: int
    """When that process began, in the ticks of its host: another process may get its number."""
    since: str
    run: str | None = None
    """What distinguishes a run from others, even when it goes on in another process."""

    @classmethod
    def here(cls, kind: HolderKind, run: str | None = None) -> Holder:
        user = str(os.geteuid())
        with suppress(KeyError, OSError):
            user = getpass.getuser()
        return cls(
            kind=kind,
            user=user,
            host=socket.gethostname(),
            process=os.getpid(),
            started_ticks=_started(os.getpid()) or 0,
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            run=run,
        )

    @property
    def name(self) -> str:
        """For people."""
        what = "a run" if self.kind == "run" else "evenhand dut apply"
        return f"{what} of {self.user} on {self.host} (process {self.process}) since {self.since}"

    def lives(self) -> bool | None:
        """Whether its process still runs; None if it is another host's, of which nothing is known here."""
        if self.host != socket.gethostname():
            return None
        return _started(self.process) == self.started_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRecord:
    """One set-up of a DUT."""

    identity: str
    holder: Holder
    system: str
    boot_id: str
    """Boot id of the DUT: with another one, nothing of the set-up is left."""
    plan: str
    hash_type: str | None = at_key("hash", None)
    fingerprint: str
    """The same for two set-ups that ask for the same of the DUT."""
    interfaces: tuple[str, ...]
    """Left and right, of one pair after the other."""
    options: Mapping[str, Any]
    """What else was asked for: hosts, networks, channels, key and table of the hash, static neighbours."""
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        if not self.interfaces or len(self.interfaces) % 2:
            raise ValueError(f"{self.interfaces!r} are not pairs of interfaces")

    @property
    def changes(self) -> list[Item]:
        return [item for item in self.items if item.is_change]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRecord:
    """One set-up of a DUT that is known as a whole (`named_system.py`)."""

    plan: str
    system: str
    by: str
    """Who made it, for people."""
    since: str
    interfaces: tuple[str, ...]


def new_identity() -> str:
    return secrets.token_hex(16)


def document_of(record: Any) -> dict[str, Any]:
    """As it is written down."""
    return {"version": VERSION, **to_document(record)}


def read_record(kind: type[Record], text: str, *, where: str) -> Record:
    """HostError if it is not ours, or another version's."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise HostError(
                "the set-up was recorded by another version of Evenhand (document version"
                f" {document['version']!r})",
                code="rig.record-of-other-version",
                where=where,
                next_step="Undo it with that version.",
            )
        return from_document(kind, document, "record")
    except (ValueError, TypeError, KeyError) as error:
        raise HostError(
            f"the record of the set-up cannot be read: {error!r}",
            code="rig.record-not-readable",
            where=where,
            next_step="It was changed or cut off. Restore the DUT by hand (evenhand dut setup --undo prints"
            " the commands), then remove it.",
        ) from error


def _started(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


# On the DUT.


def take(shell: Shell, record: SetupRecord) -> SetupRecord | None:
    """Make this record the DUT's. None if it is; else the one that has the DUT already.

    Raises:
        HostError: It cannot be written there; nothing of it is left then. Or someone has just begun to.
    """
    text = json.dumps(document_of(record))
    new = f"{HELD}/record.new"
    written = (
        f"cat > {new}",
        f"test $(wc -c < {new}) -eq {len(text)}",
        f"echo {record.identity} | cat > {HELD}/identity",
        f": > {HELD}/busy",
        f"mv {new} {HELD}/record",
    )
    command = (
        f"{KEPT_HERE}; umask 077; mkdir -p {FOLDER} || exit 1; "
        f"mkdir {HELD} 2>/dev/null || {{ test -d {HELD} && exit {_TAKEN}; mkdir {HELD}; exit 1; }}; "
        f"{{ {' && '.join(written)}; }} || {{ rm -rf {HELD}; exit 1; }}"
    )
    answer = shell.run(command, input_text=text)
    if answer.exit_code == 0:
        return None
    if answer.exit_code == _TAKEN:
        found = read_held(shell)
        if found is not None:
            return found
        raise HostError(
            "a set-up of the DUT has just begun, or was interrupted before anything was changed",
            code="rig.dut-being-set-up",
            where=SHOWN,
            next_step="Wait a minute. If no set-up is in progress, remove its record: evenhand dut undo"
            " TESTBED",
        )
    raise HostError(
        "the record of the set-up cannot be written on the DUT, so nothing was changed:"
        f" {_last(answer.stderr)}",
        code="rig.record-not-writable",
        where=SHOWN,
        next_step="Free a few kilobytes there, and make the folder writable.",
    )


def read_held(shell: Shell) -> SetupRecord | None:
    """The record that the DUT has; None if it has none."""
    answer = shell.run(f"{KEPT_HERE}; cat {HELD}/record")
    return None if answer.exit_code else read_record(SetupRecord, answer.stdout, where=SHOWN)


def is_begun(shell: Shell) -> bool:
    """Whether the DUT is held by someone who had not yet written anything down, and so has changed
    nothing."""
    return shell.run(f"{KEPT_HERE}; test -d {HELD} && ! test -e {HELD}/record").exit_code == 0


def drop(shell: Shell, identity: str | None) -> None:
    """The DUT is free again. With None, the holder is someone who was cut off before anything was changed."""
    condition = (
        f"! test -e {HELD}/record"
        if identity is None
        else f'test "$(cat {HELD}/identity)" = {quote(identity)}'
    )
    answer = shell.run(
        f"{KEPT_HERE}; {condition} || exit 0; rm -f {HELD}/record; rm -rf {HELD}; ! test -e {HELD}"
    )
    if answer.exit_code:
        raise HostError(
            f"{SHOWN} cannot be removed: {_last(answer.stderr)}",
            code="rig.record-not-removable",
            where=SHOWN,
            next_step="Remove it there.",
        )


LOCKED_S = 60
"""How long one waits for another that is just changing the DUT."""


def run_held(shell: Shell, identity: str, commands: list[str], *, timeout_s: float) -> list[str | None]:
    """Run them while no one else changes the DUT; None for each that did what it should, else what it said.

    Raises:
        HostError: The DUT is no longer held by this record, or another process is at it.
    """
    begin = (
        f"test -f {HELD}/busy || return 72\nexec 9>>{HELD}/busy || return 72\nflock -w {LOCKED_S} 9 ||"
        " return 71\n"
        f'test "$(cat {HELD}/identity)" = {quote(identity)} || return 72'
    )
    answers = run_each(shell, commands, begin=begin, timeout_s=timeout_s + LOCKED_S)
    if len(answers) != len(commands):
        last = answers[-1]
        what = {71: "another process is changing the DUT", 72: "this set-up no longer holds the DUT"}
        raise HostError(
            what.get(last.exit_code, f"the DUT ended the set-up with {last.exit_code}: {_last(last.stderr)}"),
            code="rig.dut-no-longer-held",
            where=SHOWN,
            next_step="To see who holds it: evenhand dut status TESTBED",
        )
    return [
        None if answer.exit_code == 0 else answer.stdout.strip() or f"exit code {answer.exit_code}"
        for answer in answers
    ]


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no reason was given"


# Here.


def state_folder() -> Path:
    """State folder of this user."""
    home = os.environ.get("XDG_STATE_HOME")
    return (
        Path(home) if home and Path(home).is_absolute() else Path.home() / ".local/state"
    ) / "evenhand/dut"


def local_file(destination: str) -> Path:
    return state_folder() / f"{hashlib.sha256(destination.encode()).hexdigest()[:16]}.json"


def keep_here(destination: str, record: SetupRecord) -> None:
    """HostError if it cannot be written."""
    path = local_file(destination)
    try:
        written_here(path, {"destination": destination, **document_of(record)}).replace(path)
    except OSError as error:
        raise not_writable_here(path, error) from error


def written_here(path: Path, document: Mapping[str, Any]) -> Path:
    """The file of this process that is to take the place of the record; it is on disk. OSError if it cannot
    be written."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(document, stream)
        stream.flush()
        os.fsync(stream.fileno())
    return new


def not_writable_here(path: Path, error: OSError) -> HostError:
    return HostError(
        f"the record of the DUT cannot be written on this machine, so nothing was changed: {error.strerror}",
        code="rig.record-not-writable",
        where=str(path),
        next_step="Make that folder writable, or set XDG_STATE_HOME to another folder.",
    )


def text_here(path: Path) -> str | None:
    """What is written there; None if nothing is. HostError if it cannot be read."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HostError(
            f"it cannot be read: {error}",
            code="rig.record-not-readable",
            where=str(path),
            next_step="Make it readable for your user.",
        ) from error


def read_here(destination: str) -> SetupRecord | None:
    """None if there is none."""
    path = local_file(destination)
    text = text_here(path)
    return None if text is None else read_record(SetupRecord, text, where=str(path))


def forget_here(destination: str) -> None:
    local_file(destination).unlink(missing_ok=True)
