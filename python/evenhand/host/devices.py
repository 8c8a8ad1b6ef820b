# SPDX-License-Identifier: Apache-2.0
"""Host: NICs, and what lets DPDK drive them (IOMMU, vfio-pci)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import EngineError
from evenhand.host.finding import Finding, Part, State, list_folder, read_number, read_text
from evenhand.host.flow_hash import read_flow_hash
from evenhand.plan import SideName
from evenhand.testbed import CANNOT_TELL, HostNetwork, interface_of, interfaces_of_pci
from evenhand.testbed.drivers import dpdk_driver_of, kernel_module_of, missing_package

PORTS = 2
DPDK_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
SHARING_DRIVERS = ("mlx4_core", "mlx5_core")
"""Drivers of the kernel that stay while DPDK uses the NIC."""
NO_IOMMU = Path("sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
_NETWORK_CLASS = "0x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A PCI network device."""

    address: str
    driver: str | None
    """Driver of the kernel, as bound now."""
    interfaces: tuple[str, ...]
    carries_default_route: bool
    """The host itself needs it: no test frame goes there (R6815-01)."""
    ip_addresses: tuple[str, ...] = ()
    """IP addresses of its interfaces."""
    is_unclear: bool = False
    """It is used in a network namespace that cannot be looked into: whether it carries a default route cannot
    be told."""
    interface_elsewhere: str | None = None
    """`eth1 in another network namespace`, if its interface is there."""
    kernel_driver: str | None = None
    """The kernel's own for it, whatever is bound now; None if the kernel's folder of modules does not show
    it."""
    dpdk_driver: str | None = None
    """Driver of DPDK, such as `e1000`; None if DPDK has none that is known here."""
    missing_package: str | None = None
    """Package of that driver, if it is not installed."""

    @property
    def is_ready(self) -> bool:
        """DPDK can open it as it is."""
        return (
            self.driver in (*DPDK_DRIVERS, *SHARING_DRIVERS)
            and not self.carries_default_route
            and not self.is_unclear
            and self.missing_package is None
        )

    @property
    def warning(self) -> str | None:
        """Why not to give it to DPDK."""
        if self.carries_default_route:
            return "it carries a default route: the host would lose its network"
        if self.is_unclear:
            return CANNOT_TELL
        if self.interface_elsewhere is not None:
            return f"its interface is {self.interface_elsewhere}, which would lose it"
        if self.ip_addresses:
            return f"it carries {', '.join(self.ip_addresses)}: the host would lose that network"
        return None

    @property
    def is_bindable(self) -> bool:
        """It could be given to DPDK, which may not have it yet."""
        return self.driver not in (*DPDK_DRIVERS, *SHARING_DRIVERS) and self.warning is None

    @property
    def bind_command(self) -> str | None:
        """Gives it to DPDK; None if it has it, or must not."""
        return f"sudo dpdk-devbind.py --bind=vfio-pci {self.address}" if self.is_bindable else None

    @property
    def give_back_command(self) -> str | None:
        """Gives it back to the kernel; None if the kernel has it, or its driver is not known."""
        if self.driver not in DPDK_DRIVERS or self.kernel_driver is None:
            return None
        return f"sudo dpdk-devbind.py --bind={self.kernel_driver} {self.address}"

    def __str__(self) -> str:
        parts = [self.address, self.driver or "no driver", *self.interfaces]
        if self.is_unclear:
            return " ".join(parts) + " (cannot tell what uses it)"
        carried = ["a default route"] if self.carries_default_route else list(self.ip_addresses)
        return " ".join(parts) + (f" (carries {', '.join(carried)})" if carried else "")

    def to_facts(self) -> dict[str, Any]:
        """For `--json`."""
        more = {
            key: getattr(self, key) for key in ("is_ready", "warning", "bind_command", "give_back_command")
        }
        return (
            asdict(self)
            | {"interfaces": list(self.interfaces), "ip_addresses": list(self.ip_addresses)}
            | more
        )


def read_nics(root: Path, network: HostNetwork) -> list[Nic]:
    """All PCI network devices, by address."""
    nics = []
    for folder in list_folder(root / "sys/bus/pci/devices"):
        if not (read_text(folder / "class") or "").startswith(_NETWORK_CLASS):
            continue
        interfaces = interfaces_of_pci(folder)
        driver = folder / "driver"
        bound = driver.resolve().name if driver.exists() else None
        why_not = network.why_not_device(folder)
        module = kernel_module_of(folder, root=root) or (None if bound in DPDK_DRIVERS else bound)
        dpdk_driver = dpdk_driver_of(module)
        nics.append(
            Nic(
                address=folder.name,
                driver=bound,
                interfaces=tuple(interfaces),
                carries_default_route=why_not not in (None, CANNOT_TELL),
                is_unclear=why_not == CANNOT_TELL,
                interface_elsewhere=network.interface_elsewhere(folder),
                ip_addresses=tuple(
                    address for name in interfaces for address in network.addresses_of.get(name, ())
                ),
                kernel_driver="virtio-pci" if module == "virtio_pci" else module,
                dpdk_driver=dpdk_driver,
                missing_package=None if dpdk_driver is None else missing_package(dpdk_driver, root=root),
            )
        )
    return nics


