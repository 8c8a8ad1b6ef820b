# SPDX-License-Identifier: Apache-2.0
"""Two engines on a stateless translator: the reference router as one, with a port pair for each. Each frame
is held against the addresses that its number in the whole trial must have."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import OpenTestbed
from evenhand.reference import ReferenceDut
from evenhand.run import PointState, read_record
from evenhand.trial import TrialResult, Verdict
from tests.plan.routed import PREFIXES
from tests.preloaded.commands import evenhand_command
from tests.wire.several_engines import engine_table, router_of_pairs, setup_of
from tests.wire.test_connections import PATIENT, WAITS, counted, running_router
from tests.wire.wire_session import Document, proved, thorough

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
FRAMES = 2000
TRIED_WAY = 2 * 2 * 2
"""Frames with which two engines try the way through the DUT, two in each direction."""
UNHARMED = {"no_checksum": 0, "traffic_class": 0, "address_or_port": 0}
CAMPAIGN = """
name = "pairs"
testbed = "reference-router.toml"

[[suite]]
name = "PLAN"
plan = "PLAN"
hosts = [50]
repetitions = 1
one-pair-first = false
maximum-rate = "2kfps"
duration = "300ms"
final-duration = "300ms"
precision = "50%"
waits = "short"
overdue-tolerance = "99%"
longest-overdue = "10s"
offered-tolerance = "10%"
patience = 30
"""


def trial_of_both(name: str, dut: ReferenceDut) -> tuple[TrialResult, Document]:
    """A trial that this machine did not spoil, and what the router counted in it."""
    plan = make_plan(name)
    with router_of_pairs(plan, dut) as router:
        setup = setup_of([engine_table(router, number, pair=number) for number in range(2)])
        return counted(
            router,
            "translation",
            lambda: (
                OpenTestbed(setup=setup)
                .trial(plan=plan, rate_fps=2 * FRAMES, duration_s=0.5, waits=WAITS, limits=PATIENT)
                .trial
            ),
        )


@pytest.mark.parametrize(
    "name",
    [
        "siit",
        *thorough("siit-eam"),
        *proved("siit-eam@2001:db8::/64", *(f"siit@{prefix}" for prefix in PREFIXES)),
    ],
)
def test_every_frame_comes_back_to_its_engine_with_its_own_addresses(name: str) -> None:
    """R2544-07, R8219-01, R8219-08: IPv6 to IPv4 and back, on both pairs."""
    trial, counters = trial_of_both(name, ReferenceDut())
    assert trial.verdict is Verdict.PASS
    assert (counters["translated_frames"], counters["refused_frames"]) == (2 * FRAMES + TRIED_WAY, 0)
    for direction in trial.raw["directions"].values():
        assert direction["received_frames"] == FRAMES
        assert direction["mistranslated_frames"] == UNHARMED
    assert [each["engine"] for each in trial.raw["engines"]] == ["a", "b"]
    for each in trial.raw["engines"]:
        for direction in each["directions"].values():
            assert (direction["received_frames"], direction["strayed_frames"]) == (FRAMES // 2, 0)
            assert direction["mistranslated_frames"] == UNHARMED


@pytest.mark.parametrize("name", [*thorough("siit@2001:db8::/40"), *proved("siit", "siit-eam")])
def test_each_defect_of_a_translator_is_counted_to_the_frame_over_both_engines(name: str) -> None:
    """RFC 7915: a frame with the address of another host of the plan would pass every other check."""
    defects = {"wrong_address_every": 99, "traffic_class_every": 100, "no_checksum_every": 101}
    trial, made = trial_of_both(name, ReferenceDut(translation_defects=defects))
    found = [d["mistranslated_frames"] for d in trial.raw["directions"].values()]
    of_each = [
        d["mistranslated_frames"] for each in trial.raw["engines"] for d in each["directions"].values()
    ]
    for key, kind in (("address_or_port", "wrong_address"), ("traffic_class",) * 2, ("no_checksum",) * 2):
        assert sum(d[key] for d in found) == sum(d[key] for d in of_each) == made[f"{kind}_frames"] > 0, key
    assert trial.verdict is Verdict.FAIL
    assert trial.lost_frames == sum(sum(d.values()) for d in found)
    assert {note.code for note in trial.notes} >= {"mistranslated"}


@pytest.mark.thorough
@pytest.mark.parametrize("plan", ["siit-eam", *proved("siit")])
def test_a_campaign_has_points_of_a_translator_with_two_port_pairs(plan: str, tmp_path: Path) -> None:
    """SEED-23: with the testbed file that `evenhand router --pairs 2` writes."""
    (tmp_path / "pairs.toml").write_text(CAMPAIGN.replace("PLAN", plan))
    with running_router(["router", plan, "--hosts", "50", "--pairs", "2"], tmp_path):
        ended = subprocess.run(
            [*evenhand_command(), "run", "pairs.toml", "--run", "pairs.evenhand", "--no-html"],
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ended.returncode in (0, 1), ended.stderr
    (point,) = read_record(tmp_path / "pairs.evenhand").points
    if point.state is PointState.NO_NUMBER:
        pytest.skip("the host left no valid trial")
    assert point.values
    [search, *_] = point.repetitions[0].searches
    valid = [trial.result for trial in search.trials if trial.result.is_valid]
    assert {len(result.raw["engines"]) for result in valid} == {2}
