# SPDX-License-Identifier: Apache-2.0
"""Testbed files: what is wrong is named with its key and place, and nothing starts without the
confirmation."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import make_plan, theoretical_fps
from evenhand.procedure import choose_frame_size, limits_of, retries_of
from evenhand.search import DEFAULT_INVALID_RETRIES
from evenhand.spec.common_options import LimitOptions
from evenhand.spec.file import read_campaign
from evenhand.testbed import check_rate, read_testbed
from evenhand.testbed.values import parse_vlans
from evenhand.trial import Limits
from tests.errors import raises

SCHEMA = Path(__file__).resolve().parents[2] / "contract" / "request.schema.json"
GOOD = """
isolated_test_environment = true

[left]
device = "0000:01:00.0"
line_rate = "10Gbps"
dut_mac = "02:00:00:00:00:AA"

[right]
device = "net_memif0,role=client"
line_rate = "25Gbps"
mac = "02:00:00:00:00:01"

[tester]
cpus = [2, 3]
memory = "1GB"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(text)
    return path


def test_a_good_file_becomes_an_open_request_that_fits_the_contract(tmp_path: Path) -> None:
    testbed = read_testbed(write(tmp_path, GOOD))
    request = testbed.open_request(make_plan("gateway_v6"), frame_size=84, seed=2**64 - 1)
    assert testbed.open_requests(make_plan("gateway_v6"), frame_size=84, seed=2**64 - 1) == [request]
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        {"id": 1, "request": "open", **request}
    )
    assert request["ports"]["left"] == {
        "device": "0000:01:00.0",
        "dut_mac": "02:00:00:00:00:aa",
        "line_rate_bps": 1e10,
    }
    assert request["host"] == {"memory_mb": 1024, "hugepages": False}


def test_the_time_to_wait_for_a_link_is_told_to_the_engine(tmp_path: Path) -> None:
    testbed = read_testbed(write(tmp_path, GOOD.replace("[left]", '[left]\nlink_timeout = "45s"')))
    request = testbed.open_request(make_plan("gateway_v6"), frame_size=84, seed=1)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        {"id": 1, "request": "open", **request}
    )
    assert request["ports"]["left"]["link_timeout_s"] == 45
    assert "link_timeout_s" not in request["ports"]["right"]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ('"0s"', "base.out-of-range"),
        ('"601s"', "base.out-of-range"),
        ("45", "base.unit-missing"),
        ('"soon"', "base.not-a-quantity"),
    ],
)
def test_a_time_to_wait_for_a_link_that_is_none_is_refused_by_its_place(
    tmp_path: Path, value: str, code: str
) -> None:
    with raises(code) as caught:
        read_testbed(write(tmp_path, GOOD.replace("[left]", f"[left]\nlink_timeout = {value}")))
    assert caught.value.where.endswith(": left.link_timeout")


@pytest.mark.parametrize(("value", "vlans"), [("100", [100]), ("[200, 100]", [200, 100]), ("[4094]", [4094])])
def test_the_tags_of_a_link_are_told_to_the_engine(tmp_path: Path, value: str, vlans: list[int]) -> None:
    """R5180-09: a tag makes the smallest frame larger and the line rate smaller, on the link that has it."""
    testbed = read_testbed(write(tmp_path, GOOD.replace("[left]", f"[left]\nvlan = {value}")))
    request = testbed.open_request(make_plan("gateway_v4"), frame_size=72, seed=1)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        {"id": 1, "request": "open", **request}
    )
    assert request["ports"]["left"]["vlan"] == vlans
    assert "vlan" not in request["ports"]["right"]
    around = 4 * len(vlans)
    assert testbed.tag_octets == (around, 0)
    assert theoretical_fps(testbed.streams(make_plan("gateway_v4"), 64 + around), testbed.line_rates) == int(
        1e10 / (8 * (64 + 2 * around + 20))
    )
    assert choose_frame_size(make_plan("gateway_v6"), None, tag_octets=testbed.tag_octets)[0] == 84 + around
    with raises("procedure.frame-size-out-of-range", match=f"{64 + around} to 9216 "):
        choose_frame_size(make_plan("gateway_v4"), 65, tag_octets=testbed.tag_octets)


@pytest.mark.parametrize(
    ("value", "code", "place"),
    [
        ("0", "base.out-of-range", "left.vlan.0"),
        ("4095", "base.out-of-range", "left.vlan.0"),
        ("[1, 2, 3]", "base.too-long", "left.vlan"),
        ('"100"', "base.not-a-list", "left.vlan"),
        ("true", "base.not-a-list", "left.vlan"),
        ("[100, 1.5]", "base.not-whole", "left.vlan.1"),
    ],
)
def test_what_is_no_vlan_is_refused_by_its_place(tmp_path: Path, value: str, code: str, place: str) -> None:
    with raises(code) as caught:
        read_testbed(write(tmp_path, GOOD.replace("[left]", f"[left]\nvlan = {value}")))
    assert caught.value.where.endswith(f": {place}")


