# SPDX-License-Identifier: Apache-2.0
"""Station 9: a campaign's file is written by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenhand.base.errors import RequestError
from evenhand.base.locks import Resource, holding


def campaign_resource(path: Path) -> Resource:
    """What is locked: the file itself, by whatever name. RequestError if there is none."""
    try:
        facts = os.stat(path)
    except OSError as error:
        raise RequestError(
            "this file does not exist",
            code="run.no-such-file",
            where=str(path),
            next_step="Start it: evenhand run CAMPAIGN.toml",
        ) from error
    return Resource(key=f"campaign {facts.st_dev} {facts.st_ino}", label=f"the campaign {path.name}")


@contextmanager
def campaign_locked(path: Path) -> Iterator[None]:
    """No other process writes this file until the block ends. HostError names who does."""
    next_step = f"Wait until it ends, or stop it; to see its progress: evenhand status {path}"
    with holding([campaign_resource(path)], where=str(path), next_step=next_step):
        yield
