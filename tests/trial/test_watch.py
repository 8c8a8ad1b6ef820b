# SPDX-License-Identifier: Apache-2.0
"""The engine's look at CPUs and clock, and what is done about one outside the contract."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.trial import EngineSession, Watch
from evenhand.trial.watch import watch
from tests.errors import raises

SCRIPTED = Path(__file__).with_name("scripted_engine.py")
REPLY: dict[str, Any] = {
    "id": 1,
    "response": "watch",
    "seconds": 5.0,
    "cpus": [
        {"cpu": 0, "absences": 3, "longest_us": 1520.0, "away_us": 3000.0, "stolen_us": 0.0},
        {"cpu": 1, "absences": 0, "longest_us": 0, "away_us": 0, "stolen_us": 0},
    ],
    "clock": {
        "source": "tsc",
        "ticks_per_second": 2596110000.0,
        "error_ppm_raw": -0.3,
        "error_ppm_monotonic": 12.0,
    },
}


def test_a_watch_is_read_whole() -> None:
    watched = Watch.from_contract(REPLY)
    assert [(cpu.cpu, cpu.absences, cpu.longest_us, cpu.away_us) for cpu in watched.cpus] == [
        (0, 3, 1520.0, 3000.0),
        (1, 0, 0.0, 0.0),
    ]
    assert watched.clock.source == "tsc"
    assert watched.clock.error_ppm_raw == -0.3
    unnamed = {key: value for key, value in REPLY["clock"].items() if key != "source"}
    assert Watch.from_contract({**REPLY, "clock": unnamed}).clock.source is None


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": "5"},
        {"seconds": -1},
        {"cpus": None},
        {"cpus": [{"cpu": 0}]},
        {"cpus": [{"cpu": 0, "absences": 1, "longest_us": 5.0, "away_us": 4.0, "stolen_us": 0.0}]},
        {"clock": None},
        {"clock": {"source": "tsc"}},
        {"clock": {**REPLY["clock"], "error_ppm_raw": float("nan")}},
    ],
)
def test_a_watch_outside_the_contract_is_a_bug(change: dict[str, Any]) -> None:
    with raises("trial.contract-violated"):
        Watch.from_contract({**REPLY, **change})


def test_the_engine_watches_the_cpus_that_it_is_asked_for() -> None:
    with EngineSession([sys.executable, SCRIPTED, "fair"]) as session:
        watched = watch(session, cpus=[2, 5], seconds=0.5)
    assert watched.seconds == 0.5
    assert [cpu.cpu for cpu in watched.cpus] == [2, 5]
    assert watched.cpus[1].absences == 3


def test_an_engine_without_the_request_refuses_it() -> None:
    with EngineSession([sys.executable, SCRIPTED, "no-watch"]) as session, raises("engine.bad-request"):
        watch(session, cpus=[0])
