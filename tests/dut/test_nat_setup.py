# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut setup` for plans whose DUT keeps state: what is printed for Linux, and what is said of the
others."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from evenhand.dut import OPERATING_SYSTEMS, describe_setup
from evenhand.dut.description import describe_setups
from evenhand.dut.nat import NatWishes, nat_rules, settings_of_nat, start_nat
from evenhand.dut.setup import fingerprint_of
from evenhand.plan import make_plan
from tests.cli.running import Ended
from tests.dut import goldens
from tests.plan.routed import STATEFUL

Run = Callable[..., Ended]
LINUX = ("--os", "linux", "--left", "eth1", "--right", "eth2")


@pytest.mark.parametrize("plan", STATEFUL)
@pytest.mark.parametrize(
    "system", [name for name, each in OPERATING_SYSTEMS.items() if not (each.translates or each.nats)]
)
def test_a_system_without_commands_for_a_nat_is_told_all_that_it_needs(
    dut_setup: Run, system: str, plan: str
) -> None:
    left, right = OPERATING_SYSTEMS[system].interfaces
    ended = dut_setup(plan, "--os", system, "--left", left, "--right", right)
    assert ended.code == 2
    assert not ended.out
    text = " ".join(ended.err.split())
    told = make_plan(plan)
    assert told.nat is not None
    needed = [f"needs a {told.nat.title}", f"the hosts {told.nat.inside} behind the pool {told.nat.pool}"]
    for side in told.sides:
        assert side.gateway is not None
        needed += [f"{side.name} interface {side.dut[0]}", f"{side.routes[0]} by {side.gateway.ip}"]
    versions = {"nat44": "IPv4", "nat64": "IPv4 and IPv6", "nat66": "IPv6"}
    kind = plan.partition("_")[0]
    needed.append(f"forwarding of {versions[kind]}.")
    assert [words for words in needed if words not in text] == []
    assert ("prefix" in text) == (kind == "nat64")


@pytest.mark.parametrize("plan", STATEFUL)
def test_what_is_printed_for_a_nat_is_its_golden_file(dut_setup: Run, plan: str) -> None:
    printed = "\n".join(dut_setup(plan, *LINUX, *undo).out for undo in ((), ("--undo",)))
    assert printed == (goldens.FOLDER / "linux" / f"{plan}.txt").read_text(encoding="utf-8")


def test_only_a_nat64_has_a_translator_before_it(dut_setup: Run) -> None:
    assert "map 10.16.0.0/16 2001:2::/112\n" in dut_setup("nat64", *LINUX).out
    for plan in ("nat44", "nat66"):
        assert "tayga" not in dut_setup(plan, *LINUX).out
        assert "nothing is translated" in dut_setup(plan, *LINUX, "--translator", "tayga").err


def test_jool_keeps_the_connections_of_a_nat64_by_itself(dut_setup: Run) -> None:
    printed = dut_setup("nat64", *LINUX, "--translator", "jool").out
    assert "jool instance add evenhand --netfilter --pool6 2001:2:0:64::/96\n" in printed
    pools = re.findall(r"pool4 add --udp (\S+) 1-65535 --force\n", printed)
    first = (
        "198.18.0.1/32",
        "198.18.0.2/31",
        "198.18.0.4/30",
        "198.18.0.8/29",
        "198.18.0.16/28",
        "198.18.0.32/32",
    )
    assert pools == list(first)
    few = dut_setup("nat64", *LINUX, "--translator", "jool", "--hosts", "2,9").out
    assert re.findall(r"pool4 add --udp (\S+) ", few) == ["198.18.0.1/32", "198.18.0.2/32"]
    assert "nft -f" not in printed
    assert "tayga" not in printed.lower()


def test_jool_chooses_addresses_and_ports_by_itself(dut_setup: Run) -> None:
    for option in (("--nat-ports", "random"), ("--nat-addresses", "one"), ("--nat-table", "9")):
        ended = dut_setup("nat64", *LINUX, "--translator", "jool", *option)
        assert ended.code == 2
        assert "Jool is the NAT itself" in ended.err


def test_what_can_be_chosen_of_a_nat_is_refused_without_one(dut_setup: Run) -> None:
    for option in (("--nat-ports", "random"), ("--nat-addresses", "one"), ("--nat-table", "9")):
        ended = dut_setup("gateway-v4", *LINUX, *option)
        assert ended.code == 2
        assert "keeps no state" in ended.err


def test_one_address_for_all_hosts_is_the_first_of_the_pool(dut_setup: Run) -> None:
    """As behind a NAT that masquerades, and still one that the tester expects."""
    printed = dut_setup("nat44", *LINUX, "--nat-addresses", "one", "--only", "nat").out
    assert 'oifname "eth2" ip saddr 10.16.0.0/16 snat to 198.18.0.1\n' in printed
    peers = make_plan("nat44").right.peers
    assert peers is not None
    assert str(peers.address(0)) == "198.18.0.1"
    document = dut_setup("nat44", *LINUX, "--nat-addresses", "one", "--json").json
    assert document["nat"] == {"ports": "kept", "addresses": "one", "table_size": None}


