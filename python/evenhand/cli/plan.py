# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan`: what a plan is, and the frames that will be sent."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.new_file import write_new
from evenhand.base.table import Column, Table, make_table
from evenhand.base.units import format_count, is_whole, short_repr
from evenhand.cli import plan_export, prove
from evenhand.cli.common import (
    EngineOption,
    JsonOption,
    NameArgument,
    OptionalNameArgument,
    err,
    out,
    warn_about,
    write_json,
)
from evenhand.cli.options import with_options
from evenhand.cli.verbs import Verbs
from evenhand.plan import (
    SIDES,
    TOPOLOGIES,
    AddressPlan,
    Direction,
    FrameSize,
    HostList,
    PlanSide,
    Traffic,
    describe_mix,
    describe_plan,
    make_plan,
    mix_request,
    whole_octets,
)
from evenhand.report.proof import make_pcap
from evenhand.spec.common_options import DEFAULT_SEED, HostMacSet, HostMacsOption, SeedOption, check_host_macs
from evenhand.spec.frames import FramesOption, VlanOption, read_frames
from evenhand.spec.plan import CountOptions, ModeOptions, ShapeOptions, SourceOptions
from evenhand.trial import EngineSession, find_engine

app = Verbs(help="Show address plans and the frames that they produce.", no_args_is_help=True)


