# SPDX-License-Identifier: Apache-2.0
"""Documents of CSIT's Unified Test Interface, held against what its published schema demands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from evenhand.plan import Direction
from evenhand.report.uti import uti_documents
from evenhand.run import read_record
from evenhand.trial import SimulatedMeasurer
from tests.analysis.records import point, record
from tests.report.uti_schema import SCHEMA
from tests.run.goldens import NAMES, recorded_file

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def documents(name: str) -> list[dict[str, Any]]:
    return list(uti_documents(read_record(recorded_file(name))))


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_run_is_valid_by_the_published_schema(name: str) -> None:
    for document in documents(name):
        VALIDATOR.validate(document)


def test_the_recorded_runs_have_every_kind_of_result() -> None:
    found = {document["result"]["type"] for name in NAMES for document in documents(name)}
    assert {"unknown", "mrr"} <= found


def test_a_repetition_without_a_number_has_a_message_and_no_result() -> None:
    """CSIT takes the result out of a test case that failed."""
    record = read_record(recorded_file("throughput-v4"))
    (first, *others) = record.points[0].repetitions
    lost = replace(first, value=None, reason="the DUT has gone")
    changed = replace(
        record, points=(replace(record.points[0], repetitions=(lost, *others)), *record.points[1:])
    )
    document = next(uti_documents(changed))
    VALIDATOR.validate(document)
    assert (document["passed"], document["message"]) == (False, "the DUT has gone")
    assert document["result"] == {"type": "unknown"}


@pytest.mark.parametrize(("directions", "factor"), [(("forward",), 1), (("forward", "reverse"), 2)])
def test_rates_are_sums_over_the_directions_and_bandwidths_those_on_the_wire(
    directions: tuple[Direction, ...], factor: int
) -> None:
    """R2544-15: ours are per direction. A frame has 20 octets more on the wire; a mix has no bandwidth."""
    goals = [
        {
            "outcome": "found",
            "loss_ratio": loss_ratio,
            "lower_fps_per_direction": low,
            "upper_fps_per_direction": high,
        }
        for loss_ratio, low, high in ((0.0, 1000.0, 1010.0), (0.005, 1200.0, 1212.0))
    ]
    for frame_size, bandwidth in ((64, 1000 * factor * 84 * 8), ("imix:bdf", None)):
        made = point(1, [1000.0], frame_size=frame_size, directions=directions)
        (one,) = made.repetitions
        campaign = record(replace(made, repetitions=(replace(one, result={"goals": goals}),)))
        (document,) = uti_documents(campaign)
        VALIDATOR.validate(document)
        result = document["result"]
        assert [result["ndr"][bound]["rate"]["value"] for bound in ("lower", "upper")] == [
            1000 * factor,
            1010 * factor,
        ]
        assert result["pdr"]["upper"]["rate"]["value"] == 1212 * factor
        assert result["ndr"]["lower"].get("bandwidth", {}).get("value") == bandwidth


def test_a_loss_series_has_the_forwarding_rates_at_its_highest_load() -> None:
    """RFC 2285: of valid trials there alone, each a value, with mean and deviation."""
    series = read_record(recorded_file("loss-v4"))
    made = series.points[0]
    (one,) = made.repetitions
    (search,) = one.searches
    device = SimulatedMeasurer(limit_fps=900, invalid_trials={2})
    trials = [device.measure(1, load_fps) for load_fps in (1000, 1000, 1000, 500)]
    trials.append(SimulatedMeasurer(limit_fps=800).measure(1, 1000))
    stored = tuple(replace(search.trials[0], result=trial) for trial in trials)
    repetition = replace(one, searches=(replace(search, trials=stored),))
    (document,) = uti_documents(replace(series, points=(replace(made, repetitions=(repetition,)),)))
    rate = document["result"]["receive_rate"]["rate"]
    assert rate["values"] == pytest.approx([1800, 1800, 1600])
    assert rate["avg"] == pytest.approx(5200 / 3)
    assert rate["stdev"] == pytest.approx(math.sqrt(80_000 / 9))
