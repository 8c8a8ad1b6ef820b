# SPDX-License-Identifier: Apache-2.0
"""First one address pair, then many: in one command, or after an earlier run of the same testbed
(SEED-02)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.plan import TOPOLOGIES, Traffic, make_plan
from evenhand.run import read_run
from tests.cli.running import TESTBED, Ended
from tests.run.hostile import change_json, write_run

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")


def _requirements(document: dict[str, list[dict[str, str]]]) -> set[str]:
    return {deviation["requirement"] for deviation in document["deviations"]}


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6", "nets-v4-gateway"])
def test_one_command_searches_with_one_pair_first_and_stores_both(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """SEED-02, R2544-13: in this order, with the same goal, the ratio beside."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--plan", plan, "--one-pair-first", "--run", run)
    assert ended.code == 0, ended.err
    assert ended.out.index("1 address pair (") < ended.out.index(" addresses")
    assert "1.000 times that" in ended.out
    assert "this result is not preceded by a result with a single address pair" not in ended.out
    one, many = read_run(run).searches
    assert one.setup["traffic"]["is_one_pair"] is True
    assert many.setup["traffic"]["is_one_pair"] is False
    assert one.goal == many.goal
    assert one.finished_at is not None
    assert one.finished_at <= many.started_at
    assert one.setup["traffic"]["dut_routes"] == many.setup["traffic"]["dut_routes"], "the DUT is set up once"
    document = evenhand(
        "throughput", testbed, *QUICK, "--plan", plan, "--one-pair-first", "--json", "--no-run"
    ).json
    assert document["one_pair"]["many_to_one"] == 1
    assert document["first_search"]["traffic"]["is_one_pair"] is True
    assert document["first_search"]["trials"]
    assert "SEED-02" not in _requirements(document)