@pytest.mark.parametrize(
    ("plan", "hosts", "own"),
    [
        ("nat44-masquerade", "ip saddr 10.16.0.0/16", "10.0.1.1"),
        ("nat64-masquerade", "ip saddr 10.16.0.0/16", "10.0.1.1"),
        ("nat66-masquerade", "ip6 saddr 2001:2::/112", "2001:2:0:9000::1"),
    ],
)
def test_a_nat_that_masquerades_has_the_address_of_its_interface_as_pool(
    dut_setup: Run, plan: str, hosts: str, own: str
) -> None:
    """Nothing of the DUT's own address may end in a blackhole, and there are no addresses to choose."""
    peers = make_plan(plan).right.peers
    assert peers is not None
    assert (str(peers.first_address), peers.count) == (own, 1)
    printed = dut_setup(plan, *LINUX, "--only", "nat").out
    assert f'oifname "eth2" {hosts} masquerade\n' in printed
    assert "blackhole" not in printed
    assert "masquerade fully-random\n" in dut_setup(plan, *LINUX, "--nat-ports", "random").out
    refused = dut_setup(plan, *LINUX, "--nat-addresses", "one")
    assert refused.code == 2
    assert "--nat-addresses" in refused.err


@pytest.mark.parametrize(
    ("size", "buckets"), [(1, 8192), (8192, 8192), (8193, 16384), (4_000_000, 4_005_888)]
)
def test_buckets_fill_whole_pages_of_any_size(size: int, buckets: int) -> None:
    """Otherwise the kernel would round them, and they would not read as they were written."""
    settings = settings_of_nat(NatWishes(table_size=size))
    assert settings["net/netfilter/nf_conntrack_max"] == size
    assert settings["net/netfilter/nf_conntrack_buckets"] == buckets
    assert size <= buckets < size + 65536 // 8


@pytest.mark.parametrize("plan", ["nat44", "nat66"])
def test_random_ports_pair_each_host_with_its_address(plan: str) -> None:
    """What awk prints for the map: 65,534 pairs, in one command of nft."""
    nat = make_plan(plan).nat
    assert nat is not None
    (line,) = (
        each
        for each in start_nat("map pool", nat.inside, nat.pool, files="/tmp/none")
        if each.startswith("awk")
    )
    awk = line.removesuffix(" | nft -f -")
    assert awk != line
    assert shutil.which("awk") is not None
    said = subprocess.run(["sh", "-c", awk], capture_output=True, text=True, check=True).stdout
    ip = "ip6" if plan == "nat66" else "ip"
    inner = said.removeprefix(f"add element {ip} evenhand pool {{").removesuffix(" }\n")
    pairs = [tuple(map(ipaddress.ip_address, pair.split(" : "))) for pair in inner.strip().split(", ")]
    assert pairs == [(nat.inside[k], nat.pool[k]) for k in range(1, 65535)]


@pytest.mark.parametrize(("plan", "ip"), [("nat44", "ip"), ("nat66", "ip6")])
def test_the_nat_of_eight_ports_is_at_four_right_interfaces(plan: str, ip: str) -> None:
    pairs = [(f"l{number}", f"r{number}") for number in range(4)]
    setups = describe_setups([make_plan(plan)], pairs)
    assert [setup.table for setup in setups] == [7301, 7302, 7303, 7304]
    for setup in setups:
        assert setup.plan.nat is not None
        rules = nat_rules(setup.plan.nat, setup.outsides, "kept")
        assert f'oifname {{ "r0", "r1", "r2", "r3" }} {ip} saddr' in rules
    (alone,) = describe_setups([make_plan(plan)], pairs[:1])
    assert alone.plan.nat is not None
    assert f'oifname "r0" {ip} saddr' in nat_rules(alone.plan.nat, alone.outsides, "kept")


def test_any_choice_will_do_for_a_point() -> None:
    """A point of a campaign asks for a plan alone, so a set-up by hand stays, whatever it does with ports."""

    def of(plan: str, wishes: NatWishes) -> str:
        setup = describe_setup(make_plan(plan), left="left", right="right", nat_wishes=wishes)
        return fingerprint_of([setup])

    usual = of("nat44", NatWishes())
    assert usual == of("nat44", NatWishes(ports="random", addresses="one", table_size=9))
    assert usual != of("nat66", NatWishes())