def check_nics(nics: Sequence[Nic], *, has_devbind: bool) -> Finding:
    """Whether DPDK can open two of them as they are, and which could be bound to vfio-pci."""
    facts = {"nics": [nic.to_facts() for nic in nics]}
    found = "; ".join(map(str, nics)) or "no PCI network device"
    ready = sum(nic.is_ready for nic in nics)
    if ready >= PORTS:
        return Finding(name="PCI ports", found=found, facts=facts)
    # What is bound already comes first: of that only the driver of DPDK is missing.
    bound = [
        nic
        for nic in nics
        if not nic.is_ready
        and nic.driver in (*DPDK_DRIVERS, *SHARING_DRIVERS)
        and not nic.carries_default_route
        and not nic.is_unclear
    ]
    bindable = [nic for nic in nics if nic.is_bindable]
    wanted = [*bound, *bindable][: PORTS - ready]
    advice, commands = [], []
    packages = sorted({nic.missing_package for nic in wanted if nic.missing_package is not None})
    if packages:
        advice.append("Install the DPDK driver that these NICs need.")
        commands.append(f"sudo apt-get install {' '.join(packages)}")
    to_bind = [nic for nic in wanted if nic.is_bindable]
    if len(wanted) < PORTS - ready:
        used = [
            f"{nic.address} is in use: {nic.warning}."
            for nic in nics
            if nic.warning is not None and not nic.carries_default_route
        ]
        advice = [
            f"A tester needs {PORTS} ports that the host itself does not use; this machine has"
            f" {ready + len(wanted)}.",
            *used,
        ]
        commands = []
    elif to_bind:
        few = (
            "these two" if len(to_bind) == PORTS else "this one" if ready + len(bound) == 0 else "another one"
        )
        advice.append(
            f"Give {few} to DPDK, provided that none of their cables leads to a network that people use:"
        )
        commands += [*(() if has_devbind else ("sudo apt-get install dpdk",))]
        commands.append(f"sudo dpdk-devbind.py --bind=vfio-pci {' '.join(nic.address for nic in to_bind)}")
    return Finding(
        name="PCI ports",
        found=found,
        state=State.MISSING,
        missing_for=(Part.NICS,),
        facts=facts,
        advice=" ".join(advice),
        commands=tuple(commands),
    )


def check_vfio(root: Path, nics: Collection[Nic]) -> Finding:
    """IOMMU groups, vfio-pci, and the mode without an IOMMU."""
    groups = len(list_folder(root / "sys/kernel/iommu_groups"))
    release = read_text(root / "proc/sys/kernel/osrelease") or ""
    is_loaded = (root / "sys/bus/pci/drivers/vfio-pci").exists()
    is_available = is_loaded or _has_module(root / "lib/modules" / release, "vfio-pci")
    no_iommu = read_text(root / NO_IOMMU)
    has_device = (root / "dev/vfio/vfio").exists()
    module = "loaded" if is_loaded else "available" if is_available else "none"
    facts = {
        "iommu_groups": groups,
        "vfio_pci": module,
        "dev_vfio": has_device,
        "no_iommu_mode": None if no_iommu is None else no_iommu == "Y",
    }
    found = (
        f"{groups or 'no'} IOMMU group{'' if groups == 1 else 's'}; vfio-pci"
        f" {_MODULE_WORDS[module]}; /dev/vfio {'exists' if has_device else 'does not exist'};"
        f" no-IOMMU mode {'not offered' if no_iommu is None else 'on' if no_iommu == 'Y' else 'off'}"
    )
    if sum(nic.is_ready and nic.driver in SHARING_DRIVERS for nic in nics) >= PORTS or (
        is_loaded and (groups or no_iommu == "Y")
    ):
        return Finding(name="IOMMU/vfio", found=found, facts=facts)
    advice, commands = [], []
    if not is_available:
        advice.append(
            f"This kernel ({release}) does not have the module vfio-pci: boot the distribution's own kernel."
        )
    elif not is_loaded:
        advice.append("Load vfio-pci.")
        commands.append("sudo modprobe vfio-pci")
    if not groups and no_iommu != "Y":
        switch = (
            "intel_iommu=on iommu=pt"
            if "GenuineIntel" in (read_text(root / "proc/cpuinfo") or "")
            else "iommu=pt"
        )
        advice.append(
            f"Enable the IOMMU (VT-d, AMD-Vi) in the firmware settings, add {switch} to the"
            " kernel's command line, and boot again; in a virtual machine the hypervisor"
            " must provide it."
        )
        if no_iommu is not None:
            advice.append("Or, on a host that you can afford to lose, work without an IOMMU:")
            commands.append(f"echo Y | sudo tee /{NO_IOMMU}")
    return Finding(
        name="IOMMU/vfio",
        found=found,
        state=State.MISSING,
        missing_for=(Part.NICS,),
        facts=facts,
        advice=" ".join(advice),
        commands=tuple(commands),
    )


_MODULE_WORDS = {"loaded": "loaded", "available": "not loaded", "none": "not of this kernel"}


def _has_module(folder: Path, name: str) -> bool:
    """Whether the kernel whose folder this is has the module, as a file or built in."""
    pattern = re.compile(rf"/{re.escape(name)}\.ko")
    return any(pattern.search(read_text(folder / file) or "") for file in ("modules.dep", "modules.builtin"))


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
