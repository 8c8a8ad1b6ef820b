# SPDX-License-Identifier: Apache-2.0
"""A series over routes: how many prefixes of a plan file are used, from the campaign file to the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from evenhand.analysis.whole import curves_of
from evenhand.plan import AddressPlan, HostList, SideCounts, make_own_plan, routes_of, with_routes
from evenhand.run import read_record
from evenhand.run.campaign.dut_setup import lab_wish_of
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.request import plan_of
from tests.cli.running import Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]

PLANS: Mapping[int, dict[str, Any]] = {
    4: {
        "name": "table",
        "left": {"dut": "10.0.0.1/24", "gateway": "10.0.0.2", "hosts": "198.18.0.0/16"},
        "right": {"dut": "10.0.1.1/24", "gateway": "10.0.1.2", "routes": 4096, "lengths": 28},
    },
    6: {
        "name": "table",
        "left": {"dut": "2001:2:0:1000::1/64", "gateway": "2001:2:0:1000::2", "hosts": "2001:2::/64"},
        "right": {
            "dut": "2001:2:0:9000::1/64",
            "gateway": "2001:2:0:9000::2",
            "routes": 4096,
            "lengths": 64,
            "first": "2001:2:0:a000::",
        },
    },
}
CAMPAIGN = """
name = "series"
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
routes = 4096
lengths = 28
[[suite]]
name = "table"
routes = [16, "4k"]
repetitions = 2
maximum-rate = "1Mfps"
duration = "1s"
final-duration = "2s"
precision = "2%"
waits = "short"
"""


def plan_with(version: int) -> AddressPlan:
    return make_own_plan(PLANS[version], where="table.toml")


def campaign_with(version: int, **suite: Any) -> CampaignPlan:
    """A campaign with one suite of these keys."""
    document = {"name": "series", "plan": PLANS[version], "suite": [{"name": "table", **suite}]}
    return expand(make_campaign(document, where="series.toml"))


def prefixes_of(plan: AddressPlan) -> set[bytes]:
    """The entries of the right side that are used."""
    hosts = plan.right.host_range
    assert isinstance(hosts, HostList)
    size = len(hosts.entries) // hosts.entry_count
    return {hosts.entries[at : at + size] for at in range(0, len(hosts.entries), size)}


@pytest.mark.parametrize("version", [4, 6])
def test_fewer_routes_are_among_more_and_spread_over_the_table(version: int) -> None:
    whole = plan_with(version)
    assert routes_of(whole) == (1, 4096)
    parts = [prefixes_of(with_routes(whole, count)) for count in (1, 16, 256, 4000)]
    assert [len(part) for part in parts] == [1, 16, 256, 4000]
    assert all(few < many for few, many in zip(parts, [*parts[1:], prefixes_of(whole)], strict=True))
    # Among 256 uniform numbers below 4096, 64 are in each quarter, with a deviation of 7.
    places = {entry: place for place, entry in enumerate(sorted(prefixes_of(whole)))}
    quarters = [places[entry] // 1024 for entry in parts[2]]
    assert all(abs(quarters.count(quarter) - 64) < 35 for quarter in range(4))
    # What the DUT routes stays.
    assert with_routes(whole, 16).right.prefixes == whole.right.prefixes
    assert with_routes(whole, SideCounts(1, 4096)) == whole


def test_the_order_stays_from_version_to_version() -> None:
    """Runs are compared over years: the same prefixes must be used."""
    single = with_routes(plan_with(4), 1).right.host_range
    assert str(single.first_address) == "198.19.248.81"


@pytest.mark.parametrize("version", [4, 6])
def test_a_point_for_each_number_the_single_route_first(version: int) -> None:
    plan = campaign_with(version, routes=[16, 1, "4k", "max"], repetitions=1)
    assert [point.routes for point in plan.points] == [(1, 1), (1, 16), (1, 4000), (1, 4096)]
    assert [point.key.rpartition("/")[2] for point in plan.points][:2] == ["routes=1", "routes=1,16"]
    assert [point.is_single for point in plan.points] == [True, False, False, False]
    assert [routes_of(plan_of(point)) for point in plan.points[1:]] == [(1, 16), (1, 4000), (1, 4096)]
    # The DUT has all of them, whatever a point uses.
    assert {plan_of(point).right.route_count for point in plan.points} == {4096}
    assert plan_of(plan.points[1], is_whole=True).to_contract() == plan_with(version).to_contract()
    assert lab_wish_of(plan.points[:2]).make_plan().to_contract() == plan_with(version).to_contract()
    assert plan.spec["suite"][0]["routes"] == ["1", "1,16", "1,4000", "1,4096"]


@pytest.mark.parametrize(
    ("suite", "code"),
    [
        ({"routes": [16, "5k"]}, "plan.count-out-of-range"),
        ({"routes": ["2,16"]}, "plan.count-out-of-range"),
        ({"routes": [0]}, "base.out-of-range"),
        ({"routes": ["many"]}, "base.not-a-quantity"),
        ({"routes": [16, "1,16"]}, "spec.listed-twice"),
        ({"routes": [16], "hosts": [4]}, "spec.hosts-and-routes"),
        ({"routes": [16], "plan": "gateway-v4"}, "plan.no-list-of-prefixes"),
    ],
)
def test_what_cannot_be_is_refused(suite: dict[str, Any], code: str) -> None:
    with raises(code):
        campaign_with(4, **suite)


def test_a_series_is_measured_shown_exported_and_resumed(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000--512")
    campaign, run = tmp_path / "series.toml", tmp_path / "series.evenhand"
    campaign.write_text(CAMPAIGN.replace("testbed.toml", testbed.name))
    ended = evenhand("run", campaign, "--run", run)
    assert ended.code == 0, ended.err
    record = read_record(run)
    sent = [point.repetitions[0].searches[0].plan["right"] for point in record.points]
    assert [side["prefixes"]["count"] for side in sent] == [4096] * 3
    assert [side["hosts"]["list"]["entries"] for side in sent] == [1, 16, 4000]
    (curve,) = curves_of(record)
    assert [point.address_count for point in curve.points] == [1, 16, 4000]
    assert [degradation.address_count for degradation in curve.degradations] == [16, 4000]
    assert curve.shape is not None
    assert "Throughput over the number of routes" in run.with_suffix(".html").read_text()
    shown = evenhand("show", run).out
    assert "routes" in shown
    assert "1 x 4,000" in shown
    rows = list(csv.DictReader(StringIO(evenhand("export", run, "--format", "csv").out)))
    assert {row["routes_right"] for row in rows} == {"1", "16", "4000"}
    points = json.loads(evenhand("export", run, "--format", "json").out)["points"]
    assert points[1]["routes"] == {"left": 1, "right": 16}
    assert evenhand("compare", run, run).code == 0
    assert "is finished" in evenhand("run", run, "--resume").err


def test_one_trial_uses_fewer_routes(evenhand: Run, tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_text(
        CAMPAIGN[CAMPAIGN.index("[plan.left]") : CAMPAIGN.index("[[suite]]")].replace("plan.", "")
    )
    found = evenhand("plan", "show", path, "--routes", "16", "--json").json["address_plan"]
    assert found["right"]["hosts"]["list"]["entries"] == 16
    error = evenhand("plan", "show", path, "--routes", "5k").error
    assert (error.code, error.where) == ("plan.count-out-of-range", "--routes")
    error = evenhand("plan", "show", "gateway-v4", "--routes", "16").error
    assert (error.code, error.where) == ("spec.routes-without-plan-file", "--routes")


def test_searches_with_unlike_routes_are_not_one_question(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """On a testbed that is set up for the whole plan file, whose hosts are more than those of 16 routes."""
    engine_playing("simulated-640000--512")
    table = tmp_path / "table.toml"
    table.write_text(
        CAMPAIGN[CAMPAIGN.index("[plan.left]") : CAMPAIGN.index("[[suite]]")].replace("plan.", "")
    )
    search = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")
    for count in ("16", "256"):
        run = tmp_path / f"of-{count}.evenhand"
        ended = evenhand("throughput", testbed, "--plan", table, "--routes", count, *search, "--run", run)
        assert ended.code == 0, ended.err
        (point,) = read_record(run).points
        assert point.point.routes == (1, int(count))
    compared = evenhand("compare", tmp_path / "of-16.evenhand", tmp_path / "of-256.evenhand")
    assert "routes" in compared.out + compared.err
