# SPDX-License-Identifier: Apache-2.0
"""The tester's own ceilings, kept from one command to the next with the facts of the host that they hold for
(MLR-14)."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evenhand.base.folders import read_state, replace_state, state_file, without_folders
from evenhand.host.finding import read_host_facts

VERSION = 1
MOST_KEPT = 200
"""The oldest are forgotten."""
KEPT_FOR = timedelta(days=7)
"""An older ceiling is found anew: what else a host does changes, and none of its facts says so."""
HOST_FACTS = ("cpu_model", "cpus", "kernel", "kernel_parameters", "mitigations", "governor")
"""Facts of the host on which a ceiling depends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCeiling:
    """What is known of the tester's own ceiling for one kind of frames on one pair of ports. Loads are per
    direction."""

    rate_fps: float
    """The highest load that the tester kept."""
    above_fps: float | None
    """A load above it that it did not keep; None if it kept the line rate, so that it is not a limit here."""
    found_at: str
    """When: RFC 3339, UTC."""
    is_new: bool = False
    """Found just now, before this procedure."""
    was_reached: bool = False
    """A search has passed it: whether the tester keeps more is to be found before the next one, as a ceiling
    that was found while the host did something else is too low."""

    @property
    def is_limit(self) -> bool:
        return self.above_fps is not None

    @property
    def found_when(self) -> str:
        """For people, after what was found: `found on 2026-11-25, 05:30 UTC`."""
        return f"found on {self.found_at[:10]}, {self.found_at[11:16]} UTC"

    def to_document(self) -> dict[str, Any]:
        return {
            "rate_fps_per_direction": self.rate_fps,
            "above_fps_per_direction": self.above_fps,
            "found_at": self.found_at,
            "is_new": self.is_new,
        }


def find_ceiling(conditions: Mapping[str, Any]) -> KnownCeiling | None:
    """None if it was not found on this machine as it is now, in the last days.

    Args:
        conditions: All but the host that it depends on: traffic, ports, CPUs, versions. Folders in it do not
            count.
    """
    key = _key(conditions)
    entry = next((entry for entry in _read() if entry["key"] == key), None)
    if entry is None or not _is_recent(entry.get("kept_at", entry["found_at"])):
        return None
    return KnownCeiling(
        rate_fps=entry["rate_fps"],
        above_fps=entry["above_fps"],
        found_at=entry["found_at"],
        was_reached=entry.get("was_reached") is True,
    )


def keep_ceiling(conditions: Mapping[str, Any], ceiling: KnownCeiling) -> None:
    """Keep it for the next time, in the place of what was known. Where nothing can be written, it is found
    anew the next time."""
    key = _key(conditions)
    entries = _read()
    # What is only marked as reached is as old as before.
    before = next((old for old in entries if old["key"] == key and old["found_at"] == ceiling.found_at), {})
    entry = {
        "key": key,
        "rate_fps": ceiling.rate_fps,
        "above_fps": ceiling.above_fps,
        "found_at": ceiling.found_at,
        "was_reached": ceiling.was_reached,
        "kept_at": before.get("kept_at") or datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):
        kept = [entry, *(other for other in entries if other["key"] != key)][:MOST_KEPT]
        replace_state(ceilings_file(), {"version": VERSION, "ceilings": kept})


def ceilings_file() -> Path:
    """See `state_file`."""
    return state_file("ceilings.json")


def _is_recent(kept_at: Any) -> bool:
    """A time that cannot be read, or that is still to come, is not."""
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(kept_at)
    except (ValueError, TypeError):
        return False
    return -timedelta(days=1) < age < KEPT_FOR


def _key(conditions: Mapping[str, Any]) -> dict[str, Any]:
    facts = read_host_facts()
    key = {**conditions, "host": {name: facts[name] for name in HOST_FACTS}}
    as_read_back: dict[str, Any] = json.loads(json.dumps(without_folders(key)))
    return as_read_back


def _read() -> list[dict[str, Any]]:
    """What is not a ceiling is left out: the file is only there to save time."""
    entries = read_state(ceilings_file(), version=VERSION, key="ceilings")
    return [entry for entry in entries if _is_entry(entry)] if isinstance(entries, list) else []


def _is_entry(entry: Any) -> bool:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("key"), dict)
        or not isinstance(entry.get("found_at"), str)
    ):
        return False
    rates = (entry.get("rate_fps"), entry.get("above_fps"))
    are_rates = all(
        isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf
        for rate in rates
        if rate is not None
    )
    return are_rates and rates[0] is not None
