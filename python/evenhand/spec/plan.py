# SPDX-License-Identifier: Apache-2.0
"""Specification: the address plan: its options, and the one builder for the shell, campaign files, and what
runs have stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from evenhand import rig
from evenhand.base.errors import RequestError, suggestion
from evenhand.base.option import Grammar, Option, OptionField, options_of
from evenhand.base.units import is_whole, parse_count, short_repr
from evenhand.plan import (
    BOTH_DIRECTIONS,
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    SIDES,
    AddressPlan,
    Counts,
    Direction,
    Mode,
    SideCounts,
    UdpRange,
    find_topology,
    is_plan_file,
    make_plan,
    mix_versions,
    own_title,
)
from evenhand.plan.ranges import parse_ports
from evenhand.spec.own_plan import find_own_plan, shape_own_plan

MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_MODE = MODES[0]
EVEN_MIX = "50/50"


DirectionName = Literal["both", "forward", "reverse"]
"""Which directions send."""


def parse_counts(text: str | None, *, where: str) -> Counts:
    """`1000`, or `1000,1` for left and right."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) > 2 or not all(is_whole(part) for part in parts):
        what = where.removeprefix("--")
        raise RequestError(
            f"{short_repr(text)} is not a number of {what}",
            code="spec.not-a-count",
            where=where,
            next_step="Write one number, or two like 100,1 for left and right.",
        )
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def parse_routes(text: str, *, where: str) -> Counts:
    """`16`, `4k` or `1M`; or two, `16,4k`, for left and right."""
    parts = text.split(",")
    if len(parts) > 2:
        raise RequestError(
            f"{short_repr(text)} is not a number of routes",
            code="spec.not-a-count",
            where=where,
            next_step="Write one number, or two like 16,4k for left and right.",
        )
    numbers = [parse_count(part, where=where) for part in parts]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def parse_mode(text: str, *, where: str) -> Mode:
    """How hosts or networks are chosen."""
    for mode in MODES:
        if text == mode:
            return mode
    near = suggestion(text, MODES)
    raise RequestError(
        f"{text!r} is not a mode",
        code="spec.not-a-mode",
        where=where,
        next_step=f"Did you mean {near}?" if near else f"Use one of: {', '.join(MODES)}.",
    )


def parse_share(text: str, *, where: str) -> tuple[int, int]:
    """`90/10`: of every 100 frames so many are of the first and of the second plan."""
    found = re.fullmatch(r"(\d{1,3})/(\d{1,3})", text.strip(), re.ASCII)
    if found is None:
        raise RequestError(
            f"{text!r} is not a share of two plans",
            code="spec.not-a-share",
            where=where,
            next_step="Write 90/10, 50/50 or 10/90.",
        )
    return int(found[1]), int(found[2])


def read_directions(direction: DirectionName) -> tuple[Direction, ...]:
    """`--direction`."""
    return tuple(each for each in BOTH_DIRECTIONS if direction in ("both", each))


def read_source_ports(text: str, *, where: str) -> UdpRange:
    return parse_ports(text, RFC4814_SOURCE_PORTS, CLASSIC_SOURCE_PORT, where=where)


def read_destination_ports(text: str, *, where: str) -> UdpRange:
    return parse_ports(text, RFC4814_DESTINATION_PORTS, CLASSIC_DESTINATION_PORT, where=where)


