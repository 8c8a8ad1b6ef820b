# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan export`: a plan's flows for other testers, and what their format cannot say of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_new, write_new
from evenhand.base.rates import in_frames
from evenhand.base.units import parse_duration
from evenhand.cli.common import JsonOption, err, with_options, write_json, write_text
from evenhand.cli.plan_argument import NameArgument
from evenhand.exchange.otg_write import otg_of
from evenhand.plan import SIDES, PortMacs, SideName, describe_plan, line_of
from evenhand.spec.common_options import DEFAULT_SEED, SeedOption
from evenhand.spec.frames import FrameSizeOption, read_frame_size
from evenhand.spec.plan import DirectionOption, ShapeOptions, read_directions

EXAMPLE = "Example: evenhand plan export gateway-v4 --rate 100kfps --duration 60s --output flows.json"


@with_options
def export_plan(
    name: NameArgument,
    *,
    rate: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Load per direction, such as 100kfps or 1Gbit/s; 50% needs --testbed with line_rate.",
        ),
    ],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Duration of sending.")] = "60s",
    frame_size: FrameSizeOption = None,
    direction: DirectionOption = "both",
    shape: ShapeOptions,
    seed: SeedOption = DEFAULT_SEED,
    testbed: Annotated[
        Path | None,
        typer.Option(
            "--testbed",
            metavar="FILE",
            help="Take the MACs from this testbed file: mac and dut_mac of its ports.",
        ),
    ] = None,
    export_format: Annotated[
        Literal["otg"],
        typer.Option(
            "--format", metavar="otg", help="otg: a configuration of the Open Traffic Generator API (JSON)."
        ),
    ] = "otg",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file, which must not exist. Default: stdout.",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Write a plan's flows as an Open Traffic Generator configuration; nothing is sent. What OTG cannot
    express is listed on stderr."""
    del export_format  # there is one
    if json_output and output is not None:
        raise RequestError(
            "--json writes its document to stdout, so --output would have no effect",
            code="cli.options-exclude-each-other",
            where="--json, --output",
            next_step="Give only one of them.",
        )
    if output is not None:
        check_new(output, where=f"--output {output}")
    plan = shape.read(name)
    size, note = read_frame_size(plan, frame_size)
    if note is not None:
        err().print(note)
    duration_s = parse_duration(duration, where="--duration")
    if duration_s <= 0:
        raise RequestError(
            f"{duration!r} must be greater than 0",
            code="cli.out-of-range",
            where="--duration",
            next_step="Write a duration such as 60s.",
        )
    directions = read_directions(direction)
    made = otg_of(
        plan,
        directions=directions,
        frame_size=size,
        rate_fps=in_frames(
            rate, line_of(plan.streams(size, directions), _line_rates(testbed)), where="--rate"
        ),
        duration_s=duration_s,
        seed=seed,
        macs=None if testbed is None else _macs(testbed),
        around=() if testbed is None else _around(testbed),
    )
    if json_output:
        write_json(
            {
                "command": "plan export",
                "plan": plan.title,
                "address_plan": describe_plan(plan),
                "otg": made.document,
                "unsaid": list(made.unsaid),
            }
        )
        return
    content = f"{json.dumps(made.document, indent=2, allow_nan=False)}\n"
    if output is not None:
        write_new(output, content.encode(), where=f"--output {output}")
    else:
        write_text(content)
    err().print("OTG cannot express:")
    for text in made.unsaid:
        err().print(f"  {text}", markup=False, soft_wrap=True)


def _line_rates(path: Path | None) -> Mapping[SideName, float | None]:
    if path is None:
        return dict.fromkeys(SIDES)
    from evenhand.rig import read_testbed  # takes longer to load than the rest

    return read_testbed(path).line_rates


def _around(path: Path) -> list[str]:
    """What is around the frames of each side that has something there."""
    from evenhand.rig import read_testbed  # takes longer to load than the rest

    found = []
    for side, port in read_testbed(path).ports.items():
        words = [f"VLAN {'.'.join(map(str, port.vlan))}"] if port.vlan else []
        words += [port.tunnel.words] if port.tunnel is not None else []
        if words:
            found.append(f"{side} {', '.join(words)}")
    return found


def _macs(path: Path) -> dict[SideName, PortMacs]:
    """MACs of the ports whose own MAC is in the file."""
    from evenhand.rig import read_testbed  # takes longer to load than the rest

    ports = read_testbed(path).ports
    return {
        side: PortMacs(tester=port.mac, dut=port.dut_mac)
        for side, port in ports.items()
        if port.mac is not None
    }
