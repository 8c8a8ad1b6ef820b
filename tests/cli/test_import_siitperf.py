# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of siitperf's files: what becomes of each key, and that the commands send what siitperf
has sent."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main
from evenhand.exchange.siitperf_read import FIRST, KEYS, LAST, STATEFUL
from evenhand.testbed import read_testbed
from tests.cli.running import Ended
from tests.docs.documents import ROOT, blocks, table_rows
from tests.exchange.confs import EXAMPLE, MANY_V4, MANY_V6, PORTS, ROUTER_KEYS, SIIT, ends_of, write_conf

Run = Callable[..., Ended]
Play = Callable[[str], Path]
WHOLE = ("--left", "net_ring0", "--right", "net_ring1", "--cpus", "0", "--isolated-test-environment")
"""What the file cannot say."""


def outcomes(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["key"]: (row["became"], row["text"]) for row in document["keys"]}


def plan_sent(evenhand: Run, words: list[str]) -> dict[str, Any]:
    """The address plan of a printed command, as `plan show` has it."""
    taken, rest = [], iter(words[3:])
    name = ""
    for word in rest:
        if word == "--plan":
            name = next(rest)
        elif word == "--fixed-source":
            taken.append(word)
        elif word in ("--hosts", "--networks", "--host-mode", "--source-ports", "--destination-ports"):
            taken += [word, next(rest)]
        else:
            next(rest)
    found: dict[str, Any] = evenhand("plan", "show", name, *taken, "--json").json["address_plan"]
    return found


def test_the_example_of_siitperfs_repository_becomes_a_testbed(evenhand: Run, tmp_path: Path) -> None:
    """Stateful NAT44; MACs and CPUs are those of the file."""
    ended = evenhand("import", EXAMPLE)
    assert ended.code == 0, ended.err
    assert "--plan nat44: the left port opens connections" in ended.out
    assert "N and R" in ended.out
    written = tomllib.loads((tmp_path / "example.toml").read_text())
    assert written["left"]["mac"] == "f4:03:43:ec:cd:b0"
    assert written["left"]["dut_mac"] == "f4:03:43:ec:e3:30"
    assert written["right"]["dut_mac"] == "f4:03:43:ec:e3:38"
    assert written["tester"] == {"cpus": [8, 12, 14, 10], "hugepages": True}
    assert written["dut"]["plan"] == "nat44"


def test_every_key_of_a_file_has_its_row_and_line(evenhand: Run, tmp_path: Path) -> None:
    """Nothing is dropped without a word."""
    for conf in (EXAMPLE, SIIT):
        document = evenhand("import", conf, "--json").json
        lines = {
            line.split()[0]: n
            for n, line in enumerate(conf.read_text().splitlines(), 1)
            if line and not line.startswith("#")
        }
        assert {row["key"]: row["line"] for row in document["keys"] if row["line"] is not None} == lines
        assert all(row["text"] for row in document["keys"])


@pytest.mark.parametrize("conf", [EXAMPLE, SIIT], ids=["v4", "v6 and v4"])
def test_what_needs_the_reader_stands_first_in_the_table(evenhand: Run, tmp_path: Path, conf: Path) -> None:
    """A refused key among thirty that are mapped is not seen; the document has the order of the file."""
    words = [
        word
        for line in evenhand("import", conf, "--output", "a.toml").out.split("\n\n")[0].splitlines()
        for word in line.split()
    ]
    order = ("refused", "differs", "mapped", "meaningless")
    shown = [order.index(word) for word in words if word in order]
    assert shown == sorted(shown)
    assert len(set(shown)) >= 3
    lines = [
        row["line"]
        for row in evenhand("import", conf, "--output", "b.toml", "--json").json["keys"]
        if row["line"] is not None
    ]
    assert lines == sorted(lines)


