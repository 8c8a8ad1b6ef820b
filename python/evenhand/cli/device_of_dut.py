# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict --dut TESTBED`: the device is the DUT itself, as its drivers report it over SSH."""

from __future__ import annotations

from pathlib import Path

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.units import parse_rate
from evenhand.dut.facts import read_facts
from evenhand.dut.facts_interface import comes_to, device_of
from evenhand.dut.ssh import open_shell
from evenhand.plan import AddressPlan, Direction
from evenhand.predict import DeviceModel
from evenhand.spec.device import DeviceOptions

WHERE = "--dut"


def device_of_dut(
    file: Path,
    options: DeviceOptions,
    elements: int | None,
    plan: AddressPlan,
    directions: tuple[Direction, ...],
) -> tuple[DeviceModel, str]:
    """The queues of the interface that each direction comes to, and whose they are, for people.

    Raises:
        RequestError: Another option says what the DUT is asked for; its driver does not report it; or
            its interfaces hash differently, so that both directions are not one device.
        HostError: It cannot be reached.
    """
    given = {
        "--elements": elements is not None,
        "--table": options.table is not None,
        "--table-size": options.table_size is not None,
        "--key": options.key is not None,
        "--symmetric": options.symmetric,
        "--hash": options.hash_type is not None,
    }
    both = [name for name, is_given in given.items() if is_given]
    if both:
        raise RequestError(
            f"{' and '.join(both)} given together with --dut, which reads them from the DUT",
            code="cli.options-exclude-each-other",
            where=f"{WHERE}, {', '.join(both)}",
            next_step=f"Omit {' and '.join(both)}, or --dut.",
        )
    dut, config = rig.read_dut(str(file))
    if dut.os not in (None, "linux"):
        raise RequestError(
            f"the table and the key cannot be read on {dut.os}",
            code="cli.dut-not-readable",
            where=f"{file}: dut.os",
            next_step="Give what you know about it: --table, --key, --hash.",
        )
    if plan.other is not None:
        raise RequestError(
            f"{plan.title} has two IP versions",
            code="cli.two-versions",
            where="PLAN",
            next_step="Predict one of them at a time.",
        )
    with open_shell(dut, config=config) as shell:
        facts = read_facts(shell, dut.interfaces, where=f"{file}: dut.ssh, {dut.ssh}")
    rate_fps = None if options.rate is None else parse_rate(options.rate, where="--rate")
    of_directions = [
        [
            (interface["name"], device_of(interface, version, where=f"{WHERE} {file}", rate_fps=rate_fps))
            for place, interface in facts["interfaces"].items()
            if comes_to(direction, place)
        ]
        for direction in directions
        for version in [plan.stream_of(direction).sent.ip_version]
    ]
    names = [name for each in of_directions for name, _ in each]
    models = [model for each in of_directions for _, model in each]
    if any(model != models[0] for model in models):
        differ = (
            ", ".join(
                what
                for what in ("table", "key", "hash_type", "symmetric")
                if len({getattr(model, what) for model in models}) > 1
            )
            or "number of queues"
        )
        found = f"{' and '.join(names)} of the DUT choose queues differently ({differ})"
        if any(model != each[0][1] for each in of_directions for _, model in each):
            raise RequestError(
                f"{found}, so the pairs of the engines are not one device",
                code="cli.pairs-differ",
                where=f"{WHERE} {file}",
                next_step="Give them the same settings on the DUT, or name a testbed file with one of the"
                " pairs.",
            )
        raise RequestError(
            f"{found}, so each direction needs a prediction of its own",
            code="cli.directions-differ",
            where=f"{WHERE} {file}",
            next_step="Predict them separately: --direction forward, then --direction reverse.",
        )
    return models[0], f", as {' and '.join(names)} of the DUT {'has' if len(names) == 1 else 'have'} it"
