# SPDX-License-Identifier: Apache-2.0
"""How fast one core builds and sends: all four fields drawn, both checksums, sequence and time, into a port that drops.

Beside it dpdk-testpmd txonly, whose frames are all alike. Both are measured in turn, several times, and compared as ratios.
"""

from __future__ import annotations

import statistics

from pieces import opened, record, spread, trial, txonly_fps

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers

SECONDS = 1.0
ROUNDS = 3
BEYOND_REACH_FPS = 4e8
"""More than any core builds, so that the sender always has a full burst due."""
WORKERS = lay_out_workers([1])
"""The core polls its two receive queues as well, as in any trial."""


def engine_fps(plan: AddressPlan) -> float:
    with opened(plan, "net_null0,no-rx=1", "net_null1,no-rx=1", WORKERS) as session:
        return float(trial(session, BEYOND_REACH_FPS, SECONDS)["directions"]["forward"]["offered_fps"])


def main() -> None:
    contenders = {
        "testpmd txonly": lambda: txonly_fps(1, "net_null0,no-rx=1", SECONDS),
        "gateway_v4, 65534 hosts": lambda: engine_fps(gateway_v4()),
        "gateway_v4, 1 host": lambda: engine_fps(gateway_v4(1)),
        "gateway_v6, 65536 hosts": lambda: engine_fps(gateway_v6()),
        "gateway_v6, 1 host": lambda: engine_fps(gateway_v6(1)),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, measure in contenders.items():
            rates[name].append(measure())
    for name, values in rates.items():
        print(f"{name:28} {statistics.median(values) / 1e6:7.1f} Mfps   ({min(values) / 1e6:.1f} .. {max(values) / 1e6:.1f})")

    def ratio(above: str, below: str) -> dict[str, object]:
        # Of neighbours in time: the host's speed changes from second to second.
        return spread([a / b for a, b in zip(rates[above], rates[below], strict=True)])

    ratios = {
        "v4 to testpmd txonly": ratio("gateway_v4, 65534 hosts", "testpmd txonly"),
        "v6 to testpmd txonly": ratio("gateway_v6, 65536 hosts", "testpmd txonly"),
        "v4: 65534 hosts to 1": ratio("gateway_v4, 65534 hosts", "gateway_v4, 1 host"),
        "v6: 65536 hosts to 1": ratio("gateway_v6, 65536 hosts", "gateway_v6, 1 host"),
    }
    for name, values in ratios.items():
        print(f"{name:28} {values['median']:.3f}          ({values['min']:.3f} .. {values['max']:.3f})")
    record("sender_rate", {"unit": "fps", "rates": {name: spread(values) for name, values in rates.items()}, "ratios": ratios})


if __name__ == "__main__":
    main()
