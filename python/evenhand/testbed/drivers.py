# SPDX-License-Identifier: Apache-2.0
"""Testbed: the drivers that a port may have, and what may be said to each. What is not here is refused.

DPDK takes much more: drivers that run shell commands, load programs, or hold other devices inside. A testbed
file is something that people send each other. The engine has the same table (engine/port/device_string.cpp),
and both are held against contract/golden/devices.jsonl.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path


class Kind(Enum):
    """What a value is, beyond its form."""

    PLAIN = auto()
    INTERFACE = auto()
    """An interface of the kernel that is there."""
    NEW_INTERFACE = auto()
    """One that the driver makes, or takes where it is there."""
    SOCKET = auto()
    """A path of a socket, which one end makes; never another file, but for /dev/vhost-net."""
    SOURCE = auto()
    """A file that is read."""
    TARGET = auto()
    """A file that is written; never one that is there."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a driver, and its values."""

    form: re.Pattern[str]
    says: str
    """The form, for people."""
    kind: Kind = Kind.PLAIN
    is_repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver that is allowed."""

    keys: Mapping[str, Key]
    needs: frozenset[str] = field(default_factory=frozenset)
    """Keys that must be there."""


NUMBER = Key(re.compile(r"[0-9]{1,9}"), "a whole number of at most 9 digits")
FLAG = Key(re.compile(r"[01]"), "0 or 1")
YES_NO = Key(re.compile(r"yes|no"), "yes or no")
MAC = Key(re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}"), "a MAC like 02:00:00:00:00:01")
SECRET = Key(re.compile(r"[A-Za-z0-9_.-]{1,24}"), "1 to 24 letters, digits, '.', '_' and '-'")
_NAME = r"(?!\.{1,2}$)[A-Za-z0-9_.@-]{1,15}"
INTERFACE = Key(
    re.compile(_NAME),
    "the name of an interface, 1 to 15 letters, digits, '.', '_', '@' and '-'",
    Kind.INTERFACE,
)
NEW_INTERFACE = Key(INTERFACE.form, INTERFACE.says, Kind.NEW_INTERFACE)
# No brackets, quotes or parentheses, which DPDK's readers of such texts give a meaning; no '-' first, which
# is stdin and stdout to libpcap.
_PATH = r"(?!-)[^\x00-\x1f\x7f,=\[\]()\"'\\]{1,%d}"
_PATH_SAYS = (
    "a path of at most {} characters without , = [ ] ( ) \\ and quotes, which does not begin with '-'"
)
SOCKET = Key(re.compile(_PATH % 107), _PATH_SAYS.format(107), Kind.SOCKET)
SOURCE = Key(re.compile(_PATH % 4095), _PATH_SAYS.format(4095), Kind.SOURCE, is_repeatable=True)
TARGET = Key(
    re.compile(rf"/dev/null|{_PATH % 4090}\.pcap"),
    f"/dev/null, or {_PATH_SAYS.format(4095)} and ends in .pcap",
    Kind.TARGET,
    is_repeatable=True,
)

PCI = "pci"
DRIVERS: Mapping[str, Driver] = {
    "net_af_packet": Driver(
        {
            "iface": INTERFACE,
            "qpairs": NUMBER,
            "blocksz": NUMBER,
            "framesz": NUMBER,
            "framecnt": NUMBER,
            "qdisc_bypass": FLAG,
        },
        needs=frozenset({"iface"}),
    ),
    "net_af_xdp": Driver(
        {
            "iface": INTERFACE,
            "start_queue": NUMBER,
            "queue_count": NUMBER,
            "shared_umem": FLAG,
            "force_copy": FLAG,
            "busy_budget": NUMBER,
        },
        needs=frozenset({"iface"}),
    ),
    "net_memif": Driver(
        {
            "role": Key(re.compile(r"server|client"), "server or client"),
            "id": NUMBER,
            "socket": SOCKET,
            "socket-abstract": YES_NO,
            "rsize": NUMBER,
            "bsize": NUMBER,
            "mac": MAC,
            "zero-copy": YES_NO,
            "secret": SECRET,
        }
    ),
    "net_null": Driver({"size": NUMBER, "copy": FLAG, "no-rx": FLAG}),
    "net_pcap": Driver(
        {
            "rx_pcap": SOURCE,
            "tx_pcap": TARGET,
            "rx_iface": INTERFACE,
            "rx_iface_in": INTERFACE,
            "tx_iface": INTERFACE,
            "iface": INTERFACE,
            "phy_mac": FLAG,
            "infinite_rx": FLAG,
        }
    ),
    "net_ring": Driver({}),
    "net_tap": Driver(
        {
            "iface": NEW_INTERFACE,
            "mac": Key(re.compile(rf"fixed|{MAC.form.pattern}"), f"fixed, or {MAC.says}"),
        }
    ),
    "net_vhost": Driver(
        {
            "iface": SOCKET,
            "queues": NUMBER,
            "client": FLAG,
            "iommu-support": FLAG,
            "tso": FLAG,
            "linear-buffer": FLAG,
            "ext-buffer": FLAG,
        },
        needs=frozenset({"iface"}),
    ),
    "net_virtio_user": Driver(
        {
            "path": SOCKET,
            "mac": MAC,
            "queues": NUMBER,
            "queue_size": NUMBER,
            "iface": NEW_INTERFACE,
            "server": FLAG,
            "mrg_rxbuf": FLAG,
            "in_order": FLAG,
            "packed_vq": FLAG,
            "vectorized": FLAG,
        },
        needs=frozenset({"path"}),
    ),
    # Keys of ice, i40e, ena and mlx5, in this order.
    PCI: Driver(
        {
            "safe-mode-support": FLAG,
            "support-multi-driver": FLAG,
            "large_llq_hdr": FLAG,
            "mprq_en": FLAG,
            "rxqs_min_mprq": NUMBER,
            "rxq_cqe_comp_en": NUMBER,
            "txq_inline_max": NUMBER,
            "txqs_min_inline": NUMBER,
        }
    ),
}
"""Drivers by the beginning of a device's name, as DPDK matches it: `net_pcap_left` is a `net_pcap`. The
longest that fits is the driver."""

FILL_IN = "FILL-IN"
"""What `evenhand import` writes where the other tester's file names no port."""
REFUSED: Mapping[str, str] = {
    FILL_IN: "`evenhand import` left this open, because the file that it read does not name a port",
    "net_failsafe": "net_failsafe runs shell commands and contains other devices",
    "net_bond": "a bonding port contains other devices, which would not be checked",
    "net_vdev_netvsc": "net_vdev_netvsc takes interfaces of the host on its own",
    "net_softnic": "net_softnic runs a script",
    "eth_": "names of drivers begin with net_ here",
    "vdev:": "the name of a device is written here without its bus",
    "pci:": "the name of a device is written here without its bus",
    "bus=": "the name of a device is needed here, not a description of it",
}
"""What people may try, and why not; by beginnings too."""


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
