# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of OTG configurations: what `plan export` has written comes back, the rest is named, and
nothing makes it fall."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.base.errors import RequestError
from evenhand.cli.main import main
from evenhand.exchange.otg_read import import_otg
from evenhand.exchange.outcome import GivenHardware
from tests.cli.running import Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
WHOLE = ("--left", "net_ring0", "--right", "net_ring1", "--cpus", "0", "--isolated-test-environment")


def export(evenhand: Run, *line: str) -> dict[str, Any]:
    ended = evenhand("plan", "export", *line, "--rate", "1kfps", "--duration", "1s", "--output", "flows.json")
    assert ended.code == 0, ended.err
    document: dict[str, Any] = json.loads(Path("flows.json").read_text())
    return document


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("direct-v4-net16", "--plan direct-v4-net16 --frame-size 64"),
        ("direct-v4-net24 --hosts 1", "--plan direct-v4-net24 --hosts 1 --frame-size 64"),
        ("gateway-v4", "--plan gateway-v4 --frame-size 64"),
        (
            "direct-v6 --host-mode decrement --hosts 9",
            "--plan direct-v6 --hosts 9 --host-mode decrement --frame-size 84",
        ),
        (
            "direct-v4-net16 --source-ports 5-9:increment --destination-ports 7 --frame-size 128",
            "--plan direct-v4-net16 --source-ports 5-9:increment --destination-ports 7 --frame-size 128",
        ),
        ("direct-v4-net16 --direction reverse", "--plan direct-v4-net16 --frame-size 64 --direction reverse"),
    ],
)
def test_what_was_exported_comes_back_and_runs(
    evenhand: Run, engine_playing: Play, tmp_path: Path, line: str, options: str
) -> None:
    export(evenhand, *line.split())
    ended = evenhand("import", "flows.json", *WHOLE, "--json")
    assert ended.code == 0, ended.out
    assert ended.json["is_exact"]
    words = ended.json["commands"][0]["words"]
    wanted = options.split()
    at = wanted.index("--frame-size") + 2
    assert words == [
        "evenhand",
        "trial",
        "flows.toml",
        *wanted[:at],
        "--rate",
        "1000",
        "--duration",
        "1s",
        *wanted[at:],
    ]
    engine_playing("simulated-640000")
    assert main([*shlex.split(shlex.join(words))[1:], "--no-run"]) == 0


@pytest.mark.parametrize(
    ("plan", "size", "became", "text"),
    [
        ("gateway-v4", 60, "refused", "60 octets: an IPv4 test frame has 64 to 9216 octets with FCS"),
        ("gateway-v4", 9217, "refused", "9217 octets"),
        ("gateway-v6", 83, "refused", "an IPv6 test frame has 84 to 9216"),
        ("gateway-v6", 64, "differs", "--frame-size 84, the smallest of an IPv6 test frame"),
        ("gateway-v6", None, "differs", "--frame-size 84"),
    ],
)
def test_a_size_that_no_test_frame_has_is_in_no_command(
    evenhand: Run, plan: str, size: int | None, became: str, text: str
) -> None:
    """OTG's own default is 64, which IPv6 cannot have (R5180-10)."""
    document = export(evenhand, plan)
    for flow in document["flows"]:
        del flow["size"]
        flow |= {} if size is None else {"size": {"choice": "fixed", "fixed": size}}
    Path("flows.json").write_text(json.dumps(document))
    ended = evenhand("import", "flows.json", *WHOLE, "--json").json
    rows = [each for each in ended["keys"] if each["key"] in ("flows[0].size", "flows[1].size")]
    assert [row["became"] for row in rows] == [became, became]
    assert all(text in row["text"] for row in rows)
    assert bool(ended["commands"]) == (became == "differs")
    assert all("84" in command["words"] for command in ended["commands"])


