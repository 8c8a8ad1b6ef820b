# SPDX-License-Identifier: Apache-2.0
"""Station 9, run: runs and campaigns, and what they are stored in."""

from evenhand.run.campaign_record import CampaignRecord, HookRun, PointRecord, PointState, Repetition
from evenhand.run.reading import RunTables, StoredRun, StoredSearch, StoredTrial, open_to_read, read_run
from evenhand.run.record import read_record
from evenhand.run.recorder import SearchWriter
from evenhand.run.run_file import SUFFIX, StorageError
from evenhand.run.store import CampaignHead, RepetitionEnd, RunStore
from evenhand.run.stored_so_far import MeasuredSearch

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
