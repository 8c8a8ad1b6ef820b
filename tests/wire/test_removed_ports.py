# SPDX-License-Identifier: Apache-2.0
"""An interface of the kernel is deleted under an open port: nothing hangs, and the DUT is charged with
nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.wire.veth_cable import ip, veth_cable
from tests.wire.wire_session import engine, open_ports, run_trial, versions

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
DEVICES = {
    "net_af_packet": "net_af_packet{},iface={}",
    "net_af_xdp": "net_af_xdp{},iface={},start_queue=0,queue_count=1,force_copy=1,busy_budget=0",
}
LONG_S = 120


@pytest.mark.parametrize("driver", DEVICES)
@versions(proved="v6", plans=(gateway_v4(), gateway_v6()))
def test_an_interface_that_is_deleted_ends_the_trial_at_once(plan: AddressPlan, driver: str) -> None:
    """Also if another one of the same name is there at once, which the port does not stand on: then the next
    trial is refused as well, until the ports are opened anew."""

    def open_both(session: EngineSession) -> None:
        open_ports(session, plan, *(DEVICES[driver].format(n, side) for n, side in enumerate(SIDES)))

    with veth_cable() as namespace:
        command: list[str | Path] = ["ip", "netns", "exec", namespace, find_engine()]
        with engine(command) as session:
            open_both(session)
            deleted_at = 0.0

            def on_event(event: dict[str, Any]) -> None:
                nonlocal deleted_at
                if event["phase"] == "sending" and event["sent_frames"] and not deleted_at:
                    ip("-n", namespace, "link", "del", "left")  # and its other end
                    ip("-n", namespace, "link", "add", "left", "type", "veth", "peer", "name", "right")
                    deleted_at = time.monotonic()

            document = run_trial(session, rate_fps=5_000, duration_s=LONG_S, on_event=on_event)
            assert time.monotonic() - deleted_at < LONG_S / 4
            codes = [reason["code"] for reason in document["reasons"]]
            assert (document["verdict"], codes.count("port_removed")) == ("INVALID", 2), document["reasons"]
            assert not {"stopped", "link", "loss"} & set(codes)
            assert all(document["ports"][side]["after"]["is_removed"] for side in SIDES)
            for request in ("trial", "learn", "resolve"):
                arguments: dict[str, Any] = {}
                if request == "trial":
                    arguments = {"trial": 2, "rate_fps": 1000, "duration_s": 0.1}
                with raises("engine.no-device", match=f"{driver}0 was removed") as error:
                    session.request(request, **arguments)
                assert error.value.where == "left.device"
            session.request("close")
            for side in SIDES:
                ip("-n", namespace, "link", "set", side, "addrgenmode", "none", "up")
            open_both(session)
            again = run_trial(session, trial=3, rate_fps=1_000, duration_s=0.2)
            assert "port_removed" not in {reason["code"] for reason in again["reasons"]}
            assert all(direction["received_frames"] for direction in again["directions"].values())
