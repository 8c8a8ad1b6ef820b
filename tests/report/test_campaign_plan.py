# SPDX-License-Identifier: Apache-2.0
"""What a campaign will send, as people see it before anything is sent."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evenhand.base.terminal_table import rendered
from evenhand.report.campaign_document import campaign_plan_report
from evenhand.run.campaign.outline import describe
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.spec.presets import preset_names


def shown(document: dict[str, object], *, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for part in campaign_plan_report(describe(expand(make_campaign(document, where="c.toml")))):
        console.print(rendered(part))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_is_readable_at_80_columns(preset: str) -> None:
    """No cell is cut or folded: each point has one line with all that tells it from the others."""
    text = shown({"preset": preset})
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    outline = describe(expand(make_campaign({"preset": preset}, where="c.toml")))
    points = [row.point for row in sorted(outline.rows, key=lambda row: row.place)]
    procedures = {point.procedure for point in points}
    rows = [line for line in lines if {*line.split()[1:2]} & procedures and line.split()[0].isdecimal()]
    assert len(rows) == len(points)
    assert [int(row.split()[0]) for row in rows] == list(
        range(1, len(points) + 1)
    )  # in the order of measuring
    for row, point in zip(rows, points, strict=True):
        addresses = f"{point.routes} routes" if point.routes else f"{point.hosts[0]:,} x {point.hosts[1]:,}"
        assert addresses in row
        assert row.split()[2] == str(point.frame_size)
        assert (point.hash_type or "") in row
        assert str(point.repetitions) in row.split()


def test_what_is_sent_and_what_is_missing_stands_beside_the_points() -> None:
    """SEED-02, SEED-49."""
    text = " ".join(
        shown(
            {
                "name": "x",
                "suite": [{"name": "a", "hosts": 16, "one-pair-first": False, "maximum-rate": "1Mfps"}],
            }
        ).split()
    )
    assert "Sent (gateway-v4): 16 x 16 addresses, pseudorandom: left 198.18.0.1 .. 198.18.0.16" in text
    assert "throughput: binary search from 1 Mfps, to 0.5 %; trials of 5 s, confirmed by 60 s." in text
    assert "1 point, 10 repetitions, seed 1" in text
    assert "Expected time: 15 min to 60 min" in text
    assert "Deviation from SEED-02: suite 'a' has no point with a single address pair" in text


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6", "direct-v4-net16"])
def test_a_suite_with_one_host_sends_from_one_pair(plan: str) -> None:
    """Not from all hosts that its plan has room for."""
    text = shown({"name": "x", "suite": [{"name": "a", "plan": plan, "hosts": 1, "maximum-rate": "1Mfps"}]})
    assert f"Sent ({plan}): 1 address pair: left " in " ".join(text.split())
    assert "65,5" not in text
