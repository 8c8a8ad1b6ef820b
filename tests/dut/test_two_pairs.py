# SPDX-License-Identifier: Apache-2.0
"""A DUT with a pair of interfaces for each of two engines, all with the same addresses, set up over SSH and
put back: OpenSSH's server in a namespace of ours, the kernel's own router behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dut.namespace_dut import NamespaceDut, namespace_dut, put_back, why_not
from tests.dut.test_over_ssh import PLANS, document, done, kill_at_random, refused

pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
NO_RULES = """#!/bin/sh
case "$*" in *rule*) echo 'RTNETLINK answers: Operation not supported' >&2; exit 2;; esac
exec /usr/sbin/ip "$@"
"""
"""`ip` on a kernel without CONFIG_IP_MULTIPLE_TABLES."""
PAIRS = {"7301": ("left", "right"), "7302": ("left2", "right2")}
"""By their tables."""
ROUTES = {
    "-4": {"10.0.0.0/24 dev {0}", "10.0.1.0/24 dev {1}", "198.18.0.0/16 via 10.0.0.2 dev {0}"}
    | {"198.19.0.0/16 via 10.0.1.2 dev {1}"},
    "-6": {"2001:2:0:1000::/64 dev {0}", "2001:2:0:9000::/64 dev {1}"}
    | {"2001:2::/64 via 2001:2:0:1000::2 dev {0}", "2001:2:0:8000::/64 via 2001:2:0:9000::2 dev {1}"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut"), pairs=2) as dut:
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    """As it was before, whatever a test has done to it."""
    with put_back(made):
        yield made


@pytest.mark.parametrize(
    ("plan", "versions"),
    [pytest.param("gateway-v4", ["-4"], marks=pytest.mark.thorough), (PLANS[2], ["-4", "-6"])],
)
def test_each_pair_has_the_plans_addresses_and_a_table_of_its_own(
    dut: NamespaceDut, plan: str, versions: list[str]
) -> None:
    """SEED-23, SEED-17: what comes in on a pair leaves on that pair; and nothing of it stays."""
    before = dut.state()
    applied = document(dut, "apply", "lab.toml", "--plan", plan)
    names = {change["name"] for change in applied["held"]["changes"]}
    assert {f"interface {name}" for name in dut.interfaces} <= names
    assert "route to 198.19.0.0/16 in table 7302" in names
    assert "IPv4 rule for what comes in on right2" in names
    for version in versions:
        rules = dut.inside("ip", version, "rule").splitlines()
        for table, pair in PAIRS.items():
            found = dut.inside("ip", version, "route", "show", "table", table).splitlines()
            said = {line.split(" proto")[0].split(" scope")[0].split(" metric")[0].strip() for line in found}
            assert {line.format(*pair) for line in ROUTES[version]} == said
            for name in pair:
                assert f"7300:\tfrom all iif {name} lookup {table}" in rules
    for name in dut.interfaces:
        assert dut.inside("cat", f"/proc/sys/net/ipv4/conf/{name}/forwarding") == "1\n"
        assert "10.0." in dut.inside("ip", "-br", "address", "show", "dev", name)
    assert document(dut, "status", "lab.toml")["held"]["changes"] == applied["held"]["changes"]
    document(dut, "undo", "lab.toml")
    assert dut.state() == before


@pytest.mark.parametrize("plan", ["gateway-v4", pytest.param(PLANS[2], marks=pytest.mark.thorough)])
def test_eight_ports_are_four_pairs_with_a_table_each(tmp_path: Path, plan: str) -> None:
    """SEED-23, SEED-17."""
    with namespace_dut(tmp_path / "dut", pairs=4) as dut:
        before = dut.state()
        applied = document(dut, "apply", "lab.toml", "--plan", plan)
        names = {change["name"] for change in applied["held"]["changes"]}
        assert {f"interface {name}" for name in dut.interfaces} <= names
        rules = dut.inside("ip", "-4", "rule").splitlines()
        for number, table in (("", 7301), (2, 7302), (3, 7303), (4, 7304)):
            said = dut.inside("ip", "-4", "route", "show", "table", str(table))
            assert f"via 10.0.0.2 dev left{number}" in said
            for side in ("left", "right"):
                assert f"7300:\tfrom all iif {side}{number} lookup {table}" in rules
        done(dut, "undo", "lab.toml")
        assert dut.state() == before


@pytest.mark.thorough
@pytest.mark.parametrize("of", ["all", "left2"])
def test_a_strict_reverse_path_filter_is_loosened_and_put_back(dut: NamespaceDut, of: str) -> None:
    """Where two interfaces have one network, the strict one takes what comes in on the first alone."""
    path = f"net.ipv4.conf.{of}.rp_filter"
    dut.inside("sysctl", "-w", f"{path}=1")
    try:
        before = dut.state()
        done(dut, "apply", "lab.toml", "--plan", "gateway-v4")
        for name in dut.interfaces:
            wanted = "2" if of in ("all", name) else "0"
            assert dut.inside("sysctl", "-n", f"net.ipv4.conf.{name}.rp_filter").strip() == wanted
        done(dut, "undo", "lab.toml")
        assert dut.state() == before
    finally:
        dut.inside("sysctl", "-w", f"{path}=0")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "take", "said"),
    [
        ("ip rule add iif left2 lookup 99", "ip rule del iif left2 lookup 99", "left2: lookup 99"),
        (
            "ip -6 rule add iif right lookup 99",
            "ip -6 rule del iif right lookup 99",
            "ip -6 rule del iif right lookup 99",
        ),
        (
            "ip route add 203.0.113.0/24 dev mgmt table 7302",
            "ip route del 203.0.113.0/24 table 7302",
            "another route to 203.0.113.0/24 in table 7302",
        ),
        (
            "ip address add 10.0.1.1/24 dev left2",
            "ip address del 10.0.1.1/24 dev left2",
            "left2 of the DUT has the address 10.0.1.1/24",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(dut: NamespaceDut, make: str, take: str, said: str) -> None:
    dut.inside("sh", "-c", make)
    try:
        assert said in refused(dut, 2, "apply", "lab.toml", "--plan", PLANS[2])
    finally:
        dut.inside("sh", "-c", take)


@pytest.mark.parametrize("plan", ["siit", "siit-eam", "nat64"])
def test_a_plan_that_needs_tayga_is_refused(dut: NamespaceDut, plan: str) -> None:
    """It has one device for all pairs, and no way to tell which pair a frame was of."""
    error = refused(dut, 2, "apply", "lab.toml", "--plan", plan)
    assert f"{plan} needs TAYGA, which has one device for all that it translates" in error


@pytest.mark.thorough
def test_each_port_has_its_own_neighbour_entry(dut: NamespaceDut) -> None:
    macs = [f"02:00:00:00:00:0{number}" for number in range(1, 5)]
    error = refused(dut, 2, "apply", "lab.toml", "--static-neighbors", ",".join(macs[:2]))
    assert "is not 4 MACs" in error
    done(dut, "apply", "lab.toml", "--plan", "gateway-v4", "--static-neighbors", ",".join(macs))
    for name, mac in zip(dut.interfaces, macs, strict=True):
        assert f"lladdr {mac} PERMANENT" in dut.inside("ip", "neighbor", "show", "dev", name)
    done(dut, "undo", "lab.toml")


@pytest.mark.thorough
def test_after_a_kill_at_any_moment_undo_brings_back_all(dut: NamespaceDut) -> None:
    kill_at_random(dut, 2, number=3)


def test_a_kernel_without_rules_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ip").write_text(NO_RULES)
    (tmp_path / "bin" / "ip").chmod(0o755)
    with namespace_dut(tmp_path / "dut", pairs=2, programs=tmp_path / "bin") as dut:
        assert "the DUT's kernel has no rules for IPv4" in refused(dut, 3, "apply", "lab.toml")
    with namespace_dut(tmp_path / "one", programs=tmp_path / "bin") as dut:
        done(dut, "apply", "lab.toml")
        done(dut, "undo", "lab.toml")
