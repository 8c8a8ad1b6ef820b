# SPDX-License-Identifier: Apache-2.0
"""Procedure: options that choose a search and its goals, and the goal that they make (RFC 2544, ETSI TST009,
RFC 9971)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from evenhand.base.errors import RequestError, suggestion
from evenhand.base.option import Option
from evenhand.base.units import parse_duration, parse_rate, parse_ratio
from evenhand.search import Goal, MlrGoal, MlrGoals, ThroughputGoal, Tst009Goal, whole_load

SearchKind = Literal["binary", "tst009", "mlr"]
AUTO = "auto"
DEFAULT_GOALS = ("NDR", "PDR")
_PANEL = "Search"
_KEYS = ("exceed", "final", "initial", "sum", "width")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Which search, and for what."""

    search_kind: Annotated[
        SearchKind,
        Option(
            declared="--search",
            help="binary: RFC 2544. tst009: the same, but a trial with loss is verified by a second"
            " one. mlr: RFC 9971, several goals at once.",
            panel=_PANEL,
        ),
    ] = "binary"
    goals: Annotated[
        list[str] | None,
        Option(
            declared="--goal",
            metavar="NAME[=LOSS][,KEY=VALUE...]",
            help="A goal of --search mlr; may be repeated: NDR, PDR=0.5%, RFC2544, TST009. Keys:"
            " exceed, final, initial, sum, width. Default: NDR and PDR.",
            panel=_PANEL,
        ),
    ] = None
    start: Annotated[
        str | None,
        Option(
            sets="known_fps",
            metavar="auto|RATE",
            help="Start binary and tst009 at a rate that is already known, or (auto) at the rate that the"
            " loss at the maximum suggests. Both bounds are verified in either case.",
            panel=_PANEL,
        ),
    ] = None
    no_early_stop: Annotated[
        bool,
        Option(
            help="Run every trial to its end. By default binary and tst009 stop a trial once it has"
            " lost more than the whole trial may lose.",
            panel=_PANEL,
        ),
    ] = False

    def choose(self, goal: ThroughputGoal) -> Goal:
        """See `choose_search`."""
        return choose_search(
            replace(goal, stops_early=not self.no_early_stop), self.search_kind, self.goals, self.start
        )


def choose_search(
    goal: ThroughputGoal, search: SearchKind, goals: Sequence[str] | None, start: str | None
) -> Goal:
    """The goal for `--search`, from that of the binary search with all other options in it.

    RequestError names the option; also where options do not go together.
    """
    if search != "mlr" and goals:
        raise RequestError(
            f"{search} has only one goal",
            code="procedure.one-goal-only",
            where="--goal",
            next_step="Use --search mlr, or --loss-ratio instead of --goal.",
        )
    if search == "mlr":
        return _mlr_goals(goal, goals or DEFAULT_GOALS, start)
    attributes: dict[str, Any] = {field.name: getattr(goal, field.name) for field in fields(goal)}
    if start is not None:
        attributes |= {"is_guided": True, "known_fps": None if start == AUTO else _known_rate(start, goal)}
    if search == "binary":
        return ThroughputGoal(**attributes)
    return Tst009Goal(
        **attributes
        | {"loss_verifications": goal.loss_verifications or Tst009Goal(max_fps=1).loss_verifications}
    )


def start_at(goal: Any, known_fps: float | None) -> Any:
    """The goal of `--start auto` without a maximum of the user's, which begins at this load instead of at
    the highest that the tester keeps; any other goal as it is.

    Args:
        known_fps: About what the DUT forwards, per direction; None: not known.
    """
    is_open = isinstance(goal, ThroughputGoal) and goal.is_guided and goal.known_fps is None
    if known_fps is None or not is_open or not math.isinf(goal.max_fps):
        return goal
    return replace(goal, known_fps=whole_load(known_fps))


def _known_rate(text: str, goal: ThroughputGoal) -> float:
    known_fps = parse_rate(text, where="--start")
    if known_fps > goal.max_fps:
        raise RequestError(
            f"{text!r} is above the maximum rate",
            code="procedure.above-maximum-rate",
            where="--start",
            next_step="Use a lower rate, or auto.",
        )
    return known_fps