@pytest.mark.parametrize(
    ("path", "value", "became", "text"),
    [
        ("devices", [], "refused", "only flows are imported"),
        ("flows.0.tx_rx", {"choice": "device", "device": {}}, "refused", "from port to port"),
        ("flows.0.packet.2.choice", "tcp", "refused", "ethernet, ipv4, tcp: test frames are"),
        (
            "flows.0.packet.1.ipv4.src",
            {"choice": "values", "values": ["198.18.0.2"]},
            "refused",
            "value, increment",
        ),
        (
            "flows.0.packet.1.ipv4.src",
            {"choice": "value", "value": "10.0.0.1"},
            "differs",
            "benchmarking block",
        ),
        (
            "flows.0.packet.1.ipv4.priority",
            {"choice": "value", "value": 1},
            "differs",
            "the test frame has its own value",
        ),
        (
            "flows.0.packet.0.ethernet.src",
            {"choice": "value", "value": "02:00:00:00:00:01"},
            "mapped",
            "left.mac",
        ),
        ("flows.0.packet.0.ethernet.src", {"choice": "auto"}, "differs", "omitted"),
        (
            "flows.0.packet.2.udp.src_port",
            {"choice": "increment", "increment": {"start": 1, "step": 2, "count": 9}},
            "refused",
            "a step of 1",
        ),
        (
            "flows.0.size",
            {"choice": "random", "random": {"min": 64}},
            "refused",
            "random: only fixed with a whole",
        ),
        ("flows.0.rate", {"choice": "percentage", "percentage": 10}, "mapped", "--rate 10%"),
        ("flows.0.rate", {"choice": "kbps", "kbps": 900}, "mapped", "--rate 900kbit/s"),
        ("flows.0.rate", {"choice": "percentage", "percentage": 101}, "refused", "only pps"),
        ("flows.0.size", {"choice": "weight_pairs", "weight_pairs": {}}, "refused", "only fixed"),
        ("flows.0.duration", {"choice": "continuous"}, "refused", "continuous has no end"),
        (
            "flows.0.duration",
            {"choice": "burst", "burst": {"packets": 1}},
            "refused",
            "fixed_packets with a rate in pps",
        ),
        ("flows.0.duration", None, "refused", "continuous has no end"),
        ("flows.0.size", None, "mapped", "--frame-size 64, the default of OTG"),
        ("flows.0.size", {"fixed": 128}, "mapped", "--frame-size 128"),
        ("flows.0.rate", None, "mapped", "--rate 1000, the default of OTG"),
        ("flows.0.tx_rx.port.rx_names", [], "differs", "names no port that receives"),
        ("flows.0.tx_rx.port.rx_names", ["left"], "refused", "the frames come back to left"),
        ("flows.0.tx_rx.port.rx_names", ["left", "right"], "differs", "those that come back to left"),
        ("flows.0.tx_rx.port.rx_names", ["other"], "refused", "not one of the two ports (left, right)"),
        ("flows.0.tx_rx.port.tx_name", "other", "refused", "not one of the two ports (left, right)"),
        ("flows.0.tx_rx.port", {"tx_name": "left", "rx_name": "right"}, "mapped", "at the right port"),
        ("flows.1.rate.pps", 5, "mapped", "--rate 5"),
        ("ports.0.location", "0000:01:00.0;exec", "meaningless", "--left and --right"),
    ],
)
def test_what_has_no_words_here_is_named(
    evenhand: Run, tmp_path: Path, path: str, value: Any, became: str, text: str
) -> None:
    document = export(evenhand, "direct-v4-net16")
    *parents, last = path.split(".")
    at: Any = document
    for part in parents:
        at = at[int(part)] if part.isdecimal() else at[part]
    at[last] = value
    Path("flows.json").write_text(json.dumps(document))
    ended = evenhand("import", "flows.json", "--json")
    assert ended.code == (1 if became == "refused" else 0), ended.err
    assert any(row["became"] == became and text in row["text"] for row in ended.json["keys"]), ended.json[
        "keys"
    ]
    assert "0000:01:00.0;exec" not in Path("flows.toml").read_text()


