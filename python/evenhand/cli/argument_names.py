# SPDX-License-Identifier: Apache-2.0
"""What an argument of the Python API is called on the command line: errors name the argument, and get the
user's name for it here."""

from __future__ import annotations

import re
from collections.abc import Collection

OPTIONS = {
    "rate_fps": "--rate",
    "max_fps": "--maximum-rate",
    "min_fps": "--minimum-rate",
    "throughput_fps": "--throughput",
    "actual_fps": "--actual-rate",
    "known_fps": "--start",
    "duration_s": "--duration",
    "final_duration_s": "--final-duration",
    "observe_s": "--observe",
    "from_s": "--from",
    "max_burst_s": "--max-burst",
    "step": "--step",
    "step_frames": "--step",
    "tagged_frames": "--tagged",
    "burst_frames": "--burst",
    "repetitions": "--repetitions",
    "count": "--repetitions",
    "spread": "--spread",
    "precision": "--precision",
    "loss_ratio": "--loss-ratio",
    "loss_verifications": "--loss-verification",
    "invalid_retries": "--invalid-retries",
    "patience": "--patience",
    "goals": "--goal",
    "plan": "--plan",
    "first": "--plan",
    "second": "--plan",
    "share": "--mix",
    "hosts": "--hosts",
    "networks": "--networks",
    "frame_size": "--frame-size",
    "frame_sizes": "--frame-size",
    "single_pair": "--after",
    "single_pair_first": "--single-pair-first",
    "allows_unreachable": "--allow-unreachable",
}
_ARGUMENT = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
"""In a sentence: words without an underscore are words."""


def option_places(where: str, known: Collection[str] | None = None) -> str:
    """The place of an error, `burst_frames, duration_s`, with options for arguments: `--burst, --duration`.

    Args:
        known: Options of the verb; others are none of its arguments. None: all of them.
    """
    return ", ".join(dict.fromkeys(_option(part, known) for part in where.split(", ")))


def option_words(sentence: str, known: Collection[str] | None = None) -> str:
    """The same within a sentence."""
    return _ARGUMENT.sub(lambda found: _option(found[0], known), sentence)


def _option(name: str, known: Collection[str] | None) -> str:
    option = OPTIONS.get(name, name)
    return option if known is None or option in known else name