@pytest.mark.parametrize("key", KEYS)
def test_every_key_that_siitperf_knows_is_read_and_a_wrong_value_is_told(
    evenhand: Run, tmp_path: Path, key: str
) -> None:
    good = {
        "MAC": "02:00:00:00:00:01",
        "IPv4": "198.18.0.2",
        "IPv6": "2001:2::2",
        "IP-L-Vers": "4",
        "IP-R-Vers": "4",
    }
    value = good.get(key, "1" if "offset" in key else good.get(key.split("-")[0], "1"))
    value = "12" if key.startswith("IPv6") and "offset" in key else value
    keys = {**ROUTER_KEYS, key: value}
    if "var" in key and key.startswith("IP-"):
        keys |= dict.fromkeys((f"{key[:4]}-min", f"{key[:4]}-max"), "2") | {f"IPv4-{key[3]}-offset": "2"}
    document = evenhand("import", write_conf(tmp_path / "a.conf", keys), "--json").json
    assert key in {row["key"] for row in document["keys"]}
    for wrong in ("", "x", "-1", "99999999999999999999", "1;reboot", "$(reboot)"):
        (tmp_path / "a.toml").unlink(missing_ok=True)
        ended = evenhand(
            "import", write_conf(tmp_path / "b.conf", {**ROUTER_KEYS, key: wrong}), "--output", "a.toml"
        )
        assert ended.code == 2, (key, wrong)
        assert ended.error.code == ("exchange.wrong-value" if wrong else "exchange.value-missing")
        assert key in ended.error.what
        assert "b.conf, line" in ended.error.where
        assert ended.error.next_step
        assert not (tmp_path / "a.toml").exists()


@pytest.mark.parametrize(
    ("keys", "plan", "order"),
    [
        (ROUTER_KEYS | PORTS, "direct-v4-net24", "pseudorandom"),
        ({**ROUTER_KEYS, **PORTS, "IP-L-Vers": "6", "IP-R-Vers": "6"}, "direct-v6", "pseudorandom"),
        (MANY_V4, "direct-v4-net16", "pseudorandom"),
        (MANY_V6, "direct-v6", "pseudorandom"),
        ({**MANY_V4, "IP-L-max": "254", "IP-R-max": "254"}, "direct-v4-net24", "pseudorandom"),
        ({**MANY_V4, "IP-L-min": "1", "IP-R-min": "1"}, "gateway-v4", "pseudorandom"),
        ({**MANY_V6, "IP-L-max": "999", "IP-R-max": "0x1F"}, "direct-v6", "pseudorandom"),
        ({**MANY_V4, "IP-L-var": "1", "IP-R-var": "1"}, "direct-v4-net16", "increment"),
        ({**MANY_V6, "IP-L-var": "2", "IP-R-var": "2"}, "direct-v6", "decrement"),
        ({**MANY_V4, "IP-L-var": "0"}, "direct-v4-net16", "pseudorandom"),
    ],
    ids=[
        "pair v4",
        "pair v6",
        "README v4",
        "README v6",
        "few",
        "gateway",
        "unlike",
        "increment",
        "decrement",
        "one to many",
    ],
)
def test_the_command_sends_the_addresses_that_siitperf_sends(
    evenhand: Run, tmp_path: Path, keys: dict[str, str], plan: str, order: str
) -> None:
    """SEED-10 .. SEED-17, SEED-35: to the last address of both sides, and nothing is said to differ."""
    document = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json").json
    assert document["is_exact"], [row for row in document["keys"] if row["became"] in ("differs", "refused")]
    sent = plan_sent(evenhand, document["commands"][0]["words"])
    assert sent["name"] == plan
    for part, side in (("L", "left"), ("R", "right")):
        assert (sent["addresses"][side]["first"], sent["addresses"][side]["last"]) == ends_of(keys, part)
        assert sent[side]["hosts"]["host"]["mode"] == order
    assert [sent["udp_ports"][role]["mode"] for role in ("source", "destination")] == ["pseudorandom"] * 2


@pytest.mark.parametrize("version", ["4", "6"])
def test_destination_networks_vary_and_the_source_does_not(
    evenhand: Run, tmp_path: Path, version: str
) -> None:
    """SEED-30, SEED-35: Num-L-Nets are those that frames to the left go to."""
    keys = {
        **ROUTER_KEYS,
        "IP-L-Vers": version,
        "IP-R-Vers": version,
        "Num-L-Nets": "100",
        "Num-R-Nets": "256",
    }
    document = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json").json
    assert document["is_exact"]
    sent = plan_sent(evenhand, document["commands"][0]["words"])
    assert sent["fixed_source"]
    assert [sent["addresses"][side]["networks"] for side in ("left", "right")] == [100, 256]
    assert [sent["addresses"][side]["count"] for side in ("left", "right")] == [100, 256]
    assert sent["addresses"]["left"]["first"] == keys[f"IPv{version}-L-Real"]
    assert sent["udp_ports"]["source"] == {"first": 49184, "last": 49184, "mode": "fixed"}


