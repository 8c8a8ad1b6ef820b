# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: options, and how values from the command line are read."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.units import format_count, parse_size
from evenhand.plan import (
    BOTH_DIRECTIONS,
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    TOPOLOGIES,
    AddressPlan,
    Counts,
    Direction,
    FrameSize,
    Mode,
    is_imix,
    make_plan,
    parse_imix,
    plan_title,
    plan_warnings,
)
from evenhand.plan.ports import parse_ports
from evenhand.procedure import (
    FRAME_SIZE_SETS,
    MAX_FRAME_SIZE,
    USUAL_MAX_FRAME_SIZE,
    check_frame_sizes,
    choose_frame_size,
    choose_frames,
)
from evenhand.report import measured_report
from evenhand.series import RunStore, StorageError

DEFAULT_SEED = 1
MAX_SEED = 2**64 - 1
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_MODE = MODES[0]


class DirectionName(StrEnum):
    """Which directions send."""

    BOTH = "both"
    FORWARD = "forward"
    REVERSE = "reverse"


JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to stdout; progress goes to stderr.")
]
_PLANS = f"One of: {', '.join(plan_title(name) for name in TOPOLOGIES)}."
NameArgument = Annotated[str, typer.Argument(metavar="PLAN", help=_PLANS)]
OptionalNameArgument = Annotated[str | None, typer.Argument(metavar="PLAN", help=_PLANS)]
TestbedArgument = Annotated[
    str,
    typer.Argument(
        metavar="TESTBED", help="A testbed file (TOML), or lab:linux or lab:vm for a lab that is up."
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="NAME|NAME+NAME",
        help="The address plan, or one of IPv4 and one of IPv6; see: evenhand plan show. Default: the one"
        " that the lab, or dut.plan of the"
        " testbed file, names, else gateway-v4.",
    ),
]
MixOption = Annotated[
    str | None,
    typer.Option(
        "--mix",
        metavar="N/M",
        help="Of every N+M frames N are of the first and M of the second plan. Default: 50/50.",
    ),
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="N|N,M",
        help="Hosts per side, or left,right. Default: the maximum, unless the testbed file has dut.hosts.",
    ),
]
NetworksOption = Annotated[
    str | None,
    typer.Option(
        "--networks",
        metavar="R|R,S",
        help="Networks per side, or left,right, of nets-... plans. Default: the maximum, unless the testbed"
        " file has dut.networks.",
    ),
]
HostModeOption = Annotated[
    str,
    typer.Option(
        "--host-mode",
        metavar="MODE",
        help=f"{', '.join(MODES)}: how the host of a frame is chosen; for comparison runs.",
    ),
]
NetworkModeOption = Annotated[
    str, typer.Option("--network-mode", metavar="MODE", help="The same for the network of a frame.")
]
FixedSourceOption = Annotated[
    bool,
    typer.Option(
        "--fixed-source",
        help="All frames come from the first host of their side: RFC 2544 draws destinations only.",
    ),
]
FixedSourceNetworkOption = Annotated[
    bool,
    typer.Option(
        "--fixed-source-network",
        help="All frames come from the first network of their side, from any host of it.",
    ),
]
CommonNetworkOption = Annotated[
    bool,
    typer.Option(
        "--common-network", help="One R for both: the destination's network has the number of the source's."
    ),
]
SourcePortsOption = Annotated[
    str | None,
    typer.Option(
        "--source-ports",
        metavar="N-M|N|fixed",
        help="UDP ports, drawn from a range, or one; fixed is RFC 2544's 49184. N-M:increment and"
        " N-M:decrement go step by step."
        " Default: 1024-65535.",
    ),
]
DestinationPortsOption = Annotated[
    str | None,
    typer.Option(
        "--destination-ports",
        metavar="N-M|N|fixed",
        help="The same; fixed is RFC 2544's 7. Default: 1-49151.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Same seed, same frames.")]