def _mlr_goals(goal: ThroughputGoal, texts: Sequence[str], start: str | None) -> MlrGoals:
    for is_given, option, instead in (
        (goal.loss_ratio > 0, "--loss-ratio", "--goal PDR=0.5%"),
        (goal.loss_verifications > 0, "--loss-verification", "exceed in --goal, such as NDR,exceed=0.5"),
        (
            start is not None,
            "--start",
            "no --start: mlr begins at the load that the forwarding rate suggests",
        ),
    ):
        if is_given:
            raise RequestError(
                "mlr does not have this option",
                code="procedure.not-an-option-of-mlr",
                where=option,
                next_step=f"Use {instead}.",
            )
    return MlrGoals(
        goals=tuple(parse_goal(text, goal) for text in texts),
        max_fps=goal.max_fps,
        min_fps=goal.min_fps,
        invalid_retries=goal.invalid_retries,
        patience=goal.patience,
    )


def parse_goal(text: str, defaults: ThroughputGoal) -> MlrGoal:
    """`NDR`, `PDR=0.5%`, `PDR=1%,exceed=0.2,final=30s,sum=60s,width=1%,initial=1s`.

    What is not named comes from the other options: final and initial durations, and the precision as width.
    The sum is twice the final duration, so that with an exceed ratio of a half one full-length trial of two
    may lose too much, as in TST009; RFC2544 allows none.
    """
    head, *parts = [part.strip() for part in text.split(",")]
    name, _, loss = (part.strip() for part in head.partition("="))
    known = {"NDR": 0.0, "PDR": 0.005, "RFC2544": 0.0, "TST009": 0.0}
    upper = name.upper()
    if upper not in known:
        near = suggestion(upper, known)
        raise RequestError(
            f"{name!r} is not a goal",
            code="procedure.unknown-goal",
            where="--goal",
            next_step=f"Did you mean {near}?" if near else f"Use one of: {', '.join(known)}.",
        )
    if loss and upper not in ("NDR", "PDR"):
        raise RequestError(
            f"{upper} allows no loss, so it takes no ratio",
            code="procedure.goal-without-ratio",
            where="--goal",
            next_step=f"Use {upper}, or PDR={loss}.",
        )
    loss_ratio = parse_ratio(loss, where="--goal") if loss else known[upper]
    if (upper == "NDR") != (loss_ratio == 0) and upper in ("NDR", "PDR"):
        what = (
            "a no-drop rate: its loss ratio is 0"
            if upper == "NDR"
            else "a partial drop rate: its loss ratio is greater than 0"
        )
        raise RequestError(
            f"{head!r}: {upper} is {what}",
            code="procedure.goal-with-wrong-ratio",
            where="--goal",
            next_step="Use NDR, or PDR=0.5%.",
        )
    values = _values_of(parts, text)
    final_s = (
        parse_duration(values["final"], where="--goal") if "final" in values else defaults.final_duration_s
    )
    strict = upper == "RFC2544"
    goal = MlrGoal(
        name=head if loss and upper == "PDR" else upper,
        loss_ratio=loss_ratio,
        final_duration_s=final_s,
        exceed_ratio=0.0 if strict else 0.5,
        duration_sum_s=final_s if strict else 2 * final_s,
        initial_duration_s=min(final_s, defaults.duration_s) if "final" in values else defaults.duration_s,
        width=defaults.precision,
    )
    given: dict[str, float] = {}
    if "exceed" in values:
        given["exceed_ratio"] = _exceed_ratio(values["exceed"])
    if "width" in values:
        given["width"] = parse_ratio(values["width"], where="--goal")
    for key, attribute in (("sum", "duration_sum_s"), ("initial", "initial_duration_s")):
        if key in values:
            given[attribute] = parse_duration(values[key], where="--goal")
    return replace(goal, **given) if given else goal  # type: ignore[arg-type]


def _values_of(parts: Sequence[str], text: str) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for part in parts:
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in _KEYS or not value or key in values:
            near = suggestion(key, _KEYS)
            problem = (
                "is given twice"
                if key in values
                else "has no value"
                if key in _KEYS
                else "is not a key of a goal"
            )
            hint = (
                f"Did you mean {near}?"
                if near and key not in _KEYS
                else "Write PDR=0.5%,exceed=0.5,final=60s,initial=1s,sum=120s,width=0.5%."
            )
            raise RequestError(
                f"{key!r} in {text!r} {problem}", code="procedure.goal-value", where="--goal", next_step=hint
            )
        values[key] = value
    return values


def _exceed_ratio(text: str) -> float:
    try:
        return parse_ratio(text, where="--goal")
    except RequestError as error:
        raise RequestError(
            f"exceed ratio {error.what}",
            code=error.code,
            where="--goal",
            next_step="Use exceed=0.5 as RFC 9971 recommends, or exceed=0 to tolerate no trial with loss.",
        ) from error
