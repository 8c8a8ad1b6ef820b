# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of a siitperf.conf with IPv6 on one side and IPv4 on the other: which translated plan it
becomes, and what no plan can say."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.exchange.siitperf_file import KEYS, mirrored
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
    assert "IPv4-R-Virt is missing" in evenhand("import", write_conf(tmp_path / "b.conf", missing)).err


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
    assert "gateway-v6 is not translated" in ended.err


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
        assert "no plan whose connections go from IPv4 to IPv6" in found[key][1]
    assert [command["words"][4] for command in document["commands"]] == ([rest] if rest else [])
