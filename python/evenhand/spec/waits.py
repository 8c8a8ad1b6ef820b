# SPDX-License-Identifier: Apache-2.0
"""Specification: `waits`, and the single options that change one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from evenhand.base.option import DURATION, Option, values_of
from evenhand.trial import RFC_WAITS, SHORT_WAITS, Waits


class WaitSet(StrEnum):
    """Named sets of waits."""

    RFC = "rfc"
    SHORT = "short"


_SETS = {WaitSet.RFC: RFC_WAITS, WaitSet.SHORT: SHORT_WAITS}
_PANEL = "Single waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """The waits of every trial."""

    waits: Annotated[
        WaitSet,
        Option(help="rfc: 2, 2, 2 and 5 s (RFC 2544 section 23); short: for software ports, a deviation."),
    ] = WaitSet.RFC
    wait_after_routing: Annotated[
        str | None,
        Option(grammar=DURATION, sets="after_routing_s", help="Wait after the routing update.", panel=_PANEL),
    ] = None
    wait_after_learning: Annotated[
        str | None,
        Option(
            grammar=DURATION, sets="after_learning_s", help="Wait after the learning frames.", panel=_PANEL
        ),
    ] = None
    wait_residual: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="residual_s",
            help="Wait for residual frames; frames arriving later count as lost.",
            panel=_PANEL,
        ),
    ] = None
    wait_restabilize: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="restabilize_s",
            help="Wait for the DUT before the next trial.",
            panel=_PANEL,
        ),
    ] = None

    def read(self) -> Waits:
        """The named set with single waits put in their place. RequestError names the option."""
        given = values_of(self)
        return replace(_SETS[given.pop("waits")], **given)
