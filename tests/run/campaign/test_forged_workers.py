# SPDX-License-Identifier: Apache-2.0
"""Workers that answer with what was not ordered, or is no result: it does not get into the campaign's file,
and the run goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.cli.running import TESTBED
from tests.run.campaign.dask_processes import cluster
from tests.run.campaign.small_campaign import write_campaign
from tests.run.campaign.test_scheduled import campaign, write

pytest.importorskip("distributed")
WORKER = """
import math, sys
from dataclasses import replace
import evenhand.run.campaign.worker as worker
from evenhand.cli.main import main

honest = worker.measure_here

def measure_here(order, task, topic):
    answer = honest(order, task, topic)
    point = answer.point
    first = point.repetitions[0]
    search = first.searches[-1]
    def trials(**change):
        trial = search.trials[-1]
        result = replace(trial.result, raw={**trial.result.raw, **change})
        forged = replace(search, trials=(replace(trial, result=result),))
        return replace(point, repetitions=(replace(first, searches=(forged,)),))
    def of(repetition):
        return replace(point, repetitions=(repetition,))
    hosts = order.point.hosts[0]
CASES    return answer

worker.measure_here = measure_here
sys.exit(main(sys.argv[1:]))
"""
FORGERIES = (
    (
        "replace(answer, point=replace(point, point=replace(point.point, key='x')))",
        "it belongs to another point",
    ),
    (
        "replace(answer, point=replace(point, repetitions=(first, first)))",
        "it has the repetitions 1, 1, but 1 were ordered",
    ),
    (
        "replace(answer, point=replace(point, repetitions=(replace(first, number=7),)))",
        "it has the repetitions 7, but 1 were ordered",
    ),
    ("replace(answer, point=of(replace(first, value=math.inf)))", "inf is not a finite number"),
    ("replace(answer, point=of(replace(first, measured_s='long')))", "'long' is not a finite number"),
    ("replace(answer, point=trials(verdict='PASS', contract=99))", "violates the contract"),
    ("replace(answer, point=replace(point, facts={'x': object()}))", "it does not have the form of a result"),
    ("'<script>'", "it belongs to another point"),
)
"""For the points with 2, 3, ... hosts: what the worker answers instead, and what is said."""


@pytest.mark.thorough
def test_what_was_not_ordered_or_is_no_result_is_not_stored(tmp_path: Path) -> None:
    """D11. What the same worker measured besides is."""
    with cluster(tmp_path) as running:
        write_campaign(tmp_path, "", part="simulated-640000--512")
        (tmp_path / "lab.toml").write_text(TESTBED)
        cases = "".join(
            f"    if hosts == {hosts}:\n        return {forgery}\n"
            for hosts, (forgery, _) in enumerate(FORGERIES, start=2)
        )
        arguments = [
            "worker",
            running.address,
            "lab.toml",
            "--name",
            "forger",
            "--engine",
            str(tmp_path / "engine"),
        ]
        with (tmp_path / "forger.log").open("wb") as stream:
            running.workers["forger"] = subprocess.Popen(
                [sys.executable, "-c", WORKER.replace("CASES", cases), *arguments],
                cwd=tmp_path,
                env=dict(running.environment),
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        running.wait_for("forger")
        every = [1, *range(2, 2 + len(FORGERIES))]
        write(running, "forged", campaign(hosts=str(every)))
        ended = running.run(
            "run", "forged.toml", "--scheduler", running.address, "--run", "forged.evenhand", "--no-html"
        )
    assert ended.returncode == 1, ended.stderr
    assert "bug" not in ended.stderr
    honest, *forged = sorted(
        read_record(tmp_path / "forged.evenhand").points, key=lambda found: found.point.hosts or (0, 0)
    )
    assert honest.state is PointState.MEASURED
    for found, (forgery, said) in zip(forged, FORGERIES, strict=True):
        assert (found.state, found.repetitions) == (PointState.NO_NUMBER, ()), forgery
        assert str(found.reason).startswith("what a worker sent is not a result of this point: "), forgery
        assert said in str(found.reason), forgery
