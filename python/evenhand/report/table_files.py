# SPDX-License-Identifier: Apache-2.0
"""Station 10: the tables of `campaign_rows` as CSV and as Parquet."""

from __future__ import annotations

import csv
import io

from evenhand.base.errors import HostError
from evenhand.base.programs import in_checkout
from evenhand.base.visible import harmless
from evenhand.report.campaign_rows import TableName, columns_of, rows_of
from evenhand.report.export_column import Value
from evenhand.run import CampaignRecord

_FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a text that begins so."""


def to_csv(record: CampaignRecord, table: TableName) -> str:
    """RFC 4180 but for its line ends (LF); nothing where there is no value. Texts of the file do nothing to
    terminals or spreadsheets."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.name for column in columns_of(record, table)])
    for row in rows_of(record, table):
        writer.writerow([_cell(value) for value in row.values()])
    return written.getvalue()


def to_parquet(record: CampaignRecord, table: TableName) -> bytes:
    """HostError if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise HostError(
            "Parquet needs pyarrow, which is not installed",
            code="report.pyarrow-missing",
            where="--format parquet",
            next_step="Use --format csv, or install pyarrow: "
            + in_checkout(
                ".venv/bin/pip install 'pyarrow>=15'",
                installed="pip install 'evenhand[parquet]', if evenhand was installed with pip",
            ),
        ) from error
    types = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "flag": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(column.name, types[column.kind]) for column in columns_of(record, table)])
    target = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows_of(record, table)), schema=schema), target)
    return bytes(target.getvalue().to_pybytes())


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            shown = harmless(value)
            return f"'{shown}" if shown.startswith(_FORMULA) else shown
        case _:
            return repr(value)
