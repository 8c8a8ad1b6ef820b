# SPDX-License-Identifier: Apache-2.0
"""`evenhand import`: another tester's file becomes a testbed file and commands, and each of its keys is
accounted for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_new, write_new
from evenhand.base.table import Column, make_table
from evenhand.cli.common import JsonOption, out, write_json
from evenhand.exchange.dperf_import import import_dperf
from evenhand.exchange.formats import NAMES, Kind, kind_of
from evenhand.exchange.imix_import import import_imix
from evenhand.exchange.otg_read import import_otg
from evenhand.exchange.outcome import Became, GivenHardware, Imported
from evenhand.exchange.pktgen_import import import_pktgen
from evenhand.exchange.siitperf_import import import_siitperf
from evenhand.exchange.trex_import import import_trex
from evenhand.plan import SideName

EXAMPLE = (
    'Example: evenhand import siitperf.conf --command "siitperf-tp 84 100000 60 2000 2 2" --left'
    " 0000:01:00.0 --right 0000:01:00.1"
)
_SHOWN_FIRST = (Became.REFUSED, Became.DIFFERS, Became.MAPPED, Became.MEANINGLESS)
_READERS: Mapping[Kind, Callable[..., Imported]] = {
    "otg": import_otg,
    "trex": import_trex,
    "pktgen": import_pktgen,
    "dperf": import_dperf,
    "imix": import_imix,
}
NOT_ALL = 1
"""Exit code: something of the file is refused."""


def import_file(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=(
                "A siitperf.conf, a configuration of the Open Traffic Generator API in JSON or YAML, a"
                " stateless profile of TRex, a configuration of dperf, a script or command file of"
                " Pktgen-DPDK, or a mix of sizes such as 64:7,570:4,1518:1."
            ),
        ),
    ],
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="LINE",
            help="A command line of siitperf-tp, -lat or -pdv, as it was typed; it is read, not run.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="NAME",
            help=(
                "Use this address plan. Default: the closest one; plans with hosts on the link are preferred."
            ),
        ),
    ] = None,
    left: Annotated[
        str | None,
        typer.Option("--left", metavar="DEVICE", help="The port on the left, which the file cannot name."),
    ] = None,
    right: Annotated[
        str | None, typer.Option("--right", metavar="DEVICE", help="The port on the right.")
    ] = None,
    cpus: Annotated[
        str | None,
        typer.Option("--cpus", metavar="N,N...", help="CPUs of the tester, instead of those in the file."),
    ] = None,
    isolated: Annotated[
        bool,
        typer.Option(
            "--isolated-test-environment", help="Confirm that no frame can leave your lab (RFC 6815)."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=(
                "The testbed file to write, which must not exist. Default: the name of FILE with"
                " .toml, in the current folder."
            ),
        ),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Make a testbed file and commands from another tester's configuration, and report what becomes of every
    key.

    The exit code is 1 if a part is refused, such as traffic beside connections. Nothing in the file is run,
    and it cannot name a device.
    """
    testbed = output or Path(f"{file.stem}.toml")
    where = f"--output {testbed}"
    check_new(testbed, where=where)
    devices: dict[SideName, str] = {} if left is None else {"left": left}
    if right is not None:
        devices["right"] = right
    given = GivenHardware(devices=devices, is_isolated=isolated, cpus=_read_cpus(cpus))
    kind = kind_of(file)
    if kind != "siitperf":
        if command is not None:
            raise RequestError(
                f"{file} has no command line of siitperf",
                code="cli.option-not-here",
                where="--command",
                next_step="Leave it out.",
            )
        imported = _READERS[kind](file, given, plan=plan, testbed=testbed)
    else:
        imported = import_siitperf(file, given, command=command, plan=plan, testbed=testbed)
    write_new(testbed, imported.testbed.encode(), where=where)
    if json_output:
        write_json(
            {
                "command": "import",
                "kind": imported.kind,
                "file": str(file),
                "testbed": str(testbed),
                "is_whole": not imported.is_any(Became.REFUSED),
                "is_exact": not imported.is_any(Became.REFUSED) and not imported.is_any(Became.DIFFERS),
                "keys": [asdict(row) for row in imported.rows],
                "gaps": list(imported.gaps),
                "commands": [asdict(command) for command in imported.commands],
                "notes": list(imported.notes),
            }
        )
    else:
        out().print(f"{file} is {NAMES[kind]}.", markup=False, soft_wrap=True)
        _show(imported, testbed)
    return NOT_ALL if imported.is_any(Became.REFUSED) else 0


def _read_cpus(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    if not re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text):
        raise RequestError(
            f"{text!r} is not a list of CPUs",
            code="cli.not-a-cpu-list",
            where="--cpus",
            next_step="Write CPU numbers, such as 2,4,6,8.",
        )
    return tuple(int(word) for word in text.split(","))


def _show(imported: Imported, testbed: Path) -> None:
    console = out()
    # What the reader must look at comes first; the document has the order of the file.
    in_order = sorted(imported.rows, key=lambda row: _SHOWN_FIRST.index(row.became))
    console.print(
        make_table(
            [Column("key", is_name=True), "value", Column("became", is_name=True), "here"],
            ([row.key, row.value, str(row.became), row.text] for row in in_order),
        )
    )
    console.print()
    for note in imported.notes:
        console.print(note, markup=False)
    for command in imported.commands:
        console.print(
            f"Instead of {command.instead_of}: {shlex.join(command.words)}", markup=False, soft_wrap=True
        )
    console.print(f"Written: {testbed}.", markup=False, soft_wrap=True)
    if imported.gaps:
        console.print("Before it can be used:")
        for gap in imported.gaps:
            console.print(f"  {gap}", markup=False)