@pytest.mark.parametrize(
    ("changes", "key", "text"),
    [
        ({"IPv4-L-Real": "10.1.2.3"}, "IPv4-L-Real", "plans use only addresses of 198.18.0.0/16"),
        ({"IPv4-R-Real": "198.19.0.77"}, "IPv4-R-Real", "198.19.0.2 instead: the closest"),
        ({**MANY_V4, "IP-L-min": "0"}, "IP-L-min", "2: the hosts are 198.18.0.2 .. "),
        ({**MANY_V4, "IPv4-L-offset": "1"}, "IPv4-L-offset", "the number is at octet 2"),
        ({**MANY_V4, "IP-R-var": "1"}, "IP-R-var", "both sides have the same order"),
        ({**PORTS, "Rev-sport-max": "2000"}, "Rev-sport-max", "both directions use the ports of Fwd-"),
        ({**PORTS, "Fwd-dport-min": "0", "Rev-dport-min": "0"}, "Fwd-dport-min", "1: port 0 is reserved"),
        ({"MAC-L-Tester": "01:00:5e:00:00:01"}, "MAC-L-Tester", "omitted"),
        ({"CPU-R-Recv": "2"}, "CPU-R-Recv", "a CPU may occur only once"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_no_plan_can_say_is_named_with_what_is_sent_instead(
    evenhand: Run, tmp_path: Path, changes: dict[str, str], key: str, text: str
) -> None:
    document = evenhand(
        "import", write_conf(tmp_path / "siitperf.conf", {**ROUTER_KEYS, **changes}), "--json"
    ).json
    assert not document["is_exact"]
    became, said = outcomes(document)[key]
    assert became == "differs"
    assert text in said


@pytest.mark.parametrize(
    ("mode", "text"), [("0", "fixed"), ("1", "1024-65535:increment"), ("2", "1024-65535:decrement")]
)
def test_port_modes_are_options(evenhand: Run, tmp_path: Path, mode: str, text: str) -> None:
    """R2544-31, R4814-02: 0 is the one port of RFC 2544; 1 and 2 go step by step."""
    keys = {**ROUTER_KEYS, **PORTS, "Fwd-var-sport": mode, "Rev-var-sport": mode}
    words = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json").json["commands"][0][
        "words"
    ]
    assert words[words.index("--source-ports") + 1] == text
    assert "--destination-ports" not in words


@pytest.mark.parametrize(("forward", "reverse", "cpus"), [("1", "0", [2, 4]), ("0", "1", [8, 6])])
def test_one_direction_has_its_own_ports_and_cpus(
    evenhand: Run, tmp_path: Path, forward: str, reverse: str, cpus: list[int]
) -> None:
    """A port each: CPU-L-Send and CPU-R-Recv, or CPU-L-Recv and CPU-R-Send."""
    keys = {
        **ROUTER_KEYS,
        "Forward": forward,
        "Reverse": reverse,
        "Rev-var-sport": "3",
        "Rev-sport-min": "5000",
        "Rev-sport-max": "6000",
    }
    document = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json").json
    words = document["commands"][0]["words"]
    assert words[words.index("--direction") + 1] == ("forward" if forward == "1" else "reverse")
    assert words[words.index("--source-ports") + 1] == ("fixed" if forward == "1" else "5000-6000")
    assert tomllib.loads((tmp_path / "siitperf.toml").read_text())["tester"]["cpus"] == cpus
    assert outcomes(document)["Rev-sport-min"][0] == ("meaningless" if forward == "1" else "mapped")


STATEFUL_LINE = "siitperf-tp 84 100000 60 2000 2 2 1000 500 100 1000 50000"


def test_connections_are_established_as_siitperf_would_and_what_has_no_counterpart_is_said(
    evenhand: Run, tmp_path: Path
) -> None:
    """RFC 9693: every key and argument that belongs to them; each command runs here."""
    document = evenhand("import", EXAMPLE, "--command", STATEFUL_LINE, "--json").json
    found = outcomes(document)
    assert {
        key: found[key][0] for key in ("Stateful", "Enumerate-ports", "Responder-ports")
    } == dict.fromkeys(("Stateful", "Enumerate-ports", "Responder-ports"), "mapped")
    assert {name: found[f"<{name}>"][0] for name in STATEFUL} == {
        "N": "mapped",
        "M": "differs",
        "R": "mapped",
        "T": "differs",
        "D": "meaningless",
    }
    assert "1,000 connections" in found["<M>"][1]
    assert found["Rev-sport-min"][0] == "meaningless"
    common = "--plan nat44 --hosts 1 --source-ports 1024-65535 --destination-ports 1-49151 {} --frame-size 64"
    opened = common.format("--established 1000 --establish-rate 100")
    plain = common.format("").replace("  ", " ")
    assert {each["instead_of"]: " ".join(each["words"][1:]) for each in document["commands"]} == {
        "binary-rate-alg.sh-R": f"connections example.toml --connections 1000 {plain}",
        "cttc.sh": f"capacity example.toml {plain}",
        "siitperf-tp": f"trial example.toml --rate 100000 --duration 60s {opened}",
        "binary-rate-alg.sh-sf": f"throughput example.toml --final-duration 60s {opened}",
    }


NAT64 = {
    **ROUTER_KEYS,
    "IP-L-Vers": "6",
    "IP-R-Vers": "4",
    "IPv6-L-Real": "2001:2::2",
    "IPv6-R-Real": "::",
    "IPv6-R-Virt": "64:ff9b::198.19.0.2",
    "IP-L-var": "3",
    "IP-R-var": "3",
    "IP-L-min": "0",
    "IP-L-max": "3999",
    "IP-R-min": "2",
    "IP-R-max": "1001",
    "IPv6-L-offset": "12",
    "IPv6-R-offset": "14",
    "Stateful": "1",
    "Enumerate-ips": "3",
    "Responder-tuples": "3",
}
"""As in siitperf's README: 4,000 IPv6 hosts and 1,000 IPv4 hosts."""


def test_a_nat64_of_siitperfs_readme_has_as_many_connections_between_as_many_hosts(
    evenhand: Run, tmp_path: Path
) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", NAT64)
    line = "siitperf-lat 84 100000 120 2000 2 2 4000000 4000000 100000 2000 50000 60 500"
    ended = evenhand("import", conf, "--command", line, "--json")
    assert ended.code == 0
    found = outcomes(ended.json)
    assert found["IPv6-R-Virt"] == (
        "differs",
        "2001:2:0:64::c613:1 .. 2001:2:0:64::c613:3e8 instead: the translation prefix 64:ff9b::/96 is not"
        " for hosts of the benchmarking block (RFC 6052, 3.1)",
    )
    assert found["IPv6-L-offset"][0] == "differs"
    assert found["IPv6-R-offset"][0] == "mapped"
    assert found["<IPv6 frame size>"] == ("mapped", "--frame-size 64, on the IPv4 side")
    words = {each["instead_of"]: each["words"] for each in ended.json["commands"]}
    assert list(words) == ["binary-rate-alg.sh-R", "cttc.sh", "siitperf-lat"]
    plan = plan_sent(evenhand, words["cttc.sh"])
    assert [plan[side]["hosts"]["host"]["count"] for side in ("left", "right")] == [4000, 1000]


@pytest.mark.parametrize(
    ("keys", "key", "became"),
    [
        ({"Enumerate-ports": "1"}, "Enumerate-ports", "differs"),
        ({"Enumerate-ports": "2", "Enumerate-ips": "3"}, "Enumerate-ips", "differs"),
        ({"Enumerate-ports": "0"}, "Enumerate-ports", "differs"),
        ({"Enumerate-ports": "3", "Responder-tuples": "1"}, "Responder-tuples", "differs"),
        ({"Enumerate-ports": "3", "Responder-tuples": "3"}, "Responder-tuples", "mapped"),
    ],
)
def test_other_orders_of_connections_are_told(
    evenhand: Run, tmp_path: Path, keys: dict[str, str], key: str, became: str
) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", {**ROUTER_KEYS, **PORTS, "Stateful": "1", **keys})
    document = evenhand("import", conf, "--json").json
    assert outcomes(document)[key][0] == became
    opening = document["commands"][0]["words"]
    wanted = {"1": "increasing", "2": "decreasing"}.get(keys["Enumerate-ports"])
    assert (opening[opening.index("--order") + 1] if "--order" in opening else None) == wanted


def test_an_initiator_on_the_right_is_the_left_side_here(evenhand: Run, tmp_path: Path) -> None:
    keys = {**ROUTER_KEYS, **PORTS, "Stateful": "2", "Enumerate-ports": "3"}
    keys |= {"Rev-sport-min": "1", "Rev-sport-max": "40000", "Rev-dport-min": "1", "Rev-dport-max": "100"}
    document = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json").json
    found = outcomes(document)
    assert found["Stateful"] == ("mapped", "--plan nat44: the right port opens connections")
    assert found["Rev-sport-max"] == ("mapped", "--source-ports 1-40000")
    assert found["Fwd-var-sport"][0] == "meaningless"
    assert any("exchanged" in note for note in document["notes"])


def test_the_preliminary_phase_alone_has_no_load_after_it(evenhand: Run, tmp_path: Path) -> None:
    keys = {**ROUTER_KEYS, **PORTS, "Stateful": "1", "Enumerate-ports": "3", "Forward": "0", "Reverse": "0"}
    conf = write_conf(tmp_path / "siitperf.conf", keys)
    document = evenhand("import", conf, "--command", STATEFUL_LINE, "--json").json
    assert [each["words"][1] for each in document["commands"]] == ["connections", "capacity"]


@pytest.mark.parametrize("versions", [("4", "6")])
def test_connections_for_which_there_is_no_plan_are_refused_by_name(
    evenhand: Run, tmp_path: Path, versions: tuple[str, str]
) -> None:
    """From IPv4 to IPv6: neither RFC 9693 nor any plan has such a DUT."""
    left, right = versions
    keys = {**NAT64, "IP-L-Vers": left, "IP-R-Vers": right, "IPv4-L-offset": "2", "IPv4-R-offset": "2"}
    ended = evenhand("import", write_conf(tmp_path / "siitperf.conf", keys), "--json")
    assert ended.code == 1
    assert outcomes(ended.json)["Stateful"][0] == "refused"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "siitperf-tp 84 100000 60 2000 2 2",
            "trial T --rate 100000 --duration 60s --plan direct-v4-net24 --hosts 1 --frame-size 64",
        ),
        (
            "./build/siitperf-tp 1538 1000 30 500 2 2",
            "trial T --rate 1000 --duration 30s --plan direct-v4-net24 --hosts 1 --frame-size 1518"
            " --wait-residual 500ms",
        ),
        (
            "siitperf-tp 84 1000 30 2000 10 9",
            "trial T --rate 1000 --duration 30s --plan direct-v4-net24+direct-v6 --mix 9/1 --hosts 1"
            " --frame-size 84",
        ),
        (
            "siitperf-lat 128 1000 120 2000 2 2 60 500",
            "latency T --rate 1000 --duration 120s --from 60s --tagged 500 --repetitions 1"
            " --plan direct-v4-net24 --hosts 1 --frame-size 108",
        ),
        (
            "siitperf-pdv 84 1000 60 2000 2 2 0",
            "pdv T --rate 1000 --duration 60s --repetitions 1 --plan direct-v4-net24 --hosts 1 --frame-size"
            " 64",
        ),
    ],
)
def test_a_command_line_becomes_the_very_command_and_it_runs(
    evenhand: Run, engine_playing: Play, tmp_path: Path, line: str, words: str
) -> None:
    """What is printed is run as it stands, on the testbed file that was written."""
    conf = write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS | PORTS)
    ended = evenhand("import", conf, "--command", line, *WHOLE)
    assert ended.code == 0, ended.err
    printed = next(text for text in ended.out.splitlines() if text.startswith("Instead of siitperf-"))
    command = shlex.split(printed.partition(": ")[2])
    assert command == ["evenhand", *words.replace(" T ", " siitperf.toml ").split()]
    assert read_testbed(tmp_path / "siitperf.toml").tester.cpus == (0,)
    engine_playing("simulated-640000")
    assert main([*command[1:], "--no-run"]) == 0


