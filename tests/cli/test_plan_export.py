# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan export`: a plan's flows in OTG's words, held against the models' names, and the plan's own
addresses."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.running import TESTBED, Ended
from tests.exchange.confs import FILES

Run = Callable[..., Ended]
SCHEMA = json.loads((FILES / "otg-excerpt.schema.json").read_text())
LOAD = ("--rate", "100kfps", "--duration", "10s")


def exported(evenhand: Run, *line: str) -> dict[str, Any]:
    ended = evenhand("plan", "export", *line, *LOAD, "--json")
    assert ended.code == 0, ended.err
    jsonschema.Draft202012Validator(SCHEMA).validate(ended.json["otg"])
    document: dict[str, Any] = ended.json
    return document


def ends_of(pattern: dict[str, Any]) -> tuple[str, str, int]:
    """First and last address of a pattern, and how many it has."""
    choice = pattern["choice"]
    if choice == "value":
        return pattern["value"], pattern["value"], 1
    if choice == "random":
        ends = [ipaddress.ip_address(pattern["random"][end]) for end in ("min", "max")]
        return str(ends[0]), str(ends[1]), int(ends[1]) - int(ends[0]) + 1
    steps = pattern[choice]
    start, step = ipaddress.ip_address(steps["start"]), int(ipaddress.ip_address(steps["step"]))
    last = (
        start + (steps["count"] - 1) * step if choice == "increment" else start - (steps["count"] - 1) * step
    )
    return str(min(start, last)), str(max(start, last)), steps["count"]


