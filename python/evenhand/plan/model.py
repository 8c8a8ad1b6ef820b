# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what a plan is. Frozen, checked when made, knows nothing of engines or frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from evenhand.base.errors import PlanError
from evenhand.plan.flow_hosts import FlowPrefixes
from evenhand.plan.flows import Flow, fit_flows, flow_octets, flows_in
from evenhand.plan.host_list import HostList, Hosts
from evenhand.plan.imix import FrameSize, Imix
from evenhand.plan.ranges import HostRange, IpVersion, Network, UdpRange
from evenhand.plan.reserved import not_named, outside_words
from evenhand.plan.sides import (
    BOTH_DIRECTIONS,
    NO_TAGS,
    Direction,
    PlanSide,
    SideCounts,
    SideName,
    receiving_side,
    sending_side,
)
from evenhand.plan.stream import SMALLEST_FRAME, Frames, Stream, ip_versions
from evenhand.plan.translation import ANY_PORT, Nat, Translation

HostMacs = Literal["port", "pseudorandom"]
"""MACs of hosts on the link: all that of the tester's port, or one of each host's own, drawn from the seed
(R4814-05)."""


def plan_title(name: str) -> str:
    """A plan's name as people type it: `gateway-v4`, in all that a user sees. The engine's contract, and what
    runs keep of it, have `gateway_v4`; both are read everywhere."""
    return name.replace("_", "-")


def is_plan_file(name: str) -> bool:
    """Whether a plan's name is that of a plan file: `edge.toml`."""
    return name.endswith(".toml")


def own_title(name: str) -> str:
    """What a testbed file calls its DUT's plan, as a command line has it: a plan file by its path."""
    return name if is_plan_file(name) else plan_title(name)


def plan_file_name(name: str) -> str:
    """A plan's name as part of a file's, in which `siit@2001:db8::/40` may not have its slash."""
    return re.sub(r"[^a-z0-9_]", "_", name)


