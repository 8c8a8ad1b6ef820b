# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of a siitperf.conf with IPv6 on one side and IPv4 on the other: which translated plan it
becomes, and what no plan can say."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.exchange.siitperf_read import KEYS, mirrored
from tests.cli.running import Ended
from tests.cli.test_import_siitperf import outcomes, plan_sent
from tests.exchange.confs import PORTS, SIIT, write_conf

Run = Callable[..., Ended]
PAIR = {
    **PORTS,
    "IP-L-Vers": "6",
    "IP-R-Vers": "4",
    "IPv6-L-Real": "2001:2:0:64::c612:1",
    "IPv4-L-Virt": "198.18.0.1",
    "IPv4-R-Real": "198.19.0.1",
    "IPv6-R-Virt": "2001:2:0:64::c613:1",
    "MAC-L-Tester": "02:00:00:00:00:01",
    "MAC-R-DUT": "02:00:00:00:00:04",
    "CPU-L-Send": "2",
    "CPU-R-Recv": "4",
    "CPU-R-Send": "6",
    "CPU-L-Recv": "8",
}
"""All addresses are a prefix and an IPv4 address."""
MAPPED = {**PAIR, "IPv6-L-Real": "2001:2::1"}
"""The hosts on the left have addresses of their own."""
MANY = {
    **{
        f"IP-{part}-{what}": value
        for part in "LR"
        for what, value in (("var", "3"), ("min", "1"), ("max", "65534"))
    },
    **{f"IPv6-{part}-offset": "14" for part in "LR"},
    **{f"IPv4-{part}-offset": "2" for part in "LR"},
}


