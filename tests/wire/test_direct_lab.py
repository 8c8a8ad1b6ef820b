# SPDX-License-Identifier: Apache-2.0
"""Every topology on the Linux lab: the kernel's router resolves living hosts by ARP and ND, keeps them, and
forwards to them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from evenhand.base.errors import HostError
from evenhand.lab import LinuxLab, Neighbor, linux_lab
from evenhand.lab.build import write_sysctls
from evenhand.lab.namespaces import run_inside
from evenhand.lab.translator import check_translator
from evenhand.plan import TOPOLOGIES, AddressPlan, make_plan
from evenhand.trial import EngineSession, LearningResult, find_engine, learn
from tests.wire.wire_session import (
    QUIET_FPS,
    Document,
    dut_of,
    engine,
    open_to_dut,
    run_trial,
    until,
    valid_trial,
)

pytestmark = [pytest.mark.wire, pytest.mark.root]
LOAD_FPS = 5_000
"""The DUT's veth ring holds 50 ms of it."""
GENTLE_FPS = 2_000
"""The rate of learning: for small plans, on a machine that does other things."""
NOISE = 0.05
"""Share of frames that stalls of a busy virtual machine may cost (docs/explanation/linux-lab.md)."""
ALL_AT_ONCE = 0.25
"""The same while thousands of questions and answers at a time overrun the veth rings of 256 frames."""
SMALL = {
    name: make_plan(
        name,
        min(50 if topology.most_networks is None else 5, topology.most_hosts),
        networks=None if topology.most_networks is None else 10,
    )
    for name, topology in TOPOLOGIES.items()
    if topology.nat is None  # nobody reaches a host of these before it has opened a connection
}
DIRECT = pytest.mark.parametrize(
    "plan", [make_plan("direct_v4_net16", 50), make_plan("direct_v6", 50)], ids=["v4", "v6"]
)


@contextmanager
def rig(plan: AddressPlan) -> Iterator[tuple[LinuxLab, EngineSession, Document]]:
    with linux_lab(plan, name="directlab") as lab, engine(lab.engine_command(find_engine())) as session:
        opened = open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        yield lab, session, opened


def answered(lab: LinuxLab) -> list[Neighbor]:
    """Routers keep entries that they only tried; what counts is who answered. The tester's own link-local
    address is nobody's host."""
    return [n for n in lab.neighbors() if n.mac is not None and not n.address.startswith("fe80:")]


def expected(plan: AddressPlan, opened: Document) -> set[tuple[str, str, str]]:
    """Side, address and MAC of every neighbour that the DUT has to have."""
    found: set[tuple[str, str, str]] = set()
    for side in plan.sides:
        hosts = side.host_range
        every = [
            hosts.address(host, network)
            for network in range(hosts.network_count)
            for host in range(hosts.count)
        ]
        addresses = every if side.gateway is None else [side.gateway.ip]
        found |= {(side.name, str(address), opened[side.name]["mac"]) for address in addresses}
    return found


def make_stale(lab: LinuxLab) -> None:
    """Every entry as if its reachable time were over: still there, no longer trusted."""
    lines = (f"neigh change {n.address} dev {lab.dut_interface(n.side)} nud stale\n" for n in answered(lab))
    subprocess.run(
        ["ip", "-n", lab.dut_namespace, "-batch", "-"], input="".join(lines), text=True, check=True
    )
    assert {n.state for n in answered(lab)} == {"stale"}


def probe_soon(lab: LinuxLab, plan: AddressPlan) -> None:
    """A second after a stale entry is used it is asked for again; by default five."""
    family = f"net/ipv{plan.ip_version}/neigh"
    interfaces = [lab.dut_interface(side.name) for side in plan.sides]
    run_inside(
        lab.dut_namespace,
        lambda: write_sysctls({f"{family}/{name}/delay_first_probe_time": "1" for name in interfaces}),
    )


@pytest.mark.parametrize("plan", SMALL.values(), ids=SMALL)
def test_the_dut_learns_every_host_of_every_topology_and_forwards_to_it(plan: AddressPlan) -> None:
    """SEED-10 .. SEED-17, SEED-18, SEED-19, SEED-20, SEED-22, SEED-31, SEED-32, SEED-36: addresses, routes
    and neighbours of the lab are the plan's; its table has exactly these, with the tester's MACs."""
    if plan.translation is not None:
        try:
            check_translator()
        except HostError as error:
            pytest.skip(str(error))
    with rig(plan) as (lab, session, opened):
        result = learn(session, rate_fps=GENTLE_FPS)
        assert result.is_complete, result
        neighbors = answered(lab)
        document = valid_trial(session, rate_fps=LOAD_FPS, duration_s=0.5)
    assert {(n.side, n.address, n.mac) for n in neighbors} == expected(plan, opened)
    assert {n.state for n in neighbors} <= {"reachable", "stale", "delay", "probe"}
    assert document["verdict"] == "PASS", document["reasons"]


