# SPDX-License-Identifier: Apache-2.0
"""What the engine tells of a trial while it is made: delays of the last moments, and what is left out. The
tester's ports are joined to each other. IPv4 and IPv6."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import TrialPhase
from evenhand.trial import EngineSession, Limits, TrialResult
from evenhand.trial.measurer import EngineMeasurer
from tests.wire.test_clean_time import WAITS, stopped_now_and_then
from tests.wire.wire_session import engine, memif_cable, open_ports, until

pytestmark = pytest.mark.wire
BOTH = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
RATE_FPS = 20_000.0
DURATION_S = 3.1
SAME = 1.002
"""A bucket of the histogram is 0.1 percent wide."""
Told = tuple[TrialResult, list[TrialPhase]]


def watched(session: EngineSession, trial: int, limits: Limits) -> Told:
    told: list[TrialPhase] = []
    measurer = EngineMeasurer(session=session, waits=WAITS, limits=limits)
    measurer.on_event = lambda document: told.append(TrialPhase.from_contract(document))
    measurer._last_trial = trial
    return measurer.measure(DURATION_S, RATE_FPS), told


@BOTH
def test_delays_of_the_last_moments_are_told_for_both_directions(plan: AddressPlan, tmp_path: Path) -> None:
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        result, told = watched(session, 1, Limits())
    for direction, counted in result.directions.items():
        found = [
            (so_far.recent_median_ns, so_far.recent_p999_ns)
            for phase in told
            if (so_far := phase.directions.get(direction)) is not None
            and so_far.recent_median_ns is not None
            and so_far.recent_p999_ns is not None
        ]
        assert len(found) >= 2
        least, most = counted.latency.min_ns, counted.latency.max_ns
        assert least is not None
        assert most is not None
        for median, p999 in found:
            assert least / SAME <= median <= p999 <= most * SAME
        assert len(set(found)) > 1  # of the last moments, not always the same


@BOTH
def test_what_is_left_out_is_told_while_the_trial_goes_on(plan: AddressPlan, tmp_path: Path) -> None:
    numbers = iter(range(1000))
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))

        def stopped() -> Told:
            with stopped_now_and_then(session):
                return watched(session, next(numbers), Limits(clean_at_most=4.0))

        result, told = until(
            lambda found: found[0].is_judged_by_clean_time and any(phase.left_out for phase in found[1]),
            stopped,
        )
    assert result.clean is not None
    for phase in told:
        for part in phase.left_out:
            assert part.until_s - part.from_s >= 0
            assert part.until_s <= phase.sending_s <= phase.elapsed_s
            # What is known later is never less.
            assert any(
                whole.from_s <= part.until_s and part.from_s <= whole.until_s
                for whole in result.clean.left_out
            )
