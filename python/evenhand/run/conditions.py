# SPDX-License-Identifier: Apache-2.0
"""Station 9: under which conditions a search was made, as its row states, whether or not it belongs to a
point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from evenhand.base.errors import RequestError
from evenhand.plan import Direction, SideCounts, parse_imix, plan_title
from evenhand.run.reading import StoredSearch
from evenhand.spec.point import HashType, Point

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConditions:
    """What a `Point` has of the same names."""

    plan: str
    plan_options: Mapping[str, Any]
    hosts: SideCounts
    networks: SideCounts
    frame_size: int | str
    directions: tuple[Direction, ...]
    hash_type: HashType | None


def conditions_of(search: StoredSearch) -> SearchConditions:
    """ValueError if its row does not state them: a run file may come from anyone."""
    try:
        read = _read(search)
    except (AttributeError, KeyError, TypeError, ValueError, RequestError) as error:
        raise ValueError(f"{search.name[:80]!r} does not contain its conditions") from error
    if not are_sound(read):
        raise ValueError(f"{search.name[:80]!r} does not contain its conditions")
    return read


def are_sound(conditions: Point | SearchConditions) -> bool:
    """Whether each value is of its type."""
    counts = (*conditions.hosts, *conditions.networks)
    return (
        isinstance(conditions.plan, str)
        and len(conditions.hosts) == len(conditions.networks) == len(_SIDES)
        and all(isinstance(count, int) and not isinstance(count, bool) and count >= 1 for count in counts)
        and isinstance(conditions.frame_size, int | str)
        and conditions.hash_type in (None, *get_args(HashType))
        and 1 <= len(conditions.directions) == len(set(conditions.directions) & set(get_args(Direction)))
        and isinstance(conditions.plan_options, Mapping)
    )


def configured(setup: Mapping[str, Any]) -> Any:
    """The configuration of a DUT of our own; None of others."""
    return (setup.get("dut") or {}).get("config")


def _read(search: StoredSearch) -> SearchConditions:
    setup, plan = search.setup, search.plan
    mix = setup.get("mix") or {}
    versions = mix.get("versions")
    names = versions["plans"] if versions else [plan.get("name", "")]
    ranges = [plan.get(side, {}).get("hosts", {}) for side in _SIDES]
    elements = (configured(setup) or {}).get("elements") or {}
    if search.imix != (parse_imix(mix["imix"]).short if mix.get("imix") else None):
        raise ValueError("its two statements of the sequence of frame sizes differ")
    return SearchConditions(
        plan="+".join(map(plan_title, names)),
        plan_options={} if not versions else {"mix": "/".join(map(str, versions["share"]))},
        hosts=SideCounts(*(_count(each, "host") for each in ranges)),
        networks=SideCounts(*(_count(each, "network") for each in ranges)),
        frame_size=search.frame_size if search.imix is None else search.imix,
        directions=tuple(setup.get("directions") or get_args(Direction)),
        hash_type=next((name for name in get_args(HashType) if name == elements.get("hash")), None),
    )


def _count(stored: Mapping[str, Any], name: str) -> int:
    """Count of a part of a stored `HostRange`, `host` or `network`; 1 where the plan has none."""
    part = stored.get(name)
    return 1 if part is None else int(part["count"])
