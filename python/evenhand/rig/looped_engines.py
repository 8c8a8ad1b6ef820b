# SPDX-License-Identifier: Apache-2.0
"""Several engines on their hosts, but each with its two ports joined to each other: what the hosts let them
keep."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from evenhand.rig.setup import MEMIF_BUFFER_OCTETS, Setup
from evenhand.rig.testbed import TestbedEngine, TestbedLimits, make_testbed

DUT_MACS = {"left": "02:00:00:00:d0:01", "right": "02:00:00:00:d0:02"}


def make_looped_engines(
    engines: Sequence[TestbedEngine], *, limits: TestbedLimits | None = None, largest_octets: int = 0
) -> Setup:
    """The engines, on their hosts and CPUs, with a memif cable each. No frame leaves their processes
    (SEED-80).

    The cables' sockets have a name but no file, so that they need no folder on a host elsewhere.

    Args:
        limits: Of the testbed that the engines stand in.
        largest_octets: Of the frames that are to be sent; the cables' buffers must hold one.
    """
    buffers = f",bsize={largest_octets}" if largest_octets > MEMIF_BUFFER_OCTETS else ""
    tables: list[dict[str, Any]] = []
    for engine in engines:
        queues = max(len(engine.cpus) // 4, 1)
        cpus = engine.cpus if len(engine.cpus) < 4 else engine.cpus[: 4 * queues]
        cable = f"id=0,socket=evenhand-{secrets.token_hex(8)},socket-abstract=yes,rsize=11{buffers}"
        ends = {"left": f"net_memif0,role=server,{cable}", "right": f"net_memif1,role=client,{cable}"}
        tables.append(
            {
                "name": engine.name,
                **({} if engine.ssh is None else {"ssh": engine.ssh}),
                "cpus": list(cpus),
                "receive_queues": queues,
                **{side: {"device": end, "dut_mac": DUT_MACS[side]} for side, end in ends.items()},
            }
        )
    document = {"isolated_test_environment": True, "engine": tables}
    testbed = make_testbed(document, where="looped ports")
    return Setup(
        name="looped engines",
        testbed=testbed if limits is None else testbed.model_copy(update={"limits": limits}),
    )
