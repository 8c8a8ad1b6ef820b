# SPDX-License-Identifier: Apache-2.0
"""The draft's experiments by name: exactly what was published, no more and no less."""

from __future__ import annotations

import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evenhand.rig import rig_of
from evenhand.run.campaign.dut_setup import check_fit, demands_of
from evenhand.run.campaign.events import jobs
from evenhand.run.campaign.time_left import time_of
from evenhand.spec.file import CampaignFile, Published, make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.presets import preset_names, preset_text
from evenhand.spec.request import Point, plan_of, read_point
from tests.errors import raises
from tests.run.campaign.campaigns import expanded

ROOT = Path(__file__).resolve().parents[3]
DOUBLED = [2**k for k in range(16)]
SERIES = ("addresses", "cores", "flows", "reference")
TESTBEDS = {
    "appendix-a-lab": "lab:linux",
    "appendix-a-lab-vm": "lab:vm",
    "appendix-a-reference": "reference",
    "demo": "reference",
    "demo-linux": "lab:linux",
}
OF_ROUTES = {"routes-linux": (4, 64_000), "routes-linux-v6": (6, 1_000_000)}
OF_CLASSES = {"classes": 4, "classes-v6": 6}
CASES = {1: "direct-v4-net16", 2: "direct-v6", 3: "direct-v4-net16", 4: "direct-v4-net16"}


def preset(name: str) -> CampaignFile:
    return make_campaign({"preset": name}, where="c.toml")


def points(name: str) -> list[Point]:
    return list(expand(preset(name)).points)


def published(name: str) -> Published:
    (found,) = preset(name).published
    return found


def values(point: Point) -> tuple[object, ...]:
    return (
        point.plan,
        point.hosts,
        point.networks,
        point.frame_size,
        point.hash_type,
        point.procedure,
        point.repetitions,
    )


def test_the_presets_are_those_of_the_draft_and_of_rfc_9693() -> None:
    """SEED-60, SEED-64, R9693-18; besides them what anybody can run on a router inside the own machine."""
    of_the_draft = ["appendix-a", "appendix-a1", *(f"appendix-a2-case{case}" for case in CASES)]
    assert preset_names() == sorted(
        [*of_the_draft, *TESTBEDS, *OF_CLASSES, *OF_ROUTES, *(f"rfc9693-{name}" for name in SERIES)]
    )


def test_the_series_over_connections_is_that_of_the_rfc() -> None:
    """R9693-18, R9693-19: 0.4M to 400M between one pair, from 40,000 source ports; ten repetitions, and each
    kind of NAT alike."""
    found = points("rfc9693-flows")
    counts = [400_000, 4_000_000, 40_000_000, 400_000_000]
    for plan in ("nat44", "nat64", "nat66"):
        of_plan = sorted(
            (read_point(point).goal.connections, plan_of(point).four_tuples)
            for point in found
            if point.plan == plan
        )
        assert of_plan == [(count, count) for count in counts]
    assert {(point.procedure, point.repetitions, point.is_one_pair) for point in found} == {
        ("connections", 10, True)
    }


def test_the_series_over_addresses_has_as_many_connections_at_each_point() -> None:
    """R9693-04, R9693-16: one pair has just so many four tuples."""
    found = points("rfc9693-addresses")
    assert {read_point(point).goal.connections for point in found} == {4_000_000}
    assert {plan_of(point).four_tuples for point in found if point.is_one_pair} == {4_000_000}
    for plan in ("nat44", "nat64", "nat66"):
        hosts = sorted(point.hosts[0] for point in found if point.plan == plan)
        assert hosts == [1, 10, 100, 1000, 10_000, 65_534]


def test_the_series_over_cores_gives_the_dut_as_many_queues_before_each_suite() -> None:
    """R9693-18: 1 to 16, each kind of NAT alike; and takes them back, before the next and at the end."""
    plan = expand(preset("rfc9693-cores"))
    assert len(plan.points) == 2 * len(plan.suite_hooks) == 30
    for nat in ("nat44", "nat64", "nat66"):
        suites = [point.suite for point in plan.points if point.plan == nat and point.is_one_pair]
        assert suites == [point.suite for point in plan.points if point.plan == nat][::2]
        assert [suite.split()[1] for suite in suites] == ["1", "2", "4", "8", "16"]
        for suite in suites:
            hooks = plan.suite_hooks[suite]
            words = shlex.split(hooks.before_suite or "")
            assert words[:2] == ["evenhand", "dut"]
            assert words[words.index("--channels") + 1] == suite.split()[1]
            assert shlex.split(hooks.after_suite or "") == ["evenhand", "dut", "undo", "$EVENHAND_TESTBED"]
    (room,) = {shlex.split(hooks.before_suite or "")[-3] for hooks in plan.suite_hooks.values()}
    assert all(read_point(point).goal.connections < int(room) for point in plan.points)


