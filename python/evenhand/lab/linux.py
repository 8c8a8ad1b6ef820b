# SPDX-License-Identifier: Apache-2.0
"""The Linux lab: the kernel's own router in a network namespace as DUT, the tester's ports as veth ends.

    tester namespace             DUT namespace
    ehtl-NAME  ---- veth ----  ehdl-NAME  \\
                                           forwarding
    ehtr-NAME  ---- veth ----  ehdr-NAME  /

Nothing of it is ever in the host's own namespace. The DUT resolves its neighbours by ARP and ND (SEED-19,
SEED-20). The room that many of them need is the one thing that it takes from the whole kernel: see limits.py.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from evenhand.base.lazy_import import lazy_import
from evenhand.dut.connections import Emptied
from evenhand.dut.nat import nat_rules
from evenhand.host.flow_hash import read_flow_hash
from evenhand.lab.build import (
    AROUND_PACKET,
    LARGEST_XDP_MTU,
    RING_FRAMES,
    LabNames,
    read_offloads,
    write_sysctls,
)
from evenhand.lab.limits import read_cache_statistics, read_limits
from evenhand.lab.namespaces import host_errors, run_inside
from evenhand.lab.napi import napi_threads
from evenhand.lab.neighbors import Neighbor, count_neighbors, read_neighbors
from evenhand.lab.state import translates
from evenhand.lab.translator import empty_table, read_table, read_timeout, translator_processes
from evenhand.lab.xdp import is_native_xdp
from evenhand.plan import SIDES, SideName

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")
from evenhand.lab.linux_programs import require_root
from evenhand.lab.ports import LabThatIsUp, af_packet_device

_RECORDED_SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv6/conf/all/forwarding",
    "net/ipv6/conf/all/disable_ipv6",
)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxLab(LabThatIsUp):
    """The kernel of this machine forwards."""

    kind: ClassVar[str] = "linux"
    title: ClassVar[str] = "Linux"
    has_hash: ClassVar[bool] = False
    mixes_direct_plans: ClassVar[bool] = False
    rules: int = 0
    """Number of rules of its firewall, which each forwarded frame is held against; 0: it has none."""

    @staticmethod
    def check_programs() -> None:
        """HostError if this machine lacks a program that such a lab needs: it needs none."""

    @property
    def dut_namespace(self) -> str:
        return LabNames(self.name).dut_namespace

    def device(self, side: SideName, driver: Literal["af_xdp", "af_packet"] | None = None) -> str:
        """EAL device string of one tester port, to be opened inside the tester's namespace.

        Args:
            driver: Default: af_xdp; af_packet for frames of more than a page, which af_xdp does not take.
        """
        if driver is None:
            driver = "af_xdp" if self.largest_frame_size - AROUND_PACKET <= LARGEST_XDP_MTU else "af_packet"
        if driver == "af_packet":
            return af_packet_device(SIDES.index(side), self.tester_interface(side), self.largest_frame_size)
        # Without busy_budget=0 each look at an empty queue is a system call that polls the veth on the
        # tester's CPU.
        options = ",start_queue=0,queue_count=1,force_copy=1,busy_budget=0"
        return f"net_af_xdp{SIDES.index(side)},iface={self.tester_interface(side)}{options}"

    @property
    def ssh_config(self) -> None:
        """There is no other computer to log into."""
        return None

    @property
    def ring_frames(self) -> int:
        """Frames of one direction that wait while the DUT does not run."""
        return RING_FRAMES

    def check_running(self) -> None:
        """Nothing to do: the kernel that forwards is this machine's own."""

    def testbed_dut(self) -> dict[str, Any]:
        """For `[dut]` of the testbed that the lab is: nothing, since there is no other computer to log
        into."""
        return {}

    def dut_threads(self) -> list[int]:
        """The threads that forward and translate; any namespace sees them."""
        kernel = [thread for side in SIDES for thread in napi_threads(self.dut_interface(side))]
        return kernel + (translator_processes(self.name) if self.translates else [])

    def dut_interface(self, side: SideName) -> str:
        return LabNames(self.name).dut_interface(side)

    def neighbors(self) -> list[Neighbor]:
        """The DUT's ARP or ND table, as `ip neigh` shows it (SEED-19), ordered by side and address."""

        def read() -> list[Neighbor]:
            with pyroute2.IPRoute() as ip:
                sides = {
                    index: side for side in SIDES for index in ip.link_lookup(ifname=self.dut_interface(side))
                }
            return read_neighbors(sides)

        return self._inside_dut("read the DUT's neighbours", read)

    def neighbor_facts(self) -> dict[str, Any]:
        """Entries by side and state, and what the kernel reports of the table that all namespaces share;
        recorded only (SEED-07)."""
        return {
            "entries": count_neighbors(self.neighbors()),
            "limits": read_limits(self.ip_versions[0]),
            "cache": read_cache_statistics(self.ip_versions[0]),
        }

    def empty_connections(self) -> Emptied:
        """Delete all connections of a DUT that keeps state (R9693-07)."""
        return self._inside_dut("empty the DUT's table of connections", empty_table)

    @property
    def connection_timeout_s(self) -> float | None:
        """Seconds without a frame after which the DUT forgets a connection; None if it keeps no state."""
        if self.nat is None:
            return None
        return self._inside_dut("read how long the DUT remembers a connection", read_timeout)

    def connection_facts(self) -> dict[str, Any]:
        """The rules of a DUT that keeps state, its table, and what the kernel has counted of it (R9693-20);
        recorded only (SEED-07)."""
        assert self.nat is not None
        rules = nat_rules(self.nat, self.dut_interface("right"), self.nat_ports, with_hosts=False)
        return {"rules": rules, **self._inside_dut("read the DUT's table of connections", read_table)}

    def set_forwarding(self, on: bool) -> None:
        """Switch the DUT's forwarding for the plan's IP versions; off, a trial must end FAIL."""
        values = {f"net/ipv{version}/conf/all/forwarding": "1" if on else "0" for version in self.ip_versions}
        self._inside_dut("switch the DUT's forwarding", lambda: write_sysctls(values))

    @property
    def translates(self) -> bool:
        return translates(self.plan)

    @property
    def ip_versions(self) -> tuple[Literal[4, 6], ...]:
        """IP versions that the DUT forwards."""
        return (6, 4) if self.ip_version is None else (self.ip_version,)

    def facts(self) -> dict[str, Any]:
        """What the DUT is made of; recorded in results, never used for a verdict (SEED-07)."""

        def read() -> dict[str, Any]:
            with pyroute2.IPRoute() as ip:
                interfaces = {
                    side: {
                        "name": self.dut_interface(side),
                        "native_xdp": is_native_xdp(ip, self.dut_interface(side)),
                        "offloads": read_offloads(self.dut_interface(side)),
                        "rx_flow_hash": read_flow_hash(self.dut_interface(side)),
                        "napi_threads": {
                            str(pid): sorted(os.sched_getaffinity(pid))
                            for pid in napi_threads(self.dut_interface(side))
                        },
                    }
                    for side in SIDES
                }
            neighbor_timers = [
                f"net/ipv{version}/neigh/{self.dut_interface(side)}/base_reachable_time_ms"
                for side in SIDES
                for version in self.ip_versions
            ]
            paths = {name: Path("/proc/sys") / name for name in (*_RECORDED_SYSCTLS, *neighbor_timers)}
            return {
                "dut": "linux namespace",
                **({"translator": "TAYGA"} if self.translates else {}),
                **({"firewall_rules": self.rules} if self.rules else {}),
                "kernel": platform.release(),
                "machine": platform.machine(),
                "plan": self.plan,
                "dut_cpu": self.dut_cpu,
                "tester_cpus": list(self.tester_cpus),
                "sysctls": {
                    name.replace("/", "."): path.read_text().strip()
                    for name, path in paths.items()
                    if path.exists()
                },
                "interfaces": interfaces,
            }

        facts = self._inside_dut("read the DUT's facts", read)
        connections = {} if self.nat is None else {"connection_table": self.connection_facts()}
        return {**facts, "neighbor_table": self.neighbor_facts(), **connections}

    def _inside_dut(self, doing: str, work: Callable[[], Result]) -> Result:
        require_root()
        with host_errors(
            doing, where=self.dut_namespace, next_step="Is the lab still up? Check with: evenhand lab status"
        ):
            return run_inside(self.dut_namespace, work)
