# SPDX-License-Identifier: Apache-2.0
"""Run files of older versions open as they did, and are left as they are."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.run import PointState, RunStore, read_record, read_run
from evenhand.run.old_files import bring_up_to_date
from evenhand.run.schema import SCHEMAS, VERSION
from evenhand.search import Role

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


def test_a_verb_of_version_3_has_roles_and_numbers_as_columns() -> None:
    """Nothing of them is read from a label."""
    one, many = read_record(FILES / "version-3-throughput-v4.evenhand").points
    roles = [[s.role for r in point.repetitions for s in r.searches] for point in (one, many)]
    assert roles == [[Role.SINGLE_PAIR], [Role.MEASUREMENT]]
    table = read_record(FILES / "version-3-table-v6.evenhand")
    assert [(p.point.frame_size, p.point.repetitions, len(p.values)) for p in table.points] == [
        (84, 2, 2),
        ("imix:bdf", 2, 2),
    ]
    with closing(sqlite3.connect(FILES / "version-3-table-v6.evenhand")) as connection:
        rows = connection.execute(
            "SELECT key, points.frame_size, points.imix, repetitions.number, role FROM searches"
            " JOIN repetitions ON repetitions.id = repetition_id JOIN points ON points.id = point_id"
            " ORDER BY searches.id"
        ).fetchall()
    labels = ("throughput, 84 octets", "throughput, IMIX - bdf (mean 640 octets)")
    assert rows == [
        (f"throughput/{label}", size, imix, number, "measurement")
        for label, size, imix in zip(labels, (84, 640), (None, "imix:bdf"), strict=True)
        for number in (1, 2)
    ]


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_a_campaign_of_version_3_opens(version: str) -> None:
    record = read_record(FILES / f"version-3-campaign-{version}.evenhand")
    assert record.is_campaign
    assert [(point.state, point.point.procedure, len(point.values)) for point in record.points] == [
        (PointState.MEASURED, "throughput", 2),
        (PointState.NO_NUMBER, "throughput", 0),
        (PointState.MEASURED, "ipdv", 1),
        (PointState.MEASURED, "ipdv", 1),
    ]
    assert {point.point.plan for point in record.points} == {f"gateway-{version}"}


def test_a_campaign_of_version_2_is_brought_up_to_date_when_it_is_resumed(tmp_path: Path) -> None:
    """What it has stays what it was, and is found under its role."""
    for name in ("campaign", "cut-short"):
        copy = tmp_path / f"{name}.evenhand"
        copy.write_bytes((FILES / f"version-2-{name}.evenhand").read_bytes())
        before = read_record(copy)
        with RunStore.resume(copy, command=["evenhand", "run", "--resume"]):
            pass
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        after = read_record(copy)
        assert (after.points, after.hooks, after.testbeds) == (before.points, before.hooks, before.testbeds)
        assert after.sessions[:-1] == before.sessions


def test_what_cannot_be_brought_up_to_date_is_left_as_it_is(tmp_path: Path) -> None:
    copy = tmp_path / "a.evenhand"
    copy.write_bytes((FILES / "version-2-campaign.evenhand").read_bytes())
    before = copy.read_bytes()
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError):  # somebody else has begun a transaction
            bring_up_to_date(connection)
        connection.execute("ROLLBACK")
    assert copy.read_bytes() == before