FrameSizeOption = Annotated[
    str | None,
    typer.Option(
        "--frame-size",
        metavar="OCTETS",
        help="With FCS; IPv4 from 64, IPv6 from 84, to 9216. Default: the smallest.",
    ),
]
FramesOption = Annotated[
    str | None,
    typer.Option(
        "--frame-size",
        metavar="OCTETS|imix:LETTERS",
        help="With FCS; IPv4 from 64, IPv6 from 84, to 9216."
        " imix:aaafg is the sequence IMIX - aaafg of RFC 6985; imix:aaafg:frames=250 shuffles 250 frames of"
        " it. Default: the smallest.",
    ),
]
FrameSizesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--frame-size",
        metavar="OCTETS|imix:LETTERS,...|all|jumbo|rfc8219",
        help="With FCS; IPv4 from 64, IPv6 from 84, to 9216."
        " imix:aaafg is the sequence IMIX - aaafg of RFC 6985; imix:aaafg:frames=250 shuffles 250 frames of"
        " it. Several make one table."
        " all: those of RFC 2544 and RFC 5180, to 1518; jumbo: 4096, 8192, 9216; rfc8219: all of RFC 8219."
        " Default: the smallest.",
    ),
]
LargestFrameOption = Annotated[
    str | None,
    typer.Option(
        "--largest-frame",
        metavar="OCTETS",
        help=f"What its links take, with FCS, to {MAX_FRAME_SIZE}; more for jumbo frames. Default: 1518.",
    ),
]
VlanOption = Annotated[
    str | None,
    typer.Option(
        "--vlan",
        metavar="ID|ID,ID",
        help="VLAN of both links, or left,right; OUTER.INNER are two tags (802.1ad and 802.1Q), none is no"
        " tag. Default: none.",
    ),
]
LossRatioOption = Annotated[
    str, typer.Option("--loss-ratio", metavar="RATIO", help="Largest loss ratio that passes.")
]
DirectionOption = Annotated[
    DirectionName,
    typer.Option(
        "--direction", metavar="|".join(DirectionName), help="forward: left to right; reverse: back."
    ),
]
EngineOption = Annotated[
    Path | None, typer.Option("--engine", help="The engine; default: EVENHAND_ENGINE, this checkout's, PATH.")
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="Store the run here (must not exist). Default: VERB-DATE-TIME.evenhand in this folder.",
    ),
]
NoRunOption = Annotated[bool, typer.Option("--no-run", help="Store nothing.")]
HostNameOption = Annotated[
    bool,
    typer.Option("--host-name", help="Store the name of this host as well; without it a run does not tell."),
]


def quoted(path: Path | str) -> str:
    """As it has to be typed."""
    return shlex.quote(str(path))


def run_file(verb: str, run: Path | None, no_run: bool) -> Path | None:
    """Where the run is stored, with a free name for its page too. None for nowhere.

    An hour of trials should not be lost because an option was forgotten.
    """
    if no_run:
        if run is not None:
            raise RequestError(
                "both a file and none at all", where="--run, --no-run", next_step="Give one of them."
            )
        return None
    if run is not None and not run.name:
        raise RequestError(
            f"{str(run)!r} is no name of a file",
            where="--run",
            next_step="Name a new file: --run monday.evenhand.",
        )
    stem = f"{verb}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = (Path(f"{stem}{'' if n == 1 else f'-{n}'}.evenhand") for n in count(1))
    return run or next(
        file for file in names if not any(map(os.path.lexists, (file, file.with_suffix(".html"))))
    )


@contextmanager
def open_run(run: Path, *, host_name: bool) -> Iterator[RunStore]:
    """The run's file, as long as the verb goes on. A verb that ends early says where the trials are that it
    has made.

    Where they are nowhere, because the disk is full, it shows them on stderr; stdout stays empty, as with
    every error.
    """
    # A file that exists is refused here; it is not ours, and nothing is said of trials in it.
    store = RunStore.create(run, command=command_line(), host_name=host_name)
    try:
        with store:
            yield store
    except BaseException as error:
        console = err()
        if isinstance(error, StorageError):
            for part in measured_report(store.measured):
                console.print(part)
        if store.stored_trials:
            trials = (
                "1 trial is"
                if store.stored_trials == 1
                else f"{format_count(store.stored_trials)} trials are"
            )
            console.print(f"{trials} stored in {run}.", markup=False, soft_wrap=True)
        elif not isinstance(error, EvenhandError) or store.measured:
            console.print("No trial is stored.", markup=False)
        raise


def read_plan(
    name: str,
    hosts: str | None,
    networks: str | None = None,
    *,
    host_mode: str = DEFAULT_MODE,
    network_mode: str = DEFAULT_MODE,
    fixed_source: bool = False,
    fixed_source_network: bool = False,
    common_network: bool = False,
    source_ports: str | None = None,
    destination_ports: str | None = None,
    where: str = "NAME",
) -> AddressPlan:
    """The named plan with the options that shape it. PlanError or RequestError if there is none.

    Args:
        where: The option or argument that names it.
    """
    make = partial(
        make_plan,
        name,
        parse_counts(hosts, where="--hosts"),
        networks=parse_counts(networks, where="--networks"),
        host_mode=parse_mode(host_mode, where="--host-mode"),
        network_mode=parse_mode(network_mode, where="--network-mode"),
        fixed_source=fixed_source,
        fixed_source_network=fixed_source_network,
        common_network=common_network,
        source_ports=parse_ports(
            source_ports, RFC4814_SOURCE_PORTS, CLASSIC_SOURCE_PORT, where="--source-ports"
        ),
        destination_ports=parse_ports(
            destination_ports,
            RFC4814_DESTINATION_PORTS,
            CLASSIC_DESTINATION_PORT,
            where="--destination-ports",
        ),
    )
    try:
        return make()
    except RequestError as error:
        error.where = error.where or where
        raise


def warn_about(plan: AddressPlan) -> None:
    """Say on stderr what of the plan may spoil a result (SEED-06)."""
    for warning in plan_warnings(plan):
        err().print(f"Warning: {warning}", markup=False, soft_wrap=True)


