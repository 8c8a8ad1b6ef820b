# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan` with all its verbs, which are in files of their own."""

from __future__ import annotations

from importlib.resources import files

from evenhand.cli import plan_export, prove
from evenhand.cli.common import out
from evenhand.cli.plan import app

app.command("prove", epilog=prove.EXAMPLE)(prove.prove)
app.command("export", epilog=plan_export.EXAMPLE)(plan_export.export_plan)


@app.command(
    "dissector", epilog="Example: evenhand plan dissector > ~/.local/lib/wireshark/plugins/evenhand.lua"
)
def dissector() -> None:
    """Print a Lua dissector with which Wireshark and tshark show number, direction, stream and time of test
    frames, whatever their UDP ports are."""
    out().file.write((files("evenhand.plan") / "evenhand.lua").read_text(encoding="utf-8"))
