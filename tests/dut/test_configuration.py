# SPDX-License-Identifier: Apache-2.0
"""Configurations of devices as lines, and what puts back what a set-up did to them."""

from __future__ import annotations

import sys

import pytest

from evenhand.dut.configuration import (
    ConfigurationChange,
    Footprint,
    put_back_entries,
    put_back_indented,
    put_back_tree,
    read_flat,
    read_indented,
)
from evenhand.dut.dialogs import DIALOGS
from evenhand.dut.terminal import open_terminal
from evenhand.testbed import TestbedDut as KnownDut
from tests.errors import raises

IOS = """Building configuration...

Current configuration : 3410 bytes
!
! Last configuration change at 10:00:00 UTC
version 17.9
crypto pki certificate chain self
 certificate self-signed 01
  30820330 30820218
  \tquit
interface Gi0/0
 ip address 10.0.9.1 255.255.255.0 secondary
 ip address 10.0.0.1 255.255.255.0
!
router bgp 65000
 !
 address-family ipv4
  network 198.18.0.0
 exit-address-family
ip route 198.18.0.0 255.255.0.0 10.0.0.2
!
end
"""


def test_ios_lines_are_below_others() -> None:
    lines = read_indented(IOS)
    assert ("interface Gi0/0", "ip address 10.0.0.1 255.255.255.0") in lines
    assert ("router bgp 65000", "address-family ipv4", "network 198.18.0.0") in lines
    assert lines[-1] == ("ip route 198.18.0.0 255.255.0.0 10.0.0.2",)
    assert lines[0] == ("version 17.9",)


def test_a_primary_address_goes_after_the_secondary_ones_and_the_old_one_comes_back() -> None:
    now = read_indented(IOS)
    before = (*(line for line in now if line[0][:5] not in ("inter", "ip ro")), ("interface Gi0/0",))
    before += (("interface Gi0/0", "ip address 172.16.0.1 255.255.255.0"), ("interface Gi0/0", "shutdown"))
    sent = (
        "interface Gi0/0",
        " ip address 10.0.0.1 255.255.255.0",
        " ip address 10.0.9.1 255.255.255.0 secondary",
        "ip route 198.18.0.0 255.255.0.0 10.0.0.2",
    )
    change = ConfigurationChange.between(before, now, Footprint(sent, ("Gi0/0", "Gi0/1")))
    commands = put_back_indented(change.left(before, now), now)
    assert commands == [
        *("interface Gi0/0", "no ip address 10.0.9.1 255.255.255.0 secondary", "exit"),
        "no ip route 198.18.0.0 255.255.0.0 10.0.0.2",
        *("interface Gi0/0", "no ip address 10.0.0.1 255.255.255.0", "exit"),
        *("interface Gi0/0", "ip address 172.16.0.1 255.255.255.0", "exit"),
        *("interface Gi0/0", "shutdown", "exit"),
    ]


def test_a_sub_interface_of_the_set_up_goes_as_a_whole() -> None:
    added = (("interface Et1.100",), ("interface Et1.100", "encapsulation dot1q vlan 100"))
    assert put_back_indented(ConfigurationChange(added=added, removed=()), added) == ["no interface Et1.100"]


def test_what_is_on_for_all_goes_off_again() -> None:
    before, after = (("no ip routing",),), (("ip routing",), ("ipv6 unicast-routing",))
    change = ConfigurationChange.between(
        before, after, Footprint(("ip routing", "ipv6 unicast-routing"), ("Et1", "Et2"))
    )
    commands = put_back_indented(change.left(before, after), after)
    assert commands == ["no ipv6 unicast-routing", "no ip routing", "no ip routing"]


def test_lines_of_others_are_not_of_the_set_up() -> None:
    """A mask is no address, and a name within a longer one is none."""
    footprint = Footprint(("ip route 198.18.0.0 255.255.0.0 10.0.0.2",), ("Et1", "Et2.100"))
    assert footprint.has(("interface Et2",))
    assert footprint.has(("arp 10.0.0.2 0200.0000.0001 arpa",))
    for line in ("ip route 10.9.0.0 255.255.0.0 192.0.2.1", "interface Et11", "hostname 198.18.0.01"):
        assert not footprint.has((line,))


