# SPDX-License-Identifier: Apache-2.0
"""Testbed file: the tester's ports, and what it may use of its host; or of several hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, Field, model_validator

from evenhand.base.validation.checked_file import UnfitError
from evenhand.plan import SideName
from evenhand.testbed.device import read_device
from evenhand.testbed.drivers import PCI
from evenhand.testbed.resources import resources_of
from evenhand.testbed.tunnel import Tunnel, tunnel_octets
from evenhand.testbed.values import (
    LARGEST_VLAN,
    MOST_TAGS,
    DeviceName,
    Duration,
    EalArguments,
    LineRate,
    Mac,
    Memory,
    RingFrames,
    SshDestination,
    TomlTable,
    as_vlans,
    tag_octets,
)
from evenhand.testbed.workers import lay_out_workers


class TestbedPort(TomlTable):
    """One port of the tester."""

    device: DeviceName
    mac: Mac | None = None
    """The tester's own; default that of the port."""
    dut_mac: Mac | None = None
    """Static MAC of the DUT; default: found by ARP or ND."""
    line_rate: LineRate | None = None
    """Bits per second, for ports that do not know it. In the file: `"10Gbps"`."""
    receive_ring_frames: RingFrames | None = None
    transmit_ring_frames: RingFrames | None = None
    link_timeout: Annotated[Duration, Field(le=600)] | None = None
    """How long to wait for the link when the port is opened, in seconds; default 30 for a PCI device, else
    10. In the file: `"60s"`."""
    vlan: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LARGEST_VLAN)], ...],
        Field(max_length=MOST_TAGS, strict=False),
        BeforeValidator(as_vlans),
    ] = ()
    """Tags of all frames on this link: `100`, or `[200, 100]` for an outer one of 802.1ad and an inner one of
    802.1Q."""

    tunnel: Tunnel | None = None
    """What the test frames of this side are in. `mac` and `dut_mac` are those of the link."""

    def to_contract(self) -> dict[str, Any]:
        port = {
            "device": self.device,
            "mac": self.mac,
            "dut_mac": self.dut_mac,
            "line_rate_bps": self.line_rate,
            "receive_ring_frames": self.receive_ring_frames,
            "transmit_ring_frames": self.transmit_ring_frames,
            "vlan": list(self.vlan) or None,
            "tunnel": None if self.tunnel is None else self.tunnel.to_contract(),
            "link_timeout_s": self.link_timeout,
        }
        return {key: value for key, value in port.items() if value is not None}


class Tester(TomlTable):
    """What the tester may use of its host."""

    cpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, strict=False)]
    """Each gets one busy thread. Keep them free of other work."""
    receive_queues: Annotated[int, Field(ge=1, le=64)] = 1
    """Receive queues of each side. With more than two CPUs, each of several queues has its own, and the port
    spreads the frames over them."""
    memory: Memory | None = None
    """Mebibytes; default: what the buffers take, with hugepages 512. In the file: `"512MB"`."""
    hugepages: bool = False
    extra_eal_arguments: EalArguments = ()
    """Options of DPDK that are allowed (eal_arguments.py)."""

    @model_validator(mode="after")
    def _cpus_differ(self) -> Tester:
        if len(set(self.cpus)) != len(self.cpus):
            raise UnfitError(f"cpus {list(self.cpus)} names a CPU twice", code="rig.cpu-twice")
        lay_out_workers(self.cpus, self.receive_queues)
        return self

    def workers(self, *, one_armed: bool) -> list[dict[str, Any]]:
        """The contract's `workers`."""
        return lay_out_workers(self.cpus, self.receive_queues, one_armed=one_armed)

    def streams(self, *, one_armed: bool) -> int:
        """Streams of each side."""
        return sum(
            len([s for s in worker.get("senders", ()) if s["side"] == "left"])
            for worker in self.workers(one_armed=one_armed)
        )


class TestbedEngine(Tester):
    """One of several engines that are one tester: its host, what it may use there, and both ends of its own
    port pair."""

    __test__ = False  # no test, whatever its name

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    ssh: SshDestination | None = None
    """Where it runs: `ssh SSH evenhand-engine`. None: on this machine."""
    left: TestbedPort
    right: TestbedPort

    @property
    def ports(self) -> dict[SideName, TestbedPort]:
        return {"left": self.left, "right": self.right}


class EnginePort(Protocol):
    """What of a `TestbedPort` is looked at."""

    @property
    def device(self) -> str: ...

    @property
    def vlan(self) -> tuple[int, ...]: ...

    @property
    def tunnel(self) -> Tunnel | None: ...


