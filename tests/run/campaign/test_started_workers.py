# SPDX-License-Identifier: Apache-2.0
"""`evenhand run --workers`: a campaign over several testbeds by one command, with workers on this machine and
on another one, a network namespace with a real server of SSH."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from evenhand.spec.worker_hosts import read_workers
from tests.cli.running import TESTBED
from tests.dut import namespace_dut as namespaces
from tests.errors import raises
from tests.run.campaign.dask_processes import wait_until
from tests.run.campaign.small_campaign import OPTIONS, write_campaign

pytest.importorskip("distributed")
CAMPAIGN = f"""
name = "shared"
[[suite]]
name = "a"
hosts = [1, 4, 16, 64]
repetitions = 1
{OPTIONS}
"""
COMMAND = ["run", "small.toml", "--workers", "workers.toml", "--run", "run.evenhand", "--no-html"]
GUARD_S = 300


def write_worker(folder: Path, name: str, number: int) -> Path:
    """A testbed with a simulated device and ports of its own."""
    own = folder / name
    own.mkdir()
    write_campaign(own, "", part="simulated-640000--512")
    (own / "lab.toml").write_text(
        TESTBED.replace("net_ring0", f"net_ring{2 * number}").replace(
            "net_ring1", f"net_ring{2 * number + 1}"
        )
    )
    return own


def entry(name: str, own: Path, more: str = "") -> str:
    return (
        f'[[worker]]\nname = "{name}"\ntestbed = "{own / "lab.toml"}"\nengine = "{own / "engine"}"\n{more}\n'
    )


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A campaign, and a file of two workers on this machine."""
    write_campaign(tmp_path, CAMPAIGN)
    text = "".join(entry(name, write_worker(tmp_path, name, n)) for n, name in enumerate(("one", "two")))
    (tmp_path / "workers.toml").write_text(text)
    return tmp_path


def run(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-m", "evenhand", *arguments],
        cwd=folder,
        env={**(environment or os.environ), "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )


def workers_of(folder: Path) -> list[int]:
    """Processes of workers whose testbeds are there."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdigit() else []
        except OSError:
            continue
        if b"worker" in words and any(str(folder).encode() in word for word in words):
            found.append(int(process.name))
    return found


@pytest.mark.thorough
def test_one_command_measures_on_all_testbeds_and_leaves_no_worker(two: Path) -> None:
    ended = run(two, *COMMAND)
    assert ended.returncode == 0, ended.stderr
    assert "Starting 2 workers: one, two." in ended.stderr
    record = read_record(two / "run.evenhand")
    assert {point.state for point in record.points} == {PointState.MEASURED}
    assert set(record.testbeds) <= {"one", "two"}
    assert workers_of(two) == []


@pytest.mark.thorough
def test_after_kill_9_the_workers_end_and_resume_has_nothing_twice(two: Path) -> None:
    log = (two / "log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "evenhand", *COMMAND], cwd=two, stderr=log)
    wait_until(
        lambda: b"Testbed 'two' takes part" in (two / "log").read_bytes(), (two / "log").read_text, process
    )
    # A child that one of them has just forked looks like itself.
    wait_until(lambda: len(workers_of(two)) == 2, lambda: str(workers_of(two)), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: workers_of(two) == [], lambda: str(workers_of(two)))
    ended = run(two, *COMMAND, "--resume")
    assert ended.returncode == 0, ended.stderr
    record = read_record(two / "run.evenhand")
    assert [len(point.values) for point in record.points] == [1] * 4


@pytest.mark.thorough
def test_a_worker_that_cannot_start_is_named_and_nothing_is_measured(two: Path) -> None:
    text = (two / "workers.toml").read_text()
    (two / "workers.toml").write_text(text + entry("three", two / "nowhere"))
    ended = run(two, *COMMAND)
    assert ended.returncode == 3
    assert "Where: worker three" in ended.stderr
    assert "this file cannot be read" in ended.stderr
    assert not (two / "run.evenhand").exists()
    assert workers_of(two) == []


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("", "base.key-missing", ""),
        ("[[worker]]\nname = 'a'\ntestbed = 'x'\nshh = 'b'\n", "base.unknown-key", "worker 'a'"),
        (
            "[[worker]]\nname = 'a'\ntestbed = 'x'\nssh = '-oProxyCommand=x'\n",
            "rig.not-an-ssh-destination",
            "ssh",
        ),
        ("[[worker]]\nname = 'a'\ntestbed = 'x'\nevenhand = \"'\"\n", "spec.not-a-command", "evenhand"),
        ("[[worker]]\nname = 'a'\ntestbed = 'x'\n" * 2, "spec.worker-name-twice", ""),
        ("[[suite]]\nname = 'a'\n", "base.wrong-kind-of-file", ""),
    ],
)
def test_a_wrong_workers_file_is_refused_by_its_key(tmp_path: Path, text: str, code: str, where: str) -> None:
    (tmp_path / "workers.toml").write_text(text)
    with raises(code) as refused:
        read_workers(tmp_path / "workers.toml")
    assert where in str(refused.value.where)


@pytest.mark.parametrize(
    "option", [("--testbed", "x.toml"), ("--engine", "x"), ("--scheduler", "tcp://127.0.0.1:1")]
)
def test_what_workers_have_themselves_is_refused(two: Path, option: tuple[str, str]) -> None:
    ended = run(two, *COMMAND, *option)
    assert ended.returncode == 2
    assert f"{option[0]}" in ended.stderr
    assert "--workers" in ended.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[namespaces.NamespaceDut]:
    if (why := namespaces.why_not()) is not None:
        pytest.skip(why)
    (tmp_path / "dut").mkdir()
    with namespaces.namespace_dut(tmp_path / "dut") as machine:
        yield machine


@pytest.mark.thorough
@pytest.mark.root
def test_workers_elsewhere_are_reached_by_ssh_alone(
    tmp_path: Path, elsewhere: namespaces.NamespaceDut
) -> None:
    """Neither scheduler nor worker listens on the network between them."""
    folder = tmp_path / "campaign"
    folder.mkdir()
    write_campaign(folder, CAMPAIGN)
    there = shlex.join(["env", f"XDG_STATE_HOME={tmp_path}", sys.executable, "-m", "evenhand"])
    ssh = f'ssh = "root@192.0.2.2"\nevenhand = "{there}"'
    text = "".join(entry(name, write_worker(folder, name, n), ssh) for n, name in enumerate(("one", "two")))
    (folder / "workers.toml").write_text(text)
    inside = ("ip", "netns", "exec", elsewhere.tester)
    ended = run(folder, *COMMAND, environment=elsewhere.environment, before=inside)
    assert ended.returncode == 0, ended.stderr
    record = read_record(folder / "run.evenhand")
    assert [len(point.values) for point in record.points] == [1] * 4
    wait_until(lambda: workers_of(folder) == [], lambda: str(workers_of(folder)))

    (folder / "workers.toml").write_text(text.replace(there, "/nowhere/evenhand"))
    (folder / "run.evenhand").unlink()
    refused = run(folder, *COMMAND, environment=elsewhere.environment, before=inside)
    assert refused.returncode == 3
    # Neither begins; the one that ends first is named.
    assert re.search("Where: worker (one|two), root@192.0.2.2", refused.stderr)
    assert "Name the command there" in refused.stderr
