# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the `[[flow]]` tables of a plan file."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, field_validator

from evenhand.base.errors import PlanError, RequestError
from evenhand.base.units import parse_rate, parse_ratio
from evenhand.base.validation.checked_file import RefusedError, refusing
from evenhand.plan.field_pattern import LONGEST_LIST, FieldGrammar, FieldPattern, whole_number
from evenhand.plan.flow_hosts import FlowHosts, FlowPrefixes, flow_prefixes
from evenhand.plan.flows import (
    DSCP_NAMES,
    ECN_NAMES,
    FLOW_NAME,
    LOCK_STEP_FIELDS,
    MOST_PAYLOAD_OCTETS,
    Flow,
    make_flows,
)
from evenhand.plan.host_list import Hosts
from evenhand.plan.own_side import networks_of
from evenhand.plan.ranges import IpVersion, Network
from evenhand.plan.sides import BOTH_DIRECTIONS, SIDES, Direction, SideName

MOST_FLOW_HOSTS = 65_536
"""Hosts of a flow's own on a side."""


def _code_point(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().upper() in DSCP_NAMES:
        return DSCP_NAMES[value.strip().upper()]
    return whole_number(value)


def _dscp(value: Any) -> Any:
    names_none = (
        isinstance(value, str) and not any(mark in value for mark in "-:") and _code_point(value) is None
    )
    if names_none:
        raise RefusedError(
            RequestError(
                f"{value!r} is not the name of a DSCP",
                code="plan.not-a-dscp",
                next_step="Write a number from 0 to 63, or EF, AF11 .. AF43, CS0 .. CS7, VA, LE.",
            )
        )
    with refusing():
        return _DSCP.parse(value)


def _ecn(value: Any) -> Any:
    return ECN_NAMES.get(value.strip().upper(), value) if isinstance(value, str) else value


def _parsed(grammar: FieldGrammar) -> Any:
    """Validator of a field that is one value or a pattern."""

    def parse(value: Any) -> int | FieldPattern:
        with refusing():
            return grammar.parse(value)

    return PlainValidator(parse)


def _hosts(value: Any) -> FlowHosts | tuple[Network, ...]:
    """Addresses; or prefixes, if any of the texts is one."""
    texts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(text, str) and "/" in text for text in texts):
        with refusing():
            return tuple(_prefixes(texts))
    return _addresses(value)


def _prefixes(texts: Sequence[Any]) -> list[Network]:
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None or len(texts) > LONGEST_LIST:
        raise PlanError(
            f"{wrong!r} is not a prefix" if wrong is not None else f"{len(texts):,} prefixes",
            code="plan.flow-hosts",
            next_step=f'Give at most {LONGEST_LIST:,} prefixes or addresses, such as "198.18.5.0/24".',
        )
    return networks_of(texts, where="")


def _addresses(value: Any) -> FlowHosts:
    versions: set[IpVersion] = set()

    def read(each: Any) -> int | None:
        try:
            address = ipaddress.ip_address(each.strip()) if isinstance(each, str) else None
        except ValueError:
            return None
        if address is None:
            return None
        versions.add(4 if address.version == 4 else 6)
        return int(address)

    grammar = FieldGrammar(
        key="hosts",
        read=read,
        least=0,
        most=(1 << 128) - 1,
        example="198.18.0.1-198.18.0.9",
        name="a host's address",
    )
    with refusing():
        found = grammar.parse(value)
        pattern = found if isinstance(found, FieldPattern) else FieldPattern(first=found)
        if len(versions) > 1 or len(pattern.all_values) > MOST_FLOW_HOSTS:
            raise PlanError(
                "addresses of both IP versions"
                if len(versions) > 1
                else f"{len(pattern.all_values):,} hosts",
                code="plan.flow-hosts",
                next_step=f"Use at most {MOST_FLOW_HOSTS:,} addresses of one IP version.",
            )
    return FlowHosts(pattern=pattern, version=versions.pop())


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


def payload_of(text: Any) -> bytes:
    """Octets that are written as hexadecimal digits. PlanError: they are none, or too many."""
    try:
        found = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        found = b""
    if not 0 < len(found) <= MOST_PAYLOAD_OCTETS:
        raise PlanError(
            f"a payload of {len(found)} octets" if found else f"{text!r} are no octets",
            code="plan.flow-payload",
            next_step=f'Write 1 to {MOST_PAYLOAD_OCTETS} octets as hexadecimal digits, such as "48656c6c6f".',
        )
    return found


def _payload(value: Any) -> bytes:
    with refusing():
        return payload_of(value)


