# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan`: what is shown is the plan, and what is written can be read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.plan import TOPOLOGIES, make_plan
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]


def test_the_default_is_the_gateway_plan_with_the_maximum_of_hosts(evenhand: Run) -> None:
    """SEED-05."""
    assert (
        evenhand("plan", "show", "gateway-v4", "--json").json["address_plan"]["left"]["hosts"]["host"][
            "count"
        ]
        == 65534
    )
    text = evenhand("plan", "show", "gateway-v6").out
    assert "65,536" in text
    assert "2001:2:0:8000::ffff:2" in text


def test_hosts_are_for_both_sides_or_for_each(evenhand: Run) -> None:
    """SEED-42."""
    plan = evenhand("plan", "show", "gateway_v4", "--hosts", "1000,1", "--json").json["address_plan"]
    assert [plan[side]["hosts"]["host"]["count"] for side in ("left", "right")] == [1000, 1]
    assert plan["pairs"] == 1000


@pytest.mark.parametrize("name", [name.replace("_", "-") for name in TOPOLOGIES])
def test_every_plan_is_shown_with_all_that_a_report_must_state(evenhand: Run, name: str) -> None:
    """SEED-16, SEED-36, SEED-49: topology, networks, hosts, ranges, modes, ports, gateways or none, routes;
    derived forms say so."""
    plan = make_plan(name)
    text = evenhand("plan", "show", name).out
    for side in plan.sides:
        for shown in (
            side.host_range.first_address,
            side.host_range.last_address,
            side.dut[0],
            side.dut[-1],
            f"{side.host_range.address_count:,}",
        ):
            assert str(shown) in text
        if side.gateway is None:
            assert "direct: hosts on the link" in text
        else:
            assert f"{side.routes[-1]}" in text
            assert f"via {side.gateway.ip}" in text
    ports = ("10000-49999", "1-100") if plan.nat else ("1024-65535", "1-49151")
    for shown in (plan.title, plan.figure, "pseudorandom", *ports, f"{plan.pairs:,}"):
        assert shown in text
    assert ("derived from Figures 3 and 5" in text) == plan.is_derived
    document = evenhand("plan", "show", name, "--json").json["address_plan"]
    assert document["addresses"]["right"]["last"] == str(plan.right.host_range.last_address)
    assert len(document["dut"]["left"]["routes"]) == len(plan.left.routes)
    assert len(document["dut"]["left"]["interfaces"]) == len(plan.left.dut)


def test_networks_are_for_both_sides_or_for_each(evenhand: Run) -> None:
    """SEED-30, SEED-35."""
    plan = evenhand(
        "plan", "show", "nets-v6-gateway", "--networks", "256,3", "--hosts", "10", "--fixed-source", "--json"
    ).json
    plan = plan["address_plan"]
    assert [plan[side]["hosts"]["network"]["count"] for side in ("left", "right")] == [256, 3]
    assert plan["fixed_source"] is True
    assert plan["pairs"] == 30
    text = evenhand(
        "plan", "show", "nets-v6-gateway", "--networks", "256,3", "--hosts", "10", "--fixed-source"
    ).out
    assert "forward: 30, reverse: 2,560" in text


def test_modes_are_passed_on(evenhand: Run) -> None:
    """SEED-40."""
    left = evenhand(
        "plan", "show", "nets-v4-gateway", "--host-mode", "fixed", "--network-mode", "increment", "--json"
    ).json
    left = left["address_plan"]["left"]
    assert (left["hosts"]["host"]["mode"], left["hosts"]["network"]["mode"]) == ("fixed", "increment")


@pytest.mark.parametrize(
    ("arguments", "code", "where", "named"),
    [
        (
            ("gateway-v4", "--networks", "256"),
            "plan.one-network-only",
            "--networks",
            "nets-v4-gateway or nets-v4-multi-host",
        ),
        (
            ("nets-v4-gateway", "--hosts", "65534"),
            "plan.octet-needed-twice",
            "--hosts",
            "gateway-v4 or direct-v4-net16",
        ),
        (("nets-v4-gateway", "--networks", "257"), "plan.count-out-of-range", "--networks", "1 to 256"),
        (("nets-v4-gateway", "--networks", "many"), "spec.not-a-count", "--networks", "100,1"),
        (("gateway-v4", "--host-mode", "pseudorandon"), "base.not-one-of", "--host-mode", "pseudorandom?"),
        (
            ("gateway-v4", "--network-mode", "fixed"),
            "plan.one-network-only",
            "--network-mode",
            "such as nets-v4-gateway",
        ),
        (("gateway-v5",), "plan.unknown-name", "NAME", "gateway-v6?"),
        (("none",), "plan.unknown-name", "NAME", "gateway-v4, gateway-v6, direct-v4-net24"),
    ],
)
def test_what_a_plan_cannot_have_is_refused_with_what_can_be_had(
    evenhand: Run, arguments: tuple[str, ...], code: str, where: str, named: str
) -> None:
    """SEED-34: in IPv4 either networks or 16-bit hosts."""
    ended = evenhand("plan", "show", *arguments)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert named in f"{ended.error.what} {ended.error.next_step}"