def imported(evenhand: Run, folder: Path, keys: dict[str, str], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = evenhand(
        "import", write_conf(folder / "siitperf.conf", keys), *options, "--json"
    ).json
    return found


@pytest.mark.parametrize("is_mirrored", [False, True], ids=["v6 left", "v6 right"])
@pytest.mark.parametrize("more", [{}, MANY], ids=["pair", "many"])
@pytest.mark.parametrize(("keys", "plan"), [(PAIR, "siit"), (MAPPED, "siit-eam")], ids=["siit", "siit-eam"])
def test_the_command_sends_the_addresses_that_siitperf_sends(
    evenhand: Run, tmp_path: Path, keys: dict[str, str], plan: str, more: dict[str, str], *, is_mirrored: bool
) -> None:
    """R8219-01: hosts of both sides, and how each side knows those of the other; nothing differs."""
    whole = keys | more
    written = {mirrored(key): value for key, value in whole.items()} if is_mirrored else whole
    document = imported(evenhand, tmp_path, written)
    assert document["is_exact"], [row for row in document["keys"] if row["became"] in ("differs", "refused")]
    sent = plan_sent(evenhand, document["commands"][0]["words"])
    assert sent["name"] == plan
    for side, real, virtual in (
        ("left", "IPv6-L-Real", "IPv6-R-Virt"),
        ("right", "IPv4-R-Real", "IPv4-L-Virt"),
    ):
        assert sent["addresses"][side]["first"] == keys[real]
        assert sent["addresses"][side]["count"] == (65534 if more else 1)
        found = outcomes(document)
        assert found[mirrored(virtual) if is_mirrored else virtual][1].endswith(
            f"{keys[virtual]} .. {keys[virtual].replace('13:1', '13:fffe').replace('0.1', '255.254')}"
            if more
            else keys[virtual]
        )
    notes = " ".join(document["notes"])
    assert "must translate with the prefix 2001:2:0:64::/96" in notes
    assert ("the mapping 198.18.0.0/16 = 2001:2::/112" in notes) == (plan == "siit-eam")
    assert ("Left and right are exchanged" in notes) == is_mirrored


def test_what_is_mirrored_keeps_its_cables_and_its_names(evenhand: Run, tmp_path: Path) -> None:
    """siitperf's left port is the right one here, with MAC, CPUs and direction; rows have the file's keys."""
    written = {mirrored(key): value for key, value in PAIR.items()} | {"Reverse": "0", "Fwd-dport-max": "0"}
    written |= {"Fwd-var-dport": "0"}
    document = imported(evenhand, tmp_path, written)
    testbed = tomllib.loads((tmp_path / "siitperf.toml").read_text())
    assert testbed["left"]["mac"] == PAIR["MAC-L-Tester"]
    assert testbed["right"]["dut_mac"] == PAIR["MAC-R-DUT"]
    words = document["commands"][0]["words"]
    assert words[words.index("--direction") + 1] == "reverse"
    found = outcomes(document)
    assert set(written) <= set(found)
    assert found["MAC-R-Tester"] == ("mapped", "left.mac")
    assert found["Fwd-dport-max"] == ("meaningless", "Fwd-var-dport is 0")
    assert found["CPU-R-Send"] == ("meaningless", "its direction is off")
    missing = {key: value for key, value in written.items() if key != "IPv4-R-Virt"}
    refused = evenhand("import", write_conf(tmp_path / "b.conf", missing)).error
    assert refused.code == "exchange.key-missing"
    assert "IPv4-R-Virt" in refused.what


def test_exchanging_left_and_right_twice_changes_nothing() -> None:
    for key in KEYS:
        assert mirrored(mirrored(key)) == key
        assert mirrored(key) in KEYS
    assert mirrored("IP-L-var is 0; see Fwd-var-sport") == "IP-R-var is 0; see Rev-var-sport"


def test_siitperfs_own_example_is_the_nearest_plan_and_says_what_differs(
    evenhand: Run, tmp_path: Path
) -> None:
    """It maps both sides' hosts; plans have the IPv4 ones behind a prefix."""
    document = evenhand("import", SIIT, "--json").json
    found = outcomes(document)
    assert document["commands"][0]["words"][3:7] == ["--plan", "siit-eam", "--hosts", "1"]
    assert found["IP-L-Vers"] == ("mapped", "--plan siit-eam")
    assert found["IPv6-R-Virt"][0] == "differs"
    assert "behind a prefix (RFC 6052)" in found["IPv6-R-Virt"][1]
    assert found["IPv6-L-Real"] == ("differs", "2001:2::1 instead: the closest that a plan has")
    assert found["IPv6-R-Real"][0] == "meaningless"
    ended = evenhand(
        "import", SIIT, "--output", "b.toml", "--command", "siitperf-tp 84 100000 60 2000 2 0", "--json"
    )
    assert ended.code == 0
    assert ended.json["is_exact"]
    assert ended.json["commands"][0]["words"][7:11] == ["--plan", "direct-v6", "--hosts", "1"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("siitperf-tp 84 1000 30 2000 2 2", "--plan siit --hosts 1 --frame-size 64"),
        ("siitperf-tp 1518 1000 30 2000 2 2", "--plan siit --hosts 1 --frame-size 1498"),
        ("siitperf-tp 128 1000 30 2000 10 9", "--plan siit+gateway-v6 --mix 9/1 --hosts 1 --frame-size 108"),
        ("siitperf-tp 84 1000 30 2000 2 1", "--plan siit+gateway-v6 --mix 1/1 --hosts 1 --frame-size 84"),
    ],
)
def test_the_size_is_that_of_the_ipv4_side_and_the_background_is_beside(
    evenhand: Run, tmp_path: Path, line: str, words: str
) -> None:
    """R8219-01, R8219-05: siitperf's size is that of the IPv6 frame."""
    keys = {**PAIR, "IPv6-R-Real": "2001:2:0:8000::2"}
    document = imported(evenhand, tmp_path, keys, "--command", line)
    command = document["commands"][0]["words"]
    assert " ".join(command[command.index("--plan") :]) == words
    found = outcomes(document)
    if "--mix" in words:
        assert found["<IPv6 frame size>"][0] == "differs"
        assert found["IPv6-R-Real"] == ("mapped", "hosts of gateway-v6: 2001:2:0:8000::2")
    else:
        assert document["is_exact"]
    mapped = imported(
        evenhand, tmp_path, {**keys, "IPv6-L-Real": "2001:2::1"}, "--command", line, "--output", "b.toml"
    )
    assert " ".join(mapped["commands"][0]["words"]).replace("siit-eam", "siit").endswith(words)


