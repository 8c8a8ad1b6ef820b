# SPDX-License-Identifier: Apache-2.0
"""The virtual machine of the NIC rung: pairs of emulated NICs, each joined by a cable, an IOMMU, hugepages,
the engine inside."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import evenhand
from evenhand.base.errors import HostError
from evenhand.lab.vm_image import ImageRecipe, VmImage, vm_image
from evenhand.lab.vm_process import QEMU, VirtualMachine
from evenhand.trial import EngineSession, find_engine

HERE = Path(__file__).parent
NOT_NEEDED = frozenset(
    {
        "PIL",
        "contourpy",
        "duckdb",
        "fontTools",
        "hypothesis",
        "kiwisolver",
        "matplotlib",
        "mpl_toolkits",
        "mypy",
        "mypyc",
        "pandas",
        "pillow.libs",
        "pip",
        "pkg_resources",
        "pyarrow",
        "pyarrow.libs",
        "ruff",
        "scapy",
        "setuptools",
        "tzdata",
    }
)
"""Parts of .venv that draw pictures or check code, and are large."""
BOOT_TIMEOUT_S = 300
AGENT_TIMEOUT_S = 240
VIRTIO = ",disable-legacy=on,iommu_platform=on"
MEMORY_MB = 2048
MAC = "52:54:00:00:{:02x}:{:02x}"
BOOT = """mkdir -p /mnt/data
mount -o ro /dev/vdb /mnt/data
modprobe virtio_console
python3 /mnt/data/guest_agent.py /mnt/data/evenhand-engine
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A NIC that QEMU emulates."""

    name: str
    slot: int
    """The slot of the left one on the PCI bus."""
    right_slot: int
    kernel_driver: str
    dpdk_driver: str
    device: str = ""
    """QEMU's name of it, if that is another."""
    options: str = ""
    buses: tuple[int, int] | None = None
    """Each is alone on one, behind a port that it can be taken from; None: both are on the first one, and
    stay."""
    is_on_taps: bool = False
    """Its queues are those of taps; the others' cables are sockets."""
    queues: int = 1
    """For receiving, that are tried."""
    jumbo: int = 9018
    """A frame size with FCS that it takes."""
    too_large: int = 0
    """One that it does not; 0: none that the engine knows."""
    most_queues: int = 1
    """For receiving, by what it tells DPDK."""
    most_streams: int = 1
    """Transmit queues, by the same."""
    control_queue: str = "own"
    """The queue of answers to the DUT, where it has more transmit queues than streams."""

    @property
    def qemu_name(self) -> str:
        return self.device or self.name

    @property
    def addresses(self) -> tuple[str, str]:
        if self.buses is not None:
            return f"0000:{self.buses[0]:02x}:00.0", f"0000:{self.buses[1]:02x}:00.0"
        return f"0000:00:{self.slot:02x}.0", f"0000:00:{self.right_slot:02x}.0"

    @property
    def macs(self) -> tuple[str, str]:
        return MAC.format(self.slot, 1), MAC.format(self.slot, 2)


