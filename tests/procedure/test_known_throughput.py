# SPDX-License-Identifier: Apache-2.0
"""Which throughput that was measured before may serve another procedure: the same for verbs, campaigns and
Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.plan import make_plan
from evenhand.procedure import BackToBackGoal, Profile, RecoveryGoal
from evenhand.procedure.back_to_back_result import why_skipped
from evenhand.procedure.descriptor import throughput_to_serve
from evenhand.procedure.recovery import check_throughput
from evenhand.results.throughput import SearchAsked, ThroughputFound
from evenhand.run import PointState, read_record
from tests.errors import raises
from tests.run.campaign.small_campaign import write_campaign

PROFILE = Profile(
    plan=make_plan("gateway-v4"), frame_size=64, seed=1, directions=("forward",), theoretical_fps=1_000_000
)


def result(fps: float | None, *, is_at_least: bool = False, loss_ratio: float = 0.0) -> ThroughputFound:
    return ThroughputFound(
        throughput_fps=fps, is_at_least=is_at_least, goal=SearchAsked(loss_ratio=loss_ratio)
    )


def test_a_throughput_with_loss_serves_nothing_and_a_bound_is_known_as_one() -> None:
    """R2544-21, R9004-01: a rate that loses frames is no throughput; above a lower bound nothing is known."""
    found = throughput_to_serve([result(3e5), result(None), result(4e5)], source="a", where="after")
    assert (found.fps, found.source, found.is_at_least) == (3.5e5, "a", False)
    bounds = [result(3e5), result(4e5, is_at_least=True), result(5e5)]
    assert not throughput_to_serve(bounds[:1], source="a", where="after").is_at_least
    assert throughput_to_serve(bounds, source="a", where="after").is_at_least
    assert throughput_to_serve(
        [ThroughputFound(throughput_fps=1e5, outcome="tester_ceiling")], source="", where=""
    ).is_at_least
    with raises("procedure.no-throughput-found"):
        throughput_to_serve([result(None)], source="a", where="after")
    with raises("procedure.throughput-with-loss"):
        throughput_to_serve([result(3e5), result(3e5, loss_ratio=0.005)], source="a", where="after")


def test_a_lower_bound_is_no_overload_and_corrects_no_burst_unless_it_is_the_line_rate() -> None:
    """R2544-29, R9004-01."""
    goal = RecoveryGoal(throughput_fps=5e5, throughput_source="a", is_throughput_at_least=True)
    with raises("procedure.throughput-is-bound"):
        check_throughput(goal, PROFILE)
    assert check_throughput(replace(goal, throughput_fps=1e6), PROFILE).rate_fps == 1e6
    bursts = BackToBackGoal(rate_fps=1e6, throughput_fps=5e5, is_throughput_at_least=True)
    assert "is a lower bound" in str(why_skipped(None, 5e5, bursts))
    assert why_skipped(None, 5e5, replace(bursts, is_throughput_at_least=False)) is None
    assert "equals the maximum rate" in str(why_skipped(None, 1e6, bursts))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ('loss-ratio = "0.5%"', "was found with a loss ratio of 0.5 %"),
        ('maximum-rate = "500kfps"', "is a lower bound"),
    ],
)
def test_a_campaign_refuses_what_the_verbs_refuse(
    options: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As back-to-back, recovery and latency of a suite take its throughput."""
    suite = f"""
name = "c"
testbed = "testbed.toml"
[[suite]]
name = "s"
procedure = ["throughput", "recovery"]
hosts = [4]
repetitions = 1
inner-repetitions = 1
duration = "1s"
final-duration = "1s"
observe = "1s"
precision = "5%"
waits = "short"
one-pair-first = false
{options}
"""
    campaign = write_campaign(tmp_path, suite)
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    monkeypatch.chdir(tmp_path)
    main(["run", str(campaign), "--run", "a.evenhand", "--no-html"])
    first, then = read_record(Path("a.evenhand")).points
    assert first.state is PointState.MEASURED
    assert (then.state, then.values) == (PointState.NO_NUMBER, ())
    assert told in str(then.reason)
