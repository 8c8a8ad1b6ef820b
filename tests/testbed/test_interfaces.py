# SPDX-License-Identifier: Apache-2.0
"""Ports that the host itself uses are refused before anything starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from socket import AF_INET, AF_INET6

import pytest
from pyroute2 import IPRoute

from evenhand.testbed import HostNetwork, check_device, interface_of, read_host_network
from evenhand.testbed.interfaces import DeviceUse
from evenhand.testbed.links import KernelLink, read_addresses, read_links
from tests.errors import raises

NETWORK = HostNetwork(frozenset({"lo", "eth0", "lab0", "lab1"}), {"eth0": "it carries a default route"})


@pytest.mark.parametrize(
    "device",
    [
        "net_af_xdp0,iface=eth0,force_copy=1",
        "net_af_packet,iface=eth0",
        "net_pcap0,rx_iface=lab0,tx_iface=eth0",
        "net_tap0,iface=eth0",
    ],
)
def test_an_interface_with_the_default_route_is_refused(device: str) -> None:
    """R6815-01."""
    with raises("rig.not-isolated", match="eth0"):
        check_device(device, NETWORK, where="left.device")


@pytest.mark.parametrize(
    ("device", "code"),
    [
        ("net_af_xdp0,iface=nothing", "rig.port-missing"),
        ("net_pcap0,tx_iface=nothing", "rig.port-missing"),
        ("net_af_xdp0", "rig.device-key-missing"),
        ("0000:7f:1f.7", "rig.port-missing"),
        ("7f:1f.7", "rig.port-missing"),
    ],
)
def test_a_port_that_does_not_exist_is_refused(device: str, code: str, tmp_path: Path) -> None:
    with raises(code) as caught:
        check_device(device, NETWORK, where="left.device", pci_devices=tmp_path)
    assert caught.value.where == "left.device"
    assert caught.value.next_step


@pytest.mark.parametrize(
    "device",
    [
        "net_af_xdp0,iface=lab0",
        "net_memif0,role=client,socket=/tmp/no-such-socket",
        "net_ring0",
        "net_tap0,iface=new0",
        "net_pcap0,tx_pcap=b.pcap",
    ],
)
def test_other_ports_are_accepted(device: str) -> None:
    check_device(device, NETWORK, where="left.device")


def test_a_nic_that_the_kernel_uses_for_its_default_route_is_refused(tmp_path: Path) -> None:
    """R6815-01: some NICs stay with the kernel while DPDK uses them."""
    (tmp_path / "0000:01:00.0" / "net" / "eth0").mkdir(parents=True)
    (tmp_path / "0000:01:00.1" / "net" / "lab0").mkdir(parents=True)
    (tmp_path / "0000:01:00.2" / "virtio3" / "net" / "eth0").mkdir(parents=True)
    check_device("01:00.1", NETWORK, where="", pci_devices=tmp_path)
    for device in ("01:00.0", "01:00.2"):
        with raises("rig.not-isolated"):
            check_device(device, NETWORK, where="", pci_devices=tmp_path)


def test_the_interface_of_a_software_port_is_known() -> None:
    devices = [
        "net_af_xdp0,iface=lab0,start_queue=0",
        "net_pcap0,rx_pcap=a,tx_iface=lab1",
        "net_memif0,role=client",
        "0000:01:00.0",
    ]
    assert [interface_of(device) for device in devices] == ["lab0", "lab1", None, None]


def test_the_kernel_names_its_loopback() -> None:
    network = read_host_network()
    assert "lo" in network.names
    assert "lo" not in network.default_route_of


def test_the_kernel_is_understood_as_pyroute2_understands_it() -> None:
    """Every interface of this machine, and its addresses."""
    with IPRoute() as ip:
        expected = {
            link["index"]: KernelLink(
                name=link.get_attr("IFLA_IFNAME"),
                kind=(link.get_attr("IFLA_LINKINFO") or {}).get("kind"),
                other=link.get_attr("IFLA_LINK"),
                namespace=link.get_attr("IFLA_LINK_NETNSID"),
                master=link.get_attr("IFLA_MASTER"),
                device=link.get_attr("IFLA_PARENT_DEV_NAME"),
            )
            for link in ip.get_links()
        }
        found = [
            (address["index"], address.get_attr("IFA_LOCAL") or address.get_attr("IFA_ADDRESS"))
            for family in (AF_INET, AF_INET6)
            for address in ip.get_addr(family=family)
            if address["scope"] != 253
        ]
    assert read_links() == expected
    assert [*read_addresses(AF_INET), *read_addresses(AF_INET6)] == found
    assert found


def test_to_ask_the_kernel_loads_no_library_for_it() -> None:
    """pyroute2 and what it loads took 9 MB of each process that measures."""
    program = (
        "import sys; from evenhand.testbed import read_host_network; read_host_network()\n"
        "print([name for name in ('pyroute2', 'asyncio', 'ssl', 'multiprocessing') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


_IN_A_NAMESPACE = """
import ctypes, json, subprocess
from evenhand.testbed import read_host_network
from pyroute2 import IPRoute
assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0
with IPRoute() as ip:
    def add(name, **options):
        ip.link("add", ifname=name, **options)
        index = ip.link_lookup(ifname=name)[0]
        ip.link("set", index=index, state="up")
        return index
    names = ("plain", "port", "bare", "hop")
    plain, port, bare, hop = (add(name + "0", kind="veth", peer=name + "1") for name in names)
    bridge = add("bridge0", kind="bridge")
    ip.link("set", index=port, master=bridge)
    for name in ("plain1", "port1", "bare1", "hop1"):
        ip.link("set", index=ip.link_lookup(ifname=name)[0], state="up")
    hosts = {plain: "192.0.2.1", bridge: "192.0.2.65", hop: "192.0.2.129", bare: "192.0.2.193"}
    for index, address in hosts.items():
        ip.addr("add", index=index, address=address, prefixlen=26)
    ip.route("add", dst="default", oif=plain, gateway="192.0.2.2")
    ip.route("add", dst="default", oif=bridge, gateway="192.0.2.66", table=100)
    parent = ip.link_lookup(ifname="bare1")[0]
    upper = add("upper0", kind="macvlan", link=parent)
    add("beside0", kind="macvlan", link=parent)
    ip.route("add", dst="default", oif=upper, family=10, scope=0)
