# SPDX-License-Identifier: Apache-2.0
"""Host: what is known of a tester's port once it is open, from the engine and from the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import EngineError
from evenhand.plan import SideName
from evenhand.rig.host.reading import read_number
from evenhand.rig.lab.flow_hash import read_flow_hash
from evenhand.rig.testbed import interface_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceFacts:
    """What the kernel reports of an interface of its own."""

    mtu: int | None = None
    flow_hash: Mapping[str, str | None] | None = None
    """Letters of `ethtool -N` for udp4 and udp6; see `read_flow_hash`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """One open port."""

    side: SideName
    device: str
    driver: str
    mac: str
    link_up: bool
    line_rate_bps: float | None
    mtu: int | None
    """None if it is not reported: the port is not an interface of the kernel. A frame has 18 octets more than
    the packet, which the MTU limits (R8219-20)."""
    flow_hash: Mapping[str, str | None] | None
    receive_queues: int
    transmit_queues: int
    receive_ring_frames: int
    transmit_ring_frames: int
    hardware_stamps: str
    """Whether it stamps frames when they arrive: `none`, or `unused`: it could, but all stamps are taken by
    software."""
    flow_control: str
    """Ethernet PAUSE: `off`, `on` (it cannot be switched off), `none` (a software port), or `unknown` (the
    driver does not say)."""
    receive_count: str
    """`exact`: the port counts each frame that comes in, so that its count is held against what the receivers
    saw; else `unknown`."""
    control_queue: str
    """`own`: answers to the DUT leave by a transmit queue of their own; `shared`: by the first one of the
    test frames."""
    fast_free: bool
    """Whether the driver gives sent buffers back without asking each where it belongs."""
    numa_node: int | None
    """NUMA node of a NIC; None if it is not known, or if the port is software."""
    far_cpus: tuple[int, ...]
    """Those of the tester's CPUs that send or receive on it and are of another NUMA node."""
    dut_mac: str | None
    """None if the DUT did not answer."""
    is_dut_mac_static: bool

    def to_document(self) -> dict[str, Any]:
        """For `--json` (contract/check.schema.json)."""
        document = asdict(self)
        del document["side"]
        document["far_cpus"] = list(self.far_cpus)
        return document


def read_interface(device: str, root: Path = Path("/")) -> InterfaceFacts:
    """Facts of the kernel's interface that this device uses; all None if it uses none. Reads the namespace of
    the calling thread."""
    name = interface_of(device)
    if name is None:
        return InterfaceFacts()
    try:
        flow_hash = read_flow_hash(name)
    except OSError:
        flow_hash = None
    return InterfaceFacts(mtu=read_number(root / "sys/class/net" / name / "mtu"), flow_hash=flow_hash)


def port_facts(
    side: SideName,
    *,
    opened: Mapping[str, Any],
    resolved: Mapping[str, Any],
    workers: Sequence[Mapping[str, Any]],
    interface: InterfaceFacts,
) -> PortFacts:
    """Facts of the ports from the replies to `open` and `resolve` (empty if the DUT did not answer), and the
    workers that were asked for. EngineError if the replies have another shape."""
    try:
        port, dut = opened[side], resolved.get(side, {})
        rate = port["line_rate_bps"]
        return PortFacts(
            side=side,
            device=str(port["device"]),
            driver=str(port["driver"]),
            mac=str(port["mac"]),
            link_up=bool(port["link_up"]),
            line_rate_bps=None if rate is None else float(rate),
            mtu=interface.mtu,
            flow_hash=interface.flow_hash,
            receive_queues=sum(
                receiver["side"] == side for worker in workers for receiver in worker.get("receivers", ())
            ),
            transmit_queues=sum(
                sender["side"] == side for worker in workers for sender in worker.get("senders", ())
            ),
            receive_ring_frames=int(port["receive_ring_frames"]),
            transmit_ring_frames=int(port["transmit_ring_frames"]),
            hardware_stamps=str(port["hardware_stamps"]),
            flow_control=str(port["flow_control"]),
            receive_count=str(port.get("receive_count", "unknown")),
            control_queue=str(port.get("control_queue", "shared")),
            fast_free=bool(port.get("fast_free", False)),
            numa_node=None if (node := port.get("numa_node")) is None else int(node),
            far_cpus=tuple(int(cpu) for cpu in port.get("far_cpus", ())),
            dut_mac=dut.get("dut_mac"),
            is_dut_mac_static=bool(dut.get("static", False)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(
            f"the engine's list of open ports violates the contract: {error!r}",
            code="rig.contract-violated",
            where="open response",
        ) from error
