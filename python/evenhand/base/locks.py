# SPDX-License-Identifier: Apache-2.0
"""Locks on what only one tester may use at a time: for each lab and each port a file that the kernel locks
(flock).

A lock ends with the last process that has the open file, however it ends, so a file that was left behind does
not block anyone. The engine inherits it: a tester that is killed keeps its ports until its engine has closed
them.

Each user's files lie in a folder of their own that no one else may write, and only their owner can open them.
So no one can take, replace or remove another user's lock. Whether another user's file is locked, and by which
process, is asked of the kernel (/proc/locks), not of the file.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pwd
import re
import shlex
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.base.errors import HostError

ROOT_FOLDER = Path("/run/evenhand/locks")
SHARED_FOLDERS = (Path("/run/lock"), Path(tempfile.gettempdir()))
"""Where users other than root have a folder that everybody can look into; whoever has none there has one of a
session's own."""
_PREFIX = "evenhand-"
_FOREIGN_WRITERS = stat.S_IWGRP | stat.S_IWOTH
_LONGEST_PID = 20
_POLL_S = 0.02


class InUseError(HostError):
    """Someone else has it; perhaps only until the engine of a process that was killed has ended."""

    is_ending = False
    """Whether the process that took it has ended, and only what it left running has it still."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What can be locked."""

    key: str
    """The same for all who mean the same thing, such as `interface 4026531840 eth1`: with its network
    namespace."""
    label: str = field(compare=False)
    """For people, such as `interface eth1`."""

    @property
    def file_name(self) -> str:
        readable = re.sub(r"[^A-Za-z0-9.:-]+", "_", self.key)[:60]
        return f"{readable}-{hashlib.sha256(self.key.encode()).hexdigest()[:12]}"


@contextmanager
def holding(resources: Iterable[Resource], *, where: str, next_step: str) -> Iterator[tuple[int, ...]]:
    """Lock all of them until the block ends; gives the files' descriptors, for the engine to inherit.

    Raises:
        InUseError: Someone else holds one of them; names the process.
        HostError: No folder for the locks can be had.
    """
    with ExitStack() as stack:
        descriptors = []
        # Ours first, then the others': of two users who come at the same moment, one at least sees the other.
        for resource in dict.fromkeys(resources):
            path = _own_folder() / resource.file_name
            try:
                descriptors.append(stack.enter_context(lock_file(path)))
            except BlockingIOError:
                in_use = InUseError(
                    f"{resource.label} is in use by {_holder(path)}",
                    code="base.in-use",
                    where=where,
                    next_step=next_step,
                )
                in_use.is_ending = _has_ended(locker(path))
                raise in_use from None
            except OSError as error:
                reason, remedy = why_not_lockable(path, error)
                raise HostError(
                    f"{resource.label} cannot be locked: {reason}",
                    code="base.not-lockable",
                    where=str(path),
                    next_step=remedy,
                ) from error
            other = _other_users_lock(resource)
            if other is not None:
                raise InUseError(
                    f"{resource.label} is in use by {other}",
                    code="base.in-use",
                    where=where,
                    next_step=next_step,
                )
        yield tuple(descriptors)


def holder_of(resource: Resource) -> str | None:
    """Which process holds it now, for people; None if none does. Takes no lock, not even for a moment."""
    with suppress(OSError, HostError):
        pid = _flock_holder((_own_folder() / resource.file_name).lstat())
        if pid is not None:
            return f"process {pid}"
    return _other_users_lock(resource)


def held_names() -> frozenset[str]:
    """Names of the files of all locks of all users: what has none of these is held by nobody. For who asks
    for many; whether one of them is really held says `holder_of`."""
    names: set[str] = set()
    with suppress(OSError, HostError):
        names.update(os.listdir(_own_folder()))
    for folder, user in _folders_of_others():
        with suppress(OSError):
            if _belongs_to(folder, user):
                names.update(os.listdir(folder))
    return frozenset(names)


@contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """Make this file and lock it until the block ends, then remove it; gives its descriptor. The file holds
    the id of this process.

    Raises:
        BlockingIOError: Someone holds it.
        OSError: It cannot be made.
    """
    descriptor = _lock(path)
    try:
        yield descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def lock_file_within(path: Path, wait_s: float) -> Iterator[int]:
    """The same, waiting for so long until its holder ends. BlockingIOError if that takes longer."""
    deadline = time.monotonic() + wait_s
    with ExitStack() as stack:
        while True:
            try:
                descriptor = stack.enter_context(lock_file(path))
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
        yield descriptor