@pytest.mark.parametrize(
    ("content", "code", "where"),
    [
        ("{", "exchange.not-json", "flows.json"),
        ("[]", "exchange.no-flows", "flows.json"),
        ('{"flows": [7]}', "exchange.no-flows", "flows.json"),
        ('{"ports": [{"name": 7}], "flows": [{}]}', "exchange.wrong-value", "flows.json: ports"),
        ("[" * 100_000, "exchange.not-json", "flows.json"),
        (
            '{"flows": [{"packet": [{"choice": "ethernet"}, {"choice": "ipv4", "ipv4": {"src": {"choice":'
            ' "value", "value": "x"}}},'
            ' {"choice": "udp"}]}]}',
            "exchange.wrong-value",
            "flows.json: flows[0].ipv4.src",
        ),
    ],
)
def test_what_is_no_configuration_is_refused_in_three_parts(
    evenhand: Run, tmp_path: Path, content: str, code: str, where: str
) -> None:
    (tmp_path / "flows.json").write_text(content)
    ended = evenhand("import", "flows.json")
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["Error", "Where", "Next"]
    assert not (tmp_path / "flows.toml").exists()


def test_names_of_a_stranger_do_nothing_to_a_terminal(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "flows.json").write_text(
        json.dumps({"ports": [{"name": "\x1b[2J[bold]"}], "flows": [{"\x1b]0;x\x07": 1}], "\x1b": 2})
    )
    ended = evenhand("import", "flows.json")
    assert ended.code == 1
    assert "\x1b" not in ended.out + ended.err


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 70000)
    | st.text(max_size=8)
    | st.sampled_from(["value", "increment", "random", "ipv4", "udp"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["choice", "value", "increment", "port", "tx_name", "start", "fixed", "pps", "src"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
PATHS = (
    "ports",
    "ports.0",
    "flows.0",
    "flows.0.tx_rx",
    "flows.0.packet",
    "flows.0.packet.0.ethernet",
    "flows.0.packet.1",
    "flows.0.packet.1.ipv4",
    "flows.0.packet.1.ipv4.src",
    "flows.0.packet.1.ipv4.dst.random",
    "flows.0.packet.2.udp.src_port",
    "flows.0.size",
    "flows.0.rate",
    "flows.0.duration",
    "flows.1",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.sampled_from(PATHS), JSON)
def test_whatever_stands_in_a_place_ends_in_rows_or_a_refusal(tmp_path: Path, path: str, value: Any) -> None:
    source = tmp_path / "good.json"
    if not source.exists():
        assert main(["plan", "export", "direct-v4-net16", "--rate", "1kfps", "--output", str(source)]) == 0
    document = json.loads(source.read_text())
    *parents, last = path.split(".")
    at = document
    for part in parents:
        at = at[int(part)] if part.isdecimal() else at[part]
    at[int(last) if last.isdecimal() else last] = value
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    try:
        assert import_otg(changed, GivenHardware(), plan=None, testbed=Path("a.toml")).rows
    except RequestError as error:
        told = (error.where, error.next_step)
        assert all(told)


@pytest.mark.parametrize(
    ("key", "value", "option", "have"),
    [
        ("size.fixed", 1500, "--frame-size", "64"),
        ("duration.fixed_seconds.seconds", 9, "--duration", "1s"),
        ("packet.2.udp.src_port", {"choice": "value", "value": 7}, "--source-ports", None),
    ],
)
def test_what_the_second_flow_has_of_its_own_differs_and_the_command_says_the_firsts(
    evenhand: Run, tmp_path: Path, key: str, value: Any, option: str, have: str | None
) -> None:
    document = export(evenhand, "direct-v4-net16")
    *parents, last = key.split(".")
    at: Any = document["flows"][1]
    for part in parents:
        at = at[int(part)] if part.isdecimal() else at[part]
    at[last] = value
    Path("flows.json").write_text(json.dumps(document))
    ended = evenhand("import", "flows.json", "--json")
    rows = [row for row in ended.json["keys"] if row["became"] == "differs"]
    assert [row["key"].startswith("flows[1].") for row in rows] == [True]
    assert (f"{option} {have}" if have else "all ports") in rows[0]["text"]
    assert not ended.json["is_exact"]
    words = ended.json["commands"][0]["words"]
    assert (words[words.index(option) + 1] if option in words else None) == have


def test_packets_without_a_rate_are_refused_with_what_is_missing(evenhand: Run, tmp_path: Path) -> None:
    document = export(evenhand, "direct-v4-net16", "--direction", "forward")
    document["flows"][0]["duration"] = {"choice": "fixed_packets", "fixed_packets": {"packets": 5000}}
    Path("flows.json").write_text(json.dumps(document))
    words = evenhand("import", "flows.json", "--output", "a.toml", "--json").json["commands"][0]["words"]
    assert words[words.index("--duration") + 1] == "5s"
    document["flows"][0]["rate"] = {"choice": "bps", "bps": (64 + 20) * 8 * 500}
    Path("flows.json").write_text(json.dumps(document))
    words = evenhand("import", "flows.json", "--output", "b.toml", "--json").json["commands"][0]["words"]
    assert words[words.index("--duration") + 1] == "10s"
    document["flows"][0]["rate"] = {"choice": "percentage", "percentage": 100}
    Path("flows.json").write_text(json.dumps(document))
    ended = evenhand("import", "flows.json", "--json")
    refused = {row["key"]: row["text"] for row in ended.json["keys"] if row["became"] == "refused"}
    assert "not known without a rate in pps" in refused["flows[0].duration"]


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        ("nets-v4-single-host", ["--networks", "200,1"]),
        ("nets-v4-single-host", ["--networks", "4,8", "--fixed-source"]),
        ("nets-v6-direct", ["--hosts", "1", "--networks", "8"]),
    ],
)
def test_a_step_from_network_to_network_is_the_plan_that_has_these_networks(
    evenhand: Run, tmp_path: Path, plan: str, options: list[str]
) -> None:
    """SEED-30: the same addresses, though not in their order."""
    export(evenhand, plan, *options)
    ended = evenhand("import", "flows.json", "--json")
    assert ended.code == 0, ended.out
    words = ended.json["commands"][0]["words"]
    assert words[3 : 5 + len(options)] == ["--plan", plan, *options]
    differs = [row for row in ended.json["keys"] if row["became"] == "differs"]
    assert differs
    assert all("drawn, not taken in order" in row["text"] for row in differs)
    first = Path("flows.json").read_text()
    Path("flows.json").unlink()
    export(evenhand, *words[words.index("--plan") + 1 : words.index("--frame-size")])
    assert Path("flows.json").read_text() == first


def test_each_direction_of_an_export_has_seeds_of_its_own(evenhand: Run, tmp_path: Path) -> None:
    """With the seeds of the other direction, both would draw the same."""
    seeds = [
        field["random"]["seed"]
        for flow in export(evenhand, "direct-v4-net16")["flows"]
        for header in flow["packet"]
        for field in header[header["choice"]].values()
        if field["choice"] == "random"
    ]
    assert len(seeds) == len(set(seeds)) == 8


def test_a_configuration_is_read_whatever_its_name(evenhand: Run, tmp_path: Path) -> None:
    export(evenhand, "direct-v4-net16")
    Path("flows.json").rename("flows.otg")
    assert evenhand("import", "flows.otg", "--json").json["kind"] == "otg"


@pytest.mark.parametrize("part", ["size", "rate", "duration"])
@pytest.mark.parametrize("flow", [0, 1])
def test_a_part_that_is_refused_in_one_of_two_flows_is_reported(
    evenhand: Run, tmp_path: Path, part: str, flow: int
) -> None:
    document = export(evenhand, "gateway-v6")
    document["flows"][flow][part] = {"choice": "unknown"}
    Path("one.json").write_text(json.dumps(document))
    ended = evenhand("import", "one.json", "--json")
    assert ended.code == 1
    assert ended.json["commands"] == []
    assert [row["became"] for row in ended.json["keys"] if row["key"] == f"flows[{flow}].{part}"] == [
        "refused"
    ]


@pytest.mark.parametrize("names", [[{}], [["a"]], "left"])
def test_receivers_that_are_no_names_are_refused(evenhand: Run, tmp_path: Path, names: Any) -> None:
    document = export(evenhand, "gateway-v4")
    document["flows"][0]["tx_rx"]["port"]["rx_names"] = names
    Path("one.json").write_text(json.dumps(document))
    ended = evenhand("import", "one.json")
    assert (ended.code, ended.error.code) == (2, "exchange.wrong-value")
