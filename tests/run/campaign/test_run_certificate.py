# SPDX-License-Identifier: Apache-2.0
"""Who may speak with the scheduler that a run starts: other users of the machine reach its 127.0.0.1 too."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand.run.campaign.dask_security import LONGEST_LINE, make_certificate, read_certificate
from evenhand.run.campaign.started_workers import StartedScheduler, started
from tests.errors import raises

distributed = pytest.importorskip("distributed")
pytest.importorskip("cryptography")


@contextmanager
def scheduler() -> Iterator[StartedScheduler]:
    """That of a run, before its workers are there."""
    with started([], say=lambda _: None) as running:
        yield running


async def identity(address: str, security: Any) -> str:
    arguments = (security or distributed.Security()).get_connection_args("client")
    async with distributed.rpc(address, connection_args=arguments) as asked:
        return str((await asyncio.wait_for(asked.identity(), 20))["type"])


def listening() -> set[int]:
    """The ports at which this process listens."""
    psutil = pytest.importorskip("psutil")
    return {
        each.laddr.port
        for each in psutil.Process().net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    }


def test_only_who_has_the_certificate_of_the_run_speaks_with_its_scheduler() -> None:
    """It ran any program of any user of the machine as root. An address without TLS and a certificate of
    somebody else do not get in."""
    before = listening()
    with scheduler() as running:
        assert running.address.startswith("tls://127.0.0.1:")
        assert asyncio.run(identity(running.address, running.security)) == "Scheduler"
        for address, security in (
            (running.address.replace("tls", "tcp"), None),
            (running.address, make_certificate().security()),
        ):
            with pytest.raises((OSError, TimeoutError)):
                asyncio.run(identity(address, security))
        # No pages at port 8787 or elsewhere.
        assert [f":{port}" for port in listening() - before] == [running.address[len("tls://127.0.0.1") :]]


def test_a_scheduler_uses_no_folder_that_others_may_have_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dask's own name for one let another user have files of root emptied, by links that were there
    before."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.write_text("content")
    trap = tmp_path / "dask-scratch-space"
    trap.mkdir()
    for name in ("purge.lock", "global.lock"):
        (trap / name).symlink_to(precious)
    with scheduler():
        pass
    assert precious.read_text() == "content"
    assert sorted(os.listdir(trap)) == ["global.lock", "purge.lock"]
    assert sorted(os.listdir(tmp_path)) == ["dask-scratch-space", "precious"]


def test_a_certificate_comes_over_stdin_as_it_was_made_and_nothing_else_is_one() -> None:
    made = make_certificate()
    assert read_certificate(io.StringIO(made.line())) == made
    assert made.key not in repr(made)
    other = make_certificate()
    for text in (
        "",
        "\n",
        "{}",
        "[" * 100_000,
        '{"certificate": 1, "key": 2}',
        made.line().replace("BEGIN CERTIFICATE", "BEGIN"),
        json.dumps({"certificate": made.certificate, "key": other.key}),
        " " * LONGEST_LINE + made.line(),
    ):
        with raises("run.no-certificate"):
            read_certificate(io.StringIO(text))
