# SPDX-License-Identifier: Apache-2.0
"""What a campaign will send, as people see it before anything is sent."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evenhand.campaign import describe, expand, make_campaign, preset_names
from evenhand.report.campaign_plan import campaign_plan_report


def shown(document: dict[str, object], *, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for part in campaign_plan_report(describe(expand(make_campaign(document, where="c.toml")))):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_is_readable_at_80_columns(preset: str) -> None:
    """No cell is cut or folded: each point has one line with all that tells it from the others."""
    text = shown({"preset": preset})
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    points = expand(make_campaign({"preset": preset}, where="c.toml")).points
    rows = [line for line in lines if line.split()[1:2] == ["throughput"] and line.split()[0].isdecimal()]
    assert len(rows) == len(points)
    assert sorted(int(row.split()[0]) for row in rows) == list(range(1, len(points) + 1))
    for row, point in zip(rows, points, strict=True):
        hosts = f"{point.hosts[0]:,} x {point.hosts[1]:,}"
        assert hosts in row
        assert row.split()[2] == str(point.frame_size)
        assert (point.hash_type or "") in row
        assert str(point.repetitions) in row.split()


def test_what_is_sent_and_what_is_missing_stands_beside_the_points() -> None:
    """SEED-02, SEED-49."""
    text = " ".join(
        shown({"name": "x", "suite": [{"name": "a", "hosts": 16, "single-pair-first": False, "maximum-rate": "1Mfps"}]}).split()
    )
    assert "Sent (gateway-v4): 16 x 16 addresses, pseudorandom: left 198.18.0.1 .. 198.18.0.16" in text
    assert "throughput: binary search from 1 Mfps, to 0.5 %; trials of 5 s, confirmed by 60 s." in text
    assert "1 point, 10 repetitions, seed 1" in text
    assert "Expected time: 39 min" in text
    assert "Deviation from SEED-02: suite 'a' has no point with a single address pair" in text
