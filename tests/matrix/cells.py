# SPDX-License-Identifier: Apache-2.0
"""The matrix of what can be measured: every procedure by every way, on every kind of plan, through ports
that know their line rate or not, with every outcome. Made from the registry, so that no procedure can be left
out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import combinations, product
from typing import Any

from evenhand.base.option import options_of
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.registry import PROCEDURES


class Way(StrEnum):
    """How it is measured."""

    VERB = "verb"
    CAMPAIGN = "campaign"
    WORKER = "worker"
    PYTHON = "python"


class Family(StrEnum):
    """What the frames are."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"
    TRANSLATED = "translated"


class Ports(StrEnum):
    """What they know of themselves."""

    WITH_LINE_RATE = "line rate"
    WITHOUT = "no line rate"


class Outcome(StrEnum):
    """How the device lets it end."""

    FOUND = "found"
    LOWER_BOUND = "lower bound"
    BELOW_MINIMUM = "below minimum"
    NOTHING = "nothing"


LINE_RATE = "1Gbps"
LIMIT_FPS = 300_000
DEVICES = {
    # limit - what the tester offers - buffer - buckets - connections of its table
    Outcome.FOUND: f"{LIMIT_FPS}--64--700",
    Outcome.LOWER_BOUND: "900000000",
    Outcome.BELOW_MINIMUM: "1----50",
    Outcome.NOTHING: f"{LIMIT_FPS}-1",
}
"""What `tests/trial/scripted_engine.py` simulates."""
PLANS = {
    False: {Family.IPV4: "gateway-v4", Family.IPV6: "gateway-v6", Family.TRANSLATED: "siit"},
    True: {Family.IPV4: "nat44", Family.IPV6: "nat66", Family.TRANSLATED: "nat64"},
}
"""By whether the DUT has to keep state."""
QUICK: dict[str, Any] = {
    "duration": "1s",
    "final-duration": "2s",
    "precision": "5%",
    "rate-precision": "20%",
    "repetitions": 2,
    "burst": "16",
    "max-burst": "100ms",
    "observe": "1s",
    "tagged": 5,
    "connections": "500",
    "most": "1000",
}
"""Options by their names, for every procedure that has them: what is simulated takes no time, but what is
computed does. None says how high a load may be: that is found."""
OF_ONE: dict[str, dict[str, Any]] = {"capacity": {"from": "100"}, "tear-down": {"rate": "10kfps"}}
"""Options that mean something else in each procedure, or that it needs."""
LOAD = {"rate": "100kfps", "throughput": "100kfps"}
"""The load of procedures that need a throughput, by the option that gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One of them."""

    procedure: str
    way: Way
    family: Family
    ports: Ports
    outcome: Outcome

    def __str__(self) -> str:
        return "-".join(
            str(each).replace(" ", "_")
            for each in (self.procedure, self.way, self.family, self.ports, self.outcome)
        )

    @property
    def of(self) -> Procedure:
        """The procedure itself."""
        return PROCEDURES[self.procedure]

    @property
    def plan(self) -> str:
        """One that the procedure takes."""
        return PLANS[self.of.own_idle_s is not None][self.family]

    @property
    def device(self) -> str:
        """What the simulated engine measures."""
        return DEVICES[self.outcome]

    @property
    def options(self) -> dict[str, Any]:
        """Options of the procedure, by their names."""
        names = {each.name for each in options_of(self.of.options)}
        use = self.of.throughput
        load = {} if use is None or not use.is_needed else {use.option: LOAD[use.option]}
        quick = {name: value for name, value in QUICK.items() if name in names}
        return {**quick, **load, **OF_ONE.get(self.procedure, {})}


def all_cells() -> Iterator[Cell]:
    """The whole matrix. A procedure that has no verb of its own is one of a campaign."""
    for procedure, family, ports, outcome, way in product(PROCEDURES.values(), Family, Ports, Outcome, Way):
        if way not in (Way.VERB, Way.PYTHON) or procedure.verb is not None:
            yield Cell(procedure=procedure.name, way=way, family=family, ports=ports, outcome=outcome)


def diagonal() -> Iterator[Cell]:
    """As few cells as have each value of each dimension with each procedure."""
    families, ports, ways = list(Family), list(Ports), list(Way)
    for place, procedure in enumerate(PROCEDURES.values()):
        for number, outcome in enumerate(Outcome):
            way = ways[(place + number) % len(ways)]
            if procedure.verb is None:
                way = (Way.CAMPAIGN, Way.WORKER)[number % 2]
            yield Cell(
                procedure=procedure.name,
                way=way,
                family=families[(place + number) % len(families)],
                ports=ports[(place + number // 2) % len(ports)],
                outcome=outcome,
            )


def where_three_meet() -> Iterator[Cell]:
    """Few cells that have, with those of the diagonal, each three values of each three dimensions: what only
    fails where three features meet fails in one of them."""
    threes = {cell: set(combinations(enumerate(astuple(cell)), 3)) for cell in all_cells()}
    missing = set().union(*threes.values()).difference(*(threes[cell] for cell in diagonal()))
    while missing:
        best = max(threes, key=lambda cell: len(threes[cell] & missing))
        missing -= threes.pop(best)
        yield best
