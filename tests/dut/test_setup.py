# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut setup`: what is printed for every operating system and plan, and what is refused."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from evenhand.dut import OPERATING_SYSTEMS, Part, describe_setup
from evenhand.dut.systems import System
from evenhand.plan import TOPOLOGIES, make_plan
from tests.cli.running import Ended
from tests.dut import goldens
from tests.plan.routed import ROUTED

Run = Callable[..., Ended]
SHELLS = ["linux", "frr", "bird", "openwrt", "sonic", "openbsd", "freebsd", "opnsense", "pfsense", "vpp"]
WITH_ETHTOOL = ("linux", "frr", "bird")
LINUX = ("--os", "linux", "--left", "eth1", "--right", "eth2")
MACS = "02:00:00:00:00:01,02:00:00:00:00:02"


@pytest.mark.parametrize("name", goldens.cases())
def test_set_up_and_undo_are_those_of_the_golden_file(name: str) -> None:
    """SEED-23: a file for each operating system and topology. If the change is meant: python -m
    tests.dut.goldens."""
    assert goldens.render(name) == (goldens.FOLDER / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert sorted(p.relative_to(goldens.FOLDER).as_posix() for p in goldens.FOLDER.glob("*/*")) == sorted(
        goldens.cases()
    )


def test_every_system_has_its_name_on_the_command_line() -> None:
    assert list(get_args(System)) == list(OPERATING_SYSTEMS)


def test_what_is_printed_is_the_script(dut_setup: Run) -> None:
    """The golden files are what the command line prints."""
    for undo in ([], ["--undo"]):
        ended = dut_setup("nets-v4-gateway", *LINUX, "--networks", "3", *undo)
        assert ended.code == 0
        assert ended.out == goldens.script("linux", "nets_v4_gateway", is_undo=bool(undo)).text()


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
@pytest.mark.parametrize("plan", ROUTED)
def test_every_set_up_begins_with_the_warning_and_undo_is_the_exact_reverse(system: str, plan: str) -> None:
    """SEED-80: before the first command; what was set up last is taken back first."""
    do, undo = (goldens.script(system, plan, is_undo=is_undo) for is_undo in (False, True))
    comments = []
    for line in do.text().splitlines():
        if not line.startswith(do.system.comment):
            break
        comments.append(line)
    assert "isolated test environment" in " ".join(comments)
    assert [step.purpose for step in undo.steps] == [step.purpose for step in do.steps][::-1]
    for one in (do, undo):
        printed = [
            line for line in one.text().splitlines() if line and not line.startswith(one.system.comment)
        ]
        assert printed == [line for command in one.commands() for line in command.command.splitlines()]


FIGURE_3 = {"198.18.0.0/16": "10.0.0.2", "198.19.0.0/16": "10.0.1.2"}
FIGURE_5 = {"2001:2::/64": "2001:2:0:1000::2", "2001:2:0:8000::/64": "2001:2:0:9000::2"}
ROUTES = {
    "linux": "ip -4 route replace {to} via {via} dev {name}",
    "frr": "vtysh -c 'configure terminal' -c 'ip route {to} {via} {name}'",
    "bird": "  route {to} via {via};",
    "vyos": "set protocols static route {to} next-hop {via} interface {name}",
    "openwrt": "section {section}0 route; uci set network.{section}0.interface={section};"
    " uci set network.{section}0.target={to}; uci set network.{section}0.gateway={via}",
    "sonic": "config route add prefix {to} nexthop {via}",
    "tnsr": " route {to}\n  next-hop 0 via {via} {name}",
    "routeros": "/ip route add dst-address={to} gateway={via} comment=evenhand-{plan}-{side}",
    "arista-eos": "ip route {to} {via}",
    "srlinux": "set / network-instance default static-routes route {to}"
    " next-hop-group evenhand-{plan}-{side}",
    "openbsd": "route -n add -inet {to} {via}",
    "freebsd": "route -n add -inet {to} {via}",
    "opnsense": "route -n add -inet {to} {via}",
    "pfsense": "route -n add -inet {to} {via}",
    "vpp": "vpp ip route add {to} via {via} {name}",
    "cisco-ios": "ip route {dotted} {via}",
    "junos": "set routing-options static route {to} next-hop {via}",
}
"""The command for a route of IPv4."""


def _routes_of(system: str, plan: str, side: str) -> str:
    """Commands of a side's routes, as a text."""
    return "\n".join(
        line
        for step in goldens.script(system, plan).steps
        if step.part == "routes" and f"{side} side" in step.purpose
        for line in step.do
    )


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_the_routes_of_figure_3(system: str) -> None:
    """SEED-14: exactly these two static routes."""
    names = OPERATING_SYSTEMS[system].interfaces
    for (to, via), name, side in zip(FIGURE_3.items(), names, ("left", "right"), strict=True):
        text = _routes_of(system, "gateway_v4", side)
        section = f"eh{zlib.crc32(b'gateway_v4'):08x}{side[0]}"
        words = {"dotted": to.replace("/16", " 255.255.0.0"), "section": section, "plan": "gateway_v4"}
        command = ROUTES[system].format(to=to, via=via, name=name, side=side, **words)
        assert text.count(command) == 1
        assert via in text
        assert set(re.findall(r"198\.1[89]\.\d+\.\d+", text)) == {to.partition("/")[0]}


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_the_routes_of_figure_5_have_plain_next_hops(system: str) -> None:
    """SEED-17, R5180-04: the next hop is an address, without a prefix length."""
    for (to, via), side in zip(FIGURE_5.items(), ("left", "right"), strict=True):
        text = _routes_of(system, "gateway_v6", side)
        assert re.search(rf"(?<![0-9a-f:]){re.escape(to)}(?![0-9])", text)
        assert re.search(rf"(?<![0-9a-f:]){re.escape(via)}(?![0-9a-f:/])", text)
        assert f"{via}/" not in text


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
@pytest.mark.parametrize("plan", ["nets_v4_gateway", "nets_v6_gateway"])
def test_256_networks_behind_gateways_are_256_routes_a_side(system: str, plan: str) -> None:
    """SEED-36."""
    left, right = OPERATING_SYSTEMS[system].interfaces
    setup = describe_setup(make_plan(plan), left=left, right=right)
    steps = [step for step in OPERATING_SYSTEMS[system].steps(setup) if step.part == "routes"]
    for step, side in zip(steps, make_plan(plan).sides, strict=True):
        networks = [
            f"{to.network_address} {to.netmask}" if system == "cisco-ios" and to.version == 4 else str(to)
            for to in side.routes
        ]
        words = "\n".join(step.do)
        found = [to for to in networks if re.search(rf"(?<![0-9a-f:.]){re.escape(to)}(?![0-9])", words)]
        assert len(set(found)) == 256


@pytest.mark.parametrize("plan", ["nets_v4_single_host", "nets_v4_multi_host"])
def test_the_dut_has_the_first_address_of_each_direct_network(dut_setup: Run, plan: str) -> None:
    """SEED-31: .1 of each /24, 256 a side."""
    lines = dut_setup(plan, *LINUX).out.splitlines()
    for side, name in ((18, "eth1"), (19, "eth2")):
        added = [
            line for line in lines if line.startswith("ip address replace") and line.endswith(f"dev {name}")
        ]
        assert added == [f"ip address replace 198.{side}.{r}.1/24 dev {name}" for r in range(256)]


@pytest.mark.parametrize("plan", [name for name in ROUTED if TOPOLOGIES[name].ip_version == 6])
def test_ipv6_interfaces_are_64_with_interface_id_1(plan: str) -> None:
    """R5180-03, R5180-04."""
    lines = [
        c.command
        for c in goldens.script("linux", plan).commands()
        if c.command.startswith("ip address replace")
    ]
    assert lines
    for line in lines:
        assert re.fullmatch(
            r"ip address replace 2001:2:[0-9a-f:]*::1/64 dev eth[12] nodad"
            r"|ip address replace 2001:2::1/64 dev eth1 nodad",
            line,
        )


@pytest.mark.parametrize(
    ("hosts", "limits"), [("64", None), ("65", (258, 642, 1154)), ("65533", (131194, 131578, 132090))]
)
def test_gc_thresh_has_room_for_the_hosts_of_both_sides(
    dut_setup: Run, hosts: str, limits: tuple[int, ...] | None
) -> None:
    """SEED-23: for direct plans, on top of the kernel's defaults; nothing where these suffice."""
    out = dut_setup("direct-v4-net16", *LINUX, "--hosts", hosts).out
    found = {line for line in out.splitlines() if line.startswith("sysctl -w net.ipv4.neigh")}
    wanted = (
        set()
        if limits is None
        else {f"sysctl -w net.ipv4.neigh.default.gc_thresh{n}={v}" for n, v in enumerate(limits, 1)}
    )
    assert found == wanted
    assert "ipv6" not in out


@pytest.mark.parametrize(
    "plan", ["gateway-v4", "gateway-v6", "nets-v4-gateway", "nets-v6-gateway", "classic-v4"]
)
def test_gateway_plans_need_no_neighbour_limits(dut_setup: Run, plan: str) -> None:
    """R5180-07: hosts are one hop beyond the DUT."""
    assert "gc_thresh" not in dut_setup(plan, *LINUX).out


@pytest.mark.parametrize(("hash_type", "fields"), [("type1", "sd"), ("type2", "sdfn")])
def test_linux_hash_is_set_on_both_interfaces_and_read_back(
    dut_setup: Run, hash_type: str, fields: str
) -> None:
    """RSS-02: udp4 and udp6, whichever the plan has."""
    lines = dut_setup("gateway-v6", *LINUX, "--hash", hash_type).out.splitlines()
    for name in ("eth1", "eth2"):
        for flow in ("udp4", "udp6"):
            at = lines.index(f"ethtool -N {name} rx-flow-hash {flow} {fields}")
            assert f"ethtool -n {name} rx-flow-hash {flow}" in lines[at:]


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_only_plain_linux_gets_ethtool_lines(system: str) -> None:
    """I-11: elsewhere there is a sentence about the hash instead."""
    with_hash = goldens.script(system, "gateway_v4", is_all=True)
    assert any("ethtool" in c.command for c in with_hash.commands()) == (system in WITH_ETHTOOL)
    assert system in WITH_ETHTOOL or any(
        step.purpose.startswith("Hash: ") and step.notes for step in with_hash.steps
    )


def test_type_2_is_refused_where_it_cannot_be(dut_setup: Run) -> None:
    """SEED-69: OpenBSD's drivers hash addresses only, but that of X710, which hashes ports, too."""

    def ask(name: str, hash_type: str) -> Ended:
        options = ("--os", "openbsd", "--left", f"{name}0", "--right", f"{name}1", "--hash", hash_type)
        return dut_setup("gateway-v4", *options)

    for name, hash_type, said in (("ix", "type2", "addresses only"), ("ixl", "type1", "hashes ports, too")):
        ended = ask(name, hash_type)
        assert (ended.code, ended.out) == (2, "")
        assert said in ended.err
    assert ask("ixl", "type2").code == ask("ix", "type1").code == 0


@pytest.mark.parametrize(("hosts", "is_refused"), [("5120", False), ("5121", True)])
def test_openbsd_has_room_for_so_many_ipv6_neighbours_and_no_more(
    dut_setup: Run, hosts: str, is_refused: bool
) -> None:
    """SEED-23: its kernel takes no higher threshold, and no -1 any more."""
    ended = dut_setup("direct-v6", "--os", "openbsd", "--left", "ix0", "--right", "ix1", "--hosts", hosts)
    assert (ended.code, "10,240 IPv6 neighbours" in ended.err) == ((2, True) if is_refused else (0, False))
    assert "gcthresh=-1" not in ended.out


def test_an_ipv6_router_says_first_that_it_would_lose_what_it_has_learned(dut_setup: Run) -> None:
    """A DUT that is reached by a default route from a router advertisement would cut itself off."""
    lines = dut_setup("gateway-v6", *LINUX).out.splitlines()
    guard = next(number for number, line in enumerate(lines) if "accept_ra" in line)
    assert "exit 1" in lines[guard]
    assert guard < next(number for number, line in enumerate(lines) if line.startswith("ip link set"))
    assert "accept_ra" not in dut_setup("gateway-v4", *LINUX).out


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_static_neighbours_are_the_gateways_or_every_host(dut_setup: Run, system: str) -> None:
    """R5180-07: static neighbours exist for both forms."""
    left, right = OPERATING_SYSTEMS[system].interfaces
    options = ("--os", system, "--left", left, "--right", right, "--static-neighbors", MACS)
    if system in goldens.IPV4_NEIGHBORS:
        refused = dut_setup("gateway-v6", *options)
        assert (refused.code, refused.out) == (2, "")
        assert "for IPv4 only" in refused.err
        text = dut_setup("direct-v4-net16", *options, "--hosts", "300", "--only", "neighbors").out
        assert len(set(re.findall(r"address (198\.18\.\S+) mac", text))) == 300
        return
    lines = dut_setup("gateway-v6", *options, "--only", "neighbors").out.splitlines()
    assert sum("2001:2:0:1000::2 " in f"{line} " and "01" in line and "02" in line for line in lines) == 1
    text = dut_setup("direct-v6", *options, "--hosts", "300").out
    assert len(set(re.findall(r"2001:2::(?:[0-9a-f]+:)?2(?= )", text))) == 300


def test_static_neighbours_of_a_whole_direct_plan_are_printed_and_more_are_refused(dut_setup: Run) -> None:
    ended = dut_setup("direct-v6", *LINUX, "--static-neighbors", MACS)
    assert sum(line.startswith("neigh replace") for line in ended.out.splitlines()) == 131072
    refused = dut_setup("nets-v6-direct", *LINUX, "--static-neighbors", MACS)
    assert (refused.code, refused.out) == (2, "")
    assert "33,554,432" in refused.err


_ACCEPTED: set[str] = set()
"""Lines that were asked about before: most are in several files."""


@pytest.mark.parametrize("name", [name for name in goldens.cases() if name.split("/")[0] in SHELLS])
def test_every_line_is_a_command_that_a_shell_accepts(name: str, tmp_path: Path) -> None:
    """Each line on its own, and all of them together; what a program is given to read is no command."""
    text = goldens.render(name)
    lines = re.sub(r"(?<=<<'END'\n).*?\n(?=END\n)", "", text, flags=re.DOTALL).splitlines()
    new = set(lines) - _ACCEPTED
    for number, part in enumerate([text, *sorted(new)]):
        file = tmp_path / str(number)
        file.write_text(part + "\n")
    files = sorted(tmp_path.iterdir())
    checked = subprocess.run(
        ["bash", "-c", 'for file; do bash -n "$file" || exit 1; done', "bash", *map(str, files)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stderr
    assert not set(re.findall(r"line \d+: (.*)", checked.stderr)) - {
        "warning: here-document at line 1 delimited by end-of-file (wanted `END')"
    }
    _ACCEPTED.update(new)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("gateway-v4 --os linux", "--left"),
        ("gateway-v4 --os linux --left eth1", "--right"),
        ("gateway-v4 --os junos --left ge-0/0/0", "ge-0/0/1"),
        ("gateway-v4 --os linux --left eth1 --right eth1", "both interfaces"),
        ("gateway-v4 --os linux --left <left> --right eth2", "'<left>'"),
        ("gateway-v4 --os linux --left eth1;reboot --right eth2", "eth1;reboot"),
        ("gateway-v4 --os linux --left a-name-of-16-char --right eth2", "15"),
        ("gateway-v4 --left eth1 --right eth2", "--os"),
        ("gateway-v4 --os windows --left eth1 --right eth2", "windows"),
        ("gateway-v5 --os linux --left eth1 --right eth2", "gateway-v5"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --hosts 0", "0 hosts"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --networks 2", "2 networks"),
        ("nets-v4-gateway --os linux --left eth1 --right eth2 --networks many", "number of networks"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --hash type3", "type3"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --only hash", "--hash type1"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --only neighbors", "--static-neighbors"),
        (
            "gateway-v4 --os linux --left eth1 --right eth2 --only limits",
            "interfaces, routes, policing, forwarding",
        ),
        ("gateway-v4 --os linux --left eth1 --right eth2 --only hashes", "hashes"),
        ("gateway-v4 --os linux --left eth1 --right eth2 --static-neighbors 02:00:00:00:00:01", "two MACs"),
        (
            "gateway-v4 --os linux --left eth1 --right eth2 --static-neighbors 02:00:00:00:00:01,02:00",
            "'02:00'",
        ),
        (
            "gateway-v4 --os linux --left eth1 --right eth2 --static-neighbors"
            " 01:00:5e:00:00:01,02:00:00:00:00:02",
            "01:00:5e",
        ),
    ],
)
def test_bad_options_are_refused_with_nothing_printed(dut_setup: Run, options: str, said: str) -> None:
    """Half a set-up could be pasted: there is none, and no interface is guessed."""
    ended = dut_setup(*options.split())
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize("plan", ["direct-v4-net24", "direct-v4-net16", "nets-v4-multi-host", "direct-v6"])
def test_every_static_neighbour_of_vpp_has_the_mac_of_its_side(dut_setup: Run, plan: str) -> None:
    """R5180-07: `set ip neighbor ... count N` counts the MAC up with the address, so that all hosts but the
    first had a wrong one."""
    networks = ("--networks", "2") if plan.startswith("nets") else ()
    options = (
        "--os",
        "vpp",
        "--left",
        "left",
        "--right",
        "right",
        "--hosts",
        "50",
        *networks,
        "--static-neighbors",
        MACS,
    )
    for undo in ((), ("--undo",)):
        text = dut_setup(plan, *options, *undo).out
        assert not re.search(r"\bcount\b", text)
        found = re.findall(r"^set ip neighbor (?:del )?static (\w+) (\S+) (\S+)$", text, re.MULTILINE)
        wanted = make_plan(plan, 50, networks=2 if networks else None)
        macs = dict(zip(("left", "right"), MACS.split(","), strict=True))
        assert sorted(found) == sorted(
            (side.name, str(side.host_range.address(host, network)), macs[side.name])
            for side in wanted.sides
            for network in range(side.host_range.network_count)
            for host in range(50)
        )


def test_openbsd_says_that_its_packet_filter_keeps_states_and_how_it_is_turned_off_and_on(
    dut_setup: Run,
) -> None:
    """SEED-81: 100,000 states against millions of pseudorandom port pairs; whether it is measured is the
    user's to say (SEED-07)."""
    for plan in ("gateway-v4", "gateway-v6"):
        ended = dut_setup(plan, "--os", "openbsd", "--left", "ix0", "--right", "ix1", "--json")
        notes = " ".join(ended.json["notes"])
        for said in (
            "state for each pair of addresses and ports",
            "100,000",
            "pfctl -d turns it off",
            "pfctl -e turns it on again",
        ):
            assert said in notes
        commands = [command["command"] for command in ended.json["commands"]]
        assert "pfctl -s info || true" in commands
        assert not any(command.startswith(("pfctl -d", "pfctl -e")) for command in commands)


POLICERS = {
    "linux": [
        "(nf_conntrack|nf_tables|ip_tables|ip6_tables|act_police|",
        "nft list ruleset",
        "tc filter show",
    ],
    "frr": ["(nf_conntrack|nf_tables|", "nft list ruleset", "tc filter show"],
    "bird": ["(nf_conntrack|nf_tables|", "nft list ruleset", "tc filter show"],
    "vyos": ["conntrack table", "firewall"],
    "openwrt": ["nf_conntrack_max", "flow_offloading"],
    "sonic": ["show acl table", "CoPP", "storm control"],
    "tnsr": ["ACLs", "NAT", "policers"],
    "routeros": ["/ip firewall filter print", "connection tracking", "Fast path"],
    "arista-eos": ["Control plane policing", "storm control", "access lists"],
    "srlinux": ["Control plane filters", "access lists"],
    "openbsd": ["pfctl -s info", "pf is on", "100,000"],
    "freebsd": ["kldstat", "pf, ipfw", "net.inet6.ip6.redirect"],
    "opnsense": ["pf is on", "pfctl -d", "bogon"],
    "pfsense": ["pf is on", "pfctl -d", "bogon"],
    "vpp": ["show interface features", "acl-plugin", "policers"],
    "cisco-ios": ["Control plane policing", "storm control", "ARP inspection"],
    "junos": ["DDoS protection", "ARP policer", "flow sessions"],
}
"""What each has that may take thousands of flows or neighbours for an attack."""


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_every_system_names_what_may_police_the_traffic_and_changes_none_of_it(system: str) -> None:
    """SEED-81, SEED-07: shown and named in the report; the DUT gets nothing that it has not in production."""
    steps = [step for step in goldens.script(system, "gateway_v6").steps if step.part == "policing"]
    assert [bool(step.notes) and not step.undo for step in steps] == [True]
    text = " ".join([*steps[0].do, *steps[0].notes])
    assert [word for word in POLICERS[system] if word not in text] == []
    shows = (
        "grep ",
        "pfctl -s ",
        "kldstat",
        "sysctl -e ",
        "vppctl show ",
        "sysctl net",
        "uci -q show ",
        "show ",
    )
    assert all(command.startswith(shows) or " print" in command for step in steps for command in step.do)


@pytest.mark.parametrize("system", OPERATING_SYSTEMS)
def test_one_part_can_be_printed_alone(dut_setup: Run, system: str) -> None:
    """RSS-02: a second set-up for another hash type; the parts together are the whole."""
    left, right = OPERATING_SYSTEMS[system].interfaces
    hash_type = "type1" if system == "openbsd" else "type2"
    options = (
        "direct-v4-net24" if system in goldens.IPV4_NEIGHBORS else "direct-v6",
        "--os",
        system,
        "--left",
        left,
        "--right",
        right,
        "--hash",
        hash_type,
        "--static-neighbors",
        MACS,
        "--hosts",
        "20",
    )
    ends = {"Begin.", "End."}

    def printed(*more: str) -> list[str]:
        """The commands; none of a part that this set-up has not."""
        ended = dut_setup(*options, *more, "--json")
        return (
            [c["command"] for c in ended.json["commands"] if c["purpose"] not in ends]
            if ended.code == 0
            else []
        )

    assert sorted(command for part in get_args(Part) for command in printed("--only", part)) == sorted(
        printed()
    )
    alone = dut_setup(*options, "--only", "hash").out
    assert "only hash" in alone.splitlines()[0] + alone.splitlines()[1]
    assert not re.search(
        r"address (add|replace)|inet6? alias|ip address|route",
        "\n".join(line for line in alone.splitlines() if line[:1] not in "#!" and "() {" not in line),
    )


def test_many_direct_hosts_are_warned_of_in_the_script_and_on_stderr(dut_setup: Run) -> None:
    """SEED-06, SEED-80: whoever pipes the script into the DUT reads stderr."""
    for hosts, is_warned in (("2048", False), ("2049", True)):
        ended = dut_setup("direct-v6", *LINUX, "--hosts", hosts)
        assert ("Warning:" in ended.out) == ("Warning:" in ended.err) == is_warned


def test_json_tells_what_each_command_is_for(dut_setup: Run) -> None:
    document = dut_setup("direct-v4-net16", *LINUX, "--json").json
    assert (document["plan"], document["os"], document["is_undo"], document["dut_neighbors"]) == (
        "direct-v4-net16",
        "linux",
        False,
        131066,
    )
    assert len(document["warnings"]) == 1
    purposes = {c["command"]: c["purpose"] for c in document["commands"]}
    assert purposes["sysctl -w net.ipv4.ip_forward=1"] == "Forwarding."
    assert purposes["ip address replace 198.18.0.1/16 dev eth1"] == "The left interface: 1 address."
