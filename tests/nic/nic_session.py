# SPDX-License-Identifier: Apache-2.0
"""An engine inside the virtual machine, on both ends of a cable: how the tests of this rung open it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.plan import SIDES, AddressPlan, gateway_v4
from evenhand.trial import EngineSession
from tests.errors import raises
from tests.nic.nic_machine import Model, NicMachine, offered_models
from tests.wire.wire_session import NOBODY, assert_all_came

Document = dict[str, Any]
RATE_FPS = 2000
HUGEPAGES = 480
MEMORY_MB = 256
JUMBO_MEMORY_MB = 850


def each_of(models: Sequence[Model]) -> list[Any]:
    """For the parameter of a test. Those that this QEMU lacks are skipped, and it says so."""
    offered = offered_models(models)
    return [
        pytest.param(
            model,
            id=model.name,
            marks=() if model in offered else pytest.mark.skip(reason=f"QEMU here has no {model.qemu_name}"),
        )
        for model in models
    ]


def one_worker(queues: int = 1, streams: int = 1) -> list[Document]:
    return [
        {
            "cpu": 1,
            "senders": [{"side": side, "stream": stream} for side in SIDES for stream in range(streams)],
            "receivers": [{"side": side, "queue": queue} for side in SIDES for queue in range(queues)],
        }
    ]


def open_nics(
    session: EngineSession,
    addresses: Sequence[str],
    *,
    plan: AddressPlan | None = None,
    frame_size: int | None = None,
    queues: int = 1,
    streams: int = 1,
    memory_mb: int = MEMORY_MB,
    are_neighbors: bool = False,
) -> Document:
    """Both ends of a cable. `are_neighbors`: each asks for the other's gateway, and so for its MAC; else
    there is nobody to ask."""
    plan = plan or gateway_v4()
    ports: dict[str, Document] = {
        side: {"device": address} for side, address in zip(SIDES, addresses, strict=True)
    }
    contract = plan.to_contract()
    if are_neighbors:
        for side, other in (SIDES, reversed(SIDES)):
            contract[side]["dut_address"] = contract[other]["gateway"]
    else:
        for side, mac in zip(SIDES, NOBODY, strict=True):
            ports[side]["dut_mac"] = mac
    return session.request(
        "open",
        host={"memory_mb": memory_mb, "hugepages": True},
        ports=ports,
        workers=one_worker(queues, streams),
        plan=contract,
        frame_size=frame_size or plan.smallest_frame_size,
        seed=1,
        session=0,
    )


def refusal(machine: NicMachine, addresses: Sequence[str], code: str, **arguments: Any) -> EvenhandError:
    """What an engine of its own says to opening these, an error with this code."""
    with machine.engine() as session, raises(code) as error:
        open_nics(session, addresses, **arguments)
    return error.value


def assert_passes(document: Document, *, is_order_known: bool = True) -> None:
    assert document["verdict"] == "PASS", document["reasons"]
    for direction in document["directions"].values():
        assert_all_came(direction, but=() if is_order_known else ("reordered",))


def link_changes(document: Document) -> dict[str, int]:
    """During a trial, by side."""
    return {
        side: ports["after"]["link_changes"] - ports["before"]["link_changes"]
        for side, ports in document["ports"].items()
    }


def prepare(machine: NicMachine, model: Model) -> None:
    """For whoever runs one test alone."""
    machine.reserve_hugepages(HUGEPAGES)
    # The emulated IOMMU remaps no interrupts.
    machine.run(
        "modprobe vfio_iommu_type1; echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts;"
        " modprobe vfio-pci"
    )
    if {machine.driver_of(address) for address in model.addresses} != {"vfio-pci"}:
        machine.bind(model.addresses)
