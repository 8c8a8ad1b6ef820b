# SPDX-License-Identifier: Apache-2.0
"""The real engine with another load in each direction: each sends its own number of frames, evenly, and all
counts are of these. IPv4 and IPv6."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from tests.trial.test_contract_golden import validator
from tests.wire.wire_session import engine, memif_cable, open_ports, run_trial, until, was_sent_whole

pytestmark = pytest.mark.wire


def trial(folder: Path, plan: AddressPlan, **arguments: Any) -> dict[str, Any]:
    """One of which every frame left, however busy the host is."""
    numbers = count(1)
    with engine() as session:
        open_ports(session, plan, *memif_cable(folder))
        reply = until(was_sent_whole, lambda: run_trial(session, trial=next(numbers), **arguments))
    validator("reply").validate(reply)
    return reply


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: f"v{plan.ip_version}")
def test_each_direction_sends_its_own_load(plan: AddressPlan, tmp_path: Path) -> None:
    parts = {"forward": 1, "reverse": 0.25}
    reply = trial(tmp_path, plan, rate_fps=20_000, duration_s=0.5, relative_rates=parts)
    forward, reverse = reply["directions"]["forward"], reply["directions"]["reverse"]
    assert (forward["intended_fps"], reverse["intended_fps"]) == (20_000, 5_000)
    assert (forward["intended_frames"], reverse["intended_frames"]) == (10_000, 2_500)
    for counts in (forward, reverse):
        assert counts["received_frames"] == counts["offered_frames"] == counts["intended_frames"]
        assert counts["duplicated_frames"] == counts["corrupted_frames"] == 0
    assert reply["intended_fps"] == 20_000
    assert reply["loss_ratio"] == 0


def test_a_direction_may_be_faster_than_the_load(tmp_path: Path) -> None:
    """One that is held while the other is searched."""
    parts = {"forward": 1, "reverse": 8}
    reply = trial(tmp_path, gateway_v6(), rate_fps=1_000, duration_s=0.5, relative_rates=parts)
    assert {name: of["intended_frames"] for name, of in reply["directions"].items()} == {
        "forward": 500,
        "reverse": 4_000,
    }
    assert {name: of["received_frames"] for name, of in reply["directions"].items()} == {
        "forward": 500,
        "reverse": 4_000,
    }


def test_delays_a_second_load_and_clean_time_are_of_each_directions_own_frames(tmp_path: Path) -> None:
    parts = {"forward": 0.5, "reverse": 1}
    then = {"rate_fps": 2_000, "duration_s": 0.25}
    changed = trial(tmp_path, gateway_v4(), rate_fps=4_000, duration_s=0.25, relative_rates=parts, then=then)
    assert changed["directions"]["forward"]["offered_frames"] == 500 + 250
    assert changed["directions"]["reverse"]["offered_frames"] == 1_000 + 500
    (tmp_path / "b").mkdir()
    delays = {"from_s": 0.25, "tagged_frames": 100}
    delayed = trial(
        tmp_path / "b", gateway_v4(), rate_fps=4_000, duration_s=0.5, relative_rates=parts, delays=delays
    )
    for name, first in (("forward", 500), ("reverse", 1_000)):
        found = delayed["directions"][name]["delays"]
        assert found["first_frame"] == first
        assert found["offered_frames"] == first
        assert len(found["tagged"]) + found["left_out_tags"] == 100
    (tmp_path / "c").mkdir()
    clean = trial(
        tmp_path / "c",
        gateway_v4(),
        rate_fps=4_000,
        duration_s=0.5,
        relative_rates=parts,
        clean={"at_most_s": 0.5},
    )
    assert clean["directions"]["forward"]["offered_frames"] == 1_000
    assert clean["directions"]["reverse"]["offered_frames"] == 2_000
