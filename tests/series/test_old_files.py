# SPDX-License-Identifier: Apache-2.0
"""Run files of older versions open as they did, and are left as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evenhand.series import PointState, read_record, read_run
from evenhand.series.schema import SCHEMAS

FILES = Path(__file__).parent / "files"
"""Written by the code of their time, on the simulated device of tests/trial/scripted_engine.py: it forwards
640 kfps."""
OLD = sorted(FILES.glob("version-1-*.evenhand"))


def test_there_are_files_of_every_version() -> None:
    """Of the present one too: it will be old one day."""
    assert {path.name.split("-")[1] for path in FILES.glob("version-*.evenhand")} == {
        str(version) for version in SCHEMAS
    }


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_an_old_file_opens_and_is_not_rewritten(path: Path, tmp_path: Path) -> None:
    """D11: what was measured once stays readable."""
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    before = hashlib.sha256(copy.read_bytes()).hexdigest()
    run = read_run(copy)
    record = read_record(copy)
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == before
    assert [file.name for file in tmp_path.iterdir()] == [copy.name]
    assert run.searches
    assert not record.is_campaign
    assert record.created_at == run.created_at
    assert record.commands == (tuple(run.command),)
    assert record.testbeds.keys() == {"testbed.toml"}
    stored = [
        search
        for point in record.points
        for repetition in point.repetitions
        for search in repetition.searches
    ]
    assert stored == [search for search in run.searches if search.kind != "ceiling"]
    assert {point.state for point in record.points} == {PointState.MEASURED}
    assert all(point.values for point in record.points)


def test_searches_with_one_and_with_many_pairs_are_two_points() -> None:
    one, many = read_record(FILES / "version-1-throughput.evenhand").points
    assert one.point.is_single_pair
    assert not many.point.is_single_pair
    assert (many.point.key, many.point.suite, many.point.plan, many.point.hosts) == (
        "throughput/throughput",
        "throughput",
        "gateway-v4",
        (65534, 65534),
    )
    assert one.values == many.values == (625_000.0,)


def test_repetitions_of_a_size_are_one_point() -> None:
    record = read_record(FILES / "version-1-table.evenhand")
    assert [(point.point.frame_size, len(point.values), point.point.plan) for point in record.points] == [
        (84, 2, "gateway-v6"),
        (128, 2, "gateway-v6"),
    ]


def test_every_procedure_has_its_figure() -> None:
    expected = {
        "latency": 14.0,  # us: delays rise from 10 us to 20 us, and the middle of 5 tagged frames is the 3rd
        "pdv": 9.99,
        "loss": 0.3595,  # 360,000 of a million, less the 512 frames that the device holds back
        "burst": 25.6,
        "recovery": 0.0,
    }
    for name, value in expected.items():
        (point,) = read_record(FILES / f"version-1-{name}.evenhand").points
        assert point.point.procedure == name
        assert point.values == pytest.approx((value,), rel=1e-3)
    throughput, bursts = read_record(FILES / "version-1-back-to-back.evenhand").points
    assert throughput.point.procedure == "throughput"
    assert bursts.values == (1422.0, 1422.0)


def test_a_mix_is_named() -> None:
    (point,) = read_record(FILES / "version-1-loss.evenhand").points
    assert (point.point.plan, point.point.plan_options) == ("gateway-v4+gateway-v6", {"mix": "9/1"})


def test_a_campaign_of_version_2_opens() -> None:
    record = read_record(FILES / "version-2-campaign.evenhand")
    assert (record.name, record.is_campaign, record.suites) == ("kept", True, ("a",))
    one, many = record.points
    assert (one.state, one.values, one.point.is_single_pair) == (
        PointState.MEASURED,
        (625_000.0, 625_000.0),
        True,
    )
    assert (many.state, many.reason) == (
        PointState.NO_NUMBER,
        "the hook before-point ended with exit code 1: a/throughput/64/n=4",
    )
    assert [hook.output for hook in many.hooks] == ["a/throughput/64/n=4\n"]
    assert record.testbeds.keys() == {"testbed.toml"}
