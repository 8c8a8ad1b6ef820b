# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan dissector`: test frames in Wireshark."""

from __future__ import annotations

from importlib.resources import files

from evenhand.cli.common import out

EXAMPLE = "Example: evenhand plan dissector > ~/.local/lib/wireshark/plugins/evenhand.lua"


def dissector() -> None:
    """Print a Lua dissector with which Wireshark and tshark show number, direction, stream and time of test
    frames, whatever their UDP ports are."""
    out().file.write((files("evenhand.plan") / "evenhand.lua").read_text(encoding="utf-8"))
