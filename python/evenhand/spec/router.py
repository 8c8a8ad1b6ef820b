# SPDX-License-Identifier: Apache-2.0
"""Specification: options of the reference router, which `evenhand router` and the table `[reference]` of a
campaign file have (`file.Reference`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATE, Option
from evenhand.base.units import is_whole, parse_duration, parse_rate, parse_ratio, short_repr
from evenhand.rig import (
    DEFAULT_QUEUE_FRAMES,
    DEFECT_KINDS,
    MAX_ROUTER_ELEMENTS,
    Defects,
    NeighborCost,
    ReferenceDut,
    parse_vlans,
)
from evenhand.spec.device import DeviceOptions, elements_option
from evenhand.spec.frames import LargestFrameOption, VlanOption, read_largest_frame

MOST_ENTRY_COST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceOptions(DeviceOptions):
    """The router's elements, their hash, and what else is set."""

    elements: Annotated[int | None, elements_option("none, as fast as possible")] = None
    queue_frames: Annotated[
        int, Option(metavar="N", least=1, help="Number of frames that can wait for an element.")
    ] = DEFAULT_QUEUE_FRAMES
    delay: Annotated[str, Option(grammar=DURATION, help="Delay added to each forwarded frame.")] = "0s"
    delayed_load: Annotated[
        str | None,
        Option(
            grammar=RATE,
            help="The highest load per direction whose frames have room in the delay; more are lost. Default:"
            " what the elements forward, or 100kfps without elements.",
        ),
    ] = None
    neighbor_cost: Annotated[
        str | None,
        Option(
            metavar="N,RATIO",
            help="Beyond N neighbours the cost of a frame rises by RATIO with each doubling: 4096,10%.",
        ),
    ] = None
    defect: Annotated[
        list[str] | None,
        Option(
            metavar="KIND=RATIO", help=f"A deliberate defect: {', '.join(DEFECT_KINDS)}. May be repeated."
        ),
    ] = None
    table_capacity: Annotated[
        int | None,
        Option(
            metavar="N",
            least=1,
            help="Connections that a NAT (plans nat44, nat64, nat66) has room for. Default: 1048576.",
        ),
    ] = None
    entry_cost: Annotated[
        str | None,
        Option(
            metavar="FACTOR",
            help="Cost of a frame that opens a connection, relative to any other frame. Default: 1.",
        ),
    ] = None
    connection_timeout: Annotated[
        str | None,
        Option(grammar=DURATION, help="Time without a frame after which a connection ends. Default: never."),
    ] = None
    largest_frame: LargestFrameOption = None
    vlan: VlanOption = None
    one_armed: Annotated[
        bool,
        Option(
            declared="--one-armed",
            help="One port for both sides, which --vlan tells apart: a router on a stick.",
        ),
    ] = False

    def _nat_options(self) -> dict[str, Any]:
        """Options by the keys of the router's configuration."""
        found: dict[str, Any] = {}
        if self.table_capacity is not None:
            found["capacity"] = self.table_capacity
        if self.entry_cost is not None:
            found["entry_cost"] = _factor(self.entry_cost, where="--entry-cost")
        if self.connection_timeout is not None:
            found["timeout_s"] = parse_duration(self.connection_timeout, where="--connection-timeout")
        return found

    def dut(self) -> ReferenceDut:
        """The DUT. RequestError names the option."""
        if (self.elements is None) != (self.rate is None):
            raise RequestError(
                "elements and rate must be given together",
                code="spec.only-together",
                where="--elements, --rate",
                next_step="Give both, or neither.",
            )
        model = None
        if self.elements is None:
            _refuse_idle(self)
        else:
            if not 1 <= self.elements <= MAX_ROUTER_ELEMENTS:
                raise RequestError(
                    f"{self.elements} elements",
                    code="spec.out-of-range",
                    where="--elements",
                    next_step=f"Write 1 to {MAX_ROUTER_ELEMENTS}.",
                )
            model = self.read(self.elements, default=self.elements, ip_versions=frozenset({4, 6}))
            model = replace(model, queue_frames=self.queue_frames)
        return ReferenceDut(
            model=model,
            extra_delay_us=parse_duration(self.delay, where="--delay") * 1e6,
            delayed_load_fps=None
            if self.delayed_load is None
            else parse_rate(self.delayed_load, where="--delayed-load"),
            neighbor_cost=None if self.neighbor_cost is None else read_neighbor_cost(self.neighbor_cost),
            defects=Defects(ratios=dict(map(read_defect, self.defect))) if self.defect else None,
            nat_options=self._nat_options(),
            largest_frame_size=read_largest_frame(self.largest_frame),
            vlans={} if self.vlan is None else parse_vlans(self.vlan, where="--vlan"),
            one_armed=self.one_armed,
        )


def _refuse_idle(device: DeviceOptions) -> None:
    """RequestError for options that say how an element is chosen, where there are none."""
    for option, is_given in (
        ("--hash", device.hash_type is not None),
        ("--symmetric", device.symmetric),
        ("--key", device.key is not None),
        ("--table-size", device.table_size is not None),
        ("--table", device.table is not None),
    ):
        if is_given:
            raise RequestError(
                "without elements there is no hash",
                code="spec.elements-needed",
                where=option,
                next_step="Add --elements and --rate, or omit it.",
            )


def _factor(text: str, *, where: str) -> float:
    """RequestError unless it is a number above 0."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= MOST_ENTRY_COST:
        raise RequestError(
            f"{text!r} is not a factor",
            code="spec.out-of-range",
            where=where,
            next_step="Write a number above 0, such as 2.5.",
        )
    return factor


def read_neighbor_cost(text: str) -> NeighborCost:
    """`4096,10%`."""
    entries, comma, growth = text.partition(",")
    if not comma or not is_whole(entries) or int(entries) < 1:
        raise RequestError(
            f"{short_repr(text)} is not a cost of neighbours",
            code="spec.not-a-neighbor-cost",
            where="--neighbor-cost",
            next_step="Write 4096,10%.",
        )
    return NeighborCost(free_entries=int(entries), growth=parse_ratio(growth, where="--neighbor-cost"))


def read_defect(text: str) -> tuple[str, float]:
    """`loss=0.1%`."""
    kind, equals, ratio = text.partition("=")
    if not equals or kind not in DEFECT_KINDS:
        raise RequestError(
            f"{text!r} is not a defect",
            code="spec.not-a-defect",
            where="--defect",
            next_step=f"Write KIND=RATIO; kinds: {', '.join(DEFECT_KINDS)}.",
        )
    return kind, parse_ratio(ratio, where="--defect")
