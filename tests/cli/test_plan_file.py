# SPDX-License-Identifier: Apache-2.0
"""A plan file takes the place of a plan's name wherever one is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import make_plan, read_plan_file
from evenhand.procedure.profile import address_deviations
from evenhand.rig import Setup
from evenhand.run import read_record
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import plan_of
from evenhand.testbed import make_testbed
from tests.cli.running import TESTBED, Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]

LEFT = '[left]\ndut = "10.0.0.1/24"\ngateway = "10.0.0.2"\nhosts = "198.18.0.0/16"\n'
RIGHT = '[right]\ndut = "10.0.1.1/24"\ngateway = "10.0.1.2"\n'
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")


@pytest.fixture
def edge(tmp_path: Path) -> Path:
    """Prefixes of a file, outside the blocks that are reserved for benchmarking."""
    path = tmp_path / "edge.toml"
    path.write_text(f'{LEFT}{RIGHT}prefixes = "table.txt"\n')
    (tmp_path / "table.txt").write_text("16.0.0.0/24\n16.0.4.0/22\n")
    return path


@pytest.fixture
def isolated(testbed: Path) -> Path:
    testbed.write_text('isolated_networks = "16.0.0.0/8"\n' + TESTBED)
    return testbed


def asked(folder: Path, request: str) -> list[dict[str, Any]]:
    lines = (folder / "engine-requests.jsonl").read_text().splitlines()
    return [found for line in lines if (found := json.loads(line))["request"] == request]


def test_a_plan_file_is_shown_with_its_prefixes(evenhand: Run, edge: Path) -> None:
    text = evenhand("plan", "show", edge).out
    for shown in ("edge (plan file edge.toml)", "1,276", "16.0.0.0/24 .. 16.0.4.0/22 (2)", "table.txt"):
        assert shown in text
    assert "Not reserved for benchmarking: 16.0.0.1 .. 16.0.7.254 (right)." in " ".join(text.split())
    document = evenhand("plan", "show", edge, "--json").json["address_plan"]
    assert document["dut"]["right"]["routes"] == ["16.0.0.0/24", "16.0.4.0/22"]
    assert document["dut"]["right"]["prefixes"]["lengths"] == {"22": 1, "24": 1}


def test_without_the_testbeds_word_nothing_is_sent(
    evenhand: Run, engine_playing: Play, edge: Path, testbed: Path, tmp_path: Path
) -> None:
    """R2544-37, R6815-01."""
    engine_playing("simulated-640000--512")
    error = evenhand("trial", testbed, "--plan", edge, "--rate", "1kfps").error
    assert error.code == "rig.addresses-not-isolated"
    assert "16.0.0.1" in error.what
    assert "isolated_networks" in error.next_step
    assert not (tmp_path / "engine-was-started").exists()


def test_a_trial_sends_to_the_prefixes_and_says_so(
    evenhand: Run, engine_playing: Play, edge: Path, isolated: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000--512")
    ended = evenhand("trial", isolated, "--plan", edge, "--rate", "1kfps", "--waits", "short", "--json")
    (opened,) = asked(tmp_path, "open")
    listed = opened["plan"]["right"]["hosts"]["list"]
    assert listed["entries"] == 2
    assert listed["choose"] == "entry"
    assert not Path(listed["path"]).is_relative_to(tmp_path)
    assert opened["plan"]["left"] == make_plan("gateway-v4").to_request()["left"]
    (deviation,) = [each for each in ended.json["deviations"] if each["requirement"] == "R2544-37"]
    assert "16.0.0.1 .. 16.0.7.254 (right)" in deviation["text"]
    assert ended.json["plan"] == "edge"


def test_a_search_keeps_what_was_sent_without_its_prefixes(
    evenhand: Run, engine_playing: Play, edge: Path, isolated: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000--512")
    run = tmp_path / "edge.evenhand"
    ended = evenhand("throughput", isolated, "--plan", edge, *SEARCH, "--run", run)
    assert ended.code == 0, ended.err
    records = read_record(run)
    searches = [search for point in records.points for of in point.repetitions for search in of.searches]
    sent = [search.plan for search in searches if search.plan["right"]["hosts"].get("list")]
    assert sent
    expected = read_plan_file(edge).to_contract()
    assert all(plan == expected for plan in sent)
    assert "path" not in json.dumps(expected)
    assert evenhand("show", run).code == 0
    page = tmp_path / "edge.html"
    assert evenhand("report", run, "--html", page).code == 0
    assert "R2544-37" in page.read_text()
    assert "16.0.0.1 .. 16.0.7.254 (right)" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "where"),
    [
        (("--hosts", "10"), "spec.more-hosts-than-there-are", "--hosts"),
        (("--hosts", "65534,10"), "plan.hosts-of-prefixes", "--hosts"),
        (("--networks", "2"), "spec.written-in-plan-file", "--networks"),
        (("--host-mode", "increment"), "spec.written-in-plan-file", "--host-mode"),
        (("--common-network",), "spec.written-in-plan-file", "--common-network"),
    ],
)
def test_what_the_plan_file_says_is_no_option(
    evenhand: Run, edge: Path, arguments: tuple[str, ...], code: str, where: str
) -> None:
    if code == "spec.more-hosts-than-there-are":
        edge.write_text(f'{LEFT}{RIGHT}hosts = "16.0.0.1-16.0.0.9"\n')
    error = evenhand("plan", "show", edge, *arguments).error
    assert (error.code, error.where) == (code, where)


def test_ports_and_a_fixed_source_are_options_of_any_plan(evenhand: Run, edge: Path) -> None:
    arguments = ("--source-ports", "fixed", "--fixed-source", "--hosts", "1", "--json")
    found = evenhand("plan", "show", edge, *arguments).json["address_plan"]
    assert found["udp_ports"]["source"] == {"first": 49184, "last": 49184, "mode": "fixed"}
    assert found["fixed_source"]
    assert found["pairs"] == 1


@pytest.mark.parametrize("name", ["edge.toml+gateway-v6", "gateway-v6+edge.toml"])
def test_a_plan_file_is_no_part_of_a_mix(evenhand: Run, edge: Path, testbed: Path, name: str) -> None:
    error = evenhand("trial", testbed, "--plan", name, "--rate", "1kfps").error
    assert (error.code, error.where) == ("spec.plan-file-in-a-mix", "--plan")


def test_a_plan_file_that_is_none_is_named(evenhand: Run, tmp_path: Path) -> None:
    error = evenhand("plan", "show", "missing.toml").error
    assert (error.code, error.where) == ("base.file-not-readable", "missing.toml")
    (tmp_path / "edge.toml").write_text(f"{LEFT}{RIGHT}hots = 3\n")
    error = evenhand("plan", "show", "edge.toml").error
    assert (error.code, error.where) == ("base.unknown-key", "edge.toml: right.hots")
    assert "hosts" in error.next_step


CAMPAIGN = """
name = "ours"
testbed = "testbed.toml"