@pytest.mark.parametrize(
    ("system", "plan", "rule"),
    [
        ("vyos", "nat44", "set nat source rule 7300 translation address 198.18.0.0/16"),
        ("vyos", "nat66", "set nat66 source rule 7300 outbound-interface name eth2"),
        ("vyos", "nat44-masquerade", "set nat source rule 7300 translation address masquerade"),
        ("routeros", "nat44", "out-interface=ether3 action=netmap to-addresses=198.18.0.0/16"),
        ("routeros", "nat66", "out-interface=ether3 action=netmap to-address="),
        ("routeros", "nat44-masquerade", "out-interface=ether3 action=masquerade"),
        ("junos", "nat44", "set security nat source pool evenhand host-address-base 10.16.0.1/32"),
        ("junos", "nat44-masquerade", "rule-set evenhand rule evenhand then source-nat interface"),
        ("openwrt", "nat44", "nat.snat_ip=198.18.0.1"),
        ("openwrt", "nat66", "nat.snat_ip=2001:2:0:4000::1"),
        ("openwrt", "nat44-masquerade", "nat.target=MASQUERADE"),
        ("openbsd", "nat44", "inet from 10.16.0.0/16 to any nat-to 198.18.0.0/16 bitmask static-port keep"),
        ("openbsd", "nat66-masquerade", "to any nat-to 2001:2:0:9000::1 keep state"),
        ("freebsd", "nat66", "nat on ix1 inet6 from 2001:2::/112 to any -> 2001:2:0:4000::/112 bitmask"),
        ("freebsd", "nat44-masquerade", "nat on ix1 inet from 10.16.0.0/16 to any -> 10.0.1.1'"),
        ("pfsense", "nat44", "pfctl -a natrules/evenhand_nat44 -N -f"),
    ],
)
def test_systems_have_a_nat_of_their_own_kind(dut_setup: Run, system: str, plan: str, rule: str) -> None:
    """Host k of the inside has address k of the pool where the system can; connections outlast an
    experiment; the undo takes back what was set, by its own name."""
    left, right = OPERATING_SYSTEMS[system].interfaces
    options = ("--os", system, "--left", left, "--right", right)
    printed = dut_setup(plan, *options)
    assert printed.code == 0, printed.err
    assert rule in printed.out
    assert "3600" in printed.out
    undone = dut_setup(plan, *options, "--undo", "--only", "nat").out
    assert re.search(
        r"delete nat(66)? source rule 7300$|nat remove \[find comment="
        r"|delete security nat source rule-set evenhand$"
        r"|uci -q delete firewall\.eh\w+nat |pfctl -a (evenhand/|natrules/evenhand_)nat\w+ -F (nat|rules)$",
        undone,
        re.MULTILINE,
    )
    refused = dut_setup(plan, *options, "--nat-ports", "random")
    assert (refused.code, refused.out) == (2, "")
    assert "has no commands here" in refused.err
    if "NAT64" not in OPERATING_SYSTEMS[system].nats:
        other = dut_setup("nat64", *options)
        assert (other.code, other.out) == (2, "")


def test_the_nat64_of_vyos_is_jool_with_the_pool_of_jool(dut_setup: Run) -> None:
    options = ("--os", "vyos", "--left", "eth1", "--right", "eth2")
    printed = dut_setup("nat64", *options).out
    assert "set nat64 source rule 7300 source prefix 2001:2:0:64::/96\n" in printed
    assert re.findall(r"pool \d+ address (\S+)\n", printed)[:2] == ["198.18.0.1/32", "198.18.0.2/31"]
    assert "connection_timeout" in printed
    undone = dut_setup("nat64", *options, "--undo", "--only", "nat").out
    assert re.findall(r"^delete .*$", undone, re.MULTILINE) == ["delete nat64 source rule 7300"]
    own = dut_setup("nat64-masquerade", *options).out
    assert re.findall(r"pool (\d+) address (\S+)\n", own) == [("1", "10.0.1.1/32")]


def test_sonic_takes_only_the_address_of_its_interface(dut_setup: Run) -> None:
    """Its pools are in the networks of its interfaces, and its longest timeout is 600 s."""
    options = ("--os", "sonic", "--left", "Ethernet0", "--right", "Ethernet4")
    refused = dut_setup("nat44", *options)
    assert (refused.code, refused.out) == (2, "")
    assert "nat44-masquerade" in refused.err
    printed = dut_setup("nat44-masquerade", *options).out
    assert "config nat add pool EVENHAND 10.0.1.1 1024-65534\n" in printed
    assert "config nat set udp-timeout 600\n" in printed
    undone = dut_setup("nat44-masquerade", *options, "--undo", "--only", "nat").out
    assert undone.index("nat remove binding EVENHAND") < undone.index("nat remove pool EVENHAND")


@pytest.mark.parametrize("undo", [(), ("--undo",)], ids=["set-up", "undo"])
@pytest.mark.parametrize("system", ["openwrt", "sonic", "openbsd", "freebsd", "pfsense", "vpp"])
def test_a_shell_reads_the_script_of_a_nat(dut_setup: Run, system: str, undo: tuple[str, ...]) -> None:
    left, right = OPERATING_SYSTEMS[system].interfaces
    script = dut_setup("nat44-masquerade", "--os", system, "--left", left, "--right", right, *undo).out
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert "}}" not in script
