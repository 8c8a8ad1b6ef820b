# SPDX-License-Identifier: Apache-2.0
"""Trial result: derived figures follow RFC 9971, and documents that contradict themselves are bugs, not
results."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.trial import Reason, SimulatedMeasurer, TrialResult, Verdict, describe_reasons, join_directions
from tests.errors import raises

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden" / "replies.jsonl"


@pytest.fixture
def passed() -> dict[str, Any]:
    documents = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return copy.deepcopy(next(d for d in documents if d.get("verdict") == "PASS"))


def set_path(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        document = document[part]
    if value is ...:
        del document[last]
    else:
        document[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("verdict", "MAYBE"),
        ("verdict", ...),
        ("directions", {}),
        ("directions", {"sideways": {}}),
        ("directions.forward.received_frames", -1),
        ("directions.forward.received_frames", 1.5),
        ("directions.forward.received_frames", "many"),
        ("directions.forward.sender", None),
        ("directions.forward.lost_frames", 7),
        ("contract", 2),
        ("limits", None),
        ("clock", []),
        ("ports.left.after.missed_frames", ...),
    ],
)
def test_a_document_of_another_shape_is_an_engine_error(
    passed: dict[str, Any], path: str, value: Any
) -> None:
    set_path(passed, path, value)
    with raises("trial.contract-violated"):
        TrialResult.from_contract(passed)


def test_counters_that_may_count_the_same_frame_are_not_added_up(passed: dict[str, Any]) -> None:
    """Two counters of 3 and 5 frames, and an extended statistic of 4: 5 at the least, and no more is
    known."""
    port = passed["ports"]["left"]
    for moment, missed, no_buffer, hidden in (("before", 1, 1, 1), ("after", 4, 6, 5)):
        port[moment].update(
            missed_frames=missed, no_buffer_frames=no_buffer, hidden_drops={"rx_discards_phy": hidden}
        )
    assert TrialResult.from_contract(passed).missed_frames == 5


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (9, 3),
        (0, 2**64 - 1),
        (2**64 - 1, 4),
        (0, 2**32 - 1),
        (2**32 - 1, 2**32 + 3),
        (2**64 - 9, 2**64 - 5),
        (2, 2**64 - 5),
    ],
)
@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_counter_that_was_not_read_is_no_number_of_frames(
    passed: dict[str, Any], before: int, after: int, is_hidden: bool
) -> None:
    """Issue: "missed 18446744073709551216 frames". Nor is what the engine does not read: a wrap, all ones,
    what is below zero."""
    port = passed["ports"]["left"]
    for moment, count in (("before", before), ("after", after)):
        port[moment].update(
            {"hidden_drops": {"rx_discards_phy": count}} if is_hidden else {"missed_frames": count}
        )
    assert TrialResult.from_contract(passed).missed_frames == 0


def test_an_extended_statistic_that_was_read_once_is_no_number_of_frames(passed: dict[str, Any]) -> None:
    """A driver that did not tell before the trial is no bug of the engine."""
    port = passed["ports"]["left"]
    port["before"]["hidden_drops"], port["after"]["hidden_drops"] = {}, {"rx_discards_phy": 9}
    assert TrialResult.from_contract(passed).missed_frames == 0


def test_notes_and_offsets_of_clocks_are_read_and_absent_in_earlier_runs(passed: dict[str, Any]) -> None:
    passed.pop("notes", None)
    passed["clock"].pop("offsets", None)
    earlier = TrialResult.from_contract(passed)
    assert (earlier.notes, earlier.clock_offsets) == ((), ())
    passed["notes"] = [{"code": "flow_control", "text": "forward: 9 PAUSE frames"}]
    passed["clock"]["offsets"] = [
        {"cpu": 2, "offset_us": 0, "uncertainty_us": 0},
        {"cpu": 3, "offset_us": -1.2, "uncertainty_us": 0.045},
    ]
    result = TrialResult.from_contract(passed)
    assert result.notes == (Reason(code="flow_control", text="forward: 9 PAUSE frames"),)
    assert [offset.offset_us for offset in result.clock_offsets] == [0, -1.2]


def test_wrong_translations_are_read_and_absent_where_nothing_is_translated(passed: dict[str, Any]) -> None:
    assert TrialResult.from_contract(passed).directions["forward"].mistranslated_frames is None
    wrong = {"no_checksum": 1, "traffic_class": 2, "address_or_port": 3}
    passed["directions"]["forward"]["mistranslated_frames"] = wrong
    assert TrialResult.from_contract(passed).directions["forward"].mistranslated_frames == wrong
    passed["directions"]["forward"]["mistranslated_frames"] = {"no_checksum": 1}
    with raises("trial.contract-violated"):
        TrialResult.from_contract(passed)


def test_a_pass_that_lost_a_frame_in_one_direction_is_a_bug(passed: dict[str, Any]) -> None:
    """R2544-07: a surplus or a duplicate elsewhere cannot hide the loss."""
    forward = passed["directions"]["forward"]
    forward.update(received_frames=forward["offered_frames"] - 1, lost_frames=1, duplicated_frames=1)
    with raises("trial.contract-violated", match="forward .*1 "):
        TrialResult.from_contract(passed)


def test_more_received_than_offered_is_a_bug(passed: dict[str, Any]) -> None:
    """R2544-07: `received` counts unique frames."""
    forward = passed["directions"]["forward"]
    forward.update(received_frames=forward["offered_frames"] + 1, lost_frames=-1)
    with raises("trial.contract-violated"):
        TrialResult.from_contract(passed)


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID"])
def test_a_bad_verdict_needs_a_reason(passed: dict[str, Any], verdict: str) -> None:
    passed["verdict"] = verdict
    with raises("trial.contract-violated", match=verdict):
        TrialResult.from_contract(passed)


def test_loss_is_counted_over_all_directions_and_rate_per_direction() -> None:
    """R2544-15: rates are per direction; R2544-26, MLR-03: the loss ratio is over all directions."""
    result = SimulatedMeasurer(limit_fps=900).measure(10, 1000)
    assert result.verdict is Verdict.FAIL
    assert result.lost_frames == 2000
    assert result.loss_ratio == pytest.approx(0.1)
    assert result.offered_fps == pytest.approx(1000)
    assert result.forwarding_rate_fps == pytest.approx(1800)


def test_a_tester_below_the_intended_load_is_invalid_not_a_loss() -> None:
    """R2544-39."""
    result = SimulatedMeasurer(limit_fps=1e9, tester_ceiling_fps=500).measure(10, 1000)
    assert result.verdict is Verdict.INVALID
    assert result.lost_frames == 0
    assert result.offered_fps == pytest.approx(500)


def test_reasons_that_hold_for_both_directions_are_said_once() -> None:
    reasons = [
        Reason(code="sender_overdue", text="forward: 12 of 100 frames left late"),
        Reason(code="sender_overdue", text="reverse: 12 of 100 frames left late"),
        Reason(code="loss", text="forward: lost 3 of 100 frames"),
        Reason(code="loss", text="reverse: lost 4 of 100 frames"),
        Reason(code="link", text="left: the link was down"),
    ]
    assert [(reason.code, reason.text) for reason in join_directions(reasons)] == [
        ("sender_overdue", "both directions: 12 of 100 frames left late"),
        ("loss", "forward: lost 3 of 100 frames"),
        ("loss", "reverse: lost 4 of 100 frames"),
        ("link", "left: the link was down"),
    ]
    assert describe_reasons(reasons) == (
        "both directions: 12 of 100 frames left late; forward: lost 3 of 100 frames; reverse alike;"
        " left: the link was down"
    )


def test_a_filling_queue_is_read_and_one_that_contradicts_the_contract_is_refused() -> None:
    """What the engine says of a queue is beside the verdict: slope, sustainable load, and the delays that
    they come from."""
    replies = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    document = next(
        d for d in replies if d.get("response") == "trial" and "queue_filling" in d["directions"]["forward"]
    )
    result = TrialResult.from_contract(document)
    forward = result.directions["forward"]
    assert forward.queue_filling is not None
    assert (forward.queue_filling.slope, forward.queue_filling.sustainable_fps) == (0.05, 95_238)
    assert result.sustainable_fps == 95_238
    assert sum(each.frames for each in forward.delay_by_slice) == forward.received_frames
    assert "queue_filling" in {note.code for note in result.notes}
    document["directions"]["forward"]["queue_filling"] = {"slope": "steep"}
    with raises("trial.contract-violated"):
        TrialResult.from_contract(document)


def test_a_flow_is_read_with_its_limit_and_one_outside_the_contract_is_refused() -> None:
    replies = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    document = next(each for each in replies if each["id"] == 756)
    classes = TrialResult.from_contract(document).directions["forward"].classes
    flows = [each.flow for each in classes if each.flow is not None]
    assert [(flow.name, flow.loss_at_most, flow.late_frames, flow.remarked_frames) for flow in flows] == [
        ("voice", 0, 3, 0),
        ("video", 0.001, 0, 20_000),
        ("rest", None, 0, 0),
    ]
    assert [each.lost_frames for each in classes] == [620, 0, 0]
    del document["directions"]["forward"]["classes"][0]["flow"]["loss_at_most"]
    with raises("trial.contract-violated"):
        TrialResult.from_contract(document)


def test_of_unlike_directions_the_worse_one_says_what_each_of_them_got(passed: dict[str, Any]) -> None:
    """R2544-15: an offered load and a sustainable load per direction are those that no direction is below; a
    port's drops count wherever they are."""
    forward, reverse = passed["directions"]["forward"], passed["directions"]["reverse"]
    forward["queue_filling"] = {"slope": 0.1, "sustainable_fps": 909_090}
    reverse["queue_filling"] = {"slope": 0.25, "sustainable_fps": 800_000}
    reverse.update(offered_fps=999_900.0, forwarding_rate_fps=999_800.0)
    for side, dropped in (("left", 2), ("right", 5)):
        passed["ports"][side]["after"]["missed_frames"] += dropped
    for order in (("forward", "reverse"), ("reverse", "forward")):
        passed["directions"] = {name: passed["directions"][name] for name in order}
        result = TrialResult.from_contract(passed)
        assert result.offered_fps == 999_900
        assert result.forwarding_rate_fps == forward["forwarding_rate_fps"] + 999_800
        assert result.sustainable_fps == 800_000
        assert result.missed_frames == 7