@pytest.mark.parametrize(
    ("plan", "hosts", "warned"),
    [("direct-v4-net16", "2049", True), ("direct-v6", "2048", False), ("gateway-v6", "65536", False)],
)
def test_neighbour_tables_under_pressure_are_told_before_a_run(
    evenhand: Run, plan: str, hosts: str, warned: bool
) -> None:
    """SEED-06."""
    ended = evenhand("plan", "show", plan, "--hosts", hosts)
    assert ended.code == 0
    assert ("resolve every host by" in " ".join(ended.err.split())) == warned


@pytest.mark.parametrize("hosts", ["0", "65535", "1,2,3", "many", "-1", ""])
def test_bad_hosts_are_refused(evenhand: Run, hosts: str) -> None:
    ended = evenhand("plan", "show", "gateway-v4", f"--hosts={hosts}")
    assert ended.code == 2
    assert ended.error.where == "--hosts"


def test_frames_are_written_in_every_format(evenhand: Run, engine_playing: Play, tmp_path: Path) -> None:
    from scapy.utils import rdpcap

    engine_playing("fair")
    table = evenhand("plan", "frames", "gateway-v4")
    assert "198.18.171.201" in table.out
    lines = [
        json.loads(line)
        for line in evenhand("plan", "frames", "gateway-v4", "--format", "jsonl").out.splitlines()
    ]
    assert lines == evenhand("plan", "frames", "gateway-v4", "--json").json["frames"]
    rows = list(csv.DictReader(io.StringIO(evenhand("plan", "frames", "gateway-v4", "--format", "csv").out)))
    assert [row["octets"] for row in rows] == [frame["octets"] for frame in lines]
    capture = tmp_path / "frames.pcap"
    assert evenhand("plan", "frames", "gateway-v4", "--format", "pcap", "--output", capture).code == 0
    assert [bytes(packet).hex() for packet in rdpcap(str(capture))] == [frame["octets"] for frame in lines]


@pytest.mark.wire
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_frames_are_shown_by_their_numbers(evenhand: Run, plan: str) -> None:
    """Such as the lost ones of a trial; they are those of the same numbers in a row."""
    in_a_row = evenhand("plan", "frames", plan, "--count", "26", "--direction", "reverse", "--json").json
    some = ("--numbers", "3,17,20-25", "--direction", "reverse")
    chosen = evenhand("plan", "frames", plan, *some, "--json").json["frames"]
    numbers = [3, 17, *range(20, 26)]
    assert chosen == [frame for frame in in_a_row["frames"] if frame["sequence"] in numbers]
    assert len(chosen) == len(numbers)


@pytest.mark.parametrize("numbers", ["", "x", "3-", "5-3", "-3", "1,,2", "1.5"])
def test_what_are_no_numbers_of_frames_is_refused(evenhand: Run, engine_playing: Play, numbers: str) -> None:
    engine_playing("simulated-1")
    ended = evenhand("plan", "frames", "gateway-v4", f"--numbers={numbers}")
    assert (ended.code, ended.error.code) == (2, "cli.not-frame-numbers")


