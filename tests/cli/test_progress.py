# SPDX-License-Identifier: Apache-2.0
"""Live progress: what is offered, received and lost, in one line; the same for programs; and how long it
should take."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.cli.progress.json_lines import JsonProgress
from evenhand.cli.progress.line import ProgressDisplay, Rate, Rates, direction_texts
from evenhand.plan import Direction, make_plan
from evenhand.procedure import (
    Began,
    BurstGoal,
    DelayGoal,
    DelayTest,
    LossGoal,
    Measured,
    RecoveryGoal,
    TrialPhase,
)
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.expected_time import expected_of_trial, learning_s
from evenhand.procedure.registry import BURST, LATENCY, LOSS, RECOVERY, THROUGHPUT
from evenhand.search import MlrGoal, MlrGoals, Purpose, SearchTrial, ThroughputGoal, TrialFinished
from evenhand.trial import Load, Reason, SimulatedMeasurer

REPLIES = Path(__file__).parents[2] / "contract" / "golden" / "replies.jsonl"


def phase(
    elapsed_s: float, name: str = "sending", *, lost: int = 0, latency_ns: float | None = 14_210.0
) -> TrialPhase:
    """A trial at 1 Mfps in both directions, of which the reverse one loses a tenth on its way."""
    sent = round(1e6 * elapsed_s)

    def counts(received: int, lost: int) -> dict[str, Any]:
        settled = max(0, sent - 2_000_000)
        return {
            "sent_frames": sent,
            "received_frames": received,
            "settled_frames": settled,
            "lost_frames": lost if settled else 0,
            "latency": {"mean_ns": latency_ns, "max_ns": latency_ns},
        }

    directions: dict[Direction, Any] = {"forward": counts(sent, 0), "reverse": counts(sent * 9 // 10, lost)}
    return TrialPhase.from_contract(
        {"phase": name, "elapsed_s": elapsed_s, "total_s": 71.0, "directions": directions}
    )


def test_a_search_for_the_testers_ceiling_is_not_told_trial_by_trial() -> None:
    """MLR-14: it goes up until trials are INVALID; `check --cable` had twenty lines of reasons."""
    (invalid,) = [SimulatedMeasurer(limit_fps=1e9, tester_ceiling_fps=1e5).measure(1.0, 1e6)]
    assert not invalid.is_valid
    console = Console(file=io.StringIO(), width=200)
    with ProgressDisplay(console) as display:
        for what in ("tester", "tester, own loop"):
            display.on_event(Measured(what=what, result=invalid))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""
    with ProgressDisplay(console) as display:
        display.on_event(Measured(what="cable", result=invalid))
    assert "INVALID" in console.file.getvalue()


def noted(*phases: TrialPhase) -> Rates:
    rates = Rates()
    for each in phases:
        rates.note(each)
    return rates


def test_rates_are_of_the_last_second_and_of_each_direction() -> None:
    rates = noted(phase(4.0), phase(4.5), phase(5.0, lost=300_000))
    assert rates.directions["forward"].offered_fps == pytest.approx(1e6)
    assert rates.directions["forward"].received_fps == pytest.approx(1e6)
    assert rates.directions["reverse"].received_fps == pytest.approx(0.9e6)
    assert rates.directions["reverse"].so_far.loss_ratio == pytest.approx(0.1)


def test_loss_is_unknown_until_frames_have_settled_and_what_is_under_way_is_not_lost() -> None:
    """R2544-19: what comes within the residual wait has come."""
    rates = noted(phase(0.5), phase(1.5))
    assert rates.directions["reverse"].so_far.loss_ratio is None
    assert "loss ?" in direction_texts(rates)[0]


def test_the_wait_for_residual_frames_keeps_the_rates_and_goes_on_counting_losses() -> None:
    rates = noted(phase(4.0), phase(5.0), phase(6.0, "residual", lost=400_000))
    assert rates.directions["reverse"].offered_fps == pytest.approx(1e6)
    assert rates.directions["reverse"].so_far.loss_ratio == pytest.approx(0.1)


@pytest.mark.parametrize("columns", [80, 120, 240])
def test_a_terminal_shows_both_directions_in_one_line(columns: int) -> None:
    display = ProgressDisplay(Console(file=io.StringIO(), width=columns))
    display._status, display._short = (
        "trial 3 of about 11: 1 Mfps per direction for 60 s, halving",
        "trial 3 of about 11",
    )
    for event in (phase(33.5), phase(34.5, lost=3_210_000)):
        display.on_event(event)
    line = display._line("10 min left").plain
    assert len(line) <= columns
    assert line.count("→") == line.count("←") == 1
    assert len(re.findall(r"0\.0142\d? ?ms", line)) == 2
    assert "9.88" in line  # per cent lost
    assert "/71 s" in line


def test_rates_and_delays_of_both_directions_have_one_unit_and_as_many_decimals() -> None:
    """`1.2 Mfps` beside `640 kfps`, and `980 us` beside `1.2 ms`, are compared at a glance by nobody."""
    so_far = phase(5.0).directions["forward"]
    slow = replace(so_far, mean_latency_ns=1_234_567.0)
    rates = Rates(
        directions={
            "forward": Rate(offered_fps=1.2e6, received_fps=1.2e6, so_far=so_far),
            "reverse": Rate(offered_fps=640_000.0, received_fps=639_987.0, so_far=slow),
        }
    )
    long, short, shorter, shortest = direction_texts(rates)
    assert "→ offered 1.20 Mfps, received 1.20 Mfps, loss 0 %, latency 0.014 ms" in long
    assert "← offered 0.64 Mfps, received 0.64 Mfps, loss 0 %, latency 1.235 ms" in long
    assert "→ 1.20>1.20 Mfps, loss 0 %, 0.01 ms" in short
    assert "← 0.64>0.64 Mfps, loss 0 %, 1.23 ms" in short
    for text in (long, short, shorter, shortest):
        assert " us" not in text
        assert "kfps" not in text


def test_rates_that_are_magnitudes_apart_are_both_to_be_read() -> None:
    so_far = phase(5.0).directions["forward"]
    rates = Rates(
        directions={
            "forward": Rate(offered_fps=1.2e6, received_fps=1.2e6, so_far=so_far),
            "reverse": Rate(offered_fps=1.2e6, received_fps=12.5, so_far=so_far),
        }
    )
    assert "← 1,200,000.0>12.5 fps" in direction_texts(rates)[1]
    still = Rate(offered_fps=0.0, received_fps=0.0, so_far=so_far)
    assert "→ 0>0 fps" in direction_texts(Rates(directions={"forward": still}))[1]


def test_the_loads_in_the_line_of_a_trial_have_one_unit() -> None:
    result = SimulatedMeasurer(limit_fps=2e6).measure(1.0, 1.5e6)
    console = Console(file=io.StringIO(), width=200)
    with ProgressDisplay(console) as display:
        display.on_event(
            TrialFinished(
                trial=SearchTrial(
                    number=3,
                    purpose=Purpose.SEARCH,
                    attempt=1,
                    is_full_length=False,
                    load_fps=1.5e6,
                    result=result,
                ),
                lower_fps=750_000.0,
                upper_fps=3e6,
                remaining_trials=0,
                remaining_s=0.0,
            )
        )
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "trial 3: 1,500 kfps for 1 s PASS" in shown
    assert "750 kfps .. 3,000 kfps" in shown


def test_a_pipe_gets_no_line_until_a_trial_has_ended() -> None:
    console = Console(file=io.StringIO(), width=100)
    with ProgressDisplay(console) as display:
        display.on_event(Began(what="trial 1", remaining_s=70.0, number=1))
        for seconds in range(60):
            display.on_event(phase(float(seconds)))
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_all_reasons_of_an_invalid_trial_are_shown() -> None:
    result = SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=1e5).measure(1.0, 5e5)
    assert not result.is_valid
    object.__setattr__(
        result,
        "reasons",
        (
            Reason(code="a", text="forward: one"),
            Reason(code="b", text="reverse: two"),
            Reason(code="c", text="three"),
        ),
    )
    console = Console(file=io.StringIO(), width=200)
    with ProgressDisplay(console) as display:
        display.on_event(Measured(what="trial 1", result=result))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "forward: one; reverse: two; three" in shown
    assert "more" not in shown


def test_many_invalid_trials_in_a_row_share_a_line() -> None:
    """Eighty of them, each over several lines, hid what was said between them."""
    tester = SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=1e5)
    console = Console(file=io.StringIO(), width=200)
    with ProgressDisplay(console) as display:
        for number in range(1, 9):
            display.on_event(Measured(what=f"trial {number}", result=tester.measure(1.0, 5e5)))
        display.on_event(Measured(what="trial 9", result=tester.measure(1.0, 5e4)))
        for number in (10, 11):
            display.on_event(Measured(what=f"trial {number}", result=tester.measure(1.0, 5e5)))
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.split(":")[0] for line in shown] == [
        "trial 1",
        "trials 2 to 8",
        "trial 9",
        "trial 10",
        "trial 11",
    ]
    assert "7 more were INVALID" in shown[1]


def test_programs_get_a_line_of_json_each_second(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonProgress(Console(stderr=True)) as display:
        display.expect(expected_of_trial(Load(rate_fps=1e6, duration_s=60.0), 11.0))
        display.on_event(Began(what="trial 1: 1 Mfps", remaining_s=71.0, number=1))
        for halves in range(8, 21):
            display.on_event(phase(halves / 2, lost=100_000))
        display.on_event(Measured(what="trial 1", result=SimulatedMeasurer(limit_fps=1e6).measure(1.0, 2e6)))
    out, err = capsys.readouterr()
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in lines] == ["expected", "began", *["progress"] * 6, "trial"]
    assert lines[0]["seconds"] == pytest.approx(73)
    second = lines[4]
    assert (second["trial"], second["phase"], second["total_s"]) == (1, "sending", 71.0)
    assert set(second["directions"]) == {"forward", "reverse"}
    assert second["directions"]["reverse"]["received_fps"] == pytest.approx(0.9e6)
    assert second["directions"]["reverse"]["lost_frames"] == 100_000
    assert lines[-1]["verdict"] == "FAIL"
    assert lines[-1]["reasons"]


def test_the_engines_progress_is_read_with_and_without_directions() -> None:
    """An engine of an older version sends no directions."""
    documents = [json.loads(line) for line in REPLIES.read_text().splitlines()]
    phases = [
        TrialPhase.from_contract(document) for document in documents if document.get("event") == "progress"
    ]
    assert [set(each.directions) for each in phases] == [set(), {"forward", "reverse"}, set(), {"forward"}]
    assert phases[1].directions["reverse"].lost_frames == 12
    assert phases[1].directions["reverse"].mean_latency_ns is None


GOALS: dict[str, tuple[Procedure, Any, str]] = {
    "throughput": (THROUGHPUT, ThroughputGoal(max_fps=1e6), "trials of 5 s"),
    "mlr": (THROUGHPUT, MlrGoals(goals=(MlrGoal(name="NDR"),), max_fps=1e6), "RFC 9971"),
    "loss": (LOSS, LossGoal(), "loads of 60 s"),
    "latency": (LATENCY, DelayGoal(test=DelayTest.LATENCY, rate_fps=1e6), "20 trials of 2 min"),
    "recovery": (
        RECOVERY,
        RecoveryGoal(throughput_fps=1e6),
        "10 overloads of 60 s, each followed by half the load for 60 s",
    ),
    "burst": (BURST, BurstGoal(), "4 burst sizes"),
}


@pytest.mark.parametrize("name", GOALS)
def test_every_goal_has_an_expected_time_in_one_line(name: str) -> None:
    procedure, goal, words = GOALS[name]
    one, three = procedure.expected(goal, 11.0), procedure.expected(goal, 11.0, times=3)
    # A search that halves takes two trials where the maximum passes, and ten where it does not.
    begin = "Expected time: 90 s to " if name == "throughput" else "Expected time: about "
    assert one.line.startswith(begin)
    assert words in one.line
    assert "\n" not in one.line
    assert 2 * one.seconds < three.seconds <= 3 * one.seconds


def test_a_single_trial_has_an_expected_time() -> None:
    one = expected_of_trial(Load(rate_fps=1e6, duration_s=60.0), 11.0)
    assert "one trial of 60 s" in one.line
    assert "\n" not in one.line
    assert one.seconds == pytest.approx(73)


def test_ten_overloads_take_twenty_two_minutes() -> None:
    """R2544-29: 10 times 60 s, 60 s and the waits."""
    expected = RECOVERY.expected(RecoveryGoal(throughput_fps=1e6), 11.0)
    assert expected.seconds == pytest.approx(10 * 131 + 2)


@pytest.mark.parametrize("plan", ["direct-v4-net16", "direct-v6"])
def test_learning_is_part_of_what_a_direct_plan_takes(plan: str) -> None:
    load = Load(rate_fps=1e6, duration_s=60.0)
    with_learning = expected_of_trial(load, 11.0, learning_s=learning_s(make_plan(plan)))
    assert with_learning.seconds > expected_of_trial(load, 11.0).seconds + 3
