# SPDX-License-Identifier: Apache-2.0
"""The argument that names a plan. Its help has the names of all, so that a verb without it loads no plan."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.plan import TOPOLOGIES, plan_title

_PLANS = (
    f"One of: {', '.join(plan_title(name) for name in TOPOLOGIES)}. siit, siit-eam and nat64"
    " also with another translation prefix: siit@2001:db8::/40. Or a plan file: edge.toml."
)
NameArgument = Annotated[str, typer.Argument(metavar="PLAN", help=_PLANS)]
OptionalNameArgument = Annotated[str | None, typer.Argument(metavar="PLAN", help=_PLANS)]
