# SPDX-License-Identifier: Apache-2.0
"""Station 9, series: runs and what they are stored in."""

from evenhand.series.campaign import (
    CampaignRecord,
    HashType,
    HookRun,
    Point,
    PointRecord,
    PointState,
    Repetition,
)
from evenhand.series.reading import RunTables, StoredRun, StoredSearch, StoredTrial, open_to_read, read_run
from evenhand.series.record import read_record
from evenhand.series.schema import SUFFIX
from evenhand.series.store import MeasuredSearch, RunStore, SearchWriter, StorageError

__all__ = [
    "SUFFIX",
    "CampaignRecord",
    "HashType",
    "HookRun",
    "MeasuredSearch",
    "Point",
    "PointRecord",
    "PointState",
    "Repetition",
    "RunStore",
    "RunTables",
    "SearchWriter",
    "StorageError",
    "StoredRun",
    "StoredSearch",
    "StoredTrial",
    "open_to_read",
    "read_record",
    "read_run",
]
