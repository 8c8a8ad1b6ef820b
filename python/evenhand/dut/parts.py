# SPDX-License-Identifier: Apache-2.0
"""The parts of a set-up in the order in which all systems go through them. A system says each in its own
words, and knows nothing of the order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.many_routes import ManyRoutes, many_routes_of
from evenhand.dut.script import Check, Part, Step, policing_step

Steps = Callable[[DutSetup], list[Step]]
OfLink = Callable[[DutSetup, DutLink], Step]


def none_of(setup: DutSetup) -> list[Step]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one system says of each part."""

    interface: OfLink
    mtu: str
    """What takes IP packets of 9,000 octets on the interface `{name}`."""
    routes: OfLink
    """For a link with routes."""
    many: Callable[[DutSetup, ManyRoutes], Step] | None = None
    """For a link with more routes than are listed one by one."""
    neighbors: OfLink
    """For a link with static neighbours."""
    hash: Steps
    """For a set-up with a hash."""
    policing: Steps
    forwarding: Steps = none_of
    limits: Steps = none_of
    first: Steps = none_of
    """What must be known before anything is changed."""
    more: Steps = none_of
    """Translator and NAT, where the system has them."""

    def steps(self, setup: DutSetup) -> list[Step]:
        """All steps, in the order of doing."""
        links = setup.links
        return [
            *self.first(setup),
            *self.limits(setup),
            *(self._interface(setup, link) for link in links),
            *(self.routes(setup, link) for link in links if link.routes),
            *(() if self.many is None else (self.many(setup, many) for many in many_routes_of(setup))),
            *(self.neighbors(setup, link) for link in links if setup.has_static_neighbors),
            *self.more(setup),
            *(self.hash(setup) if setup.hash_type is not None else ()),
            *self.policing(setup),
            *self.forwarding(setup),
        ]

    def _interface(self, setup: DutSetup, link: DutLink) -> Step:
        step = self.interface(setup, link)
        if link.side.name != "left":
            return step
        names = " and ".join(each.interface for each in setup.links)
        command = self.mtu.format(name=link.interface)
        note = (
            f"Its MTU is not changed. Frames above 1,518 octets need a larger one than 1,500 on {names}:"
            f" {command}"
        )
        return replace(step, notes=(*step.notes, note))


def each(make: Callable[[DutLink], Step]) -> OfLink:
    """For a system that needs no more than the link for it."""
    return lambda setup, link: make(link)


def line_step(
    part: Part,
    purpose: str,
    lines: Iterable[str],
    *,
    negate: Callable[[str], str],
    notes: tuple[str, ...] = (),
    checks: tuple[Check, ...] = (),
) -> Step:
    """Lines of a configuration, each taken back by its negation, the last one first."""
    done = tuple(lines)
    return Step(
        part=part,
        purpose=purpose,
        do=done,
        undo=tuple(negate(line) for line in reversed(done)),
        notes=notes,
        checks=checks,
    )


def notes_on_hash(*notes: str) -> Steps:
    """For a system that leaves the hash as it is."""
    return lambda setup: [Step(part="hash", purpose="Hash: it is not changed.", notes=notes)]


def notes_on_limits(*notes: str) -> Steps:
    """For a system whose room for neighbours is its platform's: how much there is, is asked before a test
    with hosts on the link."""
    return lambda setup: (
        [
            Step(
                part="limits",
                purpose=f"Neighbours: this plan needs {setup.neighbor_entries:,} entries.",
                notes=notes,
            )
        ]
        if setup.plan.is_direct
        else []
    )


def shows_policing(*notes: str, do: tuple[str, ...] = ()) -> Steps:
    """See `policing_step`."""
    return lambda setup: [policing_step(do=do, notes=notes)]


def set_step(
    part: Part,
    purpose: str,
    statements: Sequence[str],
    *,
    cut: tuple[str, ...] = (),
    verb: str = "set ",
    notes: tuple[str, ...] = (),
    checks: tuple[Check, ...] = (),
) -> Step:
    """Statements to set, each deleted by the same path.

    Args:
        cut: To delete one, it is named up to one of these: else what is before it would remain, empty.
        verb: What the system has before the path; its `delete` has the same behind it.
    """
    named = list(statements)
    for word in cut:
        named = [statement.partition(word)[0] for statement in named]
    return Step(
        part=part,
        purpose=purpose,
        do=tuple(f"{verb}{statement}" for statement in statements),
        undo=tuple(f"{verb.replace('set', 'delete')}{statement}" for statement in reversed(named)),
        notes=notes,
        checks=checks,
    )