@pytest.mark.thorough
@DIRECT
def test_stale_entries_are_asked_for_again_and_answered(plan: AddressPlan) -> None:
    """SEED-20, R5180-07, R2544-25: a search lasts longer than a reachable time; the DUT asks each host by
    unicast while frames fly."""
    with rig(plan) as (lab, session, opened):
        probe_soon(lab, plan)
        assert learn(session, rate_fps=GENTLE_FPS).is_complete
        numbers = count(1)

        def measured() -> tuple[Document, list[Neighbor]]:
            make_stale(lab)
            # The veth ring holds a quarter of a second of it, longer than a host stalls: three seconds
            # without a stall are rare on some.
            return run_trial(session, trial=next(numbers), rate_fps=1_000, duration_s=3), answered(lab)

        document, neighbors = until(lambda found: found[0]["verdict"] != "INVALID", measured)
    assert document["verdict"] == "PASS", document["reasons"]
    assert {(n.side, n.address, n.mac) for n in neighbors} == expected(plan, opened)
    assert Counter(n.state for n in neighbors)["reachable"] == len(neighbors)
    for side, direction in ((plan.left, "reverse"), (plan.right, "forward")):
        assert document["directions"][direction]["neighbor_frames"] >= side.dut_neighbors


@DIRECT
def test_hosts_that_the_dut_does_not_reach_are_named_in_order(plan: AddressPlan) -> None:
    """R2544-35: the DUT drops what goes to three of them; all others are reached."""
    lost = [plan.right.host_range.address(index) for index in (0, 7, 49)]
    with rig(plan) as (lab, session, _):
        for address in lost:
            subprocess.run(
                ["ip", "-n", lab.dut_namespace, "route", "add", "blackhole", str(address)], check=True
            )
        result = learn(session, rate_fps=GENTLE_FPS, rounds=2, wait_s=0.3)
    assert result.sides["left"].reachable == 50
    assert (result.sides["right"].reachable, result.sides["right"].rounds) == (47, 2)
    assert result.sides["right"].unreachable == tuple(str(address) for address in lost)


def test_networks_that_the_dut_has_no_interface_in_are_unreachable() -> None:
    """SEED-31: the DUT is set up for fewer networks than the plan has."""
    smaller, plan = (
        make_plan("nets_v4_multi_host", 3, networks=2),
        make_plan("nets_v4_multi_host", 3, networks=3),
    )
    with linux_lab(smaller, name="directlab") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        result: LearningResult = learn(
            session, rate_fps=GENTLE_FPS, rounds=2, wait_s=0.3, directions=["forward"]
        )
    assert result.sides["right"].unreachable == ("198.19.2.2", "198.19.2.3", "198.19.2.4")


@DIRECT
def test_the_table_as_we_read_it_is_that_of_ip_neigh(plan: AddressPlan) -> None:
    """SEED-19: our own reader, because 131,072 entries take others a minute."""
    with rig(plan) as (lab, session, _):
        learn(session, rate_fps=GENTLE_FPS)
        make_stale(lab)
        ours = sorted((n.address, lab.dut_interface(n.side), n.mac) for n in answered(lab))
        shown = subprocess.run(
            ["ip", "-n", lab.dut_namespace, "neigh", "show"], check=True, capture_output=True, text=True
        ).stdout
    lines = [line.split() for line in shown.splitlines() if "lladdr" in line and not line.startswith("fe80:")]
    assert ours == sorted((words[0], words[2], words[4]) for words in lines)
    assert len(ours) == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", [make_plan("direct_v4_net16"), make_plan("direct_v6")], ids=["v4-65533", "v6-65536"]
)
def test_all_hosts_of_a_full_plan_live_beside_the_dut(plan: AddressPlan) -> None:
    """SEED-06, SEED-11, SEED-15, SEED-20, SEED-21, R5180-07: every one resolved by ARP or ND, none static;
    frames reach them, also after all entries went stale at once."""
    with rig(plan) as (lab, session, opened):
        result = learn(session, rounds=20)
        assert result.is_complete, result
        neighbors = answered(lab)
        assert {(n.side, n.address, n.mac) for n in neighbors} == expected(plan, opened)
        assert "permanent" not in {n.state for n in neighbors}
        assert lab.neighbor_facts()["limits"]["gc_thresh1"] >= len(neighbors)
        _reaches(run_trial(session, rate_fps=QUIET_FPS, duration_s=2), 1 - NOISE)
        probe_soon(lab, plan)
        make_stale(lab)
        document = run_trial(session, trial=2, rate_fps=QUIET_FPS, duration_s=5)
        _reaches(document, 1 - ALL_AT_ONCE)
        assert all(
            d["neighbor_frames"] > 0.2 * plan.left.dut_neighbors for d in document["directions"].values()
        )
        assert {(n.side, n.address, n.mac) for n in answered(lab)} == expected(plan, opened)
        _reaches(run_trial(session, trial=3, rate_fps=QUIET_FPS, duration_s=1), 1 - NOISE)


def _reaches(document: Document, share: float) -> None:
    for direction in document["directions"].values():
        assert direction["received_frames"] >= share * direction["offered_frames"], direction["lost_by_tenth"]