E1000E = Model(
    name="e1000e",
    slot=0x10,
    right_slot=0x11,
    kernel_driver="e1000e",
    dpdk_driver="net_e1000_em",
    queues=2,
    most_queues=2,
    most_streams=2,
)
# Its virtual functions take two slots, 16 higher than its own.
IGB = Model(
    name="igb",
    slot=0x0A,
    right_slot=0x0C,
    kernel_driver="igb",
    dpdk_driver="net_e1000_igb",
    queues=2,
    most_queues=16,
    most_streams=16,
)
VIRTIO_ONE_QUEUE = Model(
    name="virtio-one-queue",
    slot=0x18,
    right_slot=0x19,
    kernel_driver="virtio-pci",
    dpdk_driver="net_virtio",
    device="virtio-net-pci",
    options=VIRTIO,
    control_queue="shared",
)
VIRTIO_RSS = replace(
    VIRTIO_ONE_QUEUE,
    name="virtio-rss",
    slot=0x14,
    right_slot=0x15,
    options=f"{VIRTIO},mq=on,vectors=6,rss=on,hash=on",
    is_on_taps=True,
    queues=2,
    most_queues=2,
    most_streams=2,
)
MODELS = (
    E1000E,
    Model(
        name="vmxnet3",
        slot=0x12,
        right_slot=0x13,
        kernel_driver="vmxnet3",
        dpdk_driver="net_vmxnet3",
        queues=2,
        most_queues=16,
        most_streams=8,
        too_large=9100,
    ),
    VIRTIO_RSS,
    # The host spreads by a rule of its own: what comes goes to the queue on which its flow was sent last.
    replace(
        VIRTIO_RSS, name="virtio-without-rss", slot=0x16, right_slot=0x17, options=f"{VIRTIO},mq=on,vectors=6"
    ),
    VIRTIO_ONE_QUEUE,
    IGB,
)
E1000E_IN_SLOT = replace(
    E1000E, name="e1000e-in-slot", device="e1000e", buses=(1, 2), queues=1, most_queues=1, most_streams=1
)
UNPLUGGED = (
    E1000E_IN_SLOT,
    replace(
        VIRTIO_ONE_QUEUE, name="virtio-in-slot", slot=0x12, right_slot=0x13, control_queue="own", buses=(3, 4)
    ),
    replace(IGB, name="igb-in-slot", device="igb", slot=0x16, right_slot=0x17, buses=(5, 6)),
)
"""NICs of the machine with slots: they can be taken out while it runs."""
ON_BOTH_NODES = replace(
    E1000E_IN_SLOT, name="e1000e-on-nodes", slot=0x14, right_slot=0x15, buses=(0x41, 0x61)
)
"""The left one is on the NUMA node of CPU 0, the right one on that of CPU 1."""
ROOTS = {0x40: 0, 0x60: 1}
"""First bus of each root complex of its own, and its NUMA node; the first one of all is on none."""


