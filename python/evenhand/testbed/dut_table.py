# SPDX-License-Identifier: Apache-2.0
"""Testbed file: what is known of the DUT."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import Field, model_validator

from evenhand.base.validation.checked_file import UnfitError, refusing
from evenhand.plan import SideCounts, is_plan_file, make_plan
from evenhand.testbed.places import InterfacePair, by_place
from evenhand.testbed.systems import DutSystem
from evenhand.testbed.values import (
    COUNT_PAIR,
    Duration,
    DutInterfaces,
    Fact,
    PlanName,
    SshDestination,
    TomlTable,
)


class DutFacts(TomlTable):
    """What a report says of the DUT, in the user's words; nothing is read from it, and no verdict uses it
    (SEED-07, SEED-81, SEED-84)."""

    machine: Fact | None = None
    """Maker and model."""
    system: Fact | None = None
    """Operating system and version."""
    kernel: Fact | None = None
    cpu_model: Fact | None = None
    sockets: Fact | None = None
    cores: Fact | None = None
    """Cores that forward; and how many there are, if that is not the same."""
    clock: Fact | None = None
    """Fixed at what, or free."""
    turbo: Fact | None = None
    hyper_threading: Fact | None = None
    memory_size: Fact | None = None
    nic: Fact | None = None
    driver: Fact | None = None
    kernel_parameters: Fact | None = None
    """Limits such as maxcpus."""
    flow_hash: Fact | None = None
    """Fields that the NICs hash: type 1, type 2, symmetric; as read back (RSS-02, RSS-05)."""
    policing: Fact | None = None
    """What of the DUT may police the traffic, and is on: a firewall's state table, storm control, neighbour
    rate limits (SEED-81)."""

    def stated(self) -> dict[str, str]:
        """What is known, in order."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    def missing(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is None]


class TestbedDut(TomlTable):
    """What is known of the DUT before it is tested. Nothing here says how it works (SEED-07).

    CPUs are for a DUT on this machine, so that the host's doings can be distinguished from its own.
    """

    plan: PlanName | None = None
    """The address plan that it is set up for, or two, `gateway_v4+gateway_v6`; None if that is not known
    here."""
    hosts: Annotated[SideCounts, COUNT_PAIR] | None = None
    """Hosts of this plan, left and right, where a command line names no others. None: the plan's maximum."""
    networks: Annotated[SideCounts, COUNT_PAIR] | None = None
    """The same of its networks; the DUT knows no more of them."""
    cpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)] = ()
    """CPUs of this machine that the DUT runs on; none for a DUT elsewhere."""
    ring_frames: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """Frames of one direction that wait without loss while the DUT does not run."""
    threads: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = ()
    """Ids of the DUT's threads; their waiting for a CPU counts as an absence too. One that is bound to a CPU
    is watched there."""
    largest_frame_size: Annotated[int, Field(ge=1518, le=9216)] | None = None
    """Octets with FCS that its interfaces take; None if that is not known here (R8219-20)."""
    ssh: SshDestination | None = None
    """Where its command line is: what the system's own `ssh` is given, and nothing else. None if it is not
    set up from here."""
    os: DutSystem | None = None
    left: DutInterfaces | None = None
    """The DUT's interface to the tester's left port, as the DUT names it, or those to the left port of each
    of several engines, in their order; `right` likewise."""
    right: DutInterfaces | None = None
    empty_connections: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """A command of this machine that empties the DUT's table of connections, where it keeps state
    (R9693-07)."""
    connection_timeout: Duration | None = None
    """Seconds without a frame after which it forgets a connection; None if that is not known here."""
    facts: DutFacts = DutFacts()

    @model_validator(mode="after")
    def _counts_fit_the_plan(self) -> TestbedDut:
        if self.plan is None:
            if self.hosts is not None or self.networks is not None:
                raise UnfitError(
                    "hosts and networks belong to a plan: name the plan with plan",
                    code="rig.hosts-without-plan",
                )
            return self
        if is_plan_file(self.plan):
            return self  # whose plan says itself how many there are
        with refusing():
            for name in self.plan.split("+"):
                make_plan(name, self.hosts, networks=self.networks)
        return self

    @model_validator(mode="after")
    def _is_reachable(self) -> TestbedDut:
        reach = {"ssh": self.ssh, "os": self.os, "left": self.left, "right": self.right}
        missing = [name for name, value in reach.items() if value is None]
        if missing and len(missing) < len(reach):
            raise UnfitError(
                f"{', '.join(missing)} missing: ssh, os, left and right must be given together",
                code="rig.only-together",
            )
        left, right = self.left or (), self.right or ()
        if len(left) != len(right):
            raise UnfitError(
                f"left names {len(left)} interfaces and right {len(right)}: each engine has a pair",
                code="rig.pairs-of-interfaces",
            )
        names = [*left, *right]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UnfitError(
                f"left and right are the same interface {twice!r}"
                if len(names) == 2
                else f"left and right name the interface {twice!r} twice",
                code="rig.same-interface-twice",
            )
        return self

    @property
    def interface_pairs(self) -> tuple[InterfacePair, ...]:
        """Interface pairs of each engine; none if it is not reached over SSH."""
        return tuple(zip(self.left or (), self.right or (), strict=True))

    @property
    def interfaces(self) -> dict[str, str]:
        """Interfaces of all pairs, by their places."""
        return by_place(self.interface_pairs)

    @model_validator(mode="after")
    def _cpus_differ(self) -> TestbedDut:
        if len(set(self.cpus)) != len(self.cpus):
            raise UnfitError(f"cpus {list(self.cpus)} names a CPU twice", code="rig.cpu-twice")
        if bool(self.cpus) != (self.ring_frames is not None):
            raise UnfitError(
                "cpus and ring_frames must be given together: they determine how long the DUT's ring"
                " lasts while its CPU is away",
                code="rig.only-together",
            )
        return self

    def to_contract(self) -> dict[str, Any] | None:
        """For the engine's `open`; None for a DUT elsewhere."""
        if not self.cpus:
            return None
        threads: dict[int, list[int]] = {cpu: [] for cpu in self.cpus}
        for thread in self.threads:
            threads[self._cpu_of(thread)].append(thread)
        return {
            "ring_frames": self.ring_frames,
            "cpus": [{"cpu": cpu, "threads": threads[cpu]} for cpu in self.cpus],
        }

    def _cpu_of(self, thread: int) -> int:
        try:
            allowed = os.sched_getaffinity(thread)
        except OSError:  # gone: the engine watches what is there
            return self.cpus[0]
        return next((cpu for cpu in self.cpus if allowed == {cpu}), self.cpus[0])
