# SPDX-License-Identifier: Apache-2.0
"""What a trial may record is what can be read of a run file: looked at before the trial."""

from __future__ import annotations

import json

import pytest

from evenhand.base.validation.hostile_json import read_json
from evenhand.trial.contract_values import check_document_size
from tests.errors import raises


@pytest.mark.parametrize(
    ("directions", "tags", "sending_s"), [(2, 160_000, 60.0), (1, 320_000, 60.0), (2, 0, 48_000.0)]
)
def test_what_is_let_through_can_be_read(directions: int, tags: int, sending_s: float) -> None:
    """A campaign was measured for hours, and could not be read afterwards."""
    check_document_size(directions=directions, tagged_frames=tags, sending_s=sending_s)
    one = {
        "lost_by_tenth": [12_345_678] * int(10 * sending_s),
        "delays": {"tagged": [[1_234_567_890, 12_345_678.123456]] * tags},
        "latency": {"buckets": [[1_000.5, 12_345]] * 2_000},
    }
    read_json(json.dumps({"directions": [one] * directions}, separators=(",", ":")))


@pytest.mark.parametrize(
    ("tags", "sending_s", "where"), [(170_000, 60.0, "tagged_frames"), (0, 50_400.0, "duration")]
)
def test_what_could_not_be_read_is_refused_before_the_trial(tags: int, sending_s: float, where: str) -> None:
    with raises("trial.too-much-to-record") as refused:
        check_document_size(directions=2, tagged_frames=tags, sending_s=sending_s)
    assert refused.value.where == where
    assert "at most" in refused.value.next_step
