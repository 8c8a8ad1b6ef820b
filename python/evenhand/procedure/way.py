# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a few frames in each direction, sent before the first trial, showed of the way through the
DUT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.base.errors import HostError

CERTAIN = {"sides_swapped": "procedure.sides-swapped", "other_vlan": "procedure.other-vlan"}
"""Hints after which no frame can get through, and the codes of their errors."""


def check_way(resolved: Mapping[str, Any], *, where: str) -> None:
    """HostError if no frame got through in any direction, and what was seen leaves no doubt why: all that
    would be measured is a loss of 100 %.

    Args:
        resolved: The engine's answer to `resolve`, or that of several.
    """
    for engine, answer in _answers(resolved):
        ways = answer.get("way", {}).values()
        if any(way["received_frames"] for way in ways):
            continue
        for hint in answer.get("hints", ()):
            if (code := CERTAIN.get(hint["code"])) is not None:
                raise HostError(
                    _of_engine(engine, hint["what"]), code=code, where=where, next_step=hint["next"]
                )


def way_notes(resolved: Mapping[str, Any]) -> Iterator[str]:
    """For people: why frames will be lost, as far as something was seen that says so."""
    for engine, answer in _answers(resolved):
        for hint in answer.get("hints", ()):
            yield f"Before the first trial: {_of_engine(engine, hint['what'])}. {hint['next']}"


def _answers(resolved: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    engines: Mapping[str, Any] | None = resolved.get("engines")
    yield from engines.items() if engines is not None else (("", resolved),)


def _of_engine(engine: str, what: str) -> str:
    return f"engine {engine}: {what}" if engine else what
