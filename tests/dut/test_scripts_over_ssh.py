# SPDX-License-Identifier: Apache-2.0
"""A DUT of another system than plain Linux, set up over SSH and put back: OpenSSH's server and FRR's daemons
in a namespace of ours."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from evenhand.cli.main import main
from tests.dut.namespace_dut import TESTBED, NamespaceDut, namespace_dut, wait_until, why_not
from tests.dut.test_routing_daemons import why_not as why_no_daemon

_REASON = why_not() or why_no_daemon("frr")
pytestmark = [pytest.mark.root, pytest.mark.skipif(_REASON is not None, reason=str(_REASON))]
START = """
mkdir -p /run/frr && chown frr:frr /run/frr
mount -t tmpfs none /var/tmp && mkdir -p /var/tmp/frr && chown frr:frr /var/tmp/frr
for daemon in mgmtd zebra staticd; do
    test ! -e /usr/lib/frr/$daemon || pgrep -F /run/frr/$daemon.pid > /dev/null 2>&1 ||
        /usr/lib/frr/$daemon -d -P 0 -f /dev/null -i /run/frr/$daemon.pid > /dev/null 2>&1 < /dev/null
done
until vtysh -c 'show version' > /dev/null 2>&1; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as dut:
        dut.inside("sh", "-c", START)
        dut.testbed.write_text(TESTBED.replace('os = "linux"', 'os = "frr"'))
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    """As it was before, whatever a test has done to it."""
    before = _state(made)
    yield made
    assert _state(made) == before
    assert "evenhand" not in made.inside("ls", "/run")


def _state(dut: NamespaceDut) -> str:
    return dut.state() + dut.inside("vtysh", "-c", "show running-config")


def run(dut: NamespaceDut, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process, which saves the start of another."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, dut.environment),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        code = main(["dut", *arguments])
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def test_set_up_is_told_held_and_put_back(dut: NamespaceDut) -> None:
    """Both IP versions, each read back; a second set-up waits for the undo of the first."""
    testbed = str(dut.testbed)
    checked = run(dut, "check", testbed, "--json")
    assert (checked.returncode, json.loads(checked.stdout)["held"]) == (0, None), checked.stderr
    applied = run(dut, "apply", testbed, "--plan", "gateway-v4+gateway-v6")
    assert applied.returncode == 0, applied.stderr
    for version, network, via in ((4, "198.18.0.0/16", "10.0.0.2"), (6, "2001:2::/64", "2001:2:0:1000::2")):
        assert f"via {via} dev left" in dut.inside("ip", f"-{version}", "route", "show", network)
    config = dut.inside("vtysh", "-c", "show running-config")
    assert "ip route 198.19.0.0/16 10.0.1.2 right" in config
    told = json.loads(run(dut, "status", testbed, "--json").stdout)
    assert (told["os"], told["held"]["plan"]) == ("frr", "gateway-v4+gateway-v6")
    again = run(dut, "apply", testbed, "--plan", "gateway-v4")
    assert again.returncode == 3
    assert "already set up for gateway-v4+gateway-v6" in again.stderr
    undone = run(dut, "undo", testbed)
    assert undone.returncode == 0, undone.stderr
    assert "is restored" in undone.stdout
    assert "nothing to restore" in run(dut, "undo", testbed).stdout


def test_what_was_killed_in_the_middle_is_put_back(dut: NamespaceDut) -> None:
    """kill -9 after the first change: the undo was written down before it."""
    started = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "dut", "apply", str(dut.testbed), "--plan", "gateway-v4"],
        env=dut.environment,
        cwd=dut.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: "10.0.0.1" in dut.inside("ip", "address", "show", "left"), "nothing is changed")
    started.send_signal(signal.SIGKILL)
    started.wait()
    time.sleep(0.5)
    undone = run(dut, "undo", str(dut.testbed))
    assert undone.returncode == 0, undone.stderr


def test_what_the_dut_does_not_take_is_undone_and_said(dut: NamespaceDut) -> None:
    """A refusal in the middle: without staticd FRR knows no static routes; the addresses are taken away."""
    dut.inside("sh", "-c", "kill $(cat /run/frr/staticd.pid); sleep 1")
    try:
        refused = run(dut, "apply", str(dut.testbed), "--plan", "gateway-v4")
    finally:
        dut.inside("sh", "-c", START.partition("/var/tmp/frr\n")[2])
    assert refused.returncode == 3
    assert "did not accept the set-up" in refused.stderr


@pytest.mark.parametrize(
    ("left", "said"), [("mgmt", "carries the SSH connection"), ("nowhere", "no interface")]
)
def test_an_interface_that_cannot_be_is_refused(dut: NamespaceDut, left: str, said: str) -> None:
    testbed = dut.folder / "other.toml"
    testbed.write_text(dut.testbed.read_text().replace('left = "left"', f'left = "{left}"'))
    for verb in ("check", "apply"):
        refused = run(dut, verb, str(testbed))
        assert refused.returncode == 2
        assert said in refused.stderr
