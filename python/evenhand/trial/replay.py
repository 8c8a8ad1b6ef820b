# SPDX-License-Identifier: Apache-2.0
"""Station 7: trials that were made before a procedure was cut short, and are given again instead of being
made twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from evenhand.trial.load import Load
from evenhand.trial.result import TrialResult

_TOLERANCE = 1e-9
"""Relative tolerance of rates and times that went through JSON and back."""


class Replay(Protocol):
    """The trials of a procedure that was cut short. A search is determined by its results, so it asks for the
    same trials again."""

    def take(self, load: Load) -> TrialResult | None:
        """The result of the trial that comes now; None if it has to be made."""
        ...


def was_offered(load: Load, document: Mapping[str, Any]) -> bool:
    """Whether this trial (contract/reply.schema.json) is one of that load."""
    burst, then = document.get("burst"), document.get("then")
    if (burst is None) != (load.burst is None) or (then is None) != (load.then is None):
        return False
    pairs = [(document["intended_duration_s"], load.sending_s)]
    if load.burst is not None and burst is not None:
        pairs += [
            (burst["frames"], load.burst.frames),
            (burst["interval_s"], load.burst.interval_s),
            (burst["rate_fps"], load.rate_fps),
        ]
    elif load.then is not None and then is not None:
        pairs += [
            (then["before_fps"], load.rate_fps),
            (then["rate_fps"], load.then.rate_fps),
            (then["duration_s"], load.then.duration_s),
        ]
    else:
        pairs.append((document["intended_fps"], load.rate_fps))
    return all(math.isclose(then_s, now_s, rel_tol=_TOLERANCE) for then_s, now_s in pairs)
