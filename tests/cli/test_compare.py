# SPDX-License-Identifier: Apache-2.0
"""`evenhand compare` over files that the verbs wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from evenhand.run import read_record
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
Measure = Callable[..., Path]
SEARCH = (
    "--maximum-rate",
    "1Mfps",
    "--duration",
    "1s",
    "--final-duration",
    "1s",
    "--waits",
    "short",
    "--repetitions",
    "3",
)
ONCE = ("--repetitions", "1")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs stay that several tests compare."""
    return tmp_path_factory.mktemp("measured")


@pytest.fixture
def measure(evenhand: Run, engine_playing: Play, testbed: Path, measured: Path) -> Measure:
    """A run of a device that forwards so many frames per second; one that was asked for before is the
    same."""

    def run(name: str, fps: int, *options: str) -> Path:
        kept = measured / f"{fps} {' '.join(options)}.evenhand"
        if not kept.exists():
            engine_playing(f"simulated-{fps}")
            ended = evenhand("throughput", testbed, *SEARCH, *options, "--run", name)
            assert ended.code == 0, ended.err
            shutil.copy(name, kept)
        shutil.copy(kept, name)
        return Path(name)

    return run


def test_a_run_compared_with_itself_is_one_everywhere(evenhand: Run, measure: Measure) -> None:
    run = measure("a.evenhand", 640_000, "--frame-size", "64,128")
    ended = evenhand("compare", run, run, "--fail-below", "0.999")
    assert ended.code == 0
    assert "Intervals need at least four repetitions in both runs." in ended.out
    assert "performance from 1.000 to 1.000, median 1.000" in ended.out
    assert "No differences between the set-ups are known." in ended.out
    assert "Passed: no point is below 0.999." in ended.out


def test_two_runs_are_what_numpy_says(evenhand: Run, measure: Measure) -> None:
    """R2544-23: the document alone tells it."""
    runs = [measure(f"{fps}.evenhand", fps, "--frame-size", "64,128") for fps in (640_000, 600_000, 700_000)]
    document = evenhand("compare", *runs, "--json").json
    medians = [[numpy.median(p.values) for p in read_record(run).points] for run in runs]
    for i, point in enumerate(document["points"]):
        assert [other["ratio"]["ratio"] for other in point["others"]] == pytest.approx(
            [m[i] / medians[0][i] for m in medians[1:]]
        )
        assert [other["performance"] for other in point["others"]] == [
            other["ratio"]["ratio"] for other in point["others"]
        ]
    assert [run["file"] for run in document["runs"]] == [run.name for run in runs]
    assert (document["fail_below"], document["below"]) == (None, [])


@pytest.mark.parametrize(("limit", "code"), [("0.97", 1), ("97%", 1), ("0.9", 0)])
def test_the_exit_code_tells_what_is_below_the_limit(
    evenhand: Run, measure: Measure, limit: str, code: int
) -> None:
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
    assert refused.error.code == "analysis.not-alike"
    assert "precision 0.5 % against 1 %" in refused.error.what
    assert "--anyway" in refused.error.next_step
    ended = evenhand("compare", a, b, "--anyway")
    assert ended.code == 0
    assert "Not measured alike: goal: precision" in ended.out


def test_fixed_ports_make_runs_unlike_although_a_run_file_has_no_such_option(
    evenhand: Run, measure: Measure
) -> None:
    """What was sent tells it."""
    a, b = measure("a.evenhand", 640_000), measure("b.evenhand", 640_000, "--source-ports", "fixed")
    refused = evenhand("compare", a, b)
    assert refused.code == 2
    assert refused.error.code == "analysis.not-alike"
    assert "sent UDP ports source mode pseudorandom against fixed" in refused.error.what


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
    assert ended.error.where == "--fail-below"


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
    assert error["id"] == "analysis.nothing-to-compare"
    assert error["what"].startswith("a.evenhand and b.evenhand ")
    assert "evenhand throughput, loss or another procedure" in error["next"]
    assert error["next"].endswith("evenhand show a.evenhand")


