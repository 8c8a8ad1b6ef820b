# SPDX-License-Identifier: Apache-2.0
"""Station 9, series: runs and what they are stored in."""

from evenhand.series.campaign import CampaignRecord, HookRun, PointRecord, PointState, Repetition
from evenhand.series.reading import RunTables, StoredRun, StoredSearch, StoredTrial, open_to_read, read_run
from evenhand.series.record import read_record
from evenhand.series.recorder import MeasuredSearch, SearchWriter
from evenhand.series.run_file import StorageError
from evenhand.series.schema import SUFFIX
from evenhand.series.store import CampaignHead, RepetitionEnd, RunStore

__all__ = [
    "SUFFIX",
    "CampaignHead",
    "CampaignRecord",
    "HookRun",
    "MeasuredSearch",
    "PointRecord",
    "PointState",
    "Repetition",
    "RepetitionEnd",
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
