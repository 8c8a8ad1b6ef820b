# SPDX-License-Identifier: Apache-2.0
"""`evenhand worker` and `evenhand run --scheduler` before anybody has answered."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from evenhand.run.campaign.dask_security import own_address, scheduler_place
from evenhand.run.campaign.worker import Bed, check_fit
from evenhand.spec.file import Reference, make_campaign
from evenhand.spec.points import expand
from tests.cli.running import TESTBED, Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]
NOBODY = "tcp://127.0.0.1:9"
CAMPAIGN = 'name = "a"\n[[suite]]\nname = "a"\nhosts = 1\nmaximum-rate = "1Mfps"\n'


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    path = tmp_path / "a.toml"
    path.write_text(CAMPAIGN)
    return path


def test_without_dask_both_say_what_to_install(
    evenhand: Run, engine_playing: Play, testbed: Path, campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_playing("simulated-640000")
    monkeypatch.setitem(sys.modules, "distributed", None)
    for arguments in (("worker", NOBODY, testbed), ("run", campaign, "--scheduler", NOBODY)):
        ended = evenhand(*arguments)
        assert ended.code == 3
        assert ended.error.code == "run.dask-missing"
        assert ".venv/bin/pip install --requirement requirements-distributed.lock" in ended.error.next_step


@contextmanager
def somebody(says: bytes | None) -> Iterator[str]:
    """The address of a server that says this to whoever connects, and no more; without it that of nobody."""
    if says is None:
        yield NOBODY
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        callers = []

        def answer() -> None:
            with suppress(OSError):
                while True:
                    callers.append(listening.accept()[0])
                    callers[-1].sendall(says)

        threading.Thread(target=answer, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for caller in callers:
                caller.close()


SOMEBODY = pytest.mark.parametrize(
    "says", [None, b"", b"SSH-2.0-OpenSSH_9.2p1\r\n"], ids=["nobody", "silence", "another protocol"]
)


@SOMEBODY
def test_a_scheduler_that_does_not_answer_is_named(
    evenhand: Run, campaign: Path, monkeypatch: pytest.MonkeyPatch, says: bytes | None
) -> None:
    """Where somebody took the connection and said nothing, `run` waited for ever; SSH's greeting was a lack
    of memory."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("evenhand.run.campaign.scheduled.CONNECT_S", 0.5)
    with somebody(says) as address:
        ended = evenhand("run", campaign, "--scheduler", address)
    assert ended.code == 3, ended.err
    assert (ended.error.code, ended.error.where) == ("run.scheduler-does-not-answer", address)
    assert "dask scheduler" in ended.error.next_step


@SOMEBODY
def test_a_worker_says_that_it_looks_for_its_scheduler_and_gives_up_in_the_end(
    evenhand: Run, engine_playing: Play, testbed: Path, monkeypatch: pytest.MonkeyPatch, says: bytes | None
) -> None:
    """It was silent, and looked as if it were at work."""
    pytest.importorskip("distributed")
    engine_playing("simulated-640000")
    monkeypatch.setattr("evenhand.run.campaign.worker.CONNECT_S", 1.5)
    monkeypatch.setattr("evenhand.run.campaign.worker.STILL_S", 0.5)
    with somebody(says) as address:
        ended = evenhand("worker", address, testbed, "--name", "munich")
    lines = ended.err.splitlines()
    assert ended.code == 3, ended.err
    assert lines[0] == f"Testbed 'munich' is connecting to the scheduler at {address}."
    # What is no scheduler's answer ends it at once.
    assert says or any(
        line.startswith(f"No answer from {address} for 0 s") or "for 1 s" in line for line in lines[1:-3]
    )
    assert (ended.error.code, ended.error.where) == ("run.scheduler-does-not-answer", address)


NO_ADDRESSES = [
    "nonsense",
    "tcp://192.0.2.1",
    "tcp://:1",
    "tcp://192.0.2.1:65536",
    "tcp://::1:1",
    "tcp://a..b:1",
    "http://192.0.2.1:1",
    "inproc://1/2/3",
]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_no_address_is_a_bad_request_before_a_client_is_made(
    evenhand: Run, campaign: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of dask that fails for its address is left open; closed by Python while the next one starts,
    it made that wait for ever."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", None)
    ended = evenhand("run", campaign, "--scheduler", address)
    assert ended.code == 2, ended.err
    assert (ended.error.code, ended.error.where) == ("run.not-a-scheduler-address", "--scheduler")
    assert address in ended.error.what
    assert "tcp://HOST:8786" in ended.error.next_step


