# SPDX-License-Identifier: Apache-2.0
"""Whether cores add up: a direction on one core and on 2, 4, 8, ... and all of them, as a ratio of rates.

Senders are the whole engine, each core with a stream and a transmit queue of a port that drops. Receivers are
measured before `rx_burst`, on frames that lie in memory: each core has a queue with a random share of the
direction's frames, and a part of its sequence map. One and several take turns, on each of the CPUs, since
a host may give them different shares. EVENHAND_BENCH_CPUS=0,2,4 names the CPUs, such as one of each core.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from typing import Any

from pieces import at_length, opened, record, spread, trial

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.trial.engine_process import find_engine

RECEIVERS = find_engine().parent / "bench" / "evenhand-bench-receiver-cores"
CPUS = [int(cpu) for cpu in os.environ.get("EVENHAND_BENCH_CPUS", "").split(",") if cpu] or sorted(
    os.sched_getaffinity(0)
)
MOST_STREAMS = 128
"""The most streams of a direction: as many cores can send it."""
SECONDS = at_length(0.7, 0.1)
ATTEMPTS = 5
ROUNDS = at_length(9, 1)
BEYOND_REACH_FPS = 8e8
RECEIVER_ROUNDS = at_length(4000, 50)
"""Rounds of 1,024 frames for each core."""
PLANS = {"IPv4": gateway_v4(), "IPv6": gateway_v6()}


def workers(cpus: list[int]) -> list[dict[str, Any]]:
    """Each sends a stream of the forward direction. The first polls what nothing comes to."""
    found: list[dict[str, Any]] = [
        {"cpu": cpu, "senders": [{"side": "left", "stream": stream}], "receivers": []}
        for stream, cpu in enumerate(cpus)
    ]
    found[0]["senders"].append({"side": "right", "stream": 0})
    found[0]["receivers"] = [{"side": side, "queue": 0} for side in ("left", "right")]
    return found


def sender_fps(plan: AddressPlan, cpus: list[int]) -> float:
    """The rate of all of them together. A trial for which other programs left no CPU is made again."""
    with opened(plan, "net_null0,no-rx=1", "net_null1,no-rx=1", workers(cpus)) as session:
        for number in range(1, ATTEMPTS + 1):
            document = trial(session, BEYOND_REACH_FPS, SECONDS, number=number)
            if offered_fps := float(document["directions"]["forward"]["offered_fps"]):
                return offered_fps
    raise SystemExit(f"cores: in {ATTEMPTS} trials of {SECONDS:g} s, CPUs {cpus} sent nothing ({plan.name})")


def receiver_fps(plan: AddressPlan, cpus: list[int]) -> float:
    """The rate of all of them together: each core's least time, in which other programs had the smallest
    share."""
    command = [str(RECEIVERS), str(plan.ip_version), str(plan.smallest_frame_size), str(RECEIVER_ROUNDS)]
    done = subprocess.run(
        [*command, *map(str, cpus)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    return float(sum(1e9 / json.loads(line)["all"]["least"] for line in done.stdout.splitlines()))


def core_counts(cpus: int) -> list[int]:
    """2, 4, 8, ..., and all of them."""
    found = [2**n for n in range(1, cpus.bit_length()) if 2**n < cpus]
    return [*found, cpus]


def main() -> None:
    if len(CPUS) < 2:
        raise SystemExit("cores: this machine has one CPU")
    counts = core_counts(min(len(CPUS), MOST_STREAMS))
    cpus = CPUS[: counts[-1]]
    rows: dict[str, Any] = {}
    for name, measure in (("senders", sender_fps), ("receivers", receiver_fps)):
        for version, plan in PLANS.items():
            alone: dict[int, list[float]] = {cpu: [] for cpu in cpus}
            together: dict[int, list[float]] = {count: [] for count in counts}
            for _ in range(ROUNDS):
                for cpu in cpus:
                    alone[cpu].append(measure(plan, [cpu]))
                for count in counts:
                    together[count].append(measure(plan, cpus[:count]))
            one = statistics.median([value for values in alone.values() for value in values])
            for count in counts:
                row = f"{name}, {version}, {count} cores"
                rows[row] = of_cores(together[count], {cpu: alone[cpu] for cpu in cpus[:count]})
                found = rows[row]["share"]
                print(
                    f"{row:24} one core {one / 1e6:6.1f} Mfps, {count} cores"
                    f" {statistics.median(together[count]) / 1e6:6.1f} Mfps: {found['median']:.3f} of {count}"
                    f" ({found['min']:.3f} .. {found['max']:.3f}; of the best {found['of_best']:.3f})",
                    flush=True,
                )
    figures = {f"{row}, share of as many times one": found["share"]["median"] for row, found in rows.items()}
    record("cores", {"cpus": cpus, "rows": rows}, figures)


def of_cores(together: list[float], alone: dict[int, list[float]]) -> dict[str, Any]:
    """The rates, and which share of the cores' own rates, measured right before it, they have together."""
    shares = [both / sum(each) for both, *each in zip(together, *alone.values(), strict=True)]
    of_best = max(together) / sum(max(values) for values in alone.values())
    return {
        "alone_fps": {str(cpu): spread(values) for cpu, values in alone.items()},
        "together_fps": spread(together),
        "share": {**spread(shares), "of_best": of_best},
    }


if __name__ == "__main__":
    main()
