# SPDX-License-Identifier: Apache-2.0
"""Rig: a testbed file, whose DUT is the user's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import temporary_folder
from evenhand.plan import AddressPlan, own_title
from evenhand.reference import ReferenceDut
from evenhand.rig.rig import PlanDefaults, Rig, RigFacts
from evenhand.rig.setup import Setup
from evenhand.testbed import (
    TestbedEngine,
    TestbedLimits,
    Tester,
    check_device,
    make_testbed,
    read_host_network,
    read_testbed,
)


@dataclass(frozen=True, slots=True)
class TestbedRig(Rig):
    """The file of this path."""

    __test__ = False  # no test, whatever its name
    is_file: ClassVar[bool] = True

    @classmethod
    def of(cls, text: str) -> TestbedRig | None:
        """Whatever is nothing else."""
        return cls(text)

    def facts(self, reference: ReferenceDut | None = None) -> RigFacts:
        try:
            setup = Setup(name=self.text, testbed=read_testbed(Path(self.text)))
        except (RequestError, HostError):
            return RigFacts()  # reported when the file is read for its ports
        dut = setup.testbed.dut
        plan = PlanDefaults()
        if dut.plan is not None:
            plan = PlanDefaults(plan=own_title(dut.plan), hosts=dut.hosts, networks=dut.networks)
        return RigFacts(
            plan=plan,
            sets_up_its_dut=setup.reachable is not None,
            connection_timeout_s=setup.expected_timeout_s,
        )

    def read(self, plan: AddressPlan | None = None) -> Setup:
        setup = Setup(name=self.text, testbed=read_testbed(Path(self.text)))
        if plan is not None:
            setup.check_plan(plan)
        network = read_host_network()
        testbed = setup.testbed
        places = [(f"{side}.device", port) for side, port in testbed.ports.items()]
        if testbed.engine:
            places = [
                (f"engine {engine.name}, {side}.device", port)
                for engine in testbed.engine
                if engine.ssh is None
                for side, port in engine.ports.items()
            ]
        for place, port in places:
            check_device(port.device, network, where=f"{self.text}: {place}")
        return setup

    def _is_there(self) -> bool:
        return Path(self.text).exists()


MEMIF_BUFFER_OCTETS = 2048
"""Octets of a buffer without `bsize`."""
DUT_MACS = {"left": "02:00:00:00:d0:01", "right": "02:00:00:00:d0:02"}


@contextmanager
def own_loop_setup(
    tester: Tester,
    engines: Sequence[TestbedEngine],
    *,
    limits: TestbedLimits | None = None,
    largest_octets: int = 0,
) -> Iterator[Setup]:
    """The engines, or where there are none the tester, until the block ends. See `make_own_loop_setup`."""
    if engines:
        yield make_own_loop_engines(engines, limits=limits, largest_octets=largest_octets)
        return
    with temporary_folder() as folder:
        yield make_own_loop_setup(tester, folder, limits=limits, largest_octets=largest_octets)


def make_own_loop_setup(
    tester: Tester, folder: Path, *, limits: TestbedLimits | None = None, largest_octets: int = 0
) -> Setup:
    """The tester's two ports joined to each other, on the CPUs of this tester.

    Args:
        folder: For the cable's socket; its path must be short.
        limits: Limits of the testbed that the tester is in.
        largest_octets: Largest size of the frames that are to be sent; the cable's buffers must hold one.
    """
    ports, users = _joined(tester.cpus, f"{folder / 'cable'},socket-abstract=no", largest_octets)
    return _setup("own loop", {**ports, "tester": users}, limits)


def make_own_loop_engines(
    engines: Sequence[TestbedEngine], *, limits: TestbedLimits | None = None, largest_octets: int = 0
) -> Setup:
    """The same of several engines, on their hosts and CPUs, with a cable each.

    The cables' sockets have a name but no file, so that they need no folder on a host elsewhere.
    """
    tables: list[dict[str, Any]] = []
    for engine in engines:
        socket = f"evenhand-{secrets.token_hex(8)},socket-abstract=yes"
        ports, users = _joined(engine.cpus, socket, largest_octets)
        where = {} if engine.ssh is None else {"ssh": engine.ssh}
        tables.append({"name": engine.name, **where, **users, **ports})
    return _setup("engines in their own loop", {"engine": tables}, limits)


def _joined(cpus: tuple[int, ...], socket: str, largest_octets: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tables of both ports, and what of a tester's table is about its CPUs.

    Both ends have as many queues as streams: what a stream sends on a ring without a queue at the other end
    would never arrive.
    """
    queues = max(len(cpus) // 4, 1)
    buffers = f",bsize={largest_octets}" if largest_octets > MEMIF_BUFFER_OCTETS else ""
    cable = f"id=0,socket={socket},rsize=11{buffers}"
    ends = {"left": f"net_memif0,role=server,{cable}", "right": f"net_memif1,role=client,{cable}"}
    ports = {side: {"device": end, "dut_mac": DUT_MACS[side]} for side, end in ends.items()}
    used = cpus if len(cpus) < 4 else cpus[: 4 * queues]
    return ports, {"cpus": list(used), "receive_queues": queues}


def _setup(name: str, tables: dict[str, Any], limits: TestbedLimits | None) -> Setup:
    testbed = make_testbed(
        {
            "isolated_test_environment": True,
            "isolated_networks": ["0.0.0.0/0", "::/0"],  # no frame leaves this machine
            **tables,
        },
        where="own loop",
    )
    return Setup(
        name=name, testbed=testbed if limits is None else testbed.model_copy(update={"limits": limits})
    )
