# SPDX-License-Identifier: Apache-2.0
"""A NIC that is taken out of its slot while the tester sends: the trial ends at once and is INVALID, and the
slot is free as soon as the tester has closed the port."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.errors import raises
from tests.nic.nic_machine import UNPLUGGED, Model, NicMachine
from tests.nic.nic_session import RATE_FPS, assert_passes, each_of, open_nics, prepare
from tests.wire.wire_session import run_trial, valid_trial

pytestmark = [pytest.mark.nic]
LONG_S = 120
SOON_S = 60


def wait_for(machine: NicMachine, address: str, *, is_there: bool) -> None:
    give_up = time.monotonic() + SOON_S
    while machine.has(address) != is_there:
        assert time.monotonic() < give_up, address
        time.sleep(0.2)


@pytest.mark.parametrize("model", each_of(UNPLUGGED))
def test_a_nic_that_is_taken_out_ends_the_trial_and_another_one_in_its_place_works(
    machine_with_slots: NicMachine, model: Model
) -> None:
    machine = machine_with_slots
    prepare(machine, model)
    left = model.addresses[0]
    with machine.engine() as session:
        open_nics(session, model.addresses)
        assert_passes(valid_trial(session, rate_fps=RATE_FPS, duration_s=0.5))
        unplugged_at = 0.0

        def on_event(event: dict[str, Any]) -> None:
            nonlocal unplugged_at
            if event.get("phase") == "sending" and not unplugged_at:
                machine.unplug(model, "left")
                unplugged_at = time.monotonic()

        document = run_trial(session, trial=50, rate_fps=RATE_FPS / 4, duration_s=LONG_S, on_event=on_event)
        assert time.monotonic() - unplugged_at < LONG_S / 2
        codes = {reason["code"] for reason in document["reasons"]}
        assert (document["verdict"], "port_removed" in codes) == ("INVALID", True), document["reasons"]
        assert not {"stopped", "link", "counters", "loss"} & codes
        assert [document["ports"][side]["after"]["is_removed"] for side in ("left", "right")] == [True, False]
        with raises("engine.no-device", match=left) as error:
            run_trial(session, trial=51)
        assert error.value.where == "left.device"
        # The kernel waits for the tester.
        assert machine.has(left)
        session.request("close")
        wait_for(machine, left, is_there=False)
        with raises("engine.no-device", match=f"{left}: there is no such"):
            open_nics(session, model.addresses)
        machine.plug(model, "left")
        wait_for(machine, left, is_there=True)
        prepare(machine, model)
        open_nics(session, model.addresses)
        assert_passes(valid_trial(session, trial=52, rate_fps=RATE_FPS, duration_s=0.5))
