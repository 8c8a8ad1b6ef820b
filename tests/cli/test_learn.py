# SPDX-License-Identifier: Apache-2.0
"""Learning from the command line: before the first trial of a direct plan, or by its own verb; unreachable
hosts are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
TRIAL = ("--rate", "1kfps", "--duration", "1s", "--waits", "short", "--plan", "direct-v4-net16")
SEARCH = (
    "--maximum-rate",
    "1Mfps",
    "--duration",
    "1s",
    "--final-duration",
    "2s",
    "--waits",
    "short",
    "--plan",
    "direct-v4-net16",
)
VERBS = pytest.mark.parametrize(
    "line", [("trial", *TRIAL), ("throughput", *SEARCH)], ids=lambda line: line[0]
)


@VERBS
def test_a_direct_plan_is_learnt_once_before_the_first_trial(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, line: tuple[str, ...]
) -> None:
    """R2544-35, SEED-20: shown on stderr, and kept in the document and in the run file."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand(line[0], testbed, *line[1:], "--json", "--run", run)
    assert ended.code == 0, ended.err
    assert ended.err.count("learning: ") == 1
    assert "learning: 65,533 of 65,533 reachable on each side" in ended.err
    learning = ended.json["learning"]
    assert learning["is_complete"]
    assert learning["sides"]["right"] == {
        "hosts": 65533,
        "reachable": 65533,
        "rounds": 1,
        "unreachable": [],
        "questions_answered": 65533,
    }
    assert "R2544-35" not in {deviation["requirement"] for deviation in ended.json["deviations"]}
    (search,) = read_run(run).searches
    assert search.setup["learning"] == learning
    assert search.setup["host_macs"] == "port"


@VERBS
def test_an_unreachable_host_ends_it_before_the_first_trial(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, line: tuple[str, ...]
) -> None:
    """SEED-20: its frames would be lost in each trial, and the search would find the luck of the draw."""
    engine_playing("fair")
    ended = evenhand(line[0], testbed, *line[1:], "--run", tmp_path / "a.evenhand")
    assert ended.code == 3
    assert "65,532 of 65,533 reachable on the left, 65,533 of 65,533 on the right" in ended.err
    assert "unreachable on the left: 198.18.3.7" in ended.err
    assert ended.error.code == "procedure.hosts-unreachable"
    assert "1 of 131,066 hosts: 198.18.3.7" in ended.error.what
    assert "--allow-unreachable" in ended.error.next_step
    assert "Trial" not in ended.out
    assert not (tmp_path / "a.evenhand").exists()


def test_unreachable_hosts_can_be_allowed_and_are_told_as_a_deviation(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """R2544-35."""
    engine_playing("fair")
    ended = evenhand("trial", testbed, *TRIAL, "--allow-unreachable")
    assert ended.code == 0, ended.err
    assert "unreachable on the left: 198.18.3.7" in ended.err
    assert "Deviation from R2544-35: 1 of 131,066 hosts remained unreachable after learning" in ended.out


@VERBS
def test_learning_can_be_left_out_and_that_is_a_deviation(
    evenhand: Run, engine_playing: Play, testbed: Path, line: tuple[str, ...]
) -> None:
    """R2544-35: one way, so only the hosts of one side were to be learnt."""
    engine_playing("simulated-640000")
    ended = evenhand(line[0], testbed, *line[1:], "--no-learning", "--direction", "forward")
    assert ended.code == 0, ended.err
    assert "learning" not in ended.err
    assert (
        "Deviation from R2544-35: the DUT did not have to resolve the 65,533 hosts on its links before"
        " the first trial" in ended.out
    )


def test_gateway_plans_learn_nothing_and_deviate_from_nothing(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-19: two entries, which the engine's learning frames see to."""
    engine_playing("simulated-640000")
    ended = evenhand("throughput", testbed, *SEARCH[:-1], "gateway-v4", "--json", "--no-learning")
    assert ended.json["learning"] is None
    assert "learning:" not in ended.err
    assert "R2544-35" not in {deviation["requirement"] for deviation in ended.json["deviations"]}


def test_the_verb_tells_everything_and_ends_with_3_if_a_host_is_missing(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("fair")
    ended = evenhand("learn", testbed, "--plan", "direct-v6", "--json")
    assert ended.code == 3
    assert ended.json["plan"] == "direct-v6"
    assert ended.json["learning"]["sides"]["left"]["unreachable"] == ["198.18.3.7"]
    assert ended.json["dut"] is None
    shown = evenhand("learn", testbed, "--plan", "direct-v6", "--allow-unreachable")
    assert shown.code == 0
    assert "unreachable on the left: 198.18.3.7" in shown.out


@pytest.mark.parametrize(
    ("line", "code", "where"),
    [
        (
            ("trial", *TRIAL[:-1], "gateway-v4", "--host-macs", "pseudorandom"),
            "spec.hosts-without-macs",
            "--host-macs",
        ),
        (
            ("throughput", *SEARCH[:-1], "gateway-v6", "--host-macs", "pseudorandom"),
            "spec.hosts-without-macs",
            "--host-macs",
        ),
        (("learn", "--host-macs", "pseudorandom"), "spec.hosts-without-macs", "--host-macs"),
        (("learn", "--plan", "direct-v6", "--rate", "0fps"), "base.out-of-range", "--rate"),
        (("learn", "--plan", "direct-v6", "--wait", "soon"), "base.not-a-quantity", "--wait"),
        (("learn", "--plan", "direct-v6", "--rounds", "0"), "base.out-of-range", "--rounds"),
    ],
)
def test_what_cannot_be_starts_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    line: tuple[str, ...],
    code: str,
    where: str,
) -> None:
    """R4814-06: a host behind a gateway has no MAC on the link."""
    engine_playing("fair")
    ended = evenhand(line[0], testbed, *line[1:])
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()
