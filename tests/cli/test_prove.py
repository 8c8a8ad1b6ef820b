# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan prove`: the draws are judged by the real engine, and a bad generator would be seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.cli.prove import SUSPICIOUS
from evenhand.report.proof import GENERATOR_NAMES
from evenhand.trial import find_engine
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]


@pytest.fixture
def _real_engine() -> None:
    try:
        find_engine()
    except HostError as error:
        pytest.skip(f"no engine: {error}")


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
@pytest.mark.parametrize(
    ("plan", "hosts"),
    [("gateway-v4", "253"), ("gateway-v4", "65533"), ("gateway-v4", "65534"), ("gateway-v6", "65536")],
)
def test_draws_are_uniform_and_independent_and_faulty_ones_are_seen(
    evenhand: Run, plan: str, hosts: str
) -> None:
    """SEED-33, SEED-40, SEED-43, R4814-01: ten expected hits and more for each value; a proof that nobody can
    fail proves nothing."""
    ended = evenhand(
        "plan", "prove", plan, "--hosts", hosts, "--frames", "1M", "--seed", "20261121", "--json"
    )
    assert ended.code == 0, ended.err
    proof = ended.json
    assert proof["verdict"] == "fine"
    assert proof["figures"] >= 56
    assert proof["suspicious"] == []
    assert [stream["direction"] for stream in proof["streams"]] == ["forward", "reverse"]
    for stream in proof["streams"]:
        assert stream["frames"] == 1_000_000
        names = [field["field"] for field in stream["fields"]]
        assert {"source", "destination", "source_port", "destination_port"} <= set(names)
        assert len(stream["pairs"]) == len(names) * (len(names) - 1) // 2
        assert all(field["expected_per_value"] >= 10 for field in stream["fields"])
    assert {c["generator"]: c["verdict"] for c in proof["contrast"]} == {
        "fifteen_bit": "suspicious",
        "modulo": "suspicious",
    }
    assert proof["contrast"][0]["fields"][2]["coverage"]["occurred"] == 32_768


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
def test_a_15_bit_generator_never_reaches_half_of_65536_addresses(evenhand: Run) -> None:
    """Why Evenhand has its own draw: docs/explanation/randomness.md."""
    ended = evenhand("plan", "prove", "gateway-v6", "--frames", "1M", "--direction", "forward")
    assert ended.code == 0
    (line,) = [
        line
        for line in ended.out.splitlines()
        if line.startswith(GENERATOR_NAMES["fifteen_bit"]) and "source" in line
    ]
    assert re.search(r" 65,536 +32,768 .* < 1e-300$", line)
    assert "\nFine: none of 28 figures is out of bounds." in ended.out


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
@pytest.mark.parametrize("plan", ["nat44", "nat64", "nat66"])
def test_connections_of_a_plan_are_chosen_as_evenly_as_chance_would(evenhand: Run, plan: str) -> None:
    """R9693-05, SEED-43: also where a quarter of all four tuples of a plan are drawn."""
    for options in (("--frames", "700k"), ("--hosts", "1", "--frames", "1M")):
        ended = evenhand("plan", "prove", plan, "--seed", "20261121", "--no-contrast", "--json", *options)
        assert ended.code == 0, ended.err
        proof = ended.json
        assert proof["suspicious"] == []
        assert [stream["direction"] for stream in proof["streams"]] == ["forward", "reverse"]
        ports = [field["values"] for field in proof["streams"][0]["fields"][2:]]
        assert (
            [field["values"] for field in proof["streams"][1]["fields"][2:]] == ports[::-1] == [100, 40_000]
        )
    ended = evenhand("plan", "prove", plan, "--hosts", "1", "--frames", "5M")
    assert ended.code == 2
    assert "make 4000000 connections" in ended.err


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_line_on_stderr_tells_each_stream_that_has_been_drawn(evenhand: Run, plan: str) -> None:
    """Where there is no terminal for a bar: who waits for 1e9 frames must see that something goes on."""
    ended = evenhand("plan", "prove", plan, "--frames", "1M", "--no-contrast", "--json")
    name = GENERATOR_NAMES["philox"]
    expected, *lines = ended.err.splitlines()
    assert expected.startswith("Expected time: about ")
    assert lines == [
        f"{n} of 2: {name}, {direction}, stream 0: 1,000,000 frames drawn"
        for n, direction in enumerate(("forward", "reverse"), start=1)
    ]
    assert ended.json["frames"] == 1_000_000


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
def test_each_stream_of_a_direction_is_proven_on_its_own(evenhand: Run) -> None:
    """SEED-41, SEED-44: also that the same seed gives the same figures, and that with 16 hosts all 256 pairs
    occur."""
    options = (
        "--hosts",
        "16",
        "--frames",
        "700k",
        "--streams",
        "3",
        "--direction",
        "reverse",
        "--first",
        "1000000",
        "--no-contrast",
        "--json",
    )
    proof = evenhand("plan", "prove", "gateway-v4", *options).json
    assert [(stream["stream"], stream["streams"]) for stream in proof["streams"]] == [(0, 3), (1, 3), (2, 3)]
    assert proof["contrast"] == []
    addresses = [stream["pairs"][0] for stream in proof["streams"]]
    assert [(pair["exact"], pair["coverage"]["occurred"]) for pair in addresses] == [(True, 256)] * 3
    assert len({pair["chi_square"]["value"] for pair in addresses}) == 3
    assert evenhand("plan", "prove", "gateway-v4", *options).json == proof


@pytest.mark.wire
@pytest.mark.usefixtures("_real_engine")
def test_too_few_frames_prove_nothing_and_that_is_said(evenhand: Run) -> None:
    ended = evenhand("plan", "prove", "gateway-v4", "--frames", "1000", "--no-contrast")
    assert ended.code == 0
    assert "Unproven: none of" in ended.out
    assert "at least 655,340 frames of each stream" in ended.out


def test_a_suspicious_draw_ends_with_an_exit_code_of_its_own(
    evenhand: Run, engine_playing: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that proves its seed before a campaign must not have to read the text."""
    engine_playing("fair")
    assert evenhand("plan", "prove", "gateway-v4", "--no-contrast").code == 0
    monkeypatch.setattr("evenhand.report.proof.ALARM", 30.0)  # bounds that nobody keeps
    ended = evenhand("plan", "prove", "gateway-v4", "--no-contrast")
    assert ended.code == SUSPICIOUS
    assert "Suspicious: " in ended.out


@pytest.mark.parametrize("frames", ["0", "4000000001", "5G", "many", "1.5", "-1"])
def test_numbers_of_frames_out_of_range_are_refused(
    evenhand: Run, engine_playing: Play, tmp_path: Path, frames: str
) -> None:
    engine_playing("fair")
    ended = evenhand("plan", "prove", "gateway-v4", f"--frames={frames}")
    assert ended.code == 2
    assert ended.error.where == "--frames"
    assert not (tmp_path / "engine-was-started").exists()


def test_a_wrong_direction_is_refused_before_the_engine_starts(
    evenhand: Run, engine_playing: Play, tmp_path: Path
) -> None:
    engine_playing("fair")
    assert evenhand("plan", "prove", "gateway-v4", "--direction", "up").code == 2
    assert not (tmp_path / "engine-was-started").exists()