def test_the_small_series_of_rfc_9693_is_made_on_the_reference_router() -> None:
    plan = expand(preset("rfc9693-reference"))
    assert plan.testbed == "reference"
    assert {point.plan for point in plan.points} == {"nat44", "nat64", "nat66"}
    assert check_fit(plan, "reference") == []


@pytest.mark.parametrize(("name", "testbed"), TESTBEDS.items())
def test_a_preset_for_a_lab_measures_both_ip_versions_alike(name: str, testbed: str) -> None:
    """SEED-02, SEED-07: one pair and many, over IPv4 and IPv6; its testbed can be set to all that it asks
    for."""
    plan = expand(preset(name))
    assert plan.testbed == testbed
    of_v4, of_v6 = (
        [(min(p.hosts[0], 65_533), p.hash_type, "direct" in p.plan) for p in plan.points if version in p.plan]
        for version in ("v4", "v6")
    )
    assert of_v4 == of_v6
    assert len(of_v4) + len(of_v6) == len(plan.points)
    if testbed.startswith("lab:"):
        rig_of(testbed).check(lambda: demands_of(plan.points), is_begun=True)
    most_min = 25 if name == "appendix-a-lab" else 16
    assert sum(time_of(point).most_s for point in plan.points) < most_min * 60


@pytest.mark.parametrize(("name", "version"), OF_CLASSES.items())
def test_the_presets_of_classes_measure_three_of_them_alike_over_both_ip_versions(
    name: str, version: int
) -> None:
    """One pair first (SEED-02); EF may lose nothing, all others together 5 %."""
    plan = expand(preset(name))
    assert plan.testbed == "lab:linux"
    assert [point.hosts[0] for point in plan.points] == [1, 65_534 if version == 4 else 65_536]
    for point in plan.points:
        assert (point.procedure, point.goal["loss-ratio"]) == ("throughput", "5%")
        address_plan = plan_of(point)
        assert address_plan.ip_version == version
        assert [(flow.dscp, flow.share, flow.loss_at_most) for flow in address_plan.flows] == [
            (46, 1, 0.0),
            (34, 3, None),
            (0, 6, None),
        ]
    rig_of("lab:linux").check(lambda: demands_of(plan.points), is_begun=True)
    assert sum(time_of(point).most_s for point in plan.points) < 5 * 60


@pytest.mark.parametrize(("name", "version", "most"), [(name, *of) for name, of in OF_ROUTES.items()])
def test_the_presets_of_routes_go_from_one_to_as_many_as_can_be(name: str, version: int, most: int) -> None:
    """On one table for all points: as many prefixes of IPv4 as are reserved for benchmarking, a million of
    IPv6; none is outside of what is reserved."""
    plan = expand(preset(name))
    assert plan.testbed == "lab:linux"
    counts = [point.routes.right for point in plan.points if point.routes is not None]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1], len(counts)) == (1, most, len(plan.points))
    (whole,) = {plan_of(point).title for point in plan.points}
    assert whole == ("routes" if version == 4 else "routes-v6")
    for point in plan.points:
        address_plan = plan_of(point)
        assert (address_plan.ip_version, address_plan.not_reserved) == (version, [])
    rig_of("lab:linux").check(lambda: demands_of(plan.points), is_begun=True)
    assert sum(time_of(point).most_s for point in plan.points) < 10 * 60


def test_the_difference_is_1000_addresses_against_one_pair() -> None:
    """SEED-60, SEED-72: direct plans, 64 and 84 octets, addresses hashed, ten searches."""
    assert [values(point) for point in points("appendix-a1")] == [
        (plan, (hosts, hosts), (1, 1), size, "type1", "throughput", 10)
        for plan, size in (("direct-v4-net16", 64), ("direct-v6", 84))
        for hosts in (1, 1000)
    ]
    assert "OpenBSD" in str(published("appendix-a1").dut.system)


