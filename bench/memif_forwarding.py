# SPDX-License-Identifier: Apache-2.0
"""A whole tester on one core, through a forwarding testpmd on the other, joined by memif: 10 Mfps of 64-byte frames one way.

Five trials of 10 s; a virtual machine stalls now and then, so the best one tells what the tester can do, and all are recorded.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pieces import opened, record, testpmd, trial

from evenhand.plan import gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers

RATE_FPS = 10e6
SECONDS = 10.0
TRIALS = 5
WORKERS = lay_out_workers([1])


def main() -> None:
    device = "net_memif{},role={},id=0,socket={},socket-abstract=no,rsize=11,bsize=192"
    documents = {}
    for plan in (gateway_v4(), gateway_v6()):
        with tempfile.TemporaryDirectory() as folder:  # of its own: a server that was killed leaves its sockets behind
            sockets = [Path(folder) / name for name in ("left", "right")]
            servers = [device.format(i, "server", path) for i, path in enumerate(sockets)]
            clients = [device.format(i, "client", path) for i, path in enumerate(sockets)]
            with testpmd(0, servers, ["--forward-mode=io", "--no-lsc-interrupt"]), opened(plan, clients[0], clients[1], WORKERS) as session:
                documents[plan.name] = [trial(session, RATE_FPS, SECONDS, number=n + 1) for n in range(TRIALS)]
            for document in documents[plan.name]:
                forward = document["directions"]["forward"]
                print(
                    f"{plan.name} {document['verdict']:8} offered {forward['offered_fps'] / 1e6:.6f} Mfps, lost {forward['lost_frames']}, "
                    f"worst overdue {forward['sender']['max_overdue_us']:.0f} us, clock {document['clock']['error_ppm']:+.3f} ppm, "
                    f"latency p50 {forward['latency']['p50_ns']} ns {[reason['code'] for reason in document['reasons']]}"
                )
                del forward["latency"]["buckets"]
                del forward["lost_by_tenth"]
    record("memif_forwarding", {"intended_fps": RATE_FPS, "duration_s": SECONDS, "trials": documents})


if __name__ == "__main__":
    main()
