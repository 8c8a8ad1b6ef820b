# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo`: a DUT set up over SSH, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.cli import dut_by_script
from evenhand.cli.common import JsonOption, err, warn_about, with_options, write_json
from evenhand.cli.dut_by_script import dut_document, is_named, say
from evenhand.cli.nat_options import NatOptions, NicHashOption, StaticNeighborsOption, read_hash_type
from evenhand.dut import DutSetup, describe_setups
from evenhand.dut.linux_nic import NO_WISHES, NicWishes
from evenhand.dut.linux_state import FLOWS, LinuxState
from evenhand.dut.many_routes import costs, many_routes_of
from evenhand.dut.record import Holder, SetupRecord, is_begun, read_held, read_here
from evenhand.dut.setup import DutOnShell, apply, check_dut, undo
from evenhand.dut.ssh import open_shell
from evenhand.rig import DEFAULT_PLAN, TestbedDut, default_plan_of, read_dut
from evenhand.spec.device import read_key
from evenhand.spec.plan import CountOptions, PlanOption

CHECK_EXAMPLE = "Example: evenhand dut check lab.toml"
APPLY_EXAMPLE = (
    "Example: evenhand dut apply lab.toml --plan gateway-v4 --hash type1; later: evenhand dut undo lab.toml"
)
STATUS_EXAMPLE = "Example: evenhand dut status lab.toml"
UNDO_EXAMPLE = "Example: evenhand dut undo lab.toml"

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TESTBED", help="A testbed file whose dut table has ssh, os, left and right; or lab:vm."
    ),
]


def check(testbed: FileArgument, *, json_output: JsonOption = False) -> None:
    """Connect to the DUT, and check whether its interfaces can be set up. Nothing is changed."""
    dut, config = read_dut(str(testbed))
    if is_named(dut):
        dut_by_script.check(dut, config, json_output=json_output)
        return
    with _on(dut, config) as on:
        state, held = check_dut(on)
    document = {
        "command": "dut check",
        **dut_document(on.dut),
        "kernel": on.shell.host.kernel,
        "connection_over": sorted(state.kept_from),
        "interfaces": [_interface(state, name) for name in on.interfaces],
        "held": None if held is None else _held(held),
    }
    if json_output:
        write_json(document)
        return
    say(
        f"{on.destination}: {on.shell.host.kernel}, root, connected over"
        f" {', '.join(sorted(state.kept_from))}, which is never changed."
    )
    width = max(map(len, on.dut.interfaces))
    for place, found in zip(on.dut.interfaces, document["interfaces"], strict=True):
        fields_hashed = (
            ", ".join(f"{flow} {fields}" for flow, fields in found["hash"].items() if fields)
            or found["hash_refusal"]
            or "unknown"
        )
        link = "up" if found["is_up"] else "down"
        carrier = "" if found["has_carrier"] or not found["is_up"] else ", without a link"
        say(f"  {place:<{width}} {found['name']}: {found['mac']}, {link}{carrier}; hash: {fields_hashed}")
    say("It is not set up." if held is None else f"It is set up for {held.plan} by {held.holder.name}.")


@with_options
def apply_setup(
    testbed: FileArgument,
    *,
    plan: PlanOption = None,
    counts: CountOptions,
    nic_hash: NicHashOption = None,
    static_neighbors: StaticNeighborsOption = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            metavar="N",
            min=1,
            max=1024,
            help="Number of queues of each of the two interfaces (ethtool -L).",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="HEX|common|openbsd[:HHHH]",
            help="Hash key of the two NICs, with the length of their own keys (ethtool -X).",
        ),
    ] = None,
    table_queues: Annotated[
        int | None,
        typer.Option(
            "--table-queues",
            metavar="N",
            min=1,
            max=1024,
            help="Spread the NICs' hash table evenly over their first N queues.",
        ),
    ] = None,
    nat: NatOptions,
    json_output: JsonOption = False,
) -> None:
    """Set up the DUT for a plan over SSH, read every change back, and record the previous state for
    undo."""
    names = (plan or default_plan_of(str(testbed)) or DEFAULT_PLAN).split("+")
    if len(names) > 2:
        raise RequestError(
            f"{plan!r} names more than two plans",
            code="cli.too-many-plans",
            where="--plan",
            next_step="Name one plan, or one of IPv4 and one of IPv6.",
        )
    plans = [counts.read(name, where="--plan") for name in names]
    hash_type = read_hash_type(nic_hash)
    nics = NicWishes(
        channels=channels, hash_key=None if key is None else read_key(key), table_queues=table_queues
    )
    dut, config = read_dut(str(testbed))

    def described() -> list[DutSetup]:
        if is_named(dut) and nics != NO_WISHES:
            raise RequestError(
                "queues, key and table of the NICs are set over SSH on plain Linux only",
                code="cli.nic-of-other-system",
                where="--channels, --key, --table-queues",
                next_step="Leave them out, and set them there by hand.",
            )
        setups = describe_setups(
            plans,
            dut.interface_pairs,
            hash_type=hash_type,
            gateway_macs=_split_macs(static_neighbors, len(dut.interface_pairs)),
            nat_wishes=nat.read(),
        )
        for each in plans:
            warn_about(each)
        return setups

    if is_named(dut):
        dut_by_script.apply_setup(dut, config, described(), testbed, json_output=json_output)
        return
    with _on(dut, config) as on:
        setups = described()
        asked = {
            "hosts": counts.hosts,
            "networks": counts.networks,
            "static_neighbors": static_neighbors,
            "channels": channels,
            "key": key,
            "table_queues": table_queues,
            **({"nat": asdict(nat.read())} if any(each.nat is not None for each in plans) else {}),
        }
        for cost in costs(many for each in setups for many in many_routes_of(each)):
            err().print(cost, markup=False, soft_wrap=True)
        record = apply(on, setups, holder=Holder.here("hand"), nics=nics, options=asked)
    if json_output:
        write_json({"command": "dut apply", **dut_document(on.dut), "held": _held(record)})
        return
    say(f"{on.destination} is set up for {record.plan}: {_changes(record)}, each read back.")
    say(f"Restore it with: evenhand dut undo {testbed}")


