# SPDX-License-Identifier: Apache-2.0
"""DUT: its facts of the last run, kept in the user's state folder by where the DUT is, so that a change is
reported before the next run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from evenhand.base.state_folder import read_state, replace_state, state_file
from evenhand.rig.dut.facts import differences

VERSION = 1
MOST_KEPT = 100
"""DUTs. The oldest are forgotten."""
MOST_SHOWN = 8


def changes_since_last(destination: str, interfaces: Iterable[str], facts: Mapping[str, Any]) -> str | None:
    """What is another than it was at the last run on this DUT, in a sentence; None if nothing is, or it was
    never seen.

    The facts are kept for the next time. Where nothing can be written, nothing is compared the next time.
    """
    key = " ".join([destination, *interfaces])
    kept = _read()
    before = kept.pop(key, None)
    entries = {key: {"read_at": datetime.now(UTC).isoformat(timespec="seconds"), "facts": facts}, **kept}
    with contextlib.suppress(OSError):
        replace_state(
            state_file("duts.json"), {"version": VERSION, "duts": dict(list(entries.items())[:MOST_KEPT])}
        )
    if before is None:
        return None
    found = differences(before["facts"], facts)
    if not found:
        return None
    more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return (
        f"The DUT is not as it was during the last run on it ({before['read_at'][:16]}):"
        f" {'; '.join(found[:MOST_SHOWN])}{more}."
    )


def _read() -> dict[str, dict[str, Any]]:
    duts = read_state(state_file("duts.json"), version=VERSION, key="duts")
    return {key: entry for key, entry in duts.items() if _is_entry(entry)} if isinstance(duts, dict) else {}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("facts"), dict)
        and isinstance(entry.get("read_at"), str)
    )
