# SPDX-License-Identifier: Apache-2.0
"""A NAT that nobody here wrote: the kernel's own as the DUT of a Linux lab, and a NAT64 of TAYGA and it.
Skipped where nft, or TAYGA, is not installed."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyroute2
import pytest

from evenhand.base.errors import HostError
from evenhand.dut.nat import TIMEOUT_S
from evenhand.lab import LinuxLab, linux_lab
from evenhand.lab.namespaces import run_inside
from evenhand.lab.nft import check_nft
from evenhand.lab.translator import check_translator
from evenhand.plan import AddressPlan, make_plan
from evenhand.plan.ranges import UdpRange
from evenhand.rig.lab_rig import LabSetup, make_lab_setup
from evenhand.trial import EngineSession, find_engine
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    Document,
    dut_of,
    engine,
    open_to_dut,
    run_trial,
    until,
    valid_trial,
)

pytestmark = [pytest.mark.wire, pytest.mark.root]
LAB = "nattest"
LOAD_FPS = 2_000
CONNECTIONS = 4_000
ALL_TUPLES = 2 * 1_000 * 3 * 2
"""2 hosts x 1,000 ports x 3 hosts x 2 ports."""
FEW = 10
"""Frames of the DUT's neighbour discovery: no error messages are among them."""


@dataclass(frozen=True)
class NatRig:
    """A tester on a lab that is a NAT."""

    plan: AddressPlan
    lab: LinuxLab
    setup: LabSetup
    session: EngineSession

    def establish(self, count: int, *, trial: int = 1) -> Document:
        """Until each connection is known, from an empty table."""
        for attempt in range(10):
            self.setup.empty_connections()
            document = run_trial(
                self.session,
                trial=trial + attempt,
                rate_fps=LOAD_FPS,
                duration_s=count / LOAD_FPS,
                directions=["forward"],
                connections={"use": "establish", "count": count},
            )
            if document["directions"]["forward"]["connections"]["learnt"] == count:
                return document
        raise AssertionError(document)

    def validate(self, count: int, *, trial: int) -> Document:
        """One frame from outside for each connection."""
        return run_trial(
            self.session,
            trial=trial,
            rate_fps=LOAD_FPS,
            duration_s=count / LOAD_FPS,
            directions=["reverse"],
            connections={"use": "each_once"},
        )


def kinds(*, proved: Sequence[str]) -> pytest.MarkDecorator:
    """Kinds of the kernel's NAT. Those of `make prove` are, in `make test-all`, of the reference router
    (test_connections.py), or have here what is theirs asked by another test."""
    return pytest.mark.parametrize(
        "rig",
        [
            pytest.param(kind, marks=pytest.mark.slow if kind in proved else kept)
            for kind, kept in (
                ("nat44", ()),
                ("nat44 random", pytest.mark.thorough),
                ("nat44_masquerade", pytest.mark.thorough),
                ("nat66_masquerade", pytest.mark.thorough),
                ("nat64_masquerade", pytest.mark.thorough),
                ("nat66", pytest.mark.thorough),
                ("nat64", pytest.mark.thorough),
                ("nat64@2001:db8::/40", pytest.mark.thorough),
            )
        ],
        indirect=True,
    )


@pytest.fixture
def rig(request: pytest.FixtureRequest) -> Iterator[NatRig]:
    name, _, ports = request.param.partition(" ")
    plan = make_plan(
        name,
        (2, 3),
        source_ports=UdpRange(first=10_000, last=10_999),
        destination_ports=UdpRange(first=1, last=2),
    )
    try:
        check_nft("the NAT")
        if name.startswith("nat64"):
            check_translator()
    except HostError as error:
        pytest.skip(str(error))
    with (
        linux_lab(plan, name=LAB, nat_ports=ports or "kept") as lab,
        engine(lab.engine_command(find_engine())) as session,
    ):
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        yield NatRig(plan=plan, lab=lab, setup=make_lab_setup(lab, plan), session=session)


