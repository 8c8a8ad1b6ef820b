# SPDX-License-Identifier: Apache-2.0
"""What all labs have: names, what their DUT is set up for, and how a tester's engine gets at their ports."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from evenhand.dut.nat import TIMEOUT_S, NatPorts
from evenhand.lab.build import PACKET_HEAD_OCTETS, USUAL_MAX_FRAME_SIZE, LabNames
from evenhand.lab.linux_programs import require_root
from evenhand.lab.namespaces import namespace_path
from evenhand.lab.napi import MOST_URGENT
from evenhand.lab.state import nat_of
from evenhand.plan import SideCounts, SideName
from evenhand.plan.translation import Nat

PAGE_OCTETS = os.sysconf("SC_PAGE_SIZE")


def engine_command_inside(namespace: str, engine: Path) -> list[str]:
    """See `LabThatIsUp.engine_command`. The tester is as urgent as the DUT's threads: else other work of the
    host makes its load late, and a busy machine has no valid trial."""
    require_root("to enter its network namespace")
    mount_and_run = 'mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf && exec nice -n "$0" "$@"'
    enter = ["nsenter", f"--net={namespace_path(namespace)}", "unshare", "--mount"]
    return [*enter, "sh", "-c", mount_and_run, str(MOST_URGENT), str(engine)]


def af_packet_device(number: int, interface: str, largest_frame_size: int) -> str:
    """EAL device string of a port on this interface, whose ring has room for frames of this size."""
    options = ""
    if largest_frame_size > USUAL_MAX_FRAME_SIZE:
        # DPDK takes the frames of a ring to follow one another without gaps, whatever the blocks.
        slot = -(-(largest_frame_size + PACKET_HEAD_OCTETS) // PAGE_OCTETS) * PAGE_OCTETS
        options = f",blocksz={slot},framesz={slot}"
    return f"net_af_packet{number},iface={interface}{options}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabThatIsUp(ABC):
    """Knows names only, so it stays valid in any process until the lab is taken down."""

    kind: ClassVar[str]
    """Kind as `lab up` names it."""
    title: ClassVar[str]
    """For people: the Linux lab."""
    has_hash: ClassVar[bool]
    """Whether its DUT has NICs whose hash can be set."""
    nat_timeout_s: ClassVar[float | None] = TIMEOUT_S
    """Seconds without a frame after which its DUT forgets a connection, where it is a NAT."""
    mixes_direct_plans: ClassVar[bool]
    """Whether its DUT takes hosts of both IP versions on its links; behind gateways any does."""
    name: str
    plan: str
    """Name of the address plan that the DUT is set up for; of a mix both, as `siit+gateway_v6`."""
    ip_version: Literal[4, 6] | None
    """IP version of all frames; None: the DUT translates, or forwards a mix."""
    hosts: SideCounts
    """Hosts in each network, left and right, that the DUT is set up for."""
    networks: SideCounts
    dut_cpu: int
    """CPU on which the DUT runs."""
    tester_cpus: tuple[int, ...]
    """CPUs that are left for the tester, in order; `dut_cpu` itself if there is no other."""
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE
    """Octets with FCS that both links take."""
    nat_ports: NatPorts = "kept"
    """Choice of ports of a DUT that keeps state."""

    @abstractmethod
    def device(self, side: SideName) -> str:
        """EAL device string of one tester port, to be opened inside the tester's namespace."""

    @property
    def tester_namespace(self) -> str:
        return LabNames(self.name).tester_namespace

    @property
    def line_rate_bps(self) -> None:
        """None: software ports have no line rate, so the user's maximum bounds a search."""
        return None

    @property
    def nat(self) -> Nat | None:
        """The NAT that its DUT was configured for when the lab came up; None: it keeps no state."""
        return nat_of(self.plan)

    def tester_interface(self, side: SideName) -> str:
        return LabNames(self.name).tester_interface(side)

    def engine_command(self, engine: Path) -> list[str]:
        """Command line that runs the engine inside the tester's namespace; append the engine's own arguments.

        A bpffs (which AF_XDP wants) and a /sys of the namespace are mounted for the engine alone. Every step
        is an exec, so the process started is the engine: what ends the process ends the engine.

        Raises:
            HostError: Not root, and so not allowed to enter the namespace.
        """
        return engine_command_inside(self.tester_namespace, engine)
