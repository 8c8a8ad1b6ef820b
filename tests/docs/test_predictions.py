# SPDX-License-Identifier: Apache-2.0
"""What the documents say about hashing is what the model computes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evenhand.plan import make_plan
from evenhand.predict import VERIFICATION_KEY, DeviceModel, predict, symmetric_key
from tests.docs.documents import ROOT, blocks, printed, table_rows

BY_HAND = "examples/hash_by_hand.py"
HASHING = "docs/explanation/hashing.md"
DRAFT_REPORT = "docs/explanation/draft-report.md"
KEYS = {"common": VERIFICATION_KEY, "openbsd": symmetric_key()}
COLUMNS = (1, 2, 4, 8, 16, 32, 64, 128, 1024)


def test_prediction_by_hand_is_what_the_model_says() -> None:
    """RSS-03, RSS-06: twenty lines without any of our code come to the same."""
    shown = printed(BY_HAND)
    ended = subprocess.run([sys.executable, ROOT / BY_HAND], capture_output=True, text=True, check=True)
    assert ended.stdout == shown
    for line in shown.splitlines():
        hosts, busy, unevenness = (line.split()[index] for index in (0, 2, -1))
        prediction = predict(make_plan("gateway_v4", int(hosts)), DeviceModel(), ("forward",))
        assert f"{prediction.busy_elements} {float(prediction.busiest_to_mean):.4g}" == f"{busy} {unevenness}"


@pytest.mark.parametrize("row", table_rows(HASHING, "plan"), ids=lambda row: " ".join(row[:2]))
def test_table_of_even_loads_is_that_of_the_model(row: list[str]) -> None:
    """RSS-06."""
    for hosts, value in zip(COLUMNS, row[2:], strict=True):
        prediction = predict(make_plan(row[0], hosts), DeviceModel(elements=int(row[1])), ("forward",))
        assert float(prediction.busiest_to_mean) == pytest.approx(float(value), abs=0.001)


@pytest.mark.parametrize("row", table_rows(DRAFT_REPORT, "case"), ids=lambda row: " ".join(row[:4]))
def test_table_of_the_report_on_the_draft_is_that_of_the_model(row: list[str]) -> None:
    """What is said about Figure 7 is what `evenhand predict` says."""
    _, plan, elements, key, rises_up_to, *shares = row
    model = DeviceModel(elements=int(elements), key=KEYS[key])
    at = int(rises_up_to)
    for hosts, share in zip((at // 2, at, 2 * at, None), shares, strict=True):
        predicted = predict(make_plan(plan, hosts), model).share_of_plateau
        assert f"{float(predicted) * 100:.4g}" == share


def test_python_of_the_how_to_runs() -> None:
    (program,) = blocks("python", document="docs/how-to/predict-a-router.md")
    ended = subprocess.run([sys.executable, "-c", program.text], capture_output=True, text=True, check=True)
    assert len(ended.stdout.splitlines()) == 2
