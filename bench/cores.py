# SPDX-License-Identifier: Apache-2.0
"""Whether cores add up: a direction on one core and on several, as a ratio of rates.

Senders are the whole engine, each core with a stream and a transmit queue of a port that drops. Receivers are
measured before `rx_burst`, on frames that lie in memory: each core has a queue with a random share of the
direction's frames, and a part of its sequence map. One and several take turns, on each of the CPUs, since
a host may give them different shares.
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
CPUS = sorted(os.sched_getaffinity(0))
SECONDS = at_length(0.7, 0.1)
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
    """The rate of all of them together."""
    with opened(plan, "net_null0,no-rx=1", "net_null1,no-rx=1", workers(cpus)) as session:
        return float(trial(session, BEYOND_REACH_FPS, SECONDS)["directions"]["forward"]["offered_fps"])


def receiver_fps(plan: AddressPlan, cpus: list[int]) -> float:
    """The rate of all of them together: each core's least time, in which other programs had the smallest
    share."""
    command = [str(RECEIVERS), str(plan.ip_version), str(plan.smallest_frame_size), str(RECEIVER_ROUNDS)]
    done = subprocess.run(
        [*command, *map(str, cpus)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    return float(sum(1e9 / json.loads(line)["all"]["least"] for line in done.stdout.splitlines()))


def main() -> None:
    if len(CPUS) < 2:
        raise SystemExit("cores: this machine has one CPU")
    rows: dict[str, Any] = {}
    for name, measure in (("senders", sender_fps), ("receivers", receiver_fps)):
        for version, plan in PLANS.items():
            alone: dict[int, list[float]] = {cpu: [] for cpu in CPUS}
            together: list[float] = []
            for _ in range(ROUNDS):
                for cpu in CPUS:
                    alone[cpu].append(measure(plan, [cpu]))
                together.append(measure(plan, CPUS))
            shares = [
                both / sum(each) for both, *each in zip(together, *alone.values(), strict=True)
            ]  # of neighbours in time
            row = f"{name}, {version}"
            rows[row] = {
                "alone_fps": {str(cpu): spread(values) for cpu, values in alone.items()},
                "together_fps": spread(together),
                "share_of_k": {
                    **spread(shares),
                    "of_best": max(together) / sum(max(values) for values in alone.values()),
                },
            }
            found = rows[row]["share_of_k"]
            one = statistics.median([value for values in alone.values() for value in values])
            print(
                f"{row:16} one core {one / 1e6:6.1f} Mfps, {len(CPUS)} cores"
                f" {statistics.median(together) / 1e6:6.1f} Mfps: {found['median']:.3f} of {len(CPUS)}"
                f" ({found['min']:.3f} .. {found['max']:.3f}; of the best {found['of_best']:.3f})",
                flush=True,
            )
    figures = {
        f"{row}, share of {len(CPUS)} times one": found["share_of_k"]["median"] for row, found in rows.items()
    }
    record("cores", {"cpus": CPUS, "rows": rows}, figures)


if __name__ == "__main__":
    main()
