# SPDX-License-Identifier: Apache-2.0
"""The page that leads to a first number is walked: its link makes the command known to sudo, and its commands
lead from a check to a result, with a router in a namespace instead of the reader's own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, blocks, commands, read
from tests.docs.test_kernel_ports import APART

Run = Callable[[str], subprocess.CompletedProcess[str]]

PAGE = "docs/tutorial/first-number.md"
SUDOS_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What sudo of Debian makes of PATH (`secure_path`)."""
MOST_WORDS = 2000
CABLES = """
ip netns add dut
ip link add left0 type veth peer name eth1 netns dut
ip link add right0 type veth peer name eth2 netns dut
ip link set left0 up
ip link set right0 up
"""


def test_a_new_user_reads_little_before_the_first_number() -> None:
    """The README, and one page."""
    assert len(read("README.md").split()) + len(read(PAGE).split()) <= MOST_WORDS


def test_the_link_makes_the_command_one_that_sudo_finds(tmp_path: Path) -> None:
    (link,) = [
        line for block in blocks("sh", document=PAGE) for line in block.text.splitlines() if "ln " in line
    ]
    folder = next(word for word in link.split() if word.startswith("/")).rpartition("/")[0]
    assert folder in SUDOS_PATH.split(":")
    program = Path(sys.executable).with_name("evenhand")
    line = (
        link.removeprefix("sudo ")
        .replace(folder, str(tmp_path))
        .replace("$PWD/.venv/bin/evenhand", str(program))
    )
    subprocess.run(["sh", "-ec", line], check=True, cwd=ROOT)
    ended = subprocess.run(
        ["evenhand", "--version"],
        env={"PATH": f"{tmp_path}:{SUDOS_PATH}"},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("evenhand ")


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.root
def test_the_page_leads_to_a_number(run: Run, tmp_path: Path) -> None:
    """With interfaces of the kernel instead of NICs, and shorter trials. On a busy machine the number may be
    a lower bound, or none, since trials are INVALID; but the way there is the same."""
    walk = [c.text.replace("sudo ", "") for c in commands() if c.block.document == PAGE]
    steps = [line for line in walk if line.startswith("evenhand ") and line != "evenhand check"]
    assert [line.split()[1] for line in steps] == [
        *("plan", "dut", "check", "trial", "throughput", "show", "report")
    ]
    setup = next(number for number, line in enumerate(steps) if "> setup.sh" in line)
    steps.insert(setup + 1, "ip netns exec dut sh -e < setup.sh")
    (searched,) = [line for line in steps if line.startswith("evenhand throughput")]
    shorter = (
        "--maximum-rate 2kfps --precision 50% --duration 300ms --final-duration 300ms --waits short"
        " --invalid-retries 0 --patience 1 --overdue-after 20ms"
    )
    steps[steps.index(searched)] = f"{searched} {shorter} || [ $? -eq 1 ]"
    (tmp_path / "testbed.toml").write_text((ROOT / "examples" / "testbed-af-packet.toml").read_text())
    itself = f'evenhand() {{ {Path(sys.executable).parent / "evenhand"} "$@"; }}\n'
    text = "\n".join(steps).replace("--rate 100kfps --duration 10s", "--rate 2kfps --duration 1s")
    (tmp_path / "walk.sh").write_text(f"{itself}{CABLES}{text}\nip netns delete dut\n")
    Path("/run/netns").mkdir(exist_ok=True)
    ended = run(APART)
    assert ended.returncode == 0, ended.stderr
    assert "The DUT is resolved." in ended.stdout
    assert re.search(r"^Trial 1: (PASS|INVALID) at 2,000 fps per direction", ended.stdout, re.MULTILINE)
    assert "FAIL" not in ended.stdout.partition("Throughput")[0]
    assert (tmp_path / "first.html").exists()