def connections_with_the_hosts_port(rig: NatRig) -> int:
    """How many of those are in the kernel's table."""
    family = socket.AF_INET6 if rig.plan.right.ip_version == 6 else socket.AF_INET

    def count() -> int:
        with pyroute2.NFCTSocket(nfgen_family=family) as table:
            return sum(_port(entry, "ORIG", "SRC") == _port(entry, "REPLY", "DST") for entry in table.dump())

    return run_inside(rig.lab.dut_namespace, count)


def _port(entry: Any, tuple_of: str, end: str) -> int:
    protocol = entry.get_attr(f"CTA_TUPLE_{tuple_of}").get_attr("CTA_TUPLE_PROTO")
    return int(protocol.get_attr(f"CTA_PROTO_{end}_PORT"))


UNHARMED = {"no_checksum": 0, "traffic_class": 0, "address_or_port": 0}


@kinds(proved=["nat66"])
def test_connections_are_opened_used_and_forgotten(rig: NatRig) -> None:
    """R9693-01, R9693-02, R9693-07, R9693-11: each is learnt as the NAT has translated it, and the tester's
    answers find their way back for as long as the table has them."""
    opened = rig.establish(CONNECTIONS)["directions"]["forward"]["connections"]
    assert opened == {"opened": CONNECTIONS, "learnt": CONNECTIONS, "shared_tuples": 0}
    kept = connections_with_the_hosts_port(rig)
    assert rig.plan.nat is not None
    if rig.plan.nat.is_own_address:
        # Hosts behind one address cannot all keep theirs, and the kernel gives a host's port that it had to
        # change the same other port towards everybody.
        assert CONNECTIONS / 2 < kept < CONNECTIONS
    elif rig.lab.nat_ports == "kept":
        assert kept == CONNECTIONS
    else:
        assert kept < 0.01 * CONNECTIONS
    table = rig.lab.connection_facts()
    assert table["counted"]["connections"] == CONNECTIONS
    assert table["counted"]["insert_failed"] == table["counted"]["early_drop"] == 0

    def all_return(document: Document) -> bool:
        return bool(document["directions"]["reverse"]["received_frames"] == CONNECTIONS)

    numbers = iter(range(20, 20 + MOST_ATTEMPTS))
    validated = until(all_return, lambda: rig.validate(CONNECTIONS, trial=next(numbers)))
    assert validated["directions"]["reverse"]["mistranslated_frames"] == UNHARMED
    used = valid_trial(
        rig.session, trial=60, rate_fps=LOAD_FPS, duration_s=1, connections={"use": "established"}
    )
    for direction in used["directions"].values():
        assert direction["received_frames"] > 0.9 * LOAD_FPS
        assert direction["mistranslated_frames"] == UNHARMED
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0
    emptied = rig.setup.empty_connections()
    assert emptied.connections == CONNECTIONS
    assert 0 < emptied.seconds < CONNECTIONS / LOAD_FPS
    lost = rig.validate(CONNECTIONS, trial=100)
    assert lost["directions"]["reverse"]["received_frames"] == 0
    # Frames to the DUT's own address that belong to no connection are for itself, and its table notes them.
    assert rig.setup.empty_connections().connections == (CONNECTIONS if rig.plan.nat.is_own_address else 0)
    assert rig.setup.connection_timeout_s == TIMEOUT_S
    left = lost["ports"]["left"]
    assert left["after"]["received_frames"] - left["before"]["received_frames"] <= FEW


@pytest.mark.thorough
@kinds(proved=["nat44", "nat66", "nat64@2001:db8::/40"])
def test_every_four_tuple_of_a_plan_has_a_connection(rig: NatRig) -> None:
    """R9693-05: the NAT has a port for each of them, whichever host they are of."""
    opened = rig.establish(rig.plan.four_tuples)["directions"]["forward"]["connections"]
    assert opened == {"opened": ALL_TUPLES, "learnt": ALL_TUPLES, "shared_tuples": 0}
    assert rig.setup.empty_connections().connections == ALL_TUPLES
