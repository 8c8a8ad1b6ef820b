# SPDX-License-Identifier: Apache-2.0
"""Plan files: a user's own addresses become a plan, or are refused where they are written."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import (
    AddressPlan,
    HostList,
    HostRange,
    Traffic,
    describe_plan,
    hosts_of_prefixes,
    make_own_plan,
    make_plan,
    make_prefixes,
    name_of_plan_file,
    plan_named,
    read_plan_file,
)
from evenhand.plan.host_list import hosts_of_ranges
from evenhand.plan.plan_file import PlanFile, PlanFileSide
from tests.errors import raises

CONTRACT = Path(__file__).parents[2] / "contract"
SCHEMA = CONTRACT / "plan-config.schema.json"
address, network = ipaddress.ip_address, ipaddress.ip_network

LEFT = {"dut": "10.0.0.1/24", "gateway": "10.0.0.2", "hosts": "198.18.0.0/16"}
RIGHT = {"dut": "10.0.1.1/24", "gateway": "10.0.1.2", "hosts": "198.19.0.0/16"}
LEFT_V6 = {"dut": "2001:2:0:1000::1/64", "gateway": "2001:2:0:1000::2", "hosts": "2001:2::/64"}
RIGHT_V6 = {"dut": "2001:2:0:9000::1/64", "gateway": "2001:2:0:9000::2", "hosts": "2001:2:0:8000::/64"}


def own(
    left: dict[str, Any] | None = None, right: dict[str, Any] | None = None, **others: Any
) -> AddressPlan:
    """The plan of a document, of which these keys of the sides are other ones, and None those left out."""
    is_v6 = ":" in str((left or {}).get("dut", ""))

    def side(usual: dict[str, Any], changed: dict[str, Any] | None) -> dict[str, Any]:
        return {key: value for key, value in (usual | (changed or {})).items() if value is not None}

    usual = (LEFT_V6, RIGHT_V6) if is_v6 else (LEFT, RIGHT)
    document = {"left": side(usual[0], left), "right": side(usual[1], right), **others}
    return make_own_plan(document, where="edge.toml", name="edge")


def sent(plan: AddressPlan) -> dict[str, Any]:
    """What the engine gets, but the name."""
    return {key: value for key, value in plan.to_request().items() if key != "name"}


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("gateway-v4", {}, {}),
        ("gateway-v4", {"hosts": "198.18.0.1-198.18.255.254"}, {"hosts": "198.19.0.1 - 198.19.255.254"}),
        (
            "gateway-v6",
            {"dut": LEFT_V6["dut"], "hosts": "2001:2::2 - 2001:2::ffff:2", "step": 65536},
            {"hosts": "2001:2:0:8000::2-2001:2:0:8000::ffff:2", "step": 65536},
        ),
        (
            "direct-v4-net24",
            {"dut": "198.18.0.1/24", "gateway": None, "hosts": "198.18.0.0/24"},
            {"dut": "198.19.0.1/24", "gateway": None, "hosts": "198.19.0.2-198.19.0.254"},
        ),
    ],
)
def test_a_plan_file_that_repeats_a_plan_sends_the_same_frames(
    name: str, left: dict[str, Any], right: dict[str, Any]
) -> None:
    """A frame is a function of what the engine gets, in which the plan's name has no part."""
    assert sent(own(left, right)) == sent(make_plan(name))


def test_ports_modes_and_a_fixed_source_are_those_of_the_options() -> None:
    found = own(
        {"mode": "increment"},
        {"mode": "increment"},
        **{"source-ports": "1024-2047:decrement", "destination_ports": 7, "fixed-source": True},
    )
    expected = make_plan("gateway-v4", host_mode="increment", fixed_source=True)
    assert found.left == expected.left
    assert found.right == expected.right
    assert (found.source_ports.written, found.destination_ports.written) == ("1024-2047:decrement", "7")
    assert found.fixed_source


@pytest.mark.parametrize(
    ("hosts", "first", "count", "route"),
    [
        ("198.18.0.7", "198.18.0.7", 1, "198.18.0.7/32"),
        ("198.18.0.1-198.18.0.254", "198.18.0.1", 254, "198.18.0.0/24"),
        ("198.18.0.0-198.18.0.255", "198.18.0.0", 256, "198.18.0.0/24"),
        ("198.18.4.0/22", "198.18.4.1", 1022, "198.18.4.0/22"),
        ("198.18.4.2/31", "198.18.4.2", 2, "198.18.4.2/31"),
    ],
)
def test_an_address_a_range_and_a_prefix(hosts: str, first: str, count: int, route: str) -> None:
    right = {"hosts": "2.0.0.1"}
    side = own({"hosts": hosts}, right).left
    assert isinstance(side.host_range, HostRange)
    assert (str(side.host_range.first_address), side.host_range.count) == (first, count)
    assert [str(each) for each in side.routes] == [route]