class FrameFormat(StrEnum):
    """How frames are written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PCAP = "pcap"


class OneDirection(StrEnum):
    """Frames are drawn of one direction at a time."""

    FORWARD = "forward"
    REVERSE = "reverse"


@app.command("show", epilog="Example: evenhand plan show gateway-v4 --hosts 1000")
@with_options
def show(name: OptionalNameArgument = None, *, shape: ShapeOptions, json_output: JsonOption = False) -> None:
    """Show addresses, routes and ports of a plan; without PLAN, list all plans."""
    if name is None:
        _list_plans(shape, json_output=json_output)
        return
    plan = shape.read(name)
    warn_about(plan)
    if json_output:
        write_json({"command": "plan show", "plan": plan.title, "address_plan": describe_plan(plan)})
        return
    rows: dict[str, list[str]] = {}
    if plan.left.host_range.network_range is not None:
        rows["networks"] = [format_count(side.host_range.network_count) for side in plan.sides]
        rows["hosts per network"] = [format_count(side.host_range.count) for side in plan.sides]
    rows |= {
        "hosts": [format_count(side.host_range.address_count) for side in plan.sides],
        "first host": [str(side.host_range.first_address) for side in plan.sides],
        "last host": [str(side.host_range.last_address) for side in plan.sides],
        "drawn": [_drawn(side) for side in plan.sides],
        "tester (gateway)": [
            "direct: hosts on the link" if side.gateway is None else str(side.gateway) for side in plan.sides
        ],
        "DUT": [_span(side.dut) for side in plan.sides],
        "DUT's route" if all(side.route_count == 1 for side in plan.sides) else "DUT's routes": [
            "none" if side.gateway is None else f"{_routes(side)} via {side.gateway.ip}"
            for side in plan.sides
        ],
        "DUT's neighbours": [format_count(side.dut_neighbors) for side in plan.sides],
    }
    if any(side.prefixes is not None for side in plan.sides):
        rows["prefixes"] = ["" if side.prefixes is None else side.prefixes.name for side in plan.sides]
    if plan.is_translated:
        rows["IP version"] = [f"IPv{side.ip_version}" for side in plan.sides]
        rows["other side's hosts"] = [
            "their own addresses"
            if side.peers is None
            else f"{side.peers.first_address} .. {side.peers.last_address}"
            for side in plan.sides
        ]
    if plan.translation is not None:
        translation = plan.translation
        rows["DUT translates"] = [
            f"{translation.ipv6_hosts} to {translation.ipv6_hosts_as_ipv4}",
            f"IPv4 hosts to {translation.prefix}",
        ]
    titles = ["", *(side.name for side in plan.sides)]
    shown = ([name, *cells] for name, cells in rows.items())
    console = out()
    console.print(make_table(titles, shown, title=f"{plan.title} ({plan.figure})"))
    console.print(Traffic(plan=plan).lines()[0], markup=False)
    if outside := plan.not_reserved:
        console.print(
            f"Not reserved for benchmarking: {', '.join(outside)}. The testbed file must name their networks"
            " (isolated_networks), and every result has a deviation."
        )
    if plan.fixed_source:
        console.print("Source address of every frame: the first host of its side (--fixed-source).")
    forward, reverse = (format_count(plan.pairs_of(direction)) for direction in ("forward", "reverse"))
    pairs = f"per direction: {forward}" if forward == reverse else f"forward: {forward}, reverse: {reverse}"
    console.print(f"Address pairs {pairs}. Smallest frame: {plan.smallest_frame_size} octets with FCS.")


def _list_plans(shape: ShapeOptions, *, json_output: bool) -> None:
    if shape != ShapeOptions(counts=CountOptions(), modes=ModeOptions(), sources=SourceOptions()):
        raise RequestError(
            "no plan given",
            code="cli.no-plan",
            where="PLAN",
            next_step="`evenhand plan show` lists the plans; write the plan before its options.",
        )
    plans = [make_plan(name) for name in TOPOLOGIES]
    if json_output:
        listed = [
            {
                "plan": plan.title,
                "figure": plan.figure,
                "ip_version": plan.to_document()["ip_version"],
                "is_direct": plan.is_direct,
                "hosts": plan.left.host_range.count,
                "networks": plan.left.host_range.network_count,
                "smallest_frame_size": plan.smallest_frame_size,
            }
            for plan in plans
        ]
        write_json({"command": "plan show", "plans": listed})
        return
    rows = (
        [
            plan.title,
            plan.version_words,
            format_count(plan.left.host_range.count),
            format_count(plan.left.host_range.network_count),
            plan.figure,
        ]
        for plan in plans
    )
    console = out()
    console.print(
        make_table(
            [Column("plan", is_name=True), "IP", "#hosts", "#networks", "from"], rows, title="Address plans"
        )
    )
    console.print(
        "Hosts are counted per network and side. For one plan in full: evenhand plan show PLAN", markup=False
    )


@app.command(
    "frames",
    epilog="Example: evenhand plan frames gateway-v6 --count 3 --seed 7 --format pcap --output frames.pcap",
)
@with_options
def frames(
    name: NameArgument,
    *,
    count: Annotated[int, typer.Option("--count", min=1, max=1_000_000, help="Number of frames.")] = 10,
    seed: SeedOption = DEFAULT_SEED,
    first: Annotated[int, typer.Option("--first", min=0, help="Sequence number of the first frame.")] = 0,
    numbers: Annotated[
        str | None,
        typer.Option(
            "--numbers",
            metavar="N,N-N,...",
            help="These frames instead, such as the lost ones of a trial: 3,17,20-25.",
        ),
    ] = None,
    direction: Annotated[
        OneDirection, typer.Option("--direction", help="forward: left to right; reverse: back.")
    ] = OneDirection.FORWARD,
    shape: ShapeOptions,
    host_macs: HostMacsOption = HostMacSet.PORT,
    frame_size: FramesOption = None,
    vlan: VlanOption = None,
    frame_format: Annotated[FrameFormat | None, typer.Option("--format", help="Default: table.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")
    ] = None,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show the frames of a plan as the engine will send them. Nothing is sent."""
    if json_output:
        _refuse_beside_json(frame_format, output)
    chosen_format = frame_format or FrameFormat.TABLE
    if chosen_format is FrameFormat.TABLE and output is not None:
        raise RequestError(
            "a table is meant for a terminal, not for a file",
            code="cli.format-needs-a-terminal",
            where="--output",
            next_step="Add --format csv, jsonl or pcap.",
        )
    if chosen_format is FrameFormat.PCAP and output is None and sys.stdout.isatty():
        raise RequestError(
            "pcap is not text, so it cannot be written to a terminal",
            code="cli.format-needs-a-file",
            where="--format pcap",
            next_step="Add --output FILE.",
        )
    plan = shape.read(name)
    check_host_macs(host_macs, plan)
    vlans = rig.parse_vlans(vlan or "none", where="--vlan")
    tags = vlans["right" if direction is OneDirection.REVERSE else "left"]
    size, note = read_frames(plan, frame_size, tag_octets=rig.tag_octets(dict.fromkeys(SIDES, tags)))
    if note is not None:
        err().print(note)
    drawn = ask_for_frames(
        find_engine(engine),
        plan,
        size=size,
        seed=seed,
        direction="reverse" if direction is OneDirection.REVERSE else "forward",
        ranges=[(first, count)] if numbers is None else read_numbers(numbers),
        host_macs=host_macs,
        vlans=tags,
    )
    if json_output:
        write_json(
            {
                "command": "plan frames",
                "plan": plan.title,
                "address_plan": describe_plan(plan),
                "frame_size": whole_octets(size),
                "mix": describe_mix(plan, size),
                "vlan": list(tags),
                "seed": seed,
                "direction": direction.value,
                "frames": drawn,
            }
        )
    elif chosen_format is FrameFormat.TABLE:
        out().print(_frames_table(drawn))
    else:
        _write(_encode(drawn, chosen_format), output)