class EngineTable(Protocol):
    """What of a `TestbedEngine` is looked at."""

    @property
    def name(self) -> str: ...

    @property
    def ssh(self) -> str | None: ...

    @property
    def cpus(self) -> tuple[int, ...]: ...

    @property
    def receive_queues(self) -> int: ...

    @property
    def ports(self) -> Mapping[SideName, EnginePort]: ...

    def streams(self, *, one_armed: bool) -> int: ...


def check_engines(engines: Sequence[EngineTable], *, one_armed: bool = False) -> None:
    """Check the engines by what the file says of them; nothing is looked at.

    Args:
        one_armed: Both sides of each are on one port.

    Raises:
        UnfitError: Two have one name, one port, or, on one host, one CPU; or their shares would differ.
    """
    _check_names(engines)
    _check_ports(engines, one_armed=one_armed)
    _check_cpus(engines)
    for engine in engines:
        first = engines[0]
        streams, of_first = (each.streams(one_armed=one_armed) for each in (engine, first))
        if (streams, engine.receive_queues) != (of_first, first.receive_queues):
            raise UnfitError(
                f"engine {engine.name} has {streams} streams and {engine.receive_queues} receive"
                f" queues a side, engine {first.name} {of_first} and {first.receive_queues}:"
                " each engine must have the same share",
                code="rig.engines-differ",
            )
        if tag_octets({side: port.vlan for side, port in engine.ports.items()}) != tag_octets(
            {side: port.vlan for side, port in first.ports.items()}
        ):
            raise UnfitError(
                f"engine {engine.name} has another number of VLAN tags than engine {first.name}: frames would"
                " differ in size",
                code="rig.engines-differ",
            )
        if tunnel_octets(tunnels_of(engine.ports)) != tunnel_octets(tunnels_of(first.ports)):
            raise UnfitError(
                f"engine {engine.name} has other tunnels than engine {first.name}: frames would differ in"
                " size",
                code="rig.engines-differ",
            )


def check_one_arm(left: TestbedPort, right: TestbedPort, *, of: str) -> None:
    """UnfitError unless both sides say the same of one port.

    Args:
        of: How its message begins: with which of several engines has it.
    """
    names = [read_device(port.device).name for port in (left, right)]
    if names[0] != names[1]:
        raise UnfitError(
            f"{of}one_armed, but left and right are two devices, {names[0]!r} and {names[1]!r}: name the same"
            " for both, or leave one_armed out",
            code="rig.one-armed",
        )
    tunnels = [port.tunnel for port in (left, right) if port.tunnel is not None]
    if left.vlan == right.vlan and len({tunnel.arriving for tunnel in tunnels}) < len(tunnels):
        raise UnfitError(
            f"{of}one_armed, and the frames of both sides arrive in one tunnel, {tunnels[0].words}: give each"
            " side a VNI, labels or ends of its own, or a VLAN",
            code="rig.one-armed",
        )
    for key in ("device", "line_rate", "receive_ring_frames", "transmit_ring_frames", "link_timeout"):
        if getattr(left, key) != getattr(right, key):
            raise UnfitError(
                f"{of}one_armed, but left and right have another {key}: they are one port",
                code="rig.one-armed",
            )


def tunnels_of(ports: Mapping[SideName, EnginePort]) -> dict[SideName, Tunnel]:
    """Those of the sides that have one."""
    return {side: port.tunnel for side, port in ports.items() if port.tunnel is not None}


def _check_names(engines: Sequence[EngineTable]) -> None:
    names: set[str] = set()
    for engine in engines:
        if engine.name in names:
            raise UnfitError(f"two engines are named {engine.name!r}", code="rig.engine-twice")
        names.add(engine.name)


def _check_ports(engines: Sequence[EngineTable], *, one_armed: bool) -> None:
    """A memif socket with another role or id is another port; elsewhere nothing but names is known."""
    users: dict[tuple[str | None, str], str] = {}
    for engine in engines:
        for side, port in engine.ports.items():
            if engine.ssh is None:
                keys = {resource.key: resource.label for resource in resources_of(port.device)}
            else:
                device = read_device(port.device)
                keys = {device.name: device.name} if device.driver == PCI else {port.device: port.device}
            for key, label in keys.items():
                user = f"engine {engine.name}{'' if one_armed else f', {side}'}"
                other = users.setdefault((engine.ssh, key), user)
                if other != user:
                    raise UnfitError(
                        f"{other} and {user} both use {label}", code="rig.ports-share-a-resource"
                    )


def _check_cpus(engines: Sequence[EngineTable]) -> None:
    users: dict[tuple[str | None, int], str] = {}
    for engine in engines:
        for cpu in engine.cpus:
            other = users.setdefault((engine.ssh, cpu), engine.name)
            if other != engine.name:
                raise UnfitError(
                    f"engines {other} and {engine.name} both use CPU {cpu}", code="rig.engines-share-a-cpu"
                )
