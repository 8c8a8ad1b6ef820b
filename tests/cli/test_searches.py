# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput --search`: each search from the command line to the run file; bad goals start
nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.procedure.search_options import choose_search, parse_goal
from evenhand.run import read_run
from evenhand.search import MlrGoal, MlrGoals, ThroughputGoal, Tst009Goal
from tests.cli.running import Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")
BINARY = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=30, precision=0.01)


def test_mlr_finds_shows_and_stores_every_goal(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """MLR-10, MLR-11, R2544-23: NDR and PDR from one search, with both bounds and all attributes."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--search", "mlr", "--run", run)
    assert ended.code == 0, ended.err
    for text in (
        "Goals, loads per direction",
        "NDR (loss ratio 0 %)",
        "PDR (loss ratio 0.5 %)",
        "conditional throughput",
        "regular",
        "exceed ratio 50 %",
        "duration sum 4 s",
        "UDP over IPv4",
        "R2544-20",
        "in both directions together",
    ):
        assert text in ended.out, text
    (search,) = read_run(run).searches
    assert search.outcome == "found"
    assert search.goal["search"] == "mlr"
    assert search.result is not None
    ndr, pdr = search.result["goals"]
    assert 640_000 * 0.995 < ndr["lower_fps_per_direction"] <= 640_000 < ndr["upper_fps_per_direction"]
    assert 640_000 < pdr["lower_fps_per_direction"] <= 640_000 / 0.995 + 1
    assert len(search.trials) == sum(search.result["verdicts"].values())


def test_mlr_writes_one_json_document_with_all_goals(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """MLR-11, MLR-12: and says where the goals depart from what the RFC recommends."""
    engine_playing("simulated-640000")
    goals = ("--goal", "NDR", "--goal", "PDR=0.5%,width=0.1%", "--goal", "PDR=2%,exceed=0")
    document = evenhand(
        "throughput",
        testbed,
        *QUICK,
        "--search",
        "mlr",
        *goals,
        "--direction",
        "forward",
        "--json",
        "--no-run",
    ).json
    assert [goal["name"] for goal in document["goals"]] == ["NDR", "PDR=0.5%", "PDR=2%"]
    assert [goal["is_regular"] for goal in document["goals"]] == [True] * 3
    assert document["goals"][2]["exceed_ratio"] == 0
    assert document["throughput_fps_per_direction"] == document["goals"][0]["lower_fps_per_direction"]
    assert "MLR-12" in [deviation["requirement"] for deviation in document["deviations"]]
    assert len(document["trials"]) > 10


def test_mlr_may_follow_a_search_with_a_single_address_pair(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-02: the strictest goals of both are compared."""
    engine_playing("simulated-640000")
    ended = evenhand("throughput", testbed, *QUICK, "--search", "mlr", "--one-pair-first", "--no-run")
    assert ended.code == 0, ended.err
    assert "the result with many addresses is 1.000 times that" in ended.out
    assert ended.out.count("Goals, loads per direction") == 2


def test_tst009_and_a_known_start_are_said(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """MLR-06, MLR-13."""
    engine_playing("simulated-640000")
    ended = evenhand("throughput", testbed, *QUICK, "--search", "tst009", "--start", "640kfps", "--no-run")
    assert ended.code == 0, ended.err
    assert "ETSI TST009" in ended.out
    assert "began at 640,000 fps per direction, known from before" in ended.out
    assert "Throughput: 640,000 fps per direction" in ended.out
    document = evenhand("throughput", testbed, *QUICK, "--start", "auto", "--json", "--no-run").json
    assert document["goal"]["search"] == "binary"
    assert document["goal"]["is_guided"] is True
    assert document["throughput_fps_per_direction"] == pytest.approx(640_000, rel=0.005)


@pytest.mark.parametrize(
    ("options", "code", "where", "named"),
    [
        (("--search", "mlr", "--goal", "NRD"), "procedure.unknown-goal", "--goal", "NDR?"),
        (("--search", "mlr", "--goal", "anything"), "procedure.unknown-goal", "--goal", "'anything'"),
        (("--search", "mlr", "--goal", "PDR,exceed=1"), "base.out-of-range", "--goal", "exceed ratio '1'"),
        (("--search", "mlr", "--goal", "PDR=100%"), "base.out-of-range", "--goal", "'100%'"),
        (("--search", "mlr", "--goal", "PDR=0"), "procedure.goal-with-wrong-ratio", "--goal", "'PDR=0'"),
        (("--search", "mlr", "--goal", "NDR=1%"), "procedure.goal-with-wrong-ratio", "--goal", "'NDR=1%'"),
        (("--search", "mlr", "--goal", "RFC2544=1%"), "procedure.goal-without-ratio", "--goal", "RFC2544"),
        (("--search", "mlr", "--goal", "NDR,exceeds=0.5"), "procedure.goal-value", "--goal", "exceed?"),
        (("--search", "mlr", "--goal", "NDR,sum"), "procedure.goal-value", "--goal", "'sum' in 'NDR,sum'"),
        (
            ("--search", "mlr", "--goal", "NDR,sum=1s,sum=2s"),
            "procedure.goal-value",
            "--goal",
            "'NDR,sum=1s,sum=2s'",
        ),
        (("--search", "mlr", "--goal", "NDR,sum=1s"), "search.durations-contradict", "goal NDR", "1 s"),
        (
            ("--search", "mlr", "--goal", "NDR", "--goal", "TST009"),
            "search.same-goal-twice",
            "--goal",
            "TST009",
        ),
        (("--search", "mlr", "--goal", "NDR,width=0"), "search.out-of-range", "goal NDR", "width 0.0"),
        (("--search", "mlr", "--goal", "NDR,initial=0s"), "search.durations-contradict", "goal NDR", "0 ns"),
        (
            ("--search", "mlr", "--loss-ratio", "1%"),
            "procedure.not-an-option-of-mlr",
            "--loss-ratio",
            "--goal PDR",
        ),
        (
            ("--search", "mlr", "--loss-verification", "1"),
            "procedure.not-an-option-of-mlr",
            "--loss-verification",
            "exceed in --goal",
        ),
        (("--search", "mlr", "--start", "auto"), "procedure.not-an-option-of-mlr", "--start", "--start"),
        (("--goal", "NDR"), "procedure.one-goal-only", "--goal", "binary"),
        (("--search", "tst009", "--goal", "NDR"), "procedure.one-goal-only", "--goal", "tst009"),
        (("--search", "mrl"), "base.not-one-of", "--search", "mlr?"),
        (("--start", "soon"), "base.not-a-quantity", "--start", "'soon'"),
        (("--start", "2Mfps"), "procedure.above-maximum-rate", "--start", "'2Mfps'"),
        (("--start", "0"), "base.out-of-range", "--start", "'0'"),
    ],
)
def test_bad_goals_are_refused_before_anything_starts(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    options: tuple[str, ...],
    code: str,
    where: str,
    named: str,
) -> None:
    """MLR-05: exit code 2, what is wrong, where, what to do."""
    engine_playing("simulated-640000")
    ended = evenhand("throughput", testbed, *QUICK, *options, "--no-run")
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert named in f"{ended.error.what} {ended.error.next_step}"
    assert "trial 1" not in ended.err


def test_goals_take_what_they_do_not_name_from_the_other_options() -> None:
    """MLR-05, MLR-06: NDR and PDR tolerate one full-length trial of two, RFC2544 none; keys go before."""
    assert parse_goal("NDR", BINARY) == MlrGoal(
        name="NDR",
        loss_ratio=0,
        exceed_ratio=0.5,
        final_duration_s=30,
        duration_sum_s=60,
        initial_duration_s=1,
        width=0.01,
    )
    assert parse_goal("rfc2544", BINARY) == MlrGoal(
        name="RFC2544",
        loss_ratio=0,
        exceed_ratio=0,
        final_duration_s=30,
        duration_sum_s=30,
        initial_duration_s=1,
        width=0.01,
    )
    assert parse_goal("PDR=1%, exceed=20%, final=60s, sum=2min, width=2%, initial=2s", BINARY) == MlrGoal(
        name="PDR=1%",
        loss_ratio=0.01,
        exceed_ratio=0.2,
        final_duration_s=60,
        duration_sum_s=120,
        initial_duration_s=2,
        width=0.02,
    )


def test_each_search_has_its_goal() -> None:
    assert choose_search(BINARY, "binary", None, None) == BINARY
    tst009 = choose_search(BINARY, "tst009", None, None)
    assert isinstance(tst009, Tst009Goal)
    assert (tst009.loss_verifications, tst009.precision, tst009.final_duration_s) == (1, 0.01, 30)
    mlr = choose_search(BINARY, "mlr", None, None)
    assert isinstance(mlr, MlrGoals)
    assert [goal.name for goal in mlr.goals] == ["NDR", "PDR"]
    with raises("procedure.one-goal-only"):
        choose_search(BINARY, "binary", ["NDR"], None)