TREE = put_back_tree("set ", ("interfaces", "unit", "family", "address", "route"))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "delete interfaces ge-0/0/0"),
        (["interfaces ge-0/0/0 mtu 9000"], "delete interfaces ge-0/0/0 unit 0"),
        (["interfaces ge-0/0/0 unit 0 family inet6"], "delete interfaces ge-0/0/0 unit 0 family inet"),
        (
            ["interfaces ge-0/0/0 unit 0 family inet address 10.9.9.9/24"],
            "delete interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24",
        ),
        (
            ["interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24 arp 10.0.0.9 mac 02:00:00:00:00:09"],
            "delete interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24",
        ),
    ],
)
def test_the_node_that_is_the_set_ups_alone_goes(others: list[str], expected: str) -> None:
    """And nothing above it: another's unit, family or address."""
    added = ("set interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24",)
    now = (added, *((f"set {other}",) for other in others))
    assert TREE(ConfigurationChange(added=(added,), removed=()), now) == [expected]


def test_the_empty_rest_of_a_node_goes_in_the_next_pass() -> None:
    address = ("set interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24",)
    change = ConfigurationChange(added=(address,), removed=(("set interfaces ge-0/0/0 disable",),))
    now = (("set interfaces ge-0/0/0 unit 0",), ("set interfaces ge-0/0/0 unit 1",))
    left = change.left((("set interfaces ge-0/0/0 disable",),), now)
    assert left.added == (now[0],)
    assert TREE(left, now) == ["delete interfaces ge-0/0/0 unit 0", "set interfaces ge-0/0/0 disable"]


def test_routeros_finds_its_entries_by_their_comments() -> None:
    text = """# 2026-11-29 by RouterOS 7.20
/ip address add address=10.0.0.1/24 comment=evenhand-gateway_v4-left interface=ether2 network=10.0.0.0
/ip address add address=10.0.0.9/24 comment=theirs interface=ether2
/ip firewall connection tracking set udp-timeout=1h
"""
    now = read_flat(text)
    assert len(now) == 3
    before = (now[1], ("/ip firewall connection tracking set udp-timeout=20s",))
    sent = ("/ip firewall connection tracking set udp-timeout=3600s",)
    change = ConfigurationChange.between(before, now, Footprint(sent, ("ether2", "ether3")))
    assert put_back_entries(change.left(before, now), now) == [
        '/ip address remove [find comment="evenhand-gateway_v4-left"]',
        "/ip firewall connection tracking set udp-timeout=20s",
    ]


@pytest.mark.parametrize(
    ("system", "answer"),
    [
        ("cisco-ios", "                ^\n% Invalid input detected at '^' marker."),
        ("cisco-ios", "% 10.0.0.0 overlaps with GigabitEthernet0/0/4"),
        ("cisco-ios", "Command rejected: not supported on this port"),
        ("arista-eos", "% Address 10.0.0.1/24 is already assigned to interface Ethernet3"),
        ("junos", "                ^\nsyntax error, expecting <command>."),
        ("junos", "error: configuration database locked by:\n  root terminal p0 (pid 1)"),
        ("vyos", "\n  Configuration path: [protocols nonsense] is not valid\n  Set failed"),
        ("vyos", "[[protocols static]] failed\nCommit failed"),
        ("srlinux", "Parsing error: Unknown token 'adress'. Options are ['address']"),
        ("srlinux", "Error: Path '.interface{.name==\"x\"}' is not valid"),
        ("routeros", "input does not match any value of interface"),
    ],
)
def test_refusals_are_seen(system: str, answer: str) -> None:
    assert DIALOGS[system].refusal.search(answer)


@pytest.mark.parametrize(
    ("system", "answer"),
    [
        ("cisco-ios", ""),
        ("cisco-ios", "%LINEPROTO-5-UPDOWN: Line protocol on Interface Gi0/0, changed state to up"),
        ("cisco-ios", "%Warning: use /31 mask on non point-to-point interface cautiously"),
        ("junos", "warning: statement not found"),
        ("junos", "commit confirmed will be automatically rolled back in 5 minutes unless confirmed"),
        ("vyos", "  Configuration path: [protocols static] already exists"),
        ("vyos", "No configuration changes to commit"),
        ("srlinux", "All changes have been committed. Starting new transaction."),
        ("routeros", ""),
    ],
)
def test_what_is_no_refusal(system: str, answer: str) -> None:
    assert not DIALOGS[system].refusal.search(answer)


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapli.cli", None)
    dut = KnownDut(ssh="admin@192.0.2.2", os="junos", left=("ge-0/0/0",), right=("ge-0/0/1",))
    with raises("rig.devices-not-installed", match="scrapli"), open_terminal(dut):
        pass