def test_what_no_16_bit_number_counts_is_a_list() -> None:
    side = own({"hosts": "198.18.255.250-198.19.0.9"}, {"hosts": "2.0.0.1"}).left
    assert isinstance(side.host_range, HostList)
    assert side.host_range.address_count == 16
    assert [str(side.host_range.address(n)) for n in (0, 5, 6, 15)] == [
        "198.18.255.250",
        "198.18.255.255",
        "198.19.0.0",
        "198.19.0.9",
    ]
    whole = own({"hosts": "16.0.0.0/8"}).left
    assert whole.host_range.address_count == 2**24 - 2
    assert whole.route_count == 1
    v6 = own({"dut": LEFT_V6["dut"]}).left
    assert isinstance(v6.host_range, HostList)
    assert v6.host_range.address_count == 2**64


def test_hosts_on_the_link_are_those_beside_the_dut() -> None:
    plan = own(
        {"dut": "198.18.0.9/28", "gateway": None, "hosts": "198.18.0.0/28"},
        {"dut": "198.19.0.1/24", "gateway": None, "hosts": "198.19.0.0/24"},
    )
    hosts = plan.left.host_range
    assert isinstance(hosts, HostList)
    assert (hosts.choose, hosts.entry_count, hosts.address_count) == ("host", 2, 13)
    found = [hosts.address(n) for n in range(13)]
    assert found == [address(f"198.18.0.{n}") for n in range(1, 15) if n != 9]
    for reserved in ("198.18.0.0", "198.18.0.9", "198.18.0.15"):
        assert address(reserved) not in hosts
    assert all(each in hosts for each in found)
    assert plan.left.dut_neighbors == 13


def test_a_list_of_prefixes_has_an_entry_for_each() -> None:
    plan = own(None, {"hosts": ["198.19.8.0/24", "198.19.0.0/30", "198.19.16.0/31", "198.19.32.5"]})
    hosts = plan.right.host_range
    assert isinstance(hosts, HostList)
    ends = [str(address(hosts.entries[at : at + 4])) for at in range(0, len(hosts.entries), 4)]
    assert ends == [
        *("198.19.0.1", "198.19.0.2", "198.19.8.1", "198.19.8.254"),
        *("198.19.16.0", "198.19.16.1", "198.19.32.5", "198.19.32.5"),
    ]
    assert [str(route) for route in plan.right.routes] == [
        *("198.19.0.0/30", "198.19.8.0/24", "198.19.16.0/31", "198.19.32.5/32")
    ]
    assert hosts.address_count == 2 + 254 + 2 + 1


@pytest.mark.parametrize("version", [4, 6])
def test_a_file_of_prefixes_is_found_from_the_plan_file(version: int, tmp_path: Path) -> None:
    routes = (
        ("198.19.0.0/24", "198.19.4.0/22") if version == 4 else ("2001:2:0:8000::/64", "2001:2:0:8001::/64")
    )
    (tmp_path / "table.txt").write_text("".join(f"{each} via somewhere\n" for each in routes))
    left, right = (LEFT, RIGHT) if version == 4 else (LEFT_V6, RIGHT_V6)
    tables = {"left": left, "right": {**right, "prefixes": "table.txt", "choose": "entry"}}
    del tables["right"]["hosts"]
    lines = []
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    (tmp_path / "My Edge.toml").write_text("\n".join(lines))
    plan = read_plan_file(tmp_path / "My Edge.toml")
    assert plan.title == "my-edge"
    assert plan.right.prefixes is not None
    assert list(plan.right.prefixes.texts()) == list(routes)
    assert plan.to_document()["right"]["prefixes"]["name"] == "table.txt"
    assert plan.versions == (version,)


