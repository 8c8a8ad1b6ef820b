# SPDX-License-Identifier: Apache-2.0
"""A prediction for people: a table, a series with bars, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.base.table import Cell, Column, Table, make_table, measured
from evenhand.base.units import MULTIPLE, SHARE, format_count, format_rate, format_ratio
from evenhand.plan import AddressPlan, Traffic
from evenhand.predict.hosts_needed import EVEN_TOLERANCE, even_limit, maximum_hosts
from evenhand.predict.loads import Prediction
from evenhand.predict.model import VERIFICATION_KEY, DeviceModel, round_robin_unevenness, symmetric_key

_HASHED = {"type1": "addresses", "type2": "addresses and ports"}


def hosts_title(plan: AddressPlan) -> str:
    """What a series counts."""
    return f"hosts {_where(plan)}"


def describe_model(model: DeviceModel) -> str:
    """One line that states the device's elements, hash and table."""
    symmetric = ", symmetric: source XOR destination" if model.symmetric else ""
    rate = f", {format_rate(model.rate_fps)} each" if model.rate_fps is not None else ""
    key = "" if model.key == VERIFICATION_KEY else f", key {model.key[:4].hex()}..."
    if model.key == symmetric_key(int.from_bytes(model.key[:2], "big"), len(model.key)):
        key = f", key {model.key[:2].hex()} repeated"
    return (
        f"{_elements(model.elements)}{rate}, type {model.hash_type[-1]} hash"
        f" ({_HASHED[model.hash_type]}{symmetric}){key}, "
        f"{format_count(len(model.table))} table entries"
    )


def summary_table(prediction: Prediction) -> Table:
    """A row for each direction, and one for both together, which decides."""
    each = {direction: prediction.only(direction) for direction in prediction.directions}
    rows: list[list[str | Cell]] = [
        [f"{name} alone" if len(each) > 1 else name, *_cells(row)] for name, row in each.items()
    ]
    if len(each) > 1:
        rows.append([Cell("both together", "total"), *_cells(prediction, style="total")])
    return make_table([Column("direction", is_name=True), *_columns(prediction)], rows)


def series_table(series: Sequence[Prediction]) -> Table:
    """A row for each number of hosts; the bar is full at the plateau."""
    rows: Iterator[list[str | Cell]] = (
        # The bar says nothing that the share next to it does not: without room for a table it is left out.
        [format_count(point.host_counts["left"]), *_cells(point), Cell("", bar=float(point.share_of_plateau))]
        for point in series
    )
    return make_table([f"#{hosts_title(series[0].plan)}", *_columns(series[0]), ""], rows)


def even_sentence(plan: AddressPlan, model: DeviceModel, smallest: int | None) -> str:
    """A sentence on how many hosts are needed for an even load. `plan` has all hosts that there are."""
    maximum = format_count(maximum_hosts(plan))
    percent = f"{float(EVEN_TOLERANCE) * 100:g} %"
    if model.table_unevenness == 1:
        bound = f"at most {percent} above the mean"
    else:
        best = "the best that this table allows"
        if model.table_unevenness == round_robin_unevenness(model.elements, len(model.table)):
            best = f"the best that {format_count(len(model.table))} entries allow {_elements(model.elements)}"
        bound = f"at most {percent} above {float(model.table_unevenness):.4g} times the mean, {best}"
    if smallest is None:
        return (
            f"The load is not even with any number of hosts up to {maximum} {_where(plan)}."
            f" Even means: busiest element {bound}."
        )
    reach = (
        f"with {_hosts(smallest)} {_where(plan)}"
        if smallest == maximum_hosts(plan)
        else f"from {_hosts(smallest)} {_where(plan)} on, up to {maximum}"
    )
    return f"Even {reach}: busiest element {bound}."


def closing_sentence(prediction: Prediction) -> str:
    """What a measurement with this plan would say about this device."""
    model, share = prediction.model, float(prediction.share_of_plateau)
    with_these = f"With {Traffic(plan=prediction.plan, directions=prediction.directions).address_words}"
    if model.elements == 1:
        return f"{with_these} the only element does all the work, as with any other addresses."
    if prediction.busiest_to_mean <= even_limit(model):
        rest = "" if model.table_unevenness == 1 else "; its table allows no more"
        return (
            f"{with_these} the load is even, so the device itself is measured:"
            f" {format_ratio(share)} of its plateau{rest}."
        )
    busy = f"{format_count(prediction.busy_elements)} of {_elements(model.elements)} work"
    if prediction.busy_elements == 1:
        busy = f"1 of {_elements(model.elements)} works"
    elif prediction.busy_elements == model.elements:
        busy = f"all {_elements(model.elements)} work, but not equally"
    return (
        f"{with_these} {busy}: {format_ratio(share)} of the plateau would be measured; the"
        " limit is the addresses, not the device."
    )


def _columns(prediction: Prediction) -> list[str]:
    absolute = ["#throughput per direction", "#plateau"] if prediction.model.rate_fps is not None else []
    return ["#busiest / mean", "#share of plateau", "#busy elements", *absolute]


def _cells(prediction: Prediction, style: str = "") -> list[Cell]:
    rates = (prediction.throughput_fps, prediction.plateau_fps)
    busy = f"{format_count(prediction.busy_elements)} of {format_count(prediction.model.elements)}"
    return [
        measured(float(prediction.busiest_to_mean), MULTIPLE, style=style),
        measured(float(prediction.share_of_plateau), SHARE, style=style),
        Cell(busy, style),
        *(measured(rate_fps, "fps", style=style) for rate_fps in rates if rate_fps is not None),
    ]


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{format_count(count)} elements"


def _where(plan: AddressPlan) -> str:
    return "per side" if max(plan.networks) == 1 else "in each network"


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{format_count(count)} hosts"