def _refuse_beside_json(frame_format: FrameFormat | None, output: Path | None) -> None:
    """RequestError for what --json would leave without effect."""
    for option, given in (("--format", frame_format), ("--output", output)):
        if given is not None:
            raise RequestError(
                f"--json writes its document to stdout, so {option} would have no effect",
                code="cli.options-exclude-each-other",
                where=f"--json, {option}",
                next_step="Give only one of them; `--json > FILE` writes a file.",
            )


def ask_for_frames(
    engine: Path,
    plan: AddressPlan,
    *,
    size: FrameSize,
    seed: int,
    direction: Direction,
    ranges: Sequence[tuple[int, int]],
    host_macs: HostMacSet = HostMacSet.PORT,
    vlans: rig.Vlans = (),
) -> list[dict[str, Any]]:
    """The engine's preview: the draw exists once, in the engine, so what is shown is what will be sent. MACs
    of ports are unknown: 0.

    Args:
        ranges: First number and count of each.
    """
    tags: dict[str, Any] = {"vlan": list(vlans)} if vlans else {}
    drawn: list[dict[str, Any]] = []
    with EngineSession([engine]) as session:
        for first, count in ranges:
            reply = session.request(
                "frames",
                plan=plan.to_request(),
                frame_size=whole_octets(size),
                **mix_request(plan, size),
                seed=seed,
                direction=direction,
                first=first,
                count=count,
                host_macs=host_macs.value,
                **tags,
            )
            drawn += reply["frames"]
    return drawn


MOST_FRAMES = 1_000_000


def read_numbers(text: str) -> list[tuple[int, int]]:
    """First number and count of each part of `3,17,20-25`. RequestError for what is no list of numbers."""
    ranges = []
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not is_whole(first) or (dash and not (is_whole(last) and int(last) >= int(first))):
            raise RequestError(
                f"{short_repr(part)} is no number of a frame, nor two of them from the lower to the higher",
                code="cli.not-frame-numbers",
                where="--numbers",
                next_step="Write numbers and ranges: 3,17,20-25.",
            )
        ranges.append((int(first), int(last or first) - int(first) + 1))
    if sum(count for _, count in ranges) > MOST_FRAMES:
        raise RequestError(
            f"more than {format_count(MOST_FRAMES)} frames",
            code="cli.too-many-frames",
            where="--numbers",
            next_step="Name fewer.",
        )
    return ranges


def _span(several: Sequence[object]) -> str:
    """One, or the first and the last of many."""
    return str(several[0]) if len(several) == 1 else f"{several[0]} .. {several[-1]} ({len(several)})"


def _routes(side: PlanSide) -> str:
    if side.prefixes is None:
        return _span(side.routes)
    found = side.prefixes.to_document()
    return f"{found['first']} .. {found['last']} ({side.prefixes.count:,})"


def _drawn(side: PlanSide) -> str:
    if isinstance(side.host_range, HostList) and side.host_range.mode == "pseudorandom":
        each = "range" if side.prefixes is None else "prefix"
        return f"{side.host_range.mode}, each {each if side.host_range.choose == 'entry' else 'host'} alike"
    network_range = side.host_range.network_range
    if network_range is None or network_range.mode == side.host_range.mode:
        return side.host_range.mode
    return f"hosts {side.host_range.mode}, networks {network_range.mode}"


def _frames_table(drawn: list[dict[str, Any]]) -> Table:
    rows = (
        [
            str(frame["sequence"]),
            frame["source"],
            str(frame["source_port"]),
            frame["destination"],
            str(frame["destination_port"]),
            frame["octets"],
        ]
        for frame in drawn
    )
    source, destination = (Column(end, is_name=True) for end in ("source", "destination"))
    return make_table(["#sequence", source, "#port", destination, "#port", "octets without FCS"], rows)


def _encode(drawn: list[dict[str, Any]], frame_format: FrameFormat) -> bytes:
    if frame_format is FrameFormat.PCAP:
        return make_pcap(bytes.fromhex(frame["octets"]) for frame in drawn)
    if frame_format is FrameFormat.JSONL:
        return "".join(json.dumps(frame, separators=(",", ":")) + "\n" for frame in drawn).encode()
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(drawn[0]) if drawn else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(drawn)
    return text.getvalue().encode()


def _write(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    write_new(output, content, where=str(output))


app.command("prove", epilog=prove.EXAMPLE)(prove.prove)
app.command("export", epilog=plan_export.EXAMPLE)(plan_export.export_plan)


@app.command(
    "dissector", epilog="Example: evenhand plan dissector > ~/.local/lib/wireshark/plugins/evenhand.lua"
)
def dissector() -> None:
    """Print a Lua dissector with which Wireshark and tshark show number, direction, stream and time of test
    frames, whatever their UDP ports are."""
    out().file.write((files("evenhand.plan") / "evenhand.lua").read_text(encoding="utf-8"))