def locker(path: Path) -> str:
    """The id of the process that the file holds; `(unknown)` if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return "(unknown)"
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        pid = os.read(descriptor, _LONGEST_PID).decode("ascii", "replace").strip() if is_file else ""
    finally:
        os.close(descriptor)
    return pid if pid.isdecimal() else "(unknown)"


def why_not_lockable(path: Path, error: OSError) -> tuple[str, str]:
    """Why the file of a lock cannot be made or opened, and what to do about it."""
    with suppress(OSError):
        facts = path.lstat()
        if (kind := _other_kind(path, facts.st_mode)) is not None:
            remove = "rmdir" if stat.S_ISDIR(facts.st_mode) else "rm"
            return (
                f"{kind} is in the place of its lock",
                f"Remove it, then try again: {remove} {shlex.quote(str(path))}",
            )
        if facts.st_uid != os.geteuid() and error.errno in (errno.EACCES, errno.EPERM):
            return (
                f"its lock is a file of user {_name_of(facts.st_uid)}",
                f"Remove it as that user, then try again: rm {shlex.quote(str(path))}",
            )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error.strerror or str(error), "Free some space there."
    return error.strerror or str(error), "Make that folder writable for your user."


def _other_kind(path: Path, mode: int) -> str | None:
    """What is there that is not a file, for people."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return f"a link to {os.readlink(path)}"
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _lock(path: Path) -> int:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a file")
            os.fchmod(descriptor, 0o600)  # a lock needs no right but to open the file: no one else gets that
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_file_at(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_file_at(path: Path, descriptor: int) -> bool:
    """Whether the open file still has its name: the former holder unlinks it, and a lock on that one does not
    lock anyone out."""
    try:
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """Holder of a file of our own, for people."""
    pid = locker(path)
    if _has_ended(pid):
        return f"the engine of process {pid}; that process has ended, and the engine is about to end"
    return f"process {pid}"


def _has_ended(pid: str) -> bool:
    return pid.isdecimal() and not Path(f"/proc/{pid}").exists()


def _own_folder() -> Path:
    """This user's folder, made if need be."""
    user = os.geteuid()
    if user == 0:
        candidates = [ROOT_FOLDER]
    else:
        session = os.environ.get("XDG_RUNTIME_DIR")
        names = [folder / f"{_PREFIX}{user}" for folder in SHARED_FOLDERS]
        candidates = [names[0], *([Path(session) / "evenhand"] if session else []), *names[1:]]
    refused = []
    for folder in candidates:
        try:
            folder.mkdir(mode=0o755, parents=user == 0, exist_ok=True)
            if _belongs_to(folder, user):
                return folder
            refused.append(_whose(folder))
        except FileExistsError:
            refused.append(_whose(folder))
        except OSError as error:
            refused.append(f"{folder} cannot be made ({error.strerror})")
    raise HostError(
        f"there is no folder for locks that belongs only to this user: {'; '.join(refused)}",
        code="base.no-lock-folder",
        where=", ".join(map(str, candidates)),
        next_step="Remove what is there."
        if user == 0
        else "Remove what is there, or set XDG_RUNTIME_DIR to a folder that belongs to you.",
    )


def _whose(folder: Path) -> str:
    """Why it is not this user's folder, for people."""
    try:
        facts = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be seen ({error.strerror})"
    if not stat.S_ISDIR(facts.st_mode):
        return f"{folder} is {_other_kind(folder, facts.st_mode) or 'a file'}"
    if facts.st_uid != os.geteuid():
        return f"{folder} belongs to user {_name_of(facts.st_uid)}"
    return f"{folder} can be written by others (mode {stat.S_IMODE(facts.st_mode):04o})"


def _belongs_to(folder: Path, user: int) -> bool:
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == user and not facts.st_mode & _FOREIGN_WRITERS


def _other_users_lock(resource: Resource) -> str | None:
    """Who else holds it, for people; None if no one does."""
    for folder, user in _folders_of_others():
        try:
            if not _belongs_to(folder, user):
                continue
            facts = (folder / resource.file_name).lstat()
        except OSError:
            continue
        pid = _flock_holder(facts)
        if pid is not None:
            return f"process {pid} of user {_name_of(user)}"
    return None


def _folders_of_others() -> Iterator[tuple[Path, int]]:
    user = os.geteuid()
    if user != 0:
        yield ROOT_FOLDER, 0
    for shared in SHARED_FOLDERS:
        for folder in sorted(shared.glob(f"{_PREFIX}*")):
            owner = folder.name.removeprefix(_PREFIX)
            if owner.isdecimal() and int(owner) not in (0, user):
                yield folder, int(owner)


def _flock_holder(file: os.stat_result) -> int | None:
    """The process that has locked this file, by the kernel's own list: `1: FLOCK  ADVISORY  WRITE 1234
    00:1a:5678 0 EOF`."""
    wanted = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) >= 6 and words[1] == "FLOCK" and words[5] == wanted:
                return int(words[4])
    return None


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
