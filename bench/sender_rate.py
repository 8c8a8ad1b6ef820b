# SPDX-License-Identifier: Apache-2.0
"""How fast one core builds and sends: all four fields drawn, both checksums, sequence and time, into a port
that drops.

Beside it dpdk-testpmd txonly, whose frames are all alike, and siitperf-tp, if EVENHAND_SIITPERF names a
program that takes its arguments and runs it. Its siitperf.conf, beside the program, must have it send IPv4
frames forward from CPU 1, all four fields pseudorandom, into a port of `net_null`; it can do that only if it
was built to take other devices, and rates above its 14,880,952 fps. EVENHAND_SIITPERF_STATEFUL names one
whose file also has Stateful 1, Enumerate-ips 3 and Enumerate-ports 3: its initiator is beside our sender of
new connections, whose four tuples are as unique. All are measured in turn, several times, and compared as
ratios. Then the parts of the sender loop alone, which tell where the time goes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pieces import at_length, opened, record, spread, started, trial, txonly_fps

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers
from evenhand.trial.engine_process import find_engine

PARTS = find_engine().parent / "bench" / "evenhand-bench-sender-parts"
DEVICE = "net_null0,no-rx=1"
CPU = 1
SECONDS = at_length(0.7, 0.1)
ROUNDS = at_length(9, 1)
"""Many short rounds: what other programs take from the CPU then falls into some of them only."""
PARTS_ROUNDS = at_length(2000, 20)
"""Rounds of 0.3 ms for each part."""
NEW_CONNECTION_ROUNDS = at_length(200, 5)
BEYOND_REACH_FPS = 4e8
"""More than any core builds, so that the sender always has a full burst due."""
SIITPERF_FRAMES = 40_000_000
"""Asked of siitperf-tp for one second: beyond its reach as well. It sends them all, and tells how long that
took."""
SIITPERF_CONNECTIONS = at_length(8_000_000, 1_000_000)
"""Frames of its initiator. It makes their four tuples before it sends."""
WORKERS = lay_out_workers([CPU])
"""The core polls its two receive queues as well, as in any trial."""

TXONLY = "testpmd txonly"
V4, V4_ONE, V6, V6_ONE = (
    "gateway_v4, 65534 hosts",
    "gateway_v4, 1 host",
    "gateway_v6, 65536 hosts",
    "gateway_v6, 1 host",
)
SIITPERF = "siitperf-tp, IPv4"
NEW_CONNECTIONS, SIITPERF_STATEFUL = "new connections, IPv4", "siitperf-tp, initiator"
CONNECTIONS = ("new connections", "established connections", "answers")
"""What frames of connections are, beside a DUT that keeps state."""
VECTOR_PARTS = ("draw", "draw listed", "permute")
"""Vector code of the engine that has variants for AVX2 and AVX-512. The latter is kept as long as it is at
least a tenth faster (engine/plan/philox.cpp, permutation.cpp)."""


def engine_fps(plan: AddressPlan) -> float:
    with opened(plan, DEVICE, "net_null1,no-rx=1", WORKERS) as session:
        return float(trial(session, BEYOND_REACH_FPS, SECONDS)["directions"]["forward"]["offered_fps"])


def siitperf_fps(command: list[str]) -> float:
    """Frames of 64 octets: siitperf counts IPv4 frames as 20 octets longer than they are."""
    return _siitperf_fps([*command, "84", str(SIITPERF_FRAMES), "1", "100", "2", "2"], SIITPERF_FRAMES)


def siitperf_stateful_fps(command: list[str]) -> float:
    """What its initiator sends in the first phase: frames that open connections. It is asked for a rate
    beyond its reach, so it ends after that phase, and says how long it took."""
    stateful = [SIITPERF_CONNECTIONS, SIITPERF_CONNECTIONS, int(BEYOND_REACH_FPS), 100, 500]
    return _siitperf_fps(
        [*command, "84", "1000", "1", "100", "2", "2", *map(str, stateful)], SIITPERF_CONNECTIONS
    )


def _siitperf_fps(arguments: list[str], frames: int) -> float:
    process = started(
        arguments, cwd=Path(arguments[0]).resolve().parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    text, _ = process.communicate(timeout=60)
    took = re.search(r"sender's sending took ([0-9.]+) seconds", text)  # the first is that of the first phase
    if took is None:
        raise SystemExit(f"{shlex.join(arguments)} did not send:\n{text}")
    return frames / float(took[1])


def new_connections_fps() -> float:
    """Our sender of frames that open connections, each with a four tuple of its own."""
    return 1e9 / parts(4, NEW_CONNECTION_ROUNDS)["all, new connections"]["median"]


def parts(ip_version: int, rounds: int = PARTS_ROUNDS) -> dict[str, dict[str, float]]:
    """Nanoseconds a frame, the least and the median of all rounds, of each part alone and of all together."""
    command = [str(PARTS), DEVICE, str(CPU), str(ip_version), str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured_in_turn(contenders: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, measure in contenders.items():
            rates[name].append(measure())
    for name, values in rates.items():
        print(
            f"{name:28} {statistics.median(values) / 1e6:7.1f} Mfps   ({min(values) / 1e6:.1f} .."
            f" {max(values) / 1e6:.1f})"
        )
    return rates


def ratio(above: list[float], below: list[float]) -> dict[str, Any]:
    """The ratio of neighbours in time, since the host's speed changes from second to second; and of the best
    of each."""
    return {**spread([a / b for a, b in zip(above, below, strict=True)]), "of_best": max(above) / max(below)}


def main() -> None:
    contenders = {
        TXONLY: lambda: txonly_fps(CPU, DEVICE, SECONDS),
        V4: lambda: engine_fps(gateway_v4()),
        V4_ONE: lambda: engine_fps(gateway_v4(1)),
        V6: lambda: engine_fps(gateway_v6()),
        V6_ONE: lambda: engine_fps(gateway_v6(1)),
    }
    pairs = {
        "v4 to testpmd txonly": (V4, TXONLY),
        "v6 to testpmd txonly": (V6, TXONLY),
        "v4: 65534 hosts to 1": (V4, V4_ONE),
        "v6: 65536 hosts to 1": (V6, V6_ONE),
    }
    if siitperf := shlex.split(os.environ.get("EVENHAND_SIITPERF", "")):
        contenders[SIITPERF] = lambda: siitperf_fps(siitperf)
        pairs["v4 to siitperf-tp"] = (V4, SIITPERF)
    else:
        print("without siitperf-tp: EVENHAND_SIITPERF names no program")
    if stateful := shlex.split(os.environ.get("EVENHAND_SIITPERF_STATEFUL", "")):
        contenders[NEW_CONNECTIONS] = new_connections_fps
        contenders[SIITPERF_STATEFUL] = lambda: siitperf_stateful_fps(stateful)
        pairs["v4, new connections to siitperf-tp's initiator"] = (NEW_CONNECTIONS, SIITPERF_STATEFUL)
    else:
        print("without siitperf-tp's initiator: EVENHAND_SIITPERF_STATEFUL names no program")
    rates = measured_in_turn(contenders)
    ratios = {name: ratio(rates[above], rates[below]) for name, (above, below) in pairs.items()}
    for name, values in ratios.items():
        print(
            f"{name:28} {values['median']:.3f}          ({values['min']:.3f} .. {values['max']:.3f}; of the"
            f" best {values['of_best']:.3f})"
        )
    parts_ns = {f"v{version}": parts(version) for version in (4, 6)}
    # Whole senders, one after the other in each round: the cost beside the one whose flows are drawn.
    connection_ratios = {
        version: {name: found["all"]["least"] / found[f"all, {name}"]["least"] for name in CONNECTIONS}
        for version, found in parts_ns.items()
    }
    # Each part's two variants were measured one after the other in each round.
    vector_ratios = {
        version: {
            name: found[f"{name} avx2"]["least"] / found[f"{name} avx512"]["least"]
            for name in VECTOR_PARTS
            if f"{name} avx512" in found
        }
        for version, found in parts_ns.items()
    }
    for version, of_version in vector_ratios.items():
        factors = ", ".join(f"{name} {value:.2f}" for name, value in of_version.items())
        print(f"{version}, AVX-512 is faster than AVX2 by the factor: {factors or 'this CPU has no AVX-512'}")
    for version, of_version in connection_ratios.items():
        told = ", ".join(f"{name} {value:.3f}" for name, value in of_version.items())
        print(f"{version}, of the plain sender's rate: {told}")
    for version, found in parts_ns.items():
        print(
            f"{version}, ns a frame (least):     "
            + ", ".join(f"{name} {values['least']:.2f}" for name, values in found.items())
        )
    record(
        "sender_rate",
        {
            "unit": "fps",
            "rates": {name: spread(values) for name, values in rates.items()},
            "ratios": ratios,
            "parts_ns": parts_ns,
            "connection_ratios": connection_ratios,
            "vector_ratios": vector_ratios,
        },
        {
            **{name: values["median"] for name, values in ratios.items()},
            **{
                f"{version}, {name} to plain": value
                for version, of_version in connection_ratios.items()
                for name, value in of_version.items()
            },
        },
    )


if __name__ == "__main__":
    main()
