# SPDX-License-Identifier: Apache-2.0
"""Station 10: repetitions, trials and flows as InfluxDB's line protocol: the tables of `campaign_rows`, a row
a line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from evenhand.base.visible import visible
from evenhand.report.campaign_rows import TableName, rows_of
from evenhand.report.export_column import Value
from evenhand.run.campaign_record import CampaignRecord

MEASUREMENTS: Mapping[TableName, tuple[str, str]] = {
    "repetitions": ("evenhand_repetition", "finished_at"),
    "trials": ("evenhand_trial", "started_at"),
    "flows": ("evenhand_flow", "started_at"),
}
"""Name of the measurement, and the column that is its time. Points are left out: they have no time."""
TAGS = (
    "point",
    "suite",
    "procedure",
    "plan",
    "hosts_left",
    "hosts_right",
    "networks_left",
    "networks_right",
    "frame_size",
    "directions",
    "hash_type",
    "figure",
    "unit",
    "repetition",
    "testbed",
    "search",
    "kind",
    "trial",
    "direction",
    "flow",
)
"""Columns that say what a row is about; all others are fields."""
MOST_INTEGER = 2**63 - 1
_TAG_SIGNS = re.compile(r"[,= ]")


def to_line_protocol(record: CampaignRecord, tables: tuple[TableName, ...]) -> str:
    """A line for each row that has a time and a value. Times are nanoseconds since 1970."""
    return "".join(line for table in tables for line in _lines(record, table))


def _lines(record: CampaignRecord, table: TableName) -> Iterator[str]:
    name, time_column = MEASUREMENTS[table]
    run = f",run={_tag(record.name)}"
    for row in rows_of(record, table):
        at = _nanoseconds(row[time_column])
        tags = "".join(f",{key}={_tag(str(row[key]))}" for key in TAGS if row.get(key) not in (None, ""))
        fields = [
            f"{key}={_field(value)}"
            for key, value in row.items()
            if key not in TAGS and key != time_column and _is_value(value)
        ]
        if at is not None and fields:
            yield f"{name}{run}{tags} {','.join(fields)} {at}\n"


def _is_value(value: Value) -> bool:
    """The protocol has no word for infinity."""
    return value not in (None, "") and not (isinstance(value, float) and not math.isfinite(value))


def _tag(text: str) -> str:
    # A backslash at its end would escape what follows, and has no escape of its own.
    shown = visible(text).rstrip("\\") or "-"
    return _TAG_SIGNS.sub(r"\\\g<0>", shown)


def _field(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() if -MOST_INTEGER - 1 <= value <= MOST_INTEGER:
            return f"{value}i"
        case int() | float():
            return repr(float(value))
        case _:
            quoted = visible(str(value)).replace("\\", "\\\\").replace('"', '\\"')
            return f'"{quoted}"'


def _nanoseconds(at: Value) -> int | None:
    """None of a text that is no time."""
    try:
        return None if not isinstance(at, str) else round(datetime.fromisoformat(at).timestamp() * 1e6) * 1000
    except ValueError:
        return None
