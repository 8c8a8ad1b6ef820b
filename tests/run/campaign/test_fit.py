# SPDX-License-Identifier: Apache-2.0
"""What would cost points of a campaign their number is refused before the first point, and by a dry run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evenhand.rig import rig_of
from evenhand.run.campaign.dut_setup import check_fit, check_timeouts, demands_of, lab_wish_of
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand
from tests.cli.running import TESTBED
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.run.campaign.small_campaign import OPTIONS, write_campaign


def evenhand(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*evenhand_command(), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def campaign(suite: dict[str, Any], **top: Any) -> CampaignPlan:
    of_suite = {"name": "s", "hosts": 4, "maximum-rate": "1kfps", **suite}
    document = {
        "name": "x",
        "suite": [{key: value for key, value in of_suite.items() if value is not None}],
        **top,
    }
    return expand(make_campaign(document, where="c.toml"))


@pytest.mark.parametrize(
    ("suite", "code", "named", "next_step"),
    [
        ({"hash-types": ["type1"]}, "rig.hash-not-settable", "type1", 'hash-types = "not-stated"'),
        ({"plan": "direct-v4-net24+direct-v6"}, "rig.one-version-at-a-time", "", "Use gateway plans"),
    ],
)
def test_what_a_linux_lab_cannot_be_set_to_is_refused(
    suite: dict[str, Any], code: str, named: str, next_step: str
) -> None:
    """RSS-02: its links hash nothing; R5180-14: it has room for neighbours of one IP version."""
    with raises(code, match=named) as refused:
        rig_of("lab:linux").check(lambda: demands_of(campaign(suite).points), is_begun=True)
    assert "suite 's'" in refused.value.where
    assert next_step in refused.value.next_step
    rig_of("lab:vm").check(lambda: demands_of(campaign(suite).points), is_begun=True)


def test_a_lab_is_set_up_for_the_largest_of_all_points_of_a_suite() -> None:
    """And its links take the largest frame of the campaign, so that all suites are measured on the same
    ports."""
    plan = expand(
        make_campaign(
            {
                "name": "x",
                "suite": [
                    {
                        "name": "a",
                        "plan": "nets-v6-gateway",
                        "hosts": [2, "8,4"],
                        "networks": 4,
                        "maximum-rate": "1kfps",
                    },
                    {
                        "name": "b",
                        "plan": "gateway-v4",
                        "hosts": 1,
                        "frame-sizes": [64, 9018],
                        "maximum-rate": "1kfps",
                    },
                ],
            },
            where="c.toml",
        )
    )
    wish = lab_wish_of([point for point in plan.points if point.suite == "a"], plan.points)
    assert (wish.plan, wish.hosts, wish.networks, wish.largest_frame_size) == (
        "nets-v6-gateway",
        (8, 4),
        (4, 4),
        9018,
    )
    made = wish.make_plan()
    assert (made.ip_version, made.left.host_range.count, made.left.host_range.network_count) == (6, 8, 4)


@pytest.mark.parametrize("names", ["siit+gateway-v6", "gateway-v6+siit"])
def test_a_lab_is_set_up_for_both_plans_of_a_mix(names: str) -> None:
    """R8219-05: addresses and routes of both, whatever the share."""
    points = campaign({"plan": names, "mix": "90/10"}).points
    made = lab_wish_of(points).make_plan()
    assert made.title == names
    assert [plan.hosts.left for plan in made.plans] == [4, 4]
    rig_of("lab:linux").check(lambda: demands_of(points), is_begun=True)


@pytest.mark.parametrize(
    ("dut", "suite", "code", "named"),
    [
        ('plan = "gateway-v4"', {"plan": "gateway-v6"}, "rig.dut-of-other-plan", "gateway-v4, .*gateway-v6"),
        ("largest_frame_size = 1518", {"frame-sizes": 9018}, "rig.frame-too-large", "1518 .*9018"),
    ],
)
def test_a_testbed_that_contradicts_a_point_is_refused_before_the_first(
    tmp_path: Path, dut: str, suite: dict[str, Any], code: str, named: str
) -> None:
    """Each of its points would have got the same answer, one after the other."""
    path = tmp_path / "testbed.toml"
    path.write_text(f"{TESTBED}\n[dut]\n{dut}\n")
    with raises(code, match=named) as refused:
        check_fit(campaign(suite), str(path))
    assert "(point s/throughput/" in refused.value.what
    assert check_fit(campaign({}), str(path)) == []


@pytest.mark.parametrize(
    ("suite", "idle_s"),
    [
        (
            {"established": "100k", "establish-rate": "10kfps", "duration": "5s", "final-duration": "60s"},
            10 + 11 + 60,
        ),
        ({"procedure": "latency", "rate": "1kfps", "established": "100k", "establish-rate": "10kfps"}, 141),
        ({"procedure": "connections", "connections": "100k", "minimum-rate": "100fps"}, 2011),
        ({"procedure": "tear-down", "connections": "100k", "rate": "1kfps"}, 111),
        ({"procedure": "capacity", "from": "1000", "most": "1m"}, 2011),
    ],
)
def test_a_dut_that_forgets_connections_sooner_than_a_point_uses_them_is_refused_before_the_first(
    tmp_path: Path, suite: dict[str, Any], idle_s: float
) -> None:
    """R9693-06, with the waits of RFC 2544."""
    path = tmp_path / "testbed.toml"
    wanted: dict[str, Any] = {"plan": "nat44", **suite}
    if suite.get("procedure") in ("latency", "tear-down"):
        wanted["maximum-rate"] = None
    plan = campaign(wanted)
    for timeout_s, is_enough in ((idle_s - 1, False), (idle_s + 2, True)):
        path.write_text(f'{TESTBED}\n[dut]\nplan = "nat44"\nconnection_timeout = "{timeout_s}s"\n')
        if is_enough:
            assert check_fit(plan, str(path)) == []
            continue
        with raises("procedure.timeout-too-short") as refused:
            check_fit(plan, str(path))
        assert refused.value.where == "suite 's'"


def test_so_is_a_reference_router_and_a_lab_by_what_it_will_be_set_to() -> None:
    """R9693-06."""
    suite = {"plan": "nat44", "established": "100k", "establish-rate": "10kfps"}
    with raises("procedure.timeout-too-short", match=" 30 s"):
        check_fit(campaign(suite, testbed="reference", reference={"connection-timeout": "30s"}), "reference")
    check_fit(campaign(suite, testbed="reference", reference={"connection-timeout": "90s"}), "reference")
    with raises("procedure.timeout-too-short", match=" 60 min"):
        check_fit(campaign({**suite, "establish-rate": "10fps"}), "lab:linux", is_dry=True)


def test_so_is_a_linux_dut_over_ssh_by_what_it_will_be_set_to_unless_its_file_says_more(
    tmp_path: Path,
) -> None:
    """R9693-06: nobody asks a DUT that is not set up yet; what its user has written counts."""
    slow = campaign({"plan": "nat44", "established": "100k", "establish-rate": "10fps"}).points
    reach = 'ssh = "root@192.0.2.7"\nos = "linux"\nleft = "a"\nright = "b"'
    path = tmp_path / "t.toml"
    path.write_text(f"{TESTBED}\n[dut]\n{reach}\n")
    with raises("procedure.timeout-too-short", match=" 60 min"):
        check_timeouts(slow, str(path), None)
    fast = campaign({"plan": "nat44", "established": "100k", "establish-rate": "10kfps"}).points
    check_timeouts(fast, str(path), None)
    path.write_text(f'{TESTBED}\n[dut]\n{reach}\nconnection_timeout = "10h"\n')
    check_timeouts(slow, str(path), None)


def test_what_only_a_hook_can_bring_about_is_not_looked_at_before_it(tmp_path: Path) -> None:
    """A lab of another name that the hook sets up; without a hook it is missing."""
    with raises("rig.not-a-lab", match="'mine'"):
        check_fit(campaign({}), "lab:mine")
    assert check_fit(campaign({}, hooks={"before-suite": "true"}), "lab:mine") == []


def test_a_missing_engine_is_told_before_the_first_point(tmp_path: Path) -> None:
    with raises("base.program-missing"):
        check_fit(campaign({}), "reference", engine=tmp_path / "none")


def test_a_dry_run_shows_the_points_and_then_why_they_cannot_be_measured(tmp_path: Path) -> None:
    """For people the table on stdout and the error on stderr; for programs both in one document."""
    write_campaign(
        tmp_path,
        f'name = "x"\n[[suite]]\nname = "s"\nhosts = 4\nhash-types = "type1"\n{OPTIONS}',
        name="x.toml",
    )
    ended = evenhand("run", str(tmp_path / "x.toml"), "--dry-run", "--testbed", "lab:linux")
    assert ended.returncode == 2
    assert "4 x 4" in ended.stdout
    assert "has no NIC whose hash can be set" in ended.stderr
    assert "no hook does this" not in ended.stdout, "a lab is set up by the campaign itself"
    ended = evenhand("run", str(tmp_path / "x.toml"), "--dry-run", "--testbed", "lab:linux", "--json")
    document = json.loads(ended.stdout)
    assert len(document["points"]) == 2
    assert document["refused"]["id"] == "rig.hash-not-settable"
    fits = json.loads(
        evenhand("run", str(tmp_path / "x.toml"), "--dry-run", "--testbed", "reference", "--json").stdout
    )
    assert fits["refused"] is None


@pytest.mark.skipif(os.geteuid() != 0, reason="looks at a user who is not root from root's side")
def test_a_dry_run_of_a_lab_needs_no_root_and_says_that_the_run_will(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert check_fit(campaign({}), "lab:linux", is_dry=True) == [
        "The Linux lab needs root, to create network namespaces: run the command with sudo."
    ]
    with raises("rig.root-needed"):
        check_fit(campaign({}), "lab:linux")
