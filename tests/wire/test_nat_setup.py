# SPDX-License-Identifier: Apache-2.0
"""The kernel's own NAT, set up as a DUT's over SSH and by the printed script: connections are opened, used
and forgotten, and nothing of it stays. Skipped where nft or conntrack, and for NAT64 TAYGA, is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from evenhand.cli.main import main
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.record import read_held
from evenhand.dut.setup import DutOnShell, is_in_place
from evenhand.dut.ssh import open_shell
from evenhand.lab.ports import af_packet_device, engine_command_inside
from evenhand.plan import SIDES, AddressPlan, make_plan
from evenhand.plan.ranges import UdpRange
from evenhand.rig import Setup
from evenhand.testbed import read_testbed
from evenhand.trial import EngineSession, find_engine
from tests.dut.namespace_dut import NamespaceDut, namespace_dut_of_whole_frames, wait_until, why_not
from tests.dut.test_over_ssh import document, refused
from tests.errors import raises
from tests.wire.wire_session import Document, engine, open_to_dut, run_trial, thorough, until

NEEDED = ("nft", "conntrack")
pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(
        any(shutil.which(program, path="/usr/sbin") is None for program in NEEDED),
        reason="nftables or conntrack is not installed",
    ),
]
needs_tayga = pytest.mark.skipif(
    shutil.which("tayga", path="/usr/sbin") is None, reason="TAYGA is not installed"
)
PLANS = ("nat44", pytest.param("nat64", marks=needs_tayga), "nat66")
HOSTS = (2, 3)
CONNECTIONS = 2 * 200 * 3 * 2
"""2 hosts x 200 ports x 3 hosts x 2 ports: each four tuple."""
LOAD_FPS = 2_000
ALL = ("--os", "linux", "--left", "left", "--right", "right")
TIMEOUTS = "net.netfilter.nf_conntrack_udp_timeout"
UNHARMED = {"no_checksum": 0, "traffic_class": 0, "address_or_port": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut_of_whole_frames(tmp_path_factory.mktemp("dut")) as dut:
        yield dut


@pytest.fixture
def dut(made: NamespaceDut, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamespaceDut]:
    for name in ("PATH", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    before, rules = made.state(), made.inside("nft", "list", "ruleset")
    assert not rules
    yield made
    assert made.state() == before
    assert made.inside("nft", "list", "ruleset") == rules
    assert not made.inside("find", "/run", "-name", "*nat*")
    wait_until(lambda: not made.inside("pgrep", "-f", "tayga --config /run/evenhand"), "TAYGA still runs")


def setup_of(dut: NamespaceDut) -> Setup:
    return Setup(name="lab.toml", testbed=read_testbed(dut.testbed))


def plan_of(name: str) -> AddressPlan:
    return make_plan(
        name,
        HOSTS,
        source_ports=UdpRange(first=10_000, last=10_199),
        destination_ports=UdpRange(first=1, last=2),
    )


def establish(session: EngineSession, setup: Setup, trial: int) -> Document:
    setup.empty_connections()
    return run_trial(
        session,
        trial=trial,
        rate_fps=LOAD_FPS,
        duration_s=CONNECTIONS / LOAD_FPS,
        directions=["forward"],
        connections={"use": "establish", "count": CONNECTIONS},
    )


def check_connections(dut: NamespaceDut, name: str) -> None:
    """Each four tuple of the plan has one, an answer finds its way back over it, and none is left in the
    emptied table."""
    plan, setup = plan_of(name), setup_of(dut)
    assert plan.four_tuples == CONNECTIONS
    devices = [af_packet_device(n, side, 1518) for n, side in enumerate(SIDES)]
    numbers = iter(range(1, 100))
    dut.make_urgent()
    with engine(engine_command_inside(dut.tester, find_engine())) as session:
        open_to_dut(session, plan, *devices)

        def learnt(found: Document) -> bool:
            connections: Document = found["directions"]["forward"]["connections"]
            return connections == {"opened": CONNECTIONS, "learnt": CONNECTIONS, "shared_tuples": 0}

        until(learnt, lambda: establish(session, setup, next(numbers)))

        def answer() -> Document:
            return run_trial(
                session,
                trial=next(numbers),
                rate_fps=LOAD_FPS,
                duration_s=CONNECTIONS / LOAD_FPS,
                directions=["reverse"],
                connections={"use": "each_once"},
            )

        def returns(found: Document) -> bool:
            return bool(found["directions"]["reverse"]["received_frames"] == CONNECTIONS)

        assert until(returns, answer)["directions"]["reverse"]["mistranslated_frames"] == UNHARMED
        emptied = setup.empty_connections()
        # The SSH connections of the DUT are in its table too.
        assert emptied.connections is not None
        assert CONNECTIONS <= emptied.connections < CONNECTIONS + 50
        assert emptied.seconds > 0
        assert answer()["directions"]["reverse"]["received_frames"] == 0


@pytest.mark.parametrize(
    "name", ["nat44", pytest.param("nat64", marks=[needs_tayga, pytest.mark.thorough]), *thorough("nat66")]
)
def test_the_dut_is_a_nat_once_it_is_set_up_over_ssh(dut: NamespaceDut, name: str) -> None:
    """R9693-01, R9693-06, R9693-07, SEED-23: rules, timeouts and what ends frames of no connection."""
    applied = document(dut, "apply", "lab.toml", "--plan", name)
    names = {change["name"] for change in applied["held"]["changes"]}
    pool = "2001:2:0:4000::/112" if name == "nat66" else "198.18.0.0/16"
    assert names >= {
        "NAT by nftables",
        f"route to {pool}",
        "sysctl net/netfilter/nf_conntrack_udp_timeout",
        "sysctl net/netfilter/nf_conntrack_udp_timeout_stream",
    }
    assert ("translator TAYGA" in names) == (name == "nat64")
    assert setup_of(dut).connection_timeout_s == TIMEOUT_S
    check_connections(dut, name)
    assert document(dut, "undo", "lab.toml")["undone"]["plan"] == name
    assert setup_of(dut).connection_timeout_s == 30


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nat44", ("--nat-ports", "random")),
        ("nat66", ("--nat-ports", "random")),
        ("nat44", ("--nat-addresses", "one")),
        ("nat66", ("--nat-addresses", "one", "--nat-ports", "random")),
    ],
)
def test_what_a_nat_does_with_ports_and_addresses_can_be_chosen(
    dut: NamespaceDut, name: str, options: tuple[str, ...]
) -> None:
    """R9693-16: none of it changes what the tester expects."""
    document(dut, "apply", "lab.toml", "--plan", name, *options)
    rules = dut.inside("nft", "list", "ruleset")
    assert ("fully-random" in rules) == ("random" in options)
    assert ("map pool" in rules) == ("one" not in options)
    check_connections(dut, name)
    document(dut, "undo", "lab.toml")


@pytest.mark.thorough
def test_rules_that_somebody_has_changed_are_seen_and_taken_away(dut: NamespaceDut) -> None:
    document(dut, "apply", "lab.toml", "--plan", "nat44", "--nat-ports", "random")
    found = setup_of(dut).testbed.dut
    with open_shell(found) as shell:
        on = DutOnShell(dut=found, shell=shell)
        held = read_held(shell)
        assert held is not None
        assert is_in_place(on, held)
        dut.inside("nft", "delete", "element", "ip", "evenhand", "pool", "{ 10.16.0.7 }")
        assert not is_in_place(on, held)
    document(dut, "undo", "lab.toml")


@pytest.mark.thorough
def test_what_is_in_the_place_of_the_nat_is_not_taken(dut: NamespaceDut) -> None:
    """Somebody's route, or rules of this name."""
    for add, remove, told in (
        (
            "ip route add unreachable 198.18.0.0/16",
            "ip route del unreachable 198.18.0.0/16",
            "another route to 198.18.0.0/16: unreachable",
        ),
        ("nft add table ip evenhand", "nft delete table ip evenhand", "a table 'evenhand' of nftables"),
        ("nft add table ip6 evenhand", "nft delete table ip6 evenhand", "a table 'evenhand' of nftables"),
    ):
        if add.endswith("evenhand"):  # an empty table is none
            add += "; nft add chain " + add.split()[3] + " evenhand own"
        dut.inside("sh", "-c", add)
        try:
            assert f"already has {told}" in refused(dut, 2, "apply", "lab.toml", "--plan", "nat44")
        finally:
            dut.inside(*remove.split())