def test_generated_prefixes_stay_in_the_sides_block_unless_told_otherwise() -> None:
    plan = own({"hosts": None, "routes": 256}, {"hosts": None, "routes": 3, "lengths": 26, "spacing": 2})
    left, right = plan.left.prefixes, plan.right.prefixes
    assert left is not None
    assert right is not None
    assert next(left.texts()) == "198.18.0.0/24"
    assert list(right.texts()) == ["198.19.0.0/26", "198.19.0.128/26", "198.19.1.0/26"]
    assert plan.not_reserved == []
    v6 = own({"dut": LEFT_V6["dut"], "hosts": None, "routes": 8192}).left.prefixes
    assert v6 is not None
    assert v6.overlapping(network("2001:2:0:1000::/64")) is None
    with raises("plan.no-room-for-prefixes", match="256 do") as caught:
        own(None, {"hosts": None, "routes": 257})
    assert "first =" in caught.value.next_step


def test_a_million_prefixes_are_kept_as_counts_and_digests() -> None:
    plan = own(None, {"hosts": None, "routes": 1_000_000, "lengths": "internet", "first": "16.0.0.0"})
    right = plan.to_contract()["right"]
    assert right["prefixes"]["count"] == right["hosts"]["list"]["entries"] == 1_000_000
    assert (
        right["prefixes"]["digest"] == make_prefixes(1_000_000, "internet", first=address("16.0.0.0")).digest
    )
    assert len(json.dumps(describe_plan(plan))) < 20_000
    assert plan.right.routes == ()
    assert plan.right.route_count == 1_000_000
    assert "1,000,000 prefixes" in Traffic(plan=plan).lines()[1]
    assert Traffic(plan=plan).address_words == "65,534 x 2,140,208,000 addresses in 1 x 1,000,000 prefixes"


def test_the_engine_gets_a_file_that_only_this_user_may_read() -> None:
    plan = own(None, {"hosts": ["198.19.0.0/24", "198.19.2.0/24"]})
    found = plan.to_request()["right"]
    assert found.keys() == {"gateway", "dut_address", "hosts"}
    path = Path(found["hosts"]["list"].pop("path"))
    assert found["hosts"]["list"] == {"entries": 2, "choose": "entry", "mode": "pseudorandom"}
    assert isinstance(plan.right.host_range, HostList)
    assert path.read_bytes() == plan.right.host_range.entries
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "path" not in json.dumps(plan.to_contract())


@pytest.mark.parametrize(
    ("version", "left", "right"),
    [
        (4, {}, {"hosts": ["100.1.2.0/24", "20.0.0.0/8", "100.1.3.5", "203.0.113.128/31"]}),
        (
            6,
            {"dut": LEFT_V6["dut"], "hosts": "2001:2::2-2001:2::ffff:2", "step": 65536},
            {"hosts": ["2001:db8::/32", "2001:db9:0:1::/64", "2600::1"], "mode": "increment"},
        ),
    ],
)
def test_the_request_is_that_of_the_contract(
    version: int, left: dict[str, Any], right: dict[str, Any]
) -> None:
    """A plan file with the prefixes of a golden line makes the same request, and the same file of octets."""
    golden = next(
        found["plan"]
        for line in (CONTRACT / "golden/requests.jsonl").read_text().splitlines()
        if (found := json.loads(line)).get("plan", {}).get("name") == f"prefixes_v{version}"
    )
    request = own(left, right).to_request() | {"name": golden["name"]}
    schema = json.loads((CONTRACT / "request.schema.json").read_text())
    jsonschema.validate(request, {"$ref": "#/$defs/plan", "$defs": schema["$defs"]})
    paths = [Path(each["right"]["hosts"]["list"].pop("path")) for each in (request, golden)]
    assert request == golden
    assert paths[0].read_bytes() == (CONTRACT / "golden" / paths[1].name).read_bytes()


def test_one_pair_is_the_first_host_of_each_side() -> None:
    """SEED-02, in the form of a plan without prefixes."""
    plan = own(None, {"hosts": None, "routes": 100, "mode": "decrement"}).one_pair()
    assert plan.pairs == plan.hosts.left == plan.hosts.right == 1
    assert [str(side.host_range.first_address) for side in plan.sides] == ["198.18.0.1", "198.19.0.1"]
    assert all(isinstance(side.host_range, HostRange) for side in plan.sides)
    assert plan.right.route_count == 100
    assert "list" not in json.dumps(sent(plan))


def test_of_the_hosts_of_prefixes_all_or_one_are_used() -> None:
    plan = own(None, {"hosts": ["198.19.0.0/24", "198.19.2.0/24"]})
    with raises("plan.hosts-of-prefixes", match="10 hosts: there are 508 in 2"):
        plan.with_counts(10)
    assert plan.with_counts(1).pairs == 1


