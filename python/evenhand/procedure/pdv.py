# SPDX-License-Identifier: Apache-2.0
"""Procedure: packet delay variation (RFC 8219, 7.3.1), and that between consecutive frames (7.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.option import Option
from evenhand.procedure.delay_goal import DelayGoal, DelayTest
from evenhand.procedure.delay_options import DelayOptions, delay_goal, delay_procedure, median_us
from evenhand.procedure.descriptor import Figure, KnownThroughput
from evenhand.procedure.limits import Retries


@dataclass(frozen=True, slots=True, kw_only=True)
class PdvOptions(DelayOptions):
    """Load, duration, number of repetitions, and whether consecutive frames are compared too."""

    ipdv: Annotated[
        bool,
        Option(
            sets="has_variation",
            help="Also report the differences of consecutive frames (RFC 8219, 7.3.2).",
            is_for_shell_only=True,
        ),
    ] = False


def _goal(options: DelayOptions, retries: Retries, known: KnownThroughput | None) -> DelayGoal:
    return delay_goal(DelayTest.PDV, options, retries, known)


def _goal_of_ipdv(options: DelayOptions, retries: Retries, known: KnownThroughput | None) -> DelayGoal:
    return delay_goal(DelayTest.PDV, options, retries, known, has_variation=True)


def _value(result: Mapping[str, Any]) -> float | None:
    return median_us(result, ("pdv",))


def _value_of_ipdv(result: Mapping[str, Any]) -> float | None:
    return median_us(result, ("ipdv_max",))


PDV = delay_procedure(
    name="pdv",
    verb="pdv",
    help="Measure packet delay variation at the throughput over every frame (RFC 8219 section 7.3), with"
    " twenty repetitions.",
    example="evenhand pdv lab.toml --after throughput.evenhand --ipdv",
    options=PdvOptions,
    make_goal=_goal,
    figure=Figure(name="PDV", unit="us", is_higher_better=False),
    value_of=_value,
)
IPDV = replace(
    PDV,
    name="ipdv",
    verb=None,
    help="Measure the delay variation between consecutive frames (RFC 8219 section 7.3.2).",
    options=DelayOptions,
    make_goal=_goal_of_ipdv,
    figure=Figure(name="largest IPDV", unit="us", is_higher_better=False),
    value_of=_value_of_ipdv,
)
