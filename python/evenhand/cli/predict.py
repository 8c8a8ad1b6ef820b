# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict`: what a plan will show of a device, before anything is sent."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.common import (
    CommonNetworkOption,
    DestinationPortsOption,
    FixedSourceNetworkOption,
    FixedSourceOption,
    HostsOption,
    JsonOption,
    NameArgument,
    NetworksOption,
    SourcePortsOption,
    err,
    out,
    read_plan,
    write_json,
)
from evenhand.errors import RequestError
from evenhand.plan import Direction, Traffic
from evenhand.predict import (
    VERIFICATION_KEY,
    DeviceModel,
    Prediction,
    doubling_series,
    even_limit,
    round_robin_table,
    smallest_even_hosts,
    symmetric_key,
)
from evenhand.predict import (
    predict as predict_loads,
)
from evenhand.report.figures_predict import check_picture_name, draw_series
from evenhand.predict.text import (
    closing_sentence,
    describe_model,
    even_sentence,
    series_table,
    summary_table,
)
from evenhand.units import parse_rate

EXAMPLE = "Example: evenhand predict gateway-v4 --hosts 16 --queues 16 --hash type1"
DEFAULT_QUEUES = 16
OPENBSD = "openbsd"


class HashName(StrEnum):
    """What the device hashes."""

    TYPE1 = "type1"
    TYPE2 = "type2"


class Directions(StrEnum):
    """Which directions send."""

    BOTH = "both"
    FORWARD = "forward"
    REVERSE = "reverse"


