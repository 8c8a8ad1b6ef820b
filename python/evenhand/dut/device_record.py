# SPDX-License-Identifier: Apache-2.0
"""What was set up on a device without a shell, and what its configuration was before: written on this machine
before anything is changed, since the device has no place for it. It is also the lock: whoever writes it has
the device until it is put back."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError
from evenhand.dut.configuration import ConfigurationChange, Footprint, Line
from evenhand.dut.record import Holder, local_file

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """One set-up of a device."""

    plan: str
    system: str
    by: str
    """Who made it, for people."""
    since: str
    session: str
    """Its own name for what has one on the device."""
    interfaces: tuple[str, ...]
    sent: tuple[str, ...]
    """Commands of the set-up."""
    undo: tuple[str, ...]
    """Commands that undo it for people: what of them sets something to its default is said here, too."""
    before: tuple[Line, ...]
    """The whole configuration."""
    after: tuple[Line, ...] | None = None
    """The same with the set-up; None if nobody has seen it."""

    @classmethod
    def new(cls, *, holder: Holder, **values: Any) -> DeviceRecord:
        return cls(by=holder.name, since=holder.since, session=f"evenhand-{secrets.token_hex(4)}", **values)

    def change(self, now: tuple[Line, ...]) -> ConfigurationChange:
        """What the set-up did, in the device's own words. If it was cut off before that was seen, all that
        is otherwise now and could be of it.

        Args:
            now: The configuration as it is.
        """
        after = now if self.after is None else self.after
        return ConfigurationChange.between(self.before, after, Footprint(self.sent, self.interfaces))

    def with_after(self, after: tuple[Line, ...]) -> DeviceRecord:
        return replace(self, after=after)

    def to_document(self) -> dict[str, Any]:
        return {"version": _VERSION, **{name: getattr(self, name) for name in self.__dataclass_fields__}}


def file_of(destination: str) -> Path:
    return local_file(destination).with_suffix(".device.json")


def take(destination: str, record: DeviceRecord) -> bool:
    """Make this record the device's; False if there is one already. HostError if it cannot be written."""
    path = file_of(destination)
    try:
        new = _written(path, record)
        try:
            os.link(new, path)
        except FileExistsError:
            return False
        finally:
            new.unlink()
    except OSError as error:
        raise _not_writable(path, error) from error
    return True


def keep(destination: str, record: DeviceRecord) -> None:
    """Write it in the place of the one that is there. HostError if it cannot be written."""
    path = file_of(destination)
    try:
        _written(path, record).replace(path)
    except OSError as error:
        raise _not_writable(path, error) from error


def read_held(destination: str) -> DeviceRecord | None:
    """The record that this machine has of the device; None if it has none."""
    path = file_of(destination)
    try:
        document = json.loads(path.read_text())
        if document.pop("version") != _VERSION:
            raise ValueError("of another version of Evenhand")
        lines = {name: _lines(document.pop(name)) for name in ("before", "after")}
        before = lines["before"]
        if before is None:
            raise ValueError("without the configuration of before")
        texts = {
            name: tuple(str(each) for each in document.pop(name)) for name in ("interfaces", "sent", "undo")
        }
        words = {name: str(value) for name, value in document.items()}
        return DeviceRecord(**words, **texts, before=before, after=lines["after"])  # type: ignore[arg-type]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(
            f"the record of the set-up cannot be read: {error!r}",
            code="rig.record-not-readable",
            where=str(path),
            next_step="Restore the DUT by hand (evenhand dut setup --undo prints the commands), then remove"
            " that file.",
        ) from error


def forget(destination: str) -> None:
    file_of(destination).unlink(missing_ok=True)


def _lines(value: list[list[str]] | None) -> tuple[Line, ...] | None:
    return None if value is None else tuple(tuple(str(part) for part in line) for line in value)


def _written(path: Path, record: DeviceRecord) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(record.to_document(), stream)
        stream.flush()
        os.fsync(stream.fileno())
    return new


def _not_writable(path: Path, error: OSError) -> HostError:
    return HostError(
        f"the record of the DUT cannot be written on this machine, so nothing was changed: {error.strerror}",
        code="rig.record-not-writable",
        where=str(path),
        next_step="Make that folder writable, or set XDG_STATE_HOME to another folder.",
    )
