# SPDX-License-Identifier: Apache-2.0
"""`--after RUN`: the throughput searches of a run file, which anybody may have sent, with what its readers
look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.search import Outcome
from evenhand.series import StoredSearch, read_run
from evenhand.series.snapshot import not_a_run


def throughput_searches(path: Path) -> list[StoredSearch]:
    """Those that have ended. RequestError, HostError as `read_run`; RequestError if one lacks what every
    search has."""
    searches = [
        search
        for search in read_run(path).searches
        if search.kind == "throughput" and search.result is not None
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
            raise ValueError(f"a value that is used: {value!r} is none")
