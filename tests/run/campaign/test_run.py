# SPDX-License-Identifier: Apache-2.0
"""`evenhand run` and `evenhand status`: begun, gone on with, refused; hooks; a disk that is full."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand.analysis import analyse
from evenhand.cli import live_page
from evenhand.cli.live_page import SHARE, LivePage
from evenhand.run import CampaignRecord, PointState, read_record
from evenhand.run.folder import MOST_KEPT, again_command, find_source, remember_source, resume_command
from tests.preloaded.commands import evenhand_command
from tests.run.campaign.small_campaign import OPTIONS, essence, write_campaign
from tests.run.goldens import recorded_file

Evenhand = Callable[..., subprocess.CompletedProcess[str]]


def short(hooks: str = "", *, repetitions: int = 1, more: str = "") -> str:
    """A campaign of two points."""
    return f"""
name = "short"
testbed = "testbed.toml"
[[suite]]
name = "a"
hosts = [1, 4]
repetitions = {repetitions}
{OPTIONS}
{hooks}
{more}
"""


@pytest.fixture
def evenhand(tmp_path: Path) -> Evenhand:
    """A command line in the folder of the campaign."""

    def run(*arguments: str | Path, file_limit: int | None = None) -> subprocess.CompletedProcess[str]:
        def limit() -> None:
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        return subprocess.run(
            [*evenhand_command(), *arguments],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            preexec_fn=limit,
        )

    return run


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "EVENHAND_ENGINE": str(folder / "engine"), "XDG_STATE_HOME": str(folder / "state")}


def record_of(folder: Path) -> CampaignRecord:
    return read_record(folder / "run.evenhand")


WITH_PAGE = ("run", "small.toml", "--run", "run.evenhand")
RUN = (*WITH_PAGE, "--no-html")
"""Pages take most of the time."""


def test_a_campaign_comes_back_from_its_file(evenhand: Evenhand, tmp_path: Path) -> None:
    """SEED-02, SEED-72: one address pair is first, each repetition has its own seed, and what was asked for
    stands beside it."""
    write_campaign(tmp_path, short(repetitions=2))
    ended = evenhand(*RUN)
    assert ended.returncode == 0, ended.stderr
    (verdict,) = analyse(record_of(tmp_path)).bias
    assert f"IPv4: {verdict.sentence}\n" in ended.stdout
    record = record_of(tmp_path)
    assert record.is_campaign
    assert (record.name, record.suites, record.commands[0][1]) == ("short", ("a",), "run")
    assert record.finished_at is not None
    assert [point.point.is_one_pair for point in record.points] == [True, False]
    assert {point.state for point in record.points} == {PointState.MEASURED}
    repetitions = [repetition for point in record.points for repetition in point.repetitions]
    assert len({repetition.seed for repetition in repetitions}) == 4
    assert all(search.seed == repetition.seed for repetition in repetitions for search in repetition.searches)
    assert {repetition.testbed for repetition in repetitions} == set(record.testbeds) == {"testbed.toml"}
    assert all(
        repetition.result and repetition.value == repetition.result["throughput_fps_per_direction"]
        for repetition in repetitions
    )
    many = record.points[1].repetitions[0].result
    assert many is not None
    assert many["one_pair"]["throughput_fps_per_direction"] == record.points[0].values[0]
    assert record.spec["suite"][0]["name"] == "a"
    assert record.versions["engine"]
    assert (
        str(tmp_path).encode() not in (tmp_path / "run.evenhand").read_bytes()
    )  # whoever gets the file learns no folder


def test_a_finished_campaign_has_nothing_to_resume(evenhand: Evenhand, tmp_path: Path) -> None:
    """It says so to anybody: root is not needed where nothing is measured, and neither is the testbed."""
    write_campaign(tmp_path, short())
    assert evenhand(*RUN).returncode == 0
    before = record_of(tmp_path)
    (tmp_path / "testbed.toml").unlink()
    ended = evenhand("run", "--resume", "run.evenhand", "--no-html")
    assert ended.returncode == 0, ended.stderr
    assert "run.evenhand is finished." in ended.stderr
    assert record_of(tmp_path) == before


def test_a_campaign_is_never_overwritten(evenhand: Evenhand, tmp_path: Path) -> None:
    write_campaign(tmp_path, short())
    assert evenhand(*RUN).returncode == 0
    again = evenhand(*RUN)
    assert again.returncode == 2
    assert "Next: Resume it: evenhand run --resume run.evenhand;" in again.stderr
    (tmp_path / "other.toml").write_text(short())
    another = evenhand("run", "other.toml", *RUN[2:])
    assert another.returncode == 2
    assert "never overwritten" in another.stderr


def test_a_changed_campaign_file_is_refused_with_the_difference(evenhand: Evenhand, tmp_path: Path) -> None:
    path = write_campaign(tmp_path, short())
    assert evenhand(*RUN).returncode == 0
    path.write_text(short().replace('"2%"', '"3%"'))
    ended = evenhand(*RUN, "--resume")
    assert ended.returncode == 2
    assert '"2%" -> "3%"' in ended.stderr
    path.write_text("# a comment changes nothing\n" + short())
    assert evenhand(*RUN, "--resume").returncode == 0


def test_a_second_run_on_one_file_is_refused_and_status_tells_of_the_first(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    """D11: two writers would measure everything twice, on one testbed."""
    write_campaign(tmp_path, short('[suite.hooks]\nbefore-point = "touch begun; sleep 60"'))
    first = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *WITH_PAGE],
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
    )
    try:
        while not (tmp_path / "begun").exists():
            assert first.poll() is None
            time.sleep(0.01)
        second = evenhand(*RUN, "--resume")
        assert second.returncode == 3
        assert f"is in use by process {first.pid}" in second.stderr
        status = evenhand("status", "run.evenhand")
        assert status.returncode == 0, status.stderr
        assert f"measured by process {first.pid}" in status.stdout
        assert "0 of 2 have ended" in status.stdout
        # Ctrl-C ends the hook, too, and tells how to go on.
        first.send_signal(signal.SIGINT)
        _, told = first.communicate(timeout=60)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 130
    assert b"No trial is stored" in told
    assert not (tmp_path / "run.evenhand").exists()
    assert not (tmp_path / "run.html").exists(), "no page without what it is the page of"


def test_a_campaign_that_is_not_ours_to_write_is_resumed_with_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run.evenhand"
    assert resume_command(run) == f"evenhand run --resume {run}"
    run.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert resume_command(run) == f"sudo evenhand run --resume {run}"
    assert again_command(run) == f"sudo evenhand run --resume {run} --again"


@pytest.mark.thorough
def test_the_page_of_an_interrupted_campaign_has_all_that_is_stored_and_no_longer_reloads(
    tmp_path: Path,
) -> None:
    hook = 'hooks.before-point = "test $EVENHAND_HOSTS_LEFT = 1 || { touch second; sleep 60; }"'
    write_campaign(tmp_path, short(hook))
    run = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *WITH_PAGE],
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
    )
    try:
        while not (tmp_path / "second").exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 130
    assert b"Resume with: evenhand run --resume run.evenhand" in told
    page = (tmp_path / "run.html").read_text()
    assert "1 of 2 points done" in page
    assert re.search("resume it: (sudo )?evenhand run --resume run.evenhand", page)
    assert 'http-equiv="refresh"' not in page
    assert "reloads" not in page


def test_hooks_know_their_point_and_their_output_is_kept(evenhand: Evenhand, tmp_path: Path) -> None:
    hooks = '''
[suite.hooks]
before-suite = "echo suite $EVENHAND_SUITE on $EVENHAND_TESTBED"
before-point = """echo $EVENHAND_POINT $EVENHAND_PLAN $EVENHAND_HOSTS_LEFT x $EVENHAND_HOSTS_RIGHT\
 $EVENHAND_HASH_TYPE; echo aside >&2"""
after-point = "yes 0123456789 | head -c 100000"
after-suite = "exit 3"
'''
    write_campaign(
        tmp_path, short(hooks, more="").replace("repetitions = 1", 'repetitions = 1\nhash-types = ["type2"]')
    )
    ended = evenhand(*RUN)
    assert ended.returncode == 0, ended.stderr
    record = record_of(tmp_path)
    assert [(hook.when, hook.exit_code) for hook in record.hooks] == [("before_suite", 0), ("after_suite", 3)]
    assert record.hooks[0].output == "suite a on testbed.toml\n"
    before, after = record.points[1].hooks
    assert before.output == "a/throughput/64/n=4 gateway-v4 4 x 4 type2\naside\n"
    assert (before.when, after.when) == ("before_point", "after_point")
    assert after.output.endswith("[... cut after 64 KiB]")
    assert len(after.output) < 66_000
    # What an after-hook does is told, and takes nothing from what was measured.
    assert {point.state for point in record.points} == {PointState.MEASURED}
    assert "The hook after-suite ended with exit code 3" in ended.stderr


def test_a_point_whose_hook_fails_is_kept_with_the_reason_and_the_campaign_goes_on(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    hooks = """
[suite.hooks]
before-point = "test $EVENHAND_HOSTS_LEFT != 1 || test -e repaired || { echo no switch; false; }"
after-point = "echo $EVENHAND_HOSTS_LEFT >> after"
"""
    write_campaign(tmp_path, short(hooks))
    ended = evenhand(*RUN)
    assert ended.returncode == 1, "a point has no number"
    first, second = record_of(tmp_path).points
    assert first.state is PointState.NO_NUMBER
    assert first.reason == "the hook before-point ended with exit code 1: no switch"
    assert first.repetitions == ()
    assert second.state is PointState.MEASURED
    assert (tmp_path / "after").read_text().split() == ["1", "4"]
    # It stays so, until it is asked for.
    assert evenhand(*RUN, "--resume").returncode == 1
    assert record_of(tmp_path).points[0].state is PointState.NO_NUMBER
    (tmp_path / "repaired").touch()
    assert evenhand(*RUN, "--resume", "--again").returncode == 0
    record = record_of(tmp_path)
    assert [point.state for point in record.points] == [PointState.MEASURED] * 2
    assert len(record.points[1].repetitions) == 1


def test_a_hook_that_takes_too_long_is_ended_with_all_that_it_started(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    hooks = '[suite.hooks]\nbefore-point = "sleep 300 & echo $! > sleeper; wait"\ntimeout = "500ms"'
    write_campaign(tmp_path, short(hooks))
    ended = evenhand(*RUN)
    assert ended.returncode == 1, ended.stderr
    first, _ = record_of(tmp_path).points
    assert first.reason == "the hook before-point did not end within 500 ms, and was stopped"
    assert first.hooks[0].exit_code is None
    sleeper = Path("/proc") / (tmp_path / "sleeper").read_text().strip()
    assert not sleeper.exists() or "\nState:\tZ" in (sleeper / "status").read_text()


def test_a_suite_whose_hook_fails_is_kept_with_the_reason(evenhand: Evenhand, tmp_path: Path) -> None:
    write_campaign(tmp_path, short('[suite.hooks]\nbefore-suite = "false"\nafter-suite = "touch after"'))
    assert evenhand(*RUN).returncode == 1
    assert {point.reason for point in record_of(tmp_path).points} == {
        "the hook before-suite ended with exit code 1"
    }
    assert (tmp_path / "after").exists()


def test_a_testers_ceiling_is_the_reason_for_no_number(evenhand: Evenhand, tmp_path: Path) -> None:
    """R2544-39: INVALID trials never become a number."""
    write_campaign(tmp_path, short("invalid-retries = 0\npatience = 0"), part="simulated-2000000-900")
    ended = evenhand(*RUN)
    assert ended.returncode == 1, ended.stderr
    for point in record_of(tmp_path).points:
        assert point.state is PointState.NO_NUMBER
        assert point.values == ()
        assert point.reason is not None
        assert point.reason.startswith("the tester's ceiling was reached: offered")


def test_what_ended_at_the_testers_ceiling_is_measured_again_where_that_is_asked(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    """What could not be decided then stays beside what is measured in its place."""
    undecided = short("invalid-retries = 0\npatience = 0")
    write_campaign(tmp_path, undecided, part="simulated-2000000-900")
    assert evenhand(*RUN).returncode == 1
    write_campaign(tmp_path, undecided)
    assert evenhand(*RUN, "--resume").returncode == 1
    assert {point.state for point in record_of(tmp_path).points} == {PointState.NO_NUMBER}
    ended = evenhand(*RUN, "--resume", "--again")
    assert ended.returncode == 0, ended.stderr
    for point in record_of(tmp_path).points:
        assert point.state is PointState.MEASURED
        assert [repetition.outcome == "cut_short" for repetition in point.repetitions] == [True, False]
        assert all(search.trials for repetition in point.repetitions for search in repetition.searches)
        assert len(point.values) == 1
    again = evenhand(*RUN, "--resume", "--again")
    assert "there is nothing to repeat" in again.stderr


@pytest.mark.thorough
def test_what_passed_before_the_testers_ceiling_is_a_lower_bound_that_is_measured_again(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    """A lower bound counts as a number and says so, and `--again` tries such a point once more (MLR-10)."""
    campaign = short("invalid-retries = 0\npatience = 0")
    write_campaign(tmp_path, campaign, part="simulated-2000000-300000")
    ended = evenhand(*RUN)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"result, fps.*>= 300,000 ", ended.stdout, re.DOTALL)
    assert re.search(r"repetition 1 of 1: throughput at least \d", ended.stderr), ended.stderr
    assert (
        "Every number is a lower bound: the tester could not keep a higher load on this machine"
        in ended.stdout
    )
    for point in record_of(tmp_path).points:
        assert (point.state, point.at_maximum, point.at_tester_ceiling) == (PointState.MEASURED, 1, 1)
        assert 300_000 * 0.98 <= point.values[0] <= 300_000
        assert point.is_at_least
    shown = json.loads(evenhand("show", "run.evenhand", "--json").stdout)
    assert {(point["at_maximum"], point["at_tester_ceiling"]) for point in shown["points"]} == {(1, 1)}
    write_campaign(tmp_path, campaign)
    keys = [point.point.key for point in record_of(tmp_path).points]
    nothing = json.loads(evenhand(*RUN, "--resume", "--dry-run", "--json").stdout)
    assert nothing["points"] == []
    assert f"{len(keys)} of {len(keys)} points have ended and are not shown" in nothing["notes"]
    left = json.loads(evenhand(*RUN, "--resume", "--again", "--dry-run", "--json").stdout)
    assert [point["key"] for point in left["points"]] == keys
    again = evenhand(*RUN, "--resume", "--again")
    assert again.returncode == 0, again.stderr
    for point in record_of(tmp_path).points:
        assert [repetition.outcome for repetition in point.repetitions] == ["cut_short", "found"]
        assert (len(point.values), point.at_maximum) == (1, 0)
        assert point.values[0] > 600_000
    assert "there is nothing to repeat" in evenhand(*RUN, "--resume", "--again").stderr


def test_a_dut_that_does_not_answer_is_the_reason_of_each_point(evenhand: Evenhand, tmp_path: Path) -> None:
    write_campaign(tmp_path, short(), part="no-dut")
    ended = evenhand(*RUN)
    assert ended.returncode == 1, ended.stderr
    assert [point.state for point in record_of(tmp_path).points] == [PointState.NO_NUMBER] * 2


def test_what_is_wrong_for_every_point_ends_the_campaign_before_it_begins(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    write_campaign(tmp_path, short())
    (tmp_path / "testbed.toml").write_text("nonsense = 1")
    ended = evenhand(*RUN)
    assert ended.returncode == 2
    assert not (tmp_path / "run.evenhand").exists()


def test_the_file_is_found_by_its_campaign(evenhand: Evenhand, tmp_path: Path) -> None:
    write_campaign(tmp_path, short('[suite.hooks]\nbefore-point = "test -e go || kill -9 $PPID"'))
    assert evenhand("run", "small.toml", "--no-html").returncode == -signal.SIGKILL
    assert evenhand("run", "small.toml", "--resume", "--testbed", "none.toml").returncode == 2
    (tmp_path / "go").touch()
    ended = evenhand("run", "small.toml", "--resume", "--no-html")
    assert ended.returncode == 0, ended.stderr
    (path,) = tmp_path.glob("*.evenhand")
    assert {point.state for point in read_record(path).points} == {PointState.MEASURED}
    none_left = evenhand("run", "small.toml", "--resume", "--no-html")
    assert none_left.returncode == 2
    assert (
        f"there is no unfinished campaign of small.toml in this folder: {path.name} is finished"
    ) in none_left.stderr
    assert f"evenhand report {path.name}" in none_left.stderr
    (tmp_path / "small.toml").write_text(
        (tmp_path / "small.toml").read_text().replace("test -e go", "test -f go")
    )
    changed = evenhand("run", "small.toml", "--resume", "--no-html")
    assert changed.returncode == 2
    assert f"the campaign file was changed after the campaign in {path.name} began" in changed.stderr
    assert "test -f go" in changed.stderr
    other = evenhand("run", "other.toml", "--resume", "--no-html")
    assert "there is no campaign of other.toml in this folder" in other.stderr


@pytest.mark.parametrize(
    ("place", "source", "command"),
    [
        (".", "small.toml", "evenhand run --resume run.evenhand"),
        ("runs", "small.toml", "evenhand run --resume runs/run.evenhand"),
        (".", "campaigns/a b.toml", "evenhand run 'campaigns/a b.toml' --resume --run run.evenhand"),
        (".", "gone.toml", "evenhand run FOLDER/gone.toml --resume --run run.evenhand"),
    ],
)
def test_there_is_one_spelling_of_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, source: str, command: str
) -> None:
    """Three were told, of the same file."""
    monkeypatch.chdir(tmp_path)
    for folder in ("runs", "campaigns"):
        Path(folder).mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if source != "gone.toml":
        Path(source).touch()
    assert resume_command(Path(place) / "run.evenhand", Path(source)) == command


def test_a_campaign_file_is_found_where_it_was_when_the_campaign_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign's own file has no folder in it: it is made to be sent to others."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run, source = tmp_path / "runs" / "run.evenhand", tmp_path / "campaigns" / "small.toml"
    source.parent.mkdir()
    source.touch()
    assert find_source(run, "small.toml") is None
    remember_source(run, source)
    assert find_source(run, "small.toml") == source
    assert find_source(run, "other.toml") is None
    assert find_source(tmp_path / "runs" / "another.evenhand", "small.toml") is None
    assert resume_command(run, Path("small.toml")) == f"evenhand run --resume {run}"
    for number in range(MOST_KEPT):
        remember_source(tmp_path / f"{number}.evenhand", source)
    assert find_source(run, "small.toml") is None
    (tmp_path / "state" / "evenhand" / "campaigns.json").write_text('{"version": 1, "sources": [1]}')
    assert find_source(run, "small.toml") is None


def test_nobody_spells_it_otherwise() -> None:
    texts = [
        path.read_text()
        for path in (Path(__file__).parents[3] / "python").rglob("*.py")
        if path.name not in ("resume_command.py",)
    ]
    assert not [found for text in texts for found in re.findall(r"(?i)go on with:? [^\n]*--resume", text)]


def test_a_testbed_that_was_changed_is_said_and_the_repetition_begins_anew(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    # The second point waits, so that the campaign is never at its end before it is killed.
    waits = (
        '[suite.hooks]\nbefore-point = "until test $EVENHAND_HOSTS_LEFT = 1 -o -e goes-on; do sleep'
        ' 0.05; done"'
    )
    write_campaign(tmp_path, short(waits, repetitions=2))
    killed = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *RUN],
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "run.evenhand").exists() or not _has_trials(tmp_path):
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.wait()
    (tmp_path / "goes-on").touch()
    testbed = tmp_path / "testbed.toml"
    testbed.write_text(testbed.read_text().replace("net_ring1", "net_ring7"))
    ended = evenhand(*RUN, "--resume")
    assert ended.returncode == 0, ended.stderr
    record = record_of(tmp_path)
    assert set(record.testbeds) == {"testbed.toml", "testbed.toml (2)"}
    assert any("testbed.toml" in note for note in record.notes)
    repetitions = [repetition for point in record.points for repetition in point.repetitions]
    cut = [repetition for repetition in repetitions if repetition.outcome == "cut_short"]
    assert len(cut) <= 1  # none if it was killed between two
    assert all(repetition.finished_at is None and repetition.value is None for repetition in cut)
    assert [len(point.values) for point in record.points] == [2, 2]


def _has_trials(folder: Path) -> bool:
    try:
        return any(
            search.trials
            for point in record_of(folder).points
            for r in point.repetitions
            for search in r.searches
        )
    except Exception:
        return False


def test_a_disk_that_fills_half_way_loses_no_trial_and_the_campaign_goes_on_with_room(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    """D11."""
    write_campaign(tmp_path, short(), part="simulated-640000--512-500")
    full = evenhand(*RUN, file_limit=160 * 1024)
    assert full.returncode == 3, full.stderr
    assert "Traceback" not in full.stderr
    assert "cannot be stored any further" in full.stderr
    assert "resume with: evenhand run --resume run.evenhand" in full.stderr
    before = [
        trial.result
        for p in record_of(tmp_path).points
        for r in p.repetitions
        for s in r.searches
        for trial in s.trials
    ]
    assert before
    ended = evenhand(*RUN, "--resume")
    assert ended.returncode == 0, ended.stderr
    killed = record_of(tmp_path)
    after = [
        trial.result for p in killed.points for r in p.repetitions for s in r.searches for trial in s.trials
    ]
    assert after[: len(before)] == before
    (tmp_path / "run.evenhand").rename(tmp_path / "full.evenhand")
    assert evenhand(*RUN).returncode == 0
    assert essence(record_of(tmp_path)) == essence(killed)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    evenhand: Evenhand, tmp_path: Path
) -> None:
    write_campaign(tmp_path, short())
    ended = evenhand("run", "small.toml", "--run", "/proc/run.evenhand")
    assert ended.returncode == 3
    assert "cannot be written" in ended.stderr
    assert not (tmp_path / "requests.jsonl").exists()


def test_the_page_goes_along_and_costs_no_measurement(evenhand: Evenhand, tmp_path: Path) -> None:
    """It is there before the first point, and whole at the end; a name that is taken is told before anything
    is measured."""
    write_campaign(tmp_path, short())
    taken = tmp_path / "mine.html"
    taken.write_text("<p>mine</p>")
    refused = evenhand("run", "small.toml", "--run", "none.evenhand", "--html", "mine.html")
    assert (refused.returncode, taken.read_text()) == (2, "<p>mine</p>"), refused.stderr
    assert "mine.html" in refused.stderr
    assert not (tmp_path / "none.evenhand").exists()
    watching = short(hooks='hooks.before-point = "cp run.html $EVENHAND_HOSTS_LEFT.page"')
    write_campaign(tmp_path, watching)
    ended = evenhand(*WITH_PAGE)
    assert ended.returncode == 0, ended.stderr
    assert "The page: run.html" in ended.stdout
    pages = sorted(tmp_path.glob("*.page"))
    assert len(pages) == 2
    assert all('http-equiv="refresh"' in page.read_text() for page in pages)
    assert 'http-equiv="refresh"' not in (tmp_path / "run.html").read_text()


def test_a_page_that_can_no_longer_be_written_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    page = LivePage(run=recorded_file("campaign-v4"), target=tmp_path / "gone" / "a.html", say=said.append)
    point = read_record(page.run).points[0].point
    page.after_point(point)
    page.after_point(point)
    assert len(said) == 1
    assert "a.html" in said[0]


def test_a_page_waits_for_its_share_of_the_time_from_the_first_one_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the first point of every campaign would wait for pictures of one point."""
    now_s, written_s = 100.0, []

    def draw(page: LivePage, target: Path, **others: object) -> None:
        nonlocal now_s
        written_s.append(now_s)
        now_s += 1.0

    monkeypatch.setattr(LivePage, "_write", draw)
    monkeypatch.setattr(live_page, "time", SimpleNamespace(monotonic=lambda: now_s))
    page = LivePage(run=recorded_file("campaign-v4"), target=tmp_path / "a.html")
    point = read_record(page.run).points[0].point
    page.write()
    for waited_s in (0.0, 0.9 / SHARE, 0.2 / SHARE, 0.9 / SHARE, 0.2 / SHARE):
        now_s += waited_s
        page.after_point(point)
    assert written_s == pytest.approx([100.0, 101 + 1.1 / SHARE, 102 + 2.2 / SHARE])
