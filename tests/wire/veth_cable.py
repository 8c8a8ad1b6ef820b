# SPDX-License-Identifier: Apache-2.0
"""Two interfaces of the kernel that a cable joins, in a namespace of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_numbers = count()


def ip(*words: str) -> None:
    """Run `ip` with these arguments. CalledProcessError if it fails."""
    subprocess.run(["ip", *words], check=True, timeout=20)


@contextmanager
def veth_cable() -> Iterator[str]:
    """A namespace in which two interfaces, `left` and `right`, are joined and silent."""
    name = f"evenhand-cable-{os.getpid()}-{next(_numbers)}"
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "add", "left", "type", "veth", "peer", "name", "right")
        for side in ("left", "right"):
            ip("netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{side}.disable_ipv6=1")
            ip("-n", name, "link", "set", side, "up")
        yield name
    finally:
        ip("netns", "del", name)