def test_tags_are_written_for_both_links_or_each() -> None:
    assert parse_vlans("100", where="--vlan") == {"left": (100,), "right": (100,)}
    assert parse_vlans("200.100,none", where="--vlan") == {"left": (200, 100), "right": ()}
    for text in ("0", "4095", "1.2.3", "1,2,3", "", "a", "1,", "1..2", "-1"):
        with raises("rig.not-a-vlan"):
            parse_vlans(text, where="--vlan")


def test_a_dut_on_this_host_is_told_to_the_engine(tmp_path: Path) -> None:
    """Its threads are watched on the CPU that they are bound to; SEED-07: nothing else of the DUT is told."""
    cpu = min(os.sched_getaffinity(0))
    text = (
        f"{GOOD}\n[dut]\ncpus = [{cpu + 1000}, {cpu}]\nthreads = [1, {os.getpid()}, 4194304]\nring_frames"
        " = 256\n"
    )
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        request = read_testbed(write(tmp_path, text)).open_request(
            make_plan("gateway_v4"), frame_size=64, seed=1
        )
    finally:
        os.sched_setaffinity(0, before)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        {"id": 1, "request": "open", **request}
    )
    assert request["dut"]["ring_frames"] == 256
    assert [entry["cpu"] for entry in request["dut"]["cpus"]] == [cpu + 1000, cpu]
    assert os.getpid() in request["dut"]["cpus"][1]["threads"]
    assert sorted(t for entry in request["dut"]["cpus"] for t in entry["threads"]) == sorted(
        [1, os.getpid(), 4194304]
    )


def test_limits_of_the_file_stand_before_the_defaults_and_behind_the_command_line(tmp_path: Path) -> None:
    text = f'{GOOD}\n[limits]\noverdue_after = "5ms"\noverdue_tolerance = "5%"\npatience = 20\n'
    limits = read_testbed(write(tmp_path, text)).limits
    of_file = limits_of(limits, loss_ratio=0.001, given={})
    assert of_file == replace(Limits(), loss_ratio=0.001, overdue_after_us=5000, overdue_tolerance=0.05)
    given = LimitOptions(overdue_after="2ms", longest_overdue="1s").read()
    assert limits_of(limits, loss_ratio=0, given=given) == replace(
        of_file, loss_ratio=0, overdue_after_us=2000, longest_overdue_us=1e6
    )
    assert retries_of(limits, invalid=None, patience=None) == {
        "invalid_retries": DEFAULT_INVALID_RETRIES,
        "patience": 20,
    }
    assert retries_of(limits, invalid=7, patience=0) == {"invalid_retries": 7, "patience": 0}


@pytest.mark.parametrize(
    ("table", "where", "code", "named"),
    [
        ("[dut]\ncpus = [0]", "dut", "rig.only-together", "cpus and ring_frames"),
        ("[dut]\ncpus = [0, 0]\nring_frames = 256", "dut", "rig.cpu-twice", "[0, 0]"),
        ("[dut]\ncpus = [0]\nring_frames = 0", "dut.ring_frames", "base.out-of-range", "Write 1 or more."),
        ("[limits]\noverdue_after = 5", "limits.overdue_after", "base.unit-missing", "5"),
        ("[limits]\noverdue_afer = '5ms'", "limits.overdue_afer", "base.unknown-key", "overdue_after"),
        ("[limits]\npatience = -1", "limits.patience", "base.out-of-range", "Write 0 or more."),
    ],
)
def test_a_wrong_key_of_these_tables_is_named(
    tmp_path: Path, table: str, where: str, code: str, named: str
) -> None:
    with raises(code) as caught:
        read_testbed(write(tmp_path, f"{GOOD}\n{table}\n"))
    assert caught.value.where.endswith(f": {where}")
    assert named in f"{caught.value.what} {caught.value.next_step}"


def test_the_slower_port_gives_the_theoretical_limit(tmp_path: Path) -> None:
    """R2544-16."""
    testbed = read_testbed(write(tmp_path, GOOD))
    assert theoretical_fps(testbed.streams(make_plan("gateway_v4"), 64), testbed.line_rates) == 14_880_952