hops = "nexthop via 192.0.2.130 nexthop via 192.0.2.131"
subprocess.run(f"ip route add default table 101 {hops}".split(), check=True)
print(json.dumps(sorted(read_host_network().default_route_of)))
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace")
def test_default_routes_are_found_with_what_carries_their_interface() -> None:
    """R6815-01: asked of a real kernel, in a namespace of its own.

    Also a macvlan beside, and the other end of a bridge's veth port: what is sent there reaches the same
    wire.
    """
    output = subprocess.run(
        [sys.executable, "-c", _IN_A_NAMESPACE], check=True, capture_output=True, text=True
    ).stdout
    assert output.strip() == '["bare1", "beside0", "bridge0", "hop0", "plain0", "port0", "port1", "upper0"]'


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a socket to another user")
@pytest.mark.parametrize(("folder_mode", "socket_mode"), [(0o700, 0o777), (0o755, 0o700)])
def test_a_socket_of_another_user_is_named_as_that(folder_mode: int, socket_mode: int) -> None:
    """As an ordinary user a socket of root's was "not a socket"."""
    program = (
        "import os, socket, sys, tempfile\n"
        "from evenhand.base.errors import HostError\n"
        "from evenhand.testbed import HostNetwork, check_device\n"
        "nothing = HostNetwork(frozenset(), {})\n"
        "folder = tempfile.mkdtemp(); path = folder + '/s'\n"
        "listening = socket.socket(socket.AF_UNIX); listening.bind(path)\n"
        f"os.chmod(path, {socket_mode}); os.chmod(folder, {folder_mode}); os.setuid(65534)\n"
        "try:\n"
        "    device = f'net_memif0,role=client,socket={path},socket-abstract=no'\n"
        "    check_device(device, nothing, where='left')\n"
        "except HostError as error:\n"
        "    print(error.code)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout == "rig.socket-denied\n", ended.stderr


def pci_device(root: Path, address: str, driver: str, *inside: str) -> Path:
    """As /sys shows it in a namespace that does not have its interface."""
    folder = root / address
    for name in inside:
        (folder / name / "driver").mkdir(parents=True)
    folder.mkdir(exist_ok=True)
    (root / "drivers" / driver).mkdir(parents=True, exist_ok=True)
    (folder / "driver").symlink_to(root / "drivers" / driver)
    return folder


@pytest.mark.parametrize(
    ("driver", "inside", "use", "said"),
    [
        ("ice", (), DeviceUse(in_the_way={"0000:01:00.0": "it is the uplink"}), "it is the uplink"),
        (
            "virtio-pci",
            ("virtio2",),
            DeviceUse(in_the_way={"virtio2": "it is the uplink"}),
            "it is the uplink",
        ),
        ("ice", (), DeviceUse(), "cannot be told"),
        ("mlx5_core", (), DeviceUse(), "cannot be told"),
        ("virtio-pci", ("virtio2",), DeviceUse(), "cannot be told"),
        ("ice", (), DeviceUse(seen={"0000:01:00.0"}), None),
        ("vfio-pci", (), DeviceUse(), None),
    ],
)
def test_a_device_that_another_namespace_uses_is_refused_by_the_device(
    tmp_path: Path, driver: str, inside: tuple[str, ...], use: DeviceUse, said: str | None
) -> None:
    """R6815-01: in a container, and in `ip netns exec`, the host's uplink has no interface that can be
    seen."""
    pci_device(tmp_path, "0000:01:00.0", driver, *inside)
    network = HostNetwork(frozenset({"lo"}), {}, devices=use)
    if said is None:
        check_device("0000:01:00.0", network, where="left.device", pci_devices=tmp_path)
        return
    with raises("rig.not-isolated", match=said):
        check_device("0000:01:00.0", network, where="left.device", pci_devices=tmp_path)


_IN_TWO_NAMESPACES = """
import ctypes, json, os, subprocess
from pathlib import Path
from evenhand.testbed import read_host_network
def unshare():
    assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0
def ip(text):
    subprocess.run(["ip", *text.split()], check=True)
unshare()
null = subprocess.DEVNULL
holder = subprocess.Popen(["sleep", "20"], stdout=null, stderr=null)  # keeps the first namespace
unshare()
other = f"nsenter --net=/proc/{holder.pid}/ns/net ip "
def there(text):
    subprocess.run((other + text).split(), check=True)
there("link add up0 type veth peer name up1")
there("link set up0 up")
there("link set up1 up")
there("address add 192.0.2.1/24 dev up0")
there("route add default via 192.0.2.2")
there("link add free0 type veth peer name free1")
for lower, name in (("up0", "child0"), ("free0", "child1")):
    there(f"link add {name} link {lower} type macvlan")
    there(f"link set {name} netns {os.getpid()}")
print(json.dumps(read_host_network().default_route_of))
holder.kill()
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for network namespaces")
def test_an_interface_on_the_uplink_of_another_namespace_is_in_the_way() -> None:
    """R6815-01: a container's macvlan reaches the wire of the host's uplink."""
    output = subprocess.run(
        [sys.executable, "-c", _IN_TWO_NAMESPACES], check=True, capture_output=True, text=True
    ).stdout
    assert set(json.loads(output)) == {"child0"}
