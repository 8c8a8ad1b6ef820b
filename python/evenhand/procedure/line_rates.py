# SPDX-License-Identifier: Apache-2.0
"""Procedure: the line rates of a testbed's ports, for rates in percent of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from evenhand.plan import SIDES, AddressPlan, FrameSize, SideName
from evenhand.procedure.tester import EnginesOf

if TYPE_CHECKING:
    from evenhand.rig import Setup


def line_rates_of(
    setup: Setup, engines: EnginesOf, plan: AddressPlan, frame_size: FrameSize
) -> Mapping[SideName, float | None]:
    """In bit/s by side; None for a port that does not know it. Ports for which the testbed file states none
    are opened, and closed again.

    Raises:
        HostError: A port cannot be opened, or another tester has it.
    """
    stated = setup.testbed.line_rates
    if None not in stated.values():
        return stated
    with ExitStack() as stack:
        locked = stack.enter_context(setup.locked())
        session = engines.start(stack, locked)
        opened = engines.open(session, plan, frame_size=frame_size, seed=1, host_macs="port")
    return {side: opened[side]["line_rate_bps"] for side in SIDES}
