# SPDX-License-Identifier: Apache-2.0
"""Station 9: what readers rely on in each JSON column of a run file. `reading.as_mapping` checks it; whoever
reads another key of these documents adds it here, or looks at its type itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from evenhand.base.validation.document import check_scalar, shown

Shape: TypeAlias = Callable[[Any, str], None]
"""Checks a value that is there; gets the name of its place too. ValueError if it has another shape."""
text, flag, whole, number = (partial(check_scalar, kind) for kind in (str, bool, int, float))


def list_of(item: Shape) -> Shape:
    """A list whose items have this shape; none of them is null."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{place} is {shown(value)}, but must be a list")
        for index, each in enumerate(value):
            item(each, f"{place}[{index}]")

    return check


def pair_of(first: Shape, second: Shape) -> Shape:
    """A list of two values with these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{place} is {shown(value)}, but must be a list of two")
        for each, shape in zip(value, (first, second), strict=True):
            shape(each, place)

    return check


def table(**keys: Shape) -> Shape:
    """A table; those of its keys that are there have these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {shown(value)}, but must be a table")
        for name, shape in keys.items():
            if value.get(name) is not None:
                shape(value[name], f"{place}.{name}")

    return check


def table_of(item: Shape) -> Shape:
    """A table with any keys, whose values have this shape, or are null."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {shown(value)}, but must be a table")
        for name, each in value.items():
            if each is not None:
                item(each, f"{place}.{str(name)[:40]}")

    return check


_ENDS = table_of(table(source=table(), destination=table()))
_TRAFFIC = table(
    directions=_ENDS,
    udp_ports=table_of(table()),
    gateways=table(),
    dut_routes=table_of(table()),
    macs=table(),
)
_MIX = table(imix=text, versions=table(plans=list_of(text), share=list_of(whole)))
_BED = table(dut=table(facts=table()), left=table(), right=table(), tester=table(), limits=table())
_INSIDE = table(facts=table(interfaces=table_of(table())))
_SETUP = table(
    name=text,
    directions=list_of(text),
    mix=_MIX,
    testbed=_BED,
    dut=table(config=table(elements=table(), neighbors=table())),
    inside_dut=_INSIDE,
    opened=table(
        left=table(line_rate_bps=number, driver=text), right=table(line_rate_bps=number, driver=text)
    ),
    traffic=_TRAFFIC,
    waits=table_of(number),
)
_BEDS = table(
    tester=table(), dut=table(), own_dut=table(configured=table()), testbed=_BED, inside_dut=_INSIDE
)
_GOAL = table(
    search=text,
    loss_ratio=number,
    max_fps=number,
    min_fps=number,
    known_fps=number,
    rate_fps_per_direction=number,
    throughput_fps_per_direction=number,
    duration_s=number,
    final_duration_s=number,
    is_max_ceiling=flag,
)
_TIME_LEFT_OUT = table(
    **dict.fromkeys(("share", "sent_s", "left_out_s", "most_share"), number),
    **dict.fromkeys(("valid_trials", "judged_trials", "cut_trials"), whole),
)
_RESULT = table(
    outcome=text,
    goal=_GOAL,
    goals=list_of(
        table(
            is_regular=flag, loss_ratio=number, lower_fps_per_direction=number, upper_fps_per_direction=number
        )
    ),
    is_at_least=flag,
    deviations=list_of(table(requirement=text, text=text)),
    rows=list_of(table()),
    verdicts=table_of(whole),
    loss_by_direction=table_of(table()),
    line_rate_bps=number,
    theoretical_fps_per_direction=number,
    throughput_fps_per_direction=number,
    upper_fps_per_direction=number,
    highest_passed_fps_per_direction=number,
    sustainable_fps_per_direction=number,
    time_left_out=_TIME_LEFT_OUT,
)
_PUBLISHED = table(
    **{"rises-up-to": whole, "falls-above": whole},
    name=text,
    plan=text,
    dut=table(system=text),
    tester=table(),
)
_SEEN_DIRECTION = table(latency=table(buckets=list_of(pair_of(number, whole))))

SHAPES: Mapping[str, Shape] = {
    "campaign.spec": table(published=list_of(_PUBLISHED)),
    "points.document": table(goal=_GOAL),
    "repetitions.result": _RESULT,
    "searches.goal": _GOAL,
    "searches.plan": table(udp_ports=table_of(table(mode=text))),
    "searches.result": _RESULT,
    "searches.setup": _SETUP,
    "testbeds.document": _BEDS,
    "trials.document": table(directions=table_of(_SEEN_DIRECTION), then=table(duration_s=number)),
}
"""By table and column."""
