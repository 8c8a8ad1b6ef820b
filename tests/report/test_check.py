# SPDX-License-Identifier: Apache-2.0
"""A check at 80 columns: nothing is cut, commands stay whole."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from evenhand.base.errors import HostError
from evenhand.base.terminal_table import Printable, rendered
from evenhand.host import survey_host
from evenhand.host.devices import InterfaceFacts, PortFacts, port_facts
from evenhand.plan import SIDES, SideName, make_plan
from evenhand.procedure import DUT_WAY, OWN_LOOP_WAY, CeilingEntry, Profile
from evenhand.report.check import (
    advice_lines,
    ceiling_lines,
    dut_line,
    far_lines,
    host_table,
    nic_lines,
    nics_table,
    parts_table,
    ports_table,
)
from evenhand.search import find_tester_ceiling
from evenhand.testbed import HostNetwork, lay_out_workers
from evenhand.trial import CpuAbsences, Limits, SimulatedMeasurer, Watch, WatchedClock
from tests.host.fake_host import E1000E, PLUGINS, add_nic, make_host

COLUMNS = 80
LONG = (
    "net_memif{},role=server,id=0,socket=/tmp/evenhand-a-rather-long-name/cable,socket-abstract=no,rsize=11"
)


def shown(*renderables: Printable, width: int = COLUMNS) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for renderable in renderables:
        console.print(rendered(renderable))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    return text


def without_folds(text: str) -> str:
    return re.sub(r"\s", "", text)


def busy_host(root: Path) -> Iterable[CpuAbsences]:
    """A host with much to say of it."""
    make_host(
        root, {"proc/self/status": "Uid:\t1000\t1000\nCapEff:\t0\n", "sys/devices/system/cpu/isolated": None}
    )
    for number in range(4):
        add_nic(root, f"0000:0{number}:00.0", "ixgbe", f"eth{number}")
    return [
        CpuAbsences(cpu=cpu, absences=120, longest_us=100_200.5, away_us=900_000, stolen_us=880_000)
        for cpu in range(8)
    ]


def test_findings_and_advice_are_whole_at_80_columns(tmp_path: Path) -> None:
    clock = WatchedClock(source="tsc", ticks_per_second=2.6e9, error_ppm_raw=0.3, error_ppm_monotonic=-12)
    watched = Watch(seconds=5, cpus=tuple(busy_host(tmp_path)), clock=clock)
    survey = survey_host(
        about={"version": "0.1.0", "dpdk": "22.11.11"},
        watched=watched,
        root=tmp_path,
        allowed=range(8),
        network=HostNetwork(frozenset(), {"eth0": "it carries a default route"}),
        has_program=lambda name: False,
    )
    table = shown(host_table(survey))
    for finding in survey.findings:
        assert finding.name in table
        assert without_folds(finding.found)[:20] in without_folds(table)
        assert without_folds(finding.found)[-12:] in without_folds(table)
    parts = shown(parts_table(survey))
    assert "reference router" in parts
    assert "missing: privileges" in parts
    lines = list(advice_lines(survey))
    commands = [line.strip() for line in lines if line.startswith(" ")]
    assert commands == [command for finding in survey.with_advice for command in finding.commands]
    assert "sudo apt-get install dpdk" in commands
    advised = [finding for finding in survey.findings if finding.advice]
    assert len(lines) - len(commands) == len(advised)


def test_nics_are_whole_at_80_columns_with_the_commands_that_bind_them_and_take_them_back(
    tmp_path: Path,
) -> None:
    make_host(
        tmp_path,
        {
            "lib/modules/6.1.0-1-amd64/modules.alias": f"alias {E1000E} e1000e\n",
            f"{PLUGINS}/librte_net_null.so.23": "",
        },
    )
    known = "pci:v00008086d000010D3sv00008086sd00000000bc02sc00i00"
    add_nic(tmp_path, "0000:01:00.0", "vfio-pci", modalias=known)
    add_nic(tmp_path, "0000:01:00.1", "ixgbe", "enp1s0f1np1", modalias=known)
    add_nic(tmp_path, "0000:02:00.0", "ixgbe", "eth0")
    survey = survey_host(
        about={"version": "0.1.0", "dpdk": "22.11.11"},
        watched=None,
        root=tmp_path,
        allowed=range(8),
        network=HostNetwork(frozenset(), {"eth0": "it carries a default route"}),
        has_program=lambda name: True,
    )
    table = nics_table(survey)
    assert table is not None
    text = shown(table)
    assert "0000:01:00.1" in text
    assert "net_e1000 (missing)" in text
    assert list(nic_lines(survey)) == [
        "To install drivers of DPDK that are missing:",
        "    sudo apt-get install librte-net-e1000-23",
        "To give a NIC to DPDK, provided that none of its cables leads to a network that people use:",
        "    sudo dpdk-devbind.py --bind=vfio-pci 0000:01:00.1",
        "To give a NIC back to the kernel:",
        "    sudo dpdk-devbind.py --bind=e1000e 0000:01:00.0",
        "Do not bind 0000:02:00.0: it carries a default route: the host would lose its network.",
    ]


@pytest.mark.parametrize("is_resolved", [True, False])
def test_ports_are_whole_at_80_columns(is_resolved: bool) -> None:
    ports = [make_port(side, number, is_resolved=is_resolved) for number, side in enumerate(SIDES)]
    text = shown(ports_table(ports))
    assert "10 Gbps" in text
    assert "9,000" in text
    assert "2 queues of 2,048 frames" in " ".join(text.split())
    assert "udp4: sdfn" in text
    assert "unknown: the driver does not report it" in " ".join(text.split())
    assert ("02:00:00:00:d0:01" in text) == is_resolved
    lines = text.splitlines()
    left, right = lines[1].index("left"), lines[1].index("right")
    for number, (first, last) in enumerate(((left, right), (right, COLUMNS))):
        assert LONG.format(number) in without_folds("".join(line[first:last] for line in lines))
    assert dut_line(None, ports) == "The DUT is resolved."
    error = HostError(
        "10.0.0.1 did not answer ARP within 5 s",
        code="engine.not-resolved",
        where="ports.left",
        next_step="Check cable and address.",
    )
    assert "did not answer ARP within 5 s. Check cable" in dut_line(error, ports)


def test_a_cpu_of_another_node_than_a_port_is_told_with_what_to_do() -> None:
    """For NICs alone: a software port has no node, and on most hosts nobody knows of any."""
    near = [make_port(side, 0, is_resolved=True) for side in SIDES]
    assert "NUMA" not in shown(ports_table(near))
    assert list(far_lines(near)) == []
    ports = [near[0], replace(near[1], numa_node=1, far_cpus=(0, 2, 3))]
    assert "1; CPU 0,2-3 is on another" in " ".join(shown(ports_table(ports)).split())
    (line,) = far_lines(ports)
    assert line.startswith("The right port is on NUMA node 1, and the tester's CPU 0,2-3 is not")
    assert "cat /sys/devices/system/node/node1/cpulist" in line


def make_port(side: SideName, number: int, *, is_resolved: bool) -> PortFacts:
    opened = {
        "device": LONG.format(number),
        "driver": "net_memif",
        "mac": "02:00:00:00:00:01",
        "link_up": True,
        "line_rate_bps": 1e10,
        "receive_ring_frames": 2048,
        "transmit_ring_frames": 2048,
        "hardware_stamps": "none",
        "flow_control": "unknown",
        "receive_count": "exact",
        "control_queue": "shared",
        "fast_free": False,
    }
    resolved: dict[str, object] = (
        {side: {"dut_mac": "02:00:00:00:d0:01", "static": False}} if is_resolved else {}
    )
    interface = InterfaceFacts(mtu=9000, flow_hash={"udp4": "sdfn", "udp6": None})
    return port_facts(
        side,
        opened={side: opened},
        resolved=resolved,
        workers=lay_out_workers(range(8), 2),
        interface=interface,
    )


@pytest.mark.parametrize(("way", "plan"), [(OWN_LOOP_WAY, "gateway_v4"), (DUT_WAY, "gateway_v6")])
def test_a_ceiling_tells_what_happened_above_it(way: str, plan: str) -> None:
    """MLR-14: rates offered, and the reasons."""
    address_plan = make_plan(plan)
    profile = Profile(
        plan=address_plan,
        frame_size=address_plan.smallest_frame_size,
        seed=1,
        directions=("forward", "reverse"),
    )
    ceiling = find_tester_ceiling(
        SimulatedMeasurer(limit_fps=1e9, tester_ceiling_fps=700_000),
        max_fps=1e6,
        min_fps=1e3,
        duration_s=1.0,
        is_loss_ours=way == OWN_LOOP_WAY,
    )
    text = shown(
        *ceiling_lines(
            CeilingEntry(
                way=way,
                profile=profile,
                ceiling=ceiling,
                duration_s=1,
                cpus=(1, 2),
                limits=Limits(overdue_after_us=5000),
            )
        )
    )
    assert "The tester keeps 700,000 fps per direction; offered: 700,000 fps." in text
    assert re.search("does not keep 7\\d\\d,\\d{3} fps; it offered 700,000 fps:\\n +offered_load: ", text)
    assert "The highest load that it offered, on schedule or not: 700,000 fps" in text
    assert "limits that differ from the defaults: overdue_after_us 5000." in text
    assert f"UDP over IPv{address_plan.ip_version}" in text
    assert ("a lost frame was lost by the tester" in text) == (way == OWN_LOOP_WAY)


def test_a_tester_that_keeps_nothing_is_told_so() -> None:
    profile = Profile(plan=make_plan("gateway_v4"), frame_size=64, seed=1, directions=("forward",))
    ceiling = find_tester_ceiling(
        SimulatedMeasurer(limit_fps=1, invalid_probability=1.0), max_fps=1e6, min_fps=1e5, duration_s=1.0
    )
    text = shown(
        *ceiling_lines(
            CeilingEntry(
                way=DUT_WAY, profile=profile, ceiling=ceiling, duration_s=1, cpus=(1,), limits=Limits()
            )
        )
    )
    assert "No load could be kept, down to 100 kfps per direction." in text
    assert "but by what took the tester's CPU away" in " ".join(text.split())
