# SPDX-License-Identifier: Apache-2.0
"""`evenhand compare` over files that the verbs wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from evenhand.series import read_record
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
Measure = Callable[..., Path]
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short", "--repetitions", "3")


@pytest.fixture
def measure(evenhand: Run, engine_playing: Play, testbed: Path) -> Measure:
    """A run of a device that forwards so many frames per second."""

    def run(name: str, fps: int, *options: str) -> Path:
        engine_playing(f"simulated-{fps}")
        ended = evenhand("throughput", testbed, *SEARCH, *options, "--run", name)
        assert ended.code == 0, ended.err
        return Path(name)

    return run


def test_a_run_compared_with_itself_is_one_everywhere(evenhand: Run, measure: Measure) -> None:
    run = measure("a.evenhand", 640_000, "--frame-size", "64,128")
    ended = evenhand("compare", run, run, "--fail-below", "0.999")
    assert ended.code == 0
    assert "Intervals need six repetitions or more in both runs." in ended.out
    assert "performance from 1.000 to 1.000, median 1.000" in ended.out
    assert "Nothing differs in what is known of the set-ups." in ended.out
    assert "Passed: no point is below 0.999." in ended.out


def test_two_runs_are_what_numpy_says(evenhand: Run, measure: Measure) -> None:
    """R2544-23: the document alone tells it."""
    runs = [measure(f"{fps}.evenhand", fps, "--frame-size", "64,128") for fps in (640_000, 600_000, 700_000)]
    document = evenhand("compare", *runs, "--json").json
    medians = [[numpy.median(p.values) for p in read_record(run).points] for run in runs]
    for i, point in enumerate(document["points"]):
        assert [other["ratio"]["ratio"] for other in point["others"]] == pytest.approx([m[i] / medians[0][i] for m in medians[1:]])
        assert [other["performance"] for other in point["others"]] == [other["ratio"]["ratio"] for other in point["others"]]
    assert [run["file"] for run in document["runs"]] == [run.name for run in runs]
    assert (document["fail_below"], document["below"]) == (None, [])


@pytest.mark.parametrize(("limit", "code"), [("0.97", 1), ("97%", 1), ("0.9", 0)])
def test_the_exit_code_tells_what_is_below_the_limit(evenhand: Run, measure: Measure, limit: str, code: int) -> None:
    before, after = measure("before.evenhand", 640_000), measure("after.evenhand", 600_000)
    ended = evenhand("compare", before, after, "--fail-below", limit)
    assert ended.code == code
    assert ("Failed: 1 is below 0.97" in ended.out) is (code == 1)
    document = evenhand("compare", before, after, "--fail-below", limit, "--json")
    assert document.code == code
    assert len(document.json["below"]) == code


def test_unlike_runs_are_refused_with_two_unless_told(evenhand: Run, measure: Measure) -> None:
    a, b = measure("a.evenhand", 640_000), measure("b.evenhand", 640_000, "--precision", "1%")
    refused = evenhand("compare", a, b)
    assert refused.code == 2
    assert refused.out == ""
    assert "precision" in refused.err
    assert "--anyway" in refused.err
    ended = evenhand("compare", a, b, "--anyway")
    assert ended.code == 0
    assert "Not measured alike: goal: precision" in ended.out


def test_fixed_ports_make_runs_unlike_although_a_run_file_has_no_such_option(evenhand: Run, measure: Measure) -> None:
    """What was sent tells it."""
    a, b = measure("a.evenhand", 640_000), measure("b.evenhand", 640_000, "--source-ports", "fixed")
    refused = evenhand("compare", a, b)
    assert refused.code == 2
    assert "sent udp_ports.source.mode pseudorandom against fixed" in refused.err


def test_a_page_is_written_beside_the_table(evenhand: Run, measure: Measure) -> None:
    run = measure("a.evenhand", 640_000)
    ended = evenhand("compare", run, run, "--html", "page.html", "--json")
    assert ended.code == 0
    assert "page.html" in ended.err
    assert ended.json["command"] == "compare"
    assert "1.000" in Path("page.html").read_text()


@pytest.mark.parametrize("limit", ["0", "1.2", "much"])
def test_a_limit_that_is_none_is_refused(evenhand: Run, measure: Measure, limit: str) -> None:
    run = measure("a.evenhand", 640_000)
    ended = evenhand("compare", run, run, "--fail-below", limit)
    assert ended.code == 2
    assert "--fail-below" in ended.err


def test_a_file_that_is_no_run_is_refused(evenhand: Run, measure: Measure) -> None:
    run = measure("a.evenhand", 640_000)
    Path("no.evenhand").write_text("no run")
    assert evenhand("compare", run, "no.evenhand").code == 2
    assert evenhand("compare", run).code == 2


def test_single_trials_are_no_results_to_compare(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """\"Nothing in common\" of two trials at the same load told nobody what to do."""
    engine_playing("simulated-640000")
    for name in ("a.evenhand", "b.evenhand"):
        evenhand("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--waits", "short", "--run", name)
    error = evenhand("compare", "a.evenhand", "b.evenhand", "--json").json["error"]
    assert error["what"].startswith("a.evenhand and b.evenhand have single trials only")
    assert "evenhand throughput, loss or another procedure" in error["next"]
    assert error["next"].endswith("evenhand show a.evenhand")