def _grammar(key: str, least: int, most: int, name: str, example: str) -> FieldGrammar:
    return FieldGrammar(key=key, read=whole_number, least=least, most=most, example=example, name=name)


_DSCP = FieldGrammar(key="dscp", read=_code_point, least=0, most=63, example="8-15", name="a DSCP")
_LABEL = _grammar("flow-label", 0, 0xFFFFF, "a flow label", "0-0xFFFFF")
_PRIORITY = _grammar("vlan-priority", 0, 7, "a VLAN priority", "0-7")
_VLAN = _grammar("vlan", 1, 4094, "a VLAN", "100-199")
_PORT = _grammar("source-port", 1, 65535, "a UDP port", "5060-5099")
FieldValue = int | FieldPattern
AskedHosts = FlowHosts | tuple[Network, ...]


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
    direction: Direction | None = None
    share: Annotated[int | str | None, BeforeValidator(_share)] = None
    rate: Annotated[Fraction | None, BeforeValidator(_rate)] = None
    dscp: Annotated[FieldValue, PlainValidator(_dscp)] = 0
    ecn: Annotated[int, Field(ge=0, le=3), BeforeValidator(_ecn)] = 0
    flow_label: Annotated[FieldValue, _parsed(_LABEL)] = 0
    vlan_priority: Annotated[FieldValue, _parsed(_PRIORITY)] = 0
    vlan: Annotated[FieldValue, _parsed(_VLAN)] = 0
    source_port: Annotated[FieldValue | None, _parsed(_PORT)] = None
    destination_port: Annotated[FieldValue | None, _parsed(_PORT)] = None
    left: Annotated[AskedHosts | None, PlainValidator(_hosts)] = None
    right: Annotated[AskedHosts | None, PlainValidator(_hosts)] = None
    lock_step: Annotated[tuple[str, ...], Field(strict=False)] = ()
    frame_size: Annotated[int, Field(ge=64, le=9216)] | None = None
    payload: Annotated[bytes, PlainValidator(_payload)] = b""
    loss_at_most: Annotated[float, Field(ge=0, lt=1), BeforeValidator(_loss)] | None = None
    shuffle: Annotated[int, Field(ge=0, lt=2**53)] | None = None

    @field_validator("lock_step")
    @classmethod
    def _names_fields(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        value = tuple(name.replace("_", "-") for name in value)
        for name in value:
            if name not in LOCK_STEP_FIELDS or value.count(name) > 1:
                raise RefusedError(
                    RequestError(
                        f"{name!r} twice"
                        if value.count(name) > 1
                        else f"{name!r} is not a field with a pattern",
                        code="plan.lock-step",
                        next_step=f"Name each once, of {', '.join(LOCK_STEP_FIELDS)}.",
                    )
                )
        return value

    def to_flow(self, ranges: Mapping[SideName, Hosts]) -> Flow:
        """With any share."""
        said = {key: getattr(self, key) for key in FlowTable.model_fields if key not in ("share", "rate")}
        sides: dict[str, Any] = {side: self._hosts_of(side, ranges[side], said[side]) for side in SIDES}
        return Flow(share=1, **(said | sides))

    def _hosts_of(
        self, side: SideName, of_side: Hosts, asked: AskedHosts | None
    ) -> FlowHosts | FlowPrefixes | None:
        if isinstance(asked, tuple):
            return flow_prefixes(self.name, side, asked, of_side)
        if asked is not None and (outside := asked.first_outside(of_side)) is not None:
            raise PlanError(
                f"{outside} of the flow {self.name!r} is not a host of the {side} side",
                code="plan.flow-hosts",
                where=f"flow.{side}",
                next_step=f"Use hosts from {of_side.first_address} to {of_side.last_address}.",
            )
        return asked


def flows_of_tables(tables: Sequence[FlowTable], ranges: Mapping[SideName, Hosts]) -> tuple[Flow, ...]:
    """The flows, with exact shares.

    Args:
        ranges: The hosts of each side.

    Raises:
        PlanError: As `make_flows`; a flow has hosts that its side has not; or shares are said in several
            ways, or do not add up.
    """
    if not tables:
        return ()
    return make_flows([table.to_flow(ranges) for table in tables], _shares(tables))


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
    for direction in BOTH_DIRECTIONS if ways == {"percent"} else ():
        of_direction = [
            share for table, share in zip(tables, shares, strict=True) if table.direction in (None, direction)
        ]
        if of_direction and sum(of_direction) != 100:
            raise PlanError(
                f"the shares of the flows add up to {float(sum(of_direction)):g} %",
                code="plan.flow-shares",
                where="flow.share",
                next_step="Let those of a direction add up to 100 %, or give frames instead: share = 1 and"
                " share = 9.",
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
