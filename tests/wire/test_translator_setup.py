# SPDX-License-Identifier: Apache-2.0
"""TAYGA, set up as a DUT's translator over SSH and by the printed script: it translates each frame as it
must, and nothing of it stays. Skipped where it is not installed, since its package changes the network of the
host."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from evenhand.cli.main import main
from evenhand.dut.nat import TAYGA_INTERFACE
from evenhand.lab.ports import af_packet_device, engine_command_inside
from evenhand.plan import SIDES, AddressPlan, make_plan
from evenhand.trial import find_engine
from tests.dut.namespace_dut import NamespaceDut, namespace_dut_of_whole_frames, put_back, wait_until, why_not
from tests.dut.test_over_ssh import document, refused
from tests.wire.wire_session import Document, engine, open_to_dut, thorough, valid_trial

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(shutil.which("tayga", path="/usr/sbin") is None, reason="TAYGA is not installed"),
]
PLANS = ("siit", "siit-eam", "siit@2001:db8::/40")
LOAD_FPS = 1_000
ALL = ("--os", "linux", "--left", "left", "--right", "right")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut_of_whole_frames(tmp_path_factory.mktemp("dut")) as dut:
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    with put_back(made):
        yield made
    wait_until(lambda: not made.inside("pgrep", "-f", "tayga --config /run/evenhand"), "TAYGA still runs")


def translated(dut: NamespaceDut, plan: AddressPlan) -> Document:
    devices = [af_packet_device(n, side, 1518) for n, side in enumerate(SIDES)]
    dut.make_urgent()
    with engine(engine_command_inside(dut.tester, find_engine())) as session:
        open_to_dut(session, plan, *devices)
        return valid_trial(session, rate_fps=LOAD_FPS, duration_s=1)


def check(found: Document) -> None:
    for direction in found["directions"].values():
        assert direction["received_frames"] > 0.9 * LOAD_FPS
        assert not any(direction["mistranslated_frames"].values())
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0


@pytest.mark.parametrize("name", ["siit", *thorough(*PLANS[1:])])
def test_the_dut_translates_once_it_is_set_up_over_ssh(dut: NamespaceDut, name: str) -> None:
    """R8219-01, SEED-23: each frame as it must be; no route, switch or process stays."""
    plan = make_plan(name)
    assert plan.translation is not None
    applied = document(dut, "apply", "lab.toml", "--plan", name)
    names = {change["name"] for change in applied["held"]["changes"]}
    assert names >= {"translator TAYGA", "route to 198.18.0.0/16", f"route to {plan.translation.prefix}"}
    check(translated(dut, plan))
    # What it has lost is seen, and what is left is put back.
    dut.inside("pkill", "-F", f"{dut.kept}/tayga.pid")
    assert document(dut, "undo", "lab.toml")["undone"]["plan"] == name


@pytest.mark.thorough
def test_both_plans_of_a_mix_are_set_up_at_once(dut: NamespaceDut) -> None:
    """R8219-05: translated and native traffic."""
    document(dut, "apply", "lab.toml", "--plan", "siit+gateway-v6")
    routes = dut.inside("ip", "-6", "route")
    assert f"2001:2:0:64::/96 dev {TAYGA_INTERFACE}" in routes
    assert "2001:2:0:8000::/64 via 2001:2:0:9000::2 dev right" in routes
    document(dut, "undo", "lab.toml")


def test_what_is_in_the_translators_place_is_not_taken(dut: NamespaceDut) -> None:
    """Somebody's route, or the interface of a set-up that was printed."""
    for add, remove, told in (
        ("route add blackhole 198.18.0.0/16", "route del 198.18.0.0/16", "another route to 198.18.0.0/16"),
        (
            f"tuntap add dev {TAYGA_INTERFACE} mode tun",
            f"link del dev {TAYGA_INTERFACE}",
            f"an interface {TAYGA_INTERFACE}",
        ),
    ):
        dut.inside("ip", *add.split())
        try:
            assert f"already has {told}" in refused(dut, 2, "apply", "lab.toml", "--plan", "siit")
        finally:
            dut.inside("ip", *remove.split())


def test_a_dut_without_tayga_is_told_how_to_get_it(dut: NamespaceDut) -> None:
    dut.inside("mount", "--bind", "/dev/null", "/usr/sbin/tayga")
    try:
        said = refused(dut, 3, "apply", "lab.toml", "--plan", "siit")
    finally:
        dut.inside("umount", "/usr/sbin/tayga")
    assert "has no TAYGA" in said
    assert "apt-get install --no-install-recommends tayga" in " ".join(said.split())


@pytest.mark.parametrize("name", PLANS)
def test_the_printed_script_sets_up_the_same_and_takes_it_back(
    dut: NamespaceDut, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run twice, as somebody does who is not sure."""
    scripts = []
    for undo in ((), ("--undo",)):
        assert main(["dut", "setup", name, *ALL, *undo]) == 0
        scripts.append(capsys.readouterr().out)
    for _ in range(2):
        assert dut.inside("sh", "-ec", f"{{ {scripts[0]}\n}} > /dev/null; echo done").endswith("done\n")
    check(translated(dut, make_plan(name)))
    assert dut.inside("sh", "-ec", f"{{ {scripts[1]}\n}} > /dev/null; echo done").endswith("done\n")
