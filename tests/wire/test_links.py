# SPDX-License-Identifier: Apache-2.0
"""A link of the tester that is down is no loss of the DUT: the kernel knows, whatever DPDK's driver says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand.lab.namespaces import namespace_path
from evenhand.lab.ports import engine_command_inside
from evenhand.plan import SIDES, AddressPlan, SideName, gateway_v4, gateway_v6
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.wire.veth_cable import ip, veth_cable
from tests.wire.wire_session import NOBODY, engine, one_worker, run_trial, thorough, until, versions

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
DEVICES = {
    "net_af_packet": "net_af_packet{},iface={}",
    "net_af_xdp": "net_af_xdp{},iface={},start_queue=0,queue_count=1,force_copy=1,busy_budget=0",
    "net_pcap": "net_pcap{},iface={}",
}
SOON_S = 0.3


@contextmanager
def interfaces() -> Iterator[str]:
    """`left` and `right` in a namespace, each with an end `left-dut` and `right-dut`."""
    with veth_cable() as namespace:
        ip("-n", namespace, "link", "del", "left")
        for side in SIDES:
            ends = (side, f"{side}-dut")
            ip("-n", namespace, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for end in ends:
                ip("-n", namespace, "link", "set", end, "addrgenmode", "none", "up")
        yield namespace


def open_both(session: EngineSession, plan: AddressPlan, driver: str) -> dict[str, Any]:
    """The ports, whose links may take a moment to come up, and no longer."""
    ports: dict[SideName, dict[str, Any]] = {
        side: {"device": DEVICES[driver].format(number, side), "dut_mac": mac, "link_timeout_s": SOON_S}
        for number, (side, mac) in enumerate(zip(SIDES, NOBODY, strict=True))
    }
    return session.request(
        "open",
        ports=ports,
        workers=one_worker(),
        plan=plan.to_contract(),
        frame_size=plan.smallest_frame_size,
        seed=1,
    )


@pytest.mark.parametrize("driver", ["net_af_xdp", *thorough("net_af_packet", "net_pcap")])
@versions(proved="v6", plans=(gateway_v4(), gateway_v6()))
def test_a_link_that_is_down_is_no_loss(plan: AddressPlan, driver: str) -> None:
    """Before anything is sent an error names the port and says which end is down; during a trial, however
    short, it is INVALID. `link_up` is the kernel's word. A namespace that was entered without its /sys is no
    different."""
    with interfaces() as namespace:
        command: list[str | Path] = ["nsenter", f"--net={namespace_path(namespace)}", find_engine()]
        if driver == "net_af_xdp":  # which wants a /sys of its own
            command = [*engine_command_inside(namespace, find_engine())]

        def switch(interface: str, to: str) -> None:
            ip("-n", namespace, "link", "set", interface, to)

        def flap(event: dict[str, Any]) -> None:
            if event["phase"] == "sending" and not flaps:
                flaps.append(event)
                switch("right-dut", "down")
                switch("right-dut", "up")

        switch("right-dut", "down")
        # Another one each: net_af_xdp does not open an interface again in the same process.
        with engine(command) as session, raises("engine.no-device", match="right has no carrier") as error:
            open_both(session, plan, driver)
        assert error.value.where == "right.device"
        switch("right-dut", "up")
        with engine(command) as session:
            opened = open_both(session, plan, driver)
            assert all(opened[side]["link_up"] for side in SIDES)
            for interface, why in (("right-dut", "right has no carrier"), ("left", "left is switched off")):
                switch(interface, "down")
                with raises("engine.no-device", match=why) as error:
                    run_trial(session, rate_fps=500, duration_s=0.1)
                assert error.value.where == f"{interface.partition('-')[0]}.device"
                switch(interface, "up")
            numbers = iter(range(2, 99))
            quiet = until(
                lambda found: found["verdict"] == "FAIL",
                lambda: run_trial(session, trial=next(numbers), rate_fps=500, duration_s=0.1),
            )
            assert all(quiet["ports"][side]["before"]["link_up"] for side in SIDES)
            flaps: list[dict[str, Any]] = []
            document = run_trial(session, trial=100, rate_fps=500, duration_s=3, on_event=flap)
    assert (document["verdict"], document["reasons"][0]["code"]) == ("INVALID", "link"), document["reasons"]
    port = document["ports"]["right"]
    assert port["after"]["link_changes"] - port["before"]["link_changes"] == 2