def test_the_users_plan_must_be_translated(evenhand: Run, tmp_path: Path) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", PAIR)
    assert (
        evenhand("import", conf, "--plan", "siit-eam", "--json").json["commands"][0]["words"][4] == "siit-eam"
    )
    ended = evenhand("import", conf, "--plan", "gateway-v6", "--output", "b.toml")
    assert ended.code == 2
    assert ended.error.code == "exchange.plan-not-translated"
    assert "gateway-v6" in ended.error.what


@pytest.mark.parametrize(("native", "rest"), [("2001:2::2", "direct-v6"), ("::", None)])
def test_connections_from_ipv4_to_ipv6_are_refused_and_native_traffic_is_left(
    evenhand: Run, tmp_path: Path, native: str, rest: str | None
) -> None:
    """There is no plan whose hosts open connections so; a stateless one would send something else."""
    keys = {**PAIR, "IPv6-L-Real": native, "IPv6-R-Real": "2001:2:0:8000::2", "Stateful": "1"}
    keys |= {"IP-L-Vers": "4", "IP-R-Vers": "6"}
    document = imported(evenhand, tmp_path, keys)
    found = outcomes(document)
    for key in ("IP-L-Vers", "IP-R-Vers", "IPv4-L-Virt", "IPv6-R-Virt", "Stateful"):
        assert found[key][0] == "refused", key
        assert "no plan has connections from IPv4 to IPv6" in found[key][1]
    assert [command["words"][4] for command in document["commands"]] == ([rest] if rest else [])


BEHIND = {
    32: ("2001:db8:c612:1::", "2001:db8:c613:1::", 6),
    40: ("2001:db8:c6:1200:1::", "2001:db8:c6:1300:1::", None),
    48: ("2001:db8:0:c612:0:100::", "2001:db8:0:c613:0:100::", 9),
    56: ("2001:db8:0:c6:12:1::", "2001:db8:0:c6:13:1::", 10),
    64: ("2001:db8:0:0:c6:1200:100:0", "2001:db8:0:0:c6:1300:100:0", 11),
    96: ("2001:db8::c612:1", "2001:db8::c613:1", 14),
}
"""198.18.0.1 and 198.19.0.1 behind the first bits of 2001:db8:: (RFC 6052, 2.2), and the octet at which their
last two stand, if these are side by side."""
CONNECTIONS = {
    "Stateful": "1",
    "Enumerate-ports": "3",
    "Responder-tuples": "3",
    "Fwd-sport-min": "10000",
    "Fwd-sport-max": "49999",
    "Fwd-dport-min": "1",
    "Fwd-dport-max": "100",
}
PLANS = {"siit": PAIR, "siit-eam": MAPPED, "nat64": {**MAPPED, **CONNECTIONS}}


def behind(plan: str, length: int, *, has_many: bool) -> dict[str, str]:
    """The keys of this plan with its IPv4 hosts behind that many bits; of `siit` the others too."""
    left, right, octet = BEHIND[length]
    keys = {**PLANS[plan], **(MANY if has_many else {}), "IPv6-R-Virt": right}
    keys |= {"IPv6-L-Real": left} if plan == "siit" else {}
    if has_many:
        keys |= {f"IPv6-{part}-offset": str(octet) for part in ("LR" if plan == "siit" else "R")}
    return keys


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("length", "has_many"),
    [(length, many) for length, (*_, octet) in BEHIND.items() for many in (False, True) if octet or not many],
)
def test_a_prefix_of_the_files_own_is_that_of_the_plan(
    evenhand: Run, tmp_path: Path, plan: str, length: int, *, has_many: bool
) -> None:
    """RFC 6052, 2.2: it follows from what both sides call one host."""
    document = imported(evenhand, tmp_path, behind(plan, length, has_many=has_many))
    assert document["is_exact"], [row for row in document["keys"] if row["became"] in ("differs", "refused")]
    assert outcomes(document)["IP-L-Vers"] == ("mapped", f"--plan {plan}@2001:db8::/{length}")
    sent = plan_sent(evenhand, document["commands"][0]["words"])
    assert sent["name"] == f"{plan}@2001:db8::/{length}"
    assert [sent[side]["hosts"]["host"]["count"] for side in ("left", "right")] == [
        65534 if has_many else 1
    ] * 2
    forward = sent["traffic"]["directions"]["forward"]["sent"]
    assert forward["destination"]["first"] == str(ipaddress.ip_address(BEHIND[length][1]))
    if plan != "nat64":
        assert f"must translate with the prefix 2001:db8::/{length}" in " ".join(document["notes"])


