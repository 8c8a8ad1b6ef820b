# SPDX-License-Identifier: Apache-2.0
"""Station 10: texts of others, such as of a run file that came by mail, as they may be shown: they say what
they are, and do nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from evenhand.base.errors import shortened
from evenhand.trial import TrialResult, causes_of_invalid, describe_taken

_SHOWN = ("L", "M", "N", "P", "S", "Zs")


def visible(text: str) -> str:
    """The same as `harmless`, of a text of any length: of one that no one could read its beginning, and how
    long it is."""
    return harmless(shortened(text))


def harmless(text: str) -> str:
    """The text with what is not a readable character (line ends, escape sequences of terminals, marks that
    turn the order) as `\\x1b`.

    Rich's markup is not handled here: show it as `rich.text.Text`, or with `markup=False`.
    """
    if text.isprintable():
        return text
    return "".join(
        c if unicodedata.category(c).startswith(_SHOWN) else c.encode("unicode_escape").decode() for c in text
    )


def visible_lines(text: str) -> str:
    """The same of text of several lines: line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(part if part in ("\n", "\t") else harmless(part) for part in re.split(r"([\n\t])", text))


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
        " or too slow; `evenhand check` shows what this host does to them (stalls), and"
        f" what helps. {_CODES}."
    ]
