# SPDX-License-Identifier: Apache-2.0
"""Testbed file: what a key may say, each kind of value once."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema, PlainSerializer
from pydantic_core.core_schema import no_info_after_validator_function

from evenhand.base.errors import RequestError
from evenhand.base.units import (
    DURATION,
    LINE_RATE,
    MEMORY,
    RATIO,
    parse_duration,
    parse_line_rate,
    parse_memory,
    parse_ratio,
)
from evenhand.base.validation.checked_file import RefusedError, refusing, with_unit
from evenhand.plan import Network, SideCounts, SideName, is_plan_file, make_mix
from evenhand.testbed.device import read_device
from evenhand.testbed.resources import check_eal_arguments
from evenhand.testbed.workers import check_destination

_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9._/:-]{0,63}")


def _plan_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if is_plan_file(value):
        return value
    with refusing():
        return "+".join(plan.name for plan in make_mix(value).plans)


def _networks(value: Any) -> Any:
    """Networks of a file, as texts; one needs no list."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        return value
    found = []
    for each in value:
        try:
            found.append(ipaddress.ip_network(each))
        except ValueError as error:
            raise RefusedError(
                RequestError(
                    f"{each!r} is not a network: {error}",
                    code="rig.not-a-network",
                    next_step="Write it as 16.0.0.0/8 or 2400::/12.",
                )
            ) from None
    return tuple(found)


def _as_pair(value: Any) -> Any:
    """`10` of a file as left and right alike; what is neither a number nor a list is left to the model's
    checks."""
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _mac(value: Any) -> Any:
    """The MAC in lower case. A group address is not the address of one port, and frames from it would be
    dropped by every DUT."""
    if not isinstance(value, str):
        return value
    text = value.lower()
    if not _MAC.fullmatch(text):
        raise RefusedError(
            RequestError(
                f"{value!r} is not a MAC",
                code="rig.not-a-mac",
                next_step="Write it in the form 02:00:00:00:00:01.",
            )
        )
    if int(text[:2], 16) & 1 or not int(text.replace(":", ""), 16):
        kind = "a group address" if int(text[:2], 16) & 1 else "no address"
        raise RefusedError(
            RequestError(
                f"{value!r} is {kind}, which no port can have",
                code="rig.not-a-mac-of-a-port",
                next_step="Write it in the form 02:00:00:00:00:01.",
            )
        )
    return text


def _device_name(value: Any) -> Any:
    with refusing():
        if isinstance(value, str) and value:
            read_device(value)
    return value


def _ssh_destination(value: Any) -> Any:
    with refusing():
        return check_destination(value) if isinstance(value, str) else value


def _interface(value: Any) -> Any:
    if isinstance(value, str) and not _INTERFACE.fullmatch(value):
        raise RefusedError(
            RequestError(
                f"{value!r} is not an interface name",
                code="rig.not-an-interface-name",
                next_step="Name it as the DUT does: letters, digits and ._/:-, beginning with a letter.",
            )
        )
    return value


def _as_names(value: Any) -> Any:
    """`"eth1"` of a file as `("eth1",)`; what is not a text is left to the model's checks."""
    return (value,) if isinstance(value, str) else value


def _to_file(names: Sequence[str] | None) -> str | Sequence[str] | None:
    """One as in the file, so that a document with one pair is as it was before there were several."""
    return names[0] if names is not None and len(names) == 1 else names


def _eal_arguments(value: Any) -> Any:
    with refusing():
        if isinstance(value, (list, tuple)) and all(isinstance(argument, str) for argument in value):
            check_eal_arguments(value, where="")
    return value


Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
Duration = Annotated[float, with_unit(DURATION, parse_duration), Field(gt=0)]
Ratio = Annotated[float, with_unit(RATIO, parse_ratio), Field(gt=0)]
LineRate = Annotated[float, with_unit(LINE_RATE, parse_line_rate)]
Memory = Annotated[int, with_unit(MEMORY, parse_memory), Field(ge=64)]
Mac = Annotated[str, BeforeValidator(_mac)]
DeviceName = Annotated[str, Field(min_length=1), BeforeValidator(_device_name)]
"""A DPDK device that is allowed (drivers.py): `0000:01:00.0`, or `net_memif0,role=client,...`."""
EalArguments = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_eal_arguments)]
PlanName = Annotated[str, BeforeValidator(_plan_name)]
SshDestination = Annotated[str, BeforeValidator(_ssh_destination)]
Fact = Annotated[str, Field(min_length=1, max_length=300)]
DutInterface = Annotated[str, BeforeValidator(_interface)]
DutInterfaces = Annotated[
    tuple[DutInterface, ...],
    Field(min_length=1, strict=False),
    BeforeValidator(_as_names),
    PlainSerializer(_to_file),
]
_CountPair = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    Field(min_length=2, max_length=2, strict=False),
    BeforeValidator(_as_pair),
]
COUNT_PAIR = GetPydanticSchema(
    lambda _, schema_of: no_info_after_validator_function(SideCounts._make, schema_of(_CountPair))
)
"""Has a `SideCounts` read from one number of a file, or from two of them, for left and right."""
RingFrames = Annotated[int, Field(ge=64, le=16384)]


class TomlTable(BaseModel):
    """A table of the file: no keys but these, and none of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


MOST_TAGS = 2
LARGEST_VLAN = 4094
TAG_OCTETS = 4

Vlans = tuple[int, ...]
"""Outermost first."""
VlansOfSides = dict[SideName, Vlans]


def as_vlans(value: Any) -> Any:
    """`100` of a file as `(100,)`; what is neither a number nor a list is left to the caller's checks."""
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


def parse_vlans(text: str, *, where: str) -> VlansOfSides:
    """`100` for both links, `100,200` for left and right, `200.100` for an outer and an inner tag, `none` for
    a link without.

    Raises:
        RequestError: It is not one of these, or no VLAN has this number.
    """
    sides = [_parse_side(part.strip(), text, where) for part in text.split(",")]
    if len(sides) > MOST_TAGS:
        raise _bad(text, where)
    return {"left": sides[0], "right": sides[-1]}


def tag_octets(vlans: Mapping[SideName, Vlans]) -> SideCounts:
    """Octets of the tags of each link; a side that is not named has none."""
    return SideCounts(TAG_OCTETS * len(vlans.get("left", ())), TAG_OCTETS * len(vlans.get("right", ())))


def show_vlans(vlans: Vlans) -> str:
    """`no VLAN tag`, `VLAN 100`, `VLAN 200 (802.1ad) and 100`."""
    if not vlans:
        return "no VLAN tag"
    return f"VLAN {vlans[0]}" if len(vlans) == 1 else f"VLAN {vlans[0]} (802.1ad) and {vlans[1]}"


_MOST_DIGITS = 4


def _parse_side(part: str, text: str, where: str) -> Vlans:
    if part == "none":
        return ()
    numbers = part.split(".")
    if len(numbers) > MOST_TAGS or not all(
        number.isdecimal() and len(number) <= _MOST_DIGITS and 1 <= int(number) <= LARGEST_VLAN
        for number in numbers
    ):
        raise _bad(text, where)
    return tuple(int(number) for number in numbers)


def _bad(text: str, where: str) -> RequestError:
    return RequestError(
        f"{text!r} is not a VLAN or a pair of VLANs",
        code="rig.not-a-vlan",
        where=where,
        next_step=f"Write 1 to {LARGEST_VLAN}, such as 100; two tags such as 200.100; or both"
        " links, such as 100,200 or 100,none.",
    )
