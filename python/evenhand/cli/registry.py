# SPDX-License-Identifier: Apache-2.0
"""Where each verb is. A command line loads the one that it names: to load all of them takes a third
longer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from evenhand.cli.verbs import Verbs


@dataclass(frozen=True, slots=True)
class VerbPlace:
    """A function of a module of this package."""

    module: str
    function: str
    example: str = "EXAMPLE"
    """The name of the line that ends its help."""

    def register(self, app: Verbs, name: str) -> None:
        module = import_module(f"evenhand.cli.{self.module}")
        app.command(name, epilog=getattr(module, self.example))(getattr(module, self.function))


GROUPS = {"plan": "plan_group", "dut": "dut", "lab": "lab"}
"""Each module has an `app` with the verbs of its group."""

VERBS = {
    "check": VerbPlace("check", "check"),
    "compare": VerbPlace("compare", "compare"),
    "demo": VerbPlace("demo", "demo"),
    "predict": VerbPlace("predict", "predict"),
    "router": VerbPlace("router", "router"),
    "back-to-back": VerbPlace("back_to_back", "back_to_back"),
    "burst": VerbPlace("burst", "burst"),
    "latency": VerbPlace("delay", "latency", "LATENCY_EXAMPLE"),
    "pdv": VerbPlace("delay", "pdv", "PDV_EXAMPLE"),
    "learn": VerbPlace("learn", "learn_hosts"),
    "loss": VerbPlace("loss", "loss"),
    "recovery": VerbPlace("recovery", "recovery"),
    "run": VerbPlace("run", "run"),
    "status": VerbPlace("status", "status"),
    "report": VerbPlace("report", "report"),
    "import": VerbPlace("import_verb", "import_file"),
    "throughput": VerbPlace("throughput", "throughput"),
    "merge": VerbPlace("merge", "merge"),
    "show": VerbPlace("show", "show"),
    "export": VerbPlace("export", "export"),
    "trial": VerbPlace("trial", "trial"),
    "worker": VerbPlace("worker", "worker"),
}
"""In the order of the help; the groups follow them there."""


def register(app: Verbs, names: Iterable[str]) -> None:
    """Load these verbs and groups, and add them to the command."""
    for name in names:
        if name in GROUPS:
            app.add_typer(import_module(f"evenhand.cli.{GROUPS[name]}").app, name=name)
        else:
            VERBS[name].register(app, name)