@pytest.mark.parametrize(("case", "plan"), CASES.items())
def test_a_case_is_the_doubling_series_the_gateway_plan_and_one_pair_with_ports(case: int, plan: str) -> None:
    """SEED-64, SEED-65, SEED-68, SEED-69, SEED-72; SEED-02 puts one pair before the gateway plan."""
    size, most, gateway, behind = (
        (84, 65536, "gateway-v6", 65536) if plan == "direct-v6" else (64, 65533, "gateway-v4", 65534)
    )
    wanted = [(plan, (n, n), (1, 1), size, "type1", "throughput", 10) for n in [*DOUBLED, most]]
    assert len(wanted) == 17
    wanted += [(gateway, (n, n), (1, 1), size, "type1", "throughput", 10) for n in (1, behind)]
    if case != 3:
        wanted.append((gateway, (1, 1), (1, 1), size, "type2", "throughput", 10))
    found = points(f"appendix-a2-case{case}")
    assert [values(point) for point in found] == wanted
    for point in found:
        assert point.plan_options == {}
        assert point.directions == ("forward", "reverse")
        assert (point.goal["loss-ratio"], point.goal["waits"], point.goal["final-duration"]) == (
            "0",
            "rfc",
            "60s",
        )


def test_the_whole_series_is_that_of_the_cases_in_both_ip_versions() -> None:
    """SEED-65, SEED-68, SEED-69."""
    found = [values(point) for point in points("appendix-a")]
    assert found == [values(point) for case in (1, 2) for point in points(f"appendix-a2-case{case}")]
    assert [record.name for record in preset("appendix-a").published] == [f"case {case}" for case in CASES]


def test_a_type_2_hash_is_refused_where_the_dut_had_none() -> None:
    """SEED-69: with the draft's reason."""
    for name in ("appendix-a2-case3", "appendix-a1"):
        with raises("spec.hash-not-settable", match=r"type2: .*OpenBSD") as refused:
            expand(
                make_campaign(
                    {"preset": name, "suite": [{"name": "one pair", "hosts": 1, "hash-types": ["type2"]}]},
                    where="c.toml",
                )
            )
        assert refused.value.where == "c.toml: suite 'one pair': hash-types"
        assert refused.value.next_step == "Use type1."


@pytest.mark.parametrize(
    ("case", "system", "cores", "clock", "rises_up_to", "falls_above"),
    [
        (1, "Debian Linux 11.7", "16", "1.2 GHz, fixed", 16, 4096),
        (2, "Debian Linux 11.7", "16", "1.2 GHz, fixed", 4, 4096),
        (3, "OpenBSD 7.3", "16", "not fixed", 8, None),
        (4, "Ubuntu Linux LTS 22.04", "36", "800 MHz, fixed", 64, 2048),
    ],
)
def test_the_published_testbeds_and_trends_stand_in_the_presets(
    case: int, system: str, cores: str, clock: str, rises_up_to: int, falls_above: int | None
) -> None:
    """SEED-62, SEED-63, SEED-64; Figure 7 (SEED-66)."""
    record = published(f"appendix-a2-case{case}")
    dut = record.dut
    assert dut.system == system
    assert str(dut.cores).startswith(cores)
    assert str(dut.clock).startswith(clock)
    assert (dut.sockets, dut.hyper_threading, record.tester.hyper_threading) == ("2", "off", "off")
    assert (record.rises_up_to, record.falls_above, record.plan) == (rises_up_to, falls_above, CASES[case])
    if case == 4:
        assert (dut.machine, dut.turbo, record.tester.turbo) == ("Dell PowerEdge R650", "off", "on")
        assert dut.kernel_parameters == "maxcpus=36"
        assert "Gold 6330N" in str(dut.cpu_model)
        assert "E810" in str(dut.nic)
        assert "16 x 32 GB" in str(dut.memory_size)
    else:
        assert dut.machine == "Dell PowerEdge R730"
        assert "E5-2667 v3" in str(dut.cpu_model)
        assert "X540-T2" in str(dut.nic)
        assert "8 x 16 GB" in str(dut.memory_size)


def test_a_file_changes_what_it_names_and_nothing_else() -> None:
    base = points("appendix-a2-case1")
    changed = expand(
        make_campaign(
            {
                "preset": "appendix-a2-case1",
                "name": "ours",
                "seed": 7,
                "every-suite": {"repetitions": 3, "waits": "short"},
                "suite": [
                    {"name": "direct, type 1", "hosts": [1, 16], "repetitions": 2},
                    {"name": "more", "plan": "gateway-v6", "hosts": 4},
                ],
            },
            where="c.toml",
        )
    )
    assert (changed.name, changed.seed) == ("ours", 7)
    assert changed.spec["preset"] == "appendix-a2-case1"
    by_suite = {
        suite: [p for p in changed.points if p.suite == suite]
        for suite in dict.fromkeys(p.suite for p in changed.points)
    }
    assert list(by_suite) == [*dict.fromkeys(point.suite for point in base), "more"]
    assert [(p.hosts[0], p.repetitions) for p in by_suite["direct, type 1"]] == [(1, 2), (16, 2)]
    assert [(p.hosts[0], p.repetitions) for p in by_suite["gateway, type 1"]] == [(1, 3), (65534, 3)]
    assert {p.goal["waits"] for p in changed.points} == {"short"}
    assert [p.hash_type for p in by_suite["one pair, type 2"]] == ["type2"]