def test_a_cpu_of_the_dut_is_away_by_whatever_took_it(passed: dict[str, Any]) -> None:
    """SEED-07: the hypervisor and other programs take it one after the other."""
    passed["host"]["dut"]["cpus"] = [
        {"cpu": 0, "stolen_us": 300.0, "waited_us": 1000.0, "absences": 2, "longest_us": 900.0}
    ]
    (watched,) = TrialResult.from_contract(passed).watched_cpus or ()
    assert (watched.away_us, watched.longest_us, watched.absences) == (1300, 900, 2)


def test_a_pass_of_a_loss_ratio_is_of_the_trial_as_a_whole(passed: dict[str, Any]) -> None:
    """MLR-03: one of two directions may lose twice as much; more cannot be a PASS."""
    forward = passed["directions"]["forward"]
    passed["limits"]["loss_ratio"] = 0.005
    for lost, is_pass in ((600_000, True), (600_001, False)):
        forward.update(received_frames=forward["offered_frames"] - lost, lost_frames=lost)
        if is_pass:
            assert TrialResult.from_contract(passed).loss_ratio == pytest.approx(0.005)
        else:
            with raises("trial.contract-violated"):
                TrialResult.from_contract(passed)


@pytest.mark.parametrize("late", ["forward", "reverse"])
def test_a_direction_that_was_late_all_the_time_was_spoiled_by_no_moment(
    passed: dict[str, Any], late: str
) -> None:
    """R2544-39: a quarter of the frames of each direction at most; a tester that is too slow has more."""
    passed.update(verdict="INVALID", reasons=[{"code": "sender_overdue", "text": "late"}])
    sender = passed["directions"][late]["sender"]
    frames = passed["directions"][late]["intended_frames"]
    for overdue, is_moment in ((frames // 4, True), (frames // 4 + 1, False)):
        sender["overdue_frames"] = overdue
        assert TrialResult.from_contract(passed).was_spoiled_by_a_moment is is_moment
