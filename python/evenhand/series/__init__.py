# SPDX-License-Identifier: Apache-2.0
"""Station 9, series: runs and what they are stored in."""

from evenhand.series.folders import without_folders
from evenhand.series.host_facts import read_host_facts, read_versions
from evenhand.series.store import (
    SUFFIX,
    MeasuredSearch,
    RunStore,
    SearchWriter,
    StorageError,
    StoredRun,
    StoredSearch,
    StoredTrial,
    read_run,
)

__all__ = [
    "SUFFIX",
    "MeasuredSearch",
    "RunStore",
    "SearchWriter",
    "StorageError",
    "StoredRun",
    "StoredSearch",
    "StoredTrial",
    "read_host_facts",
    "read_run",
    "read_versions",
    "without_folders",
]
