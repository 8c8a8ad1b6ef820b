# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the `[[flow]]` tables of a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evenhand.base.errors import PlanError, RequestError
from evenhand.base.units import parse_rate, parse_ratio
from evenhand.base.validation.checked_file import RefusedError, refusing
from evenhand.plan.flows import DSCP_NAMES, FLOW_NAME, Flow, make_flows


def _dscp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if (number := DSCP_NAMES.get(value.upper())) is not None:
        return number
    raise RefusedError(
        RequestError(
            f"{value!r} is not the name of a DSCP",
            code="plan.not-a-dscp",
            next_step="Write a number from 0 to 63, or EF, AF11 .. AF43, CS0 .. CS7, VA, LE.",
        )
    )


def _share(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        number = value.strip().removesuffix("%").strip()
        if value.strip().endswith("%") and number.replace(".", "", 1).isdecimal() and Decimal(number) > 0:
            return value
    raise RefusedError(
        RequestError(
            f"{value!r} is not a share",
            code="plan.not-a-flow-share",
            next_step="Write a number of frames, such as 1, or a percentage in quotes: '10 %'.",
        )
    )


def _rate(value: Any) -> Any:
    if isinstance(value, str):
        with refusing():
            return Fraction(parse_rate(value)).limit_denominator(1000)
    return value


def _loss(value: Any) -> Any:
    if isinstance(value, str):
        with refusing():
            return parse_ratio(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Port = Annotated[int, Field(ge=1, le=65535)]


class FlowTable(BaseModel):
    """`[[flow]]`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        arbitrary_types_allowed=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )

    name: Annotated[str, Field(pattern=FLOW_NAME)]
    share: Annotated[int | str | None, BeforeValidator(_share)] = None
    rate: Annotated[Fraction | None, BeforeValidator(_rate)] = None
    dscp: Annotated[int, Field(ge=0, le=63), BeforeValidator(_dscp)] = 0
    flow_label: Annotated[int, Field(ge=0, le=0xFFFFF)] = 0
    vlan_priority: Annotated[int, Field(ge=0, le=7)] = 0
    source_port: Port | None = None
    destination_port: Port | None = None
    frame_size: Annotated[int, Field(ge=64, le=9216)] | None = None
    loss_at_most: Annotated[float, Field(ge=0, lt=1), BeforeValidator(_loss)] | None = None

    def to_flow(self) -> Flow:
        """With any share."""
        said = {key: getattr(self, key) for key in FlowTable.model_fields if key not in ("share", "rate")}
        return Flow(share=1, **said)


def flows_of_tables(tables: Sequence[FlowTable]) -> tuple[Flow, ...]:
    """The flows, with exact shares.

    Raises:
        PlanError: As `make_flows`; or shares are said in several ways, or do not add up.
    """
    if not tables:
        return ()
    return make_flows([table.to_flow() for table in tables], _shares(tables))


def _shares(tables: Sequence[FlowTable]) -> list[Fraction]:
    ways = {_way(table) for table in tables}
    if len(ways) > 1 or "both" in ways:
        raise PlanError(
            "shares of flows in several ways",
            code="plan.flow-shares",
            where="flow.share",
            next_step="Give each flow a share in frames, each a percentage, each a rate, or none of them.",
        )
    if ways == {"none"}:
        return [Fraction(1)] * len(tables)
    if ways == {"rate"}:
        return [table.rate for table in tables if table.rate is not None]
    shares = [Fraction(str(table.share).strip().removesuffix("%").strip()) for table in tables]
    if ways == {"percent"} and sum(shares) != 100:
        raise PlanError(
            f"the shares of the flows add up to {float(sum(shares)):g} %",
            code="plan.flow-shares",
            where="flow.share",
            next_step="Let them add up to 100 %, or give frames instead: share = 1 and share = 9.",
        )
    return shares


def _way(table: FlowTable) -> str:
    if table.share is not None and table.rate is not None:
        return "both"
    if table.rate is not None:
        return "rate"
    if table.share is None:
        return "none"
    return "percent" if isinstance(table.share, str) else "frames"
