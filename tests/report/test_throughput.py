# SPDX-License-Identifier: Apache-2.0
"""Reports say what a reader must know of a number: conditions, loss ratio, outcome, the tester's own figures,
deviations."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from evenhand.base.terminal_table import Printable, rendered
from evenhand.plan import make_plan
from evenhand.procedure import OnePair, Profile, WorstTesterFigures, collect_deviations, throughput_document
from evenhand.report.proof import make_pcap
from evenhand.report.suite import SuiteEntry, suite_lines, suite_table
from evenhand.report.throughput import ceiling_lines, filling_lines, verification_lines
from evenhand.report.trial import describe_sending, trial_report, trials_table
from evenhand.results.throughput import CeilingFound
from evenhand.search import Purpose, SearchTrial, ThroughputGoal, ThroughputResult, find_throughput
from evenhand.trial import Load, SimulatedMeasurer, TrialResult, Verdict
from evenhand.trial.clean_time import LAPSES, CleanTime
from evenhand.trial.direction import QueueFilling
from tests.report.live import entry_of_search, line_of_pair, lines_of

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden" / "replies.jsonl"
PROFILE = Profile(
    plan=make_plan("gateway_v4"),
    frame_size=64,
    seed=7,
    directions=("forward", "reverse"),
    line_rate_bps=1e10,
    theoretical_fps=14_880_952,
)


def found(
    *,
    loss_ratio: float = 0.0,
    limit_fps: float = 640_000,
    max_fps: float = 1e6,
    final_duration_s: float = 60.0,
) -> ThroughputResult:
    device = SimulatedMeasurer(limit_fps=limit_fps, loss_ratio_limit=loss_ratio)
    return find_throughput(
        device,
        ThroughputGoal(
            max_fps=max_fps, duration_s=1.0, final_duration_s=final_duration_s, loss_ratio=loss_ratio
        ),
    )


def shown(renderable: Printable, width: int = 400) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(rendered(renderable))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def golden_trials() -> list[TrialResult]:
    documents = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    alone = [d for d in documents if d.get("response") == "trial" and "share" not in d]
    return [TrialResult.from_contract(d) for d in alone]


def as_search_trials(results: list[TrialResult], *, is_full_length: bool = False) -> list[SearchTrial]:
    return [
        SearchTrial(
            number=i,
            purpose=Purpose.SEARCH,
            attempt=1,
            is_full_length=is_full_length,
            load_fps=r.intended_fps,
            result=r,
        )
        for i, r in enumerate(results, 1)
    ]


def test_the_summary_has_the_four_items_and_says_per_direction() -> None:
    """R2544-23: measured rate, frame size, theoretical limit, protocol. R2544-15, MLR-02: per direction, and
    the total apart."""
    result = found()
    assert result.throughput_fps is not None
    line = lines_of(result, PROFILE)[0]
    assert f"{result.throughput_fps:,.0f} fps per direction" in line
    assert f"{2 * result.throughput_fps:,.0f} fps in both directions" in line
    assert "64 octet frames" in line
    assert "14,880,952 fps per direction (10 Gbps)" in line
    assert "UDP over IPv4" in line
    assert "65,534 x 65,534 addresses" in line
    assert "loss ratio" not in line


@pytest.mark.parametrize(
    ("stopped_s", "words"), [(None, "500 ms"), (0.46173, "460 ms of 500 ms"), (0.0061, "6.1 ms of 500 ms")]
)
def test_a_trial_that_was_stopped_says_for_how_long_it_sent(stopped_s: float | None, words: str) -> None:
    result = replace(golden_trials()[0], intended_duration_s=0.5, stopped_early_s=stopped_s)
    assert describe_sending(result) == words


@pytest.mark.parametrize(
    ("sent_s", "stopped_s", "words"),
    [
        (0.5, None, "500 ms"),
        (0.6143, None, "614 ms for 500 ms of clean time"),
        (0.5153, 0.5153, "515 ms for 500 ms of clean time"),
        (0.21, 0.21, "210 ms of 500 ms"),
    ],
)
def test_a_trial_that_waited_for_clean_time_says_so(
    sent_s: float, stopped_s: float | None, words: str
) -> None:
    clean = CleanTime(
        wanted_s=0.5,
        sent_s=sent_s,
        clean_s=min(sent_s, 0.5),
        is_enough=True,
        pieces=2,
        lapses=dict.fromkeys(LAPSES, 1),
        left_out=(),
    )
    trial = replace(golden_trials()[0], intended_duration_s=0.5, stopped_early_s=stopped_s, clean=clean)
    assert describe_sending(trial) == words


def test_a_loss_ratio_is_named() -> None:
    """A number with loss allowed must not pass for the throughput of RFC 2544."""
    assert "with a loss ratio of at most 0.5 %" in lines_of(found(loss_ratio=0.005), PROFILE)[0]


def test_an_unknown_theoretical_limit_is_said_to_be_unknown() -> None:
    assert (
        "theoretical limit unknown"
        in lines_of(found(), replace(PROFILE, line_rate_bps=None, theoretical_fps=None))[0]
    )


@pytest.mark.parametrize(
    ("limit_fps", "words"),
    [
        (2e6, "at or above the maximum of 1,000,000 fps"),
        (0, "below the minimum of 1,000 fps"),
        (640_000, "found"),
    ],
)
def test_the_outcome_is_said_in_words(limit_fps: float, words: str) -> None:
    assert words in lines_of(found(limit_fps=limit_fps), PROFILE)[1]


def test_a_tester_ceiling_is_no_throughput() -> None:
    result = find_throughput(
        SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=500), ThroughputGoal(max_fps=1e6)
    )
    lines = lines_of(result, PROFILE)
    assert "no throughput" in lines[0]
    assert "tester ceiling" in lines[1]
    assert "Highest load passed: none" in lines[1]


def test_deviations_are_told_once_and_short_search_trials_are_none() -> None:
    """R2544-18, R2544-20: shorter waits deviate; trials within a search may be short."""
    short, full = golden_trials()[1], golden_trials()[0]
    trials = [*as_search_trials([short, short, short]), *as_search_trials([full], is_full_length=True)]
    deviations = collect_deviations(trials, PROFILE)
    assert [d.requirement for d in deviations] == ["R2544-18", "SEED-02"]


def test_a_short_final_trial_is_a_deviation() -> None:
    """R2544-20."""
    result = found(final_duration_s=10.0)
    assert [d.requirement for d in collect_deviations(result.trials, PROFILE)] == ["R2544-20", "SEED-02"]


def test_the_omission_of_one_pair_is_named_and_only_that() -> None:
    """SEED-02, SEED-85, R2544-13: a many-address result without one carries the deviation; one pair alone, or
    after one, does not."""
    one_pair = replace(PROFILE, plan=make_plan("gateway_v4", 1))
    before = OnePair.of(found(limit_fps=300_000), one_pair)
    assert before is not None
    for profile, is_named in ((PROFILE, True), (one_pair, False), (replace(PROFILE, one_pair=before), False)):
        result = found(limit_fps=600_000)
        assert ("SEED-02" in {d.requirement for d in collect_deviations(result.trials, profile)}) == is_named
        assert (
            any(
                "single address pair" in line and line.startswith("Deviation")
                for line in lines_of(result, profile)
            )
            == is_named
        )
        document = throughput_document(result, profile)
        assert any(d["requirement"] == "SEED-02" for d in document["deviations"]) == is_named
    line = next(
        line for line in lines_of(result, replace(PROFILE, one_pair=before)) if line.startswith("Before it")
    )
    assert "with 1 address pair: 299,8" in line
    assert "2.00" in line
    assert document["one_pair"]["many_to_one"] == pytest.approx(2, rel=0.01)


def test_a_search_that_the_tester_ended_is_no_one_pair_result() -> None:
    """SEED-02: it says nothing of the DUT, so the omission stays named."""
    limited = find_throughput(
        SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=500), ThroughputGoal(max_fps=1e6)
    )
    assert OnePair.of(limited, PROFILE) is None
    at_maximum = OnePair.of(found(limit_fps=2e6), PROFILE)
    assert at_maximum is not None
    assert at_maximum.ratio(found()) is None
    assert "at least 1,000,000 fps" in line_of_pair(at_maximum, found(), PROFILE)


def test_loss_verification_is_named() -> None:
    """R2544-21 lets any loss count at once; what differs is said."""
    goal = ThroughputGoal(max_fps=1e6, loss_verifications=2)
    assert not verification_lines(replace(goal, loss_verifications=0))
    assert "A lossy trial counted after 2 repetitions" in verification_lines(goal)[0]
    assert (
        "A trial with a loss of up to 2 % counted after"
        in verification_lines(replace(goal, plain_loss_ratio=0.02))[0]
    )


def test_the_worst_tester_figures_leave_invalid_trials_out() -> None:
    figures = WorstTesterFigures.of(golden_trials())
    assert figures.max_overdue_us == 12.4
    assert figures.max_poll_gap_us == 41.7
    assert not figures.is_of_invalid_trials
    assert "INVALID" not in str(figures)
    assert figures.to_document()["invalid_reasons"] == {
        "offered_load": 1,
        "receiver_gap": 1,
        "sender_overdue": 1,
        "stopped": 1,
    }


@pytest.mark.parametrize("sign", [1, -1])
def test_the_worst_figure_is_the_one_farthest_off_whichever_way(sign: int) -> None:
    """R2544-39: a clock that is slow, and a load that is too low, are as wrong as the opposite."""
    first, second = (SimulatedMeasurer(limit_fps=1e6).measure(1, 1000) for _ in range(2))
    off = {
        name: replace(each, offered_fps=1000 * (1 + sign * 0.002)) for name, each in first.directions.items()
    }
    worst = replace(first, clock_error_ppm=-9.0 * sign, directions=off, missed_frames=2)
    figures = WorstTesterFigures.of([worst, replace(second, clock_error_ppm=4.0, missed_frames=3)])
    assert figures.max_clock_error_ppm == 9
    assert figures.max_offered_error == pytest.approx(0.002)
    assert figures.missed_frames == 5


def test_a_search_that_begins_at_the_ceiling_itself_is_not_above_it() -> None:
    """MLR-14."""

    def said(max_fps: float) -> str:
        ceiling = CeilingFound(rate_fps=5e5, is_new=True)
        (line,) = ceiling_lines(ceiling, max_fps)
        return line

    for max_fps in (4e5, 5e5):
        assert said(max_fps).startswith("The search began at the tester's own ceiling of 500,000 fps")
    assert said(6e5).startswith("The search began at 600,000 fps per direction, above the tester's own")


def test_of_unlike_directions_the_delays_that_grow_faster_are_told() -> None:
    """R2544-23: the slope is that of the direction whose queue fills sooner."""
    result = find_throughput(
        SimulatedMeasurer(limit_fps=9_900, buffer_frames=1e6), ThroughputGoal(max_fps=10_000.0)
    )
    final = result.final_trial
    assert final is not None
    for slopes in ((0.02, 0.3), (0.3, 0.02)):
        directions = {
            name: replace(each, queue_filling=QueueFilling(slope=slope, sustainable_fps=9_000.0))
            for (name, each), slope in zip(final.directions.items(), slopes, strict=True)
        }
        last = replace(result.trials[-1], result=replace(final, directions=directions))
        (line,) = filling_lines(entry_of_search(replace(result, trials=(*result.trials[:-1], last)), PROFILE))
        assert "delays grew by 300 ms per second" in line
        assert "sustains about 9,000 fps" in line


def test_where_no_trial_was_valid_the_figures_are_those_of_the_invalid_ones() -> None:
    """R2544-39: a script that read 0.0 took a tester that kept no load for a perfect one."""
    invalid = [trial for trial in golden_trials() if not trial.is_valid]
    figures = WorstTesterFigures.of(invalid)
    assert figures.is_of_invalid_trials
    assert (
        figures.max_overdue_us
        == max(d.sender.max_overdue_us for trial in invalid for d in trial.directions.values())
        > 0
    )
    assert str(figures).startswith("no trial was valid (")
    assert "sender_overdue in 1 trial" in str(figures)
    assert "latest frame 0 ns" not in str(figures)


def test_without_a_trial_no_figure_is_told() -> None:
    figures = WorstTesterFigures.of([])
    assert str(figures) == "there were no trials, so there are no figures"
    told = figures.to_document()
    assert (told.pop("is_of_invalid_trials"), told.pop("invalid_reasons")) == (False, {})
    assert set(told.values()) == {None}


def test_a_tester_ceiling_names_what_made_the_trials_invalid() -> None:
    """R2544-39: and the load that they offered is none that a valid trial offered."""
    device = SimulatedMeasurer(limit_fps=900_000, invalid_probability=1, is_load_offered=False)
    limited = find_throughput(device, ThroughputGoal(max_fps=1e6))
    lines = "\n".join(lines_of(limited, PROFILE))
    causes = f"in {len(limited.trials)} trials"
    assert f"tester ceiling: the tester itself could not keep the load (offered_load {causes})" in lines
    assert "highest load offered in a valid trial: none" in lines
    assert f"Tester: no trial was valid (offered_load {causes}); in the INVALID ones: latest frame" in lines
    assert throughput_document(limited, PROFILE)["tester"]["is_of_invalid_trials"]


def test_every_trial_is_in_the_table_with_verdict_and_reason() -> None:
    trials = golden_trials()
    text = shown(trials_table(as_search_trials(trials)))
    for verdict in Verdict:
        assert text.count(verdict) == sum(trial.verdict is verdict for trial in trials) > 0
    assert "298112 frames left more than 100 us late" in text


def test_a_page_has_the_same_table_of_trials_and_the_loads_that_were_really_offered() -> None:
    """What a page adds are pictures, and the offered load where it is another one."""
    trials = as_search_trials(golden_trials())
    on_terminal = trials_table(trials)
    on_page = trials_table(trials, loss_over_time=lambda result: f"loss of {result.trial}")
    assert [column.title for column in on_page.columns if column.title != "offered, fps"] == [
        column.title for column in on_terminal.columns
    ]
    offered, loss = ([c.title for c in on_page.columns].index(t) for t in ("offered, fps", "loss, %"))
    assert {row[offered].text for row in on_page.rows} == {
        f"{round(trial.result.offered_fps):,}" for trial in trials
    }
    assert [row[loss].spark for row in on_page.rows] == [f"loss of {trial.result.trial}" for trial in trials]
    passed = [trial for trial in trials if trial.result.is_pass]
    table = trials_table(passed, loss_over_time=lambda result: "")
    assert table.caption == "All loads were offered as intended."
    assert len(table.columns) == len(on_terminal.columns)


@pytest.mark.parametrize("result", golden_trials(), ids=lambda r: f"{r.trial}-{r.verdict}")
def test_a_trial_report_shows_all_reasons_and_deviations(result: TrialResult) -> None:
    text = shown(trial_report(result))
    assert str(result.verdict) in text
    assert all(
        reason.text.removeprefix("forward: ").removeprefix("reverse: ") in text for reason in result.reasons
    )
    assert all(deviation.text in text for deviation in result.deviations)


@pytest.mark.parametrize(
    ("limit", "words"), [(0.5, "PASS (a loss ratio of at most 50 % was allowed) at"), (0.0, "PASS at")]
)
def test_a_pass_with_loss_says_that_it_was_allowed(limit: float, words: str) -> None:
    """A reader takes PASS for the zero loss of RFC 2544."""
    result = SimulatedMeasurer(limit_fps=600_000, loss_ratio_limit=limit).offer(
        Load(rate_fps=500_000 if limit == 0 else 1e6, duration_s=1)
    )
    assert words in " ".join(shown(trial_report(result)).split())


def test_the_document_is_json_and_holds_every_trial() -> None:
    result = found()
    document = json.loads(json.dumps(throughput_document(result, PROFILE), allow_nan=False))
    assert document["throughput_fps_per_direction"] == result.throughput_fps
    assert result.throughput_fps is not None
    assert document["throughput_fps_total"] == 2 * result.throughput_fps
    assert [t["result"]["verdict"] for t in document["trials"]] == [
        str(t.result.verdict) for t in result.trials
    ]


def test_a_suite_shows_one_pair_first_and_compares_many_with_it() -> None:
    """SEED-02."""
    one = SuiteEntry(
        profile=replace(PROFILE, plan=make_plan("gateway_v4", 1)),
        result=found(limit_fps=300_000),
        dut_neighbors=2,
    )
    many = SuiteEntry(profile=PROFILE, result=found(limit_fps=600_000), dut_neighbors=2)
    rows = shown(suite_table([one, many])).splitlines()
    first = next(i for i, row in enumerate(rows) if "1 x 1 " in row)
    second = next(i for i, row in enumerate(rows) if "65,534 x 65,534" in row)
    assert first < second
    lines = suite_lines([one, many])
    assert "forwards 2.0" in lines[0]
    assert any("2, 2" in line for line in lines)


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_the_table_of_a_suite_keeps_one_line_for_each_search_on_80_columns(plan: str) -> None:
    """A terminal of the usual width must not tear numbers apart; what the table leaves out stands in a line
    for each search."""
    profile = replace(PROFILE, plan=make_plan(plan))
    entry = SuiteEntry(profile=profile, result=found(limit_fps=2e7, max_fps=14_880_952.25, loss_ratio=0.005))
    rows = shown(suite_table([entry, entry]), width=80).splitlines()
    hosts = (
        f"{profile.plan.left.host_range.address_count:,} x {profile.plan.right.host_range.address_count:,}"
    )
    wide = [row for row in rows if plan in row]
    assert [row.split() for row in wide] == 2 * [
        [plan, *hosts.split(), "64", ">=", "14,880,952", "0", "at", "or", "above", "maximum"]
    ]
    line = next(line for line in suite_lines([entry]) if line.startswith(plan))
    for said in (
        "2 PASS, 0 FAIL, 0 INVALID",
        "29,761,904.5 fps in total",
        "late by at most",
        "poll gap",
        "highest load passed",
    ):
        assert said in line


def test_a_suite_does_not_compare_what_was_not_found() -> None:
    """Two searches that ended at the maximum say nothing about each other."""
    one = SuiteEntry(profile=replace(PROFILE, plan=make_plan("gateway_v4", 1)), result=found(limit_fps=2e6))
    many = SuiteEntry(profile=PROFILE, result=found(limit_fps=600_000))
    lines = suite_lines([one, many])
    assert not any("times what" in line for line in lines)
    assert any("at or above maximum" in line for line in lines)


def test_a_pcap_file_is_read_back_by_another_program(tmp_path: Path) -> None:
    from scapy.utils import rdpcap

    frames = [bytes([i]) * 60 for i in range(3)]
    (tmp_path / "a.pcap").write_bytes(make_pcap(frames))
    assert [bytes(packet) for packet in rdpcap(str(tmp_path / "a.pcap"))] == frames
