# SPDX-License-Identifier: Apache-2.0
"""Exchange: a command line of siitperf: a row for each argument, and the commands that do the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from evenhand.base.errors import RequestError
from evenhand.exchange.outcome import Became, ImportedCommand, ImportedKey
from evenhand.exchange.siitperf_command import STATEFUL, SiitperfCommand
from evenhand.exchange.siitperf_connections import NOT_YET, argument_row, order_of
from evenhand.exchange.siitperf_file import SiitperfFile
from evenhand.exchange.siitperf_ports import FoundPorts
from evenhand.exchange.siitperf_tester import direction_option
from evenhand.exchange.siitperf_traffic import ImportedTraffic
from evenhand.procedure.connection_wish import check_plan_has
from evenhand.procedure.registry import CAPACITY, CONNECTIONS, LATENCY, PDV, THROUGHPUT
from evenhand.spec.plan import read_destination_ports, read_source_ports


def why_not_opened(typed: SiitperfCommand | None, traffic: ImportedTraffic, ports: FoundPorts) -> str:
    """Why the plan cannot have so many connections; empty if it can, or if none are asked for."""
    if typed is None or not traffic.has_state:
        return ""
    given = dict(zip(ports.options[::2], ports.options[1::2], strict=True))
    plan = traffic.plans[0].plan
    source, destination = (given.get(option) for option in ("--source-ports", "--destination-ports"))
    if source is not None:
        plan = replace(plan, source_ports=read_source_ports(source, where="--source-ports"))
    if destination is not None:
        plan = replace(
            plan, destination_ports=read_destination_ports(destination, where="--destination-ports")
        )
    try:
        check_plan_has(plan, typed.arguments["N"])
    except RequestError as error:
        return error.what
    return ""


def command_rows(typed: SiitperfCommand, traffic: ImportedTraffic, why_not: str) -> list[ImportedKey]:
    """Args:
    why_not: What `why_not_opened` says.
    """
    rows: list[ImportedKey] = []
    arguments = typed.arguments
    for key, value in arguments.items():
        became, text = Became.MAPPED, ""
        if key in STATEFUL and traffic.has_state:
            became, text = argument_row(typed, key)
            if key == "N" and why_not:
                became, text = Became.REFUSED, why_not
        elif key in STATEFUL:
            became, text = Became.REFUSED, NOT_YET
        elif not traffic.plans:
            became, text = Became.REFUSED, "no part of this traffic can be sent"
        elif key == "IPv6 frame size":
            text = f"--frame-size {_frame_size(typed, traffic)}"
            if traffic.translation is not None or (len(traffic.versions) > 1 and traffic.has_state):
                text = f"{text}, on the IPv4 side"
                if traffic.share is not None:
                    became = Became.DIFFERS
                    text += (
                        "; the frames of the background have it as well, and are 20 octets longer in siitperf"
                    )
            elif traffic.share is not None:
                became, text = (
                    Became.DIFFERS,
                    f"{text} for both IP versions; siitperf's IPv4 frames are 20 octets shorter",
                )
        elif key == "rate":
            text = f"--rate {value}, per direction"
        elif key == "duration":
            text = f"--duration {value}s"
        elif key == "global timeout":
            text = f"--wait-residual {value}ms"
        elif key in ("n", "m"):
            became, text = _share_row(arguments["n"], arguments["m"], traffic)
        elif key == "delay":
            text = f"--from {value}s"
        elif key == "timestamps":
            text = f"--tagged {value}"
        elif value:
            became, text = (
                Became.REFUSED,
                (
                    "trials are not judged by the delay of each frame; frames that arrive after"
                    " --wait-residual count as lost"
                ),
            )
        else:
            text = "0: packet delay variation, evenhand pdv"
        rows.append(ImportedKey(key=f"<{key}>", value=str(value), became=became, text=text))
    return rows


def _share_row(n: int, m: int, traffic: ImportedTraffic) -> tuple[Became, str]:
    if traffic.has_state and m < n:
        return Became.REFUSED, "there is no background traffic: all frames belong to connections"
    if traffic.share is None:
        return (
            Became.MAPPED,
            "all background: IPv6" if m == 0 else "no background: all frames use the same plan",
        )
    foreground, background = traffic.share
    is_exact = Fraction(foreground, foreground + background) == Fraction(m, n)
    text = f"--mix {foreground}/{background}"
    return (Became.MAPPED, text) if is_exact else (Became.DIFFERS, f"{text}, the closest share")


def _frame_size(typed: SiitperfCommand, traffic: ImportedTraffic) -> int:
    """Octets with FCS. RequestError if siitperf would refuse it."""
    size = typed.arguments["IPv6 frame size"]
    if traffic.versions == (4,):
        return size - 20
    if size > 1518:
        raise RequestError(
            f"{size} octets: siitperf accepts more than 1518 only for pure IPv4 traffic",
            code="exchange.frame-too-large",
            where="--command",
            next_step="Write 84 to 1518.",
        )
    if traffic.has_state and len(traffic.versions) > 1:
        return size - 20
    if traffic.translation is not None:
        # The smallest of a mix is that of its IPv6 frames.
        return max(size - 20, 84 if traffic.share is not None else 0)
    return size


def commands_of(
    file: SiitperfFile,
    typed: SiitperfCommand | None,
    traffic: ImportedTraffic,
    ports: FoundPorts,
    testbed: Path,
    why_not: str,
) -> list[ImportedCommand]:
    """Those that can run here.

    Args:
        why_not: What `why_not_opened` says.
    """
    options: list[str] = ["--plan", "+".join(found.name for found in traffic.plans)]
    if traffic.share is not None:
        options += ["--mix", f"{traffic.share[0]}/{traffic.share[1]}"]
    options += [*traffic.plans[0].options, *ports.options]
    name = str(testbed) if not str(testbed).startswith("-") else f"./{testbed}"
    if traffic.has_state:
        opening = _opening_commands(file, typed, traffic, options, name)
        if why_not:
            return opening[1:]
        if typed is None or not (file.value("Forward") or file.value("Reverse")):
            return opening
        options += ["--established", str(typed.arguments["N"]), "--establish-rate", str(typed.arguments["R"])]
        after = _load_commands(typed, traffic, [*options, *direction_option(file)], name)
        return [*opening, *after]
    options += direction_option(file)
    if typed is None:
        return [
            ImportedCommand(
                instead_of="binary-rate-alg.sh", words=("evenhand", THROUGHPUT.name, name, *options)
            )
        ]
    return _load_commands(typed, traffic, options, name)


def _opening_commands(
    file: SiitperfFile, typed: SiitperfCommand | None, traffic: ImportedTraffic, options: list[str], name: str
) -> list[ImportedCommand]:
    """What opens connections and validates them, then what finds out how many there can be."""
    common = [*options] if typed is None else [*options, *_size_and_wait(typed, traffic)]
    number = [] if typed is None else ["--connections", str(typed.arguments["N"])]
    order = [] if order_of(file) == "pseudorandom" else ["--order", order_of(file)]
    return [
        ImportedCommand(
            instead_of="binary-rate-alg.sh-R",
            words=("evenhand", CONNECTIONS.name, name, *number, *order, *common),
        ),
        ImportedCommand(instead_of="cttc.sh", words=("evenhand", CAPACITY.name, name, *common)),
    ]


def _size_and_wait(typed: SiitperfCommand, traffic: ImportedTraffic) -> list[str]:
    timeout_ms = typed.arguments["global timeout"]
    wait = [] if timeout_ms == 2000 else ["--wait-residual", f"{timeout_ms}ms"]
    return ["--frame-size", str(_frame_size(typed, traffic)), *wait]


def _load_commands(
    typed: SiitperfCommand, traffic: ImportedTraffic, options: list[str], name: str
) -> list[ImportedCommand]:
    """What offers a load."""
    arguments = typed.arguments
    load = ["--rate", str(arguments["rate"]), "--duration", f"{arguments['duration']}s"]
    common = [*options, *_size_and_wait(typed, traffic)]
    search_of = "binary-rate-alg.sh-sf" if traffic.has_state else "binary-rate-alg.sh"
    if typed.program == "siitperf-lat":
        more = [
            "--from",
            f"{arguments['delay']}s",
            "--tagged",
            str(arguments["timestamps"]),
            "--repetitions",
            "1",
        ]
        return [
            ImportedCommand(
                instead_of="siitperf-lat", words=("evenhand", LATENCY.name, name, *load, *more, *common)
            )
        ]
    if typed.program == "siitperf-pdv" and not arguments["frame timeout"]:
        return [
            ImportedCommand(
                instead_of="siitperf-pdv",
                words=("evenhand", PDV.name, name, *load, "--repetitions", "1", *common),
            )
        ]
    search = ("--final-duration", f"{arguments['duration']}s")
    return [
        ImportedCommand(instead_of=typed.program, words=("evenhand", "trial", name, *load, *common)),
        ImportedCommand(instead_of=search_of, words=("evenhand", THROUGHPUT.name, name, *search, *common)),
    ]
