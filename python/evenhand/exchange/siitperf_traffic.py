# SPDX-License-Identifier: Apache-2.0
"""Exchange: what of the traffic of a siitperf.conf can be sent here: the nearest plans, their shares, and the
UDP ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from evenhand.base.errors import PlanError
from evenhand.exchange.foreign import refuse_if
from evenhand.exchange.nearest_plan import (
    CLOSEST,
    PARTS,
    FoundPlan,
    Part,
    Version,
    WantedSide,
    differences_of,
    nearest_plan,
    span,
    try_plan,
)
from evenhand.exchange.siitperf_read import SiitperfFile
from evenhand.plan import RFC4814_DESTINATION_PORTS, RFC4814_SOURCE_PORTS, Mode, make_mix, make_plan
from evenhand.plan.mix import MOST_OF_A_SHARE
from evenhand.plan.translation import (
    PREFIX_LENGTHS,
    RFC9693_DESTINATION_PORTS,
    RFC9693_SOURCE_PORTS,
    embed,
    embedded_octets,
)
from evenhand.spec.plan import read_destination_ports, read_source_ports

MODES: Sequence[Mode] = ("fixed", "increment", "decrement", "pseudorandom")
"""What 0, 1, 2 and 3 mean in siitperf.conf."""
# Plans by the IP version of the side that opens connections and that of the other.
_STATEFUL_PLANS: Mapping[tuple[int, int], str] = {(4, 4): "nat44", (6, 4): "nat64", (6, 6): "nat66"}
# The one plan of native traffic that goes with a translated one.
_BESIDE_TRANSLATED = "gateway_v6"
# Name in the keys, option, field of a plan, how it is read, and the default without and with connections.
_PORT_OPTIONS = (
    (
        "sport",
        "--source-ports",
        "source_ports",
        read_source_ports,
        RFC4814_SOURCE_PORTS,
        RFC9693_SOURCE_PORTS,
    ),
    (
        "dport",
        "--destination-ports",
        "destination_ports",
        read_destination_ports,
        RFC4814_DESTINATION_PORTS,
        RFC9693_DESTINATION_PORTS,
    ),
)


@dataclass(frozen=True, slots=True)
class ImportedTraffic:
    """What of the file's traffic can be sent here.

    `kind`: "plain", "translated" or "stateful"; of connections for which there is no plan, what is left:
    "background", or "rest" if that is not all that was asked for. `plans` is empty if nothing can be sent,
    and has two entries for foreground and background, which have this `share`. `versions` are the IP versions
    of these; both versions of a translated foreground alone.
    """

    kind: str
    plans: Sequence[FoundPlan]
    versions: Sequence[Version]
    share: tuple[int, int] | None = None

    @property
    def has_state(self) -> bool:
        return self.kind == "stateful"

    @property
    def is_to_ipv4(self) -> bool:
        """Whether frames of the foreground are IPv6 on the left, and IPv4 on the right."""
        return bool(self.plans) and len({side.ip_version for side in self.plans[0].plan.sides}) > 1

    @property
    def names(self) -> str:
        return "+".join(found.name for found in self.plans)

    @property
    def texts(self) -> dict[str, str]:
        """The hosts that each key of addresses became. A side has hosts of one IP version; where they are
        translated, the other side knows them by addresses of the other one."""
        found: dict[str, str] = {}
        for each in reversed(self.plans):
            (left, right), name = each.plan.sides, f"hosts of {each.name}"
            for part, own, other in zip(PARTS, (left, right), (right, left), strict=True):
                found[f"IPv{own.ip_version}-{part}-Real"] = f"{name}: {span(own.host_range)}"
                if other.peers is not None and not self.has_state:
                    text = f"how the other side knows them: {span(other.peers)}"
                    found[f"IPv{other.ip_version}-{part}-Virt"] = text
            if self.has_state and left.peers is not None:
                del found["IPv4-R-Real"]
                found["IPv6-R-Virt"] = f"{name}: {span(left.peers)}"
        return found


def traffic_of(file: SiitperfFile, n: int, m: int, name: str | None) -> ImportedTraffic:
    """The nearest plans.

    Args:
        file: The file, with IPv6 on the left if it is translated, and the initiator on the left.
        n, m: siitperf's arguments: m of n frames are foreground.
        name: The user's choice of a plan for the foreground; that of the background follows from the file.

    Raises:
        RequestError: A key is missing, or there is no such plan.
    """
    sides: tuple[Version, Version] = (file.value("IP-L-Vers"), file.value("IP-R-Vers"))
    is_stateful, is_translated = bool(file.value("Stateful")), sides[0] != sides[1] and m > 0
    with_state = _with_state(file, sides, name) if is_stateful and m else None
    if with_state is not None:
        return ImportedTraffic("stateful", [with_state], sides[:1])
    share = None if is_stateful or not 0 < m < n or sides == (6, 6) else _share(m, n)
    versions: Sequence[Version] = [sides[0]] if share is None else [4, 6]
    kind = "plain" if not is_stateful else "rest" if is_translated else "background"
    if not (file.value("Forward") or file.value("Reverse")):
        versions = []  # the preliminary phase of a stateful test alone
    elif is_translated and not is_stateful:
        plans = _translated(file, name, has_background=share is not None)
        return ImportedTraffic("translated", plans, [6, 4], share)
    elif m == 0 or is_translated:
        # What is left is the background; `::` means that there is none.
        keys = ("IPv6-L-Real", "IPv6-R-Real")
        versions = [6] if m == 0 or all(file.has(key) and int(file.value(key)) for key in keys) else []
    plans = [_native(file, version, name if not place else None) for place, version in enumerate(versions)]
    return ImportedTraffic(kind, plans, versions, share)


def _share(m: int, n: int) -> tuple[int, int]:
    """The share as `--mix` has it: exact among so many frames."""
    least = Fraction(1, MOST_OF_A_SHARE)
    near = min(max(Fraction(m, n).limit_denominator(MOST_OF_A_SHARE), least), 1 - least)
    return near.numerator, near.denominator - near.numerator


def _wanted(
    file: SiitperfFile, part: Part, version: Version, which: Literal["Real", "Virt"] = "Real"
) -> WantedSide:
    """RequestError if a key is missing without which siitperf sends from whatever its memory holds."""
    real, networks = file.value(f"IPv{version}-{part}-{which}"), file.value(f"Num-{part}-Nets")
    mode = MODES[file.value(f"IP-{part}-var")]
    if mode == "fixed":
        return WantedSide(part, real, network_count=networks)
    first, last = file.value(f"IP-{part}-min"), file.value(f"IP-{part}-max")
    return WantedSide(part, real, mode, file.value(f"IPv{version}-{part}-offset"), first, last, networks)


def _native(file: SiitperfFile, version: Version, name: str | None) -> FoundPlan:
    return nearest_plan((_wanted(file, "L", version), _wanted(file, "R", version)), version, name=name)


def _translated(file: SiitperfFile, name: str | None, *, has_background: bool) -> list[FoundPlan]:
    """The translated plan for IPv6 on the left and IPv4 on the right, then that of the background. Without
    the user's choice, by how the file's addresses belong together."""
    wanted = partial(_wanted, file)
    prefixes = _prefixes_between(wanted("R", 6, "Virt"), wanted("R", 4))
    # Where the IPv6 hosts lie behind the prefix too, no mapping is needed.
    by_prefix = [
        each for each in prefixes if each in _prefixes_between(wanted("L", 6), wanted("L", 4, "Virt"))
    ]
    why_not = ""
    if name is None:
        beside = _BESIDE_TRANSLATED if has_background else None
        name, why_not = _plan_behind("siit" if by_prefix else "siit_eam", by_prefix or prefixes, beside)
    plan = make_plan(name)
    refuse_if(
        (
            plan.translation is None,
            PlanError(
                f"{plan.title} is not for a translator, but this traffic is IPv6 on one side only",
                code="exchange.plan-not-translated",
                where="--plan",
                next_step="Leave it out, or use siit or siit-eam.",
            ),
        )
    )
    found = try_plan(plan.name, (wanted("L", 6), wanted("R", 4)))
    left, right = found.plan.sides
    ipv4_known, ipv6_known = left.peers or right.host_range, right.peers or left.host_range
    why = CLOSEST if prefixes else " instead: plans have the IPv4 hosts behind a prefix (RFC 6052)"
    why = f" instead: {why_not}" if why_not else why
    differences = {
        **found.differences,
        **differences_of("IPv4-L-Virt", wanted("L", 4, "Virt"), ipv6_known, CLOSEST),
        **differences_of("IPv6-R-Virt", wanted("R", 6, "Virt"), ipv4_known, why),
    }
    if why_not and by_prefix:
        differences |= differences_of("IPv6-L-Real", wanted("L", 6), left.host_range, why)
    plans = [replace(found, differences=differences)]
    return plans + ([_native(file, 6, _BESIDE_TRANSLATED)] if has_background else [])


def _with_state(file: SiitperfFile, versions: tuple[Version, Version], name: str | None) -> FoundPlan | None:
    """The plan whose left hosts open connections; None if there is none for these IP versions."""
    usual = _STATEFUL_PLANS.get(versions)
    if usual is None:
        return None
    plan = make_plan(name or usual)
    if plan.nat is None or plan.nat.title.lower() != usual:
        raise PlanError(
            f"{plan.title} is not the plan of a {usual.upper()}, which this file tests",
            code="exchange.plan-without-state",
            where="--plan",
            next_step=f"Leave it out, or use {usual}.",
        )
    left = _wanted(file, "L", versions[0])
    if versions != (6, 4):
        return try_plan(usual, (left, _wanted(file, "R", versions[1])))
    # The IPv4 hosts follow from their addresses on the IPv6 side, so all is said of these.
    behind, why_not = _wanted(file, "R", 6, "Virt"), ""
    prefix = ipaddress.IPv6Network((behind.first_address, PREFIX_LENGTHS[-1]), strict=False)
    if file.has("IPv4-R-Real") and (behind.offset is None or file.has("IPv4-R-offset")):
        # The file has their address on each side, by which another prefix may be known.
        prefix = [prefix, *_prefixes_between(behind, _wanted(file, "R", 4))][-1]
    if name is None:
        name, why_not = _plan_behind(usual, [prefix])
    octets = bytes(behind.real.packed[octet] for octet in embedded_octets(prefix.prefixlen))
    ipv4 = replace(behind, real=ipaddress.IPv4Address(octets), offset=None)
    found = try_plan(make_plan(name).name, (left, ipv4))
    known = found.plan.left.peers or found.plan.left.host_range
    have = (found.plan.nat or plan.nat).prefix
    differences = {key: text for key, text in found.differences.items() if not key.startswith("IPv4-R-")}
    differences |= differences_of("IPv6-R-Virt", behind, known, CLOSEST)
    if behind.first_address not in (have or ()):
        why = why_not or f"the prefix of {found.name} is {have}"
        differences["IPv6-R-Virt"] = f"{known.first_address} .. {known.last_address} instead: {why}"
    return replace(found, differences=differences)


def _prefixes_between(behind: WantedSide, host: WantedSide) -> list[ipaddress.IPv6Network]:
    """Those behind which the first IPv4 host has the first IPv6 address (RFC 6052)."""
    address, ipv4 = behind.first_address, host.first_address
    assert isinstance(ipv4, ipaddress.IPv4Address)
    prefixes = [ipaddress.IPv6Network((address, length), strict=False) for length in PREFIX_LENGTHS]
    return [prefix for prefix in prefixes if embed(prefix, ipv4) == address]


def _plan_behind(
    name: str, prefixes: Iterable[ipaddress.IPv6Network], beside: str | None = None
) -> tuple[str, str]:
    """The plan of this name with the first of these prefixes that it can have, and an empty text; or the name
    alone, and why it has none of them.

    Args:
        beside: The plan of native traffic that must be sent with it.
    """
    why = ""
    for prefix in prefixes:
        try:
            return make_mix("+".join(filter(None, (f"{name}@{prefix}", beside)))).name, ""
        except PlanError as error:
            why = error.what
    return name, why


@dataclass(frozen=True, slots=True)
class ImportedPorts:
    """The UDP ports of both directions, which are those of the forward one unless it is off: `way` is Fwd or
    Rev. As options, as fields of a plan, and as the text of the option of `sport` and `dport`."""

    way: str
    options: Sequence[str]
    fields: Mapping[str, Any]
    texts: Mapping[str, str]


def ports_of(file: SiitperfFile, *, has_state: bool) -> ImportedPorts:
    """
    Args:
        has_state: The frames are of connections, which the left side opens: each has its ports to the end.
    """
    options: list[str] = []
    fields: dict[str, Any] = {}
    texts: dict[str, str] = {}
    way = "Fwd" if has_state or file.value("Forward") else "Rev"
    for port, option, field, read, *defaults in _PORT_OPTIONS:
        mode: Mode = MODES[file.value(f"{way}-var-{port}")]
        if has_state and (mode != "fixed" or file.value("Enumerate-ports")):
            # What is enumerated takes each port of the range, whatever the order of frames would be.
            mode = "pseudorandom"
        first, last = (file.value(f"{way}-{port}-{end}") or 1 for end in ("min", "max"))
        span_of_ports = str(first) if first == last else f"{first}-{last}"
        order = "" if mode == "pseudorandom" or first == last else f":{mode}"
        value = "fixed" if mode == "fixed" else f"{span_of_ports}{order}"
        texts[port] = f"{option} {value}"
        default = defaults[has_state]
        if (mode, first, last) != ("pseudorandom", default.first, default.last):
            options += [option, value]
            fields[field] = read(value, where=option)
    return ImportedPorts(way, options, fields, texts)