def test_a_timeout_for_each_frame_is_refused(evenhand: Run, tmp_path: Path) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS | PORTS)
    ended = evenhand("import", conf, "--command", "siitperf-pdv 84 1000 60 2000 2 2 100", "--json")
    assert ended.code == 1
    assert outcomes(ended.json)["<frame timeout>"][0] == "refused"
    assert ended.json["commands"][0]["words"][1] == "trial"


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        ("siitperf-tp 84 100000 60 2000 2", "exchange.wrong-number-of-arguments", "5 arguments"),
        (
            "siitperf-tp 84 100000 60 2000 2 2 1000 500 100 2000 5000",
            "exchange.wrong-number-of-arguments",
            "11 arguments",
        ),
        ("siitperf-tp 60 100000 60 2000 2 2", "exchange.wrong-value", "'60'"),
        ("siitperf-tp 84 0 60 2000 2 2", "exchange.wrong-value", "'0'"),
        ("siitperf-tp 84 100000 x 2000 2 2", "exchange.wrong-value", "'x'"),
        ("siitperf-tp 84 100000 60 2000 2 2 reboot", "exchange.wrong-number-of-arguments", "7 arguments"),
        ("siitperf-lat 84 1000 60 2000 2 2 60 500", "exchange.arguments-contradict", "60 s"),
        ("siitperf-pdv 84 1000 60 2000 2 2 62000", "exchange.arguments-contradict", "62000 ms"),
        ("rm -rf /", "exchange.not-a-command", "'rm -rf /'"),
        ("siitperf-tp '84", "exchange.not-a-command", "siitperf-tp '84"),
        ("", "exchange.not-a-command", "''"),
        ("siitperf-tp " + "8" * 2000, "exchange.not-a-command", "'siitperf-tp 888"),
    ],
)
def test_a_command_line_that_is_none_is_refused(
    evenhand: Run, tmp_path: Path, line: str, code: str, named: str
) -> None:
    ended = evenhand("import", write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS), "--command", line)
    assert ended.code == 2
    assert ended.error.code == code
    assert named in f"{ended.error.what} {ended.error.next_step}"
    assert ended.error.where == "--command"
    assert not (tmp_path / "siitperf.toml").exists()