COUNTS = Grammar("N|N,M", parse_counts)
ROUTE_COUNTS = Grammar("N|N,M", parse_routes)
MODE = Grammar("MODE", parse_mode)
PlanOption = Annotated[
    str | None,
    Option(
        metavar="NAME|NAME+NAME|FILE",
        help="The address plan, or one plan each of IPv4 and IPv6; see: evenhand plan show;"
        " a plan file with your own addresses: edge.toml; with your own translation prefix:"
        " siit@2001:db8::/40. Default:"
        " the plan that the lab or dut.plan in the testbed file names, otherwise gateway-v4.",
    ),
]
DirectionOption = Annotated[
    DirectionName,
    Option(metavar="|".join(get_args(DirectionName)), help="forward: left to right; reverse: back."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions:
    """How many addresses a plan has."""

    hosts: Annotated[
        str | None,
        Option(
            grammar=COUNTS,
            help="Hosts per side, or left,right. Default: dut.hosts of the testbed file, if there is"
            " one, otherwise the maximum.",
        ),
    ] = None
    networks: Annotated[
        str | None,
        Option(
            grammar=COUNTS,
            metavar="R|R,S",
            help="Networks per side, or left,right, of nets-... plans. Default: dut.networks of the"
            " testbed file, if there is one, otherwise the maximum.",
        ),
    ] = None

    def read(self, name: str, *, where: str = "NAME", takes_mix: bool = False) -> AddressPlan:
        """PlanError or RequestError if there is no such plan. `takes_mix` as of `read_plan`."""
        return read_plan(name, self, {}, where, takes_mix=takes_mix)

    def or_of(self, defaults: rig.PlanDefaults, name: str) -> CountOptions:
        """What was given, and the rest from a testbed whose DUT is set up for this plan, or for a mix of
        which it is a part."""
        topology = find_topology(name)
        title = own_title(name if topology is None else topology.name)
        if not {*title.split("+")} <= {*defaults.plan.split("+")}:
            return self

        def written(counts: SideCounts | None) -> str | None:
            return None if counts is None else counts.written

        return CountOptions(
            hosts=self.hosts or written(defaults.hosts), networks=self.networks or written(defaults.networks)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which hosts frames come from and go to, and their UDP ports."""

    fixed_source: Annotated[
        bool,
        Option(help="Send all frames from the first host of their side: RFC 2544 varies destinations only."),
    ] = False
    fixed_source_network: Annotated[
        bool, Option(help="Send all frames from the first network of their side, from any of its hosts.")
    ] = False
    common_network: Annotated[
        bool,
        Option(help="Use one network number for source and destination: both networks have the same number."),
    ] = False
    routes: Annotated[
        str | None,
        Option(
            grammar=ROUTE_COUNTS,
            help="Use only so many of a plan file's prefixes on each side that has several, or left,right:"
            " 16, 4k (4,000), 1M. The DUT keeps all. Default: all.",
        ),
    ] = None
    source_ports: Annotated[
        str | None,
        Option(
            grammar=Grammar("N-M|N|fixed", read_source_ports),
            help="UDP source ports: a range to draw from, or one port; fixed means 49184 as in RFC"
            " 2544. N-M:increment and N-M:decrement step through the range. Default: 1024-65535; with NAT"
            " 10000-49999.",
        ),
    ] = None
    destination_ports: Annotated[
        str | None,
        Option(
            grammar=Grammar("N-M|N|fixed", read_destination_ports),
            help=(
                "UDP destination ports, written in the same way; fixed means 7 as in RFC 2544."
                " Default: 1-49151; with NAT 1-100."
            ),
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeOptions:
    """How host and network of a frame are chosen."""

    host_mode: Annotated[
        Mode,
        Option(
            grammar=MODE,
            help=(f"How the host of each frame is chosen, for comparison runs: {', '.join(MODES)}."),
        ),
    ] = DEFAULT_MODE
    network_mode: Annotated[
        Mode, Option(grammar=MODE, help="How the network of each frame is chosen, for comparison runs.")
    ] = DEFAULT_MODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """What shapes a plan that has a name."""

    counts: CountOptions
    modes: ModeOptions
    sources: SourceOptions

    def read(self, name: str, *, where: str = "NAME") -> AddressPlan:
        """PlanError or RequestError if there is no such plan."""
        return read_plan(name, self.counts, vars_of(self.modes) | vars_of(self.sources), where)


MixOption = Annotated[
    str | None,
    Option(
        metavar="N/M",
        help="N of every N+M frames belong to the first plan, and M to the second. Default: 50/50.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The address plan, and what shapes it."""

    plan: PlanOption = None
    mix: MixOption = None
    shape: ShapeOptions

    def read(self, testbed: str | None) -> AddressPlan:
        """PlanError or RequestError if there is no such plan.

        Args:
            testbed: As it is named on the command line: it may say which plan, and which addresses of it, are
                meant where none are given.
        """
        defaults = rig.PlanDefaults() if testbed is None else rig.plan_defaults_of(testbed)
        name = self.plan or defaults.plan
        counts = self.shape.counts
        if self.shape.sources.routes is None:  # else the DUT's hosts are more than those of so many routes
            counts = counts.or_of(defaults, name)
        written = vars_of(self.shape.modes) | vars_of(self.shape.sources) | {"mix": self.mix}
        return read_plan(name, counts, written, "--plan", takes_mix=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionOptions:
    """Which directions send."""

    direction: DirectionOption = "both"


(DIRECTION,) = options_of(DirectionOptions)
HOSTS, NETWORKS = options_of(CountOptions)
PLAN = options_of(PlanOptions)[0]
PLAN_OPTIONS: Mapping[str, OptionField] = {
    each.field: each
    for group in (PlanOptions, ModeOptions, SourceOptions)
    for each in options_of(group)
    if each.field != "plan"
}
"""What shapes a plan in addition to its counts, by keyword: `mix`, `host_mode`, `fixed_source`,
`source_ports`, ..."""


_FLAGS = tuple(each.field for each in options_of(SourceOptions) if each.default is False)


def vars_of(group: Any) -> dict[str, Any]:
    """The options of a group by field, as written."""
    return {field.name: getattr(group, field.name) for field in fields(group)}


def build_plan(
    name: str,
    host_counts: Counts = None,
    network_counts: Counts = None,
    written: Mapping[str, Any] | None = None,
) -> AddressPlan:
    """The plan, or the mix of two, that this describes; for whoever has written it: the command line, a
    campaign file, or a run file, which anyone may have made.

    Args:
        name: `gateway-v4`; for a mix, `gateway-v4+gateway-v6`; the path of a plan file, `edge.toml`, or the
            title of one that was read.
        written: Values of PLAN_OPTIONS by keyword, as they are written. Others have their defaults.

    Raises:
        PlanError, RequestError: There is no such plan; names the option as the shell writes it.
    """
    given = {key: value for key, value in (written or {}).items() if value is not None}
    for key, value in given.items():
        option = PLAN_OPTIONS.get(key)
        kind = bool if option is not None and isinstance(option.default, bool) else str
        if option is None or not isinstance(value, kind):
            raise RequestError(
                f"{key}: {value!r} is not an option of a plan", code="spec.unknown-option", where=name
            )
    own = None if find_topology(name) is not None else find_own_plan(name)
    if own is not None:
        values = {key: PLAN_OPTIONS[key].read(value) for key, value in given.items()}
        return shape_own_plan(own, host_counts, network_counts, values)
    return _build(name, host_counts, network_counts, tuple(sorted(given.items())))


def plan_of_document(document: Mapping[str, Any]) -> AddressPlan:
    """The plan whose `AddressPlan.to_document` a run file has, made of the options that it comes from. It may
    be another plan than the document's, if that comes from something else: compare them.

    Raises:
        RequestError: As `build_plan`.
        LookupError, TypeError, ValueError, AttributeError: It is the document of no plan.
    """
    left, right = (document[side]["hosts"] for side in SIDES)
    counts: dict[str, Any] = {
        kind: (left[kind]["count"], right[kind]["count"]) if kind in left else None
        for kind in ("host", "network")
    }
    ports = document["udp_ports"]
    written = {
        "host_mode": left["host"]["mode"],
        "network_mode": left["network"]["mode"] if "network" in left else None,
        "source_ports": UdpRange(**ports["source"]).written,
        "destination_ports": UdpRange(**ports["destination"]).written,
        **{name: document[name] for name in _FLAGS if name in document},
    }
    return build_plan(document["name"], counts["host"], counts["network"], written)


@lru_cache(maxsize=1024)
def _build(
    name: str, host_counts: Counts, network_counts: Counts, written: tuple[tuple[str, Any], ...]
) -> AddressPlan:
    values = {key: PLAN_OPTIONS[key].read(value) for key, value in written}
    mix = values.pop("mix", None)
    if values.pop("routes", None) is not None:
        raise RequestError(
            f"{name} has no list of prefixes",
            code="spec.routes-without-plan-file",
            where="--routes",
            next_step="Use a plan file, or --networks with nets-gateway-v4 or nets-gateway-v6.",
        )
    first, plus, second = name.partition("+")
    if not plus:
        if mix is not None:
            raise RequestError(
                f"a mix of {mix} is given with a single plan",
                code="spec.mix-of-one-plan",
                where="--mix",
                next_step=(f"Name one plan of each IP version: --plan gateway-v4+gateway-v6 --mix {mix}."),
            )
        return make_plan(first, host_counts, networks=network_counts, **values)
    share = parse_share(EVEN_MIX if mix is None else mix, where="--mix")
    of_first, of_second = (
        make_plan(each, host_counts, networks=network_counts, **values) for each in (first, second)
    )
    return mix_versions(of_first, of_second, share)


def read_plan(
    name: str,
    counts: CountOptions,
    written: Mapping[str, Any],
    where: str = "NAME",
    *,
    takes_mix: bool = False,
) -> AddressPlan:
    """The plan of the shell's options; see `build_plan`. Errors without a place are of `where`.

    Args:
        takes_mix: Whether the name may be that of a mix of two plans.
    """
    of_counts = {each.field: each.read(getattr(counts, each.field)) for each in options_of(CountOptions)}
    for key, value in written.items():
        PLAN_OPTIONS[key].read(value)  # errors of the options come before those of the plan
    try:
        if not takes_mix and "+" in name and not is_plan_file(name):
            make_plan(name)  # refuses it
        return build_plan(name, of_counts["hosts"], of_counts["networks"], written)
    except RequestError as error:
        # `plan` is what it is in Python.
        error.where = where if error.where == "plan" else error.where or where
        raise