def test_a_64_octet_ipv6_frame_is_replaced_and_that_is_said(evenhand: Run, engine_playing: Play) -> None:
    """R5180-10."""
    engine_playing("fair")
    ended = evenhand("plan", "frames", "gateway-v6", "--frame-size", "64", "--json")
    assert ended.code == 0
    assert ended.json["frame_size"] == 84
    assert "84 is used instead" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("plan", "size"),
    [("gateway-v6", "83"), ("gateway-v4", "63"), ("gateway-v4", "9217"), ("gateway-v4", "big")],
)
def test_frame_sizes_out_of_range_are_refused(
    evenhand: Run, engine_playing: Play, tmp_path: Path, plan: str, size: str
) -> None:
    """R2544-04, R5180-10."""
    engine_playing("fair")
    ended = evenhand("plan", "frames", plan, "--frame-size", size)
    assert ended.code == 2
    assert ended.error.where == "--frame-size"
    assert size in ended.error.what
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.wire
def test_frames_have_the_macs_of_their_hosts(evenhand: Run) -> None:
    """R4814-05, R4814-06: as asked for, and only where hosts are on the link."""
    ended = evenhand(
        "plan",
        "frames",
        "direct-v4-net24",
        "--hosts",
        "9",
        "--host-macs",
        "pseudorandom",
        "--count",
        "200",
        "--json",
    )
    macs = {(frame["source"], frame["octets"][12:24]) for frame in ended.json["frames"]}
    assert len(macs) == len({host for host, _ in macs}) == len({mac for _, mac in macs}) == 9
    assert {mac[2:6] for _, mac in macs} == {"0001"}
    refused = evenhand("plan", "frames", "gateway-v4", "--host-macs", "pseudorandom")
    assert refused.code == 2
    assert (refused.error.code, refused.error.where) == ("spec.hosts-without-macs", "--host-macs")


BED = """isolated_test_environment = true
[left]
device = "net_memif0,role=client,id=0,socket=/run/x.sock"
mac = "02:00:00:00:00:01"
dut_mac = "02:00:00:00:00:02"
vlan = 100
[left.tunnel]
kind = "mpls"
labels = [100, 200]
[right]
device = "net_memif1,role=client,id=1,socket=/run/x.sock"
mac = "02:00:00:00:00:03"
[right.tunnel]
kind = "vxlan"
local = "2001:db8::2"
remote = "2001:db8::1"
vni = 5
[tester]
cpus = [1]
"""


@pytest.mark.wire
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize("size", ["200", "200:1,600:2"])
def test_frames_are_shown_as_the_ports_of_a_testbed_send_them(
    evenhand: Run, tmp_path: Path, plan: str, size: str
) -> None:
    """In tags and tunnel of the sending side, with the MACs that the file gives; in files, too."""
    from scapy.utils import rdpcap

    bed = tmp_path / "bed.toml"
    bed.write_text(BED)
    shown = evenhand("plan", "frames", plan, "--testbed", bed, "--frame-size", size, "--json").json
    assert (shown["vlan"], shown["tunnel"]) == ([100], {"kind": "mpls", "labels": [100, 200]})
    version = "45" if plan == "gateway-v4" else "60"
    macs, labels = "020000000002020000000001", "0006400a000c810a"
    bare = evenhand("plan", "frames", plan, "--vlan", "100", "--frame-size", size, "--json").json["frames"]
    for frame, without in zip(shown["frames"], bare, strict=True):
        assert frame["octets"].startswith(f"{macs}81000064" + "8847" + labels + version)
        assert frame["octets"][52:] == without["octets"][36:]
        assert (frame["source"], frame["sequence"]) == (without["source"], without["sequence"])
    capture = tmp_path / "frames.pcap"
    options = ("--testbed", bed, "--frame-size", size, "--direction", "reverse", "--count", "3")
    assert evenhand("plan", "frames", plan, *options, "--format", "pcap", "--output", capture).code == 0
    untagged = evenhand("plan", "frames", plan, *options[2:], "--json").json["frames"]
    for packet, without in zip(map(bytes, rdpcap(str(capture))), untagged, strict=True):
        assert packet[:14].hex() == "000000000000020000000003" + "86dd"
        assert packet[22:54].hex() == "20010db8000000000000000000000002" + "20010db8000000000000000000000001"
        assert packet[62:70].hex() == "0800000000000500"
        assert packet[70:84].hex() == "000000000000020000000003" + without["octets"][24:28]
        assert packet[84:].hex() == without["octets"][28:]


def test_a_testbed_says_in_which_vlan_frames_are(evenhand: Run, tmp_path: Path) -> None:
    bed = tmp_path / "bed.toml"
    bed.write_text(BED)
    ended = evenhand("plan", "frames", "gateway-v4", "--testbed", bed, "--vlan", "100")
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == ("cli.options-exclude-each-other", "--vlan, --testbed")


def test_a_wrong_direction_is_refused(evenhand: Run) -> None:
    assert evenhand("plan", "frames", "gateway-v4", "--direction", "up").code == 2