@pytest.mark.parametrize(
    ("mode", "drawn", "steps"),
    [("pseudorandom", 508, 1), ("increment", 1, 508), ("decrement", 1, 508), ("fixed", 1, 1)],
)
def test_pairs_and_tuples_are_counted(mode: str, drawn: int, steps: int) -> None:
    plan = own({"hosts": "198.18.0.1"}, {"hosts": ["198.19.0.0/24", "198.19.2.0/24"], "mode": mode})
    (forward, reverse) = plan.streams()
    assert (forward.sent.destinations.drawn, forward.sent.destinations.steps) == (drawn, steps)
    assert forward.sent.pairs == reverse.sent.pairs == drawn * steps
    assert plan.four_tuples == 508 * 64512 * 49151
    assert not plan.is_translated


def test_hosts_that_are_too_many_to_be_equally_likely_are_refused() -> None:
    with raises("plan.too-many-hosts") as caught:
        own(
            {"dut": LEFT_V6["dut"]}, {"hosts": ["2001:2:0:8000::/64", "2001:2:0:8002::/64"], "choose": "host"}
        )
    assert "entry" in caught.value.next_step
    half = make_prefixes(1, 65, first=address("2001:2::"))
    assert hosts_of_prefixes(half, choose="host").address_count == 1 << 63


def test_addresses_beyond_64_bits_are_counted_exactly() -> None:
    ranges = [(0xFFFF_FFFF_FFFF_FFFF, 1 << 64), (1 << 127, (1 << 128) - 1)]
    found = hosts_of_ranges(ranges, 6, choose="entry", mode="pseudorandom")
    assert found.address_count == 2 + (1 << 127)
    assert found.address(2) == address(1 << 127)


@pytest.mark.parametrize(
    ("left", "right", "outside", "unnamed"),
    [
        ({}, {}, [], None),
        (
            {"dut": "192.0.2.1/24", "gateway": "192.0.2.2"},
            {},
            ["192.0.2.0 .. 192.0.2.255 (left)"],
            "192.0.2.0",
        ),
        ({"hosts": "16.0.0.7"}, {}, ["16.0.0.7 (left)"], "16.0.0.7"),
        ({}, {"hosts": ["17.0.0.0/24", "198.19.0.0/24"]}, ["17.0.0.1 .. 198.19.0.254 (right)"], "17.0.0.1"),
    ],
)
def test_what_is_not_reserved_for_benchmarking_is_known(
    left: dict[str, Any], right: dict[str, Any], outside: list[str], unnamed: str | None
) -> None:
    """R2544-37."""
    plan = own(left, right)
    assert plan.not_reserved == outside
    found = plan.first_not_named(())
    assert found is None if unnamed is None else found is not None and found.startswith(unnamed)
    named = [network("16.0.0.0/8"), network("17.0.0.0/24"), network("192.0.2.0/24")]
    assert plan.first_not_named(named) is None


def test_what_is_not_reserved_in_ipv6_is_known() -> None:
    """R5180-01."""
    plan = own({"dut": LEFT_V6["dut"], "hosts": "2001:200::/64"})
    assert plan.not_reserved == ["2001:200:: .. 2001:200::ffff:ffff:ffff:ffff (left)"]
    assert plan.first_not_named([network("2001:200::/48")]) is None


def test_every_plan_that_has_a_name_keeps_to_what_is_reserved() -> None:
    assert make_plan("nat44").not_reserved == []


