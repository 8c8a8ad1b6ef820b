# SPDX-License-Identifier: Apache-2.0
"""`--after`: a throughput that another run has, as the load of a procedure, or as the result with a single
address pair that comes first (SEED-02)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.folders import without_folders
from evenhand.cli.conditions import Given
from evenhand.plan import AddressPlan, FrameSize, describe_mix, describe_size, plan_title, whole_octets
from evenhand.procedure import OnePair, says_something
from evenhand.procedure.descriptor import WITH_LOSS, KnownThroughput, throughput_to_serve
from evenhand.procedure.registry import THROUGHPUT
from evenhand.results.throughput import ThroughputFound
from evenhand.rig import Setup
from evenhand.run import StoredSearch, read_run
from evenhand.run.snapshot import not_a_run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conditions:
    """What the other run must have in common with this one, in the order in which it is said."""

    ports: list[str]
    """Devices of the tester: a testbed is recognised by them."""
    plan: str
    frame_size: int
    mix: dict[str, Any] | None
    directions: list[str]
    loss_ratio: float

    def unlike(self, here: _Conditions) -> list[str]:
        """`frame size 64 there, 128 here`."""
        pairs = ((name, getattr(self, name), getattr(here, name)) for name in self.__slots__)
        return [
            f"{name.replace('_', ' ')} {_show(there)} there, {_show(own)} here"
            for name, there, own in pairs
            if there != own
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A throughput search of another run that has ended."""

    conditions: _Conditions
    plan: dict[str, Any]
    found: ThroughputFound
    one_pair: OnePair | None
    """None: it is none, or no result of the DUT."""


def _read(path: Path) -> list[_Earlier]:
    """RequestError, HostError as `read_run`; RequestError if a search lacks what every search has."""
    found = []
    for search in read_run(path).searches:
        if search.kind == THROUGHPUT.name and search.result is not None:
            try:
                found.append(_earlier(search, source=f"in {path.name}"))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise not_a_run(path, f"the search {search.name!r} lacks {error}") from error
    return found


def _earlier(search: StoredSearch, *, source: str) -> _Earlier:
    setup, traffic = search.setup, search.setup.get("traffic") or {}
    found: ThroughputFound = THROUGHPUT.read({**(search.result or {}), "goal": search.goal})
    is_one_pair = traffic.get("is_one_pair") and traffic.get("macs") is not None
    return _Earlier(
        conditions=_Conditions(
            ports=_ports(setup),
            plan=plan_title(search.plan["name"]),
            frame_size=search.frame_size,
            mix=setup.get("mix"),
            directions=sorted(setup["directions"]),
            loss_ratio=float(search.goal["loss_ratio"]),
        ),
        plan=search.plan,
        found=found,
        one_pair=OnePair.stored(found, setup, search.seed, source=source) if is_one_pair else None,
    )


def _here(setup: Setup, given: Given, frame_size: FrameSize, loss_ratio: float) -> _Conditions:
    return _Conditions(
        ports=_ports(without_folders(setup.to_document())),
        plan=plan_title(given.plan.name),
        frame_size=whole_octets(frame_size),
        mix=describe_mix(given.plan, frame_size),
        directions=sorted(given.directions),
        loss_ratio=loss_ratio,
    )


def _ports(setup: dict[str, Any]) -> list[str]:
    return [setup["testbed"][side]["device"] for side in ("left", "right")]


def read_throughput(path: Path, setup: Setup, given: Given, *, frame_size: FrameSize) -> KnownThroughput:
    """The throughput of the last search in that run which was made under these conditions.

    Raises:
        RequestError, HostError: It cannot be read, or has no such search.
    """
    plan, here = given.plan, _here(setup, given, frame_size, 0.0)
    found = [
        each.found
        for each in _read(path)
        if each.found.throughput_fps is not None
        and says_something(each.found.outcome, each.found.throughput_fps)
        and each.plan == plan.to_contract()
        and replace(each.conditions, plan=here.plan, loss_ratio=0.0) == here
    ]
    if not found:
        raise RequestError(
            f"this run has no throughput for these ports, {plan.title} with the same"
            f" addresses, {describe_size(frame_size)} and the same directions",
            code="cli.no-throughput",
            where=f"--after {path}",
            next_step=f"Measure it first: evenhand throughput {setup.name} --plan {plan.title} --run FILE.",
        )
    try:
        return throughput_to_serve(found[-1:], source=path.name, where=f"--after {path}")
    except RequestError as error:
        if error.code == WITH_LOSS:
            error.code = "cli.throughput-with-loss"
            error.next_step = "Name a run that was made without --loss-ratio, or give the load with --rate."
        raise


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
        """In the run that `--after` names, the last search with one address pair that fits this one; None
        without it. The DUT is compared later, when it has answered.

        Raises:
            RequestError, HostError: It cannot be read; it has no such search; or what is compared differs.
        """
        if self.after is None:
            return None
        found = [each for each in _read(self.after) if each.one_pair is not None]
        if not found:
            raise RequestError(
                "this run has no finished search with a single address pair",
                code="cli.no-one-pair-search",
                where=f"--after {self.after}",
                next_step="Use --one-pair-first, or make one with --hosts 1 (and --networks 1 if the plan"
                " has networks).",
            )
        here = _here(setup, given, frame_size, goal.loss_ratio)
        for each in reversed(found):
            if each.conditions == here:
                return each.one_pair
        raise RequestError(
            "the search with a single address pair was made under different conditions:"
            f" {'; '.join(found[-1].conditions.unlike(here))}",
            code="cli.different-conditions",
            where=f"--after {self.after}",
            next_step="Name a run of the same testbed, or use --one-pair-first.",
        )


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
