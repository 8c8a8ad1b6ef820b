# SPDX-License-Identifier: Apache-2.0
"""The walks of docs/how-to/ without NICs: a router in a namespace, and ports of the kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.documents import blocks

Run = Callable[[str], subprocess.CompletedProcess[str]]

DOCUMENTS = (
    "docs/how-to/test-a-router.md",
    "docs/how-to/test-a-router-on-a-stick.md",
    "docs/how-to/test-a-tunnel.md",
)
APART = (
    "unshare --net --mount sh -c"
    " 'mount -t tmpfs none /run/netns; mount -t sysfs none /sys; ip link set lo up; sh -e walk.sh;"
    # The kernel takes the ends of the cables away some time after their namespace.
    " for n in $(seq 100); do ip -o link | grep -qE left0\\|arm0 || break; sleep 0.1; done;"
    " ls /run/netns; ip -o link'"
)
"""A host of its own, whose interfaces and namespaces have no others' names."""


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.root
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_router_in_a_namespace_forwards_both_ip_versions_and_leaves_nothing(
    run: Run, document: str, tmp_path: Path
) -> None:
    """INVALID on a busy machine; never FAIL, which would be said of a router that has lost nothing."""
    commands = "".join(
        block.text
        for block in blocks("sh", document=document)
        if re.search("ip netns|ip -n |testbed-", block.text)
    )
    Path("/run/netns").mkdir(exist_ok=True)
    # The command itself: one that stands ready in another process would look for ports in the namespace of
    # that one.
    itself = f'evenhand() {{ {Path(sys.executable).parent / "evenhand"} "$@"; }}\n'
    (tmp_path / "walk.sh").write_text(itself + commands.replace("sudo ", ""))
    ended = run(APART)
    assert ended.returncode == 0, ended.stderr
    trials = re.findall(
        r"^Trial 1: (PASS|INVALID) at 2,000 fps per direction(?: \(.*\))? for 2 s, (64|84) octet",
        ended.stdout,
        re.MULTILINE,
    )
    assert [size for _, size in trials] == ["64", "84"], ended.stdout + ended.stderr
    assert "FAIL" not in ended.stdout
    # What the walk undid: only the loopback interface is left, and no namespace.
    assert re.findall(r"^\d+: (\S+):", ended.stdout, re.MULTILINE) == ["lo"]
    assert ended.stdout.splitlines()[-1].startswith("1: lo")
