# SPDX-License-Identifier: Apache-2.0
"""Procedure: what stays the same in all trials of a procedure, and whether what it is called with is of the
right types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_type
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Direction, FrameSize, HostMacs, Imix
from evenhand.procedure.connection_trials import ConnectionWish
from evenhand.procedure.learning import LearningChoice
from evenhand.procedure.one_pair import OnePair
from evenhand.trial import LARGEST_SEED, DirectionRates, Limits, Waits


class Conditions(TypedDict, total=False):
    """Conditions that are the same in all trials of a procedure. All are optional."""

    plan: str | AddressPlan
    """The address plan, its name, or the path of a plan file; `mix_versions` makes one of two plans. Default:
    gateway-v4 with all its addresses (SEED-05)."""
    frame_size: FrameSize
    """Octets with the FCS, or an `Imix` (RFC 6985). Default: 64, or the smallest that the plan's frames can
    have."""
    directions: tuple[Direction, ...]
    """Default: both at once (R2544-15)."""
    seed: int
    """Same seed, same frames. Default: 1."""
    waits: Waits
    """Default: those of RFC 2544, section 23 (`RFC_WAITS`); `SHORT_WAITS` is for software ports, and a
    deviation."""
    limits: Limits
    """When a trial is valid. Default: the testbed's."""
    host_macs: HostMacs
    """The MACs of hosts on the link (R4814-06). Default: the port's."""
    learning: LearningChoice
    """Whether the DUT of a direct plan learns every host first (R2544-35). Default: yes."""
    established: ConnectionWish | None
    """The connections that are established before each trial, if the DUT keeps state (R9693-03)."""
    rates: DirectionRates | None
    """How the loads of the two directions differ. Default: they do not. The load of a trial or search is that
    of the faster direction, or of the one that is not held."""
    one_pair: OnePair | None
    """An earlier search with one address pair (SEED-02)."""


_KINDS: Mapping[str, Any] = {
    "plan": str | AddressPlan | None,
    "frame_size": int | Imix | None,
    "directions": tuple[Direction, ...],
    "seed": int,
    "waits": Waits,
    "limits": Limits | None,
    "host_macs": Literal["port", "pseudorandom"],
    "learning": LearningChoice,
    "established": ConnectionWish | None,
    "rates": DirectionRates | None,
    "one_pair": OnePair | None,
}
"""Types of the attributes of `Conditions`, for those who do not run a type checker."""


def check_request(goal: object, kind: Any, conditions: Mapping[str, Any]) -> None:
    """RequestError for a goal, or a condition, of the wrong type, before anything is started."""
    check_type(goal, kind, where="goal")
    check_conditions(conditions)


def check_conditions(conditions: Mapping[str, Any]) -> None:
    """The same for conditions alone."""
    for name, value in conditions.items():
        if name in _KINDS:
            check_type(value, _KINDS[name], where=name)
    directions, seed = conditions.get("directions", BOTH_DIRECTIONS), conditions.get("seed", 1)
    if not directions or len(set(directions)) < len(directions):
        raise RequestError(
            f"{directions!r} are not directions",
            code="procedure.not-directions",
            where="directions",
            next_step='Give ("forward", "reverse"), or one of them.',
        )
    if conditions.get("rates") is not None and len(directions) < 2:
        raise RequestError(
            f"rates for two directions, but frames are sent {directions[0]} only",
            code="procedure.rates-need-both-directions",
            where="rates",
            next_step="Send in both directions, or give one rate.",
        )
    if not 0 <= seed <= LARGEST_SEED:
        raise RequestError(
            f"seed {seed}: must be 0 to {LARGEST_SEED}",
            code="procedure.out-of-range",
            where="seed",
            next_step="Use 1.",
        )
