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
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from evenhand.base.errors import HostError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan import SIDES, TOPOLOGIES, AddressPlan, SideCounts, SideName
from evenhand.plan.nat import Nat
from evenhand.rig.connections import Emptied
from evenhand.rig.lab import state
from evenhand.rig.lab.build import (
    AROUND_PACKET,
    LARGEST_XDP_MTU,
    PACKET_HEAD_OCTETS,
    RING_FRAMES,
    USUAL_MAX_FRAME_SIZE,
    LabNames,
    build,
    demolish,
    read_offloads,
    translations_of,
    write_sysctls,
)
from evenhand.rig.lab.flow_hash import read_flow_hash
from evenhand.rig.lab.limits import give_back, make_room, read_cache_statistics, read_limits
from evenhand.rig.lab.machine import end_machine
from evenhand.rig.lab.namespaces import host_errors, namespace_path, run_inside
from evenhand.rig.lab.napi import MOST_URGENT, napi_threads
from evenhand.rig.lab.nat import (
    TIMEOUT_S,
    NatPorts,
    check_nat,
    empty_table,
    nat_rules,
    read_table,
    read_timeout,
)
from evenhand.rig.lab.neighbors import Neighbor, count_neighbors, read_neighbors
from evenhand.rig.lab.translator import check_translator, end_translator, translator_processes
from evenhand.rig.lab.xdp import is_native_xdp

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

RECORD_VERSION = 1
PAGE_OCTETS = os.sysconf("SC_PAGE_SIZE")
_RECORDED_SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv6/conf/all/forwarding",
    "net/ipv6/conf/all/disable_ipv6",
)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxLab:
    """A lab that is up. Knows names only, so it stays valid in any process until the lab is taken down."""

    kind: ClassVar[str] = "linux"
    """As `lab up` names it."""
    title: ClassVar[str] = "Linux"
    """For people: the Linux lab."""
    has_hash: ClassVar[bool] = False
    """Whether its DUT has NICs whose hash can be set; veth pairs hash nothing."""
    nat_timeout_s: ClassVar[float | None] = TIMEOUT_S
    """After so long without a frame its DUT forgets a connection, where it is a NAT."""
    mixes_direct_plans: ClassVar[bool] = False
    """Whether its DUT takes hosts of both IP versions on its links; behind gateways any does."""
    name: str
    plan: str
    """Name of the address plan that the DUT is set up for; of a mix both, as `siit+gateway_v6`."""
    ip_version: Literal[4, 6] | None
    """Of all frames; None: the DUT translates, or forwards a mix."""
    hosts: SideCounts | None = None
    """In each network, left and right, that the DUT is set up for; None: a record of an older version does
    not tell."""
    networks: SideCounts | None = None
    dut_cpu: int
    """CPU on which the DUT forwards."""
    tester_cpus: tuple[int, ...]
    """CPUs that are left for the tester, in order; `dut_cpu` itself if there is no other."""
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE
    """Octets with FCS that both links take."""
    nat_ports: NatPorts = "kept"
    """Of a DUT that keeps state."""

    @staticmethod
    def check_programs() -> None:
        """HostError if this host lacks a program that such a lab needs: it needs none."""

    @property
    def tester_namespace(self) -> str:
        return LabNames(self.name).tester_namespace

    @property
    def dut_namespace(self) -> str:
        return LabNames(self.name).dut_namespace

    @property
    def left_device(self) -> str:
        """The tester's left port as a DPDK device (af_xdp)."""
        return self.device("left")

    @property
    def right_device(self) -> str:
        """The tester's right port as a DPDK device (af_xdp)."""
        return self.device("right")

    @property
    def line_rate_bps(self) -> None:
        """None: a veth pair has no line rate, so the user's maximum bounds a search."""
        return None

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
        """Nothing to do: the kernel that forwards is this host's own."""

    def testbed_dut(self) -> dict[str, Any]:
        """For `[dut]` of the testbed that the lab is: nothing, since there is no other computer to log
        into."""
        return {}

    def dut_threads(self) -> list[int]:
        """The threads that forward and translate; any namespace sees them."""
        kernel = [thread for side in SIDES for thread in napi_threads(self.dut_interface(side))]
        return kernel + translator_processes(self.name)

    def tester_interface(self, side: SideName) -> str:
        return LabNames(self.name).tester_interface(side)

    def dut_interface(self, side: SideName) -> str:
        return LabNames(self.name).dut_interface(side)

    def engine_command(self, engine: Path) -> list[str]:
        """Command line that runs the engine inside the tester's namespace; append the engine's own arguments.

        A bpffs (which AF_XDP wants) and a /sys of the namespace are mounted for the engine alone. Every step
        is an exec, so the process started is the engine: what ends the process ends the engine.

        Raises:
            HostError: Not root, and so nobody who may enter the namespace.
        """
        return engine_command_inside(self.tester_namespace, engine)

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
        """Entries by side and state, and what the kernel tells of the table that all namespaces share;
        recorded only (SEED-07)."""
        return {
            "entries": count_neighbors(self.neighbors()),
            "limits": read_limits(self.ip_versions[0]),
            "cache": read_cache_statistics(self.ip_versions[0]),
        }

    @property
    def nat(self) -> Nat | None:
        """What its DUT was told; None: it keeps no state."""
        topology = TOPOLOGIES.get(self.plan)  # none of a mix, in which no plan has state
        return None if topology is None else topology.nat

    def empty_connections(self) -> Emptied:
        """Delete all connections of a DUT that keeps state (R9693-07)."""
        return self._inside_dut("empty the DUT's table of connections", empty_table)

    @property
    def connection_timeout_s(self) -> float | None:
        """After so long without a frame the DUT forgets a connection; None if it keeps no state."""
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
        return any(
            topology.translation is not None
            for name in self.plan.split("+")
            if (topology := TOPOLOGIES.get(name)) is not None
        )

    @property
    def ip_versions(self) -> tuple[Literal[4, 6], ...]:
        """That the DUT forwards."""
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


