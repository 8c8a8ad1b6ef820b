# SPDX-License-Identifier: Apache-2.0
"""Station 1: which frame of a direction is of which size and IP version. A sequence that repeats, so that all
shares are exact."""

from __future__ import annotations

import math
from dataclasses import replace
from ipaddress import IPv6Network
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan.flows import check_flow_directions, flow_classes, flow_lines, flows_in
from evenhand.plan.imix import ALGORITHM, FrameSize, Imix
from evenhand.plan.model import AddressPlan, OtherVersion, one_size_of_flows, plan_title
from evenhand.plan.sides import Direction, SideCounts
from evenhand.plan.topologies import find_topology, make_plan

MOST_OF_A_SHARE = 100
"""Frames among which a share is exact (R5180-14)."""


def mix_versions(first: AddressPlan, second: AddressPlan, share: tuple[int, int]) -> AddressPlan:
    """Both plans on one testbed: of every n + m frames of a direction, n belong to the first plan and m to
    the second, evenly spread (R5180-14).

    Args:
        share: n and m, such as (90, 10), which is the same as (9, 1).

    Raises:
        PlanError: A plan has connections; both have the same IP version, or different forms; the share is
            impossible; or a host address occurs in both plans, although the DUT translates it in one of them.
    """
    for plan, where in ((first, "first"), (second, "second")):
        check_type(plan, AddressPlan, where=where)
    check_type(share, tuple[int, int], where="share")
    n, m = (int(number) // (math.gcd(*share) or 1) for number in share)
    if min(n, m) < 1 or n + m > MOST_OF_A_SHARE:
        raise PlanError(
            f"a share of {share[0]}/{share[1]}",
            code="plan.not-a-share",
            where="share",
            next_step="Write 90/10, 50/50 or 10/90, or other shares with a sum of at most 100; for one IP"
            " version, give only its plan.",
        )
    for plan in (first, second):
        if plan.nat is not None:
            raise PlanError(
                f"{plan.title} has connections, and frames of a mix have none",
                code="plan.mix-with-state",
                where="first, second",
                next_step="Use it alone.",
            )
    if first.versions == second.versions:
        raise PlanError(
            f"{first.title} and {second.title} are both {first.version_words}",
            code="plan.mix-of-one-version",
            where="first, second",
            next_step="Name one of each IP version.",
        )
    if first.is_direct != second.is_direct:
        raise PlanError(
            f"{first.title} and {second.title}: one has its hosts behind gateways, the other"
            " has them on the link",
            code="plan.mix-of-two-forms",
            where="first, second",
            next_step="Name two plans of the same form, such as gateway-v4+gateway-v6.",
        )
    _check_unlike_hosts(first, second)
    _check_unlike_hosts(second, first)
    return replace(first, other=OtherVersion(plan=second, share=(n, m)))


def make_mix(
    name: str, hosts: SideCounts | None = None, *, networks: SideCounts | None = None
) -> AddressPlan:
    """The plan of this name, or of `siit+gateway-v6` the mix of both in equal shares. PlanError if there is
    no such plan.

    Args:
        hosts: Hosts of each of the plans, or as many as it has.
        networks: The same of networks; a plan whose only network has no number keeps that one.
    """
    first, *others = (_make_plan(each, hosts, networks) for each in name.split("+"))
    return first if not others else mix_versions(first, others[0], (1, 1))


def _make_plan(name: str, hosts: SideCounts | None, networks: SideCounts | None) -> AddressPlan:
    topology = find_topology(name)
    if hosts is not None and topology is not None:
        hosts = SideCounts(*(min(count, topology.most_hosts) for count in hosts))
    if networks is not None and topology is not None:
        most = topology.most_networks
        networks = None if most is None else SideCounts(*(min(count, most) for count in networks))
    return make_plan(name, hosts, networks=networks)


def _check_unlike_hosts(translated: AddressPlan, other: AddressPlan) -> None:
    """No address may mean a host that is translated and one that is not."""
    prefix = None if translated.translation is None else translated.translation.prefix
    for side in other.sides if prefix is not None else ():
        for network in (*side.routes, *(interface.network for interface in side.dut)):
            if prefix is not None and isinstance(network, IPv6Network) and network.overlaps(prefix):
                raise PlanError(
                    f"{network} on the {side.name} of {other.title} overlaps the prefix {prefix} of"
                    f" {translated.title}",
                    code="plan.networks-overlap",
                    where="first, second",
                    next_step="Use a prefix outside 2001:2::/48, or siit without a prefix of your own.",
                )
    for side in translated.sides:
        native = (other.right if side.name == "left" else other.left).host_range
        seen = side.peers
        if seen is not None and (seen.first_address in native or native.first_address in seen):
            raise PlanError(
                f"{native.first_address} .. {native.last_address} are hosts of {other.title}, and also"
                f" addresses that {translated.title} gives to translated hosts",
                code="plan.networks-overlap",
                where="first, second",
                next_step="Combine it with a plan of the other IP version, such as gateway-v6.",
            )


def version_pattern(share: tuple[int, int]) -> tuple[int, ...]:
    """Which of both plans, 0 or 1, each of n + m frames is of: m of them as far from each other as can be."""
    total = sum(share)
    return tuple((k + 1) * share[1] // total - k * share[1] // total for k in range(total))


def mix_request(plan: AddressPlan, size: FrameSize, direction: Direction | None = None) -> dict[str, Any]:
    """The engine's `mix`, and where the flows of the reverse direction are others, `reverse_mix`; empty if
    all frames are alike.

    Where sizes and IP versions both change, each version has each place of the sequence of sizes equally
    often: whenever both sequences come to an end together, that of the versions moves on by one frame.

    Args:
        direction: That direction alone, as `mix`; None: both, or the only one that there are flows for.

    Raises:
        PlanError: The plan has flows, but none of this direction; or the frames are of several sizes.
    """
    if plan.flows:
        check_flow_directions(plan.flows, () if direction is None else (direction,))
        whole = one_size_of_flows(size)
        of_directions = [
            flow_classes(flows_in(plan.flows, each), whole)
            for each in (plan.flow_directions if direction is None else (direction,))
        ]
        are_alike = of_directions[0] == of_directions[-1]
        return {"mix": of_directions[0]} | ({} if are_alike else {"reverse_mix": of_directions[1]})
    if plan.other is None and not isinstance(size, Imix):
        return {}
    octets = size.octets if isinstance(size, Imix) else (size,)
    versions = (0,) if plan.other is None else version_pattern(plan.other.share)
    together = math.lcm(len(octets), len(versions))
    frames = [
        (octets[k % len(octets)], versions[(k + k // together) % len(versions)])
        for k in range(len(octets) * len(versions))
    ]
    classes = sorted(set(frames), key=lambda frame: (frame[1], frame[0]))
    numbers = {frame: number for number, frame in enumerate(classes)}
    mix: dict[str, Any] = {
        "classes": [{"frame_size": octets, "plan": number} for octets, number in classes],
        "cycle": [numbers[frame] for frame in frames],
    }
    if plan.other is not None:
        mix["other_plan"] = plan.other.plan.to_request()
    return {"mix": mix}


def describe_mix(plan: AddressPlan, size: FrameSize) -> dict[str, Any] | None:
    """For documents and run files; None if all frames are alike. Plans have the names that people type; older
    files have the contract's."""
    if plan.other is None and not isinstance(size, Imix):
        return None
    other = plan.other
    return {
        "imix": str(size) if isinstance(size, Imix) else None,
        "mean_frame_size": float(size.mean) if isinstance(size, Imix) else float(size),
        "frame_sizes": list(size.octets) if isinstance(size, Imix) else [size],
        "drawn": None
        if not isinstance(size, Imix) or size.drawn is None
        else {"frames": size.drawn.frames, "seed": size.drawn.seed, "algorithm": ALGORITHM},
        "versions": None
        if other is None
        else {
            "plans": [plan_title(plan.name), other.plan.title],
            "share": list(other.share),
            "other_plan": {**other.plan.to_document(), "name": other.plan.title},
        },
    }


def mix_lines(plan: AddressPlan, size: FrameSize) -> list[str]:
    """Sentences for below a result."""
    lines = flow_lines(plan.flows)
    if isinstance(size, Imix):
        lines.append(
            f"Frame sizes ({size}, RFC 6985): {size.counted}, {size.order}, repeated in each"
            f" direction; mean {float(size.mean):.6g} octets. Rates count frames; the"
            " theoretical limit is that of the mean size."
        )
    if plan.other is not None:
        n, m = plan.other.share
        first, second = (part.version_words for part in plan.plans)
        lines.append(
            f"IP versions: of every {n + m} frames of a direction, {n} are {first} and {m} are {second},"
            " evenly distributed."
        )
    return lines
