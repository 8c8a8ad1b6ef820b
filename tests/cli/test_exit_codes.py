# SPDX-License-Identifier: Apache-2.0
"""One rule for exit codes: what ends without a number ends with 1, whatever the procedure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.cli.tables import WITHOUT_NUMBER, exit_code_of
from evenhand.procedure.registry import CONNECTIONS, PROCEDURES, THROUGHPUT
from tests.cli.running import Ended
from tests.run.hostile import write_run

Run = Callable[..., Ended]
Play = Callable[[str], Path]


GOAL = {"test": "latency", "rate_fps_per_direction": 1e6, "throughput_fps_per_direction": 1e6}
WITHOUT_VALUES = {
    "outcome": "below_minimum",
    "is_at_least": False,
    "connections": 5,
    "verdicts": {},
    "goal": GOAL,
    "figures": {},
    "points": [],
    "removals": [],
    "steps": [],
}
"""What every procedure's result has at least, and no figure."""


@pytest.mark.parametrize("name", PROCEDURES)
def test_no_procedure_takes_a_result_without_a_number_for_an_answer(name: str) -> None:
    assert exit_code_of(PROCEDURES[name], WITHOUT_VALUES) == WITHOUT_NUMBER == 1


def test_each_size_of_a_table_needs_one_number() -> None:
    found, nothing = {"throughput_fps_per_direction": 5.0}, {"outcome": "below_minimum"}
    assert THROUGHPUT.value(found) == 5.0
    for rows, code in (([[found], [found, nothing]], 0), ([[found], [nothing, nothing]], 1), ([[]], 1)):
        assert exit_code_of(THROUGHPUT, {"rows": [{"repetitions": row} for row in rows]}) == code
    assert exit_code_of(CONNECTIONS, nothing) == 1


def test_a_search_that_finds_nothing_ends_with_1(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("simulated-640000")
    line = (
        "throughput",
        testbed,
        "--maximum-rate",
        "2Mfps",
        "--waits",
        "short",
        "--no-run",
        "--duration",
        "1s",
    )
    assert evenhand(*line, "--minimum-rate", "1Mfps").code == 1
    assert evenhand(*line, "--final-duration", "1s").code == 0


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_the_file_of_a_single_verb_is_no_campaign(
    evenhand: Run, tmp_path: Path, resume: tuple[str, ...]
) -> None:
    """It was said to store a campaign that could be resumed, and then was none."""
    file = write_run(tmp_path / "a.evenhand")
    ended = evenhand("run", file, *resume)
    assert (ended.code, ended.error.code) == (2, "run.not-a-campaign")
    assert "evenhand show" in ended.error.next_step
