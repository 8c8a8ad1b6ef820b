# SPDX-License-Identifier: Apache-2.0
"""Exports read back by pandas and DuckDB, which only `make prove` installs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.report.campaign_rows import rows_of
from evenhand.run import read_record
from tests.cli.running import Ended
from tests.run.hostile import write_run

pytestmark = pytest.mark.slow
Run = Callable[..., Ended]
pandas = pytest.importorskip("pandas")
duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


@pytest.fixture
def exported(evenhand: Run, tmp_path: Path) -> Callable[[str, str], Path]:
    run = write_run(tmp_path / "a.evenhand")

    def export(format_name: str, table: str) -> Path:
        target = tmp_path / f"{table}.{format_name}"
        ended = evenhand("export", run, "--format", format_name, "--table", table, "--output", target)
        assert ended.code == 0, ended.err
        return target

    return export


def wanted(folder: Path, table: Any) -> list[dict[str, Any]]:
    return list(rows_of(read_record(folder / "a.evenhand"), table))


@pytest.mark.parametrize("table", ["points", "repetitions", "trials"])
def test_pandas_reads_what_is_in_the_file(
    exported: Callable[[str, str], Path], tmp_path: Path, table: str
) -> None:
    from_parquet = pandas.read_parquet(exported("parquet", table))
    from_csv = pandas.read_csv(exported("csv", table), dtype={"seed": str, "frame_size": str})
    rows = wanted(tmp_path, table)
    for frame in (from_parquet, from_csv):
        assert list(frame.columns) == list(rows[0])
        read = frame.astype(object).where(frame.notna(), None).to_dict("records")
        assert (
            read == [{key: None if value == "" else value for key, value in row.items()} for row in rows]
            or frame is from_parquet
        )
    read = from_parquet.astype(object).where(from_parquet.notna(), None).to_dict("records")
    assert read == rows


@pytest.mark.parametrize("table", ["points", "repetitions", "trials"])
def test_duckdb_reads_what_is_in_the_file(
    exported: Callable[[str, str], Path], tmp_path: Path, table: str
) -> None:
    rows = wanted(tmp_path, table)
    connection = duckdb.connect()
    found = connection.execute("SELECT * FROM read_parquet(?)", [str(exported("parquet", table))])
    names = [column[0] for column in found.description]
    assert [dict(zip(names, row, strict=True)) for row in found.fetchall()] == rows
    (count,) = connection.execute(
        "SELECT count(*) FROM read_csv(?)", [str(exported("csv", table))]
    ).fetchone()
    assert count == len(rows)


def test_an_export_adds_up(exported: Callable[[str, str], Path], tmp_path: Path) -> None:
    """A question that a user would ask."""
    found = duckdb.connect().execute(
        "SELECT verdict, count(*), sum(forward_lost_frames + reverse_lost_frames) FROM read_parquet(?) GROUP"
        " BY verdict ORDER BY verdict",
        [str(exported("parquet", "trials"))],
    )
    trials = [
        t
        for p in read_record(tmp_path / "a.evenhand").points
        for r in p.repetitions
        for s in r.searches
        for t in s.trials
    ]
    by_verdict = {str(t.result.verdict) for t in trials}
    assert [tuple(row) for row in found.fetchall()] == [
        (
            v,
            sum(str(t.result.verdict) == v for t in trials),
            sum(t.result.lost_frames for t in trials if str(t.result.verdict) == v),
        )
        for v in sorted(by_verdict)
    ]