def test_large_frames_of_ipv6_are_refused_as_siitperf_does(evenhand: Run, tmp_path: Path) -> None:
    keys = {**ROUTER_KEYS, "IP-L-Vers": "6", "IP-R-Vers": "6"}
    ended = evenhand(
        "import", write_conf(tmp_path / "siitperf.conf", keys), "--command", "siitperf-tp 1530 1 1 0 2 2"
    )
    assert ended.code == 2
    assert ended.error.code == "exchange.frame-too-large"


def test_background_beside_connections_is_refused(evenhand: Run) -> None:
    """RFC 9693 has none: all frames are of connections."""
    ended = evenhand("import", EXAMPLE, "--command", STATEFUL_LINE.replace(" 2 2 ", " 10 5 "), "--json")
    assert ended.code == 1
    assert outcomes(ended.json)["<m>"][0] == "refused"


def test_the_gaps_are_refused_by_check_with_a_next_step(evenhand: Run, tmp_path: Path) -> None:
    """One after the other: devices, then the confirmation (SEED-80)."""
    ended = evenhand("import", write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS))
    assert "Before it can be used:" in ended.out
    told = evenhand("check", "siitperf.toml", "--watch", "0")
    assert told.code == 2
    assert (told.error.code, told.error.where) == ("rig.driver-refused", "siitperf.toml: left.device")
    assert "`evenhand import`" in told.error.what
    assert "PCI address" in told.error.next_step
    path = tmp_path / "siitperf.toml"
    path.write_text(path.read_text().replace("FILL-IN", "net_ring0", 1).replace("FILL-IN", "net_ring1", 1))
    told = evenhand("check", "siitperf.toml", "--watch", "0")
    assert told.code == 2
    assert told.error.code == "rig.isolation-not-confirmed"
    assert "isolated_test_environment = true" in told.error.next_step


