# SPDX-License-Identifier: Apache-2.0
"""What a Linux DUT seldom answers, each as its program prints it: read as it is, and put back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from evenhand.dut import describe_setup
from evenhand.dut.facts_interface import read_fields
from evenhand.dut.items import Item, moves
from evenhand.dut.linux import LINUX
from evenhand.dut.linux_answers import read_state
from evenhand.dut.linux_items import linux_items
from evenhand.dut.linux_moves import LinuxReader, check_interfaces, move_of
from evenhand.dut.linux_state import LinuxState
from evenhand.dut.shell import Answer
from evenhand.plan import make_plan
from tests.errors import raises

ETH1 = {"ifname": "eth1", "flags": ["UP"], "addr_info": []}
SSH0 = {
    "ifname": "ssh0",
    "flags": ["UP"],
    "addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 24, "scope": "global"}],
}
Read = Callable[..., LinuxState]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """`read_state` of a DUT that answers so; to anything else it says that it does not know it."""

    def state(answers: Mapping[str, object] = {}) -> LinuxState:
        told = {
            "cat /proc/sys/kernel/random/boot_id": "one\n",
            "command -v ip": "/sbin/ip\n",
            "ip -j -d address": [SSH0, ETH1, {**ETH1, "ifname": "eth2"}],
            "if ip -4 route": [],
            "if ip -6 route": [],
            "cd /proc/sys": "".join(
                f"net/ipv{version}/conf/{name}/forwarding:0\n"
                for version in (4, 6)
                for name in ("all", "default", "eth1", "eth2")
            ),
            "ip -j route get": [{"dev": "ssh0"}],
            "ip -j neighbor": [],
            "ethtool -n": "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP"
            " DA\n\n",
            **answers,
        }

        def answer(command: str) -> Answer:
            for begin, found in told.items():
                if command.startswith(begin):
                    return Answer(0, found if isinstance(found, str) else json.dumps(found), "")
            return Answer(1, "not there", "")

        monkeypatch.setattr(
            "evenhand.dut.linux_answers.read_all",
            lambda _, commands: {name: answer(text) for name, text in commands.items()},
        )
        return read_state(None, ("eth1", "eth2"), address="192.0.2.1", peer="192.0.2.9")  # type: ignore[arg-type]

    return state


FIELDS = "IP SA\nIP DA\nL4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n"
HEAD = "UDP over IPV6 flows use these fields for computing Hash flow key:\n"
HASHES = {
    f"{HEAD}{FIELDS}IPv6 Flow Label\n\n": "sdfnl",
    f"{HEAD}L3 proto\n{FIELDS}\n": "tsdfn",
    f"{HEAD}VLAN tag\nL3 proto\n{FIELDS}\n": "vtsdfn",
    f"{HEAD}L2DA\nIP SA\nIP DA\n\n": "msd",
    f"{HEAD}IP SA\nIP DA\nGTP TEID\n\n": "sde",
    "\tAll matching flows discarded on RX\n": "r",
    f"{HEAD}None\n": "",
    f"{HEAD}{FIELDS}\n": "sdfn",
}
"""What `ethtool -n` prints, and the letters that `ethtool -N` takes for it."""


@pytest.mark.parametrize("text", HASHES)
def test_every_field_of_a_hash_is_read_and_put_back(read: Read, text: str) -> None:
    """RSS-02: fields beside the four are a hash of their own, of neither type, and the DUT's to get back."""
    letters = HASHES[text]
    state = read({"ethtool -n": text})
    assert state.hashes["eth1", "udp6"] == letters
    setup = describe_setup(make_plan("gateway-v6"), left="eth1", right="eth2", hash_type="type2")
    item = next(
        item for item in linux_items([setup], state) if item.kind == "hash" and item.key == ("eth1", "udp6")
    )
    assert item.is_change == (letters != "sdfn")
    (back,) = move_of(item, item.wanted, item.before)
    assert back.command == f"ethtool -N eth1 rx-flow-hash udp6 {letters or repr(letters)}"
    known = {"sdfn": "sdfn", "sd": "sd"}
    assert read_fields(text) == known.get(letters)


