# SPDX-License-Identifier: Apache-2.0
"""A small campaign on the simulated device of tests/trial/scripted_engine.py, and what its file must hold."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from evenhand.run import CampaignRecord
from tests.cli.running import TESTBED
from tests.preloaded.commands import scripted_engine_command

OPTIONS = """
maximum-rate = "1Mfps"
duration = "1s"
final-duration = "2s"
precision = "2%"
waits = "short"
"""
DELAYS = f"""
[[suite]]
name = "delays"
procedure = ["throughput", "latency"]
hosts = [4]
repetitions = 1
inner-repetitions = 3
from = "0s"
tagged = 5
one-pair-first = false
{OPTIONS}
"""
"""A suite of latency at the throughput that it finds first."""
CAMPAIGN = """
name = "small"
testbed = "testbed.toml"
seed = 7

[[suite]]
name = "many"
hosts = [1, 4, 16]
repetitions = REPETITIONS
OPTIONS

DELAYS""".replace("DELAYS", DELAYS).replace("OPTIONS", OPTIONS)


def small(repetitions: int) -> str:
    """So many of its first three points."""
    return CAMPAIGN.replace("REPETITIONS", str(repetitions))


def write_campaign(
    folder: Path, text: str, *, part: str = "simulated-640000--512", name: str = "small.toml"
) -> Path:
    """A campaign file and its testbed, and an engine that plays this part; the environment must name it as
    EVENHAND_ENGINE."""
    (folder / "testbed.toml").write_text(TESTBED)
    engine = folder / "engine"
    engine.write_text(
        f'#!/bin/sh\nexec {shlex.join(scripted_engine_command())} "{part}" "{folder / "requests.jsonl"}"\n'
    )
    engine.chmod(0o755)
    path = folder / name
    path.write_text(text)
    return path


def essence(record: CampaignRecord) -> list[Any]:
    """All of a campaign but the times at which things were done, and the numbers of requests to the
    engine."""
    return [
        (
            point.point,
            point.state,
            point.reason,
            [
                (
                    repetition.number,
                    repetition.seed,
                    repetition.outcome,
                    repetition.value,
                    repetition.result is not None,
                    [
                        (
                            search.name,
                            search.kind,
                            search.plan,
                            search.goal,
                            search.outcome,
                            search.result,
                            [
                                (t.number, t.purpose, t.attempt, {**t.result.raw, "id": None})
                                for t in search.trials
                            ],
                        )
                        for search in repetition.searches
                    ],
                )
                for repetition in point.repetitions
            ],
        )
        for point in record.points
    ]
