# SPDX-License-Identifier: Apache-2.0
"""A folder in which documented commands run as in a checkout, without leaving files there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evenhand.base.errors import HostError
from evenhand.trial import find_engine
from tests.docs.documents import ROOT
from tests.preloaded.commands import put_on_path

Run = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _skip_what_cannot_run(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("wire"):
        try:
            find_engine()
        except HostError as error:
            pytest.skip(f"no engine: {error}")


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose name is short: a socket's path has 107 octets."""
    with TemporaryDirectory(prefix="evenhand-") as folder:
        yield Path(folder)


@pytest.fixture
def run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sockets: Path) -> Run:
    """Run a shell command as the documents mean it: in the checkout, with the virtualenv's programs at hand,
    as root without sudo."""
    for name in ("build", ".venv", "Makefile"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "plans").symlink_to(ROOT / "examples" / "plans")
    programs = tmp_path_factory.mktemp("programs")
    put_on_path(programs)
    cpus = sorted(os.sched_getaffinity(0))
    for example in filter(Path.is_file, (ROOT / "examples").iterdir()):
        # Sockets of their own: another test run on this machine uses the examples too. The router has the
        # first of this test's CPUs and the tester the second; of one CPU both have that.
        text = example.read_text().replace("socket=/tmp/", f"socket={sockets}/")
        text = re.sub(
            r'(cpus = \[|"cpu": )([01])\b', lambda found: f"{found[1]}{cpus[:2][-1 * int(found[2])]}", text
        )
        (tmp_path / "examples" / example.name).write_text(text)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "TERM": "dumb",
        "COLUMNS": "200",
    }

    def run_in_folder(command: str) -> subprocess.CompletedProcess[str]:
        text = command.removeprefix("sudo ").replace("| sudo ", "| ")
        # stdin as in a test run without a terminal; the engine reads what the command itself redirects.
        return subprocess.run(
            ["bash", "-c", text],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run_in_folder