@pytest.mark.parametrize(
    "text", [GOOD.replace("isolated_test_environment = true", ""), GOOD.replace("true", "false")]
)
def test_without_the_confirmation_nothing_starts(tmp_path: Path, text: str) -> None:
    """SEED-80, R5180-19: routers forward the benchmarking blocks, so only isolation keeps the traffic in the
    lab."""
    with raises("rig.isolation-not-confirmed") as caught:
        read_testbed(write(tmp_path, text))
    assert "isolated_test_environment = true" in caught.value.next_step


@pytest.mark.parametrize(
    ("old", "new", "where", "code", "named", "hint"),
    [
        (
            "line_rate",
            "linerate",
            "left.linerate",
            "base.unknown-key",
            "'linerate'",
            "Did you mean 'line_rate'?",
        ),
        ("[tester]", "[testers]", "testers", "base.unknown-key", "'testers'", "Did you mean [tester]?"),
        ("cpus = [2, 3]", "cpu = [2]", "tester.cpu", "base.unknown-key", "'cpu'", "Did you mean 'cpus'?"),
        (
            "isolated_test_environment",
            "isolated_environment",
            "isolated_environment",
            "base.unknown-key",
            "'isolated_environment'",
            "isolated_test_environment",
        ),
        (
            "[tester]",
            '[dut]\nplan = "gateway-v5"\n[tester]',
            "dut.plan",
            "plan.unknown-name",
            "'gateway-v5'",
            "Did you mean gateway-v6?",
        ),
        (
            "[tester]",
            '[dut]\nplans = "gateway-v4"\n[tester]',
            "dut.plans",
            "base.unknown-key",
            "'plans'",
            "Did you mean 'plan'?",
        ),
        ("memory", "xyzzy", "tester.xyzzy", "base.unknown-key", "'xyzzy'", "Known here: cpus"),
        ('"10Gbps"', '"10Gb"', "left.line_rate", "base.not-a-quantity", "'10Gb'", ""),
        ('"10Gbps"', "10", "left.line_rate", "base.unit-missing", "10", "10Gbps"),
        ('"10Gbps"', '"10"', "left.line_rate", "base.not-a-quantity", "'10'", "10Gbps"),
        ('"1GB"', '"512"', "tester.memory", "base.not-a-quantity", "'512'", "512MB"),
        ('"1GB"', '"32MB"', "tester.memory", "base.out-of-range", "'32MB'", "64 or more"),
        (
            "02:00:00:00:00:01",
            "FF:FF:FF:FF:FF:FF",
            "right.mac",
            "rig.not-a-mac-of-a-port",
            "'FF:FF:FF:FF:FF:FF'",
            "02:00:00:00:00:01",
        ),
        (
            "02:00:00:00:00:01",
            "33:33:00:00:00:01",
            "right.mac",
            "rig.not-a-mac-of-a-port",
            "'33:33:00:00:00:01'",
            "02:00:00:00:00:01",
        ),
        (
            "02:00:00:00:00:01",
            "00:00:00:00:00:00",
            "right.mac",
            "rig.not-a-mac-of-a-port",
            "'00:00:00:00:00:00'",
            "02:00:00:00:00:01",
        ),
        ("cpus = [2, 3]", "cpus = [2, 2]", "tester", "rig.cpu-twice", "[2, 2]", ""),
        ("cpus = [2, 3]", "cpus = []", "tester.cpus", "base.empty", "[]", "Write 1 or more, such as [1]."),
        (
            "cpus = [2, 3]",
            'cpus = ["2"]',
            "tester.cpus.0",
            "base.not-whole",
            "'2'",
            "Write it without quotes: 2.",
        ),
        ("cpus = [2, 3]", "cpus = 2", "tester.cpus", "base.not-a-list", "2", "Write it in brackets: [2]."),
        (
            "cpus = [2, 3]",
            'cpus = "2-4"',
            "tester.cpus",
            "base.not-a-list",
            "'2-4'",
            "Write it in brackets, without quotes: [2, 3, 4].",
        ),
        (
            "cpus = [2, 3]",
            'cpus = "2, 3"',
            "tester.cpus",
            "base.not-a-list",
            "'2, 3'",
            "Write it in brackets, without quotes: [2, 3].",
        ),
        ('"1GB"', '["1GB"]', "tester.memory", "base.unit-missing", "['1GB']", "in quotes, such as 512MB"),
        (
            "[tester]",
            '[dut]\nring_frames = "256"\n[tester]',
            "dut.ring_frames",
            "base.not-whole",
            "'256'",
            "Write it without quotes: 256.",
        ),
        (
            "[tester]",
            "[dut.facts]\ncores = 8\n[tester]",
            "dut.facts.cores",
            "base.not-a-text",
            "8",
            'Write it in quotes: "8".',
        ),
        (
            "[tester]",
            '[dut]\nos = "Linux"\n[tester]',
            "dut.os",
            "base.not-one-of",
            "linux, frr, bird, vyos, openwrt, sonic",
            'Did you mean "linux"?',
        ),
        (
            "[tester]",
            '[dut]\nos = "tnsr"\n[tester]',
            "dut.os",
            "base.not-one-of",
            "'tnsr'",
            '"junos" or "srlinux".',
        ),
        ("cpus = [2, 3]", "", "tester.cpus", "base.key-missing", "", ""),
        ("02:00:00:00:00:01", "02:00:00:00:01", "right.mac", "rig.not-a-mac", "'02:00:00:00:01'", ""),
        ("net_memif0,role=client", "0000:01:00.0", "", "rig.same-device-twice", "'0000:01:00.0'", ""),
        ("[left]", "[left", "", "base.not-toml", "", ""),
        (
            "true",
            '"true"',
            "isolated_test_environment",
            "base.neither-true-nor-false",
            "'true'",
            "Write it without quotes: true.",
        ),
        ("true", "1", "isolated_test_environment", "base.neither-true-nor-false", "1", "Write true or false"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_place(
    tmp_path: Path, old: str, new: str, where: str, code: str, named: str, hint: str
) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with raises(code) as caught:
        read_testbed(path)
    assert str(path) in caught.value.where
    assert where in caught.value.where
    assert named in caught.value.what
    assert hint in caught.value.next_step
    assert caught.value.next_step


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with raises("base.file-not-readable"):
        read_testbed(tmp_path / "none.toml")


def test_a_rate_above_line_rate_is_refused_with_the_highest_that_is_not() -> None:
    """R2544-15, R2544-16."""
    given: dict[str, Any] = {"line_rate_bps": 1e10, "frame_size": 64, "where": "--maximum-rate"}
    check_rate(14_880_952, 14_880_952, **given)
    check_rate(1e12, None, **given)
    with raises("rig.above-line-rate", match=r"14,880,953 fps .* 10 Gbps .* 14,880,952 fps") as caught:
        check_rate(14_880_953, 14_880_952, **given)
    assert "14880952fps" in caught.value.next_step


@pytest.mark.parametrize(
    ("text", "what", "next_step"),
    [
        (
            "",
            "missing here: isolated_test_environment, [left], [right], [tester]",
            "If no frame can leave your lab (RFC 6815), write `isolated_test_environment = true` at the top"
            " of the file."
            " Add [left] with device. Add [right] with device. Add [tester] with cpus.",
        ),
        (
            'isolated_test_environment = true\n[left]\ndevice = "eth0"\n',
            "missing here: [right], [tester]",
            "Add [right] with device. Add [tester] with cpus.",
        ),
        (
            'isolated_test_environment = true\n[left]\n[right]\ndevice = "net_null0"\n[tester]\nmemory ='
            ' "1GB"\n',
            "missing here: left.device, tester.cpus",
            "Add device to left. Add cpus to tester.",
        ),
    ],
)
def test_all_that_is_missing_is_told_at_once(tmp_path: Path, text: str, what: str, next_step: str) -> None:
    """One after the other it took a new user four tries; what is wrong besides is told when the file is
    whole."""
    path = write(tmp_path, text)
    with raises("base.key-missing") as caught:
        read_testbed(path)
    assert (caught.value.what, caught.value.where, caught.value.next_step) == (what, str(path), next_step)


def test_a_single_table_that_is_missing_is_called_one(tmp_path: Path) -> None:
    with raises("base.key-missing") as caught:
        read_testbed(write(tmp_path, GOOD[: GOOD.index("[tester]")]))
    assert caught.value.next_step == "Add [tester] with cpus."


def test_files_that_are_mistaken_for_each_other_are_recognised(tmp_path: Path) -> None:
    """Unknown keys of the one are no keys of the other, and nobody who mistook them looks for those."""
    path = write(tmp_path, 'name = "x"\n[[suite]]\nname = "a"\n')
    with raises("base.wrong-kind-of-file") as caught:
        read_testbed(path)
    assert caught.value.next_step.endswith(f"evenhand run {path}")
    path = write(tmp_path, GOOD)
    with raises("base.wrong-kind-of-file") as caught:
        read_campaign(path)
    assert caught.value.next_step.endswith(f"--testbed {path}")
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)))
    for read in (read_testbed, read_campaign):
        with raises("base.wrong-kind-of-file") as caught:
            read(path)
        assert f"evenhand show {path}" in caught.value.next_step
