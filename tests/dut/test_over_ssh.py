# SPDX-License-Identifier: Apache-2.0
"""A DUT set up over SSH and put back: OpenSSH's server in a namespace of ours, the kernel's own router behind
it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jsonschema
import pytest

from evenhand.cli.main import main
from tests.dut.namespace_dut import TESTBED, NamespaceDut, namespace_dut, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "contract" / "result.schema.json").read_text())
PLANS = ("gateway-v4", "gateway-v6", "gateway-v4+gateway-v6")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as dut:
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    """As it was before, whatever a test has done to it."""
    made.testbed.write_text(TESTBED)
    before = made.state()
    yield made
    assert made.state() == before


def start(dut: NamespaceDut, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand", "dut", *arguments],
        env=dut.environment,
        cwd=dut.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(dut: NamespaceDut, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process, which saves the start of another."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, dut.environment),
        contextlib.chdir(dut.folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        code = main(["dut", *arguments])
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def done(dut: NamespaceDut, *arguments: str) -> str:
    ended = run(dut, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def document(dut: NamespaceDut, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(dut, *arguments, "--json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def refused(dut: NamespaceDut, code: int, *arguments: str) -> str:
    """What is said. Nothing is changed by what is refused, which the fixture sees."""
    before = dut.state()
    ended = run(dut, *arguments)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert dut.state() == before
    return ended.stderr


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(PLANS[0], marks=pytest.mark.slow),
        pytest.param(PLANS[1], marks=pytest.mark.thorough),
        *PLANS[2:],
    ],
)
def test_the_dut_is_set_up_for_a_plan_and_then_as_it_was(dut: NamespaceDut, plan: str) -> None:
    """SEED-23, SEED-17: addresses, routes by a gateway without prefix length, forwarding; and nothing of it
    stays."""
    before = dut.state()
    applied = document(dut, "apply", "lab.toml", "--plan", plan)
    assert applied["held"]["plan"] == plan
    assert {change["name"] for change in applied["held"]["changes"]} >= {"interface left", "interface right"}
    if "v4" in plan:
        assert "10.0.0.1/24" in dut.inside("ip", "-br", "address", "show", "dev", "left")
        assert "198.19.0.0/16 via 10.0.1.2 dev right" in dut.inside("ip", "route")
        assert dut.inside("cat", "/proc/sys/net/ipv4/conf/left/forwarding") == "1\n"
    if "v6" in plan:
        assert "via 2001:2:0:9000::2 dev right" in dut.inside("ip", "-6", "route")
        assert dut.inside("cat", "/proc/sys/net/ipv6/conf/all/forwarding") == "1\n"
    assert document(dut, "status", "lab.toml")["held"]["changes"] == applied["held"]["changes"]
    again = run(dut, "apply", "lab.toml")
    assert again.returncode == 3
    assert f"already set up for {plan}, by evenhand dut apply of root" in again.stderr
    assert document(dut, "undo", "lab.toml")["undone"]["plan"] == plan
    assert dut.state() == before
    assert "there is nothing to restore" in done(dut, "undo", "lab.toml")
    assert "is not set up" in done(dut, "status", "lab.toml")


@pytest.mark.thorough
def test_what_was_there_before_stays(dut: NamespaceDut) -> None:
    """Addresses, neighbours, switches that others have set: the way back leads there, not to the defaults."""
    dut.inside("ip", "link", "set", "left", "up")
    dut.inside("ip", "address", "add", "10.0.0.1/24", "dev", "left", "label", "left:own")
    dut.inside(
        "ip", "address", "add", "2001:db8:7::1/64", "dev", "right", "nodad"
    )  # right is down: it goes when that is set down again
    dut.inside(
        "ip", "neighbor", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:07", "dev", "left", "nud", "permanent"
    )
    dut.inside("sysctl", "-w", "net.ipv6.conf.left.forwarding=1")
    time.sleep(2.5)  # its own link-local address is tentative so long
    before = dut.state()
    try:
        plan = document(
            dut,
            "apply",
            "lab.toml",
            "--plan",
            PLANS[2],
            "--static-neighbors",
            "02:00:00:00:00:01,02:00:00:00:00:02",
        )
        names = {change["name"] for change in plan["held"]["changes"]}
        assert "neighbor 10.0.0.2 of left" in names
        assert not names & {
            "interface left",
            "address 10.0.0.1/24 of left",
            "sysctl net/ipv6/conf/left/forwarding",
        }
        assert "02:00:00:00:00:01" in dut.inside("ip", "neighbor", "show", "10.0.0.2")
        done(dut, "undo", "lab.toml")
        assert dut.state() == before
    finally:
        dut.inside("sysctl", "-w", "net.ipv6.conf.left.forwarding=0")
        dut.inside("ip", "neighbor", "del", "10.0.0.2", "dev", "left")
        for side in ("left", "right"):
            dut.inside("ip", "address", "flush", "dev", side)
            dut.inside("ip", "link", "set", side, "down")


@pytest.mark.thorough
def test_neighbours_learned_meanwhile_are_forgotten(dut: NamespaceDut) -> None:
    done(dut, "apply", "lab.toml")
    dut.inside(
        "ip", "neighbor", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:09", "dev", "left", "nud", "reachable"
    )
    done(dut, "undo", "lab.toml")
    assert "10.0.0.2" not in dut.inside("ip", "neighbor", "show", "nud", "all")


@pytest.mark.thorough
def test_channels_are_set_and_put_back(dut: NamespaceDut) -> None:
    """RSS-01: as many queues as are asked for. A veth of the kernel has channels where it was made with
    several queues."""
    for side in ("left", "right"):
        assert "Current hardware settings" in dut.inside("ethtool", "-l", side)
    error = refused(dut, 3, "apply", "lab.toml", "--channels", "1000")
    assert "did not accept channels of left" in error
    assert "Nothing was sent, and the DUT is in its previous state." in error


@pytest.mark.parametrize(
    ("option", "value", "what"), [("--key", "common", "hash key"), ("--table-queues", "1", "hash table")]
)
def test_a_driver_without_a_hash_table_is_named(
    dut: NamespaceDut, option: str, value: str, what: str
) -> None:
    """RSS-03, RSS-04: a veth has neither."""
    assert f"left does not report its {what}" in refused(dut, 3, "apply", "lab.toml", option, value)


@pytest.mark.thorough
def test_a_change_that_does_not_take_is_named_and_all_is_taken_back(dut: NamespaceDut) -> None:
    """Nothing is sent through half a set-up."""
    dut.inside("sysctl", "-w", "net.ipv6.conf.right.disable_ipv6=1")
    try:
        error = refused(dut, 3, "apply", "lab.toml", "--plan", "gateway-v6")
    finally:
        dut.inside("sysctl", "-w", "net.ipv6.conf.right.disable_ipv6=0")
    assert "did not accept address 2001:2:0:9000::1/64 of right" in error
    assert "disabled" in error


def test_a_driver_that_sets_no_hash_is_quoted(dut: NamespaceDut) -> None:
    """RSS-02: nobody measures a type 1 router that hashes ports."""
    error = refused(dut, 3, "apply", "lab.toml", "--hash", "type1")
    assert "left does not report what it hashes" in error
    assert "Operation not supported" in error


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ("mgmt", "right", "mgmt carries the SSH connection"),
        ("left", "eth77", "the DUT has no interface 'eth77'"),
        ("left", "lo:1", "the DUT has no interface 'lo:1'"),
    ],
)
def test_interfaces_that_cannot_be_used_are_refused(
    dut: NamespaceDut, left: str, right: str, said: str
) -> None:
    dut.testbed.write_text(
        TESTBED.replace('left = "left"', f'left = "{left}"').replace('right = "right"', f'right = "{right}"')
    )
    assert said in refused(dut, 2, "apply", "lab.toml")
    assert said in refused(dut, 2, "check", "lab.toml")


@pytest.mark.parametrize(
    ("make", "take", "said"),
    [
        (
            "ip route add default dev right",
            "ip route del default dev right",
            "right carries a default route of the DUT",
        ),
        (
            "ip address add 10.0.1.1/24 dev left",
            "ip address del 10.0.1.1/24 dev left",
            "or swap left and right",
        ),
        (
            "ip address add 10.0.0.9/24 dev mgmt",
            "ip address del 10.0.0.9/24 dev mgmt",
            "mgmt of the DUT has the address 10.0.0.9/24",
        ),
        (
            "ip route add 198.19.0.0/16 dev left",
            "ip route del 198.19.0.0/16 dev left",
            "another route to 198.19.0.0/16",
        ),
        (
            "ip link add br7 type bridge; ip link set left master br7",
            "ip link del br7",
            "left is a port of br7",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(dut: NamespaceDut, make: str, take: str, said: str) -> None:
    for side in ("left", "right"):
        dut.inside("ip", "link", "set", side, "up")
    dut.inside("sh", "-c", make)
    try:
        error = run(dut, "apply", "lab.toml")
    finally:
        dut.inside("sh", "-c", take)
        for side in ("left", "right"):
            dut.inside("ip", "link", "set", side, "down")
    assert error.returncode == 2
    assert said in error.stderr


def test_two_ends_of_one_wire_are_refused(dut: NamespaceDut) -> None:
    dut.inside("ip", "link", "add", "end0", "type", "veth", "peer", "name", "end1")
    dut.testbed.write_text(
        TESTBED.replace('left = "left"', 'left = "end0"').replace('right = "right"', 'right = "end1"')
    )
    try:
        assert "end0 and end1 are the two ends of one cable" in refused(dut, 2, "apply", "lab.toml")
    finally:
        dut.inside("ip", "link", "del", "end0")


@pytest.mark.parametrize(("options", "said"), [("size=4k", "No space left"), ("ro", "Read-only file system")])
def test_a_dut_that_can_keep_nothing_is_not_changed(dut: NamespaceDut, options: str, said: str) -> None:
    dut.inside("mkdir", "-p", dut.kept)
    dut.inside("mount", "-t", "tmpfs", "-o", options, "none", dut.kept)
    try:
        error = refused(dut, 3, "apply", "lab.toml")
        assert "nothing was changed" in error
        assert said in error
        assert "is not set up" in done(dut, "status", "lab.toml")
    finally:
        dut.inside("umount", dut.kept)


@pytest.mark.thorough
def test_the_way_back_is_known_here_where_the_dut_has_lost_it(dut: NamespaceDut) -> None:
    done(dut, "apply", "lab.toml")
    dut.inside("rm", "-r", dut.kept)
    assert run(dut, "apply", "lab.toml").returncode == 3
    assert "changes undone" in done(dut, "undo", "lab.toml")


@pytest.mark.thorough
def test_the_way_back_is_known_on_the_dut_where_it_is_lost_here(dut: NamespaceDut) -> None:
    done(dut, "apply", "lab.toml")
    for path in (dut.folder / "state/evenhand/dut").glob("*.json"):
        path.unlink()
    assert "changes undone" in done(dut, "undo", "lab.toml")


@pytest.mark.thorough
def test_a_dut_that_was_restarted_has_nothing_to_be_put_back(dut: NamespaceDut) -> None:
    done(dut, "apply", "lab.toml")
    [kept] = (dut.folder / "state/evenhand/dut").glob("*.json")
    text = kept.read_text()
    done(dut, "undo", "lab.toml")
    found = json.loads(text)
    kept.write_text(json.dumps({**found, "boot_id": "another"}))
    assert "there is nothing to restore" in done(dut, "undo", "lab.toml")
    assert not kept.exists()


@pytest.mark.thorough
def test_a_connection_lost_in_the_middle_is_said_and_put_back_later(dut: NamespaceDut) -> None:
    done(dut, "apply", "lab.toml")
    dut.stop()
    try:
        ended = run(dut, "undo", "lab.toml")
    finally:
        dut.start()
    assert ended.returncode == 3
    assert "does not answer" in ended.stderr
    assert "changes undone" in done(dut, "undo", "lab.toml")


def kill_at_random(dut: NamespaceDut, times: int, number: int) -> None:
    """At any moment of apply and undo, with any signal; then `undo` brings it back."""
    before, chance = dut.state(), random.Random(number)
    began = time.monotonic()
    done(dut, "apply", "lab.toml", "--plan", PLANS[2])
    longest_s = time.monotonic() - began
    done(dut, "undo", "lab.toml")
    for turn in range(times):
        if turn % 2:
            done(dut, "apply", "lab.toml", "--plan", PLANS[2])
        process = start(
            dut, *(("undo", "lab.toml") if turn % 2 else ("apply", "lab.toml", "--plan", PLANS[2]))
        )
        time.sleep(chance.uniform(0.2, 1.0) * longest_s)
        process.send_signal(
            signal.SIGKILL if turn % 4 < 2 else chance.choice((signal.SIGINT, signal.SIGTERM))
        )
        process.communicate(timeout=240)
        ended = run(dut, "undo", "lab.toml")
        assert ended.returncode == 0, ended.stderr
        assert dut.state() == before, f"turn {turn}"
        assert not list((dut.folder / "state/evenhand/dut").glob("*.json"))
        assert "held" not in dut.inside("ls", dut.kept)


@pytest.mark.thorough
def test_after_a_kill_at_any_moment_undo_brings_back_all(dut: NamespaceDut) -> None:
    kill_at_random(dut, 4, number=int(os.environ.get("EVENHAND_KILLS", "1")))


@pytest.mark.slow
def test_after_twenty_kills_undo_brings_back_all(dut: NamespaceDut) -> None:
    kill_at_random(dut, 20, number=2)