def test_a_number_whose_octets_are_not_side_by_side_is_told(evenhand: Run, tmp_path: Path) -> None:
    """Behind 40 bits octet 8 is between them. siitperf's number may be there, as long as it is below 256."""
    keys = behind("siit", 40, has_many=False) | MANY | {f"IPv6-{part}-offset": "8" for part in "LR"}
    keys |= {f"IP-{part}-max": "254" for part in "LR"}
    document = imported(evenhand, tmp_path, keys)
    found = outcomes(document)
    assert found["IP-L-Vers"] == ("mapped", "--plan siit@2001:db8::/40")
    assert found["IPv6-R-offset"] == ("differs", "the number is at octets 7 and 9")
    sent = plan_sent(evenhand, document["commands"][0]["words"])
    assert sent["addresses"]["left"]["last"] == "2001:db8:c6:1200:fe::"


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        ("64:ff9b::c612:1", "64:ff9b::c613:1", "64:ff9b::/96 is not for hosts of the benchmarking block"),
        ("2001:2:0:1000::c612:1", "2001:2:0:1000::c613:1", "2001:2:0:1000::"),
        ("2001:db8:0:0:100::c612:1", "2001:db8:0:0:100::c613:1", "bits 64 to 71 of the translation prefix"),
    ],
    ids=["well-known", "of the link", "octet 8"],
)
def test_a_prefix_that_no_plan_can_have_is_told_and_the_usual_one_taken(
    evenhand: Run, tmp_path: Path, plan: str, left: str, right: str, why: str
) -> None:
    keys = {**PLANS[plan], "IPv6-R-Virt": right, **({"IPv6-L-Real": left} if plan == "siit" else {})}
    found = outcomes(imported(evenhand, tmp_path, keys))
    assert found["IP-L-Vers"] == ("mapped", f"--plan {plan}")
    for key in ("IPv6-R-Virt", *(["IPv6-L-Real"] if plan == "siit" else [])):
        became, text = found[key]
        assert became == "differs"
        assert why in text


def test_a_host_beside_those_of_the_prefix_is_the_nearest(evenhand: Run, tmp_path: Path) -> None:
    """Nothing is said of the benchmarking block, of which these addresses are not."""
    keys = {
        **PAIR,
        "IPv6-L-Real": "2001:db8::c612:5",
        "IPv4-L-Virt": "198.18.0.5",
        "IPv6-R-Virt": BEHIND[96][1],
    }
    found = outcomes(imported(evenhand, tmp_path, keys))
    assert found["IPv6-L-Real"] == ("differs", "2001:db8::c612:1 instead: the closest that a plan has")


def test_native_traffic_is_beside_a_prefix_of_the_files_own(evenhand: Run, tmp_path: Path) -> None:
    """R8219-05. A prefix in which the native hosts would lie is refused."""
    keys = {**behind("siit", 40, has_many=False), "IPv6-R-Real": "2001:2:0:8000::2"}
    line = "siitperf-tp 128 1000 30 2000 10 9"
    document = imported(evenhand, tmp_path, keys, "--command", line)
    assert "--plan siit@2001:db8::/40+gateway-v6 --mix 9/1" in " ".join(document["commands"][0]["words"])
    keys |= {"IPv6-L-Real": "2001:2:0:8000::c612:1", "IPv6-R-Virt": "2001:2:0:8000::c613:1"}
    overlapping = imported(evenhand, tmp_path, keys, "--command", line, "--output", "b.toml")
    assert "--plan siit+gateway-v6 --mix 9/1" in " ".join(overlapping["commands"][0]["words"])
    assert "overlaps the prefix" in outcomes(overlapping)["IPv6-R-Virt"][1]


@pytest.mark.parametrize("octet", ["6", "12"])
def test_a_number_outside_the_ipv4_address_of_a_nat64_is_told(
    evenhand: Run, tmp_path: Path, octet: str
) -> None:
    keys = {**behind("nat64", 96, has_many=True), "IPv6-R-offset": octet}
    found = outcomes(imported(evenhand, tmp_path, keys))
    assert found["IPv6-R-offset"] == ("differs", "the number is at octet 14")
