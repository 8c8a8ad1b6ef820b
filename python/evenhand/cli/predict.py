# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict`: what a plan will show of a device, before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.common import JsonOption, err, out, with_options, write_json
from evenhand.cli.plan_argument import NameArgument
from evenhand.plan import Traffic
from evenhand.predict import Prediction, doubling_series, even_limit, has_listed_hosts, smallest_even_hosts
from evenhand.predict import predict as predict_loads
from evenhand.predict.text import closing_sentence, describe_model, even_sentence, series_table, summary_table
from evenhand.report.figures_bias import check_picture_name, draw_series
from evenhand.spec.device import DeviceOptions, elements_option
from evenhand.spec.plan import (
    CountOptions,
    DirectionOption,
    SourceOptions,
    read_directions,
    read_plan,
    vars_of,
)

EXAMPLE = "Example: evenhand predict gateway-v4 --hosts 16 --elements 16 --hash type1"
DEFAULT_ELEMENTS = 16


@with_options
def predict(
    name: NameArgument,
    *,
    counts: CountOptions,
    sources: SourceOptions,
    elements: Annotated[int | None, elements_option("16, or as --table")] = None,
    device: DeviceOptions,
    dut: Annotated[
        Path | None,
        typer.Option(
            "--dut",
            metavar="TESTBED",
            help="Read table, key and hash over SSH from the DUT of this testbed file or of lab:vm;"
            " --rate must be given.",
        ),
    ] = None,
    direction: DirectionOption = "both",
    series: Annotated[
        bool, typer.Option("--series", help="Also predict 1, 2, 4, ... hosts per side, up to all.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw the series into this file: .svg, .png or .pdf."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Predict exactly how evenly a device that hashes will share the load of a plan. No frames are sent, and
    no engine is needed."""
    every_host = replace(counts, hosts=None)
    address_plan, whole_plan = (read_plan(name, each, vars_of(sources)) for each in (counts, every_host))
    if picture is not None:
        check_picture_name(picture)
    chosen = read_directions(direction)
    if dut is None:
        versions = frozenset(address_plan.stream_of(each).sent.ip_version for each in chosen)
        model, notes = device.read_with_notes(elements, default=DEFAULT_ELEMENTS, ip_versions=versions)
        asked = ""
    else:
        from evenhand.cli.device_of_dut import device_of_dut  # asks a DUT over SSH; few do

        notes = []
        model, asked = device_of_dut(dut, device, elements, address_plan, chosen)
    prediction = predict_loads(address_plan, model, chosen)
    smallest = smallest_even_hosts(whole_plan, model, directions=chosen)
    points = doubling_series(whole_plan, model, chosen) if series or picture is not None else []
    if picture is not None:
        draw_series(points, smallest, picture)
    if json_output:
        write_json(_document(prediction, smallest, points if series else [], picture, notes))
        return
    console = out()
    traffic = Traffic(plan=address_plan, directions=chosen)
    console.print(
        f"{address_plan.title} ({address_plan.figure}), {traffic.address_words};"
        f" UDP ports: {traffic.udp_ports}",
        markup=False,
    )
    console.print(f"Device: {describe_model(model)}{asked}", markup=False)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    console.print()
    console.print(summary_table(prediction))
    if series:
        console.print()
        console.print(series_table(points))
    console.print()
    if not has_listed_hosts(whole_plan):
        console.print(even_sentence(whole_plan, model, smallest), markup=False)
    console.print(closing_sentence(prediction), markup=False)
    if picture is not None:
        err().print(f"Drawn into {picture}.", markup=False)


def _document(
    prediction: Prediction,
    smallest: int | None,
    points: list[Prediction],
    picture: Path | None,
    notes: list[str],
) -> dict[str, Any]:
    return {
        "command": "predict",
        "plan": prediction.plan.title,
        "figure": prediction.plan.figure,
        "traffic": Traffic(plan=prediction.plan, directions=prediction.directions).to_document(),
        "device": prediction.model.to_document(),
        "notes": notes,
        **prediction.to_document(),
        "by_direction": {
            direction: prediction.only(direction).to_document() for direction in prediction.directions
        },
        "even": {
            "busiest_to_mean_limit": float(even_limit(prediction.model)),
            **({} if has_listed_hosts(prediction.plan) else {"smallest_hosts": smallest}),
        },
        "series": [point.to_document() for point in points],
        "picture": None if picture is None else str(picture),
    }
