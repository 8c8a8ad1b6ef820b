# SPDX-License-Identifier: Apache-2.0
"""Testbed: which driver of the kernel and which of DPDK belong to a PCI NIC, and the Debian package of the
latter. Reads files only."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path

DPDK_OF_KERNEL: Mapping[str, str] = {
    "atlantic": "atlantic",
    "bnx2x": "bnx2x",
    "bnxt_en": "bnxt",
    "cxgb4": "cxgbe",
    "e1000": "e1000",
    "e1000e": "e1000",
    "ena": "ena",
    "enic": "enic",
    "fm10k": "fm10k",
    "gve": "gve",
    "hinic": "hinic",
    "hns3": "hns3",
    "i40e": "i40e",
    "iavf": "iavf",
    "ice": "ice",
    "igb": "e1000",
    "igbvf": "e1000",
    "igc": "igc",
    "ionic": "ionic",
    "ixgbe": "ixgbe",
    "ixgbevf": "ixgbe",
    "mlx4_core": "mlx4",
    "mlx5_core": "mlx5",
    "nfp": "nfp",
    "ngbe": "ngbe",
    "qede": "qede",
    "sfc": "sfc",
    "txgbe": "txgbe",
    "virtio_pci": "virtio",
    "vmxnet3": "vmxnet3",
}
"""Module of the kernel to the library of DPDK that drives the same NIC: `e1000` is librte_net_e1000."""
PLUGIN_FOLDERS = "usr/lib/*/dpdk/pmds-*"


def kernel_module_of(device: Path, *, root: Path = Path("/")) -> str | None:
    """The kernel's driver of the PCI device whose folder of /sys this is, whatever is bound now; None if the
    kernel has none.

    If several modules take it, the first that DPDK has a driver for.
    """
    try:
        alias = (device / "modalias").read_text().strip()
        release = (root / "proc/sys/kernel/osrelease").read_text().strip()
    except OSError:
        return None
    modules = []
    for name in ("modules.alias", "modules.builtin.alias"):
        try:
            lines = (root / "lib/modules" / release / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[1].startswith("pci:") and fnmatch.fnmatchcase(alias, words[1]):
                modules.append(words[2])
    return next((module for module in modules if module in DPDK_OF_KERNEL), modules[0] if modules else None)


def dpdk_driver_of(module: str | None) -> str | None:
    """The driver of DPDK, such as `e1000`; None if DPDK has none that is known here."""
    return None if module is None else DPDK_OF_KERNEL.get(module.replace("-", "_"))


def missing_package(driver: str, *, root: Path = Path("/")) -> str | None:
    """The Debian package of this driver of DPDK, if the driver is not installed; None if it is, or if DPDK is
    not Debian's."""
    folders = sorted(root.glob(PLUGIN_FOLDERS))
    if not folders or any(file for folder in folders for file in folder.glob(f"librte_net_{driver}.so*")):
        return None
    number = folders[-1].name.removeprefix("pmds-").split(".")[0]
    return f"librte-net-{driver}{'-' if driver[-1].isdigit() else ''}{number}"
