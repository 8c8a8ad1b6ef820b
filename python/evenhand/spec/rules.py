# SPDX-License-Identifier: Apache-2.0
"""Specification: how many rules the firewall of a Linux lab has: a number, none, or as many as the campaign
finds out that it takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenhand.base.errors import RequestError
from evenhand.base.units import is_whole
from evenhand.rig import MOST_RULES

Rules = Annotated[int, Field(ge=0, le=MOST_RULES)] | Literal["auto", "none"]


def read_rules(text: str, *, where: str) -> int | Literal["auto", "none"]:
    """RequestError if it is none of these."""
    match text:
        case "auto":
            return "auto"
        case "none":
            return "none"
    if is_whole(text) and int(text) <= MOST_RULES:
        return int(text)
    raise RequestError(
        f"{text!r} is not a number of rules",
        code="spec.not-a-number-of-rules",
        where=where,
        next_step=f"Write auto, none, or a number up to {MOST_RULES}.",
    )
