# SPDX-License-Identifier: Apache-2.0
"""A process that holds a lab, for tests of what happens when it is interrupted, killed, or in somebody's
way."""

from __future__ import annotations

import subprocess
import sys

HOLD_A_LAB = """
import sys, time
from evenhand.lab import linux_lab
from evenhand.plan import make_plan
with linux_lab(make_plan(sys.argv[2]), name=sys.argv[1]):
    print("up", flush=True)
    time.sleep(600)
"""


def holder(name: str, plan: str = "gateway_v4") -> subprocess.Popen[str]:
    """Another process that is inside `with linux_lab`; the lab is up when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_LAB, name, plan],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process
