# SPDX-License-Identifier: Apache-2.0
"""What was set up on a device without a shell, and what its configuration was before: written on this machine
before anything is changed, since the device has no place for it. It is also the lock: whoever writes it has
the device until it is put back."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenhand.dut.configuration import ConfigurationChange, Footprint, Line
from evenhand.dut.record import (
    NamedRecord,
    document_of,
    local_file,
    not_writable_here,
    read_record,
    text_here,
    written_here,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord(NamedRecord):
    """One set-up of a device."""

    session: str = field(default_factory=lambda: f"evenhand-{secrets.token_hex(4)}")
    """Its own name for what has one on the device."""
    sent: tuple[str, ...]
    """Commands of the set-up."""
    undo: tuple[str, ...]
    """Commands that undo it for people: what of them sets something to its default is said here, too."""
    before: tuple[Line, ...]
    """The whole configuration."""
    after: tuple[Line, ...] | None = None
    """The same with the set-up; None if nobody has seen it."""

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


def file_of(destination: str) -> Path:
    return local_file(destination).with_suffix(".device.json")


def take(destination: str, record: DeviceRecord) -> bool:
    """Make this record the device's; False if there is one already. HostError if it cannot be written."""
    path = file_of(destination)
    try:
        new = written_here(path, document_of(record))
        try:
            os.link(new, path)
        except FileExistsError:
            return False
        finally:
            new.unlink()
    except OSError as error:
        raise not_writable_here(path, error) from error
    return True


def keep(destination: str, record: DeviceRecord) -> None:
    """Write it in the place of the one that is there. HostError if it cannot be written."""
    path = file_of(destination)
    try:
        written_here(path, document_of(record)).replace(path)
    except OSError as error:
        raise not_writable_here(path, error) from error


def read_held(destination: str) -> DeviceRecord | None:
    """The record that this machine has of the device; None if it has none."""
    path = file_of(destination)
    text = text_here(path)
    return None if text is None else read_record(DeviceRecord, text, where=str(path))


def forget(destination: str) -> None:
    file_of(destination).unlink(missing_ok=True)
