# SPDX-License-Identifier: Apache-2.0
"""Exchange: a configuration of the Open Traffic Generator API becomes a testbed file, a command, and a row
for each part of it."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from evenhand.base.errors import RequestError
from evenhand.base.validation.hostile_json import read_json
from evenhand.exchange.foreign import read_foreign
from evenhand.exchange.otg_flow import OtgFlow, OtgReader, Pattern
from evenhand.exchange.outcome import Became, Imported, ImportedCommand
from evenhand.exchange.siitperf_file import PARTS, Part
from evenhand.exchange.siitperf_plan import FoundPlan, Version, WantedSide, nearest_plan
from evenhand.exchange.testbed_text import GivenHardware, ImportedPort, write_testbed
from evenhand.plan import SIDES, SideName

MOST_OCTETS = 4 * 1024 * 1024
MOST_FLOWS = 2


def import_otg(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the configuration, and write down what it is here. It names no device, and nothing of it is run.

    Raises:
        RequestError: It is not such a configuration, or a plan, device or CPU of the user's is wrong.
    """
    try:
        document = read_json(
            read_foreign(
                path, most_octets=MOST_OCTETS, what="configuration of the Open Traffic Generator API"
            )
        )
    except ValueError as error:
        raise RequestError(
            f"this file is not valid JSON: {error}",
            code="exchange.not-json",
            where=str(path),
            next_step="Correct it there.",
        ) from error
    flows = document.get("flows") if isinstance(document, dict) else None
    if not isinstance(flows, list) or not flows or not all(isinstance(flow, dict) for flow in flows):
        raise RequestError(
            "this configuration has no flows",
            code="exchange.no-flows",
            where=str(path),
            next_step="Name a file with `ports` and `flows`.",
        )
    reader = OtgReader(path, document)
    left = _read_ports(reader)
    others = [key for key in document if key not in ("ports", "flows")]
    if others:
        reader.row(", ".join(others), "...", Became.REFUSED, "cannot be represented; only flows are imported")
    if len(flows) > MOST_FLOWS:
        reader.refuse(
            f"flows[{MOST_FLOWS}] ...",
            f"{len(flows) - MOST_FLOWS}",
            "only one flow per direction can be sent",
        )
    read = [OtgFlow(reader, f"flows[{number}]", flow, left) for number, flow in enumerate(flows[:MOST_FLOWS])]
    if len(read) == MOST_FLOWS:
        _check_alike(reader, *read)
    found = _find(reader, read, plan) if reader.is_sendable else None
    facts: dict[SideName, ImportedPort] = {each.sender: each.macs for each in reversed(read)}
    written = write_testbed(
        "a configuration of the Open Traffic Generator API",
        given,
        ports=facts,
        cpus=(),
        cpus_from="the file names none",
        plan=None if found is None else found.name,
    )
    commands = () if found is None else (_command(read, found, testbed),)
    return Imported(
        kind="otg", rows=tuple(reader.rows), testbed=written.text, commands=commands, gaps=written.gaps
    )


def _read_ports(reader: OtgReader) -> str | None:
    """The name of the first port, which is the left one."""
    ports = reader.document.get("ports", [])
    if not isinstance(ports, list) or not all(
        isinstance(port, dict) and isinstance(port.get("name"), str) for port in ports
    ):
        raise reader.wrong("ports", ports, "a list of ports with names")
    for number, (side, port) in enumerate(zip(SIDES, ports, strict=False)):
        reader.row(f"ports[{number}].name", port["name"], Became.MAPPED, side)
        others = sorted(port.keys() - {"name"})
        if others:
            reader.row(
                f"ports[{number}].{', '.join(others)}",
                "...",
                Became.MEANINGLESS,
                "ports are named by --left and --right only",
            )
    if len(ports) > len(SIDES):
        reader.row(
            f"ports[{len(SIDES)}] ...", f"{len(ports) - len(SIDES)}", Became.REFUSED, "a tester has two ports"
        )
    return ports[0]["name"] if ports else None


def _check_alike(reader: OtgReader, first: OtgFlow, second: OtgFlow) -> None:
    """Both directions have one plan, size, rate and duration here."""
    if first.direction == second.direction:
        reader.refuse("flows[1]", second.direction, "only one flow per direction can be sent")
        return
    if reader.is_sendable:
        is_same = first.addresses == {"src": second.addresses["dst"], "dst": second.addresses["src"]}
        turned = "the addresses of flows[0], exchanged"
        reader.row(
            f"flows[1].ipv{second.version}.src, dst",
            "...",
            Became.MAPPED if is_same else Became.DIFFERS,
            turned,
        )
    if first.options != second.options:
        reader.row("flows[1]", "...", Became.DIFFERS, "size, rate, duration and ports are those of flows[0]")
    if first.version != second.version:
        reader.refuse(
            "flows[1].packet",
            "...",
            "both directions must have the same IP version; for a translator use --plan siit",
        )


def _find(reader: OtgReader, flows: list[OtgFlow], plan: str | None) -> FoundPlan | None:
    flow = flows[0]
    assert flow.version is not None
    left, right = ("src", "dst") if flow.direction == "forward" else ("dst", "src")
    name: dict[Part, str] = {
        "L": f"flows[0].ipv{flow.version}.{left}",
        "R": f"flows[0].ipv{flow.version}.{right}",
    }
    sides = [
        _wanted(reader, "L", name["L"], flow.addresses[left], flow.version),
        _wanted(reader, "R", name["R"], flow.addresses[right], flow.version),
    ]
    if sides[0] is None or sides[1] is None:
        return None
    found = nearest_plan((sides[0], sides[1]), flow.version, name=plan)
    for part, made in zip(PARTS, found.plan.sides, strict=True):
        host_range = made.host_range
        different = [text for key, text in found.differences.items() if key.split("-")[1] == part]
        text = (
            "; ".join(different)
            or f"hosts of {found.name}: {host_range.first_address} .. {host_range.last_address}"
        )
        reader.row(
            name[part],
            flow.addresses[left if part == "L" else right].mode,
            Became.DIFFERS if different else Became.MAPPED,
            text,
        )
    return found


def _wanted(reader: OtgReader, part: Part, at: str, pattern: Pattern, version: Version) -> WantedSide | None:
    """None, and a row, if no 16 bits of the address are what varies."""
    octets = 4 if version == 4 else 16
    real = ipaddress.IPv4Address(pattern.first) if version == 4 else ipaddress.IPv6Address(pattern.first)
    if pattern.count == 1:
        return WantedSide(part, real, "fixed", None, 0, 0, 1)
    behind = next((k for k in range(octets - 1) if pattern.step == 256**k), None)
    number = 0 if behind is None else pattern.first >> (8 * behind) & 0xFFFF
    if behind is None or number + pattern.count - 1 > 0xFFFF:
        reader.refuse(at, "...", "addresses of hosts can only differ in 16 bits")
        return None
    return WantedSide(part, real, pattern.mode, octets - 2 - behind, number, number + pattern.count - 1, 1)


def _command(flows: list[OtgFlow], found: FoundPlan, testbed: Path) -> ImportedCommand:
    flow = flows[0]
    name = str(testbed) if not str(testbed).startswith("-") else f"./{testbed}"
    options = [word for pair in flow.options.items() for word in pair]
    direction = [] if len(flows) == MOST_FLOWS else ["--direction", flow.direction]
    words = ("evenhand", "trial", name, "--plan", found.name, *found.options, *options, *direction)
    return ImportedCommand(instead_of="the flows", words=words)
