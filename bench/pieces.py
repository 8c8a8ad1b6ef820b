# SPDX-License-Identifier: Apache-2.0
"""What the self-measurements share: an engine on software ports, testpmd beside it, and where results go."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from evenhand.host.finding import read_host_facts
from evenhand.plan import AddressPlan
from evenhand.trial.engine_process import find_engine
from evenhand.trial.engine_session import EngineSession

Setting = TypeVar("Setting")
RESULTS = Path(__file__).parent / "results"
IS_SHORT = bool(os.environ.get("EVENHAND_BENCH_SHORT"))
"""Whether every bench shows only that it runs: few rounds, and nothing is recorded."""
NO_WAITS = {"after_routing_s": 0, "after_learning_s": 0, "residual_s": 0.2, "restabilize_s": 0}
NOBODY = ("02:00:00:00:00:01", "02:00:00:00:00:02")
"""DUT MACs for ports behind which nobody answers."""


def started(command: list[str], **options: Any) -> subprocess.Popen[str]:
    """`command`, as urgent as the engine's workers make themselves, if we may: on a busy host the less urgent
    one would seem slower.

    It ends with the thread that started it, also if that is killed.
    """
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "-20", *command],
        text=True,
        start_new_session=True,
        **options,
    )
    with suppress(OSError):
        # With autogroups a nice value counts within its session only, so the session needs one too.
        Path(f"/proc/{process.pid}/autogroup").write_text("-20")
    return process


@contextmanager
def opened(
    plan: AddressPlan,
    left: str,
    right: str,
    workers: list[dict[str, Any]],
    *,
    dut_macs: tuple[str, str] | None = NOBODY,
) -> Iterator[EngineSession]:
    """An engine with both ports open; without `dut_macs` it resolves them."""
    with EngineSession([find_engine()]) as session:
        ports: dict[str, dict[str, Any]] = {"left": {"device": left}, "right": {"device": right}}
        if dut_macs:
            for side, mac in zip(("left", "right"), dut_macs, strict=True):
                ports[side]["dut_mac"] = mac
        session.request(
            "open",
            ports=ports,
            workers=workers,
            plan=plan.to_request(),
            frame_size=plan.smallest_frame_size,
            seed=1,
        )
        if dut_macs is None:
            session.request("resolve")
        yield session


def trial(
    session: EngineSession,
    rate_fps: float,
    duration_s: float,
    *,
    number: int = 1,
    directions: tuple[str, ...] = ("forward",),
) -> dict[str, Any]:
    """One trial without the waits of RFC 2544; its document."""
    return session.request(
        "trial",
        trial=number,
        rate_fps=rate_fps,
        duration_s=duration_s,
        directions=list(directions),
        waits=NO_WAITS,
    )


@contextmanager
def testpmd(cpu: int, devices: list[str], options: list[str]) -> Iterator[subprocess.Popen[str]]:
    """dpdk-testpmd without hugepages, forwarding on `cpu` from the start; its commands go to stdin."""
    arguments = [
        "dpdk-testpmd",
        "--no-huge",
        "-m",
        "1024",
        "--no-shconf",
        f"--file-prefix=bench-{time.monotonic_ns()}",
    ]
    arguments += ["--no-pci", "--no-telemetry", f"--lcores=0@0,1@{cpu}", *[f"--vdev={d}" for d in devices]]
    arguments += ["--", "-i", "--auto-start", "--total-num-mbufs=32768", "--nb-cores=1", *options]
    process = started(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=1
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def testpmd_fps(cpu: int, device: str, options: list[str], seconds: float, *, direction: str) -> float:
    """What testpmd sends ("Tx") or gets ("Rx") on its only port. It takes the rate itself, between two
    looks."""
    with testpmd(cpu, [device], options) as process:
        assert process.stdin is not None
        time.sleep(2)
        for command in ("show port stats 0", "show port stats 0", "quit"):
            process.stdin.write(command + "\n")
            time.sleep(seconds)
        text, _ = process.communicate(timeout=30)
        return float(re.findall(rf"{direction}-pps:\s+(\d+)", text)[1])


def txonly_fps(cpu: int, device: str, seconds: float) -> float:
    """What testpmd sends there: every frame alike, bursts of 32."""
    return testpmd_fps(cpu, device, ["--forward-mode=txonly", "--burst=32"], seconds, direction="Tx")


def spread(values: list[float]) -> dict[str, Any]:
    """Median, least, most and all: a noisy host must show."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "all": values}


def at_length(full: Setting, short: Setting) -> Setting:
    """`full` where a figure is measured, `short` where `tools/bench --short` shows only that a bench runs."""
    return short if IS_SHORT else full


def record(name: str, document: dict[str, Any], figures: dict[str, float]) -> None:
    """Write bench/results/NAME.json with the host's facts. `figures` are what `bench/table.py` shows, each
    under a name that says its unit; those of the recording before stay beside them, as `last`."""
    if IS_SHORT:
        print(f"{name}: shortened, nothing recorded")
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    whole = {
        "name": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": read_host_facts(),
        "figures": figures,
        "last": _figures_of(json.loads(path.read_text())) if path.exists() else None,
        **document,
    }
    path.write_text(json.dumps(whole, indent=2, default=str) + "\n")
    print(f"recorded bench/results/{name}.json")


def _figures_of(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": document["at"],
        "cpu_model": document["host"].get("cpu_model"),
        "figures": document.get("figures", {}),
    }
