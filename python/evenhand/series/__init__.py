# SPDX-License-Identifier: Apache-2.0
"""Station 9, series: runs and what they are stored in."""

from evenhand.series.campaign import (
    FIGURES,
    CampaignRecord,
    Figure,
    HashType,
    HookRun,
    Point,
    PointRecord,
    PointState,
    ProcedureName,
    Repetition,
)
from evenhand.series.figures import value_of
from evenhand.series.folders import without_folders
from evenhand.series.host_facts import read_host_facts, read_versions
from evenhand.series.reading import RunTables, StoredRun, StoredSearch, StoredTrial, open_to_read, read_run
from evenhand.series.record import read_record
from evenhand.series.recorder import MeasuredSearch, SearchWriter
from evenhand.series.run_file import StorageError
from evenhand.series.schema import SUFFIX
from evenhand.series.store import CampaignHead, RepetitionEnd, RunStore

__all__ = [
    "FIGURES",
    "SUFFIX",
    "CampaignHead",
    "CampaignRecord",
    "Figure",
    "HashType",
    "HookRun",
    "MeasuredSearch",
    "Point",
    "PointRecord",
    "PointState",
    "ProcedureName",
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
    "read_host_facts",
    "read_record",
    "read_run",
    "read_versions",
    "value_of",
    "without_folders",
]
