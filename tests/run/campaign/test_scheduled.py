# SPDX-License-Identifier: Apache-2.0
"""Campaigns over two testbeds: a scheduler of dask and two workers as processes, each on a simulated device
of its own."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.run import CampaignRecord, PointState, read_record
from evenhand.run.campaign_status import read_status
from tests.cli.running import TESTBED
from tests.run.campaign.dask_processes import Cluster, cluster, wait_until
from tests.run.campaign.small_campaign import OPTIONS, small, write_campaign

pytest.importorskip("distributed")
LIMITS = {"one": 640_000, "two": 500_000}
"""What the DUTs of the two testbeds forward, in fps."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two testbeds whose DUTs differ. The campaign `small.toml` is there as well."""
    folder = tmp_path_factory.mktemp("both")
    write_campaign(folder, small(2))
    with cluster(folder) as running:
        for number, name in enumerate(LIMITS):
            begin(running, name, number)
        running.wait_for(*LIMITS)
        yield running


def begin(running: Cluster, name: str, number: int) -> None:
    """A worker with a folder, an engine and ports of its own."""
    own = running.folder / name
    own.mkdir(exist_ok=True)
    write_campaign(own, "", part=f"simulated-{LIMITS[name]}--512")
    rings = TESTBED.replace("net_ring0", f"net_ring{2 * number}").replace(
        "net_ring1", f"net_ring{2 * number + 1}"
    )
    (own / "lab.toml").write_text(rings)
    running.begin_worker(name, f"{name}/lab.toml", "--engine", str(own / "engine"))


def campaign(*, hosts: str = "[1, 4, 16]", repetitions: int = 1, more: str = "", hooks: str = "") -> str:
    return f"""
name = "shared"
{more}
[[suite]]
name = "a"
hosts = {hosts}
repetitions = {repetitions}
{OPTIONS}
{hooks}
"""


def write(running: Cluster, name: str, text: str) -> None:
    (running.folder / f"{name}.toml").write_text(text)


def measured(running: Cluster, name: str, *arguments: str) -> CampaignRecord:
    ended = running.run(
        "run",
        f"{name}.toml",
        "--scheduler",
        running.address,
        "--run",
        f"{name}.evenhand",
        "--no-html",
        *arguments,
    )
    assert ended.returncode == 0, ended.stderr
    return read_record(running.folder / f"{name}.evenhand")


def nothing_twice(record: CampaignRecord) -> None:
    """Every repetition that was asked for has one result, and no other."""
    for point in record.points:
        finished = Counter(r.number for r in point.repetitions if r.finished_at is not None)
        assert finished == dict.fromkeys(range(1, point.point.repetitions + 1), 1), point.point.key
        assert point.state is PointState.MEASURED


def test_points_are_shared_out_and_say_whose_they_are(both: Cluster) -> None:
    """SEED-02, SEED-72: on either testbed a point is what its DUT forwards; latency takes the throughput that
    another worker found."""
    record = measured(both, "small")
    nothing_twice(record)
    assert set(record.testbeds) == set(LIMITS)
    for point in record.points:
        (testbed,) = {repetition.testbed for repetition in point.repetitions}
        assert [r.seed for r in point.repetitions] == list(dict.fromkeys(r.seed for r in point.repetitions))
        if point.point.procedure == "throughput":
            assert point.values == pytest.approx([LIMITS[testbed]] * point.point.repetitions, rel=0.03)
        assert all(
            search.seed == r.seed and search.trials for r in point.repetitions for search in r.searches
        )
    throughput, latency = record.points[-2:]
    assert latency.repetitions[0].result is not None
    assert latency.repetitions[0].result["goal"]["rate_fps_per_direction"] == pytest.approx(
        throughput.values[0]
    )
    assert record.testbeds["one"]["name"] == "lab.toml"
    assert str(both.folder).encode() not in (both.folder / "small.evenhand").read_bytes()
    status = read_status(both.folder / "small.evenhand")
    assert all(point.measured_s > 0 for point in status.points)


def test_testbeds_that_disagree_on_a_point_are_named(both: Cluster) -> None:
    """Each point is measured on both, by as many repetitions as were asked for; show, page and JSON tell them
    apart."""
    write(both, "each", campaign(hosts="[1]", repetitions=4, more='on-each-testbed = ["two", "one"]'))
    record = measured(both, "each")
    nothing_twice(record)
    (point,) = record.points
    assert [r.testbed for r in sorted(point.repetitions, key=lambda r: r.number)] == ["two"] * 4 + ["one"] * 4
    shown = both.run("show", "each.evenhand").stdout
    assert re.search(
        r"Testbeds (one and two|two and one) disagree on a/throughput/64/n=1: "
        r".* % (more|less) \(p = 0\.029\)",
        shown,
    ), shown
    of_point = both.run("show", "each.evenhand", "--point", "1").stdout
    assert all(re.search(rf"Testbed {name}: median [\d,]+ fps of 4 repetitions", of_point) for name in LIMITS)
    assert both.run("report", "each.evenhand", "--output", "each.html").returncode == 0
    assert "disagree on a/throughput/64/n=1" in (both.folder / "each.html").read_text()
    alone = both.run("run", "each.toml", "--testbed", "one/lab.toml")
    assert alone.returncode == 2
    assert "--scheduler" in alone.stderr


