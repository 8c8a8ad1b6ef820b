# SPDX-License-Identifier: Apache-2.0
"""Exchange: a configuration of the Open Traffic Generator API becomes a testbed file, a command, and a row
for each part of it."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.programs import how_to_get_extra
from evenhand.base.validation.hostile_json import MAX_DEPTH, read_json
from evenhand.exchange.foreign import read_foreign, refuse_if
from evenhand.exchange.nearest_plan import (
    PARTS,
    WITH_NETWORKS,
    FoundPlan,
    Part,
    Version,
    WantedSide,
    nearest_plan,
    try_plan,
)
from evenhand.exchange.otg_flow import OtgFlow, OtgReader, Pattern
from evenhand.exchange.otg_write import NETWORK_STEP
from evenhand.exchange.outcome import (
    Became,
    GivenHardware,
    Imported,
    ImportedCommand,
    ImportedPorts,
    write_testbed,
)
from evenhand.plan import BOTH_DIRECTIONS, SIDES, make_plan
from evenhand.procedure.learning import choose_frame_size

MOST_OCTETS = 4 * 1024 * 1024
MOST_FLOWS = 2
# Parts whose default is no option; any other is missing only where it is refused.
_UDP_PARTS = {"--source-ports": "{}.udp.src_port", "--destination-ports": "{}.udp.dst_port"}


def import_otg(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the configuration, and write down what it is here. It names no device, and nothing of it is run.

    Raises:
        RequestError: It is not such a configuration, or a plan, device or CPU of the user's is wrong.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what="configuration of the Open Traffic Generator API")
    is_json = text.lstrip().startswith("{") or path.suffix.lower() == ".json"
    try:
        document = read_json(text) if is_json else read_yaml(text)
    except ValueError as error:
        raise RequestError(
            f"this file is not valid {'JSON' if is_json else 'YAML'}: {error}",
            code="exchange.not-json" if is_json else "exchange.not-yaml",
            where=str(path),
            next_step="Correct it there.",
        ) from error
    return import_document(path, document, given, plan=plan, testbed=testbed)


def import_document(
    path: Path,
    document: Any,
    given: GivenHardware,
    *,
    plan: str | None,
    testbed: Path,
    kind: str = "otg",
    origin: str = "a configuration of the Open Traffic Generator API",
) -> Imported:
    """The same of a configuration that was read, or made of another tester's file.

    Args:
        origin: What the file is, for the first line of the testbed file.
    """
    flows = document.get("flows") if isinstance(document, dict) else None
    if not isinstance(flows, list) or not flows or not all(isinstance(flow, dict) for flow in flows):
        raise RequestError(
            "this configuration has no flows, so it is not one of the Open Traffic Generator API",
            code="exchange.no-flows",
            where=str(path),
            next_step="Name a file with `ports` and `flows`; other files of JSON cannot be read.",
        )
    reader = OtgReader(path, document)
    _read_ports(reader)
    others = [key for key in document if key not in ("ports", "flows")]
    if others:
        reader.row(", ".join(others), "...", Became.REFUSED, "cannot be represented; only flows are imported")
    if len(flows) > MOST_FLOWS:
        reader.refuse(
            f"flows[{MOST_FLOWS}] ...",
            f"{len(flows) - MOST_FLOWS}",
            "only one flow per direction can be sent",
        )
    read = [OtgFlow(reader, f"flows[{number}]", flow) for number, flow in enumerate(flows[:MOST_FLOWS])]
    if len(read) == MOST_FLOWS:
        check_alike(reader, *read)
    found = find_plan(reader, read, plan) if reader.is_sendable else None
    if found is not None and not _takes_size(reader, read, found):
        found = None
    facts: ImportedPorts = {
        each.sender: {**each.macs, **({"vlan": (each.tags, "vlan")} if each.tags else {})}
        for each in reversed(read)
    }
    text, gaps = write_testbed(
        origin,
        given,
        ports=facts,
        cpus=(),
        cpus_from="the file names none",
        plan=None if found is None else found.name,
    )
    commands = () if found is None else (_command(read, found, testbed),)
    return Imported(kind=kind, rows=tuple(reader.rows), testbed=text, commands=commands, gaps=gaps)


def _read_ports(reader: OtgReader) -> None:
    """The first port is the left one."""
    ports = reader.document.get("ports", [])
    is_list = isinstance(ports, list) and all(
        isinstance(port, dict) and isinstance(port.get("name"), str) for port in ports
    )
    refuse_if((not is_list, reader.wrong("ports", ports, "a list of ports with names")))
    names = [port["name"] for port in ports]
    unlike = reader.wrong("ports", ", ".join(names), "a list of ports with unlike names")
    refuse_if((len(set(names)) < len(names), unlike))
    reader.ports = dict(zip(names, SIDES, strict=False))
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


def check_alike(reader: OtgReader, first: OtgFlow, second: OtgFlow) -> None:
    """A row for whatever the second flow has otherwise: both directions have one plan, size, rate and
    duration here."""
    if first.direction == second.direction:
        reader.refuse("flows[1]", second.direction, "only one flow per direction can be sent")
        return
    if reader.is_sendable:
        is_same = first.addresses == {"src": second.addresses["dst"], "dst": second.addresses["src"]}
        is_same = is_same or _has_fixed_source([first, second])
        turned = "the addresses of flows[0], exchanged"
        reader.row(
            f"flows[1].ipv{second.version}.src, dst",
            "...",
            Became.MAPPED if is_same else Became.DIFFERS,
            turned,
        )
    if reader.is_sendable:
        _combine_rates(first, second)
    for option in sorted(first.options.keys() | second.options.keys()):
        have, wanted = first.options.get(option), second.options.get(option)
        if have != wanted:
            at = second.at_option.get(option) or _UDP_PARTS.get(option, "").format("flows[1]")
            value = f"{option} {have}" if have else "all ports"
            reader.replace(at, Became.DIFFERS, f"{value}, as flows[0]: both directions have the same")
    if first.version != second.version:
        reader.refuse(
            "flows[1].packet",
            "...",
            "both directions must have the same IP version; for a translator use --plan siit",
        )


def _combine_rates(first: OtgFlow, second: OtgFlow) -> None:
    """One rate for each direction, if they differ and take the same time."""
    option = "--rate"
    rates = {flow.direction: flow.options.get(option) for flow in (first, second)}
    if None in rates.values() or len(set(rates.values())) == 1:
        return
    for flow in (first, second):
        flow.options[option] = "/".join(str(rates[direction]) for direction in BOTH_DIRECTIONS)


def _takes_size(reader: OtgReader, flows: list[OtgFlow], found: FoundPlan) -> bool:
    """False, and other rows, if no test frame has this size: there is no command then. In IPv6, 64 stands
    for the smallest (R5180-10)."""
    places = [flow.at_option["--frame-size"] for flow in flows]
    if not flows[0].options["--frame-size"].isdecimal():
        return True  # a mix, whose sizes were checked
    try:
        size, note = choose_frame_size(found.plan, int(flows[0].options["--frame-size"]))
    except RequestError as error:
        for place in places:
            reader.replace(place, Became.REFUSED, error.what)
        return False
    if note is not None:
        for flow, place in zip(flows, places, strict=True):
            reader.replace(
                place, Became.DIFFERS, f"--frame-size {size}, the smallest of an IPv6 test frame with its tag"
            )
            flow.options["--frame-size"] = str(size)
    return True


def find_plan(reader: OtgReader, flows: list[OtgFlow], plan: str | None) -> FoundPlan | None:
    """The plan that is nearest to the addresses of these flows, with a row for each of them; None if none can
    be near.

    Args:
        plan: The user's choice; None: any.
    """
    flow = flows[0]
    assert flow.version is not None
    left, right = ("src", "dst") if flow.direction == "forward" else ("dst", "src")
    name: dict[Part, str] = {
        "L": f"flows[0].ipv{flow.version}.{left}",
        "R": f"flows[0].ipv{flow.version}.{right}",
    }
    patterns: dict[Part, Pattern] = {"L": flow.addresses[left], "R": flow.addresses[right]}
    has_fixed_source = _has_fixed_source(flows)
    if has_fixed_source:
        patterns = {
            "L": flows[flow.direction == "forward"].addresses["dst"],
            "R": flows[flow.direction != "forward"].addresses["dst"],
        }
    found = _find_networks(patterns, flow.version, plan, has_fixed_source=has_fixed_source)
    if found is None:
        sides = [_wanted(reader, part, name[part], patterns[part], flow.version) for part in PARTS]
        if sides[0] is None or sides[1] is None:
            return None
        found = nearest_plan((sides[0], sides[1]), flow.version, name=plan)
    for part, made in zip(PARTS, found.plan.sides, strict=True):
        host_range = made.host_range
        different = [text for key, text in found.differences.items() if key.split("-")[1] == part]
        pattern, networks = patterns[part], host_range.network_count
        text = (
            "; ".join(different)
            or f"hosts of {found.name}: {host_range.first_address} .. {host_range.last_address}"
        )
        if networks > 1 and pattern.mode != "pseudorandom":
            different.append(text := f"{text}, in {networks} networks; they are drawn, not taken in order")
        reader.row(name[part], pattern.mode, Became.DIFFERS if different else Became.MAPPED, text)
    return found


def _find_networks(
    patterns: Mapping[Part, Pattern], version: Version, plan: str | None, *, has_fixed_source: bool
) -> FoundPlan | None:
    """The plan with one host in each of several networks, if the addresses step from network to network as
    those of that plan do."""
    name = WITH_NETWORKS[version]
    if plan is not None and make_plan(plan).name != name:
        return None
    if not any(each.count > 1 for each in patterns.values()) or not all(
        each.count == 1 or each.step == NETWORK_STEP[version] for each in patterns.values()
    ):
        return None
    left, right = (
        WantedSide(part, _address(patterns[part].first, version), "fixed", None, 0, 0, patterns[part].count)
        for part in PARTS
    )
    found = try_plan(name, (left, right), has_fixed_source=has_fixed_source)
    return found if plan is not None or not found.differences else None


def _has_fixed_source(flows: list[OtgFlow]) -> bool:
    """Whether each direction has one source, and the other one destinations from there on."""
    if len(flows) < MOST_FLOWS:
        return False
    sources, destinations = ([flow.addresses[end] for flow in flows] for end in ("src", "dst"))
    return (
        all(each.count == 1 for each in sources)
        and any(each.count > 1 for each in destinations)
        and all(
            each.count == 1 or each.step == NETWORK_STEP[flow.version or 4]
            for flow, each in zip(flows, destinations, strict=True)
        )
        and [each.first for each in sources] == [each.first for each in reversed(destinations)]
    )


def _address(number: int, version: Version) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)


def _wanted(reader: OtgReader, part: Part, at: str, pattern: Pattern, version: Version) -> WantedSide | None:
    """None, and a row, if no 16 bits of the address are what varies."""
    octets = 4 if version == 4 else 16
    real = _address(pattern.first, version)
    if pattern.count == 1:
        return WantedSide(part, real, "fixed", None, 0, 0, 1)
    behind = next((k for k in range(octets - 1) if pattern.step == 256**k), None)
    number = 0 if behind is None else pattern.first >> (8 * behind) & 0xFFFF
    if behind is None or number + pattern.count - 1 > 0xFFFF:
        reader.refuse(
            at,
            "...",
            "addresses of hosts can only differ in 16 bits, with a step of 1 in one of their octets",
        )
        return None
    return WantedSide(part, real, pattern.mode, octets - 2 - behind, number, number + pattern.count - 1, 1)


def _command(flows: list[OtgFlow], found: FoundPlan, testbed: Path) -> ImportedCommand:
    flow = flows[0]
    name = str(testbed) if not str(testbed).startswith("-") else f"./{testbed}"
    options = [word for pair in flow.options.items() for word in pair]
    direction = [] if len(flows) == MOST_FLOWS else ["--direction", flow.direction]
    words = ("evenhand", "trial", name, "--plan", found.name, *found.options, *options, *direction)
    return ImportedCommand(instead_of="the flows", words=words)


MOST_EVENTS = 200_000
"""Values and beginnings and ends of lists; a configuration has a few hundred."""


def read_yaml(text: str) -> Any:
    """The value. ValueError: it is no YAML, or more than JSON can say; HostError without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise HostError(
            "YAML needs PyYAML, which is not installed",
            code="exchange.yaml-missing",
            where="evenhand[otg]",
            next_step=f"Install it: {how_to_get_extra('otg')}; or write the file as JSON.",
        ) from error
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            starts = isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent)
            depth += starts - isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {event.start_mark.line + 1} has a reference")
            if count > MOST_EVENTS or depth > MAX_DEPTH:
                raise ValueError("it has too many values, or is nested too deeply")
        value = yaml.safe_load(text)
        # A date or a set is no JSON; numbers are checked as those of JSON are.
        return read_json(json.dumps(value))
    except (yaml.YAMLError, RecursionError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
