# SPDX-License-Identifier: Apache-2.0
"""Procedure: latency (RFC 8219, 7.2; RFC 2544, 26.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from evenhand.base.option import Option
from evenhand.procedure.delay import DelayOptions, delay_goal, delay_procedure, median_us
from evenhand.procedure.descriptor import Figure, KnownThroughput
from evenhand.procedure.limits import Retries
from evenhand.results.delay import DelayGoal, DelayTest


class LatencyProfile(StrEnum):
    """Whose latency test."""

    RFC8219 = "rfc8219"
    RFC2544 = "rfc2544"


TESTS = {LatencyProfile.RFC8219: DelayTest.LATENCY, LatencyProfile.RFC2544: DelayTest.LATENCY_RFC2544}


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions(DelayOptions):
    """Load, duration, number of repetitions, and the RFC that the test follows."""

    profile: Annotated[
        LatencyProfile,
        Option(help="rfc8219: median and 99.9th percentile of 500 tagged frames; rfc2544: one frame."),
    ] = LatencyProfile.RFC8219
    tagged: Annotated[
        int | None,
        Option(
            sets="tagged_frames",
            metavar="N",
            least=0,
            help="Number of tagged frames in a trial. Default: as in the RFC.",
        ),
    ] = None


def _goal(options: LatencyOptions, retries: Retries, known: KnownThroughput | None) -> DelayGoal:
    return delay_goal(TESTS[options.profile], options, retries, known)


LATENCY = delay_procedure(
    name="latency",
    verb="latency",
    help="""Measure latency at the throughput (RFC 8219 section 7.2, or RFC 2544 section 26.2), with twenty
    repetitions.

    Latency lasts from building a frame to receiving it, and includes what the tester itself adds.""",
    example="evenhand latency lab.toml --after throughput.evenhand --run latency.evenhand",
    options=LatencyOptions,
    make_goal=_goal,
    figure=Figure(name="typical latency", unit="us", is_higher_better=False),
    value_of=median_us("typical", "latency"),  # of RFC 8219, and of RFC 2544
)


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


def _goal_of_pdv(options: DelayOptions, retries: Retries, known: KnownThroughput | None) -> DelayGoal:
    return delay_goal(DelayTest.PDV, options, retries, known)


def _goal_of_ipdv(options: DelayOptions, retries: Retries, known: KnownThroughput | None) -> DelayGoal:
    return delay_goal(DelayTest.PDV, options, retries, known, has_variation=True)


PDV = delay_procedure(
    name="pdv",
    verb="pdv",
    help="Measure packet delay variation at the throughput over every frame (RFC 8219 section 7.3), with"
    " twenty repetitions.",
    example="evenhand pdv lab.toml --after throughput.evenhand --ipdv",
    options=PdvOptions,
    make_goal=_goal_of_pdv,
    figure=Figure(name="PDV", unit="us", is_higher_better=False),
    value_of=median_us("pdv"),
)
IPDV = replace(
    PDV,
    name="ipdv",
    verb=None,
    help="Measure the delay variation between consecutive frames (RFC 8219 section 7.3.2).",
    options=DelayOptions,
    make_goal=_goal_of_ipdv,
    figure=Figure(name="largest IPDV", unit="us", is_higher_better=False),
    value_of=median_us("ipdv_max"),
)