@pytest.mark.parametrize("address", NO_ADDRESSES)
@pytest.mark.parametrize("host", [(), ("--host", "127.0.0.1")], ids=["own address", "given address"])
def test_a_worker_refuses_what_is_no_address(
    evenhand: Run, engine_playing: Play, testbed: Path, address: str, host: tuple[str, ...]
) -> None:
    pytest.importorskip("distributed")
    engine_playing("simulated-640000")
    ended = evenhand("worker", address, testbed, *host)
    assert ended.code == 2, ended.err
    assert (ended.error.code, ended.error.where) == ("run.not-a-scheduler-address", "ADDRESS")
    assert address in ended.error.what


def test_tls_without_certificates_says_where_they_are_named(
    evenhand: Run, engine_playing: Play, testbed: Path, campaign: Path
) -> None:
    """It was reported as a bug of Evenhand."""
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    engine_playing("simulated-640000")
    for arguments in (
        ("worker", "tls://127.0.0.1:9", testbed),
        ("run", campaign, "--scheduler", "tls://127.0.0.1:9"),
    ):
        with dask.config.set(
            {"distributed.comm.tls.ca-file": None}
        ):  # whatever this user's configuration says
            ended = evenhand(*arguments)
        assert ended.code == 3, ended.err
        assert ended.error.code == "run.no-certificate"
        assert "distributed.yaml" in ended.error.next_step


def test_certificates_that_are_not_there_and_encryption_that_is_asked_for_are_said(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    missing = {
        f"distributed.comm.tls.{key}": str(tmp_path / "missing.pem")
        for key in ("ca-file", "client.cert", "client.key")
    }
    with dask.config.set(missing), raises("run.no-certificate"):
        scheduler_place("tls://127.0.0.1:9", where="--scheduler", role="client")
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        raises("run.encryption-required") as refused,
    ):
        scheduler_place("tcp://[::1]:9", where="--scheduler", role="client")
    assert "tls://[::1]:9" in refused.value.next_step


@pytest.mark.parametrize(
    ("address", "own"),
    [("tcp://127.0.0.1:8786", "127.0.0.1"), ("tcp://[::1]:8786", "::1"), ("127.0.0.1:1", "127.0.0.1")],
)
def test_a_worker_listens_where_it_reaches_its_scheduler_and_nowhere_else(address: str, own: str) -> None:
    pytest.importorskip("distributed")
    assert own_address(scheduler_place(address, where="ADDRESS", role="worker")) == own


def test_a_testbed_that_cannot_take_part_is_refused_by_its_workers_name(tmp_path: Path) -> None:
    """A DUT that is set up for IPv4 has no part in a campaign for IPv6."""
    path = tmp_path / "lab.toml"
    path.write_text(TESTBED + '[dut]\nplan = "gateway-v4"\n')
    bed = Bed(name="munich", testbed=str(path))
    points = {
        plan: expand(
            make_campaign({"name": "a", "suite": [{"name": "a", "plan": plan, "hosts": 1}]}, where="a")
        ).points
        for plan in ("gateway-v4", "gateway-v6")
    }
    check_fit(bed, points["gateway-v4"], None)
    with raises("rig.dut-of-other-plan", match=r"^worker munich: .*dut\.plan: .*gateway-v4"):
        check_fit(bed, points["gateway-v6"], None)


def test_a_worker_whose_dut_forgets_connections_too_soon_takes_no_such_point(tmp_path: Path) -> None:
    """R9693-06: before any point, as a campaign on a testbed here; so does a reference router that is set up
    so."""
    path = tmp_path / "t.toml"
    suite = {
        "name": "s",
        "plan": "nat44",
        "hosts": 2,
        "maximum-rate": "1Mfps",
        "established": "100k",
        "establish-rate": "10kfps",
    }
    routed = {"name": "s", "plan": "gateway-v4", "hosts": 2, "maximum-rate": "1Mfps"}
    points, others = (
        expand(make_campaign({"name": "a", "suite": [each]}, where="a.toml", folder=tmp_path)).points
        for each in (suite, routed)
    )
    bed = Bed(name="munich", testbed=str(path))
    for timeout_s, is_enough in ((30, False), (600, True)):
        path.write_text(f'{TESTBED}\n[dut]\nplan = "nat44"\nconnection_timeout = "{timeout_s}s"\n')
        if is_enough:
            check_fit(bed, points, None)
            continue
        with raises("procedure.timeout-too-short", match="30 s") as refused:
            check_fit(bed, points, None)
        assert refused.value.where == "worker munich: suite 's'"
    router = Bed(name="tokyo", testbed="reference")
    too_soon = Reference.model_validate({"connection-timeout": "30s"})
    with raises("procedure.timeout-too-short", match="30 s"):
        check_fit(router, points, too_soon)
    check_fit(router, points, Reference.model_validate({"connection-timeout": "600s"}))
    check_fit(router, others, too_soon)
