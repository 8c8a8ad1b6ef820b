# SPDX-License-Identifier: Apache-2.0
"""Station 10: why a number is a bound, and what to do where the tester spoiled trials, in words."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.trial import TrialResult, causes_of_invalid, describe_taken

WHY_BOUND = "the highest load that was tried passed, or the tester could not keep a higher one"
"""Why a number is a lower bound."""


OF_THE_HOST = frozenset(
    {
        "offered_load",
        "sender_overdue",
        "overdue_may_explain_loss",
        "port_refused",
        "port_stopped",
        "transmit_not_drained",
        "receiver_gap",
        "record_overrun",
        "receive_missed",
        "receive_unseen",
        "clock",
        "host_took_cpu",
    }
)
"""Codes that a host with too little CPU, or one that takes it away, can bring about."""
_COPIES = frozenset({"duplicates", "mirrored"})
"""Codes of frames that came more than once: the DUT may have done it."""
_CODES = "docs/how-to/read-an-invalid-trial.md has the codes"


def next_lines(trials: Iterable[TrialResult]) -> list[str]:
    """A line, if a load has INVALID trials alone and the user did not stop them; none where a repetition was
    valid."""
    by_load: dict[tuple[float, float], list[TrialResult]] = {}
    for trial in trials:
        by_load.setdefault((trial.intended_fps, trial.intended_duration_s), []).append(trial)
    undecided = [
        trial
        for same in by_load.values()
        if not any(t.is_valid or t.was_stopped for t in same)
        for trial in same
    ]
    if not undecided:
        return []
    if all("link" in {reason.code for reason in trial.reasons} for trial in undecided):
        return [
            "Next: a link was down or went down, so check whether the DUT still runs,"
            f" and its cables; {_CODES}."
        ]
    if all({reason.code for reason in trial.reasons} <= _COPIES for trial in undecided):
        return [
            "Next: frames came more than once. Either the DUT duplicates them, or something beside it does: a"
            " loop, a mirrored port, a capture that is played back. A capture on both links shows which;"
            f" {_CODES}."
        ]
    if not OF_THE_HOST & set(causes_of_invalid(undecided)):
        return [f"Next: look at the tester, not at the DUT; {_CODES}, and what to do."]
    taken = describe_taken(undecided)
    return [
        f"Next: look at the tester, not at the DUT. {f'{taken}. ' if taken else ''}The latest"
        " frame and the longest poll gap, above, show for how long its CPUs were away"
        " or too slow; `evenhand check` shows what this machine does to them (absences), and"
        f" what helps. {_CODES}."
    ]


STAMPS = {"none": "not on this port", "unused": "on this port, not used"}
"""Stamps of arriving frames, by what the engine says."""