def one_size_of_flows(size: FrameSize) -> int:
    """The frame size of those flows that have none of their own. PlanError if it is several."""
    if isinstance(size, Imix):
        raise PlanError(
            f"frames of several sizes ({size}) in a plan of several flows",
            code="plan.flows-with-imix",
            where="frame_size",
            next_step="Use one frame size, or give flows sizes of their own: frame-size = 1518.",
        )
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersion:
    """The plan of the other IP version that a direction's frames are of as well; `mix.mix_versions` makes it
    (R5180-14)."""

    plan: AddressPlan
    share: tuple[int, int]
    """n and m: out of n + m frames, n are of the plan that has this, and m of `plan`; in lowest terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """All addresses and routes of one topology (SEED-10 .. SEED-17), checked by `validate.check_plan`."""

    name: str
    figure: str
    """Where the plan comes from, such as "Figure 3"."""
    left: PlanSide
    right: PlanSide
    source_ports: UdpRange
    destination_ports: UdpRange
    fixed_source: bool = False
    """Every frame comes from the first host of its side, as in RFC 2544 section 12; for comparison runs
    (SEED-35)."""
    fixed_source_network: bool = False
    """Every frame comes from the first network of its side, and from any host of it (SEED-83)."""
    common_network: bool = False
    """One R for both addresses of a frame: the destination is in the network of the source's number
    (SEED-82). Else two are drawn."""
    translation: Translation | None = None
    """The translation that the DUT must be configured for; None: it does not translate statelessly."""
    nat: Nat | None = None
    """The same of a DUT that keeps state; None: it keeps none."""
    is_own: bool = False
    """Whether a plan file describes it (`plan_file.read_plan_file`), with whatever addresses its user has."""
    flows: tuple[Flow, ...] = ()
    """Flows that the frames are of, each in both directions or in one; empty: all frames are alike."""
    other: OtherVersion | None = None
    """The other plan of a mix of both IP versions; else None. All other fields describe this plan alone."""

    @property
    def title(self) -> str:
        """The name as people type it."""
        return plan_title(self.name) + ("" if self.other is None else f"+{self.other.plan.title}")

    @property
    def is_derived(self) -> bool:
        """Whether no document spells the plan out, so that it says so wherever it is shown (SEED-36)."""
        return self.figure.startswith("derived")

    @property
    def label(self) -> str:
        """The title, and of a derived plan what it is derived from."""
        return f"{self.title}, {self.figure}" if self.is_derived else self.title

    @property
    def sides(self) -> tuple[PlanSide, PlanSide]:
        return (self.left, self.right)

    def side(self, name: SideName) -> PlanSide:
        return self.left if name == "left" else self.right

    @property
    def not_reserved(self) -> list[str]:
        """What of a plan file's addresses is not reserved for benchmarking, for people (R2544-37, R5180-01);
        empty for every other plan."""
        return outside_words(self.sides) if self.is_own else []

    def first_not_named(self, named: Sequence[Network]) -> str | None:
        """The first of its addresses that are neither reserved for benchmarking nor in these networks; None
        if there are none."""
        return not_named(self.sides, named) if self.is_own else None

    @property
    def is_direct(self) -> bool:
        """Whether hosts are on a link; of a plan file's plan, be it on one side."""
        return self.left.is_direct or self.right.is_direct

    @property
    def has_files(self) -> bool:
        """Whether the engine reads hosts from a file that this process writes: those of many prefixes."""
        of_flows = (hosts for flow in self.flows for hosts in (flow.left, flow.right))
        return any(isinstance(side.host_range, HostList) for side in self.sides) or any(
            isinstance(hosts, FlowPrefixes) for hosts in of_flows
        )

    @property
    def is_translated(self) -> bool:
        """Whether frames arrive otherwise than they are sent (`Stream.is_translated`); of a mix of IP
        versions in its first plan."""
        return any(self.stream_of(direction).is_translated for direction in BOTH_DIRECTIONS)

    @property
    def flow_directions(self) -> tuple[Direction, ...]:
        """Directions in which frames can be sent: those of its flows; both where there are none."""
        found = tuple(direction for direction in BOTH_DIRECTIONS if flows_in(self.flows, direction))
        return found or BOTH_DIRECTIONS

    @property
    def plans(self) -> tuple[AddressPlan, ...]:
        """This plan, and of a mix of IP versions the other."""
        return (self,) if self.other is None else (self, self.other.plan)

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        """How many of a direction's frames are of each of `plans`."""
        share = (1,) if self.other is None else self.other.share
        return tuple(Fraction(part, sum(share)) for part in share)

    @property
    def hosts(self) -> SideCounts:
        """Hosts of each network."""
        return SideCounts(self.left.host_range.count, self.right.host_range.count)

    @property
    def networks(self) -> SideCounts:
        """Networks of each side."""
        return SideCounts(self.left.host_range.network_count, self.right.host_range.network_count)

    @property
    def ip_version(self) -> IpVersion:
        """The IP version of both sides; of a mix, that of its first plan.

        Raises:
            PlanError: The sides differ, so that only a stream or a side has one.
        """
        left, right = self._own_versions
        if left != right:
            raise PlanError(
                f"{self.title} has IPv{left} on the left and IPv{right} on the right",
                code="plan.two-versions",
                where="plan",
                next_step="Use a plan of one IP version here.",
            )
        return left

    @property
    def versions(self) -> tuple[IpVersion, ...]:
        """IP versions of the frames."""
        return ip_versions(self.streams())

    @property
    def version_words(self) -> str:
        """`IPv4`, or `IPv6 (left) and IPv4 (right)`; of a mix in its first plan."""
        left, right = self._own_versions
        return f"IPv{left}" if left == right else f"IPv{left} (left) and IPv{right} (right)"

    @property
    def _own_versions(self) -> tuple[IpVersion, IpVersion]:
        return self.left.ip_version, self.right.ip_version

    @property
    def smallest_frame_size(self) -> int:
        """Octets with FCS that hold the headers and the 18 octets of the tag (R2544-33, R5180-10), in each of
        its IP versions."""
        return self.smallest_frame()[0]

    def smallest_frame(self, tag_octets: SideCounts = NO_TAGS) -> tuple[int, IpVersion]:
        """The smallest frame size that can be asked for, and the IP version that does not allow a smaller
        one.

        Args:
            tag_octets: Octets of the VLAN tags of each link, which a frame size counts.
        """
        more = max((flow.more_octets for flow in self.flows if flow.frame_size is None), default=0)
        return max(
            (
                SMALLEST_FRAME[side.ip_version] + more - side.added_octets + tag_octets.of(side.name),
                side.ip_version,
            )
            for plan in self.plans
            for side in plan.sides
        )

    def streams(
        self,
        frame_size: FrameSize | None = None,
        directions: Sequence[Direction] = BOTH_DIRECTIONS,
        *,
        tag_octets: SideCounts = NO_TAGS,
    ) -> tuple[Stream, ...]:
        """What is sent and what arrives, for each direction in turn; a mix of IP versions has a stream for
        each.

        Args:
            frame_size: The size as people ask for it: with the FCS and the tags of the side that sends. None:
                the smallest.
            tag_octets: Octets of the VLAN tags of each link.
        """
        size = self.smallest_frame(tag_octets)[0] if frame_size is None else frame_size
        return tuple(
            replace(plan.stream_of(direction, size, tag_octets=tag_octets), share=share)
            for direction in directions
            for plan, share in zip(self.plans, self._shares, strict=True)
        )

    def stream_of(
        self, direction: Direction, frame_size: FrameSize | None = None, *, tag_octets: SideCounts = NO_TAGS
    ) -> Stream:
        """The same of one direction; of a mix of IP versions that of the first plan."""
        size = self.smallest_frame(tag_octets)[0] if frame_size is None else frame_size
        asked = size.octets if isinstance(size, Imix) else (size,)
        if flows := flows_in(self.flows, direction):
            asked = flow_octets(flows, one_size_of_flows(size))
        sender, receiver = self.side(sending_side(direction)), self.side(receiving_side(direction))
        asked_tags = tag_octets.of(sender.name)

        def frames(
            side: PlanSide, sources: Hosts, destinations: Hosts, ports: tuple[UdpRange, UdpRange]
        ) -> Frames:
            tags = tag_octets.of(side.name)
            if self.fixed_source:
                sources = sources.fixed()
            elif self.fixed_source_network:
                sources = sources.fixed_network()
            return Frames(
                side=side.name,
                sources=sources,
                destinations=destinations,
                source_ports=ports[0],
                destination_ports=ports[1],
                common_network=self.common_network,
                octets=tuple(octets + side.added_octets - asked_tags + tags for octets in asked),
                tag_octets=tags,
            )

        return Stream(
            direction=direction,
            sent=frames(
                sender, sender.host_range, sender.peers or receiver.host_range, self._ports(direction, "sent")
            ),
            arrives=frames(
                receiver,
                receiver.peers or sender.host_range,
                receiver.host_range,
                self._ports(direction, "arrives"),
            ),
        )

    def _ports(self, direction: Direction, end: Literal["sent", "arrives"]) -> tuple[UdpRange, UdpRange]:
        """UDP ports of source and destination. With state, answers come from where frames went to, and go to
        any port of the pool."""
        if self.nat is None:
            return self.source_ports, self.destination_ports
        if direction == "forward":
            return (self.source_ports if end == "sent" else ANY_PORT), self.destination_ports
        return self.destination_ports, (ANY_PORT if end == "sent" else self.source_ports)

    @property
    def four_tuples(self) -> int:
        """Connections that can be opened, each with a four tuple of its own (R9693-04): source hosts x source
        ports x destination hosts x destination ports."""
        sent = self.stream_of("forward").sent
        return (
            sent.sources.count
            * sent.destinations.count
            * self.source_ports.values
            * self.destination_ports.values
        )

    def pairs_of(self, direction: Direction) -> int:
        """Address pairs that are sent in a direction."""
        return self.stream_of(direction).sent.pairs

    @property
    def pairs(self) -> int:
        """Address pairs of the forward direction; of the other as well, unless the source is fixed and the
        sides differ."""
        return self.pairs_of("forward")

    def with_counts(self, host_count: int, network_count: int | None = None) -> AddressPlan:
        """The same set-up of the DUT, of which the first hosts of each network are used, and the first
        networks of each side.

        Args:
            network_count: None for all that there are.

        Raises:
            PlanError: The hosts are those of prefixes, and neither one host nor all are asked for.
        """

        return self.with_side_counts(SideCounts(host_count, host_count), network_count)

    def with_side_counts(self, host_counts: SideCounts, network_count: int | None = None) -> AddressPlan:
        """The same with a number of hosts for each side."""

        def fewer(of_side: HostRange, host_count: int) -> HostRange:
            kept = of_side.network_range
            if kept is not None and network_count is not None:
                kept = replace(kept, count=network_count)
            return replace(of_side, count=host_count, network_range=kept)

        def side(of_plan: PlanSide, other: PlanSide) -> PlanSide:
            peers, hosts, count = of_plan.peers, of_plan.host_range, host_counts.of(of_plan.name)
            return replace(
                of_plan,
                host_range=_fewer_listed(hosts, count)
                if isinstance(hosts, HostList)
                else fewer(hosts, count),
                peers=None if peers is None else fewer(peers, host_counts.of(other.name)),
            )

        left, right = side(self.left, self.right), side(self.right, self.left)
        flows = fit_flows(self.flows, {"left": left.host_range, "right": right.host_range})
        return replace(self, left=left, right=right, flows=flows)

    def one_pair(self) -> AddressPlan:
        """The same set-up of the DUT, of which one address pair is used: the first host of each side
        (SEED-02)."""
        other = None if self.other is None else replace(self.other, plan=self.other.plan.one_pair())
        return replace(self.with_counts(1, 1), other=other)

    def to_request(self) -> dict[str, Any]:
        """The plan as the engine reads it (contract/request.schema.json), without the other IP version's."""
        found = {
            key: value for key, value in self.to_contract().items() if key not in ("not_reserved", "flows")
        }
        for side in self.sides:
            of_side = {key: value for key, value in found[side.name].items() if key != "prefixes"}
            if isinstance(side.host_range, HostList):
                of_side["hosts"] = side.host_range.to_request()
            found[side.name] = of_side
        return found

    def to_contract(self) -> dict[str, Any]:
        """The same for documents that are kept: of a list of hosts it has counts and digest instead of the
        file's name."""
        found = self.to_document()
        if not self.is_translated:
            return found
        sides: dict[str, Any] = {
            side.name: {name: part for name, part in found[side.name].items() if part is not None}
            for side in self.sides
        }
        del found["ip_version"]  # each side has its own
        return {**found, **sides}

    def to_document(self) -> dict[str, Any]:
        """The addresses, as the contract has them; where the DUT translates, with what each side has of its
        own."""

        def range_document(r: Hosts) -> dict[str, Any]:
            if isinstance(r, HostList):
                return r.to_document()
            number = {"offset": r.offset, **({"gap": r.gap} if r.gap else {})}
            found: dict[str, Any] = {
                "base": str(r.base),
                "host": {**number, "first": r.first, "count": r.count, "mode": r.mode},
            }
            if r.network_range is not None:
                found["network"] = {
                    "offset": r.network_range.offset,
                    "count": r.network_range.count,
                    "mode": r.network_range.mode,
                }
            return found

        def side(s: PlanSide) -> dict[str, Any]:
            gateway = {} if s.gateway is None else {"gateway": str(s.gateway.ip)}
            addresses = {**gateway, "dut_address": str(s.dut[0].ip), "hosts": range_document(s.host_range)}
            if s.prefixes is not None:
                addresses["prefixes"] = s.prefixes.to_document()
            if not self.is_translated:
                return addresses
            return {
                "ip_version": s.ip_version,
                **addresses,
                "peers": None if s.peers is None else range_document(s.peers),
                "added_octets": s.added_octets,
            }

        def udp(r: UdpRange) -> dict[str, Any]:
            return {"first": r.first, "last": r.last, "mode": r.mode}

        return {
            "name": self.name,
            "ip_version": self.left.ip_version if len(set(self._own_versions)) == 1 else None,
            "left": side(self.left),
            "right": side(self.right),
            "udp_ports": {"source": udp(self.source_ports), "destination": udp(self.destination_ports)},
            **{
                name: True
                for name in ("fixed_source", "fixed_source_network", "common_network")
                if getattr(self, name)
            },
            **({} if self.nat is None else {"stateful": True}),
            **({"flows": [flow.to_document() for flow in self.flows]} if self.flows else {}),
            **({"not_reserved": outside} if (outside := self.not_reserved) else {}),
        }


def _fewer_listed(listed: HostList, host_count: int) -> Hosts:
    if host_count == listed.count:
        return listed
    if host_count == 1:
        return listed.single()
    raise PlanError(
        f"{host_count:,} hosts: there are {listed.count:,} in {listed.entry_count:,} prefixes or ranges",
        code="plan.hosts-of-prefixes",
        where="hosts",
        next_step="Omit it: frames go to all hosts, or with 1 to the first.",
    )
