# SPDX-License-Identifier: Apache-2.0
"""Expected times of whole campaigns: what is said before the first repetition and after each, against the
time that the simulated engine's trials take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.cli.progress import campaign as campaign_progress
from evenhand.cli.progress.campaign import CampaignDisplay
from evenhand.procedure import tester
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.run import recorder
from evenhand.run.campaign.events import RepetitionEnded
from tests.cli.running import TESTBED, run_here
from tests.matrix.timing import Clock, Device, session_of

LINE_RATE_FPS = 1_488_095
"""That of 1 Gbps."""
HEAD = 'name = "times"\ntestbed = "testbed.toml"\nseed = 7\n[every-suite]\nhosts = [1, 20]\nwaits = "short"\n'
THROUGHPUT = """
[[suite]]
name = "guided"
procedure = "throughput"
plan = "gateway-v4"
frame-sizes = [64, 512]
repetitions = 4
start = "auto"
precision = "2%"
duration = "500ms"
final-duration = "1s"
"""
HALVED = """
[[suite]]
name = "halved"
procedure = "throughput"
plan = "gateway-v6"
repetitions = 3
duration = "1s"
final-duration = "10s"
"""
OTHERS = """
[[suite]]
name = "others"
procedure = ["throughput", "latency", "loss", "back-to-back"]
plan = "gateway-v4"
repetitions = 3
inner-repetitions = 10
duration = "1s"
final-duration = "5s"
"""
STATE = """
[[suite]]
name = "state"
procedure = ["connections", "capacity"]
plan = "nat44"
repetitions = 3
connections = "5000"
from = "1000"
most = "1M"
maximum-rate = "100kfps"
"""


@dataclass(slots=True, kw_only=True)
class Said:
    """What was said of a campaign."""

    at_s: list[float] = field(default_factory=list)
    left: list[TimeSpan] = field(default_factory=list)

    def add(self, at_s: float, left: TimeSpan) -> None:
        """At this time so much was said to be left."""
        self.at_s.append(at_s)
        self.left.append(left)


@dataclass(slots=True, kw_only=True)
class Campaign:
    """What one took."""

    said: Said
    took_s: float


@pytest.fixture
def measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Campaign]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_ENGINE", "/bin/true")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(text: str, device: Device, *, has_line_rate: bool = True) -> Campaign:
        clock, said = Clock(), Said()
        line = 'line_rate = "1Gbps"\n' if has_line_rate else ""
        testbed = TESTBED.replace("[right]", f"{line}[right]").replace("[tester]", f"{line}[tester]")
        Path("testbed.toml").write_text(f'{testbed}[dut]\nempty_connections = "rm -f {tmp_path}/table"\n')
        Path("campaign.toml").write_text(HEAD + text)
        watch = SimpleNamespace(monotonic=lambda: clock.now_s)
        for module in (recorder, campaign_progress):
            monkeypatch.setattr(module, "time", watch)
        monkeypatch.setattr(tester, "EngineSession", session_of(device, clock, tmp_path))
        take, expect = CampaignDisplay.on_campaign_event, CampaignDisplay.expect

        def listen(display: CampaignDisplay, event: Any) -> None:
            take(display, event)
            if isinstance(event, RepetitionEnded):
                said.add(clock.now_s, display._left_of_all)

        def hear(display: CampaignDisplay, expected: ExpectedTime) -> None:
            expect(display, expected)
            said.add(clock.now_s, expected.span)

        monkeypatch.setattr(CampaignDisplay, "on_campaign_event", listen)
        monkeypatch.setattr(CampaignDisplay, "expect", hear)
        ended = run_here(["run", "campaign.toml", "--run", "a.evenhand", "--no-html"], capsys)
        assert ended.code in (0, 1), ended.failure or ended.err  # 1: no number
        return Campaign(said=said, took_s=clock.now_s)

    return run


def check_right(campaign: Campaign, *, first: int = 0) -> None:
    """Within a factor of two, or in the range that was said; of the last twentieth nothing is asked.

    Args:
        first: How many repetitions were made when what is said is first to be right.
    """
    spare_s, ratios, is_right = campaign.took_s / 20, [], True
    for at_s, left in list(zip(campaign.said.at_s, campaign.said.left, strict=True))[first:]:
        to_come_s = campaign.took_s - at_s
        least_s, most_s = (
            (left.least_s / 1.25, 1.25 * left.most_s)  # it may be the sum of ranges and of single times
            if left.is_wide
            else (left.middle_s / 2, 2 * left.middle_s)
        )
        ratios.append((round(at_s), left.exact, round(to_come_s)))
        is_right &= least_s - spare_s <= to_come_s <= most_s + spare_s
    assert is_right, ratios


def check_shrinks(campaign: Campaign) -> None:
    """The time left becomes less with each repetition, but for a fiftieth of the whole, and to nothing."""
    ends = [left.most_s if left.is_wide else left.middle_s for left in campaign.said.left]
    for before_s, after_s in pairwise(ends):
        assert after_s <= before_s + campaign.took_s / 50, campaign
    assert ends[-1] == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(THROUGHPUT, id="guided", marks=pytest.mark.thorough),
        pytest.param(HALVED, id="halved"),
        pytest.param(OTHERS, id="others", marks=pytest.mark.thorough),
        pytest.param(STATE, id="state", marks=pytest.mark.thorough),
    ],
)
def test_the_expected_time_of_a_campaign_is_right_and_shrinks(
    text: str, measure: Callable[..., Campaign]
) -> None:
    device = Device(limit_fps=LINE_RATE_FPS / 5, buffer_frames=512, table_connections=20_000)
    campaign = measure(text, device)
    check_right(campaign)
    check_shrinks(campaign)


@pytest.mark.thorough
@pytest.mark.parametrize("limit_fps", [15_000, 1_000_000])
@pytest.mark.parametrize("text", [THROUGHPUT, HALVED, STATE], ids=["guided", "halved", "state"])
def test_it_is_right_for_slow_and_for_fast_duts(
    text: str, limit_fps: float, measure: Callable[..., Campaign]
) -> None:
    device = Device(limit_fps=limit_fps, buffer_frames=512, table_connections=8_000)
    check_right(measure(text, device))


@pytest.mark.thorough
@pytest.mark.parametrize("text", [THROUGHPUT, HALVED, STATE], ids=["guided", "halved", "state"])
def test_a_dut_that_forwards_the_maximum_is_known_after_one_repetition(
    text: str, measure: Callable[..., Campaign]
) -> None:
    """Whether it does decides between two trials and a whole search. A range says so of a search that halves,
    before any repetition."""
    device = Device(limit_fps=1e9, table_connections=8_000)
    check_right(measure(text, device), first=0 if text is HALVED else 1)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [THROUGHPUT, OTHERS, STATE], ids=["guided", "others", "state"])
def test_it_is_right_where_trials_are_repeated(text: str, measure: Callable[..., Campaign]) -> None:
    device = Device(limit_fps=LINE_RATE_FPS / 5, buffer_frames=512, table_connections=20_000, invalid_every=4)
    check_right(measure(text, device))


def test_it_is_right_where_the_testers_ceiling_is_found_first(measure: Callable[..., Campaign]) -> None:
    """Once for each plan and frame size, not once for each point or repetition."""
    check_right(measure(THROUGHPUT, Device(limit_fps=LINE_RATE_FPS / 5), has_line_rate=False))
