# SPDX-License-Identifier: Apache-2.0
"""`--after RUN`: the throughput searches of a run file, which anybody may have sent, with what its readers
look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.without_folders import without_folders
from evenhand.cli.conditions import Given
from evenhand.plan import FrameSize, describe_mix, describe_size, whole_octets, with_titles
from evenhand.procedure.descriptor import KnownThroughput
from evenhand.procedure.known_throughput import WITH_LOSS, throughput_to_serve
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
        str(outcome) for outcome in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.TESTER_LIMIT)
    ]
    found: StoredSearch | None = None
    for search in throughput_searches(path):
        conditions = (
            devices_of(search.setup),
            search.plan,
            search.frame_size,
            with_titles(search.setup.get("mix")),
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
