# SPDX-License-Identifier: Apache-2.0
"""NICs, CPUs and memory on two NUMA nodes: the engine works wherever they are, and says what is far away."""

from __future__ import annotations

import json

import pytest

from tests.nic.nic_machine import ON_BOTH_NODES, NicMachine
from tests.nic.nic_session import RATE_FPS, assert_passes, open_nics, prepare
from tests.wire.wire_session import NOBODY, valid_trial

pytestmark = [pytest.mark.nic]
PAGES = 160
"""On a node: enough for both ports."""
MODEL = ON_BOTH_NODES
NUMBER = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"


@pytest.mark.parametrize("nodes", [(0, 1), (0,), (1,)], ids=["both", "first", "second"])
def test_ports_of_two_nodes_open_wherever_the_hugepages_are(
    machine_with_slots: NicMachine, nodes: tuple[int, ...]
) -> None:
    """The worker is on CPU 1, of the right port's node. What lies on a node without hugepages gets its
    memory from the other one."""
    machine = machine_with_slots
    prepare(machine, MODEL)
    for node in range(2):
        pages = PAGES if node in nodes else 0
        machine.run(f"echo {pages} >{NUMBER.format(node)}; [ $(cat {NUMBER.format(node)}) = {pages} ]")
    with machine.engine() as session:
        opened = open_nics(session, MODEL.addresses)
        assert [opened[side]["numa_node"] for side in ("left", "right")] == [0, 1]
        assert [opened[side]["far_cpus"] for side in ("left", "right")] == [[1], []]
        assert_passes(valid_trial(session, rate_fps=RATE_FPS, duration_s=0.5))


def test_check_says_which_cpu_is_far_from_its_port(machine_with_slots: NicMachine) -> None:
    machine = machine_with_slots
    prepare(machine, MODEL)
    ports = "\n".join(
        f'[{side}]\ndevice = "{address}"\ndut_mac = "{mac}"'
        for side, address, mac in zip(("left", "right"), MODEL.addresses, NOBODY, strict=True)
    )
    tester = '[tester]\ncpus = [1]\nmemory = "512MB"\nhugepages = true'
    machine.run(f"cat >/tmp/nodes.toml <<'END'\nisolated_test_environment = true\n{ports}\n{tester}\nEND")
    words = "check /tmp/nodes.toml --plan gateway-v4 --ports-only --watch 0s"
    told = machine.evenhand(words)
    assert told["code"] == 0, told
    assert "The left port is on NUMA node 0, and the tester's CPU 1 is not" in told["stdout"]
    assert "The right port is on NUMA node" not in told["stdout"]
    found = json.loads(machine.evenhand(f"{words} --json")["stdout"])["testbed"]["ports"]
    assert [(found[side]["numa_node"], found[side]["far_cpus"]) for side in ("left", "right")] == [
        (0, [1]),
        (1, []),
    ]
