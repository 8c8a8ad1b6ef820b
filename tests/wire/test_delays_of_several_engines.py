# SPDX-License-Identifier: Apache-2.0
"""Delays that several real engines have measured together: one sample of all frames, each delay by its own
engine's clock. R8219-07, R8219-12, R8219-13, R8219-16, R2544-24."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import DelayGoal, DelayTest, OpenTestbed
from evenhand.reference import Defects, ReferenceDut
from evenhand.trial import DelayWish, EngineGroup, EngineMeasurer, Limits, Waits
from tests.wire.several_engines import (
    engine_table,
    group_of,
    open_group,
    router_of_pairs,
    setup_of,
    setup_of_one,
)
from tests.wire.wire_session import FAST_WAITS, MOST_ATTEMPTS, PATIENT, Document, memif_cable, until

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
SCHEMA = json.loads((Path(__file__).parents[2] / "contract" / "reply.schema.json").read_text())
WAITS = Waits(**FAST_WAITS)
LIMITS = Limits(**{**PATIENT, "overdue_after_us": 1e9})
"""No delay is left out, wherever this machine made frames late."""
RATE_FPS = 2000.0
FRAMES = 2000


@contextmanager
def on_cables(folder: Path, engines: int, plan: AddressPlan) -> Iterator[EngineGroup]:
    """Each engine with its two ports joined to each other."""
    cables = []
    for number in range(engines):
        (folder / str(number)).mkdir()
        cables.append(memif_cable(folder / str(number)))
    with group_of(engines) as group:
        open_group(group, plan, cables)
        yield group


def measured(group: EngineGroup, wish: DelayWish) -> Document:
    """A trial in which each frame left and came."""
    measurer = EngineMeasurer(session=group, waits=WAITS, limits=LIMITS, delays=wish)

    def trial() -> Document:
        return dict(measurer.measure(1.0, RATE_FPS).raw)

    return until(
        lambda document: all(d["received_frames"] == FRAMES for d in document["directions"].values()), trial
    )


@pytest.mark.thorough
@PLANS
def test_every_frame_of_every_engine_is_in_the_sample_and_tags_are_of_all_engines(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """R8219-07: as many tags as with one engine, after the same time; R8219-13: a difference is of frames
    that followed each other on one link."""
    wish = DelayWish(from_s=0.2, tagged_frames=500, has_variation=True)
    first, counted = 400, 1600
    found = {}
    for engines in (1, 2, 3):
        folder = tmp_path / f"of-{engines}"
        folder.mkdir()
        with on_cables(folder, engines, plan) as group:
            found[engines] = measured(group, wish)
    for engines, document in found.items():
        assert document["verdict"] == "PASS"
        jsonschema.validate({**document, "response": "judge"}, SCHEMA)
        for direction in document["directions"].values():
            delays, latency = direction["delays"], direction["latency"]
            assert (delays["first_frame"], delays["offered_frames"], delays["lost_frames"]) == (
                first,
                counted,
                0,
            )
            assert latency["count"] == counted
            assert delays["min_ns"] == latency["min_ns"]
            assert delays["min_ns"] <= delays["p50_ns"] <= delays["p99_ns"] <= delays["p999_ns"]
            assert delays["p999_ns"] <= latency["max_ns"]
            assert abs(delays["pdv_ns"] - (delays["p999_ns"] - delays["min_ns"])) <= 1
            assert delays["pdv_resolution_ns"] <= 3 + 1.01e-3 * latency["max_ns"]
            variation = delays["variation"]
            assert (variation["pairs"], variation["unseen_pairs"]) == (counted - engines, 0)
            assert variation["min_ns"] < 0 < variation["max_ns"]
            sequences = [sequence for sequence, _ in delays["tagged"]]
            assert sequences == sorted(set(sequences))
            assert len(sequences) == 500
            assert first <= sequences[0]
            assert sequences[-1] < FRAMES
            for engine in range(engines):
                of_engine = sum(sequence % engines == engine for sequence in sequences)
                assert abs(of_engine - 500 / engines) < 1, "as many of each engine"
            assert all(latency["min_ns"] <= delay <= latency["max_ns"] for _, delay in delays["tagged"])


@pytest.mark.thorough
def test_a_single_tag_is_of_another_engine_in_each_trial(tmp_path: Path) -> None:
    """R2544-24: one tagged frame a trial, and its repetitions are of all port pairs."""
    with on_cables(tmp_path, 2, gateway_v4()) as group:
        measurer = EngineMeasurer(
            session=group, waits=WAITS, limits=LIMITS, delays=DelayWish(from_s=0.1, tagged_frames=1)
        )
        tags = []
        for _ in range(4):
            result = measurer.measure(0.2, RATE_FPS).raw
            tags.append(
                [sequence for d in result["directions"].values() for sequence, _ in d["delays"]["tagged"]]
            )
    assert all(len(of_trial) == 2 for of_trial in tags)
    assert all(200 <= sequence <= 201 for of_trial in tags for sequence in of_trial)
    assert [of_trial[0] % 2 for of_trial in tags] in ([0, 1, 0, 1], [1, 0, 1, 0])


@pytest.mark.thorough
@pytest.mark.usefixtures("_router")
@PLANS
def test_two_port_pairs_with_other_delays_are_one_distribution(plan: AddressPlan) -> None:
    """R8219-12: the variation over all frames is what the slower pair is slower by; R8219-13: no difference
    is of two pairs."""
    slower_us = 40_000.0
    slow = ReferenceDut(extra_delay_us=slower_us)
    with router_of_pairs(plan, ReferenceDut(), 1) as fast_one, router_of_pairs(plan, slow, 1) as slow_one:
        setup = setup_of([engine_table(fast_one, 0), engine_table(slow_one, 1)])
        goal = DelayGoal(
            test=DelayTest.PDV, rate_fps=RATE_FPS, duration_s=1.0, repetitions=1, has_variation=True
        )

        def direction_of(document: Document) -> list[Document]:
            return list(document["directions"].values())

        def trial() -> Document:
            found = OpenTestbed(setup=setup).delay(goal=goal, plan=plan, waits=WAITS, limits=LIMITS)
            assert found.own_loop.unknown is not None
            return dict(found.trials[-1].raw)

        def is_quiet(document: Document) -> bool:
            # A host that takes CPUs away makes delays longer.
            return document["verdict"] == "PASS" and all(
                d["delays"]["p50_ns"] < slower_us * 1e3 / 2
                and d["delays"]["variation"]["max_ns"] < slower_us * 1e3 / 2
                for d in direction_of(document)
            )

        document = until(is_quiet, trial)
    for direction in direction_of(document):
        delays = direction["delays"]
        assert delays["min_ns"] < slower_us * 1e3 < delays["p999_ns"]
        assert delays["pdv_ns"] > slower_us * 1e3 / 2
        assert delays["variation"]["pairs"] == FRAMES - 2


@pytest.mark.thorough
@pytest.mark.usefixtures("_router")
def test_a_lost_tag_is_infinite_whichever_engine_sent_it() -> None:
    """R8219-16, by the figures of the procedure: the worst case of 500 tags with lost ones is infinite."""
    plan = gateway_v4()
    lossy = ReferenceDut(defects=Defects(ratios={"loss": 0.05}))
    goal = DelayGoal(
        test=DelayTest.LATENCY,
        rate_fps=RATE_FPS,
        duration_s=1.0,
        from_s=0.1,
        repetitions=1,
        invalid_retries=MOST_ATTEMPTS,
        patience=MOST_ATTEMPTS,
    )

    def of(found: Any) -> tuple[int, bool, bool]:
        summary = found.summary()["figures"]["forward"]
        return (
            summary["typical"]["count"],
            summary["typical"]["median_ns"] is None,
            summary["worst_case"]["median_ns"] is None,
        )

    with router_of_pairs(plan, ReferenceDut(), 1) as sound, router_of_pairs(plan, lossy, 1) as lossy_one:
        two = OpenTestbed(setup=setup_of([engine_table(sound, 0), engine_table(lossy_one, 1)])).delay(
            goal=goal, plan=plan, waits=WAITS, limits=LIMITS
        )
        one = OpenTestbed(setup=setup_of_one(lossy_one)).delay(
            goal=goal, plan=plan, waits=WAITS, limits=LIMITS, has_own_loop=False
        )
    assert of(two) == of(one) == (1, False, True)
    for found in (one, two):
        (trial,) = found.valid
        for direction in trial.directions.values():
            assert direction.delays is not None
            assert len(direction.delays.tagged_ns) + direction.delays.left_out_tags == 500