def test_a_hook_that_fails_on_one_testbed_ends_the_point_there_alone_and_is_made_up_for(
    both: Cluster,
) -> None:
    """SEED-72: a comparison of testbeds needs as many samples of each."""
    hook = 'hooks = { before-point = "test -e mended || test $EVENHAND_TESTBED != two/lab.toml" }'
    each = campaign(hosts="[1]", repetitions=2, more='on-each-testbed = ["two", "one"]', hooks=hook)
    write(both, "hooked", each)
    target = ("hooked.toml", "--scheduler", both.address, "--run", "hooked.evenhand", "--no-html")
    ended = both.run("run", *target)
    assert ended.returncode in (0, 1), ended.stderr
    (point,) = read_record(both.folder / "hooked.evenhand").points
    values = {name: [r.value for r in point.repetitions if r.testbed == name] for name in LIMITS}
    assert values["two"] == [None, None]
    assert values["one"] == pytest.approx([LIMITS["one"]] * 2, rel=0.03)
    reasons = {str(r.reason) for r in point.repetitions if r.value is None}
    assert all("before-point" in reason for reason in reasons), reasons
    (both.folder / "mended").touch()
    resumed = both.run(
        "run", "--resume", "hooked.evenhand", "--again", "--scheduler", both.address, "--no-html"
    )
    assert resumed.returncode == 0, resumed.stderr
    record = read_record(both.folder / "hooked.evenhand")
    nothing_twice(record)
    repetitions = record.points[0].repetitions
    told = [(r.number, r.testbed, r.value, r.outcome, r.reason) for r in repetitions]
    for name, limit in LIMITS.items():
        found = [r.value for r in repetitions if r.testbed == name and r.value is not None]
        assert found == pytest.approx([limit] * 2, rel=0.03), (told, record.notes)


@pytest.mark.thorough
def test_a_starter_that_was_killed_goes_on_and_has_nothing_twice(both: Cluster) -> None:
    """D11: points that were stored stand; what was under way is measured again, and its worker stops sending
    meanwhile."""
    hooks = 'hooks = { before-point = "sleep 0.3" }'
    write(both, "killed", campaign(hosts="[1, 2, 4, 8, 16, 32]", hooks=hooks))
    killed = both.begin_run(
        "run", "killed.toml", "--scheduler", both.address, "--run", "killed.evenhand", "--no-html"
    )
    wait_until(
        lambda: finished(both.folder / "killed.evenhand") >= 2, (both.folder / "run.log").read_text, killed
    )
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = read_record(both.folder / "killed.evenhand")
    assert any(point.state is PointState.PENDING for point in before.points)
    record = measured(both, "killed", "--resume")
    nothing_twice(record)
    stored = [repetition for point in before.points for repetition in point.repetitions]
    assert [r for r in stored if r not in [s for point in record.points for s in point.repetitions]] == []
    assert Counter(point.state for point in record.points) == {PointState.MEASURED: 6}


def finished(path: Path) -> int:
    try:
        return sum(point.finished for point in read_status(path).points)
    except EvenhandError:  # it is being made
        return 0


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (campaign(), ("--testbed", "one/lab.toml"), 2, "each worker of the scheduler has its own testbed"),
        (campaign(more="reference = {}"), (), 2, "[reference] sets up a reference router"),
        (campaign(more='on-each-testbed = ["one", "three"]'), (), 3, "--name three"),
        (campaign(more='on-each-testbed = ["one", "one"]'), (), 2, "names the same testbed twice"),
    ],
    ids=["testbed", "reference", "no such worker", "twice"],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    both: Cluster, text: str, options: tuple[str, ...], code: int, said: str
) -> None:
    write(both, "refused", text)
    ended = both.run(
        "run", "refused.toml", "--scheduler", both.address, "--run", "refused.evenhand", *options
    )
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert not (both.folder / "refused.evenhand").exists()


def test_a_second_worker_of_one_name_is_refused(both: Cluster) -> None:
    ended = both.run("worker", both.address, "one/lab.toml", "--name", "one", "--engine", "one/engine")
    assert ended.returncode == 2, ended.stderr
    assert "another worker is already named 'one'" in ended.stderr
    assert "--name" in ended.stderr


def test_a_worker_sends_nothing_before_its_own_testbed_is_confirmed_as_isolated(both: Cluster) -> None:
    """SEED-80: the file of the worker counts, whatever the campaign's says."""
    (both.folder / "open.toml").write_text(TESTBED.replace("isolated_test_environment = true", ""))
    ended = both.run("worker", both.address, "open.toml", "--engine", "one/engine")
    assert ended.returncode == 2
    assert "isolated_test_environment" in ended.stderr


@pytest.mark.thorough
def test_a_worker_that_is_lost_in_a_point_costs_that_point_a_new_beginning(both: Cluster) -> None:
    """D11: dask hands the point to the other one; nothing of the first beginning is in the file."""
    hooks = (
        'hooks = { before-point = "sleep 1; echo $EVENHAND_POINT $EVENHAND_TESTBED >> begun.txt; sleep 1" }'
    )
    write(both, "lost", campaign(hosts="[1, 2, 4, 8]", hooks=hooks))
    process = both.begin_run(
        "run", "lost.toml", "--scheduler", both.address, "--run", "lost.evenhand", "--no-html"
    )
    wait_until(lambda: len(begun(both.folder)) >= 3, (both.folder / "run.log").read_text, process)
    place = next(line.split()[1] for line in begun(both.folder)[::-1])
    lost = place.partition("/")[0]
    both.kill(lost)
    try:
        assert process.wait(120) == 0, (both.folder / "run.log").read_text()
    finally:
        begin(both, lost, list(LIMITS).index(lost))
        both.wait_for(lost)
    nothing_twice(read_record(both.folder / "lost.evenhand"))
    assert "is lost" in (both.folder / "run.log").read_text()
    again = Counter(line.split()[0] for line in begun(both.folder))
    # Where this test came late to the kill, an answer was lost with the point that had followed.
    assert sorted(again.values()) in ([1, 1, 1, 2], [1, 1, 2, 2])


def begun(folder: Path) -> list[str]:
    path = folder / "begun.txt"
    return path.read_text().splitlines() if path.exists() else []
