# SPDX-License-Identifier: Apache-2.0
"""Several frame sizes and repetitions: one command, one table, every search stored; bad input starts
nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import (
    RFC_FRAME_SIZES,
    Profile,
    Repetitions,
    Row,
    Throughput,
    ThroughputTable,
    check_frame_sizes,
)
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.found import found_tables
from evenhand.run import read_run
from evenhand.search import ThroughputGoal, find_throughput
from evenhand.spec.frames import read_frame_sizes
from evenhand.trial import SimulatedMeasurer
from tests.cli.running import Ended
from tests.cli.test_json_documents import validate
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = (
    "--maximum-rate",
    "1Mfps",
    "--duration",
    "1s",
    "--waits",
    "short",
    "--precision",
    "5%",
    "--final-duration",
    "1s",
)
LOSS = ("--maximum-rate", "1Mfps", "--duration", "1s", "--waits", "short")


@pytest.mark.parametrize(("plan", "smallest"), [("gateway-v4", 64), ("gateway-v6", 84)])
def test_all_sizes_make_one_table(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str, smallest: int
) -> None:
    """R2544-04, R2544-22, R5180-09, R5180-10: the seven sizes, with 84 in place of 64 for IPv6; each search
    is in the run file."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--plan", plan, "--frame-size", "all", "--run", run)
    assert ended.code == 0, ended.err
    sizes = [smallest, *RFC_FRAME_SIZES[1:]]
    assert [search.frame_size for search in read_run(run).searches] == sizes
    table = ended.out.split("\n\n")[0]
    assert [line.split()[0] for line in table.splitlines()[2:]] == [str(size) for size in sizes]
    assert f"UDP over IPv{plan[-1]}" in ended.out
    assert "R2544-04" not in ended.out
    assert ("84 is used instead" in ended.err) == (plan == "gateway-v6")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_jumbo_frames_and_those_of_rfc_8219_have_a_name(plan: str) -> None:
    """R5180-09, R8219-01: the lists of the RFCs."""
    sizes, notes = read_frame_sizes(make_plan(plan), ["rfc8219"])
    assert sizes == (
        make_plan(plan).smallest_frame_size,
        128,
        256,
        512,
        768,
        1024,
        1280,
        1518,
        1522,
        2048,
        4096,
        8192,
        9216,
    )
    assert len(notes) == (plan == "gateway-v6")
    assert read_frame_sizes(make_plan(plan), ["1518, jumbo"])[0] == (1518, 4096, 8192, 9216)