@pytest.mark.parametrize(
    ("line", "choices"),
    [
        (("gateway-v4",), ("random", "random")),
        (("direct-v4-net16", "--hosts", "100,1"), ("random", "value")),
        (("gateway-v4", "--host-mode", "increment"), ("increment", "increment")),
        (("direct-v6",), ("increment", "increment")),
        (("gateway-v6", "--host-mode", "decrement"), ("decrement", "decrement")),
        (("nets-v4-single-host", "--fixed-source"), ("value", "increment")),
        (("nets-v6-gateway", "--hosts", "1", "--networks", "16"), ("increment", "increment")),
        (("classic-v4",), ("increment", "increment")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_the_patterns_have_the_addresses_of_the_plan(
    evenhand: Run, line: tuple[str, ...], choices: tuple[str, str]
) -> None:
    """SEED-49: first, last and number of both sides, in both directions."""
    document = exported(evenhand, *line)
    addresses = document["address_plan"]["traffic"]["directions"]
    for flow in document["otg"]["flows"]:
        header = flow["packet"][1]
        fields = header[header["choice"]]
        for role, field in (("source", "src"), ("destination", "dst")):
            wanted = addresses[flow["name"]][role]
            assert ends_of(fields[field]) == (wanted["first"], wanted["last"], wanted["addresses"])
    first = document["otg"]["flows"][0]["packet"][1]
    fields = first[first["choice"]]
    assert (fields["src"]["choice"], fields["dst"]["choice"]) == choices


def test_what_otg_cannot_say_is_listed(evenhand: Run) -> None:
    """Order and pairs where the draw is lost; tags, neighbours, trials always."""
    unsaid = " ".join(exported(evenhand, "gateway-v6")["unsaid"])
    for text in (
        "65,536 addresses in order instead of drawn",
        "65,536 pairs instead of 4,294,967,296",
        "no sequence number",
        "Neighbour Discovery",
    ):
        assert text in unsaid
    assert "in order instead" not in " ".join(exported(evenhand, "gateway-v4")["unsaid"])
    ended = evenhand("plan", "export", "gateway-v6", *LOAD)
    assert "OTG cannot express:" in ended.err
    assert json.loads(ended.out) == exported(evenhand, "gateway-v6")["otg"]


def test_load_size_ports_and_direction(evenhand: Run) -> None:
    (flow,) = exported(
        evenhand, "gateway-v4", "--direction", "reverse", "--frame-size", "128", "--source-ports", "fixed"
    )["otg"]["flows"]
    assert flow["tx_rx"]["port"] == {"tx_name": "right", "rx_names": ["left"]}
    assert (flow["size"]["fixed"], flow["rate"]["pps"], flow["duration"]["fixed_seconds"]["seconds"]) == (
        128,
        100_000,
        10,
    )
    udp = flow["packet"][2]["udp"]
    assert udp["src_port"] == {"choice": "value", "value": 49184}
    assert {key: udp["dst_port"]["random"][key] for key in ("min", "max", "count")} == {
        "min": 1,
        "max": 49151,
        "count": 1_000_000,
    }


def test_each_field_has_a_seed_of_its_own_which_follows_from_the_plans(evenhand: Run) -> None:
    """SEED-40: with one seed the source and the destination would be drawn alike."""

    def seeds(seed: str) -> list[int]:
        text = json.dumps(exported(evenhand, "gateway-v4", "--seed", seed)["otg"])
        return [int(part.split(",")[0]) for part in text.split('"seed": ')[1:]]

    assert len(set(seeds("1"))) > 3
    assert len(set(seeds("1")[:4])) == 4
    assert seeds("7") == seeds("7") != seeds("1")
    seeds(str(2**64 - 1))


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_what_a_testbed_puts_around_frames_is_listed_as_not_in_the_export(
    evenhand: Run, tmp_path: Path, plan: str
) -> None:
    (tmp_path / "lab.toml").write_text(
        TESTBED.replace("[right]", '[left.tunnel]\nkind = "mpls"\nlabels = [100]\n[right]\nvlan = [200, 100]')
    )
    unsaid = exported(evenhand, plan, "--testbed", "lab.toml")["unsaid"]
    assert [text for text in unsaid if "Around" in text] == [
        "Around the frames: left MPLS label 100; right VLAN 200.100. The flows are those without it."
    ]
    assert not any("Around" in text for text in exported(evenhand, plan)["unsaid"])


def test_macs_come_from_the_testbed_file(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(
        TESTBED.replace(
            '"net_ring0"', '"net_ring0"\nmac = "02:00:00:00:00:01"\ndut_mac = "02:00:00:00:00:02"'
        )
    )
    document = exported(evenhand, "gateway-v4", "--testbed", "lab.toml")
    forward, reverse = (flow["packet"][0]["ethernet"] for flow in document["otg"]["flows"])
    assert (forward["src"]["value"], forward["dst"]["value"]) == ("02:00:00:00:00:01", "02:00:00:00:00:02")
    assert reverse == {}


@pytest.mark.parametrize(
    ("line", "code", "where", "named"),
    [
        (("nets-v4-multi-host", *LOAD), "exchange.not-in-otg", "NAME", "253 hosts in each of 256 networks"),
        (("siit@2001:db8::/40", *LOAD), "exchange.not-in-otg", "NAME", "octets 7 and 9"),
        (("gateway-v4", "--rate", "0.5"), "exchange.not-in-otg", "--rate", "0.5 fps"),
        (("gateway-v4", "--rate", "1kfps", "--duration", "0"), "cli.out-of-range", "--duration", "'0'"),
        (
            ("gateway-v4", *LOAD, "--json", "--output", "x.json"),
            "cli.options-exclude-each-other",
            "--json, --output",
            "--output",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(
    evenhand: Run, tmp_path: Path, line: tuple[str, ...], code: str, where: str, named: str
) -> None:
    ended = evenhand("plan", "export", *line)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert named in f"{ended.error.what} {ended.error.next_step}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_once(evenhand: Run, tmp_path: Path) -> None:
    assert evenhand("plan", "export", "gateway-v4", *LOAD, "--output", "flows.json").code == 0
    assert json.loads((tmp_path / "flows.json").read_text())["ports"] == [{"name": "left"}, {"name": "right"}]
    assert evenhand("plan", "export", "gateway-v4", *LOAD, "--output", "flows.json").code == 2
