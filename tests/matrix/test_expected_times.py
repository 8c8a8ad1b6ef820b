# SPDX-License-Identifier: Apache-2.0
"""Expected times: what is said before and during a measurement, against the time that the simulated engine's
trials take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.procedure.registry import PROCEDURES
from evenhand.trial import RFC_WAITS, SHORT_WAITS, Waits
from tests.matrix.timing import Device, Timed, time_procedure

MAXIMUM_FPS = 1_488_095
"""That of 1 Gbps."""
LOAD: dict[str, dict[str, Any]] = {
    "latency": {"rate": "100kfps"},
    "pdv": {"rate": "100kfps"},
    "ipdv": {"rate": "100kfps"},
    "recovery": {"throughput": "100kfps"},
    "tear-down": {"rate": "10kfps"},
    "back-to-back": {"repetitions": 10},
    "connections": {"connections": "100k"},
    "capacity": {"from": "1000", "most": "100k"},
}
"""Options that a procedure needs, or that make it shorter."""
BUFFER = 2048
"""Frames; the longest bursts of `burst` fit."""
LAST_SHARE = 0.1
"""Share of the whole time, of which what is said of the last need not be right."""


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("EVENHAND_ENGINE", "/bin/true")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run(name: str, device: Device, **other: Any) -> Timed:
        procedure = PROCEDURES[name]
        plan = "gateway-v4" if procedure.own_idle_s is None else "nat44"
        given: dict[str, Any] = {"plan": plan, "waits": SHORT_WAITS, **other}
        options = {**LOAD.get(name, {}), **given.pop("options", {})}
        return time_procedure(procedure, options, device, monkeypatch, tmp_path, **given)

    return run


def is_right(said: TimeSpan, took_s: float, spare_s: float = 0.0) -> bool:
    """Whether it was right within a factor of two, or lies in the range that was said."""
    least_s, most_s = (said.least_s, said.most_s) if said.is_wide else (said.middle_s / 2, 2 * said.middle_s)
    return least_s - spare_s <= took_s <= most_s + spare_s


def longest_s(said: TimeSpan) -> float:
    return said.most_s if said.is_wide else said.middle_s


def check_shrinks(timed: Timed) -> None:
    """The time left becomes less while trials pass: over any third of them, and to nothing."""
    left = [longest_s(each.left) for each in timed.said]
    third = max(2, len(left) // 3)
    for number in range(1, len(left) - third):
        assert left[number + third] < left[number], left
    assert left[-1] <= left[1]


@pytest.mark.parametrize("name", list(PROCEDURES))
def test_the_expected_time_is_right_within_a_factor_of_two(name: str, measure: Any) -> None:
    """For each procedure in the registry, with a device that forwards a fifth of the line rate; and so is
    what is said to be left before each trial."""
    check_times(name, SHORT_WAITS, measure)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(PROCEDURES))
def test_the_expected_time_with_the_waits_of_rfc_2544_is_right_within_a_factor_of_two(
    name: str, measure: Any
) -> None:
    check_times(name, RFC_WAITS, measure)


def check_times(name: str, waits: Waits, measure: Any) -> None:
    table = 10_000 if name == "capacity" else None
    device = Device(limit_fps=MAXIMUM_FPS / 5, buffer_frames=BUFFER, table_connections=table)
    timed = measure(name, device, waits=waits)
    assert is_right(timed.expected, timed.took_s)
    spare_s = LAST_SHARE * timed.took_s
    for said in timed.said:
        to_come_s = timed.took_s - said.at_s
        assert is_right(said.left, to_come_s, spare_s), (said.at_s, said.left.exact, to_come_s)
    check_shrinks(timed)


@pytest.mark.parametrize("limit_fps", [200, 2_000, 7_000])
def test_the_time_left_of_new_connections_follows_what_the_dut_opened(limit_fps: float, measure: Any) -> None:
    """A trial lasts as long as its connections take, and how fast they are opened is known after the first
    one."""
    options = {"connections": "5000", "maximum-rate": "20kfps", "minimum-rate": "100fps"}
    timed = measure("connections", Device(limit_fps=limit_fps), options=options)
    others = timed.said[1:]
    for said in others:
        to_come_s = timed.took_s - said.at_s
        assert is_right(said.left, to_come_s, LAST_SHARE * timed.took_s), timed
    check_shrinks(timed)


def test_a_search_that_finds_no_load_has_ever_less_to_do(measure: Any) -> None:
    """The bracket becomes smaller by half with each trial, and no narrower as a share of its upper bound."""
    check_shrinks(measure("throughput", Device(limit_fps=0), options={"maximum-rate": "1Mfps"}))
