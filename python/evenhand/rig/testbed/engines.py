# SPDX-License-Identifier: Apache-2.0
"""Testbed: whether several engines go together as one tester."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from evenhand.base.validation.checked_file import UnfitError
from evenhand.plan import SideName
from evenhand.rig.testbed.device import read_device
from evenhand.rig.testbed.drivers import PCI
from evenhand.rig.testbed.resources import resources_of
from evenhand.rig.testbed.vlan import tag_octets


class EnginePort(Protocol):
    """What of a `TestbedPort` is looked at."""

    @property
    def device(self) -> str: ...

    @property
    def vlan(self) -> tuple[int, ...]: ...


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
    def streams(self) -> int: ...

    @property
    def ports(self) -> Mapping[SideName, EnginePort]: ...


def check_engines(engines: Sequence[EngineTable]) -> None:
    """Check the engines by what the file says of them; nothing is looked at.

    Raises:
        UnfitError: Two have one name, one port, or, on one host, one CPU; or their shares would differ.
    """
    _check_names(engines)
    _check_ports(engines)
    _check_cpus(engines)
    first = engines[0] if engines else None
    for engine in engines:
        assert first is not None
        if (engine.streams, engine.receive_queues) != (first.streams, first.receive_queues):
            raise UnfitError(
                f"engine {engine.name} has {engine.streams} streams and {engine.receive_queues} receive"
                f" queues a side, engine {first.name} {first.streams} and {first.receive_queues}:"
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


def _check_names(engines: Sequence[EngineTable]) -> None:
    names: set[str] = set()
    for engine in engines:
        if engine.name in names:
            raise UnfitError(f"two engines are named {engine.name!r}", code="rig.engine-twice")
        names.add(engine.name)


def _check_ports(engines: Sequence[EngineTable]) -> None:
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
                user = f"engine {engine.name}, {side}"
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
