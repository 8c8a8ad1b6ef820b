# SPDX-License-Identifier: Apache-2.0
"""First a single address pair, then many (SEED-02): the options of `evenhand throughput` for it, and an
earlier run that has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.folders import without_folders
from evenhand.cli.conditions import Given
from evenhand.plan import (
    AddressPlan,
    Direction,
    FrameSize,
    describe_mix,
    describe_size,
    plan_title,
    whole_octets,
)
from evenhand.procedure import OnePair, says_something
from evenhand.procedure.descriptor import WITH_LOSS, KnownThroughput, throughput_to_serve
from evenhand.procedure.registry import THROUGHPUT
from evenhand.rig import Setup
from evenhand.run import StoredSearch, read_run
from evenhand.run.snapshot import not_a_run
from evenhand.search import Outcome


def throughput_searches(path: Path) -> list[StoredSearch]:
    """Those that have ended. RequestError, HostError as `read_run`; RequestError if one lacks what every
    search has."""
    searches = [
        search
        for search in read_run(path).searches
        if search.kind == THROUGHPUT.name and search.result is not None
    ]
    for search in searches:
        try:
            _check(search)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise not_a_run(path, f"the search {search.name!r} lacks {error}") from error
    return searches


def _check(search: StoredSearch) -> None:
    setup, result = search.setup, search.result or {}
    _of_type(
        str,
        search.plan["name"],
        *(setup["testbed"][side]["device"] for side in ("left", "right")),
        *setup["directions"],
    )
    _of_type(float, search.goal["loss_ratio"])
    _of_type(float | None, result["throughput_fps_per_direction"], result["upper_fps_per_direction"])
    if search.outcome is not None and search.outcome != "stopped":
        Outcome(search.outcome)
    mix = setup.get("mix")
    if mix is not None:
        _of_type(str | None, mix["imix"])
        if mix["versions"] is not None:
            _of_type(str, *mix["versions"]["plans"])
            _of_type(float, *mix["versions"]["share"])
    macs = setup.get("traffic", {}).get("macs")
    if macs is not None:
        _of_type(str | None, *(of["dut"] for of in macs.values()))


def _of_type(kind: Any, *values: object) -> None:
    """Whole numbers are numbers too."""
    for value in values:
        if not isinstance(
            float(value) if isinstance(value, int) and not isinstance(value, bool) else value, kind
        ):
            raise ValueError(f"the value {value!r} is not valid")


def read_throughput(path: Path, setup: Setup, given: Given, *, frame_size: FrameSize) -> KnownThroughput:
    """The throughput of the last search in that run which was made under these conditions.

    Raises:
        RequestError, HostError: It cannot be read, or has no such search.
    """
    plan = given.plan
    wanted = (
        devices_of(without_folders(setup.to_document())),
        plan.to_contract(),
        whole_octets(frame_size),
        describe_mix(plan, frame_size),
        sorted(given.conditions["directions"]),
    )
    outcomes = [
        str(outcome) for outcome in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.TESTER_CEILING)
    ]
    found: StoredSearch | None = None
    for search in throughput_searches(path):
        conditions = (
            devices_of(search.setup),
            search.plan,
            search.frame_size,
            search.setup.get("mix"),
            sorted(search.setup.get("directions", [])),
        )
        has_number = search.result is not None and search.result["throughput_fps_per_direction"] is not None
        if (
            search.kind == THROUGHPUT.name
            and has_number
            and search.outcome in outcomes
            and conditions == wanted
        ):
            found = search
    if found is None or found.result is None:
        raise RequestError(
            f"this run has no throughput for these ports, {plan.title} with the same"
            f" addresses, {describe_size(frame_size)} and the same directions",
            code="cli.no-throughput",
            where=f"--after {path}",
            next_step=f"Measure it first: evenhand throughput {setup.name} --plan {plan.title} --run FILE.",
        )
    try:
        return throughput_to_serve(
            [{**found.result, "goal": found.goal}], source=path.name, where=f"--after {path}"
        )
    except RequestError as error:
        if error.code == WITH_LOSS:
            error.code = "cli.throughput-with-loss"
            error.next_step = "Name a run that was made without --loss-ratio, or give the load with --rate."
        raise


def devices_of(setup: dict[str, Any]) -> list[str]:
    """Devices of a stored set-up: a testbed is recognised by its two ports."""
    return [setup["testbed"][side]["device"] for side in ("left", "right")]


_PANEL = "First a single address pair (draft, section 2.1)"
OnePairFirstOption = Annotated[
    bool,
    typer.Option(
        "--one-pair-first",
        help="First search with one address pair and the same goal, and store both; the ratio is shown"
        " with the result.",
        rich_help_panel=_PANEL,
    ),
]
AfterOption = Annotated[
    Path | None,
    typer.Option(
        "--after",
        metavar="RUN",
        help="A run file with an earlier search with one address pair, on the same testbed and DUT.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePairOptions:
    """What is known, or found first, with one address pair."""

    one_pair_first: OnePairFirstOption = False
    after: AfterOption = None

    def check(self, plan: AddressPlan) -> None:
        """RequestError for both at once, and for a plan that is one address pair itself."""
        if self.one_pair_first and self.after is not None:
            raise RequestError(
                "both a search to make and an existing search are given",
                code="cli.options-exclude-each-other",
                where="--one-pair-first, --after",
                next_step="Give one.",
            )
        if (self.one_pair_first or self.after is not None) and all(
            plan.pairs_of(direction) == 1 for direction in ("forward", "reverse")
        ):
            raise RequestError(
                "this search itself uses a single address pair",
                code="cli.already-one-pair",
                where="--one-pair-first" if self.one_pair_first else "--after",
                next_step="Leave it out.",
            )

    def read(self, setup: Setup, given: Given, frame_size: FrameSize, goal: Any) -> OnePair | None:
        """What `--after` names; None without it. Errors as in `read_one_pair`."""
        if self.after is None:
            return None
        return read_one_pair(
            self.after,
            setup,
            given.plan,
            frame_size=frame_size,
            directions=given.conditions["directions"],
            loss_ratio=goal.loss_ratio,
        )


def read_one_pair(
    path: Path,
    setup: Setup,
    plan: AddressPlan,
    *,
    frame_size: FrameSize,
    directions: tuple[Direction, ...],
    loss_ratio: float,
) -> OnePair:
    """The last search with one address pair in that run which fits this one. The DUT is compared later, when
    it has answered.

    Raises:
        RequestError, HostError: It cannot be read; it has no such search; or what is compared differs: ports,
            plan, frame size, directions, loss ratio.
    """
    searches = [search for search in throughput_searches(path) if _is_result_with_one_pair(search)]
    if not searches:
        raise RequestError(
            "this run has no finished search with a single address pair",
            code="cli.no-one-pair-search",
            where=f"--after {path}",
            next_step="Use --one-pair-first, or make one with --hosts 1 (and --networks 1 if the plan has"
            " networks).",
        )
    wanted = {
        "ports": devices_of(without_folders(setup.to_document())),
        "plan": plan_title(plan.name),
        "frame size": whole_octets(frame_size),
        "mix": describe_mix(plan, frame_size),
        "directions": sorted(directions),
        "loss ratio": loss_ratio,
    }
    for search in reversed(searches):
        differing = [key for key, value in _compared(search).items() if value != wanted[key]]
        if not differing:
            assert search.result is not None
            return OnePair(
                outcome=Outcome(search.result["outcome"]),
                throughput_fps=search.result["throughput_fps_per_direction"],
                upper_fps=search.result["upper_fps_per_direction"],
                loss_ratio=search.goal["loss_ratio"],
                seed=search.seed,
                dut_macs={side: of["dut"] for side, of in search.setup["traffic"]["macs"].items()},
                source=f"in {path.name}",
            )
    found = _compared(searches[-1])
    shown = "; ".join(
        f"{key} {_show(found[key])} there, {_show(wanted[key])} here"
        for key in wanted
        if found[key] != wanted[key]
    )
    raise RequestError(
        f"the search with a single address pair was made under different conditions: {shown}",
        code="cli.different-conditions",
        where=f"--after {path}",
        next_step="Name a run of the same testbed, or use --one-pair-first.",
    )


def _is_result_with_one_pair(search: StoredSearch) -> bool:
    traffic = search.setup.get("traffic") or {}
    is_result = (
        search.kind == THROUGHPUT.name
        and search.result is not None
        and says_something(search.outcome, search.result["throughput_fps_per_direction"])
    )
    return is_result and bool(traffic.get("is_one_pair")) and traffic.get("macs") is not None


def _compared(search: StoredSearch) -> dict[str, Any]:
    return {
        "ports": devices_of(search.setup),
        "plan": plan_title(search.plan["name"]),
        "frame size": search.frame_size,
        "mix": search.setup.get("mix"),
        "directions": sorted(search.setup["directions"]),
        "loss ratio": search.goal["loss_ratio"],
    }


def _show(value: Any) -> str:
    if isinstance(value, dict):  # a mix
        return " of ".join(text for text in (_share(value["versions"]), value["imix"]) if text)
    return (
        " and ".join(map(str, value)) if isinstance(value, list) else str("none" if value is None else value)
    )


def _share(versions: dict[str, Any] | None) -> str:
    return (
        ""
        if versions is None
        else f"{' + '.join(map(plan_title, versions['plans']))} {'/'.join(map(str, versions['share']))}"
    )