@pytest.mark.parametrize(
    ("left", "right", "code", "words"),
    [
        ({"hosts": None}, {}, "plan.no-hosts", "edge.toml: left: no hosts"),
        ({"routes": 3}, {}, "plan.hosts-stated-twice", "left: hosts and routes"),
        ({"dut": "10.0.0.1"}, {}, "plan.not-an-interface", "left.dut: '10.0.0.1'"),
        ({"gateway": "10.0.0.300"}, {}, "plan.not-an-address", "left.gateway: '10.0.0.300'"),
        ({"gateway": "10.0.7.2"}, {}, "plan.gateway-not-on-link", "left.gateway: the gateway 10.0.7.2"),
        ({"gateway": "10.0.0.1"}, {}, "plan.gateway-is-the-dut", "left: DUT and gateway"),
        ({"gateway": "10.0.0.255"}, {}, "plan.not-a-station", "left.gateway: 10.0.0.255 is the broadcast"),
        ({"gateway": "10.0.0.0"}, {}, "plan.not-a-station", "left.gateway: 10.0.0.0 is the network"),
        ({"dut": "10.0.0.255/24"}, {}, "plan.not-a-station", "left.dut: 10.0.0.255 is the broadcast"),
        ({"hosts": "239.1.1.1"}, {}, "plan.not-hosts", "left.hosts: 239.1.1.1 has addresses of 224"),
        ({"hosts": "224.0.0.0/24"}, {}, "plan.not-hosts", "224.0.0.0/24"),
        ({"hosts": "0.0.0.0/8"}, {}, "plan.not-hosts", "0.0.0.0/8"),
        ({"hosts": "255.255.255.255"}, {}, "plan.not-hosts", "255.255.255.255"),
        ({"hosts": ["198.18.0.0/16", "127.0.0.0/24"]}, {}, "plan.not-hosts", "127.0.0.0/24"),
        ({"hosts": "198.18.0.300"}, {}, "plan.not-an-address", "left.hosts: '198.18.0.300'"),
        ({"hosts": "198.18.0.9-198.18.0.1"}, {}, "plan.not-an-address", "left.hosts"),
        ({"hosts": "198.18.0.1/16"}, {}, "plan.not-a-prefix", "left.hosts: '198.18.0.1/16' is an address"),
        ({"hosts": ["198.18.0.0/16", "x"]}, {}, "plan.not-a-prefix", "left.hosts: 'x'"),
        ({"hosts": ["198.18.0.0/16", "198.18.9.0/24"]}, {}, "plan.prefixes-overlap", "198.18.9.0/24"),
        ({"hosts": ["198.18.0.0/16", "2001:2::/64"]}, {}, "plan.mixed-versions", "2001:2::/64"),
        ({"hosts": "2001:2::/64"}, {}, "plan.mixed-versions", "left: the hosts have IPv6"),
        ({"hosts": "10.0.0.0/16"}, {}, "plan.host-address-taken", "10.0.0.1 is both the DUT"),
        ({"hosts": ["10.0.0.0/23", "198.18.0.0/24"]}, {}, "plan.networks-overlap", "the link 10.0.0.0/24"),
        ({"hosts": "198.19.0.0/24"}, {}, "plan.networks-overlap", "198.19.0.0/24"),
        ({"hosts": "10.0.0.1"}, {}, "plan.host-address-taken", "10.0.0.1 is both the DUT"),
        ({"gateway": None, "hosts": "10.0.0.1"}, {}, "plan.host-address-taken", "10.0.0.1 is both the DUT"),
        ({"gateway": None, "hosts": "10.0.0.255"}, {}, "plan.host-is-broadcast-address", "10.0.0.255"),
        ({"gateway": None, "hosts": "10.0.0.0-10.0.0.9"}, {}, "plan.host-is-network-address", "10.0.0.0"),
        ({"gateway": None}, {}, "plan.hosts-outside-network", "198.18.0.0/16 is not on the DUT's link"),
        (
            {"gateway": None, "hosts": ["10.0.0.8/30", "10.0.0.16/30"]},
            {},
            "plan.gateway-missing",
            "left.gateway",
        ),
        (
            {"dut": "10.0.0.1/32", "gateway": None, "hosts": "10.0.0.1/32"},
            {},
            "plan.count-out-of-range",
            "no hosts",
        ),
        ({"choose": "host"}, {}, "plan.key-without-effect", "left.choose"),
        ({"first": "16.0.0.0"}, {}, "plan.key-without-effect", "left.first"),
        ({"covering": "leave-out"}, {}, "plan.key-without-effect", "left.covering"),
        ({"step": 2}, {}, "plan.key-without-effect", "left.step"),
        ({"hosts": "198.18.0.1-198.18.0.9", "step": 2}, {}, "plan.wrong-octets", "left.step"),
        ({"hosts": None, "prefixes": "missing.txt"}, {}, "plan.unreadable-prefixes", "missing.txt"),
        ({"hosts": None, "routes": 10**7}, {}, "plan.too-many-prefixes", "2,000,000"),
        ({"hosts": None, "routes": 3, "lengths": 0}, {}, "plan.count-out-of-range", "length of 0"),
        ({"hosts": None, "routes": 3, "lengths": "long"}, {}, "plan.not-a-length", "left.lengths: 'long'"),
        ({"mode": "shuffled"}, {}, "base.not-one-of", "left.mode: 'shuffled'"),
        ({"host": "198.18.0.1"}, {}, "base.unknown-key", "left"),
        ({"hosts": None, "routes": 300, "first": "198.18.0.0"}, {}, "plan.networks-overlap", "198.19"),
    ],
)
def test_what_cannot_be_is_named_where_it_is_written(
    left: dict[str, Any], right: dict[str, Any], code: str, words: str
) -> None:
    with raises(code) as caught:
        own(left, right)
    assert words in str(caught.value)