def status(testbed: FileArgument, *, json_output: JsonOption = False) -> None:
    """Report who set up the DUT, when, and for what. Nothing is changed."""
    dut, config = read_dut(str(testbed))
    if is_named(dut):
        dut_by_script.status(dut, config, testbed, json_output=json_output)
        return
    with _on(dut, config) as on:
        held, is_new = read_held(on.shell), is_begun(on.shell)
        here = read_here(on.destination) if held is None else None
    if json_output:
        write_json(
            {"command": "dut status", **dut_document(on.dut), "held": None if held is None else _held(held)}
        )
    elif held is not None:
        say(f"{on.destination} is set up for {held.plan}: {_changes(held)}.")
        ended = {True: "That process is still running.", False: "That process has ended.", None: ""}[
            held.holder.lives()
        ]
        say(f"It was set up by {held.holder.name}. {ended if held.holder.kind == 'run' else ''}".rstrip())
        say(f"Restore it with: evenhand dut undo {testbed}")
    elif is_new:
        say(f"A set-up of {on.destination} has begun, but nothing has been changed yet.")
    elif here is not None:
        say(
            f"{on.destination} has no record of a set-up, but this machine has one for"
            f" {here.plan}: evenhand dut undo {testbed}"
        )
    else:
        say(f"{on.destination} is not set up.")


def undo_setup(
    testbed: FileArgument,
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also undo the set-up of a run that may still be active, perhaps on another machine.",
        ),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Restore the DUT to the state that was recorded before the set-up, no matter who made it."""
    dut, config = read_dut(str(testbed))
    if is_named(dut):
        dut_by_script.undo_setup(dut, config, json_output=json_output)
        return
    with _on(dut, config) as on:
        record = undo(on, is_forced=force)
    if json_output:
        write_json(
            {
                "command": "dut undo",
                **dut_document(on.dut),
                "undone": None if record is None else _held(record),
            }
        )
    elif record is None:
        say(f"{on.destination} is not set up: there is nothing to restore.")
    else:
        say(f"{on.destination} is restored to its state before {record.plan}: {_changes(record)} undone.")


@contextmanager
def _on(dut: TestbedDut, config: Path | None) -> Iterator[DutOnShell]:
    with open_shell(dut, config=config) as shell:
        yield DutOnShell(dut=dut, shell=shell)


def _split_macs(text: str | None, pairs: int) -> list[tuple[str, str]] | None:
    """Left and right of each pair."""
    if text is None:
        return None
    macs = text.split(",")
    if len(macs) != 2 * pairs:
        raise RequestError(
            f"{text!r} is not {'two' if pairs == 1 else 2 * pairs} MACs",
            code="cli.not-two-macs",
            where="--static-neighbors",
            next_step="Write the MACs of the tester's ports, left and right:"
            " 02:00:00:00:00:01,02:00:00:00:00:02"
            + ("." if pairs == 1 else "; then those of the next engine."),
        )
    return list(zip(macs[::2], macs[1::2], strict=True))


def _interface(state: LinuxState, name: str) -> dict[str, Any]:
    link = state.links[name]
    refusals = [state.hash_refusals[name, flow] for flow in FLOWS if (name, flow) in state.hash_refusals]
    return {
        "name": name,
        "mac": link.mac,
        "is_up": link.is_up,
        "has_carrier": link.has_carrier,
        "hash": {flow: state.hashes.get((name, flow)) for flow in FLOWS},
        "hash_refusal": refusals[0] if refusals else None,
        "channels": state.channels.get(name),
        "hash_key": state.hash_keys.get(name),
        "hash_table": state.hash_tables.get(name),
    }


def _held(record: SetupRecord) -> dict[str, Any]:
    return {
        "plan": record.plan,
        "hash": record.hash_type,
        "by": record.holder.name,
        "kind": record.holder.kind,
        "since": record.holder.since,
        "is_alive": record.holder.lives(),
        "changes": [
            {"name": item.name, "before": item.before, "value": item.wanted} for item in record.changes
        ],
    }


def _changes(record: SetupRecord) -> str:
    count = len(record.changes)
    return "1 change" if count == 1 else f"{format_count(count)} changes"
