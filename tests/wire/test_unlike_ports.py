# SPDX-License-Identifier: Apache-2.0
"""Ports of unlike speed: an overload of the slower line is sent and named, over IPv4 and IPv6; what both
lines carry is no overload. The lines are those of the testbed; a modelled router forwards as much as the
slower one carries."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.predict import DeviceModel
from evenhand.procedure import Conditions, OpenTestbed
from evenhand.procedure.single_trial import SingleTrial
from evenhand.reference import ReferenceDut
from evenhand.report.trial import trial_report
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession, Limits, Verdict, Waits
from tests.errors import raises
from tests.report.test_throughput import shown
from tests.trial.test_contract_golden import validator
from tests.wire.wire_session import (
    FAST_WAITS,
    NOBODY,
    PATIENT,
    engine,
    memif_cable,
    one_worker,
    router_beside_tester,
    run_trial,
    setup_beside_tester,
    until,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
LINES = {"left": 1e9, "right": 1e7}
"""In bit/s: 14,880 frames of 64 octets on the right."""


def open_unlike(session: EngineSession, plan: AddressPlan, folder: Path) -> None:
    ports = {
        side: {"device": device, "dut_mac": mac, "line_rate_bps": LINES[side]}
        for side, device, mac in zip(SIDES, memif_cable(folder), NOBODY, strict=True)
    }
    workers, size = one_worker(), plan.smallest_frame_size
    session.request(
        "open",
        host={"memory_mb": needed_memory_mb(workers, ports, size)},
        ports=ports,
        workers=workers,
        plan=plan.to_request(),
        frame_size=size,
        seed=1,
    )
    session.request("resolve", timeout_s=5)


BOTH = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: f"v{plan.ip_version}")


@BOTH
def test_more_than_the_receiving_line_carries_is_sent_and_named(plan: AddressPlan, tmp_path: Path) -> None:
    """Here a cable is the device, which carries it: then the line rate that is stated is wrong, and the note
    says that."""
    numbers = count(1)
    line_fps = 14_880 if plan.ip_version == 4 else 12_019
    with engine() as session:
        open_unlike(session, plan, tmp_path)

        def trial(rate_fps: float, **others: Any) -> dict[str, Any]:
            arguments = {"duration_s": 0.5, "rate_fps": rate_fps} | others
            reply = until(was_sent_whole, lambda: run_trial(session, trial=next(numbers), **arguments))
            validator("reply").validate(reply)
            return reply

        reply = trial(2.5 * line_fps, directions=["forward"])
        overload = reply["directions"]["forward"]["line_overload"]
        assert overload["line_bps"] == LINES["right"]
        assert overload["needed_bps"] == pytest.approx(2.5 * LINES["right"], rel=1e-3)
        (said,) = (note["text"] for note in reply["notes"] if note["code"] == "line_overload")
        assert said.startswith("forward: 25 Mbit/s were offered to a link of 10 Mbit/s")
        assert "its line rate is not as stated" in said
        both = trial(2 * line_fps, relative_rates={"forward": 1, "reverse": 0.25})
        assert "line_overload" in both["directions"]["forward"]
        assert "line_overload" not in both["directions"]["reverse"]
        within = trial(line_fps)
        assert not any(note["code"] == "line_overload" for note in within["notes"])
        with raises("engine.bad-rate"):
            trial(line_fps + 1, directions=["reverse"])


@pytest.mark.two_cpus
@BOTH
def test_a_failed_trial_names_the_link_that_explains_it(plan: AddressPlan) -> None:
    """The right line is said to carry 5,000 frames a second, of which the router forwards less; twice as many
    are 100 % of the left line."""
    size = plan.smallest_frame_size
    lines = {"left": 10_000 * 8.0 * (size + 20), "right": 5_000 * 8.0 * (size + 20)}
    model = DeviceModel(elements=1, rate_fps=4_000, queue_frames=64)
    with router_beside_tester(plan, ReferenceDut(model=model)) as router:
        setup = setup_beside_tester(router)
        ports: dict[str, Any] = {
            side: port.model_copy(update={"line_rate": lines[side]})
            for side, port in setup.testbed.ports.items()
        }
        unlike = replace(setup, testbed=setup.testbed.model_copy(update=ports))
        bed = OpenTestbed(setup=unlike)
        asked = Conditions(plan=plan, frame_size=size, directions=("forward",), waits=Waits(**FAST_WAITS))
        rate_fps = bed.rate_fps("100%", plan=plan, frame_size=size, directions=("forward",))
        assert rate_fps == 10_000

        def measured() -> SingleTrial:
            limits = replace(Limits(), **PATIENT)
            conditions: Conditions = {**asked, "limits": limits}
            return bed.trial(rate_fps=rate_fps, duration_s=0.5, **conditions)

        found = until(lambda found: found.trial.verdict is Verdict.FAIL, measured)
    codes = [reason.code for reason in found.trial.reasons]
    assert codes[:2] == ["loss", "line_overload"]
    # A busy host may have offered a little less than was intended.
    assert re.search(
        r"in the long run at least (49(\.\d)?|50) % of the frames are lost", found.trial.reasons[1].text
    )
    told = shown(trial_report(found.trial, found.profile))
    assert "100 % of left's line rate" in told
    assert "Line rates: " in told
