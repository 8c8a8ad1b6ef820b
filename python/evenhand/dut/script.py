# SPDX-License-Identifier: Apache-2.0
"""Steps of a DUT's set-up, each with what takes it back, and the text that they make. Knows no operating
system."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.nat import USUAL_NAT, set_up_by_hand
from evenhand.plan import plan_warnings

_WIDTH = 118
READ_BACK = "Read back. A device may have refused a line, and gone on with the next."

ISOLATION = (
    "Only in an isolated test environment (RFC 6815): routers forward 198.18.0.0/15 and 2001:2::/48 like"
    " any other addresses, so only isolation keeps the test out of networks that people use."
)

SHELL_NOTE = "For a root shell that ends at the first error, such as: ssh root@DUT sh -e"
FORWARDING_NOTE = (
    "Last, so that nothing is forwarded by a partial set-up. The previous value is shown and kept."
)


Part = Literal[
    "limits", "interfaces", "routes", "neighbors", "translator", "nat", "hash", "policing", "forwarding"
]
"""What a step is about: `dut setup --only` prints the steps of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How a device that has no shell is asked what came of a step."""

    command: str
    """Shows it, at the prompt at which the set-up ends."""
    expected: tuple[str, ...]
    """What its answer contains if all is as intended, with any blanks for one blank."""
    other: str | None = None
    """An expression for what must not follow one of these: another path of the same route."""
    otherwise: tuple[str, ...] = ()
    """The same in words that some versions of the system have for it, in the same order."""

    def missing(self, answer: str) -> list[str]:
        """What of `expected` the answer does not have, or has with something else beside it."""
        found, otherwise = " ".join(answer.split()), self.otherwise or self.expected
        end = r"(?![^\s,;\]])" + ("" if self.other is None else f"(?! ?{self.other})")
        return [
            text
            for text, *words in zip(self.expected, self.expected, otherwise, strict=True)
            if not any(re.search(rf"(?<![\w.:]){re.escape(word)}{end}", found) for word in words)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesFile:
    """What a script needs beside it on the device."""

    name: str
    lines: Callable[[], Iterable[str]]
    """Its lines, each with its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Commands that belong together. One string is one command, which may have several lines."""

    part: Part
    purpose: str
    do: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    """What takes `do` back, in the order in which it is to be run."""
    notes: tuple[str, ...] = ()
    """Sentences for whoever sets up."""
    checks: tuple[Check, ...] = ()
    """For devices without a shell; a script of a shell checks for itself."""
    files: tuple[RoutesFile, ...] = ()
    """That `do` reads, and below `undo`."""
    undo_files: tuple[RoutesFile, ...] = ()
    undo_notes: tuple[str, ...] = ()
    """Sentences for whoever takes it back."""


def nothing_refused(setup: DutSetup) -> None:
    """A system that can do all that a plan may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingSystem:
    """How one operating system is configured."""

    title: str
    comment: str
    """What a comment line begins with."""
    run: str
    """Where the text goes, as a sentence."""
    interfaces: tuple[str, str]
    """Names as they look there; examples for messages, never used as names."""
    steps: Callable[[DutSetup], list[Step]]
    begin: tuple[str, ...] = ()
    """Commands before all others."""
    end: tuple[str, ...] = ()
    longest_interface: int = 64
    refuse: Callable[[DutSetup], None] = nothing_refused
    """Raises RequestError for what the system cannot do: a hash, or so many neighbours."""
    translates: bool = False
    """Whether `steps` knows all plans that are translated, with state or without."""
    show_interface: str = ""
    """For a system with a shell: a command that fails if there is no interface `{name}`."""
    many_routes: bool = False
    """Whether `steps` has files for routes that are too many to be listed."""
    nats: tuple[str, ...] = ()
    """Kinds of NAT that it knows otherwise, by their titles; in their usual way, with no wishes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command and what it is for."""

    command: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DutScript:
    """The whole set-up for one operating system, or what takes it back."""

    setup: DutSetup
    system: OperatingSystem
    is_undo: bool
    only: Part | None = None
    """Print the steps of this part alone: for a DUT that has the others already."""

    def __post_init__(self) -> None:
        plan = self.setup.plan
        is_nat_known = plan.nat is not None and plan.nat.title in self.system.nats
        is_translated = plan.translation is not None or plan.nat is not None
        if is_nat_known and self.setup.nat_wishes != USUAL_NAT:
            raise RequestError(
                f"{self.system.title} has no commands here for other ports, addresses or sizes of its NAT",
                code="rig.no-nat-to-set",
                where="--nat-ports, --nat-addresses, --nat-table",
                next_step="Leave them out, and set them there by hand.",
            )
        if is_translated and not self.system.translates and not is_nat_known:
            needed = "a translator" if plan.nat is None else f"a {plan.nat.title}"
            raise RequestError(
                f"{plan.title} needs {needed}, and there are no commands for one under {self.system.title}",
                code="rig.translator-needed",
                where="--os",
                next_step=set_up_by_hand(plan),
            )
        self.system.refuse(self.setup)
        if not self.system.many_routes and any(link.has_many_routes for link in self.setup.links):
            raise RequestError(
                f"{plan.title} has more routes than are listed one by one, and there are no commands for so"
                f" many under {self.system.title}",
                code="rig.too-many-routes",
                where="--os",
                next_step="Use up to 4,096 routes on each side, or a DUT under linux, frr, bird, vpp or"
                " junos.",
            )
        if self.only is not None and not self.steps:
            option = {"hash": "--hash type1 or --hash type2", "neighbors": "--static-neighbors MAC,MAC"}.get(
                self.only
            )
            raise RequestError(
                f"the part {self.only!r} is empty, so there is nothing to print",
                code="rig.part-is-empty",
                where="--only",
                next_step=f"Add {option}." if option else f"This set-up has: {', '.join(self._parts)}.",
            )

    @property
    def steps(self) -> list[Step]:
        """Steps in the order in which they run; to undo, exactly the reverse."""
        steps = [step for step in self.system.steps(self.setup) if self.only in (None, step.part)]
        return steps[::-1] if self.is_undo else steps

    @property
    def _parts(self) -> list[Part]:
        return list(dict.fromkeys(step.part for step in self.system.steps(self.setup)))

    @property
    def warnings(self) -> list[str]:
        return [] if self.is_undo else plan_warnings(self.setup.plan)

    def commands(self) -> list[Command]:
        """All commands, without comments."""
        commands = [Command(command=c, purpose="Begin.") for c in self.system.begin]
        for step in self.steps:
            commands += [
                Command(command=c, purpose=step.purpose) for c in (step.undo if self.is_undo else step.do)
            ]
        commands += [Command(command=c, purpose="End.") for c in self.system.end]
        return commands + [Command(command=c.command, purpose=READ_BACK) for c in self.checks()]

    @property
    def files(self) -> list[RoutesFile]:
        """What is to be on the device before the script runs."""
        return [file for step in self.steps for file in (step.undo_files if self.is_undo else step.files)]

    def checks(self) -> list[Check]:
        """What is asked after a set-up; nothing after an undo."""
        return [] if self.is_undo else [check for step in self.steps for check in step.checks]

    def notes(self) -> list[str]:
        """What is to be known and is not a command."""
        return [note for step in self.steps for note in (step.undo_notes if self.is_undo else step.notes)]

    def text(self) -> str:
        """The commands with comments, to be read and run. Begins with the warning of an isolated environment
        (SEED-80)."""
        plan, (left, right) = self.setup.plan, self.setup.links
        what = "Undoes the set-up" if self.is_undo else "Set-up"
        blocks = [
            [
                *self._comment(
                    f"{what} of a DUT under {self.system.title} for {plan.title} ({plan.figure}): "
                    f"left {left.interface}, right"
                    f" {right.interface}{f'; only {self.only}' if self.only else ''}."
                ),
                *self._comment(ISOLATION),
                *(line for warning in self.warnings for line in self._comment(f"Warning: {warning}")),
                *self._comment(self.system.run),
            ],
            [*self.system.begin],
        ]
        for step in self.steps:
            commands = step.undo if self.is_undo else step.do
            notes = step.undo_notes if self.is_undo else step.notes
            if commands or notes:
                purpose = f"Take back: {step.purpose}" if self.is_undo else step.purpose
                blocks.append(
                    [
                        *self._comment(purpose),
                        *(line for note in notes for line in self._comment(note)),
                        *commands,
                    ]
                )
        blocks.append([*self.system.end])
        checks = self.checks()
        if checks:
            blocks.append(self._comment(READ_BACK))
        blocks += [[*self._comment(_expectation(check)), check.command] for check in checks]
        return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"

    def _comment(self, text: str) -> list[str]:
        mark = f"{self.system.comment} "
        return textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=mark,
            subsequent_indent=mark,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _expectation(check: Check) -> str:
    first, *more = check.expected
    return f"Expect {first!r}" + (f", and {len(more):,} more like it." if more else ".")


def interface_purpose(link: DutLink) -> str:
    return f"The {link.side.name} interface: {_count(len(link.addresses), 'address', 'addresses')}."


def route_purpose(link: DutLink) -> str:
    return (
        f"{_count(len(link.routes), 'route', 'routes')} to the hosts of the {link.side.name} side, by the"
        " tester's gateway."
    )


def neighbor_purpose(link: DutLink) -> str:
    entries = link.side.dut_neighbors
    return (
        f"{_count(entries, 'static neighbour', 'static neighbours')} of the {link.side.name} side,"
        " which the DUT would otherwise have to resolve."
    )


def policing_step(*, do: tuple[str, ...] = (), notes: tuple[str, ...]) -> Step:
    """What of the DUT may take the traffic of a test for an attack: shown, and never changed (SEED-07,
    SEED-81)."""
    return Step(
        part="policing",
        purpose="The DUT may drop or limit this traffic, because thousands of flows look like an attack.",
        do=do,
        notes=(
            *notes,
            "If any of this is on, say so in the report (key policing in [dut.facts] of the testbed file),"
            " because it affects the result.",
        ),
    )


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
