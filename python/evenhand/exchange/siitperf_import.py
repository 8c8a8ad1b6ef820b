# SPDX-License-Identifier: Apache-2.0
"""Exchange: a siitperf.conf, and a command line of siitperf, become a testbed file, commands, and a row for
each key and argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from evenhand.exchange.nearest_plan import PARTS
from evenhand.exchange.outcome import GivenHardware, Imported, ImportedCommand, ImportedPorts, write_testbed
from evenhand.exchange.siitperf_read import KEYS, SiitperfCommand, is_own_mac, read_command, read_siitperf
from evenhand.exchange.siitperf_table import (
    INITIATOR_ON_THE_RIGHT,
    MACS,
    NOT_YET,
    OF_CONNECTIONS,
    ORDERS,
    SiitperfReading,
    row_of,
)
from evenhand.exchange.siitperf_traffic import ports_of, traffic_of
from evenhand.procedure.registry import CAPACITY, CONNECTIONS, LATENCY, PDV, THROUGHPUT

# Keys whose default decides what is sent, so that they have a row where the file is silent.
_SHOWN_DEFAULTS = (
    *(f"IP-{part}-Vers" for part in PARTS),
    *(f"{way}-var-{port}" for way in ("Fwd", "Rev") for port in ("sport", "dport")),
)


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
    typed = SiitperfCommand("", {})
    if command is not None:
        typed = read_command(command, is_stateful=is_stateful)
    traffic = traffic_of(file, typed.arguments.get("n", 2), typed.arguments.get("m", 2), plan)
    at = SiitperfReading(file, typed, given, traffic, ports_of(file, has_state=traffic.has_state))
    ports: ImportedPorts = {"left": {}, "right": {}}
    for key, (side, name) in MACS.items():
        if file.has(key) and is_own_mac(file.value(key)):
            ports[side][name] = file.value(key), key
    text, gaps = write_testbed(
        "a siitperf.conf",
        given,
        ports=ports,
        cpus=list(dict.fromkeys(at.cpus.values())),
        cpus_from=file.as_written(", ".join(at.cpus)),
        plan=traffic.names if len(traffic.plans) == 1 else None,
    )
    keys = dict.fromkeys((*file.settings, *_SHOWN_DEFAULTS, *(f"<{name}>" for name in typed.arguments)))
    return Imported(
        kind="siitperf",
        rows=tuple(row_of(at, key) for key in keys),
        testbed=text,
        commands=tuple(_commands(at, testbed)),
        gaps=gaps,
        notes=tuple(_notes(at)),
    )


def _commands(at: SiitperfReading, testbed: Path) -> list[ImportedCommand]:
    """Those that can run here."""
    traffic, arguments = at.traffic, at.typed.arguments
    if not traffic.plans:
        return []
    share = "" if traffic.share is None else "--mix {}/{}".format(*traffic.share)
    options = " ".join(("--plan", traffic.names, share, *traffic.plans[0].options, *at.ports.options))
    size = opened = ""
    if arguments:
        wait_ms = arguments["global timeout"]
        size = f"--frame-size {at.frame_size}" + f" --wait-residual {wait_ms}ms" * (wait_ms != 2000)
    if arguments and traffic.has_state:
        opened = f"--established {arguments['N']} --establish-rate {arguments['R']}"
    words = {
        **arguments,
        "opening": f"{options} {size}",
        "common": f"{options} {opened} {at.direction} {size}",
        "order": f"--order {at.order}" * (at.order != ORDERS[-1]),
    }
    name = str(testbed) if not str(testbed).startswith("-") else f"./{testbed}"
    return [
        ImportedCommand(
            instead_of=instead_of or at.typed.program,
            words=("evenhand", verb, name, *template.format(**words).split()),
        )
        for when, instead_of, verb, template in _COMMANDS
        if when(at)
    ]


def _has_load(at: SiitperfReading) -> bool:
    """Whether there is a command line that offers a load; not if all that is sent opens connections."""
    is_sending = at.value("Forward") or at.value("Reverse")
    is_opened = not at.traffic.has_state or (is_sending and not at.why_not_opened)
    return bool(at.typed.arguments and is_opened)


def _is_search(at: SiitperfReading) -> bool:
    """Whether it is one trial of a search: neither of delays, nor of PDV."""
    return _has_load(at) and (
        at.typed.program == "siitperf-tp" or at.typed.arguments.get("frame timeout", 0) > 0
    )


# When; the command of siitperf (none: the one that was typed); the verb, and its words.
_COMMANDS: Sequence[tuple[Callable[[SiitperfReading], object], str, str, str]] = (
    (
        lambda at: at.traffic.has_state and not at.typed.arguments,
        "binary-rate-alg.sh-R",
        CONNECTIONS.name,
        "{order} {opening}",
    ),
    (
        lambda at: at.traffic.has_state and at.typed.arguments and not at.why_not_opened,
        "binary-rate-alg.sh-R",
        CONNECTIONS.name,
        "--connections {N} {order} {opening}",
    ),
    (lambda at: at.traffic.has_state, "cttc.sh", CAPACITY.name, "{opening}"),
    (
        lambda at: not at.traffic.has_state and not at.typed.arguments,
        "binary-rate-alg.sh",
        THROUGHPUT.name,
        "{common}",
    ),
    (
        lambda at: _has_load(at) and at.typed.program == "siitperf-lat",
        "siitperf-lat",
        LATENCY.name,
        "--rate {rate} --duration {duration}s --from {delay}s --tagged {timestamps} --repetitions 1 {common}",
    ),
    (
        lambda at: _has_load(at) and at.typed.arguments.get("frame timeout") == 0,
        "siitperf-pdv",
        PDV.name,
        "--rate {rate} --duration {duration}s --repetitions 1 {common}",
    ),
    (_is_search, "", "trial", "--rate {rate} --duration {duration}s {common}"),
    (
        lambda at: _is_search(at) and not at.traffic.has_state,
        "binary-rate-alg.sh",
        THROUGHPUT.name,
        "--final-duration {duration}s {common}",
    ),
    (
        lambda at: _is_search(at) and at.traffic.has_state,
        "binary-rate-alg.sh-sf",
        THROUGHPUT.name,
        "--final-duration {duration}s {common}",
    ),
)


def _notes(at: SiitperfReading) -> list[str]:
    """What a reader must know of the whole."""
    traffic = at.traffic
    translation = traffic.plans[0].plan.translation if traffic.plans else None
    keys = [key for key in KEYS if re.fullmatch(OF_CONNECTIONS, key) and at.file.has(key)]
    keys += [f"<{key}>" for key in at.typed.arguments if key in "NMRTD"]
    missing, rest = (
        ("stateful translation", "the IPv6 background traffic")
        if traffic.kind == "rest"
        else ("NAT and its connections", "plain forwarding between the same hosts")
    )
    has_pairs = any(found.plan.pairs > 1 for found in traffic.plans)
    said: list[tuple[object, str]] = [
        (
            at.file.is_mirrored,
            "Left and right are exchanged: plans have IPv6, if they are translated, and the side that opens"
            " connections on the left, so siitperf's left port is the right one here.",
        ),
        (
            traffic.has_state,
            "Each experiment needs an empty table of the DUT: write into the testbed file how it is emptied,"
            ' such as empty_connections = "ssh root@dut conntrack -F" in [dut].',
        ),
        (
            traffic.has_state and not at.typed.arguments,
            "The number of connections and the rate at which they are opened are given on siitperf's command"
            " line (N and R): with --command, the commands contain both.",
        ),
        (
            traffic.kind in ("rest", "background"),
            f"Not imported, as they belong to stateful tests (RFC 9693): {', '.join(keys)}.",
        ),
        (
            traffic.kind in ("rest", "background") and traffic.plans,
            f"Without {missing}, {rest} remains: its results are not comparable with those of siitperf for"
            " this file.",
        ),
        (not traffic.plans, f"No part of this traffic can be sent: {NOT_YET}."),
        (
            at.typed.program not in ("", "siitperf-tp") and has_pairs,
            f"{at.typed.program} sends one address pair regardless of IP-L-var and IP-R-var; Evenhand sends"
            " all of them.",
        ),
    ]
    notes = [text for is_so, text in said if is_so]
    if translation is not None:
        mapping = f" and the mapping {translation.ipv6_hosts_as_ipv4} = {translation.ipv6_hosts}"
        notes.append(
            f"{at.traffic.plans[0].name} has addresses of its own: the DUT must translate with the prefix"
            f" {translation.prefix}{mapping if translation.needs_mapping else ''}."
        )
    for found in traffic.plans:
        dut = " and ".join(str(side.dut[0]) for side in found.plan.sides)
        notes.append(
            f"{found.name} has the DUT at {dut}; to see the whole plan: `evenhand plan show {found.name}`."
        )
    return notes
