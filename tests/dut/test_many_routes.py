# SPDX-License-Identifier: Apache-2.0
"""Thousands of routes on a Linux DUT, set over SSH in one go, counted, and taken away again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.dut import describe_setup
from evenhand.dut.many_routes import PROTOCOL, ManyRoutes, costs, many_routes_of, mended, read_counts
from evenhand.dut.shell import Answer
from evenhand.lab import linux_lab
from evenhand.plan import IpVersion, make_own_plan, read_plan_file
from tests.dut.namespace_dut import TESTBED, NamespaceDut, namespace_dut, wait_until, why_not
from tests.dut.test_over_ssh import document, done, refused, run

needs_root = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
ROUTES = 6_000


def plan_text(version: IpVersion, routes: int = ROUTES) -> str:
    """A plan file: so many prefixes on the left, three on the right."""
    if version == 4:
        links, first, others = ("10.0.0", "10.0.1", ".", "/24"), "16.0.0.0", "198.19.0.0"
    else:
        links, first, others = ("fd00:1", "fd00:2", "::", "/64"), "2a00::", "2001:2:0:8000::"
    left, right, before, length = links
    return f"""
[left]
dut = "{left}{before}1{length}"
gateway = "{left}{before}2"
routes = {routes}
lengths = "internet"
first = "{first}"
[right]
dut = "{right}{before}1{length}"
gateway = "{right}{before}2"
routes = 3
first = "{others}"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as dut:
        for version in (4, 6):
            (dut.folder / f"own-v{version}.toml").write_text(plan_text(version))
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    """As it was before, whatever a test has done to it."""
    made.testbed.write_text(TESTBED)
    before = made.state()
    yield made
    assert made.state() == before


def routes_there(dut: NamespaceDut, version: IpVersion, interface: str = "left") -> list[str]:
    return dut.inside("ip", f"-{version}", "route", "show", "dev", interface, "proto", str(PROTOCOL)).split(
        "\n"
    )[:-1]


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("version", [4, 6])
def test_thousands_of_routes_are_one_change(dut: NamespaceDut, version: IpVersion) -> None:
    """Each of them is there, and none of them stays."""
    plan = read_plan_file(dut.folder / f"own-v{version}.toml")
    assert plan.left.prefixes is not None
    applied = document(dut, "apply", "lab.toml", "--plan", f"own-v{version}.toml")
    (change,) = (each for each in applied["held"]["changes"] if "routes" in each["name"])
    via = plan.left.gateway.ip if plan.left.gateway else None
    assert change == {
        "name": f"IPv{version} routes over left in table main",
        "before": None,
        "value": f"{ROUTES} via {via}",
    }
    there = {line.split()[0] for line in routes_there(dut, version)}
    host = "/32" if version == 4 else "/128"
    assert there == {text.removesuffix(host) for text in plan.left.prefixes.texts()}
    assert len(dut.inside("ip", f"-{version}", "route", "show", "dev", "right").splitlines()) >= 4
    again = run(dut, "apply", "lab.toml", "--plan", f"own-v{version}.toml")
    assert again.returncode == 3
    assert "already set up for own-v" in again.stderr
    done(dut, "undo", "lab.toml")
    assert routes_there(dut, version) == []


@needs_root
@pytest.mark.root
def test_a_set_up_that_was_killed_half_way_is_taken_back(dut: NamespaceDut) -> None:
    (dut.folder / "long.toml").write_text(plan_text(4, 60_000))
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "dut", "apply", "lab.toml", "--plan", "long.toml"],
        env=dut.environment,
        cwd=dut.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: bool(routes_there(dut, 4)) or process.poll() is not None, "no route was set")
    process.send_signal(signal.SIGKILL)
    process.wait()
    done(dut, "undo", "lab.toml")
    assert routes_there(dut, 4) == []


@needs_root
@pytest.mark.root
def test_a_table_that_is_too_small_is_named_and_all_is_taken_back(dut: NamespaceDut) -> None:
    """The DUT's `ip` is one that stops as the kernel does when a table is full."""
    path = Path(shutil.which("ip") or "").resolve()
    own = dut.folder / "real-ip"
    shutil.copy(path, own)
    fake = dut.folder / "small-ip"
    fake.write_text(
        f"""#!/bin/sh
case "$*" in
-force*) exec {own} "$@" ;;
*-batch*) head -n 100 | {own} "$@"; echo "RTNETLINK answers: No buffer space available" >&2; exit 1 ;;
esac
exec {own} "$@"
"""
    )
    fake.chmod(0o755)
    dut.inside("mount", "--bind", str(fake), str(path))
    try:
        error = refused(dut, 3, "apply", "lab.toml", "--plan", "own-v4.toml")
    finally:
        dut.inside("umount", str(path))
    assert "the DUT took 100 of 6,000 IPv4 routes over left into its table main" in error
    assert "No buffer space available" in error
    assert "the DUT is in its previous state" in error