def test_a_search_with_many_addresses_alone_names_the_omission(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-85."""
    engine_playing("simulated-640000")
    assert (
        "SEED-02: this result is not preceded by a result with a single address pair"
        in evenhand("throughput", testbed, *QUICK, "--no-run").out
    )
    assert "SEED-02" in _requirements(evenhand("throughput", testbed, *QUICK, "--no-run", "--json").json)
    assert "SEED-02" not in _requirements(
        evenhand("throughput", testbed, *QUICK, "--no-run", "--json", "--hosts", "1").json
    )


@pytest.mark.parametrize("how", [("--hosts", "1"), ("--one-pair-first",)])
def test_an_earlier_run_of_the_same_testbed_counts(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    """SEED-02: on another day, in another file."""
    engine_playing("simulated-640000")
    first = tmp_path / "first.evenhand"
    assert evenhand("throughput", testbed, *QUICK, *how, "--run", first).code == 0
    document = evenhand("throughput", testbed, *QUICK, "--after", first, "--json", "--no-run").json
    assert "SEED-02" not in _requirements(document)
    assert document["one_pair"]["source"] == "in first.evenhand"
    assert document["one_pair"]["many_to_one"] == 1
    run = tmp_path / "second.evenhand"
    assert (
        "in first.evenhand, with 1 address pair"
        in evenhand("throughput", testbed, *QUICK, "--after", first, "--run", run).out
    )
    assert read_run(run).searches[0].setup["one_pair"]["source"] == "in first.evenhand"


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        (("--plan", "gateway-v6"), "plan gateway-v4 there, gateway-v6 here"),
        (("--frame-size", "128"), "frame size 64 there, 128 here"),
        (("--direction", "forward"), "directions forward and reverse there, forward here"),
        (("--loss-ratio", "1%"), "loss ratio 0.0 there, 0.01 here"),
    ],
)
def test_a_run_of_other_conditions_is_refused_before_anything_starts(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, options: tuple[str, ...], differs: str
) -> None:
    """SEED-02: a ratio of two numbers that were made differently says nothing."""
    engine_playing("simulated-640000")
    first = tmp_path / "first.evenhand"
    evenhand("throughput", testbed, *QUICK, "--hosts", "1", "--run", first)
    (tmp_path / "engine-was-started").unlink()
    ended = evenhand("throughput", testbed, *QUICK, "--after", first, *options, "--no-run")
    assert ended.code == 2
    assert ended.error.code == "cli.different-conditions"
    assert differs in ended.error.what
    assert not (tmp_path / "engine-was-started").exists()


def test_other_ports_another_dut_and_a_run_without_such_a_search_are_refused(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-02: the same testbed is: the same two ports of the tester, and a DUT that answers with the same
    MACs."""
    engine_playing("simulated-640000")
    many, first = tmp_path / "many.evenhand", tmp_path / "first.evenhand"
    evenhand("throughput", testbed, *QUICK, "--run", many)
    evenhand("throughput", testbed, *QUICK, "--hosts", "1", "--run", first)

    def refusal(run: Path) -> EvenhandError:
        ended = evenhand("throughput", testbed, *QUICK, "--after", run, "--no-run")
        assert ended.code == 2
        return ended.error

    assert refusal(many).code == "cli.no-one-pair-search"
    assert refusal(tmp_path / "none.evenhand").code == "run.no-such-file"
    testbed.write_text(TESTBED.replace("net_ring1", "net_ring7"))
    other_ports = refusal(first)
    assert other_ports.code == "cli.different-conditions"
    assert "ports net_ring0 and net_ring1 there, net_ring0 and net_ring7 here" in other_ports.what
    testbed.write_text(TESTBED)
    with sqlite3.connect(first) as connection:
        (setup,) = connection.execute("SELECT setup FROM searches").fetchone()
        changed = json.loads(setup)
        changed["traffic"]["macs"]["right"]["dut"] = "02:00:00:00:00:cc"
        connection.execute("UPDATE searches SET setup = ?", (json.dumps(changed),))
    connection.close()
    other_dut = refusal(first)
    assert other_dut.code == "procedure.different-dut"
    assert "02:00:00:00:00:cc" in other_dut.what


def test_one_pair_that_passed_up_to_the_testers_ceiling_is_a_lower_bound(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-02: it stands before the other result with "at least", and there is no ratio."""
    engine_playing("simulated-1000000000-300000")
    document = evenhand("throughput", testbed, *QUICK, "--one-pair-first", "--json", "--no-run").json
    assert document["one_pair"]["is_at_least"] is True
    assert (
        document["one_pair"]["throughput_fps_per_direction"]
        == document["first_search"]["throughput_fps_per_direction"]
        > 0
    )
    assert document["one_pair"]["many_to_one"] is None
    text = evenhand("throughput", testbed, *QUICK, "--one-pair-first", "--no-run").out
    assert "no ratio, because both are lower bounds." in text


def test_one_pair_that_the_tester_did_not_finish_does_not_count(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-02: where the first search ends with tester ceiling and no load passed, no result of the DUT comes
    before the second one."""
    engine_playing("simulated-1000000000-100")
    document = evenhand("throughput", testbed, *QUICK, "--one-pair-first", "--json", "--no-run").json
    assert document["first_search"]["outcome"] == "tester_ceiling"
    assert document["one_pair"] is None
    assert "SEED-02" in _requirements(document)


@pytest.mark.parametrize(
    "options",
    [
        ("--hosts", "1", "--one-pair-first"),
        ("--one-pair-first", "--after", "a"),
        ("--host-mode", "fixed", "--after", "a"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    engine_playing("fair")
    assert evenhand("throughput", testbed, *QUICK, *options).code == 2
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_one_pair_of_a_plan_leaves_the_duts_set_up_as_it_is(name: str) -> None:
    """SEED-02: the same interfaces and routes, so that only the addresses of the frames differ."""
    plan = make_plan(name)
    one = plan.one_pair()
    assert Traffic(plan=one).is_one_pair
    assert [(side.dut, side.routes, side.gateway) for side in one.sides] == [
        (side.dut, side.routes, side.gateway) for side in plan.sides
    ]
    assert one.left.host_range.first_address == plan.left.host_range.first_address


@pytest.mark.parametrize("column", ["setup", "goal", "plan"])
@pytest.mark.parametrize("verb", ["throughput", "latency"])
def test_a_run_whose_search_lacks_what_is_compared_is_a_bad_request(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, verb: str, column: str
) -> None:
    """`--after` reads a file that anybody may have sent."""
    engine_playing("simulated-640000")
    run = write_run(tmp_path / "hostile.evenhand")
    for edit in (
        lambda _: {},
        lambda value: {**value, "testbed": {"left": 1}, "loss_ratio": "x", "name": []},
    ):
        change_json(run, f"searches.{column}", edit)
        ended = evenhand(
            verb,
            testbed,
            "--after",
            run,
            "--no-run",
            *(("--maximum-rate", "1Mfps") if verb == "throughput" else ()),
        )
        assert (ended.code, ended.error.code) == (2, "run.not-a-run")