def engine_command_inside(namespace: str, engine: Path) -> list[str]:
    """See `LinuxLab.engine_command`. The tester is as urgent as the DUT's threads: else what the host does
    besides makes its load late, and a busy machine has no valid trial."""
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


def lab_up(
    plan: AddressPlan,
    *,
    name: str = "linux",
    dut_cpu: int | None = None,
    force: bool = False,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
) -> LinuxLab:
    """Set up the lab; one of that name that is there, whole or in ruins, is removed first.

    Args:
        name: 1 to 9 characters. Labs of different names do not touch each other.
        dut_cpu: CPU of the DUT; by default the lowest that this process may use, so that the tester gets the
            others.
        force: Also if a tester uses the lab that is there; that spoils its trial.
        largest_frame_size: Octets with FCS that both links take.
        nat_ports: What becomes of the hosts' ports, if the DUT keeps state.

    Raises:
        RequestError: Bad name or CPU.
        HostError: Not root, another process holds the lab or tests with it, or the kernel lacks something.
    """
    state.check_name(name)
    require_root()
    with state.hold(name), state.kept_from_testers(name, force=force):
        return _set_up(plan, name, dut_cpu, largest_frame_size, nat_ports)


def lab_down(name: str = "linux", *, force: bool = False) -> bool:
    """Remove the lab of that name, and what was raised for it; False if nothing was there.

    Args:
        force: Also if a tester uses the lab; that spoils its trial.

    Raises:
        HostError: Not root, another process holds the lab or tests with it, or the namespaces are not
            Evenhand's.
    """
    state.check_name(name)
    if not _is_anything_there(name):
        return False
    require_root()
    with state.hold(name), state.kept_from_testers(name, force=force):
        return take_down(name)


def read_lab(name: str, record: dict[str, Any]) -> LinuxLab | None:
    """From a record of this kind; None if the lab is not whole."""
    names = LabNames(name)
    is_there = all(namespace_path(n).exists() for n in (names.tester_namespace, names.dut_namespace))
    if not record.get("is_complete") or not is_there:
        return None
    lab = record["lab"]
    return LinuxLab(**with_tuples(lab))


