# SPDX-License-Identifier: Apache-2.0
"""A DUT whose CPU its host takes away for 20 to 150 ms, now and then: no loss that this explains is charged
to it, and every other is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evenhand.lab import LinuxLab, linux_lab
from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import EngineSession, find_engine
from tests.wire.wire_session import FAST_WAITS, PATIENT, Document, dut_of, engine, open_to_dut, run_trial

pytestmark = [pytest.mark.wire, pytest.mark.root, pytest.mark.slow]
BOTH = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
LOAD_FPS = 5_000
"""The DUT's ring of 256 frames holds 51.2 ms of it."""
TRIALS = int(os.environ.get("EVENHAND_STALLED_TRIALS", "50"))
"""How many for each IP version and each seed."""
STALLS = """
import os, random, sys, time
cpu, gap_s, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
draw = random.Random(seed)
print("ready", flush=True)
while os.getppid() > 1:
    time.sleep(gap_s * (0.5 + draw.random()))
    until = time.monotonic() + 0.02 + 0.13 * draw.random()
    while time.monotonic() < until:
        pass
"""


@contextmanager
def stalls(cpu: int, gap_s: float, seed: int) -> Iterator[None]:
    """A program of a higher priority than anything else takes the CPU for 20 to 150 ms, and leaves it for
    half to one and a half gaps."""
    with subprocess.Popen(
        [sys.executable, "-c", STALLS, str(cpu), str(gap_s), str(seed)], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == b"ready\n"
            yield
        finally:
            program.kill()


@contextmanager
def opened_lab(plan: AddressPlan) -> Iterator[tuple[LinuxLab, EngineSession]]:
    with linux_lab(plan, name="stalltest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), seed=42, dut=dut_of(lab))
        yield lab, session


def trials(session: EngineSession, count: int) -> Iterator[Document]:
    # A frame that waits for a CPU comes, however late.
    waits = {**FAST_WAITS, "residual_s": 0.5}
    for number in range(1, count + 1):
        yield run_trial(session, trial=number, rate_fps=LOAD_FPS, duration_s=1, waits=waits, limits=PATIENT)


def shown(document: Document) -> str:
    directions = {
        name: (d["received_frames"], d["away_frames"], d["first_lost"][:5])
        for name, d in document["directions"].items()
    }
    return (
        f"{document['verdict']} {directions} {document['host'].get('dut')}"
        f" {[r['text'] for r in document['reasons']]}"
    )


@BOTH
@pytest.mark.parametrize(("gap_s", "seed"), [(0.4, 11), (1.0, 12), (2.0, 13)])
def test_no_trial_beside_stalls_is_charged_to_a_dut_that_forwards_all(
    plan: AddressPlan, gap_s: float, seed: int
) -> None:
    """A ring that was nearly full, absences that follow each other: what they cost is not the DUT's."""
    with opened_lab(plan) as (lab, session), stalls(lab.dut_cpu, gap_s, seed):
        documents = list(trials(session, TRIALS))
    verdicts = Counter(document["verdict"] for document in documents)
    print(f"{plan.name}, a stall each {gap_s} s, seed {seed}: {dict(verdicts)}")
    assert [shown(document) for document in documents if document["verdict"] == "FAIL"] == []


@BOTH
def test_a_dut_that_loses_is_charged_in_every_trial_that_no_stall_touched(plan: AddressPlan) -> None:
    """Its shaper passes four fifths of the load, whatever the host does."""
    with opened_lab(plan) as (lab, session):
        bit_per_s = round(0.8 * LOAD_FPS * (plan.smallest_frame_size - 4) * 8)
        for side in SIDES:
            shaper = (
                f"qdisc add dev {lab.dut_interface(side)} root tbf rate {bit_per_s}bit burst 2000 limit 2000"
            )
            subprocess.run(["tc", "-n", lab.dut_namespace, *shaper.split()], check=True)
        with stalls(lab.dut_cpu, 1.0, 14):
            documents = list(trials(session, TRIALS))
    verdicts = Counter(document["verdict"] for document in documents)
    print(f"{plan.name}, a fifth of the load dropped: {dict(verdicts)}")
    untouched = [d for d in documents if not any(way["away_frames"] for way in d["directions"].values())]
    assert untouched
    assert verdicts["PASS"] == 0
    # What left overdue may explain as many: the tester's own lapse, and no matter of the witness.
    uncharged = [
        d
        for d in untouched
        if d["verdict"] != "FAIL"
        and all(w["overdue_frames"] < w["lost_frames"] for w in d["directions"].values())
    ]
    assert [shown(document) for document in uncharged] == []
