# SPDX-License-Identifier: Apache-2.0
"""`--waits` and the single options that change one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import typer

from evenhand.base.units import parse_duration
from evenhand.trial import RFC_WAITS, SHORT_WAITS, Waits


class WaitSet(StrEnum):
    """Named sets of waits."""

    RFC = "rfc"
    SHORT = "short"


WaitsOption = Annotated[
    WaitSet,
    typer.Option(
        "--waits", help="rfc: 2, 2, 2 and 5 s (RFC 2544 section 23); short: for software ports, a deviation."
    ),
]
_PANEL = "Single waits"
RoutingWait = Annotated[
    str | None,
    typer.Option(
        "--wait-after-routing", metavar="TIME", help="After the routing update.", rich_help_panel=_PANEL
    ),
]
LearningWait = Annotated[
    str | None,
    typer.Option(
        "--wait-after-learning", metavar="TIME", help="After the learning frames.", rich_help_panel=_PANEL
    ),
]
ResidualWait = Annotated[
    str | None,
    typer.Option(
        "--wait-residual",
        metavar="TIME",
        help="For residual frames; later ones are lost.",
        rich_help_panel=_PANEL,
    ),
]
RestabilizeWait = Annotated[
    str | None,
    typer.Option(
        "--wait-restabilize",
        metavar="TIME",
        help="For the DUT, before the next trial.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """The waits of every trial."""

    waits: WaitsOption = WaitSet.RFC
    wait_after_routing: RoutingWait = None
    wait_after_learning: LearningWait = None
    wait_residual: ResidualWait = None
    wait_restabilize: RestabilizeWait = None

    def read(self) -> Waits:
        """The named set with single waits put in their place. RequestError names the option."""
        waits = RFC_WAITS if self.waits is WaitSet.RFC else SHORT_WAITS
        given = {
            "after_routing_s": (self.wait_after_routing, "--wait-after-routing"),
            "after_learning_s": (self.wait_after_learning, "--wait-after-learning"),
            "residual_s": (self.wait_residual, "--wait-residual"),
            "restabilize_s": (self.wait_restabilize, "--wait-restabilize"),
        }
        return replace(
            waits,
            **{
                key: parse_duration(text, where=option)
                for key, (text, option) in given.items()
                if text is not None
            },
        )
