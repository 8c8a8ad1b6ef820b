# SPDX-License-Identifier: Apache-2.0
"""Station 9: what readers rely on in each JSON column of a run file. `reading.as_mapping` checks it; whoever
reads another key of these documents adds it here, or looks at its type itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = Callable[[Any, str], None]
"""Checks a value that is there; gets the name of its place too. ValueError if it has another shape."""
MOST = 1 << 64
"""No number of a run is so large; with larger ones sums and products of sound numbers are infinite."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < MOST  # neither is what is not finite


def _scalar(matches: Callable[[Any], bool], name: str) -> Shape:
    def check(value: Any, place: str) -> None:
        if not matches(value):
            raise ValueError(f"{place} is {_shown(value)}, but must be {name}")

    return check


text = _scalar(_is_text, "text")
flag = _scalar(_is_flag, "true or false")
whole = _scalar(_is_whole, "a whole number")
number = _scalar(_is_number, "a number")


def list_of(item: Shape, *, may_be_null: bool = False) -> Shape:
    """A list whose items have this shape; none of them is null unless it is allowed."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{place} is {_shown(value)}, but must be a list")
        for index, each in enumerate(value):
            if each is not None or not may_be_null:
                item(each, f"{place}[{index}]")

    return check


def pair_of(first: Shape, second: Shape) -> Shape:
    """A list of two values with these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{place} is {_shown(value)}, but must be a list of two")
        for each, shape in zip(value, (first, second), strict=True):
            shape(each, place)

    return check


def table(**keys: Shape) -> Shape:
    """A table; those of its keys that are there have these shapes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {_shown(value)}, but must be a table")
        for name, shape in keys.items():
            if value.get(name) is not None:
                shape(value[name], f"{place}.{name}")

    return check


def table_of(item: Shape) -> Shape:
    """A table with any keys, whose values have this shape, or are null."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} is {_shown(value)}, but must be a table")
        for name, each in value.items():
            if each is not None:
                item(each, f"{place}.{str(name)[:40]}")

    return check


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


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
    test=text,
    search=text,
    loss_ratio=number,
    max_fps=number,
    min_fps=number,
    known_fps=number,
    rate_fps_per_direction=number,
    throughput_fps_per_direction=number,
    duration_s=number,
    final_duration_s=number,
    tagged_frames=whole,
    is_max_ceiling=flag,
)
_SAMPLES = ("typical", "worst_case", "latency", "pdv", "ipdv_min", "ipdv_median", "ipdv_max")
_FIGURES = table_of(table(**dict.fromkeys(_SAMPLES, table(values=list_of(number, may_be_null=True)))))
_LOSS_POINT = table(share_of_theoretical=number, share_of_maximum=number, loss_ratio=number)
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
    figures=_FIGURES,
    points=list_of(_LOSS_POINT),
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
    "searches.result": _RESULT,
    "searches.setup": _SETUP,
    "testbeds.document": _BEDS,
    "trials.document": table(directions=table_of(_SEEN_DIRECTION), then=table(duration_s=number)),
}
"""By table and column."""