@pytest.mark.parametrize("hosts", ["ff02::1", "fe80::/64", "::1"])
def test_what_no_router_forwards_to_is_no_host_in_ipv6_either(hosts: str) -> None:
    sides = {
        "left": {"dut": "fd00:1::1/64", "gateway": "fd00:1::2", "hosts": hosts},
        "right": {"dut": "fd00:2::1/64", "gateway": "fd00:2::2", "hosts": "2001:2:0:8000::/64"},
    }
    with raises("plan.not-hosts"):
        make_own_plan(sides, where="edge.toml", name="edge")
    sides["left"] |= {"hosts": "2001:2::/64", "gateway": "fd00:1::"}
    with raises("plan.not-a-station", match="network address"):
        make_own_plan(sides, where="edge.toml", name="edge")


def test_large_sets_must_not_overlap_either() -> None:
    left = {"hosts": None, "routes": 5000, "first": "16.0.0.0"}
    with raises(
        "plan.networks-overlap", match=r"16\.9\.0\.0/24 of the left side overlaps 16\.9\.0\.0/24 of the right"
    ):
        own(left, {"hosts": None, "routes": 5000, "first": "16.9.0.0"})
    with raises("plan.networks-overlap", match=r"the prefix 16\.0\.7\.0/24 of the left side"):
        own(left, {"hosts": "16.0.7.0/28"})


@pytest.mark.parametrize(
    ("others", "code", "words"),
    [
        ({"name": "gateway-v4"}, "plan.not-a-plan-name", "edge.toml: name"),
        ({"name": "Edge 1"}, "plan.not-a-plan-name", "'Edge 1'"),
        ({"source-ports": "70000"}, "plan.not-a-port-range", "source-ports"),
        ({"middle": {}}, "base.unknown-key", "middle"),
        ({"right": LEFT_V6}, "plan.mixed-versions", "IPv4, those on the right IPv6"),
    ],
)
def test_keys_of_the_whole_are_checked(others: dict[str, Any], code: str, words: str) -> None:
    with raises(code) as caught:
        make_own_plan({"left": LEFT, "right": RIGHT, **others}, where="edge.toml", name="edge")
    assert words in str(caught.value)


def test_errors_of_a_file_of_prefixes_are_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("198.19.0.0/24\nnone\n")
    document = {"left": LEFT, "right": {**RIGHT, "prefixes": "table.txt"}}
    del document["right"]["hosts"]
    with raises("plan.not-a-prefix") as caught:
        make_own_plan(document, where=str(tmp_path / "edge.toml"), folder=tmp_path)
    assert caught.value.where == f"{tmp_path / 'table.txt'}, line 2"


def test_a_plan_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "edge.toml"
    lines = []
    for name, table in (("left", LEFT), ("right", RIGHT)):
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines))
    assert plan_named(str(path)) == read_plan_file(path)
    assert plan_named("gateway-v6") == make_plan("gateway-v6")
    assert name_of_plan_file(path) == "edge"
    path.write_text('name = "other"\n' + path.read_text())
    assert name_of_plan_file(path) == plan_named(str(path)).name == "other"
    with raises("base.file-not-readable", match=r"missing\.toml"):
        plan_named("missing.toml")


def test_the_keys_are_those_of_the_reference() -> None:
    schema = json.loads(SCHEMA.read_text())
    for model, described in ((PlanFile, schema), (PlanFileSide, schema["$defs"]["side"])):
        fields = {str(field.alias): field for field in model.model_fields.values()}
        assert list(described["properties"]) == list(fields)
        assert set(described["required"]) == {name for name, field in fields.items() if field.is_required()}
        for name, key in described["properties"].items():
            if "default" in key:
                assert key["default"] == fields[name].default, name
            if "enum" in key:
                assert str(fields[name].annotation).count("'") // 2 == len(key["enum"]), name