def with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists only."""
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
    counts = {name: SideCounts._make(found[name]) for name in ("hosts", "networks") if found.get(name)}
    return found | counts


def plan_name(plan: AddressPlan) -> str:
    """As a lab has it: of a mix both names."""
    return "+".join(each.name for each in plan.plans)


def is_for(name: str, plan: AddressPlan) -> bool:
    """Whether a lab that has this name of a plan is for this one; of a mix in either order."""
    return sorted(name.split("+")) == sorted(plan_name(plan).split("+"))


def addresses_of(plan: AddressPlan) -> dict[str, Any]:
    """What a lab knows of the plan that it is made for."""
    return {
        "plan": plan_name(plan),
        "ip_version": plan.versions[0] if len(plan.versions) == 1 else None,
        "hosts": plan.hosts,
        "networks": plan.networks,
    }


@contextmanager
def linux_lab(
    plan: AddressPlan,
    *,
    name: str = "linux",
    dut_cpu: int | None = None,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
) -> Iterator[LinuxLab]:
    """A lab for the length of a `with` block, taken down however the block ends; see lab_up.

    Meanwhile other processes can neither replace nor remove it.
    """
    state.check_name(name)
    require_root()
    with state.hold(name), ExitStack() as stack:
        # Before the block that takes the lab down: one that somebody tests with stays.
        stack.enter_context(state.kept_from_testers(name, force=False))
        try:
            lab = _set_up(plan, name, dut_cpu, largest_frame_size, nat_ports)
            stack.close()
            yield lab
        finally:
            take_down(name)


def _set_up(
    plan: AddressPlan, name: str, dut_cpu: int | None, largest_frame_size: int, nat_ports: NatPorts
) -> LinuxLab:
    if plan.other is not None and plan.is_direct:
        raise RequestError(
            f"{plan.title} has hosts of both IP versions on the links, and the Linux lab has room for the"
            " neighbours of one",
            code="rig.lab-mix-of-direct-plans",
            where="plan",
            next_step="Use gateway plans, such as gateway-v4+gateway-v6.",
        )
    if translations_of(plan):
        check_translator()
    if plan.nat is not None:
        check_nat()
    cpu, tester_cpus = share_cpus(dut_cpu)
    lab = LinuxLab(
        name=name,
        dut_cpu=cpu,
        tester_cpus=tester_cpus,
        largest_frame_size=largest_frame_size,
        nat_ports=nat_ports,
        **addresses_of(plan),
    )
    take_down(name)
    record = {"version": RECORD_VERSION, "is_complete": False, "lab": asdict(lab)}
    state.write_record(name, record)
    try:
        if lab.ip_version is not None:  # translators and mixes have gateways alone
            make_room(name, lab.ip_version, sum(side.dut_neighbors for side in plan.sides))
        build(LabNames(name), plan, cpu, largest_frame_size, nat_ports)
        state.write_record(name, {**record, "is_complete": True})
    except BaseException:
        take_down(name)
        raise
    return lab


def take_down(name: str) -> bool:
    names = LabNames(name)
    if state.read_record(name) is None:
        for namespace in (names.tester_namespace, names.dut_namespace):
            if namespace_path(namespace).exists():
                raise HostError(
                    "this network namespace exists, but Evenhand has no record of having created it",
                    code="rig.namespace-not-ours",
                    where=namespace,
                    next_step=f"If you do not need it: ip netns delete {namespace}",
                )
        return False
    with _second_interrupt_waits():
        end_machine(name)
        end_translator(name)
        demolish(names)
        give_back(name)
        state.remove_record(name)
    return True


def _is_anything_there(name: str) -> bool:
    names = LabNames(name)
    namespaces = (names.tester_namespace, names.dut_namespace)
    return state.read_record(name) is not None or any(namespace_path(n).exists() for n in namespaces)


def share_cpus(dut_cpu: int | None) -> tuple[int, tuple[int, ...]]:
    """The DUT's CPU and the tester's: never the same one, unless there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    if dut_cpu is None:
        dut_cpu = allowed[0]
    elif not (dut_cpu >= 0 and Path(f"/sys/devices/system/cpu/cpu{dut_cpu}").exists()):
        raise RequestError(
            f"CPU {dut_cpu} does not exist",
            code="rig.no-such-cpu",
            where="dut_cpu",
            next_step=f"Use one of: {', '.join(map(str, allowed))}.",
        )
    return dut_cpu, tuple(cpu for cpu in allowed if cpu != dut_cpu) or (dut_cpu,)


def require_root(why: str = "to create network namespaces", *, lab: str = "Linux") -> None:
    """HostError if this process is not root's."""
    if os.geteuid() != 0:
        raise HostError(
            f"the {lab} lab needs root, {why}",
            code="rig.root-needed",
            where="lab",
            next_step="Run the same command with sudo.",
        )


@contextmanager
def _second_interrupt_waits() -> Iterator[None]:
    """Ctrl-C, Ctrl-C: the second one is delivered after the lab is gone, not instead of that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
