# SPDX-License-Identifier: Apache-2.0
"""What engines and routers leave in the folders that everybody shares: nothing, and after kill -9 only until
the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evenhand.base.folders import LOCK, temporary_folder
from evenhand.plan import gateway_v4
from evenhand.reference import ReferenceDut, reference_router
from tests.wire.wire_session import engine, memif_cable, open_ports

pytestmark = pytest.mark.wire


def runtime_folders() -> Path:
    """Where DPDK makes one for each process."""
    if os.geteuid() == 0:
        return Path("/var/run/dpdk")
    return Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp")) / "dpdk"


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def open_and_end(folder: Path) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(folder))


def test_an_engine_removes_its_runtime_folder_at_the_end(tmp_path: Path) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        own = runtime_folders() / f"evenhand-{session._process.pid}"
        assert own.is_dir()
    assert not own.exists()


@pytest.mark.alone
def test_the_next_engine_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    with ExitStack() as stack:
        session = stack.enter_context(engine())
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        own = runtime_folders() / f"evenhand-{session._process.pid}"
        session._process.kill()
        session._process.wait()
    assert own.is_dir()
    open_and_end(tmp_path / "..")
    assert not own.exists()


@pytest.mark.alone
def test_only_what_is_ours_and_dead_is_removed(tmp_path: Path) -> None:
    with engine() as living:
        open_ports(living, gateway_v4(), *memif_cable(tmp_path))
        parent = runtime_folders()
        held, full = parent / f"evenhand-{dead_pid()}", parent / f"evenhand-{dead_pid()}"
        stay = [
            parent / f"evenhand-{living._process.pid}",
            parent / f"evenhand-{os.getpid()}",
            parent / f"other-{dead_pid()}",
            parent / "evenhand-1x",
            held,
            full,
        ]
        try:
            for folder in stay[1:]:
                folder.mkdir()
            (full / "precious").touch()
            # A process in another PID namespace, say.
            holder = subprocess.Popen(["flock", held, "sleep", "60"], start_new_session=True)
            while subprocess.run(["flock", "--nonblock", held, "true"], check=False).returncode == 0:
                time.sleep(0.01)
            second = tmp_path / "second"
            second.mkdir()
            open_and_end(second)
            assert [folder for folder in stay if not folder.is_dir()] == []
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
            holder.wait()
            (full / "precious").unlink(missing_ok=True)
            for folder in stay[1:]:
                if folder.is_dir():
                    folder.rmdir()


_HOLDER = """
import sys, time
from evenhand.base.folders import temporary_folder
with temporary_folder() as folder:
    (folder / "left.sock").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of our own for temporary files, with a path that is short enough for sockets."""
    with TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr("tempfile.tempdir", None)
        yield Path(folder)
    monkeypatch.setattr("tempfile.tempdir", None)


def test_folders_of_killed_routers_are_removed_and_those_of_living_ones_stay(temporary: Path) -> None:
    """Also what is not ours: folders without a lock, links, files."""
    holders = [
        subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    killed, living = (Path((holder.stdout or sys.stdin).readline().strip()) for holder in holders)
    (temporary / "evenhand-notes").mkdir()
    (temporary / "evenhand-file").touch()
    precious = temporary / "precious"
    precious.mkdir()
    (precious / LOCK).touch()
    (temporary / "evenhand-link").symlink_to(precious)
    holders[0].kill()
    holders[0].wait()
    assert killed.is_dir()
    with temporary_folder() as own:
        assert not killed.exists()
        assert sorted(path.name for path in temporary.iterdir()) == sorted(
            [own.name, living.name, "evenhand-notes", "evenhand-file", "evenhand-link", "precious"]
        )
        assert (living / "left.sock").exists()
    assert not own.exists()
    assert (precious / LOCK).exists()
    holders[1].kill()
    holders[1].wait()


@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
def test_a_router_whose_verb_was_killed_ends_and_the_next_one_tidies_up(
    temporary: Path, tmp_path: Path
) -> None:
    verb = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "router", "gateway-v4"], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    while not (tmp_path / "reference-router.toml").exists():
        assert verb.poll() is None
        time.sleep(0.05)
    (router,) = [int(pid) for pid in Path(f"/proc/{verb.pid}/task/{verb.pid}/children").read_text().split()]
    verb.kill()
    verb.wait()
    assert len(list(temporary.iterdir())) == 1
    while (
        Path(f"/proc/{router}").exists()
        and "Z" not in Path(f"/proc/{router}/stat").read_text().split(") ")[1][:1]
    ):
        time.sleep(0.05)
    with reference_router(gateway_v4(), ReferenceDut()):
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []
