# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput` without a maximum: the tester finds its own ceiling first, once (MLR-14)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evenhand.host.known_ceilings import ceilings_file
from evenhand.procedure.maximum import ATTEMPTS
from evenhand.run import read_record, read_run
from tests.cli.running import TESTBED, Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--duration", "1s", "--final-duration", "2s", "--waits", "short")
MLR = ("--search", "mlr", "--goal", "NDR,final=2s,sum=4s,initial=1s")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def kinds(run: Path) -> list[tuple[str, int]]:
    return [(search.kind, len(search.trials)) for search in read_run(run).searches]


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_search_begins_at_the_testers_own_ceiling(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """MLR-14: a load above it is beyond this tester, so the result is a lower bound. The next search
    knows."""
    engine_playing("simulated-640000-400000")
    first, second = tmp_path / "first.evenhand", tmp_path / "second.evenhand"
    document = evenhand("throughput", testbed, "--plan", plan, *QUICK, "--json", "--run", first).json
    ceiling = document["ceiling"]
    assert 0.95 * 400_000 <= ceiling["rate_fps_per_direction"] <= 400_000 < ceiling["above_fps_per_direction"]
    assert ceiling["is_new"]
    assert (
        document["goal"]["max_fps"]
        == document["throughput_fps_per_direction"]
        == ceiling["rate_fps_per_direction"]
    )
    assert document["outcome"] == "tester_ceiling"
    assert document["is_at_least"]
    assert document["verdicts"]["INVALID"] == 0
    assert [kind for kind, _ in kinds(first)] == ["ceiling", "throughput"]
    ended = evenhand("throughput", testbed, "--plan", plan, *QUICK, "--run", second)
    assert kinds(second)[0] == ("ceiling", ATTEMPTS)  # only whether the tester keeps more by now
    assert "The search began at the tester's own ceiling of" in ended.out
    assert "passed, and no higher load was tried" in ended.out


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize("search", [(), MLR])
def test_a_ceiling_that_was_found_in_a_bad_minute_is_found_again(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str, search: Sequence[str]
) -> None:
    """MLR-14: once a search has passed it, the next one looks whether the tester keeps more. The repetitions
    are of one point, wherever each of them begins."""
    engine_playing("simulated-640000-100000")
    first, then = tmp_path / "first.evenhand", tmp_path / "then.evenhand"
    before = evenhand("throughput", testbed, "--plan", plan, *QUICK, *search, "--json", "--run", first).json
    assert before["throughput_fps_per_direction"] <= 100_000
    engine_playing("simulated-640000-400000")
    table = evenhand(
        "throughput", testbed, "--plan", plan, *QUICK, *search, "--repetitions", 2, "--json", "--run", then
    ).json
    found = [each["throughput_fps_per_direction"] for each in table["rows"][0]["repetitions"]]
    assert all(0.95 * 400_000 <= fps <= 400_000 for fps in found)
    (point,) = read_record(then).points
    assert len(point.repetitions) == 2
    assert (point.at_maximum, point.at_tester_ceiling) == (2, 2)


def test_a_known_ceiling_that_no_search_has_reached_is_not_looked_for_again(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """MLR-14: a DUT that is slower than the tester costs it no trials."""
    engine_playing("simulated-640000-400000")
    evenhand("throughput", testbed, *QUICK, "--run", tmp_path / "first.evenhand")
    text = ceilings_file().read_text().replace('"was_reached": true', '"was_reached": false')
    ceilings_file().write_text(text)
    engine_playing("simulated-200000-400000")
    ended = evenhand("throughput", testbed, *QUICK, "--run", tmp_path / "second.evenhand")
    assert [kind for kind, _ in kinds(tmp_path / "second.evenhand")] == ["throughput"]
    assert "UTC: this tester cannot keep a higher load" in ended.out


def test_nothing_is_tried_above_a_load_at_which_the_dut_loses_frames(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """Such a search ends below it, whatever the tester could do above; so its ceiling stays unknown."""
    engine_playing("simulated-640000")
    document = evenhand("throughput", testbed, *QUICK, "--json", "--run", tmp_path / "a.evenhand").json
    assert document["goal"]["max_fps"] == 1_000_000
    assert document["outcome"] == "found"
    assert document["ceiling"] is None
    assert not ceilings_file().exists()


def test_a_tester_that_keeps_the_line_rate_begins_there(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """MLR-13: then nothing limits the search, and nothing is said."""
    engine_playing("simulated-640000")
    testbed.write_text(TESTBED.replace("[right]", 'line_rate = "1Gbps"\n[right]'))
    document = evenhand("throughput", testbed, *QUICK, "--json", "--run", tmp_path / "a.evenhand").json
    assert document["goal"]["max_fps"] == 1_488_095
    assert document["ceiling"] is None
    assert kinds(tmp_path / "a.evenhand")[0] == ("ceiling", 1)


def test_a_maximum_above_a_known_ceiling_is_used_and_told(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """MLR-14: never above it without saying so."""
    engine_playing("simulated-640000-400000")
    evenhand("throughput", testbed, *QUICK, "--no-run")
    ended = evenhand("throughput", testbed, *QUICK, "--no-run", "--maximum-rate", "600kfps")
    assert "The search began at 600,000 fps per direction, above the tester's own ceiling of" in " ".join(
        ended.out.split()
    )
    below = evenhand("throughput", testbed, *QUICK, "--no-run", "--maximum-rate", "300kfps")
    assert "own ceiling" not in below.out


@pytest.mark.parametrize("options", [("--frame-size", "128"), ("--direction", "forward")], ids=" ".join)
def test_another_kind_of_traffic_has_another_ceiling(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    engine_playing("simulated-640000-400000")
    evenhand("throughput", testbed, *QUICK, "--no-run")
    evenhand("throughput", testbed, *QUICK, *options, "--run", tmp_path / "a.evenhand")
    kind, trials = kinds(tmp_path / "a.evenhand")[0]
    assert (kind, trials > ATTEMPTS) == ("ceiling", True)  # found from the beginning
    assert len(json.loads(ceilings_file().read_text())["ceilings"]) == 2
    evenhand("throughput", testbed, *QUICK, "--run", tmp_path / "b.evenhand")
    assert kinds(tmp_path / "b.evenhand")[0] == ("ceiling", ATTEMPTS)  # known, and reached


def test_other_numbers_of_hosts_have_the_same_ceiling(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """MLR-14: the tester draws each address alike, so a ceiling that is known is not found again for each
    number of hosts."""
    engine_playing("simulated-640000-400000")
    evenhand("throughput", testbed, *QUICK, "--no-run")
    evenhand("throughput", testbed, *QUICK, "--hosts", "7", "--run", tmp_path / "a.evenhand")
    assert kinds(tmp_path / "a.evenhand")[0] == ("ceiling", ATTEMPTS)  # known, and reached
    assert len(json.loads(ceilings_file().read_text())["ceilings"]) == 1


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "ceilings": []}',
        '{"version": 1, "ceilings": [1, {}, {"key": {}, "rate_fps": "x"}]}',
        "[" * 100_000,
    ],
    ids=["empty", "a list", "nothing", "another version", "no ceilings", "deep"],
)
def test_what_is_no_list_of_ceilings_is_written_anew(
    evenhand: Run, engine_playing: Play, testbed: Path, content: str
) -> None:
    engine_playing("simulated-640000-400000")
    ceilings_file().parent.mkdir(parents=True)
    ceilings_file().write_text(content)
    ended = evenhand("throughput", testbed, *QUICK, "--no-run")
    assert ended.code == 0, ended.err
    assert len(json.loads(ceilings_file().read_text())["ceilings"]) == 1


def test_a_folder_that_cannot_be_written_costs_time_only(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    engine_playing("simulated-640000-400000")
    for number in (1, 2):
        run = tmp_path / f"{number}.evenhand"
        ended = evenhand("throughput", testbed, *QUICK, "--run", run)
        assert ended.code == 0, ended.err
        assert kinds(run)[0][0] == "ceiling"


def test_a_tester_that_keeps_no_load_says_so(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("simulated-640000-1")
    ended = evenhand("throughput", testbed, *QUICK, "--no-run")
    assert ended.code == 3
    assert ended.error.code == "procedure.no-load-kept"
    assert "--maximum-rate" in ended.error.next_step


def test_a_table_finds_it_for_each_size_and_looks_again_before_each_repetition(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000-400000")
    run = tmp_path / "a.evenhand"
    ended = evenhand(
        "throughput", testbed, *QUICK, "--frame-size", "64,128", "--repetitions", "2", "--run", run
    )
    assert [kind for kind, _ in kinds(run)] == ["ceiling", "throughput"] * 4
    assert [trials for kind, trials in kinds(run) if kind == "ceiling"][1::2] == [ATTEMPTS] * 2
    shown: list[Any] = [line for line in ended.out.splitlines() if "own ceiling" in line]
    assert len(shown) == 2


def test_the_engine_is_looked_for_once(
    evenhand: Run, engine_playing: Play, testbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the expected time is told, and not again for each search."""
    engine = engine_playing("simulated-640000--512")
    looked: list[Path | None] = []

    def find(option: Path | None) -> Path:
        looked.append(option)
        return engine

    monkeypatch.setattr("evenhand.rig.setup.find_engine", find)
    ended = evenhand(
        "throughput", testbed, *QUICK, "--maximum-rate", "1Mfps", "--repetitions", "2", "--no-run"
    )
    assert ended.code == 0, ended.err
    assert looked == [None]
