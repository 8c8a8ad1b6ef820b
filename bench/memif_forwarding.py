# SPDX-License-Identifier: Apache-2.0
"""A whole tester on one core, through a forwarding testpmd on the other, joined by memif: 10 Mfps of 64-byte
frames one way.

Five trials of 10 s; a virtual machine stalls now and then, so the best one tells what the tester can do, and
all are recorded.

Before each trial testpmd itself sends through the same kind of rings and the same forwarder, as fast as they
take it (flowgen: fixed frames that come back and are dropped). This control is what the path carries at that
minute: where it carries less than the intended load, no tester can PASS, and the offered load beside it tells
how much of the path Evenhand used.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pieces import at_length, opened, record, spread, testpmd, testpmd_fps, trial

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers

RATE_FPS = 10e6
SECONDS = at_length(10.0, 0.2)
TRIALS = at_length(5, 1)
WORKERS = lay_out_workers([1])
DEVICE = "net_memif{},role={},id=0,socket={},socket-abstract=no,rsize=11,bsize=192"
FORWARDING = ["--forward-mode=io", "--no-lsc-interrupt"]
CONTROL_S = at_length(2.0, 0.2)


def one_trial(plan: AddressPlan, number: int) -> dict[str, Any]:
    """A tester on CPU 1, joined to a forwarder on CPU 0 by two memif pairs: the trial's document."""
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # of its own: a server that was killed leaves its sockets behind
        sockets = [Path(folder) / name for name in ("left", "right")]
        servers = [DEVICE.format(i, "server", path) for i, path in enumerate(sockets)]
        clients = [DEVICE.format(i, "client", path) for i, path in enumerate(sockets)]
        with testpmd(0, servers, FORWARDING), opened(plan, clients[0], clients[1], WORKERS) as session:
            document: dict[str, Any] = trial(session, RATE_FPS, SECONDS, number=number)
            return document


def control_fps() -> float:
    """What comes back to a testpmd on CPU 1 that floods a forwarder on CPU 0 through one memif pair: two
    rings, as in a trial."""
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "both"
        with testpmd(0, [DEVICE.format(0, "server", socket)], FORWARDING):
            while not socket.exists():  # a client that comes before its server stays without link
                time.sleep(0.1)
            flood = ["--forward-mode=flowgen", "--no-lsc-interrupt"]
            return testpmd_fps(1, DEVICE.format(0, "client", socket), flood, CONTROL_S, direction="Rx")


def main() -> None:
    documents: dict[str, list[dict[str, Any]]] = {}
    controls: list[float] = []
    for plan in (gateway_v4(), gateway_v6()):
        documents[plan.name] = []
        for n in range(TRIALS):
            controls.append(control_fps())
            document = one_trial(plan, n + 1)
            documents[plan.name].append(document)
            forward = document["directions"]["forward"]
            print(
                f"{plan.name} {document['verdict']:8} offered {forward['offered_fps'] / 1e6:.6f} Mfps "
                f"(testpmd gets {controls[-1] / 1e6:.1f} through), lost {forward['lost_frames']}, "
                f"worst overdue {forward['sender']['max_overdue_us']:.0f} us, clock"
                f" {document['clock']['error_ppm']:+.3f} ppm, "
                f"latency p50 {forward['latency']['p50_ns']} ns"
                f" {[reason['code'] for reason in document['reasons']]}"
            )
            del forward["latency"]["buckets"]
            del forward["lost_by_tenth"]
    offered = [d["directions"]["forward"]["offered_fps"] for trials in documents.values() for d in trials]
    # Shortened, on a busy host, it may have forwarded nothing.
    ratio = statistics.median(offered) / (statistics.median(controls) or math.nan)
    print(f"median of what Evenhand offered / of what testpmd got through: {ratio:.2f}")
    record(
        "memif_forwarding",
        {
            "intended_fps": RATE_FPS,
            "duration_s": SECONDS,
            "trials": documents,
            "offered_fps": spread(offered),
            "testpmd_through_the_same_rings_fps": spread(controls),
            "ratio": ratio,
        },
        {"offered / testpmd through the same rings": ratio},
    )


if __name__ == "__main__":
    main()