[plan]
name = "table"
[plan.left]
dut = "10.0.0.1/24"
gateway = "10.0.0.2"
hosts = "198.18.0.0/16"
[plan.right]
dut = "10.0.1.1/24"
gateway = "10.0.1.2"
routes = 16
lengths = 26

[[suite]]
name = "table"
repetitions = 1

[[suite]]
name = "file"
plan = "edge.toml"
repetitions = 1

[[suite]]
name = "draft"
plan = "gateway-v4"
hosts = [16]
repetitions = 1
"""


def test_a_campaign_has_plan_files_and_a_plan_of_its_own(tmp_path: Path, edge: Path) -> None:
    (tmp_path / "other").mkdir()
    path = edge.parent / "ours.toml"
    path.write_text(CAMPAIGN)
    plan = expand(read_campaign(path))
    assert [(point.plan, point.is_one_pair) for point in plan.points] == [
        *(("table", True), ("table", False)),
        *(("edge", True), ("edge", False)),
        *(("gateway-v4", True), ("gateway-v4", False)),
    ]
    table, of_file = (plan_of(plan.points[number]) for number in (1, 3))
    assert table.right.prefixes is not None
    assert table.right.prefixes.count == 16
    assert of_file == read_plan_file(edge)
    assert plan_of(plan.points[2]).pairs == 1
    assert plan.spec["own-plans"]["edge"] == of_file.to_contract()
    # A campaign that goes on would not be the same with other prefixes.
    (tmp_path / "table.txt").write_text("16.0.0.0/24\n")
    edge.write_text(edge.read_text() + "# changed\n")
    assert expand(read_campaign(path)).spec["own-plans"]["edge"] != plan.spec["own-plans"]["edge"]


def test_a_campaign_is_measured_and_resumed_with_its_plan_file(
    evenhand: Run, engine_playing: Play, edge: Path, isolated: Path, tmp_path: Path
) -> None:
    """The single address pair first (SEED-02), then all hosts of the prefixes; from any folder."""
    engine_playing("simulated-640000--512")
    (tmp_path / "files").mkdir()
    for name in (edge.name, "table.txt", isolated.name):
        (tmp_path / name).rename(tmp_path / "files" / name)
    campaign = tmp_path / "files" / "ours.toml"
    campaign.write_text(
        f'name = "ours"\ntestbed = "{isolated.name}"\n[[suite]]\nname = "own"\nplan = "{edge.name}"\n'
        'procedure = "loss"\nrepetitions = 1\nmaximum-rate = "1Mfps"\nduration = "1s"\nwaits = "short"\n'
    )
    run = tmp_path / "ours.evenhand"
    ended = evenhand("run", campaign, "--run", run)
    assert ended.code == 0, ended.err
    assert "16.0.0.1 .. 16.0.7.254 (right)" in run.with_suffix(".html").read_text()
    assert "1276" in evenhand("export", run, "--format", "csv").out
    record = read_record(run)
    sent = [point.repetitions[0].searches[0].plan for point in record.points]
    whole = read_plan_file(tmp_path / "files" / edge.name)
    assert sent == [whole.one_pair().to_contract(), whole.to_contract()]
    assert [point.point.is_one_pair for point in record.points] == [True, False]
    assert record.spec["own-plans"] == {"edge": whole.to_contract()}
    assert "is finished" in evenhand("run", run, "--resume").err


def test_a_plan_file_is_not_taken_to_workers(
    evenhand: Run, edge: Path, testbed: Path, tmp_path: Path
) -> None:
    campaign = tmp_path / "ours.toml"
    campaign.write_text(f'name = "ours"\n[[suite]]\nname = "own"\nplan = "{edge.name}"\n')
    error = evenhand("run", campaign, "--scheduler", "tcp://127.0.0.1:9").error
    assert (error.code, error.where) == ("cli.plan-files-stay-here", "--scheduler")


def test_prefixes_are_not_for_an_engine_elsewhere(edge: Path) -> None:
    ports = {side: {"device": f"net_ring{number}"} for number, side in enumerate(("left", "right"))}
    engines = [
        {"name": "a", "cpus": [0], **ports},
        {"name": "b", "cpus": [0], "ssh": "root@192.0.2.1", **ports},
    ]
    found = make_testbed(
        {"isolated_test_environment": True, "isolated_networks": "16.0.0.0/8", "engine": engines}, where="t"
    )
    setup = Setup(name="t.toml", testbed=found)
    with raises("rig.list-for-another-machine", match="engine 'b'"):
        setup.check_plan(read_plan_file(edge))
    setup.check_plan(make_plan("gateway-v4"))


def test_a_campaign_without_a_plan_file_is_as_it_was() -> None:
    spec = expand(make_campaign({"name": "x", "suite": [{"name": "a"}]}, where="x")).spec
    assert {"plan", "own-plans"}.isdisjoint(spec)


def test_two_plans_of_one_name_in_a_campaign_are_refused(tmp_path: Path, edge: Path) -> None:
    (tmp_path / "other.toml").write_text('name = "edge"\n' + edge.read_text().replace("10.0.1", "10.0.2"))
    suites = [{"name": name, "plan": name} for name in ("edge.toml", "other.toml")]
    with raises("spec.plan-name-twice", match="edge"):
        expand(make_campaign({"name": "x", "suite": suites}, where="x", folder=tmp_path))


def test_a_mistake_in_a_campaigns_plan_is_named_there() -> None:
    document = {"name": "x", "plan": {"left": {"dut": "10.0.0.1/24"}}, "suite": [{"name": "a"}]}
    with raises("base.key-missing") as caught:
        make_campaign(document, where="ours.toml")
    assert caught.value.where.startswith("ours.toml: plan")


def test_what_is_reserved_is_no_deviation(tmp_path: Path, edge: Path) -> None:
    assert [each.requirement for each in address_deviations(read_plan_file(edge))] == ["R2544-37"]
    assert address_deviations(make_plan("gateway-v4")) == []
    (tmp_path / "v6.toml").write_text(
        '[left]\ndut = "2001:db8::1/64"\ngateway = "2001:db8::2"\nhosts = "2001:2::/64"\n'
        '[right]\ndut = "2001:2:0:9000::1/64"\ngateway = "2001:2:0:9000::2"\nhosts = "2001:2:0:8000::/64"\n'
    )
    (deviation,) = address_deviations(read_plan_file(tmp_path / "v6.toml"))
    assert deviation.requirement == "R5180-01"
    assert "2001:db8:: .. 2001:db8::ffff:ffff:ffff:ffff (left)" in deviation.text


@pytest.mark.parametrize("written", ['"16.0.0.1/8"', '["2400::/12", "somewhere"]', "true"])
def test_networks_that_are_none_cannot_be_confirmed(
    evenhand: Run, edge: Path, testbed: Path, written: str
) -> None:
    testbed.write_text(f"isolated_networks = {written}\n{TESTBED}")
    error = evenhand("trial", testbed, "--plan", edge, "--rate", "1kfps").error
    assert error.exit_code == 2
    assert "isolated_networks" in error.where
