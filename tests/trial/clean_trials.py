# SPDX-License-Identifier: Apache-2.0
"""Trials that were judged by their clean time, made of others: what an engine says of one whose tester or
host was away for these parts of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from evenhand.trial import LAPSES, TrialResult

Part = tuple[float, float, tuple[str, ...]]
"""From, until, in seconds of the sending phase; the kinds of lapses."""
NOT_JUDGED = {
    "requirement": "R2544-20",
    "text": "what the tester's or its machine's lapses may have touched is not judged; sent for longer"
    " instead",
}


def judged_by_clean_time(trial: TrialResult, parts: Sequence[Part], **changes: Any) -> TrialResult:
    """The same verdict, about the rest of a trial that was sent for longer by these parts.

    Args:
        changes: Values of its `clean` that are others.
    """
    document = copy.deepcopy(dict(trial.raw))
    wanted_s, left_out_s = trial.sent_s, sum(until_s - from_s for from_s, until_s, _ in parts)
    sent_s = wanted_s + left_out_s
    document["clean"] = {
        "wanted_s": wanted_s,
        "at_most_s": 2 * wanted_s,
        "sent_s": sent_s,
        "clean_s": sent_s - left_out_s if parts else sent_s,
        "is_enough": True,
        "pieces": 1 + len(parts) - sum(until_s >= sent_s or from_s <= 0 for from_s, until_s, _ in parts),
        "lapses": {kind: sum(kind in kinds for *_, kinds in parts) for kind in LAPSES},
        "left_out": [[from_s, until_s, list(kinds)] for from_s, until_s, kinds in parts],
        **changes,
    }
    for direction in document["directions"].values():
        frames = direction["offered_frames"]
        direction["clean"] = {"frames": frames, "lost_frames": direction["lost_frames"]}
    document["deviations"] = [*document["deviations"], NOT_JUDGED]
    return TrialResult.from_contract(document)
