# SPDX-License-Identifier: Apache-2.0
"""A run as a verb makes it, on a simulated device: its file, and what is written beside it while it goes on.

python -m tests.serve.simulated_run FILE VERSION SECONDS: each trial takes so long.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.plan import make_plan
from evenhand.procedure import TrialPhase
from evenhand.procedure.events import SoFar
from evenhand.run import RunStore
from evenhand.run.campaign.events import RunningFile
from evenhand.search import SearchEvent, SearchHead, ThroughputGoal, TrialFinished, find_throughput
from evenhand.trial import LeftOut, SimulatedMeasurer, TrialResult

GOAL = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
LIMIT_FPS = 640_000.0
PHASES = 5
INSIDE = {
    "cpus": [{"cpu": 0, "busy_share": 0.25, "softirq_share": 0.125}],
    "dropped_packets": 7,
    "interfaces": {
        "left": {
            "name": "eth0",
            "queues": [{"queue": 0, "received_packets": 30}, {"queue": 1, "received_packets": 10}],
        }
    },
}
"""What a witness says of each trial."""
SETUP = {
    "name": "bench",
    "cpus": [1],
    "directions": ["forward", "reverse"],
    "testbed": {"dut": {"facts": {"os": "Linux 6.1"}}},
}


@dataclass(slots=True)
class SlowMeasurer:
    """A simulated device whose trials take time, and that says how far each is."""

    running: RunningFile
    trial_s: float
    device: SimulatedMeasurer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        for number in range(1, PHASES + 1):
            time.sleep(self.trial_s / PHASES)
            elapsed_s = duration_s * number / PHASES
            self.running._written_s = float("-inf")  # each is written
            self.running.on_event(phase(elapsed_s, duration_s, rate_fps))
        result = self.device.measure(duration_s, rate_fps)
        return replace(result, raw={**result.raw, "dut": INSIDE})


def phase(elapsed_s: float, total_s: float, rate_fps: float) -> TrialPhase:
    """What an engine says of a device that forwards at most `LIMIT_FPS`."""
    sent = round(rate_fps * elapsed_s)
    received = round(min(rate_fps, LIMIT_FPS) * elapsed_s)
    so_far = SoFar(
        sent_frames=sent,
        received_frames=received,
        settled_frames=sent,
        lost_frames=sent - received,
        mean_latency_ns=20_000.0 + 1000 * elapsed_s,
        max_latency_ns=90_000.0,
        recent_median_ns=21_000.0 + 1000 * elapsed_s,
        recent_p999_ns=60_000.0,
    )
    return TrialPhase(
        phase="sending",
        elapsed_s=elapsed_s,
        total_s=total_s,
        directions={"forward": so_far, "reverse": so_far},
        sending_s=elapsed_s,
        left_out=(LeftOut(from_s=0.1, until_s=0.15, kinds=("receiver_away", "dut_away")),),
    )


def measure(path: Path, version: int = 4, trial_s: float = 0.0, limit_fps: float = LIMIT_FPS) -> Path:
    """The whole run."""
    running, device = RunningFile(path), SimulatedMeasurer(limit_fps=limit_fps)
    with RunStore.create(path, command=["evenhand", "throughput", "bench.toml"]) as store:
        running.begin("throughput")
        plan = make_plan(f"gateway_v{version}").to_contract()
        head = SearchHead(
            label="a",
            kind="throughput",
            plan=plan,
            frame_size=64 if version == 4 else 84,
            seed=7,
            setup=SETUP,
            goal=GOAL,
            procedure="throughput",
        )
        with store.search(head) as writer:

            def keep(event: SearchEvent) -> None:
                running.on_event(event)
                if isinstance(event, TrialFinished):
                    writer.add_trial(event.trial)

            writer.finish(find_throughput(SlowMeasurer(running, trial_s, device), GOAL, on_progress=keep))
        running.end()
    return path


if __name__ == "__main__":
    measure(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