@pytest.mark.thorough
def test_a_limit_that_the_dut_does_not_take_is_named_and_nothing_stays(dut: NamespaceDut) -> None:
    """The size of the table is that of all namespaces, which none but the first may change."""
    said = refused(dut, 3, "apply", "lab.toml", "--plan", "nat44", "--nat-table", "123456")
    assert "sysctl net/netfilter/nf_conntrack_max" in said


@pytest.mark.parametrize("program", NEEDED)
def test_a_dut_without_a_program_is_told_how_to_get_it(dut: NamespaceDut, program: str) -> None:
    dut.inside("mount", "--bind", "/dev/null", f"/usr/sbin/{program}")
    try:
        said = refused(dut, 3, "apply", "lab.toml", "--plan", "nat44")
    finally:
        dut.inside("umount", f"/usr/sbin/{program}")
    package = {"nft": "nftables"}.get(program, program)
    assert f"has no {program}" in said
    assert f"apt-get install {package}" in " ".join(said.split())


def test_a_table_that_cannot_be_emptied_is_an_error(dut: NamespaceDut) -> None:
    dut.inside("mount", "--bind", "/dev/null", "/usr/sbin/conntrack")
    try:
        with raises("rig.emptying-failed", match="conntrack"):
            setup_of(dut).empty_connections()
    finally:
        dut.inside("umount", "/usr/sbin/conntrack")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("options", [(), ("--nat-ports", "random")])
def test_the_printed_script_sets_up_the_same_and_takes_it_back(
    dut: NamespaceDut, name: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Run twice, as somebody does who is not sure."""
    scripts = []
    for undo in ((), ("--undo",)):
        assert main(["dut", "setup", name, *ALL, *options, *undo]) == 0
        scripts.append(capsys.readouterr().out)
    for _ in range(2):
        assert dut.inside("sh", "-ec", f"{{ {scripts[0]}\n}} > /dev/null; echo done").endswith("done\n")
    check_connections(dut, name)
    assert dut.inside("sh", "-ec", f"{{ {scripts[1]}\n}} > /dev/null; echo done").endswith("done\n")
    assert dut.inside("sysctl", "-n", TIMEOUTS) == "30\n"
