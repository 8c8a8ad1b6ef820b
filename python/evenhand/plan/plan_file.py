# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: a plan file: the user's own addresses as TOML. contract/plan-config.schema.json
says what each key is."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evenhand.base.errors import EvenhandError, PlanError, RequestError
from evenhand.base.validation.checked_file import FileKind, RefusedError, read_toml, refusal
from evenhand.plan.flow_tables import FlowTable, flows_of_tables
from evenhand.plan.flows import check_flows
from evenhand.plan.host_list import Choose
from evenhand.plan.model import AddressPlan, is_plan_file
from evenhand.plan.own_side import OwnHosts, make_own_side
from evenhand.plan.prefix_file import Covering
from evenhand.plan.ranges import Address, Interface, Mode, UdpRange, parse_ports
from evenhand.plan.sides import SIDES
from evenhand.plan.topologies import TOPOLOGIES, make_plan
from evenhand.plan.topology import (
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
)
from evenhand.plan.validate import check_plan

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def _refused(what: str, code: str, next_step: str) -> RefusedError:
    return RefusedError(RequestError(what, code=code, next_step=next_step))


def _interface(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        if "/" in value:
            return ipaddress.ip_interface(value)
    except ValueError:
        pass
    raise _refused(
        f"{value!r} is not an address with its prefix length",
        "plan.not-an-interface",
        "Write it as 10.0.0.1/24 or 2001:2:0:1000::1/64.",
    )


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        raise _refused(
            f"{value!r} is not an IP address", "plan.not-an-address", "Write it as 10.0.0.2."
        ) from None


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _lengths(value: Any) -> Any:
    if value == "internet" or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _refused(f"{value!r} is not a prefix length", "plan.not-a-length", "Write 24, 64 or internet.")


def _ports(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Interfaced = Annotated[Interface, BeforeValidator(_interface)]
Addressed = Annotated[Address, BeforeValidator(_address)]
Ports = Annotated[str, BeforeValidator(_ports)]
Texts = Annotated[tuple[str, ...], Field(strict=False, min_length=1), BeforeValidator(_texts)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=lambda name: name.replace("_", "-")
    )


class PlanFileSide(_Table):
    """`[left]` or `[right]`."""

    dut: Interfaced
    gateway: Addressed | None = None
    host_texts: Texts | None = Field(None, alias="hosts")
    step: Annotated[int, Field(ge=1)] = 1
    prefixes: Annotated[str, Field(min_length=1)] | None = None
    covering: Covering = "refuse"
    routes: Annotated[int, Field(ge=1)] | None = None
    lengths: Annotated[int | str | None, BeforeValidator(_lengths)] = None
    first: Addressed | None = None
    spacing: Annotated[int, Field(ge=1)] = 1
    choose: Choose = "entry"
    mode: Mode = "pseudorandom"


class PlanFile(_Table):
    """All of it."""

    name: str | None = None
    left: PlanFileSide
    right: PlanFileSide
    source_ports: Ports | None = None
    destination_ports: Ports | None = None
    fixed_source: bool = False
    flow: Annotated[tuple[FlowTable, ...], Field(strict=False)] = ()


def read_plan_file(path: Path | str) -> AddressPlan:
    """The plan that a plan file describes.

    Raises:
        RequestError: The file, or one that it names, cannot be read; a key or value is wrong: names it.
        PlanError: The addresses contradict each other.
    """
    path = Path(path)
    document = read_toml(path, kind=FileKind.PLAN)
    return make_own_plan(document, where=str(path), folder=path.parent, name=_name_of(path))


def plan_named(name: str) -> AddressPlan:
    """The plan of this name, or of the plan file at this path.

    Raises:
        RequestError, PlanError: As `read_plan_file` and `make_plan`.
    """
    return read_plan_file(name) if is_plan_file(name) else make_plan(name)


def name_of_plan_file(path: Path | str) -> str:
    """The name of its plan, for which no prefixes are read. RequestError if it cannot be read."""
    found = read_toml(Path(path), kind=FileKind.PLAN).get("name")
    return found if isinstance(found, str) else _name_of(Path(path))


def _name_of(path: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")


def make_own_plan(
    document: Mapping[str, Any], *, where: str, folder: Path = Path(), name: str = "own"
) -> AddressPlan:
    """The same of a document of a plan file's shape.

    Args:
        where: The file, for errors.
        folder: From where files of prefixes are named.
        name: The plan's, if the document has none.
    """
    try:
        file = PlanFile.model_validate(_hyphenated(document))
    except ValidationError as error:
        raise refusal(
            error,
            PlanFile,
            where=where,
            place=lambda loc: ".".join(part for part in loc if isinstance(part, str)),
            advice={},
        ) from error
    _check_name(chosen := file.name or name, where)
    links = (file.left.dut.network, file.right.dut.network)
    try:
        left, right = (
            make_own_side(side, OwnHosts(**_keys_of(of)), links=links, folder=folder)
            for side, of in zip(SIDES, (file.left, file.right), strict=True)
        )
        if left.ip_version != right.ip_version:
            raise PlanError(
                f"the hosts on the left have IPv{left.ip_version}, those on the right IPv{right.ip_version}",
                code="plan.mixed-versions",
                next_step="Write a plan file for each IP version.",
            )
        plan = AddressPlan(
            name=chosen,
            figure=f"plan file {Path(where).name}",
            left=left,
            right=right,
            source_ports=_udp(
                file.source_ports, RFC4814_SOURCE_PORTS, CLASSIC_SOURCE_PORT, where="source-ports"
            ),
            destination_ports=_udp(
                file.destination_ports,
                RFC4814_DESTINATION_PORTS,
                CLASSIC_DESTINATION_PORT,
                where="destination-ports",
            ),
            fixed_source=file.fixed_source,
            flows=flows_of_tables(file.flow, {"left": left.host_range, "right": right.host_range}),
            is_own=True,
        )
        check_plan(plan)
        check_flows(plan.flows, plan.ip_version)
    except EvenhandError as error:
        error.where = _within(where, error.where)
        raise
    return plan


def _keys_of(side: PlanFileSide) -> dict[str, Any]:
    """As `OwnHosts` has them."""
    found = {name: getattr(side, name) for name in PlanFileSide.model_fields}
    texts = found.pop("host_texts") or ()
    return {**found, "texts": texts}


def _within(where: str, place: str) -> str:
    """The place of an error: of another file, that file; else a place in this one."""
    if Path(place.partition(", line ")[0]).is_file():
        return place
    place = re.sub(r"^plan\.?", "", place)
    return f"{where}: {place}" if place else where


def _udp(text: str | None, default: UdpRange, classic: UdpRange, *, where: str) -> UdpRange:
    return parse_ports(text, default, classic, where=where)


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} cannot be the name of a plan",
            code="plan.not-a-plan-name",
            where=f"{where}: name",
            next_step="Use up to 40 small letters, digits and hyphens, beginning with a letter.",
        )
    if name.replace("-", "_") in TOPOLOGIES:
        raise RequestError(
            f"{name!r} is the name of another plan",
            code="plan.not-a-plan-name",
            where=f"{where}: name",
            next_step='Choose one of your own, such as name = "edge".',
        )


def _hyphenated(document: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with hyphens, however they are written."""

    def inner(value: Any) -> Any:
        if isinstance(value, dict):
            return _hyphenated(value)
        return [inner(item) for item in value] if isinstance(value, list) else value

    return {key.replace("_", "-"): inner(value) for key, value in document.items()}
