# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan frames`: the frames that will be sent."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.new_file import write_new
from evenhand.base.table import Column, Table, make_table
from evenhand.base.units import format_count, is_whole, short_repr
from evenhand.cli.common import EngineOption, JsonOption, err, out, with_options, write_json
from evenhand.cli.plan_argument import NameArgument
from evenhand.plan import (
    SIDES,
    AddressPlan,
    Direction,
    FrameSize,
    HostMacs,
    SideName,
    describe_mix,
    describe_plan,
    mix_request,
    sending_side,
    whole_octets,
)
from evenhand.report.proof import make_pcap
from evenhand.spec.common_options import DEFAULT_SEED, HostMacsOption, SeedOption, check_host_macs
from evenhand.spec.frames import FramesOption, VlanOption, read_frames
from evenhand.spec.plan import ShapeOptions
from evenhand.trial import EngineSession, find_engine

EXAMPLE = "Example: evenhand plan frames gateway-v6 --count 3 --seed 7 --format pcap --output frames.pcap"


FrameFormat = Literal["table", "csv", "jsonl", "pcap"]


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
        Direction, typer.Option("--direction", help="forward: left to right; reverse: back.")
    ] = "forward",
    shape: ShapeOptions,
    host_macs: HostMacsOption = "port",
    frame_size: FramesOption = None,
    vlan: VlanOption = None,
    testbed: Annotated[
        Path | None,
        typer.Option(
            "--testbed",
            metavar="FILE",
            help="Show frames as the ports of this testbed file send them: in their VLAN tags and tunnel,"
            " with the MACs that the file gives.",
        ),
    ] = None,
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
    chosen_format = frame_format or "table"
    if chosen_format == "table" and output is not None:
        raise RequestError(
            "a table is meant for a terminal, not for a file",
            code="cli.format-needs-a-terminal",
            where="--output",
            next_step="Add --format csv, jsonl or pcap.",
        )
    if chosen_format == "pcap" and output is None and sys.stdout.isatty():
        raise RequestError(
            "pcap is not text, so it cannot be written to a terminal",
            code="cli.format-needs-a-file",
            where="--format pcap",
            next_step="Add --output FILE.",
        )
    plan = shape.read(name)
    check_host_macs(host_macs, plan)
    around = _Around.of(sending_side(direction), vlan, testbed)
    size, note = read_frames(plan, frame_size, tag_octets=rig.tag_octets(dict.fromkeys(SIDES, around.vlans)))
    if note is not None:
        err().print(note)
    drawn = ask_for_frames(
        find_engine(engine),
        plan,
        size=size,
        seed=seed,
        direction=direction,
        ranges=[(first, count)] if numbers is None else read_numbers(numbers),
        host_macs=host_macs,
        around=around.to_request(),
    )
    if json_output:
        write_json(
            {
                "command": "plan frames",
                "plan": plan.title,
                "address_plan": describe_plan(plan),
                "frame_size": whole_octets(size),
                "mix": describe_mix(plan, size),
                "vlan": list(around.vlans),
                "tunnel": None if around.tunnel is None else around.tunnel.to_contract(),
                "seed": seed,
                "direction": direction,
                "frames": drawn,
            }
        )
    elif chosen_format == "table":
        out().print(_frames_table(drawn))
    else:
        _write(_encode(drawn, chosen_format), output)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Around:
    """What the sending port puts around frames, and the MACs of its link."""

    vlans: rig.Vlans
    tunnel: rig.Tunnel | None = None
    mac: str | None = None
    dut_mac: str | None = None

    @classmethod
    def of(cls, side: SideName, vlan: str | None, testbed: Path | None) -> _Around:
        """RequestError for what `--vlan` and `--testbed` cannot be."""
        if testbed is None:
            return cls(vlans=rig.parse_vlans(vlan or "none", where="--vlan")[side])
        if vlan is not None:
            raise RequestError(
                "the testbed file says in which VLAN frames are sent, so --vlan would have no effect",
                code="cli.options-exclude-each-other",
                where="--vlan, --testbed",
                next_step="Give only one of them.",
            )
        port = rig.read_testbed(testbed).ports[side]
        return cls(vlans=port.vlan, tunnel=port.tunnel, mac=port.mac, dut_mac=port.dut_mac)

    def to_request(self) -> dict[str, Any]:
        said = {
            "vlan": list(self.vlans) or None,
            "tunnel": None if self.tunnel is None else self.tunnel.to_contract(),
            "source_mac": self.mac,
            "destination_mac": self.dut_mac,
        }
        return {key: value for key, value in said.items() if value is not None}


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
    host_macs: HostMacs = "port",
    around: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The engine's preview: the draw exists once, in the engine, so what is shown is what will be sent. MACs
    that are not known are 0.

    Args:
        ranges: First number and count of each.
        around: What the request says of the sending port.
    """
    drawn: list[dict[str, Any]] = []
    with EngineSession([engine]) as session:
        for first, count in ranges:
            reply = session.request(
                "frames",
                plan=plan.to_request(),
                frame_size=whole_octets(size),
                **mix_request(plan, size, direction),
                seed=seed,
                direction=direction,
                first=first,
                count=count,
                host_macs=host_macs,
                **(around or {}),
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
    if frame_format == "pcap":
        return make_pcap(bytes.fromhex(frame["octets"]) for frame in drawn)
    if frame_format == "jsonl":
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