@needs_root
@pytest.mark.root
def test_memory_is_asked_for_before_anything_is_changed(dut: NamespaceDut) -> None:
    less = dut.folder / "meminfo"
    less.write_text("MemTotal: 100000 kB\nMemAvailable: 2048 kB\n")
    dut.inside("mount", "--bind", str(less), "/proc/meminfo")
    try:
        error = refused(dut, 3, "apply", "lab.toml", "--plan", "own-v6.toml")
    finally:
        dut.inside("umount", "/proc/meminfo")
    assert "the DUT has 2 MB of memory left, and its tables of routes need about 4 MB for 6,000 IPv6" in error


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(
    ("make", "take", "said"),
    [
        (
            "ip route add 16.0.0.0/24 dev mgmt",
            "ip route del 16.0.0.0/24 dev mgmt",
            "already has another route to 16.0.0.0/24, among the 6,000 prefixes",
        ),
        (
            "ip address add 16.0.0.9/32 dev mgmt",
            "ip address del 16.0.0.9/32 dev mgmt",
            "mgmt of the DUT has the address 16.0.0.9, which is in 16.0.0.0/16",
        ),
        (
            "ip route add 203.0.113.0/24 dev left proto 173",
            "ip route del 203.0.113.0/24 dev left proto 173",
            "already has routes with the mark of Evenhand's (protocol 173) over left",
        ),
    ],
)
def test_what_stands_in_the_way_of_the_routes_is_named(
    dut: NamespaceDut, make: str, take: str, said: str
) -> None:
    dut.inside("ip", "link", "set", "left", "up")
    dut.inside("sh", "-c", make)
    try:
        ended = run(dut, "apply", "lab.toml", "--plan", "own-v4.toml")
    finally:
        dut.inside("sh", "-c", take)
        dut.inside("ip", "link", "set", "left", "down")
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("version", [4, 6])
def test_the_dut_of_a_lab_has_them_all(tmp_path: Path, version: IpVersion) -> None:
    path = tmp_path / "own.toml"
    path.write_text(plan_text(version))
    with linux_lab(read_plan_file(path), name=f"many{os.getpid() % 10000}") as lab:
        show = ["ip", "-n", lab.dut_namespace, f"-{version}", "route", "show"]
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    of_left = [line for line in shown.splitlines() if f"dev {lab.dut_interface('left')} proto 173" in line]
    assert len(of_left) == ROUTES


def many_of(version: IpVersion, routes: int) -> list[ManyRoutes]:
    plan = make_own_plan({**_sides(version, routes)}, where="own.toml")
    return many_routes_of(describe_setup(plan, left="eth1", right="eth2"))


def _sides(version: IpVersion, routes: int) -> dict[str, object]:
    return tomllib.loads(plan_text(version, routes))


def test_only_what_is_not_listed_goes_in_one_go() -> None:
    assert many_of(4, 4096) == []
    (many,) = many_of(4, 4097)
    assert many.key == ("eth1", "4", "main")
    assert many.value == "4097 via 10.0.0.2"
    assert costs([many]) == []


def test_memory_and_time_of_many_are_said() -> None:
    (said,) = costs(many_of(6, 200_000))
    assert said.startswith("200,000 IPv6 routes of the left side: they take about 162 MB")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"dst": "default", "gateway": "10.9.0.1"}],
        [{"dst": "10.0.0.0/8", "nexthops": [{"gateway": "10.9.0.1"}, {"gateway": "10.9.0.2"}]}],
        [{"dst": "10.0.0.0/8", "flags": []}, {"dst": "11.0.0.0/8", "flags": ["linkdown"]}],
    ],
)
def test_json_without_the_marked_routes_is_whole_again(rows: list[dict[str, object]]) -> None:
    """Wherever they were: first, between, last."""
    marked = {"dst": "16.0.0.0/24", "protocol": str(PROTOCOL), "flags": []}
    for at in range(len(rows) + 1):
        text = json.dumps([*rows[:at], marked, *rows[at:], marked], separators=(",", ":"))
        filtered = subprocess.run(
            ["sh", "-c", f"tr '{{' '\\n' | grep -v '\"protocol\":\"{PROTOCOL}\"' | tr '\\n' '{{'"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert json.loads(mended(filtered)) == rows


def test_counts_are_read_by_interface_version_and_table() -> None:
    told = "left main 10.0.0.2 1000000\nleft 7301 10.0.0.2 5\nleft main 10.0.0.3 1\nawk: what?\n"
    assert read_counts({4: Answer(0, told, ""), 6: Answer(127, "sh: awk: not found", "")}) == {
        ("left", "4", "main"): "1 via 10.0.0.3, 1000000 via 10.0.0.2",
        ("left", "4", "7301"): "5 via 10.0.0.2",
    }