def predict(
    name: NameArgument,
    hosts: HostsOption = None,
    networks: NetworksOption = None,
    fixed_source: FixedSourceOption = False,
    fixed_source_network: FixedSourceNetworkOption = False,
    common_network: CommonNetworkOption = False,
    source_ports: SourcePortsOption = None,
    destination_ports: DestinationPortsOption = None,
    queues: Annotated[
        int | None,
        typer.Option(
            "--queues", metavar="N", help="Processing elements of the device: cores, queues, pipelines. Default: 16, or as --table."
        ),
    ] = None,
    hash_type: Annotated[HashName, typer.Option("--hash", help="type1: addresses; type2: addresses and ports.")] = HashName.TYPE1,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="Hash source XOR destination (symmetric-XOR).")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="HEX|openbsd[:HHHH]",
            help="The hash key, with or without colons; or OpenBSD's: 16 bits, repeated (6d5a in its sources; newer kernels draw them). "
            "Default: the common one.",
        ),
    ] = None,
    table_size: Annotated[
        int | None,
        typer.Option("--table-size", metavar="N", help="Entries of the indirection table, filled round robin. Default: 128 or more."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="FILE|LIST", help="The table itself: 0,1,2,3 or a file. Output of `ethtool -x` brings the key too."
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="RATE", help="What one element forwards. Predicts the throughput in fps.")
    ] = None,
    directions: Annotated[Directions, typer.Option("--directions", help="Which directions send.")] = Directions.BOTH,
    series: Annotated[bool, typer.Option("--series", help="Also 1, 2, 4, ... hosts per side, up to all.")] = False,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Draw the series: .svg, .png or .pdf.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Predict how evenly a device that hashes will share the load of a plan. Exact, sends nothing, needs no engine."""
    read = partial(
        read_plan, name, networks=networks, fixed_source=fixed_source, fixed_source_network=fixed_source_network,
        common_network=common_network, source_ports=source_ports, destination_ports=destination_ports,
    )  # fmt: skip
    address_plan, whole_plan = read(hosts=hosts), read(hosts=None)
    model = read_model(queues, hash_type, symmetric=symmetric, key=key, table_size=table_size, table=table, rate=rate)
    if picture is not None:
        check_picture_name(picture)
    chosen: tuple[Direction, ...] = ("forward", "reverse")
    if directions is not Directions.BOTH:
        chosen = ("forward",) if directions is Directions.FORWARD else ("reverse",)
    prediction = predict_loads(address_plan, model, chosen)
    smallest = smallest_even_hosts(whole_plan, model, directions=chosen)
    points = doubling_series(whole_plan, model, chosen) if series or picture is not None else []
    if picture is not None:
        draw_series(points, smallest, picture)
    if json_output:
        write_json(_document(prediction, smallest, points if series else [], picture))
        return
    console = out()
    traffic = Traffic(plan=address_plan, directions=chosen)
    console.print(f"{address_plan.title} ({address_plan.figure}), {traffic.addresses}; UDP ports: {traffic.udp_ports}", markup=False)
    console.print(f"Device: {describe_model(model)}", markup=False)
    console.print()
    console.print(summary_table(prediction))
    if series:
        console.print()
        console.print(series_table(points))
    console.print()
    console.print(even_sentence(whole_plan, model, smallest), markup=False)
    console.print(closing_sentence(prediction), markup=False)
    if picture is not None:
        err().print(f"Drawn into {picture}.", markup=False)


def read_model(
    queues: int | None,
    hash_type: HashName,
    *,
    symmetric: bool,
    key: str | None,
    table_size: int | None,
    table: str | None,
    rate: str | None,
) -> DeviceModel:
    """The device from its options. RequestError names the option or the field of the model."""
    if table is not None and table_size is not None:
        raise RequestError("both a table and the size of one", where="--table, --table-size", next_step="Give one of them.")
    entries, key_of_table = ((), None) if table is None else read_table(table)
    if queues is None:
        queues = max(entries) + 1 if entries else DEFAULT_QUEUES
    if table_size is not None:
        if table_size < 1 or queues < 1:
            raise RequestError(f"{table_size} entries for {queues} queues: want 1 or more of both", where="--table-size, --queues")
        entries = round_robin_table(queues, table_size)
    return DeviceModel(
        elements=queues,
        hash_type="type1" if hash_type is HashName.TYPE1 else "type2",
        symmetric=symmetric,
        key=read_key(key) if key is not None else key_of_table or VERIFICATION_KEY,
        table=entries,
        rate_fps=None if rate is None else parse_rate(rate, where="--rate"),
    )


def read_key(text: str) -> bytes:
    """`6d5a56da...`, or `6d:5a:56:da:...` as ethtool writes it; `openbsd`, or `openbsd:6d5a`."""
    name, colon, seed = text.partition(":")
    if name == OPENBSD:
        if not colon:
            return symmetric_key()
        if re.fullmatch(r"[0-9a-fA-F]{4}", seed):
            return symmetric_key(int(seed, 16))
        raise RequestError(f"{seed!r} is not 16 bits", where="--key openbsd:", next_step="Write four hexadecimal digits: openbsd:6d5a.")
    try:
        return bytes.fromhex(text.replace(":", ""))
    except ValueError as error:
        raise RequestError(
            f"{text!r} is no hexadecimal key", where="--key", next_step="Write 40 octets like 6d:5a:56:da:..., or openbsd."
        ) from error


def read_table(text: str) -> tuple[tuple[int, ...], bytes | None]:
    """The entries, and the key if it stands there too: a list with commas, a file with numbers, or what `ethtool -x` printed."""
    where, key = "--table", None
    if not re.fullmatch(r"[\d\s,]+", text):
        where = f"--table {text}"
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise RequestError(f"neither a list nor a file that can be read: {reason}", where=where) from error
        shown_key = re.search(r"^\s*((?:[0-9a-f]{2}:){15,}[0-9a-f]{2})\s*$", text, re.MULTILINE | re.IGNORECASE)
        key = None if shown_key is None else read_key(shown_key[1])
        # ethtool puts the number of the first entry before each line.
        numbered = re.findall(r"^\s*\d+:\s+(.*)$", text, re.MULTILINE)
        text = " ".join(numbered) if numbered else text
    words = text.replace(",", " ").split()
    wrong = next((word for word in words if not word.isdecimal()), None)
    if wrong is not None or not words:
        raise RequestError(
            "no numbers" if wrong is None else f"{wrong!r} is no number of an element", where=where,
            next_step="Write element numbers, one for each entry: 0,1,2,3.",
        )  # fmt: skip
    return tuple(int(word) for word in words), key


def _document(prediction: Prediction, smallest: int | None, points: list[Prediction], picture: Path | None) -> dict[str, Any]:
    return {
        "command": "predict",
        "plan": prediction.plan.name,
        "figure": prediction.plan.figure,
        "traffic": Traffic(plan=prediction.plan, directions=prediction.directions).to_document(),
        "device": prediction.model.to_document(),
        **prediction.to_document(),
        "by_direction": {direction: prediction.only(direction).to_document() for direction in prediction.directions},
        "even": {"busiest_to_mean_limit": float(even_limit(prediction.model)), "smallest_hosts": smallest},
        "series": [point.to_document() for point in points],
        "picture": None if picture is None else str(picture),
    }