def test_fewer_than_five_sizes_are_named(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """R2544-04: "at least five"."""
    engine_playing("simulated-640000")
    ended = evenhand(
        "throughput", testbed, *QUICK, "--frame-size", "64,128", "--frame-size", "512", "--json", "--no-run"
    )
    validate(ended.json)
    assert [row["frame_size"] for row in ended.json["rows"]] == [64, 128, 512]
    assert {"requirement": "R2544-04", "text": "3 frame sizes instead of at least 5"} in ended.json[
        "deviations"
    ]


def test_repetitions_are_stored_and_summed_up(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-72, R8219-18: ten searches, their figures, and the interval of the median beside it."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--repetitions", "10", "--run", run, "--json")
    validate(ended.json)
    (row,) = ended.json["rows"]
    assert len(row["repetitions"]) == len(read_run(run).searches) == 10
    statistics = row["statistics"]
    assert statistics["count"] == 10
    assert (
        statistics["median"] == statistics["minimum"] == row["repetitions"][0]["throughput_fps_per_direction"]
    )
    assert statistics["median_interval"]["level"] == pytest.approx(0.978515625)
    assert "SEED-72" not in {deviation["requirement"] for deviation in ended.json["deviations"]}
    text = evenhand("throughput", testbed, *QUICK, "--repetitions", "2", "--no-run").out
    assert "Deviation from SEED-72: 2 searches instead of 10" in text
    once = evenhand("throughput", testbed, *QUICK, "--no-run")
    assert (
        "Deviation from SEED-72: 1 search instead of 10: the variation of the result is not known" in once.out
    )
    assert "median's interval (probability, %)" in text
    assert " (50.00) " in text
    assert "2 found" in text


def test_one_value_has_no_interval_and_is_counted_as_one() -> None:
    """SEED-72: two of the three searches met the tester's ceiling; "39,375 .. 39,375 (0 %)" read as an
    exact result."""
    plan = make_plan("gateway-v4")
    profile = Profile(plan=plan, frame_size=64, seed=1, directions=("forward", "reverse"))
    goal = ThroughputGoal(max_fps=1e6, precision=0.05, duration_s=1.0, final_duration_s=1.0)
    devices = [
        SimulatedMeasurer(limit_fps=640_000, tester_ceiling_fps=ceiling) for ceiling in (100.0, 2e6, 100.0)
    ]
    found = [
        Throughput(profile=profile, search=find_throughput(device, goal), is_repetition=True)
        for device in devices
    ]
    table = ThroughputTable(rows=(Row(frame_size=64, asked=3, repetitions=tuple(found), stopped_early=None),))
    (row,) = found_tables(table, THROUGHPUT)[-1].rows
    value = found[1].throughput_fps
    assert value is not None
    cells = [cell.text for cell in row]
    assert cells == ["?", *[f"{round(value):,}"] * 3, "-", "2 tester ceiling, 1 found"]
    told = [deviation.text for deviation in table.deviations if deviation.requirement == "SEED-72"]
    assert told == ["1 of 3 searches found a value, instead of 10: the variation of the result is not known"]


@pytest.mark.parametrize("verb", ["throughput", "loss"])
def test_repetitions_that_agree_are_cut_short_and_it_is_said(
    evenhand: Run, engine_playing: Play, testbed: Path, verb: str
) -> None:
    """SEED-72: a simulated device does the same each time; three repetitions are the least that show it."""
    engine_playing("simulated-640000")
    line = (
        verb,
        testbed,
        *(QUICK if verb == "throughput" else LOSS),
        "--repetitions",
        "10",
        "--spread",
        "1%",
        "--no-run",
    )
    ended = evenhand(*line)
    assert ended.code == 0, ended.err
    assert "stopped after 3 of 10 repetitions: the spread of 0 % is within 1 %" in ended.out
    assert "stopping depended on the values" in ended.out.replace("\n", " ")
    (row,) = evenhand(*line, "--json").json["rows"]
    assert row["stopped_early"].startswith("stopped after 3 of 10")
    assert len(row["repetitions"]) == 3


def test_loss_over_sizes_and_repetitions(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """R2544-26, R2544-04, R8219-18."""
    engine_playing("simulated-640000")
    document = evenhand(
        "loss", testbed, *LOSS, "--frame-size", "128,256", "--repetitions", "2", "--json", "--no-run"
    ).json
    validate(document)
    for row in document["rows"]:
        assert row["loss_statistics"][0]["statistics"]["median"] == pytest.approx(0.36)
        assert row["loss_statistics"][-1]["statistics"]["maximum"] == 0


def test_one_pair_comes_first_with_every_size(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-02."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand(
        "throughput", testbed, *QUICK, "--frame-size", "64,128", "--one-pair-first", "--run", run
    )
    assert [search.setup["traffic"]["is_one_pair"] for search in read_run(run).searches] == [
        True,
        False,
        True,
        False,
    ]
    assert "128 octets: before it, in this run, with 1 address pair" in ended.out
    assert "SEED-02" not in ended.out


@pytest.mark.parametrize("verb", ["throughput", "loss"])
@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--repetitions", "0"), "procedure.out-of-range", "--repetitions"),
        (("--repetitions", "1001"), "procedure.out-of-range", "--repetitions"),
        (("--repetitions", "10", "--spread", "0"), "procedure.out-of-range", "--spread"),
        (("--spread", "1%"), "procedure.too-few-for-spread", "--spread"),
        (("--frame-size", "64,63"), "procedure.frame-size-out-of-range", "--frame-size"),
        (("--frame-size", "64,9217"), "procedure.frame-size-out-of-range", "--frame-size"),
        (("--frame-size", "64,64"), "procedure.listed-twice", "--frame-size"),
        (("--frame-size", "64", "--frame-size", "small"), "base.not-a-quantity", "--frame-size"),
        (("--frame-size", "64,"), "base.not-a-quantity", "--frame-size"),
        (("--frame-size", "all,64"), "procedure.listed-twice", "--frame-size"),
        (("--frame-size", "rfc8219,jumbo"), "procedure.listed-twice", "--frame-size"),
    ],
)
def test_bad_lists_and_repetitions_start_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    verb: str,
    options: tuple[str, ...],
    code: str,
    where: str,
) -> None:
    engine_playing("fair")
    ended = evenhand(verb, testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
    assert list(tmp_path.glob("*.evenhand")) == []


def test_the_same_is_refused_in_python() -> None:
    with raises("procedure.listed-twice"):
        check_frame_sizes(make_plan("gateway-v6"), [64, 84])
    with raises("procedure.no-frame-size"):
        check_frame_sizes(make_plan("gateway-v6"), [])
    with raises("procedure.out-of-range"):
        Repetitions(count=0)