@cache
def _offered_devices() -> str:
    try:
        return subprocess.run([QEMU, "-device", "help"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        return ""


def offered_models(models: Sequence[Model] = MODELS) -> list[Model]:
    """Those of them that this QEMU has; none where there is no QEMU."""
    told = _offered_devices()
    return [model for model in models if f'name "{model.qemu_name}"' in told]


def two_nodes(memory_mb: int) -> list[str]:
    """A CPU and half of the memory each, and a root complex."""
    arguments = []
    for node in range(2):
        arguments += ["-object", f"memory-backend-ram,id=memory{node},size={memory_mb // 2}M"]
        arguments += ["-numa", f"node,nodeid={node},cpus={node},memdev=memory{node}"]
    for bus, node in ROOTS.items():
        arguments += ["-device", f"pxb-pcie,id=root{bus:x},bus_nr={bus:#x},bus=pcie.0,numa_node={node}"]
    return arguments


def slot_of(bus: int) -> list[str]:
    """The port that leads to this bus."""
    root = max((first for first in ROOTS if first < bus), default=None)
    place = f"bus=pcie.0,addr={0xF + bus:#x}" if root is None else f"bus=root{root:x}"
    return ["-device", f"pcie-root-port,id=port{bus:x},chassis={bus},{place}"]


def image() -> VmImage:
    """Debian with what the engine loads at run time, and the tools that a person needs."""
    libraries = [line.split()[2] for line in _told(["ldd", find_engine()]).splitlines() if "=> /" in line]
    owners = _told(["dpkg-query", "--search", *(os.path.realpath(library) for library in libraries)])
    packages = {line.split(":")[0] for line in owners.splitlines()}
    plugins = (
        "librte-mempool-ring*",
        "librte-bus-pci*",
        "librte-net-e1000*",
        "librte-net-vmxnet3*",
        "librte-net-virtio*",
    )
    packages |= set(_told(["dpkg-query", "--show", "--showformat", "${Package}\\n", *plugins]).split())
    packages -= {"libc6", "libgcc-s1", "libstdc++6"}
    return vm_image(
        ImageRecipe(name="nic", packages=("python3", "dpdk", "ethtool", *sorted(packages)), boot=BOOT),
        say=lambda text: print(text, file=sys.stderr),
    )


def _told(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def make_data_disk(path: Path) -> None:
    """The engine that was built, the Python half as it is here, and what it imports."""
    tree = path.with_suffix(".tree")
    (tree / "python").mkdir(parents=True)
    sites = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    command = ["cp", "-rL", str(find_engine()), str(HERE / "guest_agent.py"), str(tree)]
    subprocess.run(command, check=True)
    parts = [
        str(part)
        for part in sites.iterdir()
        if part.name not in NOT_NEEDED and part.suffix not in (".dist-info", ".pth")
    ]
    own = [
        str(part) for part in Path(evenhand.__file__).parents[1].glob("evenhand*")
    ]  # the package, and the module that starts it
    subprocess.run(["cp", "-r", *own, *parts, str(tree / "python")], check=True)
    # Once here instead of each time on an emulated CPU.
    compiling = [
        sys.executable,
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        str(tree / "python"),
    ]
    subprocess.run(compiling, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(path), "400M"], check=True)


class NicMachine:
    """A machine that runs, with a line to its shell. A context manager."""

    def __init__(
        self,
        folder: Path,
        data: Path,
        models: Sequence[Model],
        *,
        has_iommu: bool = True,
        has_two_nodes: bool = False,
    ) -> None:
        self._folder = folder
        arguments = [
            "-drive",
            f"file={data},format=raw,if=none,id=data,readonly=on",
            "-device",
            "virtio-blk-pci,drive=data,bus=pcie.0",
            "-device",
            "virtio-serial-pci,bus=pcie.0",
        ]
        for name in ("commands", "engine"):
            arguments += ["-chardev", f"socket,id={name},path={folder / name},server=on,wait=off"]
            arguments += ["-device", f"virtserialport,chardev={name},name={name}"]
        if has_iommu:
            arguments = ["-device", "intel-iommu,intremap=off,caching-mode=on,aw-bits=48", *arguments]
        if has_two_nodes:
            arguments += two_nodes(MEMORY_MB)
        set_up = ["ip link set lo up", "sysctl -qw net.ipv6.conf.default.disable_ipv6=1"]
        for model in models:
            arguments += self._nics(model, set_up)
        # The cables, and taps where a NIC has more than one queue, lie in a network namespace that ends with
        # QEMU.
        prefix = ["unshare", "--net", "sh", "-ec", "\n".join([*set_up, 'exec "$@"']), "qemu"]
        self._machine = VirtualMachine(
            image(),
            folder=folder,
            arguments=arguments,
            memory_mb=MEMORY_MB,
            kernel_arguments="intel_iommu=on iommu=pt" if has_iommu else "intel_iommu=off",
            prefix=prefix,
        )
        try:
            self._commands = self._connect()
        except BaseException:
            self._machine.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commands.close()
        self._machine.stop()

    def _nics(self, model: Model, set_up: list[str]) -> list[str]:
        arguments = []
        for number, side in enumerate(("left", "right")):
            backend = f"{model.name}-{side}-cable"
            if model.is_on_taps:
                tap = f"tap{model.slot:x}{side[0]}"
                if number == 0:
                    set_up.append(
                        f"ip link add cable{model.slot:x} mtu 9216 type bridge mcast_snooping 0; ip link set"
                        f" cable{model.slot:x} up"
                    )
                set_up.append(
                    f"ip tuntap add {tap} mode tap multi_queue; ip link set {tap} mtu 9216 master"
                    f" cable{model.slot:x} up"
                )
                arguments += [
                    "-netdev",
                    f"tap,id={backend},ifname={tap},script=no,downscript=no,queues={model.queues},vhost=off",
                ]
            else:
                end = "listen" if number == 0 else "connect"
                arguments += ["-netdev", f"socket,id={backend},{end}=127.0.0.1:{7000 + model.slot}"]
            if model.buses is not None:
                arguments += slot_of(model.buses[number])
            keys = ",".join(f"{key}={value}" for key, value in self._keys_of(model, number).items())
            arguments += ["-device", f"{model.qemu_name},{keys}{model.options}"]
        return arguments

    def _keys_of(self, model: Model, number: int) -> dict[str, str]:
        """The keys of one of the two, as QEMU takes them."""
        name = f"{model.name}-{('left', 'right')[number]}"
        if model.buses is not None:
            place = {"bus": f"port{model.buses[number]:x}", "addr": "0"}
        else:
            place = {"bus": "pcie.0", "addr": f"{(model.slot, model.right_slot)[number]:#x}"}
        return {"id": name, "netdev": f"{name}-cable", "mac": model.macs[number], **place}

    def unplug(self, model: Model, side: str) -> None:
        """Ask for it, as somebody does who pushes the button of its slot. The machine lets go of it when
        nobody uses it any more."""
        self._machine.ask_monitor("device_del", id=f"{model.name}-{side}")

    def plug(self, model: Model, side: str) -> None:
        """Put one that was unplugged back into its slot."""
        options = dict(option.split("=") for option in model.options.split(",") if option)
        # QEMU 10 takes each in its own type only; disable-legacy may also be `auto`.
        switches = {
            key: value if key == "disable-legacy" else value == "on" if value in ("on", "off") else int(value)
            for key, value in options.items()
        }
        keys = self._keys_of(model, ("left", "right").index(side))
        self._machine.ask_monitor("device_add", driver=model.qemu_name, **keys, **switches)

    def has(self, address: str) -> bool:
        """Whether there is such a PCI device."""
        return bool(self.run_freely(f"[ -e /sys/bus/pci/devices/{address} ]")["code"] == 0)

    def set_link(self, model: Model, side: str, *, up: bool) -> None:
        """Pull or plug the cable of a NIC."""
        self._machine.ask_monitor("set_link", name=f"{model.name}-{side}", up=up)

    def run(self, command: str, *, timeout_s: float = AGENT_TIMEOUT_S, code: int | None = 0) -> str:
        """What a shell command wrote to stdout; its exit code must be this one, if one is named."""
        answer = self.run_freely(command, timeout_s=timeout_s)
        assert code is None or answer["code"] == code, f"{command}: {answer}"
        return str(answer["stdout"])

    def run_freely(self, command: str, *, timeout_s: float = AGENT_TIMEOUT_S) -> dict[str, Any]:
        """Exit code and both outputs, whatever they are."""
        self._commands.settimeout(timeout_s + 10)
        self._commands.sendall(json.dumps({"run": command, "timeout_s": timeout_s}).encode() + b"\n")
        unread = b""
        while not unread.endswith(b"\n"):
            more = self._commands.recv(65536)
            if not more:
                raise self._machine.trouble("the machine hung up")
            unread += more
        answer: dict[str, Any] = json.loads(unread)
        return answer

    def evenhand(self, arguments: str, *, timeout_s: float = AGENT_TIMEOUT_S) -> dict[str, Any]:
        """The Python half inside."""
        paths = (
            "PYTHONPATH=/mnt/data/python PYTHONDONTWRITEBYTECODE=1 EVENHAND_ENGINE=/mnt/data/evenhand-engine"
        )
        return self.run_freely(f"{paths} COLUMNS=150 python3 -m evenhand {arguments}", timeout_s=timeout_s)

    @contextmanager
    def engine(self) -> Iterator[EngineSession]:
        """A session with an engine inside."""
        with EngineSession([sys.executable, HERE / "to_engine.py", self._folder / "engine"]) as session:
            yield session

    def bind(self, addresses: Sequence[str], driver: str = "vfio-pci") -> None:
        """What dpdk-devbind.py does, which takes half a minute on an emulated CPU."""
        steps = [f"modprobe {driver}"]
        for address in addresses:
            folder = f"/sys/bus/pci/devices/{address}"
            steps.append(f"[ ! -e {folder}/driver ] || echo {address} >{folder}/driver/unbind")
            steps.append(f"echo {driver} >{folder}/driver_override")
            steps.append(f"echo {address} >/sys/bus/pci/drivers_probe")
        self.run(" && ".join(steps))

    def driver_of(self, address: str) -> str:
        """As bound now; empty if there is none."""
        return self.run(f"basename $(readlink /sys/bus/pci/devices/{address}/driver) || true").strip()

    def reserve_hugepages(self, pages: int) -> None:
        self.run(f"echo {pages} >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")

    def _connect(self) -> socket.socket:
        give_up = time.monotonic() + BOOT_TIMEOUT_S
        while "guest agent: ready" not in self._machine.console_text():
            if time.monotonic() > give_up or not self._machine.is_running:
                raise self._machine.trouble("the machine did not come up")
            time.sleep(0.2)
        commands = socket.socket(socket.AF_UNIX)
        commands.connect(str(self._folder / "commands"))
        return commands


def is_unready() -> str:
    """Why this rung cannot run here; empty if it can."""
    if os.geteuid() != 0:
        return "needs root, for taps and for an image of Debian packages"
    try:
        find_engine()
    except HostError as error:
        return str(error)
    missing = [name for name in (QEMU, "mmdebstrap") if not re.search("^/", _told(["which", name]))]
    return f"needs {', '.join(missing)}: tools/install-dependencies prove" if missing else ""
