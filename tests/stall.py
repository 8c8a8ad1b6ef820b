# SPDX-License-Identifier: Apache-2.0
"""Takes CPUs away at random times, as a busy host does. Needs root, for SCHED_FIFO.

    python tests/stall.py CPUS SECONDS MEAN_GAP_MS [SEED [SHORTEST_MS LONGEST_MS]]

CPUS is one CPU, or several as `0,1`: each stall takes one of them. `pytest --stall-cpu CPU` runs it beside
the tests.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence

SHORTEST_MS = 20.0
LONGEST_MS = 150.0
PRIORITY = 80


def stall(
    cpus: Sequence[int],
    seconds: float,
    mean_gap_ms: float,
    seed: int = 1,
    shortest_ms: float = SHORTEST_MS,
    longest_ms: float = LONGEST_MS,
) -> int:
    """Stall one of `cpus` again and again for so long; how often it was. Gaps are half to one and a half of
    their mean."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    draw = random.Random(seed)
    end = time.monotonic() + seconds
    stalls = 0
    while time.monotonic() < end:
        os.sched_setaffinity(0, {draw.choice(cpus)})
        time.sleep(mean_gap_ms / 1e3 * (0.5 + draw.random()))
        until = time.monotonic() + draw.uniform(shortest_ms, longest_ms) / 1e3
        while time.monotonic() < until:
            pass
        stalls += 1
    return stalls


if __name__ == "__main__":
    cpus, seconds, gap_ms, *more = sys.argv[1:]
    seed = [int(more[0])] if more else []
    bounds_ms = map(float, more[1:])
    print(
        stall([int(cpu) for cpu in cpus.split(",")], float(seconds), float(gap_ms), *seed, *bounds_ms),
        "stalls",
    )
