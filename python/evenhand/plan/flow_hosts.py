# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the hosts that one of several flows has of a side: addresses of a pattern, or
those that are in prefixes."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.plan.field_pattern import FieldPattern
from evenhand.plan.host_list import HostList, Hosts, listed
from evenhand.plan.ranges import Address, IpVersion, Network
from evenhand.plan.sides import SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowHosts:
    """Hosts of one side that the frames of a flow have, in both directions."""

    pattern: FieldPattern
    """The addresses, as numbers."""
    version: IpVersion

    @property
    def words(self) -> str:
        """As addresses."""
        return self.pattern.words(self._text)

    def to_document(self) -> dict[str, Any]:
        """As the engine reads it, with addresses as text."""
        found = self.pattern.to_document()
        if self.pattern.values:
            return {**found, "values": [self._text(value) for value in self.pattern.values]}
        return {**found, "first": self._text(self.pattern.first)}

    def first_outside(self, host_range: Hosts) -> str | None:
        """The first of them that is none of these hosts; None if all are."""
        outside = (value for value in self.pattern.all_values if self._address(value) not in host_range)
        found = next(outside, None)
        return None if found is None else self._text(found)

    def _address(self, value: int) -> Address:
        return (ipaddress.IPv4Address if self.version == 4 else ipaddress.IPv6Address)(value)

    def _text(self, value: int) -> str:
        return str(self._address(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPrefixes:
    """All hosts of one side that are in these prefixes: the frames of a flow have them in both directions."""

    prefixes: tuple[Network, ...]
    """Ascending, without overlaps."""
    host_list: HostList = field(repr=False)
    """An entry for each part that a prefix has of the side's."""

    @property
    def words(self) -> str:
        """`2001:db8:5::/48`, `198.18.5.0/24 or 198.18.9.0/24`."""
        texts = [str(prefix) for prefix in self.prefixes]
        return (
            " or ".join(texts) if len(texts) < 9 else f"{len(texts)} prefixes from {texts[0]} to {texts[-1]}"
        )

    def to_document(self) -> dict[str, Any]:
        """For results: the prefixes, and which hosts that are, without the list."""
        return {"prefixes": [str(prefix) for prefix in self.prefixes], **self.host_list.to_document()}

    def to_request(self) -> dict[str, Any]:
        """As the engine reads it; see `HostList.to_request`."""
        return self.host_list.to_request()


def flow_prefixes(flow: str, side: SideName, prefixes: Sequence[Network], of_side: Hosts) -> FlowPrefixes:
    """The hosts of a side in these prefixes; chosen as the side chooses among its own prefixes.

    Args:
        flow: Its name, for errors.

    Raises:
        PlanError: One of the prefixes has none of the side's hosts.
    """
    whole = listed(of_side)
    parts = [whole.entries_within(prefix) for prefix in prefixes]
    for prefix, part in zip(prefixes, parts, strict=True):
        if not part:
            raise PlanError(
                f"{prefix} of the flow {flow!r} has none of the hosts of the {side} side",
                code="plan.flow-hosts",
                where=f"flow.{side}",
                next_step=f"Use prefixes with hosts from {of_side.first_address} to {of_side.last_address}.",
            )
    return FlowPrefixes(
        prefixes=tuple(prefixes), host_list=replace(whole, entries=b"".join(parts), mode="pseudorandom")
    )


def fit_hosts(
    flow: str, side: SideName, asked: FlowHosts | FlowPrefixes | None, of_side: Hosts
) -> FlowHosts | FlowPrefixes | None:
    """Those of a flow where only some hosts of its side are used; None where that is a single one, which the
    flow has then as well.

    Raises:
        PlanError: The flow has hosts that are not used.
    """
    if asked is None or of_side.count == 1:
        return None
    if isinstance(asked, FlowHosts):
        if asked.first_outside(of_side) is None:
            return asked
    else:
        try:
            return flow_prefixes(flow, side, asked.prefixes, of_side)
        except PlanError:
            pass
    raise PlanError(
        f"the flow {flow!r} has hosts that are not among the {of_side.count:,} used ones of the {side} side",
        code="plan.flow-hosts",
        where="hosts, routes",
        next_step="Use all of them, or 1 for a single address pair, or let the flow have other hosts.",
    )
