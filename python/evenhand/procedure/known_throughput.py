# SPDX-License-Identifier: Apache-2.0
"""Procedure: which throughput that was measured before may serve another procedure as its load: the one place
that decides it, for verbs, campaigns and Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_rate, format_ratio
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.procedure.profile import Profile
from evenhand.search import Outcome, is_outcome_at_least

WITH_LOSS = "procedure.throughput-with-loss"
IS_BOUND = "procedure.throughput-is-bound"


def throughput_to_serve(results: Sequence[Mapping[str, Any]], *, source: str, where: str) -> KnownThroughput:
    """The median of these results of throughput searches, and whether it is a lower bound.

    Args:
        results: As they are in run files and with `--json`.
        source: Where they are, for people.
        where: The option or argument that names it.

    Raises:
        RequestError: None of them found a number, or one was found with a loss ratio above 0: what is lost at
            that load is no throughput (R2544-21).
    """
    found = [
        (float(fps), _is_at_least(result), float((result.get("goal") or {}).get("loss_ratio") or 0.0))
        for result in results
        if (fps := result.get("throughput_fps_per_direction")) is not None
    ]
    if not found:
        raise RequestError(
            f"{source} has no number",
            code="procedure.no-throughput-found",
            where=where,
            next_step="Look at its outcome, or give the load itself.",
        )
    fps = median(each for each, _, _ in found)
    loss_ratio = max(each for _, _, each in found)
    if loss_ratio > 0:
        raise RequestError(
            f"the throughput of {format_rate(fps)} in {source} was found with a loss ratio of"
            f" {format_ratio(loss_ratio)}",
            code="procedure.throughput-with-loss",  # WITH_LOSS
            where=where,
            next_step="Name one that was found without loss, or give the load itself.",
        )
    highest = median(math.inf if is_bound else each for each, is_bound, _ in found)
    return KnownThroughput(fps=fps, source=source, is_at_least=highest != fps)


def check_is_no_bound(fps: float, profile: Profile, *, source: str | None, where: str) -> None:
    """RequestError for a lower bound, unless it is the line rate itself: nothing is higher."""
    if is_bound_here(fps, profile):
        raise RequestError(
            f"the throughput of {format_rate(fps)}{'' if source is None else f' in {source}'} is a lower"
            " bound: how much more the DUT forwards is not known",
            code="procedure.throughput-is-bound",  # IS_BOUND
            where=where,
            next_step="Search the throughput with a higher maximum rate, or with a tester that keeps more.",
        )


def is_bound_here(fps: float, profile: Profile) -> bool:
    """Whether a lower bound is one on these ports, and not their line rate."""
    return profile.theoretical_fps is None or fps < profile.theoretical_fps


def _is_at_least(result: Mapping[str, Any]) -> bool:
    is_at_least = result.get("is_at_least")
    if isinstance(is_at_least, bool):
        return is_at_least
    outcome = result.get("outcome")
    return outcome in set(Outcome) and is_outcome_at_least(Outcome(str(outcome)))
