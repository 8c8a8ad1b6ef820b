# SPDX-License-Identifier: Apache-2.0
"""What a whole tester takes of the memory of its machine: `evenhand trial` of both directions at 10 Mfps for
60 s, everything counted, on ports that drop and on ports that memif joins.

The record of a trial is made before its first frame, so some seconds show all. Memory that several processes
share counts in parts (PSS), so that libraries which another program has loaded as well do not count twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pieces import at_length, record

GOAL_MB = 120
UNCHANGED_S = at_length(6.0, 2.0)
"""For so long the engine has not grown: then the trial runs."""
GROWN_MB = 1.0
STARTS_WITHIN_S = 120.0
EVERY_S = 0.1
MEMIF = "net_memif{number},role={role},id=0,socket={folder}/cable,socket-abstract=no,rsize=11"
DEVICES = {
    "ports that drop": ("net_null0,no-rx=1", "net_null1,no-rx=1"),
    "memif": (
        MEMIF.format(number=0, role="server", folder="{folder}"),
        MEMIF.format(number=1, role="client", folder="{folder}"),
    ),
}
TESTBED = """\
isolated_test_environment = true
[left]
device = "{left}"
dut_mac = "02:00:00:00:d0:01"
[right]
device = "{right}"
dut_mac = "02:00:00:00:d0:02"
[tester]
cpus = [0]
"""


def pss_mb(pid: int) -> float:
    """0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def below(pid: int) -> Iterator[int]:
    """The processes that it has started, and theirs."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from below(child)


def is_engine(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith("evenhand-engin")
    return False


@contextmanager
def trial(plan: str, duration: str, folder: Path, compiled: Path) -> Iterator[subprocess.Popen[str]]:
    """With byte code in `compiled`, as an installation has it: an environment may say that none is to be
    written, and who compiles takes more memory."""
    command = [sys.executable, "-m", "evenhand", "trial", "testbed.toml", "--plan", plan, "--rate", "10Mfps"]
    command += ["--duration", duration, "--waits", "short", "--run", f"{duration}.evenhand"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        yield process


def watched(plan: str, devices: tuple[str, str], folder: Path, compiled: Path) -> dict[str, float]:
    """The most that Python and engine take, in MB, while they send."""
    left, right = (device.format(folder=folder) for device in devices)
    (folder / "testbed.toml").write_text(TESTBED.format(left=left, right=right))
    if not any(compiled.iterdir()):
        with trial(plan, "100ms", folder, compiled) as process:
            process.communicate()
    most = {"Python": 0.0, "engine": 0.0}
    with trial(plan, "60s", folder, compiled) as process:
        ends_at = time.monotonic() + STARTS_WITHIN_S
        while process.poll() is None and time.monotonic() < ends_at:
            engines = [pid for pid in below(process.pid) if is_engine(pid)]
            now = {"Python": pss_mb(process.pid), "engine": sum(map(pss_mb, engines))}
            if now["engine"] > most["engine"] + GROWN_MB:
                ends_at = time.monotonic() + UNCHANGED_S
            most = {part: max(most[part], megabytes) for part, megabytes in now.items()}
            time.sleep(EVERY_S)
        is_running = process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate()
    if not is_running or not most["engine"]:
        raise SystemExit(f"memory: the trial has not run:\n{printed}")
    return {**most, "both": sum(most.values())}


def main() -> None:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as compiled:
        for name, devices in list(DEVICES.items())[at_length(0, 1) :]:
            for plan in ("gateway-v4", "gateway-v6"):
                with tempfile.TemporaryDirectory() as folder:
                    found = watched(plan, devices, Path(folder), Path(compiled))
                met = "met" if found["both"] <= GOAL_MB else "NOT MET"
                parts = ", ".join(f"{part} {megabytes:.0f} MB" for part, megabytes in found.items())
                print(f"{plan}, {name}: {parts}; goal {GOAL_MB} MB: {met}", flush=True)
                figures |= {f"{plan}, {name}, {part} (MB)": megabytes for part, megabytes in found.items()}
    record("memory", {"unit": "MB", "unchanged_s": UNCHANGED_S}, figures)


if __name__ == "__main__":
    main()
