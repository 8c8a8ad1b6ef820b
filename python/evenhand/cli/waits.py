# SPDX-License-Identifier: Apache-2.0
"""`--waits` and the single options that change one of them."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from evenhand.trial import RFC_WAITS, SHORT_WAITS, Waits
from evenhand.units import parse_duration


class WaitSet(StrEnum):
    """Named sets of waits."""

    RFC = "rfc"
    SHORT = "short"


WaitsOption = Annotated[
    WaitSet, typer.Option("--waits", help="rfc: 2, 2, 2 and 5 s (RFC 2544 section 23); short: for software ports, a deviation.")
]
_PANEL = "Single waits"
RoutingWait = Annotated[
    str | None, typer.Option("--wait-after-routing", metavar="TIME", help="After the routing update.", rich_help_panel=_PANEL)
]
LearningWait = Annotated[
    str | None, typer.Option("--wait-after-learning", metavar="TIME", help="After the learning frames.", rich_help_panel=_PANEL)
]
ResidualWait = Annotated[
    str | None, typer.Option("--wait-residual", metavar="TIME", help="For residual frames; later ones are lost.", rich_help_panel=_PANEL)
]
RestabilizeWait = Annotated[
    str | None, typer.Option("--wait-restabilize", metavar="TIME", help="For the DUT, before the next trial.", rich_help_panel=_PANEL)
]


def read_waits(name: WaitSet, *, routing: str | None, learning: str | None, residual: str | None, restabilize: str | None) -> Waits:
    """The named set with single waits put in their place. RequestError names the option."""
    waits = RFC_WAITS if name is WaitSet.RFC else SHORT_WAITS
    given = {
        "after_routing_s": (routing, "--wait-after-routing"),
        "after_learning_s": (learning, "--wait-after-learning"),
        "residual_s": (residual, "--wait-residual"),
        "restabilize_s": (restabilize, "--wait-restabilize"),
    }
    return replace(waits, **{key: parse_duration(text, where=option) for key, (text, option) in given.items() if text is not None})
