# SPDX-License-Identifier: Apache-2.0
"""Takes a CPU away for 20 to 150 ms at random times, as a busy host does. Needs root, for SCHED_FIFO.

    python tests/stall.py CPU SECONDS MEAN_GAP_MS [SEED]

`pytest --stall-cpu CPU` runs it beside the tests.
"""

from __future__ import annotations

import os
import random
import sys
import time

SHORTEST_S = 0.02
LONGEST_S = 0.15
PRIORITY = 80


def stall(cpu: int, seconds: float, mean_gap_ms: float, seed: int = 1) -> int:
    """Stall `cpu` again and again for so long; how often it was."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    draw = random.Random(seed)
    end = time.monotonic() + seconds
    stalls = 0
    while time.monotonic() < end:
        time.sleep(mean_gap_ms / 1e3 * (0.5 + draw.random()))
        until = time.monotonic() + draw.uniform(SHORTEST_S, LONGEST_S)
        while time.monotonic() < until:
            pass
        stalls += 1
    return stalls


if __name__ == "__main__":
    numbers = sys.argv[1:]
    print(stall(int(numbers[0]), float(numbers[1]), float(numbers[2]), *map(int, numbers[3:])), "stalls")
