# SPDX-License-Identifier: Apache-2.0
"""Specification: where a key is in a campaign file, for errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.base.validation.checked_file import Loc
from evenhand.spec.presets import EVERY_SUITE


def place_of(loc: Loc, *, whole: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """`suite "direct": hosts`; of a list also which of its values.

    Args:
        whole: What was checked.
        document: What the user wrote of it.
    """
    if len(loc) > 1 and loc[0] == "suite" and isinstance(loc[1], int):
        suite = whole["suite"][loc[1]]
        name = suite.get("name") if isinstance(suite, dict) else None
        if isinstance(name, str) and len(loc) > 2:
            return place_in_suite(document, name, *_named(loc[2:]))
        return ": ".join(
            [f"suite {name!r}" if isinstance(name, str) else f"suite {loc[1] + 1}", *_dotted(_named(loc[2:]))]
        )
    return ".".join(_named(loc))


def place_in_suite(document: Mapping[str, Any], suite: str, key: str, *inner: str) -> str:
    """A key that the suite itself does not have is placed in `[every-suite]`, if it is written there."""
    own = [table for table in document.get("suite", ()) if table.get("name") == suite]
    every = document.get(EVERY_SUITE, document.get(EVERY_SUITE.replace("-", "_"), {}))
    is_of_every = _has(every, key) and not any(_has(table, key) for table in own)
    return ": ".join([EVERY_SUITE if is_of_every else f"suite {suite!r}", *_dotted([key, *inner])])


def _has(table: Mapping[str, Any], key: str) -> bool:
    return key in {name.replace("_", "-") for name in table}


def _dotted(names: list[str]) -> list[str]:
    return [".".join(names)] if names else []


def _named(loc: Loc) -> list[str]:
    """Keys alone, without numbers of items and what pydantic adds for the alternatives of a union."""
    return [
        str(part) for part in loc if isinstance(part, str) and part not in ("int", "str", "constrained-int")
    ]
