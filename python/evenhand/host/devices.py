# SPDX-License-Identifier: Apache-2.0
"""Host: NICs, and what lets DPDK drive them (IOMMU, vfio-pci)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evenhand.host.finding import Finding, Part, State
from evenhand.host.reading import list_folder, read_text
from evenhand.testbed import HostNetwork, interfaces_of_pci

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
    """Of the kernel, as bound now."""
    interfaces: tuple[str, ...]
    carries_default_route: bool
    """The host itself needs it: no test frame goes there (R6815-01)."""

    @property
    def is_ready(self) -> bool:
        """DPDK can open it as it is."""
        return self.driver in (*DPDK_DRIVERS, *SHARING_DRIVERS) and not self.carries_default_route

    def __str__(self) -> str:
        parts = [self.address, self.driver or "no driver", *self.interfaces]
        return " ".join(parts) + (" (carries a default route)" if self.carries_default_route else "")


def read_nics(root: Path, network: HostNetwork) -> list[Nic]:
    """All PCI network devices, by address."""
    nics = []
    for folder in list_folder(root / "sys/bus/pci/devices"):
        if not (read_text(folder / "class") or "").startswith(_NETWORK_CLASS):
            continue
        interfaces = interfaces_of_pci(folder)
        driver = folder / "driver"
        nics.append(
            Nic(
                address=folder.name, driver=driver.resolve().name if driver.exists() else None, interfaces=tuple(interfaces),
                carries_default_route=any(name in network.default_route_of for name in interfaces),
            )
        )  # fmt: skip
    return nics


def check_nics(nics: Sequence[Nic], *, has_devbind: bool) -> Finding:
    """Whether DPDK can open two of them as they are, and which could be bound to vfio-pci."""
    facts = {"nics": [asdict(nic) | {"interfaces": list(nic.interfaces), "is_ready": nic.is_ready} for nic in nics]}
    found = "; ".join(map(str, nics)) or "no PCI network device"
    ready = sum(nic.is_ready for nic in nics)
    if ready >= PORTS:
        return Finding(name="PCI ports", found=found, facts=facts)
    bindable = [nic for nic in nics if not nic.is_ready and not nic.carries_default_route]
    if ready + len(bindable) < PORTS:
        advice = f"A tester needs {PORTS} ports that the host itself does not use; this host has {ready + len(bindable)}."
        return Finding(name="PCI ports", found=found, state=State.MISSING, missing_for=(Part.NICS,), facts=facts, advice=advice)
    addresses = " ".join(nic.address for nic in bindable[: PORTS - ready])
    return Finding(
        name="PCI ports", found=found, state=State.MISSING, missing_for=(Part.NICS,), facts=facts,
        advice=f"Give {'these two' if ready == 0 else 'another one'} to DPDK, if no cable of theirs leads to a network that people use:",
        commands=(*(() if has_devbind else ("sudo apt-get install dpdk",)), f"sudo dpdk-devbind.py --bind=vfio-pci {addresses}"),
    )  # fmt: skip


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
        "iommu_groups": groups, "vfio_pci": module,
        "dev_vfio": has_device, "no_iommu_mode": None if no_iommu is None else no_iommu == "Y",
    }  # fmt: skip
    found = (
        f"{groups or 'no'} IOMMU group{'' if groups == 1 else 's'}; vfio-pci {_MODULE_WORDS[module]};"
        f" /dev/vfio {'is there' if has_device else 'is not there'}; no-IOMMU mode"
        f" {'not offered' if no_iommu is None else 'on' if no_iommu == 'Y' else 'off'}"
    )
    if sum(nic.is_ready and nic.driver in SHARING_DRIVERS for nic in nics) >= PORTS or (is_loaded and (groups or no_iommu == "Y")):
        return Finding(name="IOMMU/vfio", found=found, facts=facts)
    advice, commands = [], []
    if not is_available:
        advice.append(f"This kernel ({release}) has no module vfio-pci: boot the distribution's own kernel.")
    elif not is_loaded:
        advice.append("Load vfio-pci.")
        commands.append("sudo modprobe vfio-pci")
    if not groups and no_iommu != "Y":
        switch = "intel_iommu=on iommu=pt" if "GenuineIntel" in (read_text(root / "proc/cpuinfo") or "") else "iommu=pt"
        advice.append(
            f"Switch on the IOMMU (VT-d, AMD-Vi) in the firmware's set-up, add {switch} to the kernel's command line, and boot again;"
            " a virtual machine needs one from its hypervisor."
        )
        if no_iommu is not None:
            advice.append("Or, on a host that you may lose, do without:")
            commands.append(f"echo Y | sudo tee /{NO_IOMMU}")
    return Finding(
        name="IOMMU/vfio", found=found, state=State.MISSING, missing_for=(Part.NICS,), facts=facts, advice=" ".join(advice),
        commands=tuple(commands),
    )  # fmt: skip


_MODULE_WORDS = {"loaded": "loaded", "available": "not loaded", "none": "not of this kernel"}


def _has_module(folder: Path, name: str) -> bool:
    """Whether the kernel whose folder this is has the module, as a file or built in."""
    pattern = re.compile(rf"/{re.escape(name)}\.ko")
    return any(pattern.search(read_text(folder / file) or "") for file in ("modules.dep", "modules.builtin"))
