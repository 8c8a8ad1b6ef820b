# SPDX-License-Identifier: Apache-2.0
"""A tester that is disturbed on purpose never makes the DUT look lossy. `make prove` runs it; the exit code
is 1 if a trial is FAIL.

The DUT is testpmd on CPU 0, which forwards all that it gets as long as it can. The tester is on CPU 1, where
something else takes its time: a busy loop, or stalls of 20 to 150 ms (root only). Its receive ring holds 256
or 2,048 frames, so what comes meanwhile is lost in the ring, or dropped by the forwarder for want of room: by
the tester's fault, whatever it looks like. Such a trial is INVALID and says why, or PASS if nothing was lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from pieces import opened, record, testpmd, trial

from evenhand.plan import gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers

RATE_FPS = 200_000.0
SECONDS = 1.0
TRIALS = 5
TESTER_CPU = 1
WORKERS = lay_out_workers([TESTER_CPU])
DEVICE = "net_memif{},role={},id=0,socket={},socket-abstract=no,rsize={}"
STALL = Path(__file__).parents[1] / "tests" / "stall.py"
DISTURBANCES = {
    "a busy loop": [
        "taskset",
        "-c",
        str(TESTER_CPU),
        "nice",
        "-n",
        "-20",
        sys.executable,
        "-c",
        "while True: pass",
    ],
    "stalls": [sys.executable, str(STALL), str(TESTER_CPU), "600", "250"],
}


@contextmanager
def disturbed(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def trials(plan: Any, ring_bits: int, command: list[str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        sockets = [Path(folder) / name for name in ("left", "right")]
        servers = [DEVICE.format(i, "server", path, ring_bits) for i, path in enumerate(sockets)]
        clients = [DEVICE.format(i, "client", path, ring_bits) for i, path in enumerate(sockets)]
        with testpmd(0, servers, ["--forward-mode=io", "--no-lsc-interrupt"]):
            while not all(socket.exists() for socket in sockets):
                time.sleep(0.1)
            with opened(plan, clients[0], clients[1], WORKERS) as session, disturbed(command):
                return [
                    trial(session, RATE_FPS, SECONDS, number=n + 1, directions=("forward", "reverse"))
                    for n in range(TRIALS)
                ]


def main() -> int:
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("lapses: forwarder and tester need a CPU each")
    rows: list[dict[str, Any]] = []
    for plan, ring_bits, (what, command) in product(
        (gateway_v4(), gateway_v6()), (8, 11), DISTURBANCES.items()
    ):
        if what == "stalls" and os.geteuid() != 0:
            print("left out: stalls need root")
            continue
        made = trials(plan, ring_bits, command)
        verdicts = Counter(document["verdict"] for document in made)
        lost = sum(
            direction["lost_frames"] for document in made for direction in document["directions"].values()
        )
        codes = sorted({reason["code"] for document in made for reason in document["reasons"]})
        is_right = verdicts["FAIL"] == 0
        print(
            f"{'right' if is_right else 'WRONG'}  {plan.name} ring of {2**ring_bits:5}, {what:11}:"
            f" {dict(verdicts)}, lost {lost}, {codes}",
            flush=True,
        )
        rows.append(
            {
                "plan": plan.name,
                "ring_frames": 2**ring_bits,
                "disturbance": what,
                "verdicts": verdicts,
                "lost_frames": lost,
                "reasons": codes,
            }
        )
    wrong = sum(row["verdicts"]["FAIL"] for row in rows)
    silent = not any(row["lost_frames"] for row in rows)
    record(
        "lapses",
        {"rate_fps": RATE_FPS, "duration_s": SECONDS, "cases": rows},
        {"trials that blame the DUT": wrong},
    )
    if silent:
        print("lapses: nothing was lost at all, so nothing was shown")
    print(f"lapses: {'all right' if not wrong else f'WRONG: {wrong} trials blame the DUT'}")
    return 1 if wrong or silent else 0


if __name__ == "__main__":
    sys.exit(main())