def test_a_plan_of_the_users_choice_is_taken(evenhand: Run, tmp_path: Path) -> None:
    """SEED-05: a DUT with gateways sends and answers the same hosts; in IPv6 all of them."""
    conf = write_conf(tmp_path / "siitperf.conf", MANY_V6)
    document = evenhand("import", conf, "--plan", "gateway-v6", "--json").json
    assert document["is_exact"]
    assert document["commands"][0]["words"][3:] == ["--plan", "gateway-v6"]
    assert evenhand("import", conf, "--plan", "gateway-v4", "--output", "b.toml").code == 2
    assert evenhand("import", conf, "--plan", "gatway-v6", "--output", "b.toml").code == 2


def test_the_page_has_every_key_and_argument() -> None:
    """docs/reference/import.md says what the code does with each; from-siitperf.md shows what is printed."""
    listed = [key for row in table_rows("docs/reference/import.md", "key") for key in row[0].split(", ")]
    assert sorted(listed) == sorted(KEYS)
    arguments = [
        name for row in table_rows("docs/reference/import.md", "argument") for name in row[0].split(", ")
    ]
    assert arguments == [*FIRST, *STATEFUL, *LAST["siitperf-lat"], *LAST["siitperf-pdv"]]


def test_the_how_to_shows_what_is_printed(evenhand: Run) -> None:
    (shown,) = [
        block
        for block in blocks("text", document="docs/how-to/from-siitperf.md")
        if "Instead of" in block.text
    ]
    line = "siitperf-tp 84 100000 60 2000 2 2"
    printed = evenhand(
        "import", ROOT / "examples" / "siitperf.conf", "--output", "trial.toml", "--command", line
    ).out
    assert shown.text in printed
