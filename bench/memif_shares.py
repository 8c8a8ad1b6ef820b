# SPDX-License-Identifier: Apache-2.0
"""Where the time of a whole tester goes, on one core and in both directions over memif: to DPDK's copies
through shared memory, to its pools, to Evenhand.

A forwarding testpmd on the other core joins both directions. The tester is asked for more than it can
offer, so its core is never idle, and the frames that it really sent tell what one costs; such a trial is
INVALID, and meant to be. linux-perf samples the worker meanwhile: the share of a library times that cost is
its part of a frame that is drawn, written, sent, received and checked. What DPDK's headers put into the
program itself (a pool's cache above all) counts as Evenhand's.

Beside it stands what testpmd alone needs through the same rings: to send frames that are all alike (txonly),
and to receive and drop them (rxonly).

    .venv/bin/python bench/memif_shares.py
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memif_forwarding import DEVICE, FORWARDING
from pieces import opened, record, spread, testpmd, testpmd_fps, trial

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed.workers import lay_out_workers

CPU = 1
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
"""MACs of the tester's ports. It sends to the other one's, so a forwarder that changes nothing delivers
frames as a router does; such with another destination take a receiver's longer way."""
RATE_FPS = 40e6
"""The rate of each direction: more than a core builds."""
SECONDS = 6.0
SAMPLED_S = 4
TRIALS = 5
ALONE_S = 2.0
PARTS = {
    "librte_net_memif": "DPDK: memif, its copies and rings",
    "librte_mbuf": "DPDK: pools of buffers",
    "librte_mempool": "DPDK: pools of buffers",
    "evenhand-engine": "Evenhand",
}
"""By the beginning of a library's name; all others, and the kernel, are `other`."""


def worker_of(process: int) -> int:
    """The thread that sends and receives: it has the engine's name, as the main thread, which only waits."""
    (found,) = (
        int(task.name)
        for task in Path(f"/proc/{process}/task").iterdir()
        if (task / "comm").read_text().strip() == "evenhand-engine" and int(task.name) != process
    )
    return found


def shares(samples: Path) -> dict[str, float]:
    """Shares of all samples, by part."""
    told = subprocess.run(
        [
            "perf",
            "report",
            "--input",
            samples,
            "--stdio",
            "--quiet",
            "--no-children",
            "--fields",
            "overhead,dso",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = dict.fromkeys([*PARTS.values(), "other"], 0.0)
    for percent, library in re.findall(r"^\s*([0-9.]+)%\s+(\S+)", told, re.MULTILINE):
        part = next((part for name, part in PARTS.items() if library.startswith(name)), "other")
        found[part] += float(percent) / 100
    return found


def one_trial(plan: AddressPlan, number: int) -> dict[str, Any]:
    """A tester on CPU 1, sampled while it sends as fast as it can: what a frame costs, and the shares."""
    with tempfile.TemporaryDirectory() as folder:
        sockets = [Path(folder) / name for name in ("left", "right")]
        servers = [DEVICE.format(i, "server", path) for i, path in enumerate(sockets)]
        left, right = (f"{DEVICE.format(i, 'client', path)},mac={MACS[i]}" for i, path in enumerate(sockets))
        samples = Path(folder) / "samples"
        with (
            testpmd(0, servers, FORWARDING),
            opened(plan, left, right, lay_out_workers([CPU]), dut_macs=(MACS[1], MACS[0])) as session,
        ):
            # A machine without counters of its own has a clock.
            command = ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", "4000"]
            command += ["--output", str(samples), "--tid", str(worker_of(session._process.pid))]
            with subprocess.Popen([*command, "--", "sleep", str(SAMPLED_S)]) as perf:
                document = trial(session, RATE_FPS, SECONDS, number=number, directions=("forward", "reverse"))
                if perf.wait() != 0:
                    raise SystemExit("perf record failed: see above")
        directions = document["directions"].values()
        sent = sum(direction["offered_frames"] for direction in directions)
        return {
            "sent_frames": sent,
            "received_frames": sum(direction["received_frames"] for direction in directions),
            "refusals": sum(direction["sender"]["refusals"] for direction in directions),
            "ns_per_frame": SECONDS * 1e9 / sent,
            "shares": shares(samples),
        }


def alone_ns() -> dict[str, float]:
    """What testpmd needs on CPU 1 for a frame of its own, with the other end on CPU 0: sent, and received."""
    modes = {"sent (txonly)": ("txonly", "rxonly", "Tx"), "received (rxonly)": ("rxonly", "txonly", "Rx")}
    found = {}
    for name, (here, there, direction) in modes.items():
        with tempfile.TemporaryDirectory() as folder:
            socket = Path(folder) / "both"
            other = [f"--forward-mode={there}", "--no-lsc-interrupt", "--burst=32"]
            own = [f"--forward-mode={here}", "--no-lsc-interrupt", "--burst=32"]
            with testpmd(0, [DEVICE.format(0, "server", socket)], other):
                while not socket.exists():  # a client that comes before its server stays without link
                    time.sleep(0.1)
                device = DEVICE.format(0, "client", socket)
                found[name] = 1e9 / testpmd_fps(CPU, device, own, ALONE_S, direction=direction)
    return found


def main() -> None:
    if shutil.which("perf") is None:
        sys.exit("perf is not installed: sudo apt-get install linux-perf")
    documents: dict[str, Any] = {}
    for plan in (gateway_v4(), gateway_v6()):
        trials = [one_trial(plan, n + 1) for n in range(TRIALS)]
        parts = {
            part: spread([found["shares"][part] * found["ns_per_frame"] for found in trials])
            for part in trials[0]["shares"]
        }
        documents[plan.name] = {"trials": trials, "ns_by_part": parts}
        whole = statistics.median(found["ns_per_frame"] for found in trials)
        print(f"{plan.name}: {whole:.1f} ns for a frame, sent and received")
        for part, ns in parts.items():
            print(f"  {ns['median']:5.1f} ns  {part}")
    alone = [alone_ns() for _ in range(TRIALS)]
    beside = {name: spread([found[name] for found in alone]) for name in alone[0]}
    for name, ns in beside.items():
        print(f"testpmd alone: {ns['median']:.1f} ns for a frame that is {name}")
    record(
        "memif_shares",
        {"duration_s": SECONDS, "plans": documents, "testpmd_ns": beside},
        {
            f"{plan}, {part} (ns a frame)": ns["median"]
            for plan, document in documents.items()
            for part, ns in document["ns_by_part"].items()
        },
    )


if __name__ == "__main__":
    main()
