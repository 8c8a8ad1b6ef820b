# SPDX-License-Identifier: Apache-2.0
"""Rig: what the guardian of a lab does when its run was killed: wait for the engine to end, and give the
lab back as it was found."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from evenhand.base.errors import EvenhandError
from evenhand.lab.borrow import give_back, lab_before
from evenhand.lab.labs import lab_status
from evenhand.lab.vm import VmLab
from evenhand.rig.lab_rig import make_lab_setup
from evenhand.rig.over_ssh import put_back

PATIENCE_S = 60.0
"""Seconds to wait until the engine of the killed run has closed its ports."""
LOOK_AGAIN_S = 0.5


def take_over(name: str, run: str) -> None:
    """Give the lab back. What fails is tried again for a minute; then what the lab was stays on disk for
    whoever borrows it next."""
    # Handlers, and not SIG_IGN, which a machine that is started here would inherit.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, frame: None)
    with suppress(OSError):
        os.nice(5)
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            _put_machine_back(name, run)
            give_back(name)
            return
        except EvenhandError:
            if time.monotonic() > give_up:
                return
            time.sleep(LOOK_AGAIN_S)


def _put_machine_back(name: str, run: str) -> None:
    """A machine that was up before goes on, without what the run has set up in it."""
    now = lab_status(name)
    if not isinstance(now, VmLab) or not now.is_running or lab_before(name) is None:
        return
    dut = make_lab_setup(now).reachable
    if dut is not None:
        # The run's file is no longer open: what is done to the DUT now is kept nowhere.
        put_back(dut, run=run, on_change=lambda change: None, on_note=lambda text: None)