def parse_counts(text: str | None, *, where: str) -> Counts:
    """`1000`, or `1000,1` for left and right."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) > 2 or not all(part.strip().isdecimal() for part in parts):
        what = where.removeprefix("--")
        raise RequestError(
            f"{text!r} is not a number of {what}",
            where=where,
            next_step="Write one number, or two like 100,1 for left and right.",
        )
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def parse_mode(text: str, *, where: str) -> Mode:
    for mode in MODES:
        if text == mode:
            return mode
    near = get_close_matches(text, MODES, n=1)
    raise RequestError(
        f"{text!r} is no mode",
        where=where,
        next_step=f"Did you mean {near[0]}?" if near else f"Use one of: {', '.join(MODES)}.",
    )


def read_frame_size(plan: AddressPlan, text: str | None) -> tuple[int, str | None]:
    """`--frame-size` of verbs whose frames are all of one size; see `choose_frame_size`."""
    if text is not None and is_imix(text):
        raise RequestError(
            f"{text!r}: frames of several sizes have no place here (back-to-back: RFC 9004, section 3)",
            where="--frame-size",
            next_step="Give one size.",
        )
    return choose_frame_size(plan, None if text is None else parse_size(text, where="--frame-size"))


def read_largest_frame(text: str | None) -> int:
    """`--largest-frame`. RequestError below 1518, which all links take, or above 9216."""
    size = USUAL_MAX_FRAME_SIZE if text is None else parse_size(text, where="--largest-frame")
    if not USUAL_MAX_FRAME_SIZE <= size <= MAX_FRAME_SIZE:
        raise RequestError(
            f"{size} octets cannot be the largest frame",
            where="--largest-frame",
            next_step=f"Write {USUAL_MAX_FRAME_SIZE} to {MAX_FRAME_SIZE}.",
        )
    return size


def read_frames(plan: AddressPlan, text: str | None, *, tag_octets: int = 0) -> tuple[FrameSize, str | None]:
    """`--frame-size` of verbs that take a sequence of sizes as well (R6985-01); see `choose_frames`."""
    return choose_frames(plan, None if text is None else _parse_frames(text), tag_octets=tag_octets)


def read_frame_sizes(plan: AddressPlan, texts: list[str] | None) -> tuple[tuple[FrameSize, ...], list[str]]:
    """`--frame-size` of verbs that take several, and sequences of sizes among them; see
    `check_frame_sizes`."""
    # "IMIX - aaz (z=1400)" is one of them whatever stands in its brackets.
    words = [word for text in texts or [] for word in re.split(r",(?![^(]*\))", text)]
    sizes: list[FrameSize | None] = []
    for word in words:
        sizes += FRAME_SIZE_SETS.get(word.strip()) or [_parse_frames(word)]
    return check_frame_sizes(plan, sizes or [None])


def _parse_frames(text: str) -> FrameSize:
    return parse_imix(text, where="--frame-size") if is_imix(text) else parse_size(text, where="--frame-size")


def read_mix(name: str, mix: str | None) -> tuple[str, str | None, tuple[int, int]]:
    """`--plan` and `--mix`: the plan's name, that of the other IP version if there is one, and the shares of
    both."""
    first, plus, second = name.partition("+")
    if not plus:
        if mix is not None:
            raise RequestError(
                f"a mix of {mix}, and one plan",
                where="--mix",
                next_step=f"Name one of each IP version: --plan gateway-v4+gateway-v6 --mix {mix}.",
            )
        return first, None, (1, 1)
    found = re.fullmatch(r"(\d{1,3})/(\d{1,3})", (mix or "50/50").strip())
    if found is None:
        raise RequestError(
            f"{mix!r} is no share of two plans", where="--mix", next_step="Write 90/10, 50/50 or 10/90."
        )
    return first, second, (int(found[1]), int(found[2]))


def read_directions(direction: DirectionName) -> tuple[Direction, ...]:
    """`--direction`."""
    return tuple(each for each in BOTH_DIRECTIONS if direction in (DirectionName.BOTH, each))


def out() -> Console:
    """stdout, for results. Without a terminal lines are not folded; tables then have the width of COLUMNS, or
    200."""
    return _console(stderr=False)


def err() -> Console:
    """stderr, for progress and notes; the same."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # No emoji: `:a:` in an IPv6 address or `:x:` in a file is what it is.
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal:
        return console
    columns = os.environ.get("COLUMNS", "")
    width = (int(columns) if columns.isdecimal() else 0) or 200
    return Console(stderr=stderr, highlight=False, emoji=False, width=width, soft_wrap=True)


def write_json(document: Any) -> None:
    """The one document of `--json`."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def write_json_line(document: Any) -> None:
    """One of several documents, of a verb that goes on: each is a line, so that a reader knows where it
    ends."""
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
    sys.stdout.flush()


def command_line() -> list[str]:
    """As typed, for the run file."""
    return ["evenhand", *sys.argv[1:]]