@pytest.mark.parametrize("text", HASHES)
def test_the_printed_set_up_puts_every_field_back(text: str) -> None:
    setup = describe_setup(make_plan("gateway-v6"), left="eth1", right="eth2", hash_type="type2")
    undo = next(
        line for step in LINUX.steps(setup) for line in step.undo if "-N eth1 rx-flow-hash udp6" in line
    )
    script = undo.replace("$evenhand/gateway_v6.hash-eth1-udp6", "/dev/stdin")
    ended = subprocess.run(
        ["sh", "-c", f'ethtool() {{ for last; do :; done; printf %s "$last"; }}\n{script}'],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == HASHES[text]


def _table(rings: int, entries: list[int], name: str = "eth1") -> str:
    rows = (
        f"{at:5}:  " + "".join(f"{entry:6}" for entry in entries[at : at + 8])
        for at in range(0, len(entries), 8)
    )
    lines = [f"RX flow hash indirection table for {name} with {rings} RX ring(s):", *rows]
    return "\n".join([*lines, "RSS hash key:", ":".join(["6d"] * 40), ""])


@pytest.mark.parametrize(
    ("driver", "rings", "entries", "queues", "told"),
    [
        ("ixgbe", 63, 128, 16, "default 16"),  # 82599: no more queues fit into an entry
        ("ixgbe", 8, 128, 8, "default 8"),
        ("ixgbe", 63, 128, 4, "equal 4"),
        ("ixgbe", 63, 512, 63, "default 63"),  # X550
        ("ixgbe", 63, 512, 16, "equal 16"),
        (None, 63, 128, 16, "default 16"),
        ("mlx4_en", 12, 128, 8, "default 8"),
        ("mlx5_core", 63, 128, 16, "equal 16"),
        ("mlx5_core", 63, 128, 63, "default 63"),
    ],
)
def test_a_table_that_is_the_drivers_own_is_given_back_as_such(
    read: Read, driver: str | None, rings: int, entries: int, queues: int, told: str
) -> None:
    """RSS-04: what was the driver's own follows its queues again."""
    text = _table(rings, [entry % queues for entry in range(entries)])
    says = {} if driver is None else {"ethtool -i": f"driver: {driver}\nversion: 6.1.0\n"}
    state = read({"ethtool -x": text, **says})
    assert state.hash_tables["eth1"] == told


def test_a_member_of_a_vrf_is_no_port_of_a_bridge(read: Read) -> None:
    member = {
        **ETH1,
        "master": "blue",
        "linkinfo": {"info_slave_kind": "vrf", "info_slave_data": {"table": 10}},
    }
    port = {**ETH1, "master": "br0", "linkinfo": {"info_slave_kind": "bridge"}}
    named = [("left", "eth1"), ("right", "eth2")]
    for row, code, said in (
        (member, "rig.member-of-a-vrf", "member of the VRF blue"),
        (port, "rig.port-of-a-bridge", "port of br0"),
    ):
        state = read({"ip -j -d address": [SSH0, row, {**ETH1, "ifname": "eth2"}]})
        with raises(code, match=said):
            check_interfaces(named, state)


HOPS = [
    {"id": 12, "gateway": "10.0.0.2", "dev": "eth1", "scope": "link", "protocol": "zebra", "flags": []},
    {"id": 13, "gateway": "10.0.1.2", "dev": "eth2", "scope": "link", "protocol": "zebra", "flags": []},
    {"id": 20, "group": [{"id": 12}, {"id": 13, "weight": 2}], "protocol": "zebra", "flags": []},
]


@pytest.mark.parametrize(
    ("row", "text", "interfaces"),
    [
        (
            {"via": {"family": "inet6", "host": "fe80::1"}, "dev": "eth1"},
            "via inet6 fe80::1 dev eth1",
            ["eth1"],
        ),
        ({"nhid": 12}, "via 10.0.0.2 dev eth1", ["eth1"]),
        ({"nhid": 12, "gateway": "10.0.0.2", "dev": "eth1"}, "via 10.0.0.2 dev eth1", ["eth1"]),
        ({"nhid": 20}, "via 10.0.0.2 dev eth1 via 10.0.1.2 dev eth2", ["eth1", "eth2"]),
        ({"nhid": 99}, "nhid 99", []),
        (
            {"nexthops": [{"via": {"family": "inet6", "host": "fe80::1"}, "dev": "eth1", "weight": 1}]},
            "via inet6 fe80::1 dev eth1",
            ["eth1"],
        ),
    ],
)
def test_a_route_is_shown_with_its_next_hop_however_it_is_told(
    read: Read, row: dict[str, Any], text: str, interfaces: list[str]
) -> None:
    route = {"dst": "198.18.0.0/16", "protocol": "static", "flags": [], **row}
    state = read({"if ip -4 route": [route], "ip -j nexthop": HOPS})
    found = state.route("198.18.0.0/16")
    assert found is not None
    assert (found.text, list(found.interfaces)) == (text, interfaces)
    setup = describe_setup(make_plan("gateway-v4"), left="eth1", right="eth2")
    if text != "via 10.0.0.2 dev eth1":
        with raises("rig.other-route-to-test-network", match=text):
            linux_items([setup], state)
    else:
        item = Item("route", ("198.18.0.0/16",), text, text)
        gone = read()
        assert moves([item], LinuxReader(state), back=True) == []
        ((_, now, target),) = moves([item], LinuxReader(gone), back=True)
        assert [move.command for move in move_of(item, now, target)] == [
            "route add 198.18.0.0/16 via 10.0.0.2 dev eth1"
        ]


REAL_LINKS = """[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,
"qdisc":"noqueue","operstate":"UNKNOWN","group":"default","txqlen":1000,"link_type":"loopback","address":"00:00:00:00:00:00",
"promiscuity":0,"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo",
"valid_life_time":4294967295,"preferred_life_time":4294967295}]},{},
{"ifindex":2,"link_index":182,"ifname":"ssh0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,
"qdisc":"noqueue","operstate":"UP","group":"default","link_type":"ether","address":"d2:6e:60:bf:5e:9f",
"broadcast":"ff:ff:ff:ff:ff:ff","link_netnsid":0,"promiscuity":0,"linkinfo":{"info_kind":"veth"},"addr_info":[
{"family":"inet","local":"192.0.2.1","prefixlen":24,"broadcast":"192.0.2.255","scope":"global","dynamic":true,
"label":"ssh0","valid_life_time":86262,"preferred_life_time":86262},{}]},
{"ifindex":3,"ifname":"eth1","flags":["NO-CARRIER","BROADCAST","MULTICAST","UP"],"mtu":1500,"qdisc":"mq",
"operstate":"DOWN","link_type":"ether","address":"52:54:00:12:34:10","addr_info":[{"family":"inet",
"local":"10.151.0.71","prefixlen":24,"broadcast":"10.151.0.255","scope":"global","noprefixroute":true,
"label":"eth1","valid_life_time":4294967295,"preferred_life_time":4294967295}]},
{"ifindex":4,"link":"eth1","ifname":"eth1.20","flags":["BROADCAST","MULTICAST","M-DOWN"],"mtu":1500,
"link_type":"ether","address":"52:54:00:12:34:10","linkinfo":{"info_kind":"vlan","info_data":{
"protocol":"802.1Q","id":20,"flags":["REORDER_HDR"]}},"addr_info":[]},
{"ifindex":5,"ifname":"eth2","flags":["BROADCAST","MULTICAST"],"mtu":1500,"link_type":"ether",
"address":"52:54:00:12:34:11","addr_info":[]}]"""
REAL_ROUTES = """[{"dst":"default","gateway":"192.0.2.254","dev":"ssh0","protocol":"dhcp",
"prefsrc":"192.0.2.1","metric":100,"flags":[]},{"type":"blackhole","dst":"10.0.0.0/8","dev":"lo","flags":[]},
{"dst":"172.18.113.59","dev":"eth1","protocol":"kernel","scope":"link","flags":["linkdown"]},
{"dst":"10.2.0.0/16","metric":605,"nexthops":[{"gateway":"10.151.0.1","dev":"eth1","weight":1,"flags":[]}]},
{"dst":"10.3.0.0/16","protocol":"static","metrics":[{"mtu":1400}],"nexthops":[
{"gateway":"10.151.0.1","dev":"eth1","weight":1,"flags":["linkdown"]},
{"dev":"eth2","weight":2,"flags":[]}]}]"""


def test_links_and_routes_as_public_reports_have_them(read: Read) -> None:
    """Empty objects are of iproute2 before 5.0, for what it has filtered out."""
    state = read({"ip -j -d address": REAL_LINKS, "if ip -4 route": REAL_ROUTES})
    links = state.links
    assert list(links) == ["lo", "ssh0", "eth1", "eth1.20", "eth2"]
    assert links["ssh0"].addresses == {"192.0.2.1/24": None}  # it runs out: nothing that can be put back
    assert links["eth1"].addresses == {"10.151.0.71/24": "brd 10.151.0.255 noprefixroute"}
    assert (links["eth1"].is_up, links["eth1"].has_carrier) == (True, False)
    assert (links["eth1.20"].lower, links["eth1.20"].is_up) == ("eth1", False)
    routes = {route.prefix: route.text for route in state.routes}
    assert routes == {
        "0.0.0.0/0": "via 192.0.2.254 dev ssh0",
        "10.0.0.0/8": "blackhole",
        "172.18.113.59/32": "dev eth1",
        "10.2.0.0/16": "via 10.151.0.1 dev eth1",
        "10.3.0.0/16": "via 10.151.0.1 dev eth1 dev eth2",
    }


def test_a_default_route_by_a_next_hop_object_is_never_cut(read: Read) -> None:
    route = {"dst": "default", "nhid": 12, "protocol": "zebra", "flags": []}
    state = read({"if ip -4 route": [route], "ip -j nexthop": HOPS})
    with raises("rig.carries-default-route", match="eth1 carries a default route"):
        check_interfaces([("left", "eth1"), ("right", "eth2")], state)
