# SPDX-License-Identifier: Apache-2.0
"""The runs of another machine: over OpenSSH's own server they come, move and go; nothing is written there;
and what a hostile one sends does nothing here."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.run import read_record
from evenhand.run.campaign_record import CampaignRecord
from evenhand.run.figures import RunningTrial
from evenhand.serve.following import FollowedFolder, Follower, following
from tests.run.goldens import copy_recorded
from tests.serve import ssh_server
from tests.serve.served import Served, recorded_folder, run_process, wait_until


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    reason = ssh_server.why_not()
    if reason is not None:
        pytest.skip(reason)
    with ssh_server.ssh_server(tmp_path_factory.mktemp("ssh")) as opened:
        yield opened


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("host", [pytest.param("127.0.0.1", marks=pytest.mark.thorough), "[::1]"])
def test_runs_of_another_host_come_move_and_go(
    here: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    there = here / "there with spaces"
    there.mkdir()
    recorded_folder(there, ("campaign-v6", "throughput-v6"))
    (there / "notes.txt").write_text("not a run")
    command = f"env XDG_CACHE_HOME={here}/cache-there {sys.executable} -m evenhand"
    followed = FollowedFolder.of(f"ssh:{host}:{there}", command)
    with following(followed) as index:
        mine = Served.over(index)

        def states() -> dict[str, str]:
            mine.look()
            return {name: str(entry.state) for name, entry in mine.index.entries.items()}

        both = {"campaign-v6.evenhand": "finished", "throughput-v6.evenhand": "finished"}
        wait_until(lambda: states() == both, "both have come")
        assert points_of(followed.copies) == points_of(there)
        with pytest.raises(EvenhandError) as refused, following(followed):
            pass
        assert refused.value.code == "serve.followed-already"
        with run_process(there / "now.evenhand", version=6 if "::" in host else 4, trial_s=1.0) as process:
            wait_until(lambda: states().get("now.evenhand") == "running", "a run there is running here")

            def samples() -> list[dict[str, Any]]:
                states()
                live = mine.watcher.live.get("now.evenhand")
                return [] if live is None else list(live.samples)

            wait_until(lambda: len(samples()) > 2, "its trials move")
            assert all(sample["forward"]["median_us"] > 0 for sample in samples())
            process.kill()
            process.wait()
            wait_until(lambda: states().get("now.evenhand") == "killed", "it is shown as killed")
        (there / "now.evenhand").unlink()
        (there / "throughput-v6.evenhand").unlink()
        wait_until(lambda: states() == {"campaign-v6.evenhand": "finished"}, "they have gone")
        assert index.trouble() == ""
        # Nothing was written there; what a killed run leaves beside its file is its own.
        assert {path.name for path in there.iterdir()} == {
            "campaign-v6.evenhand",
            "notes.txt",
            "now.evenhand-running",
        }


def points_of(folder: Path) -> dict[str, Any]:
    records: list[CampaignRecord] = [read_record(path) for path in folder.glob("*.evenhand")]
    return {record.path.name: record.points for record in records}


def test_a_host_that_cannot_be_followed_is_said(
    here: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    followed = FollowedFolder.of("ssh:127.0.0.1:x", f"{here}/no-evenhand")
    with pytest.raises(EvenhandError) as refused, following(followed):
        pass
    assert refused.value.code == "serve.not-followed"
    assert "no-evenhand" in refused.value.what
    assert f"ssh 127.0.0.1 '{here}/no-evenhand serve x --to-follower </dev/null'" in refused.value.next_step


@pytest.mark.parametrize(
    ("text", "destination", "folder"),
    [
        ("ssh:lab", "lab", "."),
        ("ssh:root@lab:/runs", "root@lab", "/runs"),
        ("ssh:lab:a:b", "lab", "a:b"),
        ("ssh:me@[2001:db8::1]:runs", "me@2001:db8::1", "runs"),
        ("ssh:[2001:db8::1]", "2001:db8::1", "."),
    ],
)
def test_where_to_follow_is_written_as_for_scp(text: str, destination: str, folder: str) -> None:
    followed = FollowedFolder.of(text, "evenhand")
    assert (followed.destination, followed.folder) == (destination, folder)


@pytest.mark.parametrize("text", ["lab", "ssh:", "ssh::x", "http://lab", "ssh:-oProxyCommand=x", "ssh:a b"])
def test_what_is_no_other_host_is_refused(text: str) -> None:
    with pytest.raises(EvenhandError):
        FollowedFolder.of(text, "evenhand")


def run_of(name: Any, octets: Any = 5) -> dict[str, Any]:
    return {"run": name, "stamp": 1_700_000_000_000_000_000, "octets": octets}


@pytest.mark.parametrize(
    "head",
    [
        run_of("../out.evenhand"),
        run_of("/tmp/out.evenhand"),
        run_of(".lock"),
        run_of(".hidden.evenhand"),
        run_of("a\0.evenhand"),
        run_of("a" * 300 + ".evenhand"),
        run_of("notes.txt"),
        run_of(5),
        run_of("a.evenhand", -1),
        run_of("a.evenhand", 2**40),
        run_of("a.evenhand", "many"),
        {"gone": ["../x.evenhand"], "running": {}},
        {"gone": [], "running": {"../x.evenhand": {}}},
        {"gone": [], "running": []},
        {"gone": 5, "running": {}},
        {},
        [],
    ],
    ids=str,
)
def test_nothing_that_another_host_sends_gets_out_of_the_copies(here: Path, head: Any) -> None:
    followed = FollowedFolder.of("ssh:lab", "evenhand")
    followed.copies.mkdir(parents=True)
    outside = here / "cache" / "evenhand" / "serve" / "x.evenhand"
    outside.write_text("mine")
    before = sorted(here.rglob("*"))
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        Follower(followed)._take(head, io.BytesIO(b"12345"))
    assert sorted(here.rglob("*")) == before
    assert outside.read_text() == "mine"


def test_a_run_that_came_in_part_does_not_replace_the_copy(here: Path) -> None:
    followed = FollowedFolder.of("ssh:lab", "evenhand")
    followed.copies.mkdir(parents=True)
    copy = copy_recorded("throughput-v6", followed.copies / "a.evenhand")
    before = copy.read_bytes()
    Follower(followed)._take(run_of("a.evenhand", 100), io.BytesIO(b"12345"))
    assert copy.read_bytes() == before


def test_what_is_measured_there_has_the_time_of_this_host(here: Path) -> None:
    follower = Follower(FollowedFolder.of("ssh:lab", "evenhand"))
    told = json.loads(json.dumps(asdict(RunningTrial(process=1, point="x", repetition=1))))
    running = {"a.evenhand": told, "b.evenhand": None, "c.evenhand": {**told, "point": 5}}
    follower._take({"gone": [], "running": running}, io.BytesIO())
    first, *others = follower.running.values()
    assert first is not None
    assert first.written_at > 1_700_000_000
    assert others == [None, None]
    # What stays as it is gets older, so that its pages say that there is no sign of it.
    follower._take({"gone": [], "running": running}, io.BytesIO())
    assert follower.running["a.evenhand"] is first
    follower._take({"gone": [], "running": {"a.evenhand": {**told, "repetition": 2}}}, io.BytesIO())
    again = follower.running["a.evenhand"]
    assert again is not None
    assert (again.repetition, again.written_at > first.written_at) == (2, True)


def test_a_long_name_is_kept(here: Path) -> None:
    followed = FollowedFolder.of("ssh:lab", "evenhand")
    followed.copies.mkdir(parents=True)
    name = "a" * (255 - len(".evenhand")) + ".evenhand"
    Follower(followed)._take(run_of(name), io.BytesIO(b"12345"))
    assert [path.name for path in followed.copies.iterdir()] == [name]
