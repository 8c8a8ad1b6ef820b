# SPDX-License-Identifier: Apache-2.0
"""The load of a trial: how long it lasts, what it offers when, and what of it the engine is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from evenhand.trial import Burst, Connections, EngineMeasurer, EngineSession, Load, LoadChange, Waits

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden" / "replies.jsonl"
PASS = next(
    document
    for document in map(json.loads, GOLDEN.read_text().splitlines())
    if document.get("verdict") == "PASS"
)
OVERLOAD = Load(rate_fps=1100.0, duration_s=60.0, then=LoadChange(rate_fps=500.0, duration_s=30.0))


class Session:
    """Answers each trial, and keeps what was asked; tells of its progress before."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events = events
        self.asked: list[dict[str, Any]] = []

    def request(self, name: str, *, on_event: Any = None, **arguments: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        for event in self.events:
            if on_event is not None:
                on_event(event)
        return dict(PASS)


def test_a_burst_is_waited_for_as_long_as_it_lasts() -> None:
    """R9004-03: a buffer may take as long to empty; and no shorter than the waits say."""
    load = Load.single_burst(30_000, 1000.0)
    assert (load.duration_s, load.burst) == (30, Burst(frames=30_000, interval_s=30))
    session = Session()
    measurer = EngineMeasurer(session=cast(EngineSession, session), waits=Waits(residual_s=2.0))
    measurer.offer(load)
    measurer.offer(Load.single_burst(1000, 1000.0))
    assert [asked["waits"]["residual_s"] for asked in session.asked] == [30, 2]
    for asked, duration_s, waits_s in zip(session.asked, (30, 1), (39, 11), strict=True):
        assert asked["answer_within_s"] > duration_s + waits_s
        assert asked["ended_within_s"] == asked["answer_within_s"]


def test_a_load_that_changes_has_the_first_rate_until_it_does() -> None:
    """R2544-29."""
    assert OVERLOAD.sending_s == 90
    assert [OVERLOAD.rate_at(at_s) for at_s in (0, 59.9, 60, 89)] == [1100, 1100, 500, 500]
    even = Load(rate_fps=1100.0, duration_s=60.0)
    assert (even.sending_s, even.rate_at(70)) == (60, 1100)


def test_progress_says_the_load_of_the_moment_after_the_waits_before() -> None:
    """R2544-29: the engine counts from the beginning of the trial, the load from that of sending."""
    sending = [{"phase": "sending", "elapsed_s": elapsed_s} for elapsed_s in (5.0, 63.0, 65.0)]
    heard: list[dict[str, Any]] = []
    EngineMeasurer(
        session=cast(EngineSession, Session({"phase": "learning", "elapsed_s": 3.0}, *sending)),
        waits=Waits(after_routing_s=1.0, after_learning_s=3.0),
        on_event=heard.append,
    ).offer(OVERLOAD)
    assert [event.get("rate_fps") for event in heard] == [None, 1100, 1100, 500]


@pytest.mark.parametrize(
    "load",
    [
        Load(rate_fps=1000.0, duration_s=60.0),
        OVERLOAD,
        Load(rate_fps=1000.0, duration_s=60.0, burst=Burst(frames=16, interval_s=0.5)),
        Load(rate_fps=1000.0, duration_s=5.0, connections=Connections(use="each_once", count=5000)),
        Load.of_each_connection(Connections(use="establish", count=5000, order="increasing"), 250.0),
    ],
)
def test_what_is_asked_is_read_back(load: Load) -> None:
    assert Load.from_contract(load.to_contract()) == load


def test_each_connection_has_one_frame() -> None:
    """R9693-05."""
    assert Load.of_each_connection(Connections(use="establish", count=5000), 250.0).duration_s == 20
