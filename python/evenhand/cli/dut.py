# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut`: how the DUT has to be set up. `setup` prints, and touches no device; the others are in
dut_over_ssh.py."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from evenhand.base.errors import HostError, RequestError
from evenhand.cli import dut_over_ssh
from evenhand.cli.common import JsonOption, err, warn_about, with_options, write_json, write_text
from evenhand.cli.nat_options import (
    NatOptions,
    NicHashOption,
    StaticNeighborsOption,
    TranslatorOption,
    read_hash_type,
)
from evenhand.cli.plan_argument import NameArgument
from evenhand.cli.verbs import Verbs
from evenhand.dut import OPERATING_SYSTEMS, DutScript, OperatingSystem, Part, describe_setup
from evenhand.dut.systems import System
from evenhand.spec.plan import CountOptions

app = Verbs(
    help="Print the commands that set up a DUT for a plan, or set it up over SSH and restore it.",
    no_args_is_help=True,
)
app.command("check", epilog=dut_over_ssh.CHECK_EXAMPLE)(dut_over_ssh.check)
app.command("apply", epilog=dut_over_ssh.APPLY_EXAMPLE)(dut_over_ssh.apply_setup)
app.command("status", epilog=dut_over_ssh.STATUS_EXAMPLE)(dut_over_ssh.status)
app.command("undo", epilog=dut_over_ssh.UNDO_EXAMPLE)(dut_over_ssh.undo_setup)

_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9._/:-]*")


@app.command(
    "setup",
    epilog="Example: evenhand dut setup gateway-v4 --os linux --left eth1 --right eth2 --hash type1 | ssh"
    " root@router sh -e",
)
@with_options
def setup(
    name: NameArgument,
    *,
    system: Annotated[
        System, typer.Option("--os", metavar="|".join(get_args(System)), help="Operating system of the DUT.")
    ],
    left: Annotated[
        str | None,
        typer.Option(
            "--left",
            metavar="IF",
            help="The DUT's interface to the tester's left port. Required for every system.",
        ),
    ] = None,
    right: Annotated[
        str | None,
        typer.Option(
            "--right",
            metavar="IF",
            help="The DUT's interface to the tester's right port. Required for every system.",
        ),
    ] = None,
    counts: CountOptions,
    nic_hash: NicHashOption = None,
    static_neighbors: StaticNeighborsOption = None,
    translator: TranslatorOption = None,
    nat: NatOptions,
    only: Annotated[
        Part | None,
        typer.Option(
            "--only",
            metavar="|".join(get_args(Part)),
            help="Print only this part, for a DUT that already has the others.",
        ),
    ] = None,
    routes_in: Annotated[
        Path | None,
        typer.Option(
            "--routes-in",
            metavar="FOLDER",
            help="Write the files of routes that the script needs beside it into this folder: for a plan with"
            " more than 4,096 routes on a side.",
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Print the commands that undo the set-up, in reverse order.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Print the commands that set up a DUT for a plan: addresses, routes, forwarding, neighbour limits, hash,
    translation. None of them is run."""
    plan = counts.read(name)
    chosen = OPERATING_SYSTEMS[system]
    script = DutScript(
        setup=describe_setup(
            plan,
            left=_check_interface(left, "left", chosen),
            right=_check_interface(right, "right", chosen),
            hash_type=read_hash_type(nic_hash),
            gateway_macs=_split_macs(static_neighbors),
            translator=translator,
            nat_wishes=nat.read(),
        ),
        system=chosen,
        is_undo=undo,
        only=only,
    )
    files = write_routes(script, routes_in)
    if not undo:
        warn_about(plan)
    if json_output:
        write_json({**_describe(script, system), "files": [str(path) for path in files]})
    else:
        for path in files:
            err().print(f"Written for the script: {path}", markup=False, soft_wrap=True)
        write_text(script.text())


def _check_interface(name: str | None, side: str, system: OperatingSystem) -> str:
    """A name that could be one. There is no default: commands for a guessed interface may cut the DUT off."""
    option, example = f"--{side}", system.interfaces[side == "right"]
    if name is None:
        raise RequestError(
            f"the {side} interface of the DUT is missing",
            code="cli.interface-missing",
            where=option,
            next_step="Every system needs --left and --right. Name the interface as the DUT"
            f" does; on {system.title}, for example, {option} {example}.",
        )
    if not _INTERFACE.fullmatch(name) or len(name) > system.longest_interface:
        raise RequestError(
            f"{name!r} is not an interface name on {system.title}",
            code="cli.not-an-interface-name",
            where=option,
            next_step=f"Use up to {system.longest_interface} letters, digits and ._/:-, beginning"
            f" with a letter, such as {example}.",
        )
    return name


def _split_macs(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    left, comma, right = text.partition(",")
    if not comma or "," in right:
        raise RequestError(
            f"{text!r} is not two MACs",
            code="cli.not-two-macs",
            where="--static-neighbors",
            next_step="Write the MACs of the tester's ports, left and right:"
            " 02:00:00:00:00:01,02:00:00:00:00:02.",
        )
    return left, right


def _describe(script: DutScript, system: str) -> dict[str, Any]:
    setup = script.setup
    return {
        "command": "dut setup",
        "plan": setup.plan.title,
        "os": system,
        "is_undo": script.is_undo,
        "only": script.only,
        "left": setup.links[0].interface,
        "right": setup.links[1].interface,
        "hash": setup.hash_type,
        **({} if setup.translation is None else {"translator": setup.translator}),
        **({} if setup.plan.nat is None else {"nat": asdict(setup.nat_wishes)}),
        "dut_neighbors": setup.neighbor_entries,
        "warnings": script.warnings,
        "notes": script.notes(),
        "commands": [{"command": c.command, "purpose": c.purpose} for c in script.commands()],
    }


def write_routes(script: DutScript, folder: Path | None) -> list[Path]:
    """Write them, over those of a script before; what was written.

    Args:
        folder: As it was asked for.

    Raises:
        RequestError: The script needs files, and no folder is named; or the other way round; or there is no
            such folder.
        HostError: They cannot be written.
    """
    files = script.files
    if files and folder is None:
        raise RequestError(
            f"the routes of {script.setup.plan.title} are too many for a script, and go into files beside it",
            code="cli.routes-in-missing",
            where="--routes-in",
            next_step="Name a folder for them: --routes-in .",
        )
    if folder is None:
        return []
    if not files:
        raise RequestError(
            "this script needs no file of routes",
            code="cli.routes-in-not-needed",
            where="--routes-in",
            next_step="Omit it: up to 4,096 routes on a side are in the script itself.",
        )
    if not folder.is_dir():
        raise RequestError(
            f"there is no folder {folder}",
            code="cli.routes-in-no-folder",
            where="--routes-in",
            next_step="Make it first, or name another one.",
        )
    written = []
    for file in files:
        path = folder / file.name
        try:
            with path.open("w", encoding="ascii") as stream:
                stream.writelines(file.lines())
        except OSError as error:
            raise HostError(
                f"the file of routes cannot be written: {error.strerror}",
                code="cli.file-not-writable",
                where=str(path),
                next_step="Name another folder with --routes-in.",
            ) from error
        written.append(path)
    return written
