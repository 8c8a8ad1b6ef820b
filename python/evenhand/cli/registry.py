# SPDX-License-Identifier: Apache-2.0
"""Where each verb is. A command line loads the one that it names: to load all of them takes a third
longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from evenhand.cli.verbs import Verbs

if TYPE_CHECKING:
    from evenhand.procedure.descriptor import Procedure


@dataclass(frozen=True, slots=True)
class VerbPlace:
    """A function of a module of this package."""

    module: str
    function: str

    def register(self, app: Verbs, name: str) -> None:
        module = import_module(f"evenhand.cli.{self.module}")
        app.command(name, epilog=module.EXAMPLE)(getattr(module, self.function))


GROUPS = ("plan", "dut", "lab")
PLAN_VERBS = {
    "show": VerbPlace("plan", "show"),
    "frames": VerbPlace("plan_frames", "frames"),
    "prove": VerbPlace("prove", "prove"),
    "export": VerbPlace("plan_export", "export_plan"),
    "dissector": VerbPlace("plan_dissector", "dissector"),
}
"""What `evenhand plan` has."""

_FIRST = {
    "check": VerbPlace("check", "check"),
    "compare": VerbPlace("compare", "compare"),
    "demo": VerbPlace("demo", "demo"),
    "predict": VerbPlace("predict", "predict"),
    "router": VerbPlace("router", "router"),
}
_LAST = {
    "bisect": VerbPlace("bisect", "bisect"),
    "learn": VerbPlace("learn", "learn_hosts"),
    "run": VerbPlace("run_verb", "run"),
    "serve": VerbPlace("serve", "serve"),
    "status": VerbPlace("status", "status"),
    "report": VerbPlace("report", "report"),
    "import": VerbPlace("import_verb", "import_file"),
    "merge": VerbPlace("merge", "merge"),
    "otg": VerbPlace("otg", "otg"),
    "prune": VerbPlace("prune", "prune"),
    "show": VerbPlace("show", "show"),
    "export": VerbPlace("export", "export"),
    "trend": VerbPlace("trend", "trend"),
    "trial": VerbPlace("trial", "trial"),
    "worker": VerbPlace("worker", "worker"),
}
"""Verbs that are not procedures."""


def procedure_verbs() -> dict[str, Procedure]:
    """Procedures by the name of the verb."""
    from evenhand.procedure.registry import PROCEDURES  # takes longer to load than many a verb

    return {each.verb: each for each in PROCEDURES.values() if each.verb is not None}


def verb_names() -> tuple[str, ...]:
    """All verbs and groups, in the order of the help; the groups are last there."""
    return (*GROUPS, *_FIRST, *procedure_verbs(), *_LAST)


def is_verb(name: str) -> bool:
    """Whether it is one of them."""
    return name in GROUPS or name in _FIRST or name in _LAST or name in procedure_verbs()


def named_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """What `register` must load for a command line: its verb, or its group and the verb of that; nothing if
    its first word is none."""
    first, second = (*arguments[:2], "", "")[:2]
    if first == "plan" and second in PLAN_VERBS:
        return (f"{first} {second}",)
    return (first,) if is_verb(first) else ()


def register(app: Verbs, names: Iterable[str]) -> None:
    """Load these verbs and groups, and add them to the command: `run`, `dut`, or `plan show` for a group of
    which only one verb is needed."""
    others = {**_FIRST, **_LAST}
    for name in names:
        group, _, verb = name.partition(" ")
        if group == "plan":
            app.add_typer(_plan_group((verb,) if verb else PLAN_VERBS), name=group)
        elif name in GROUPS:
            app.add_typer(import_module(f"evenhand.cli.{name}").app, name=name)
        elif name in others:
            others[name].register(app, name)
        else:
            _register_procedure(app, name, procedure_verbs()[name])


def _plan_group(names: Iterable[str]) -> Verbs:
    group = Verbs(help="Show address plans and the frames that they produce.", no_args_is_help=True)
    for name in names:
        PLAN_VERBS[name].register(group, name)
    return group


def _register_procedure(app: Verbs, name: str, procedure: Procedure) -> None:
    from evenhand.cli.measure import verb_of

    app.command(name, epilog=f"Example: {procedure.example}")(verb_of(procedure))