@pytest.mark.parametrize(
    ("options", "source", "destination"),
    [
        ((), (1024, 65535, "pseudorandom"), (1, 49151, "pseudorandom")),
        (
            ("--source-ports", "fixed", "--destination-ports", "fixed"),
            (49184, 49184, "fixed"),
            (7, 7, "fixed"),
        ),
        (("--source-ports", "0xC020"), (49184, 49184, "fixed"), (1, 49151, "pseudorandom")),
        (("--destination-ports", "4000-4999"), (1024, 65535, "pseudorandom"), (4000, 4999, "pseudorandom")),
        (
            ("--source-ports", "5-9:increment", "--destination-ports", "4000-4999:decrement"),
            (5, 9, "increment"),
            (4000, 4999, "decrement"),
        ),
    ],
)
@pytest.mark.parametrize("plan", ["gateway-v4", "nets-v6-gateway"])
def test_ports_are_a_range_one_or_those_of_rfc_2544(
    evenhand: Run,
    plan: str,
    options: tuple[str, ...],
    source: tuple[int, int, str],
    destination: tuple[int, int, str],
) -> None:
    """SEED-46, R2544-31, R4814-02, R4814-03: pseudorandom unless switched off; 0xC020 to 7 is what RFC 2544
    has."""
    ports = evenhand("plan", "show", plan, *options, "--json").json["address_plan"]["udp_ports"]
    assert [
        tuple(ports[role][key] for key in ("first", "last", "mode")) for role in ("source", "destination")
    ] == [source, destination]
    shown = evenhand("plan", "show", plan, *options).out
    for first, last, mode in (source, destination):
        assert (f"{first} (fixed)" if mode == "fixed" else f"{first}-{last}") in shown


@pytest.mark.parametrize(
    "text", ["0", "0-7", "7-1", "65536", "any", "", "1-2-3", "0x", "-7", "7:increment", "1-9:fixed", "1-9:"]
)
def test_what_is_no_range_of_ports_is_refused(evenhand: Run, text: str) -> None:
    ended = evenhand("plan", "show", "gateway-v4", f"--source-ports={text}")
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == ("plan.not-a-port-range", "--source-ports")


def test_the_reading_of_r_can_be_chosen(evenhand: Run) -> None:
    """SEED-82, SEED-83: one number for both addresses, or one each; and the source's network alone fixed."""
    pairs = {}
    for option in ("--common-network", "--fixed-source-network", "--fixed-source"):
        document = evenhand(
            "plan", "show", "nets-v6-gateway", "--hosts", "10", "--networks", "8", option, "--json"
        ).json["address_plan"]
        pairs[option] = document["pairs"]
        assert document["traffic"][option.removeprefix("--").replace("-", "_")] is True
    assert pairs == {"--common-network": 10 * 10 * 8, "--fixed-source-network": 10 * 80, "--fixed-source": 80}
    assert (
        "one network number for both addresses"
        in evenhand("plan", "show", "nets-v4-gateway", "--common-network").out
    )


@pytest.mark.parametrize(
    ("arguments", "code", "where"),
    [
        (("gateway-v4", "--common-network"), "plan.one-network-only", "--common-network"),
        (("direct-v6", "--fixed-source-network"), "plan.one-network-only", "--fixed-source-network"),
        (
            ("nets-v4-gateway", "--common-network", "--networks", "4,5"),
            "plan.network-counts-differ",
            "--common-network",
        ),
        (
            ("nets-v4-gateway", "--common-network", "--fixed-source"),
            "plan.network-fixed-twice",
            "--common-network",
        ),
    ],
)
def test_choices_that_a_plan_cannot_have_are_refused(
    evenhand: Run, arguments: tuple[str, ...], code: str, where: str
) -> None:
    """SEED-82, SEED-83."""
    ended = evenhand("plan", "show", *arguments)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)


@pytest.mark.parametrize("name", ["gateway-v4", "gateway_v6"])
def test_a_document_has_the_name_that_the_shell_takes(evenhand: Run, name: str) -> None:
    """One thing has one name: what `plan` and `address_plan.name` say can be typed."""
    document = evenhand("plan", "show", name, "--json").json
    assert document["plan"] == document["address_plan"]["name"] == name.replace("_", "-")


@pytest.mark.parametrize("verb", [("plan", "show"), ("plan", "frames"), ("plan", "prove"), ("predict",)])
def test_a_mix_of_plans_is_refused_where_one_is_needed(evenhand: Run, verb: tuple[str, ...]) -> None:
    """R5180-14: throughput and others take such a mix; what shows one plan says which to name."""
    ended = evenhand(*verb, "gateway-v4+gateway_v6")
    assert ended.code == 2
    assert ended.error.code == "plan.single-plan-needed"
    assert "gateway-v4 or gateway-v6" in ended.error.next_step
    unknown = evenhand(*verb, "gateway-v4+gateway-v7").error
    assert unknown.code == "plan.unknown-name"
    assert "'gateway-v7'" in unknown.what
