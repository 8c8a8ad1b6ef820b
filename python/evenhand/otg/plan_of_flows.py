# SPDX-License-Identifier: Apache-2.0
"""OTG: the address plan that sends what the flows' patterns say. The one place of the server that knows
plans: whatever else a plan will be able to say belongs here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.exchange.nearest_plan import span
from evenhand.exchange.otg_flow import OtgFlow, OtgReader
from evenhand.exchange.otg_read import check_alike, find_plan
from evenhand.exchange.outcome import Became
from evenhand.otg.refusals import OtgError
from evenhand.plan import AddressPlan, SideName, make_plan
from evenhand.spec.plan import read_destination_ports, read_source_ports

Macs = Mapping[SideName, Mapping[str, str]]
"""By side: `mac` of the tester's port, `dut_mac` of the DUT's, as far as they are named."""
USUAL = ("gateway-v4", "gateway-v6")
"""Where nothing says what the DUT is set up for."""
_ADDRESSES = re.compile(r"\.ipv[46]\.(src|dst)(, dst)?$")


def plan_of_flows(
    flows: Sequence[Mapping[str, Any]], sides: Mapping[str, SideName], plans: Sequence[str]
) -> tuple[AddressPlan, Macs]:
    """The plan that sends exactly these patterns.

    Args:
        flows: One, or one in each direction, with patterns of the kinds that the file import reads.
        sides: Those of the ports, by their names.
        plans: Those that the DUT is set up for; empty: it is not known, and any plan may be meant.

    Raises:
        OtgError: There is none; says what is unlike the nearest.
    """
    version = _version_of(flows)
    wanted = [name for name in plans or USUAL if make_plan(name).ip_version == version]
    tried: list[str | None] = [*wanted, *([] if plans else [None])] or [None]
    first: OtgError | None = None
    for name in tried:
        try:
            return _plan_named(flows, sides, name)
        except OtgError as error:
            first = first or error
    assert first is not None
    raise first


def _version_of(flows: Sequence[Mapping[str, Any]]) -> int:
    """The version of the first IP header; 0 if there is none, which the reader will say."""
    kinds = [header.get("choice") for flow in flows for header in flow["packet"]]
    return next((int(kind[-1]) for kind in kinds if kind in ("ipv4", "ipv6")), 0)


def _plan_named(
    flows: Sequence[Mapping[str, Any]], sides: Mapping[str, SideName], name: str | None
) -> tuple[AddressPlan, Macs]:
    reader = OtgReader(Path("config"), {"flows": list(flows)})
    reader.ports = dict(sides)
    try:
        read = [OtgFlow(reader, f"flows[{number}]", dict(flow)) for number, flow in enumerate(flows)]
        if len(read) > 1:
            check_alike(reader, *read)
        found = find_plan(reader, read, name) if reader.is_sendable else None
    except EvenhandError as error:
        raise OtgError([str(error).removeprefix("config: ")]) from error
    unlike = [row for row in reader.rows if row.became in (Became.REFUSED, Became.DIFFERS)]
    errors = []
    if found is not None and any(_ADDRESSES.search(row.key) for row in unlike):
        left, right = (span(side.host_range) for side in found.plan.sides)
        errors.append(
            f"flows: no plan has these addresses in this order; the nearest, {found.name}, has {left} on the"
            f" left and {right} on the right: `evenhand plan export {found.name}` writes its flows"
        )
        unlike = [row for row in unlike if not _ADDRESSES.search(row.key)]
    errors += [f"{row.key}: {row.text}" for row in unlike]
    if found is None or errors:
        raise OtgError(errors or ["flows: no plan sends these addresses"])
    options = read[0].options
    plan = found.plan
    if (written := options.get("--source-ports")) is not None:
        plan = replace(plan, source_ports=read_source_ports(written, where="src_port"))
    if (written := options.get("--destination-ports")) is not None:
        plan = replace(plan, destination_ports=read_destination_ports(written, where="dst_port"))
    return plan, {flow.sender: {key: mac for key, (mac, _) in flow.macs.items()} for flow in read}