CAMPAIGN = """
name = "monday"
testbed = "testbed.toml"
[[suite]]
name = "s"
plan = "PLAN"
procedure = "PROCEDURE"
hosts = [4]
repetitions = 2
one-pair-first = false
duration = "1s"
waits = "short"
"""
ALIKE = {
    "throughput": (
        'maximum-rate = "1Mfps"\nfinal-duration = "2s"\nprecision = "2%"\n',
        ("--maximum-rate", "1Mfps", "--final-duration", "2s", "--precision", "0.02", "--repetitions", "2"),
        ("--precision", "1%", "goal: precision 2 % against 1 %"),
    ),
    "loss": (
        'maximum-rate = "1Mfps"\n',
        ("--maximum-rate", "1000kfps"),
        ("--hosts", "5", "hosts 4 x 4 against 5 x 5"),
    ),
    "latency": (
        'rate = "100kfps"\nfrom = "0.5s"\ninner-repetitions = 2\n',
        ("--rate", "100kfps", "--from", "500ms", "--repetitions", "2"),
        ("--waits", "rfc", "set-up: waits after routing 100 ms against 2 s"),
    ),
}


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize("procedure", ALIKE)
def test_a_campaign_is_compared_with_the_run_of_a_verb(
    evenhand: Run, engine_playing: Play, testbed: Path, procedure: str, plan: str
) -> None:
    """What was asked for is the same, however the file of a campaign spells it; what is not the same is told
    by the names of both."""
    in_file, options, (other, value, told) = ALIKE[procedure]
    engine_playing("simulated-640000")
    Path("monday.toml").write_text(CAMPAIGN.replace("PLAN", plan).replace("PROCEDURE", procedure) + in_file)
    ended = evenhand("run", "monday.toml", "--no-html", "--run", "monday.evenhand")
    assert ended.code == 0, ended.err
    line = (
        procedure,
        testbed,
        "--plan",
        plan,
        "--hosts",
        "4",
        "--duration",
        "1s",
        "--waits",
        "short",
        *options,
    )
    for name, more in (("verb.evenhand", ()), ("other.evenhand", (other, value))):
        ended = evenhand(*line, *more, "--run", name)
        assert ended.code == 0, ended.err
    for first, second in (("monday", "verb"), ("verb", "monday")):
        ended = evenhand("compare", f"{first}.evenhand", f"{second}.evenhand", "--json")
        assert ended.code == 0, ended.err
        (compared,) = ended.json["points"][0]["others"]
        assert (compared["unlike"], ended.json["unlike"]) == ([], [])
        assert compared["ratio"]["ratio"] == 1.0
    refused = evenhand("compare", "monday.evenhand", "other.evenhand")
    assert refused.code == 2
    assert refused.error.code == "analysis.not-alike"
    assert told in refused.error.what


def test_the_page_s_target_is_checked_before_any_run_is_read(evenhand: Run, measure: Measure) -> None:
    """A long campaign is not compared only to find that the page cannot be written."""
    run = measure("a.evenhand", 640_000)
    Path("notes.html").write_text("mine")
    for html in ("notes.html", "nowhere/page.html"):
        ended = evenhand("compare", run, "missing.evenhand", "--html", html)
        assert ended.code in (2, 3)
        assert ended.error.where == f"--html {html}"
    assert Path("notes.html").read_text() == "mine"


def test_sessions_of_both_sides_are_named_by_against(evenhand: Run, measure: Measure) -> None:
    """A run is one session; several of each side make the session the unit."""
    before = [
        measure(f"a{i}.evenhand", fps, *ONCE) for i, fps in enumerate((640_000, 660_000, 620_000, 650_000))
    ]
    after = [
        measure(f"b{i}.evenhand", fps, *ONCE) for i, fps in enumerate((500_000, 520_000, 510_000, 490_000))
    ]
    assert "Each run is one session" in evenhand("compare", before[0], after[0]).out
    against = [word for run in after for word in ("--against", run)]
    document = evenhand("compare", *before, *against, "--json").json
    assert document["unit"] == "session"
    assert document["runs"][1]["sessions"] == [run.name for run in after]
    (point,) = document["points"]
    assert point["others"][0]["is_different"] is True
    assert point["others"][0]["ratio"]["counts"] == [4, 4]
    ended = evenhand("compare", *before, *against, "--fail-below", "0.95")
    assert ended.code == 1
    assert "Each value belongs to one session" in ended.out
