# SPDX-License-Identifier: Apache-2.0
"""What forwards in a lab is as urgent as the engine that tests it: on one CPU, neither starves the other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOST_URGENT = -20
"""Nice value of the engine and of the DUT's threads."""


def make_urgent(pid: int) -> None:
    """Give this process or thread the precedence that the engine takes.

    With autogroups a nice value counts within its session only, so a session that this process leads gets one
    too, as the engine's does.

    Raises:
        OSError: It has ended, or we may not.
    """
    os.setpriority(os.PRIO_PROCESS, pid, MOST_URGENT)
    if os.getsid(pid) == pid:
        with suppress(OSError):  # a kernel without autogroups
            Path(f"/proc/{pid}/autogroup").write_text(str(MOST_URGENT))
