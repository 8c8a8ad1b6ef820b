# SPDX-License-Identifier: Apache-2.0
"""A tree with the files of /proc, /sys, /dev, /etc and /lib that the checks read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GOOD: Mapping[str, str] = {
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n',
    "proc/cpuinfo": "vendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: fpu tsc\n",
    "proc/sys/kernel/osrelease": "6.1.0-1-amd64\n",
    "proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
    "proc/self/limits": "Max locked memory         8388608              8388608              bytes\n"
    "Max realtime priority     0                    0\n",
    "proc/self/ns/net": "",
    "sys/fs/bpf/.keep": "",
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/cpu/isolated": "2-7\n",
    "sys/devices/system/cpu/nohz_full": "2-7\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1024\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "1000\n",
    "sys/kernel/iommu_groups/0/devices": "",
    "sys/kernel/iommu_groups/1/devices": "",
    "sys/bus/pci/drivers/vfio-pci/.keep": "",
    "sys/bus/pci/drivers/ixgbe/.keep": "",
    "sys/bus/pci/drivers/mlx5_core/.keep": "",
    "dev/vfio/vfio": "",
    "lib/modules/6.1.0-1-amd64/modules.dep": "kernel/drivers/vfio/pci/vfio-pci.ko:"
    " kernel/drivers/vfio/vfio.ko\n",
}
"""A host on which everything runs; its NICs come by `add_nic`."""


def make_host(root: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """Write the good host with some files changed, or left out (None)."""
    for name, text in {**GOOD, **(changes or {})}.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    return root


E1000E = "pci:v00008086d000010D3sv*sd*bc*sc*i*"
PLUGINS = "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0"


def add_nic(
    root: Path, address: str, driver: str | None, *interfaces: str, virtio: bool = False, modalias: str = ""
) -> None:
    """A PCI network device as /sys shows it."""
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "class").write_text("0x020000\n")
    if modalias:
        (folder / "modalias").write_text(f"{modalias}\n")
    if driver is not None:
        (folder / "driver").symlink_to(root / "sys/bus/pci/drivers" / driver)
    for interface in interfaces:
        (folder / ("virtio2" if virtio else ".") / "net" / interface).mkdir(parents=True)
