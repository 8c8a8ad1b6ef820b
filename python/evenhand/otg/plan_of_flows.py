# SPDX-License-Identifier: Apache-2.0
"""OTG: the address plan that sends what the flows' patterns say. The one place of the server that knows
plans: whatever else a plan will be able to say belongs here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.exchange.nearest_plan import span
from evenhand.exchange.otg_flow import OtgFlow, OtgReader
from evenhand.exchange.otg_read import check_alike, find_plan
from evenhand.exchange.outcome import Became
from evenhand.otg.own_addresses import USUAL, FlowAddresses, own_plan_of
from evenhand.otg.refusals import OtgError
from evenhand.plan import AddressPlan, SideName, is_plan_file, plan_named
from evenhand.spec.plan import read_destination_ports, read_source_ports

Macs = Mapping[SideName, Mapping[str, str]]
"""By side: `mac` of the tester's port, `dut_mac` of the DUT's, as far as they are named."""
_ADDRESSES = re.compile(r"\.ipv[46]\.(src|dst)(, dst)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFlow:
    """A flow whose own part is read; or what flows of one port have in common."""

    at: str
    """Its place in the configuration."""
    document: Mapping[str, Any]
    """Its packet, with patterns of the kinds that the file import reads."""
    addresses: FlowAddresses | None
    """None: they cannot be read, which the reader of the import says."""
    is_listed: bool = False
    """Its addresses do not step evenly: no named plan has them, and the packet names the first of them."""


def plan_of_flows(
    flows: Sequence[ReadFlow], sides: Mapping[str, SideName], plans: Sequence[str]
) -> tuple[AddressPlan, Macs]:
    """The plan that sends exactly these patterns: one with a name, or one with these addresses.

    Args:
        flows: One, or one in each direction.
        sides: Those of the ports, by their names.
        plans: Those that the DUT is set up for, a plan file by its path; empty: it is not known, and any plan
            may be meant.

    Raises:
        OtgError: There is none; says what is unlike the nearest.
    """
    version = _version_of([flow.document for flow in flows])
    wanted = [name for name in plans or USUAL.values() if plan_named(name).ip_version == version]
    tried: list[str | None] = [*wanted, *([] if plans else [None])] or [None]
    has_own = any(
        flow.is_listed or (flow.addresses is not None and any(flow.addresses.stations.values()))
        for flow in flows
    )
    first: OtgError | None = None
    for name in tried:
        if has_own or (name is not None and is_plan_file(name)):
            break
        try:
            return _plan_named(flows, sides, name)
        except OtgError as error:
            first = first or error
    try:
        return _plan_of_their_own(flows, sides, wanted[0] if plans and wanted else None)
    except OtgError as error:
        more = [] if first is None else [each for each in first.errors if each not in error.errors]
        raise OtgError([*more, *error.errors]) from error


def _version_of(flows: Sequence[Mapping[str, Any]]) -> int:
    """The version of the first IP header; 0 if there is none, which the reader will say."""
    kinds = [header.get("choice") for flow in flows for header in flow["packet"]]
    return next((int(kind[-1]) for kind in kinds if kind in ("ipv4", "ipv6")), 0)


def refusals_of(flow: ReadFlow, sides: Mapping[str, SideName]) -> list[str]:
    """What of this flow no plan could send."""
    try:
        reader, _ = _read([flow], sides)
    except EvenhandError as error:
        return [str(error).removeprefix("config: ")]
    return [f"{row.key}: {row.text}" for row in _unlike(reader)]


def _read(flows: Sequence[ReadFlow], sides: Mapping[str, SideName]) -> tuple[OtgReader, list[OtgFlow]]:
    reader = OtgReader(Path("config"), {"flows": [flow.document for flow in flows]})
    reader.ports = dict(sides)
    return reader, [OtgFlow(reader, flow.at, dict(flow.document)) for flow in flows]


def _of_both(flows: Sequence[ReadFlow], text: str) -> str:
    """A row about the second flow, which the reader of the import takes for flows[1]."""
    return text.replace("flows[1]", flows[1].at) if len(flows) > 1 else text


def _plan_named(
    flows: Sequence[ReadFlow], sides: Mapping[str, SideName], name: str | None
) -> tuple[AddressPlan, Macs]:
    try:
        reader, read = _read(flows, sides)
        if len(read) > 1:
            check_alike(reader, *read)
        found = find_plan(reader, read, name) if reader.is_sendable else None
    except EvenhandError as error:
        raise OtgError([str(error).removeprefix("config: ")]) from error
    unlike = _unlike(reader)
    errors = []
    if found is not None and any(_ADDRESSES.search(row.key) for row in unlike):
        left, right = (span(side.host_range) for side in found.plan.sides)
        errors.append(
            f"flows: no plan has these addresses in this order; the nearest, {found.name}, has {left} on the"
            f" left and {right} on the right: `evenhand plan export {found.name}` writes its flows"
        )
        unlike = [row for row in unlike if not _ADDRESSES.search(row.key)]
    errors += [_of_both(flows, f"{row.key}: {row.text}") for row in unlike]
    if found is None or errors:
        raise OtgError(errors or ["flows: no plan sends these addresses"])
    return _with_ports(found.plan, read), _macs_of(read)


def _plan_of_their_own(
    flows: Sequence[ReadFlow], sides: Mapping[str, SideName], known: str | None
) -> tuple[AddressPlan, Macs]:
    """Addresses from the fields themselves; everything else as the reader of the import has it."""
    try:
        reader, read = _read(flows, sides)
        if len(read) > 1 and read[0].direction == read[1].direction:
            check_alike(reader, *read)
    except EvenhandError as error:
        raise OtgError([str(error).removeprefix("config: ")]) from error
    errors = [_of_both(flows, f"{row.key}: {row.text}") for row in _unlike(reader)]
    if len(read) > 1:
        errors += [
            f"{flows[1].at}.udp: {option} {read[1].options.get(option, 'all')}, but {flows[0].at} has"
            f" {read[0].options.get(option, 'all')}: both directions have the same"
            for option in ("--source-ports", "--destination-ports")
            if read[0].options.get(option) != read[1].options.get(option)
        ]
    addresses = [flow.addresses for flow in flows if flow.addresses is not None]
    if errors or len(addresses) < len(flows):
        raise OtgError(errors or ["flows: no plan sends these addresses"])
    return _with_ports(own_plan_of(addresses, known), read), _macs_of(read)


def _unlike(reader: OtgReader) -> list[Any]:
    return [row for row in reader.rows if row.became in (Became.REFUSED, Became.DIFFERS)]


def _with_ports(plan: AddressPlan, read: Sequence[OtgFlow]) -> AddressPlan:
    options = read[0].options
    if (written := options.get("--source-ports")) is not None:
        plan = replace(plan, source_ports=read_source_ports(written, where="src_port"))
    if (written := options.get("--destination-ports")) is not None:
        plan = replace(plan, destination_ports=read_destination_ports(written, where="dst_port"))
    return plan


def _macs_of(read: Sequence[OtgFlow]) -> Macs:
    return {flow.sender: {key: mac for key, (mac, _) in flow.macs.items()} for flow in read}
