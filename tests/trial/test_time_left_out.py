# SPDX-License-Identifier: Apache-2.0
"""How much of the time of several trials was not judged: one sum, of the valid ones, and nothing where all
were judged as a whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from evenhand.trial import SimulatedMeasurer, TimeLeftOut, TrialResult, read_time_left_out
from tests.errors import raises
from tests.trial.clean_trials import Part, judged_by_clean_time

LATE: Part = (1.0, 1.5, ("sender_overdue",))
AWAY: Part = (3.0, 4.5, ("receiver_away", "dut_away"))


def trials(count: int, **device: Any) -> list[TrialResult]:
    """Trials of 10 s each."""
    measurer = SimulatedMeasurer(limit_fps=1e6, **device)
    return [measurer.measure(10.0, 1000.0) for _ in range(count)]


def test_trials_that_were_judged_as_a_whole_leave_nothing_to_say() -> None:
    assert TimeLeftOut.of(trials(3)) is None
    assert TimeLeftOut.document_of(trials(3)) == {}
    assert TimeLeftOut.of([]) is None
    too_little = judged_by_clean_time(trials(1)[0], [LATE], is_enough=False)
    assert TimeLeftOut.of([too_little]) is None
    assert too_little.left_out_share is None


def test_the_share_is_that_of_the_time_of_all_valid_trials() -> None:
    plain, cut, more, untouched = trials(4)
    found = TimeLeftOut.of(
        [
            plain,
            judged_by_clean_time(cut, [LATE]),
            judged_by_clean_time(more, [LATE, AWAY]),
            judged_by_clean_time(untouched, []),
        ]
    )
    assert found is not None
    assert (found.valid_trials, found.judged_trials, found.cut_trials) == (4, 3, 2)
    assert found.sent_s == pytest.approx(10 + 10.5 + 12 + 10)
    assert found.left_out_s == pytest.approx(0.5 + 2)
    assert found.share == pytest.approx(2.5 / 42.5)
    assert found.most_share == pytest.approx(2 / 12)
    assert found.line == (
        "Time left out: 5.9 % of the sending time, in 2 of 4 valid trials (at most 17 % of one)."
    )


def test_invalid_trials_do_not_count() -> None:
    """They are judged by nothing, whatever they left out."""
    good, bad = trials(2, invalid_trials=(2,))
    found = TimeLeftOut.of([judged_by_clean_time(good, [LATE]), judged_by_clean_time(bad, [LATE, AWAY])])
    assert found is not None
    assert found.valid_trials == 1
    assert found.sent_s == pytest.approx(10.5)
    assert found.line == "Time left out: 4.8 % of the sending time, in 1 of 1 valid trial."
    assert TimeLeftOut.of([bad, judged_by_clean_time(bad, [LATE])]) is None


def test_a_trial_without_a_lapse_says_that_nothing_was_left_out() -> None:
    found = TimeLeftOut.of([judged_by_clean_time(trial, []) for trial in trials(2)])
    assert found is not None
    assert (found.share, found.cut_trials) == (0.0, 0)
    assert found.line == "Time left out: none, in 2 valid trials."


def test_results_add_up_to_what_all_their_trials_give() -> None:
    one, other = trials(2)
    made = [judged_by_clean_time(one, [LATE]), judged_by_clean_time(other, [AWAY])]
    parts = [TimeLeftOut.of([each]) for each in made]
    assert TimeLeftOut.together([*parts, None]) == TimeLeftOut.of(made)
    assert TimeLeftOut.together([None]) is None


def test_its_document_is_read_as_it_was_written() -> None:
    found = TimeLeftOut.of([judged_by_clean_time(trials(1)[0], [LATE])])
    assert found is not None
    assert read_time_left_out(found.to_document()) == found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("left_out_s", -1.0),
        ("left_out_s", 1e9),
        ("most_share", 1.5),
        ("most_share", "much"),
        ("sent_s", float("nan")),
        ("sent_s", 10**400),
        ("cut_trials", 7),
        ("cut_trials", -1),
        ("valid_trials", True),
        ("valid_trials", 1 << 40),
        ("judged_trials", ...),
    ],
)
def test_a_document_of_others_that_contradicts_itself_states_nothing(key: str, value: Any) -> None:
    document: dict[str, Any] = dict(
        TimeLeftOut.document_of([judged_by_clean_time(trials(1)[0], [LATE])])["time_left_out"]
    )
    if value is ...:
        del document[key]
    else:
        document[key] = value
    assert read_time_left_out(document) is None


@pytest.mark.parametrize("document", [None, [], "1 %", 5, {}])
def test_what_is_no_document_states_nothing(document: Any) -> None:
    assert read_time_left_out(document) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clean_s", 11.0),
        ("clean_s", -1.0),
        ("clean_s", "10"),
        ("clean_s", float("nan")),
        ("sent_s", None),
        ("sent_s", 10**400),
        ("is_enough", "no"),
        ("is_enough", 1),
        ("pieces", -1),
        ("pieces", 1.5),
        ("lapses", {}),
        ("lapses", []),
        ("left_out", {"a": 1}),
        ("left_out", [[0.0, 1.0]]),
        ("left_out", [[0.0, 1.0, []]]),
        ("left_out", [[0.0, 1.0, ["<script>"]]]),
        ("left_out", [[0.0, 1.0, [["sender_overdue"]]]]),
        ("left_out", [["0", 1.0, ["sender_overdue"]]]),
        ("left_out", [[0.0, float("inf"), ["sender_overdue"]]]),
        ("left_out", [[0.0, 1.0, ["sender_overdue"]]] * 1001),
    ],
)
def test_a_clean_time_outside_the_contract_is_refused(key: str, value: Any) -> None:
    """A run file may come from anybody: nothing of it reaches a reader unchecked."""
    document = copy.deepcopy(dict(judged_by_clean_time(trials(1)[0], []).raw))
    document["clean"][key] = value
    with raises("trial.contract-violated"):
        TrialResult.from_contract(document)
