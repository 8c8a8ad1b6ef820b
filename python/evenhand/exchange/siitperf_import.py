# SPDX-License-Identifier: Apache-2.0
"""Exchange: a siitperf.conf, and a command line of siitperf, become a testbed file, commands, and a row for
each key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evenhand.exchange.outcome import Imported
from evenhand.exchange.siitperf_command import STATEFUL, SiitperfCommand, read_command
from evenhand.exchange.siitperf_commands import command_rows, commands_of, why_not_opened
from evenhand.exchange.siitperf_connections import (
    INITIATOR_ON_THE_RIGHT,
    NOT_YET,
    STATEFUL_KEYS,
    connection_notes,
)
from evenhand.exchange.siitperf_file import PARTS, SiitperfFile, read_siitperf
from evenhand.exchange.siitperf_keys import KeyRows
from evenhand.exchange.siitperf_plan import SIDE
from evenhand.exchange.siitperf_ports import find_ports
from evenhand.exchange.siitperf_tester import cpu_keys, cpus_of, port_facts
from evenhand.exchange.siitperf_traffic import ImportedTraffic, traffic_of
from evenhand.exchange.testbed_text import GivenHardware, write_testbed


def import_siitperf(
    path: Path, given: GivenHardware, *, command: str | None, plan: str | None, testbed: Path
) -> Imported:
    """Read the file, and write down what it is here. Nothing of it names a device, is run, or reaches DPDK as
    an option.

    Args:
        command: A command line of siitperf; None: that of its search script is taken, with all frames in the
            foreground.
        plan: The user's choice of an address plan; None: the nearest.
        testbed: Where the testbed file will be, for the commands.

    Raises:
        RequestError: The file or the command line is wrong; a plan, device or CPU of the user's is.
    """
    file = read_siitperf(path)
    is_stateful = bool(file.value("Stateful"))
    is_backwards = file.value("IP-L-Vers") == 4 and file.value("IP-R-Vers") == 6
    if file.value("Stateful") == INITIATOR_ON_THE_RIGHT or (is_backwards and not is_stateful):
        file = replace(file, is_mirrored=True)
    typed = None if command is None else read_command(command, is_stateful=is_stateful)
    traffic = traffic_of(file, typed, plan)
    ports = find_ports(file, has_state=traffic.has_state)
    names = tuple(found.name for found in traffic.plans)
    written = write_testbed(
        "a siitperf.conf",
        given,
        ports={SIDE[part]: port_facts(file, part) for part in PARTS},
        cpus=cpus_of(file),
        cpus_from=file.as_written(", ".join(cpu_keys(file))),
        plan=names[0] if len(names) == 1 else None,
    )
    rows = KeyRows(file, given, traffic, ports).all()
    why_not = why_not_opened(typed, traffic, ports)
    if typed is not None:
        rows += command_rows(typed, traffic, why_not)
    commands = () if not traffic.plans else tuple(commands_of(file, typed, traffic, ports, testbed, why_not))
    return Imported(
        kind="siitperf",
        rows=tuple(rows),
        testbed=written.text,
        commands=commands,
        gaps=written.gaps,
        notes=tuple(_notes(file, traffic, typed)),
    )


def _notes(file: SiitperfFile, traffic: ImportedTraffic, typed: SiitperfCommand | None) -> list[str]:
    notes = []
    if file.is_mirrored:
        notes.append(
            "Left and right are exchanged: plans have IPv6, if they are translated, and the side that opens"
            " connections on the left, so siitperf's left port is the right one here."
        )
    if traffic.has_state:
        notes += connection_notes(typed)
    elif traffic.is_stateful:
        keys = [key for key in STATEFUL_KEYS if file.has(key)] + [
            f"<{key}>" for key in (typed.arguments if typed else ()) if key in STATEFUL
        ]
        notes.append(f"Not imported, as they belong to stateful tests (RFC 9693): {', '.join(keys)}.")
    if traffic.is_rest and traffic.plans:
        missing = "stateful translation" if traffic.is_translated else "NAT and its connections"
        left = (
            "the IPv6 background traffic"
            if traffic.is_translated
            else "plain forwarding between the same hosts"
        )
        notes.append(
            f"Without {missing}, {left} remains: its results are not comparable with those of"
            " siitperf for this file."
        )
    elif not traffic.plans:
        notes.append(f"No part of this traffic can be sent: {NOT_YET}.")
    if (
        typed is not None
        and typed.program != "siitperf-tp"
        and any(found.plan.pairs > 1 for found in traffic.plans)
    ):
        notes.append(
            f"{typed.program} sends one address pair regardless of IP-L-var and IP-R-var;"
            " Evenhand sends all of them."
        )
    translation = traffic.translation
    if translation is not None:
        mapping = (
            f" and the mapping {translation.ipv6_hosts_as_ipv4} = {translation.ipv6_hosts}"
            if translation.needs_mapping
            else ""
        )
        notes.append(
            f"{traffic.plans[0].name} has addresses of its own: the DUT must translate with the prefix"
            f" {translation.prefix}{mapping}."
        )
    for found in traffic.plans:
        dut = " and ".join(str(side.dut[0]) for side in found.plan.sides)
        notes.append(
            f"{found.name} has the DUT at {dut}; to see the whole plan: `evenhand plan show {found.name}`."
        )
    return notes
