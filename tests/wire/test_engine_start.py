# SPDX-License-Identifier: Apache-2.0
"""What the engine says where DPDK does not start, or lacks a part of itself; the memory that it takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import gateway_v4
from evenhand.trial import EngineSession, find_engine
from tests.wire.raw_engine import RawEngine
from tests.wire.wire_session import engine as started
from tests.wire.wire_session import one_worker, open_ports

pytestmark = pytest.mark.wire


def opening(number: int, **host: Any) -> dict[str, Any]:
    ports = {"left": {"device": "net_ring0"}, "right": {"device": "net_ring1"}}
    plan = gateway_v4().to_contract()
    return {
        "id": number,
        "request": "open",
        "host": host,
        "ports": ports,
        "workers": one_worker(),
        "plan": plan,
        "frame_size": 64,
        "seed": 1,
    }


def test_after_a_start_that_failed_the_reason_is_told_again() -> None:
    """DPDK has one attempt in a process: the second said "Invalid argument", and to lower the memory."""
    with RawEngine() as engine:
        engine.say(opening(1, hugepages=True, memory_mb=1 << 20), opening(2, hugepages=False, memory_mb=512))
        first, second = engine.hear_answers(2)
    assert first["fault"]["code"] == "no_memory"
    assert "hugepages" in first["fault"]["what"]
    assert "start another engine" in first["fault"]["next"]
    assert second["fault"] == first["fault"]


def test_more_memory_than_the_host_has_is_refused_and_less_may_be_asked_for() -> None:
    """DPDK ended with SIGSEGV."""
    with RawEngine() as engine:
        engine.say(opening(1, memory_mb=1 << 20), opening(2, memory_mb=512))
        first, second = engine.hear_answers(2)
    assert first["fault"]["code"] == "no_memory"
    assert "and memory_mb is 1048576" in first["fault"]["what"]
    assert second["response"] == "open"


def test_an_engine_behind_a_shell_leads_a_session() -> None:
    """So it can be made urgent where the kernel groups processes by session. One that was started by `sh -c`
    over ssh was not: beside another engine it was up to half a second late for each trial."""
    with EngineSession(["sh", "-c", f'"{find_engine()}"; exit $?']) as session:
        shell = session._process.pid
        (engine,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())
        assert os.getsid(shell) == shell, "a shell that is between"
        assert os.getsid(engine) == engine


@pytest.mark.root
def test_a_missing_driver_of_buffer_pools_is_named(tmp_path: Path) -> None:
    """It was told as a lack of memory, which no memory helps."""
    folder = next(
        (path for path in Path("/usr/lib").glob("*/dpdk/pmds-*") if list(path.glob("librte_mempool_ring*"))),
        None,
    )
    if folder is None:
        pytest.skip("this DPDK loads no drivers from a folder")
    without = tmp_path / "pmds"
    # With the links that are in it: a library that is loaded under two names panics.
    shutil.copytree(folder, without, symlinks=True)
    for file in without.glob("librte_mempool_ring*"):
        file.unlink()
    mounted = f'mount --bind "{without}" "{folder}" && exec "{find_engine()}"'
    with RawEngine(["unshare", "--mount", "sh", "-c", mounted]) as engine:
        engine.say(opening(1, memory_mb=512))
        (answer,) = engine.hear_answers(1)
    assert "driver of buffer pools" in answer["fault"]["what"]
    assert "librte-mempool-ring" in answer["fault"]["next"]


def test_ports_without_a_device_take_no_more_memory_than_their_rings_need() -> None:
    """DPDK touches all buffers of a pool when it makes it, and what it keeps of them for each core: with as
    many as two rings hold, and more for answers, the engine took 50 MB besides its code."""
    with started() as session:
        open_ports(session, gateway_v4(), "net_null0,no-rx=1", "net_null1,no-rx=1")
        status = Path(f"/proc/{session.pid}/status").read_text()
    own_kb = sum(
        int(line.split()[1]) for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem"))
    )
    assert own_kb / 1024 < 44, status