def test_what_a_preset_says_of_one_suite_is_not_changed_by_every_suite() -> None:
    """SEED-69: the point with one pair and hashed ports stays one pair; the file that would make it 65,534 is
    told so."""
    plan = expand(
        make_campaign(
            {"preset": "appendix-a", "every-suite": {"hosts": "max", "repetitions": 3}}, where="c.toml"
        )
    )
    assert [p.hosts for p in plan.points if p.suite == "IPv4 one pair, type 2"] == [(1, 1)]
    assert {p.repetitions for p in plan.points} == {3}
    (note,) = plan.notes
    assert "hosts in [every-suite] does not change what the preset sets for 'IPv4 direct, type 1', " in note
    assert "'IPv4 gateway, type 1'" not in note  # has it already
    assert "'IPv6 one pair, type 2'" in note
    named = {"preset": "appendix-a", "suite": [{"name": "IPv4 one pair, type 2", "hosts": 4}]}
    changed = expand(make_campaign(named, where="c.toml"))
    assert [p.hosts for p in changed.points if p.suite == "IPv4 one pair, type 2"] == [(1, 1), (4, 4)]
    assert changed.notes == ()


@pytest.mark.parametrize(
    "suite", [{"every-suite": {"hash-types": "not-stated"}}, {"suite": [{"name": "IPv4 direct, type 1"}]}]
)
def test_a_key_of_a_preset_can_be_taken_out(suite: dict[str, Any]) -> None:
    """In all suites by [every-suite], in one by its own table."""
    named = {
        key: [{**table, "hash-types": "not-stated"} for table in value] if key == "suite" else value
        for key, value in suite.items()
    }
    plan = expand(make_campaign({"preset": "appendix-a", **named}, where="c.toml"))
    without = {p.suite for p in plan.points if p.hash_type is None}
    assert without == ({p.suite for p in plan.points} if "every-suite" in suite else {"IPv4 direct, type 1"})


def test_a_preset_is_a_campaign_file_by_itself(tmp_path: Path) -> None:
    """`evenhand run preset:NAME`; a name alone is a file that is not there."""
    assert read_campaign(Path("preset:appendix-a-lab")).name == preset("appendix-a-lab").name
    with raises("spec.no-such-file") as refused:
        read_campaign(Path("appendix-a-lab"))
    assert "preset:appendix-a-lab" in refused.value.next_step
    with raises("spec.no-such-preset", match="'appendix-lab'") as refused:
        read_campaign(Path("preset:appendix-lab"))
    assert refused.value.where == "preset:appendix-lab", "there is no file that names it"


def test_one_pair_is_measured_first_in_each_suite_of_each_preset() -> None:
    """SEED-02; a series over routes has none, and begins with a single route."""
    for name in preset_names():
        seen: set[str] = set()
        for job in jobs(expand(preset(name))):
            is_first = job.point.routes == (1, 1) if name in OF_ROUTES else job.point.is_one_pair
            assert is_first or job.point.suite in seen
            seen.add(job.point.suite)


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with raises("spec.no-such-preset", match="'apendix-a2-case4'") as refused:
        make_campaign({"preset": "apendix-a2-case4"}, where="c.toml")
    assert refused.value.where == "c.toml: preset"
    assert refused.value.next_step.startswith("Did you mean 'appendix-a2-case4'?")


def test_a_preset_can_be_copied_and_used_as_a_file(tmp_path: Path) -> None:
    """Users read them, and change copies of them."""
    for name in preset_names():
        copy = tmp_path / f"{name}.toml"
        copy.write_text(preset_text(name))
        assert [p.key for p in expand(read_campaign(copy)).points] == [p.key for p in points(name)]


def test_every_suite_of_a_file_without_preset_has_what_all_have() -> None:
    plan = expanded({"hosts": 4}, **{"every-suite": {"hosts": 8, "repetitions": 2}})
    assert [(p.hosts, p.repetitions) for p in plan.points] == [((1, 1), 2), ((4, 4), 2)]


def test_the_wheel_has_the_presets(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-q",
            "-w",
            tmp_path,
            ROOT,
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {
        Path(name).stem
        for name in zipfile.ZipFile(wheel).namelist()
        if "spec/presets" in name and name.endswith(".toml")
    }
    assert names == set(preset_names())
