# SPDX-License-Identifier: Apache-2.0
"""Counters of a DUT from what its commands print; of drivers that are not here, from files
(files/README.md)."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.dut.readings import END, MARK, Reading, parse_reading, reading_command
from evenhand.dut.readings_queues import FILTER, kernel_queues_command, read_kernel_queues, read_queues
from evenhand.dut.witness import difference
from tests.errors import raises

FILES = Path(__file__).parent / "files"
QUEUES: dict[str, dict[int, dict[str, int]]] = {
    "ixgbe": {
        0: {"sent_packets": 5000, "received_packets": 7000},
        1: {"sent_packets": 4000, "received_packets": 3000},
    },
    "ice": {0: {"sent_packets": 100, "received_packets": 600}, 1: {"received_packets": 300}},
    "i40e": {0: {"received_packets": 10, "sent_packets": 29}, 1: {"received_packets": 20}},
    "mlx5_core": {
        0: {"received_packets": 250, "sent_packets": 990, "drops": 1},
        1: {"received_packets": 750},
    },
    "virtio_net": {
        0: {"received_packets": 40, "drops": 1, "sent_packets": 99},
        1: {"received_packets": 60, "drops": 0},
    },
    "virtio_net-6.10": {0: {"drops": 0}},
    "veth": {0: {"received_packets": 5003, "drops": 2}},
    "vmxnet3": {
        0: {"received_packets": 15, "sent_packets": 73},
        1: {"received_packets": 85, "sent_packets": 30},
    },
    "bnxt_en": {0: {"received_packets": 14, "sent_packets": 5, "drops": 9}, 1: {"received_packets": 22}},
    "ena": {0: {"received_packets": 8, "sent_packets": 7}, 1: {"received_packets": 9}},
    "fsl_dpaa2_eth": {},
}
NIC = {
    "ixgbe": {"rx_missed_errors": 42, "rx_no_dma_resources": 7},
    "ice": {"rx_dropped": 5, "rx_dropped.nic": 3},
    "i40e": {"port.rx_dropped": 4, "port.rx_discards": 6},
    "fsl_dpaa2_eth": {
        "[hw] rx discarded frames": 4,
        "[hw] rx nobuffer discards": 5120,
        "[hw] tx rejected frames": 7,
        "[mac] rx frame discards": 9,
    },
    "mlx5_core": {"rx_out_of_buffer": 13, "rx_discards_phy": 2, "rx_steer_missed_packets": 1},
}
LINK = (
    '[{{"ifname":"{name}","stats64":{{"rx":{{"bytes":1,"packets":{received},"errors":0,"dropped":{dropped},'
    '"missed_errors":{missed}}},'
    '"tx":{{"bytes":1,"packets":{sent},"errors":0,"dropped":0}}}}}}]'
)


@pytest.mark.parametrize("driver", QUEUES)
def test_every_driver_tells_its_queues_in_its_own_words(driver: str) -> None:
    """R2544-02: packets by queue, and no counter that only looks like one; what the NIC lost stands by its
    own names."""
    queues, of_nic = read_queues((FILES / f"{driver}-S.txt").read_text())
    assert queues == QUEUES[driver]
    assert {name: count for name, count in of_nic.items() if count} == NIC.get(driver, {})


@pytest.mark.parametrize("driver", QUEUES)
def test_the_dut_sends_no_line_that_is_not_read(driver: str) -> None:
    """A few hundred bytes: what the DUT's grep leaves gives the same."""
    text = (FILES / f"{driver}-S.txt").read_text()
    kept = "\n".join(line for line in text.splitlines() if re.search(FILTER, line))
    assert read_queues(kept) == read_queues(text)
    assert len(kept) < 0.8 * len(text)


def output(
    *,
    uptime: float = 100.0,
    received: int = 10,
    dropped: int = 0,
    missed: int = 0,
    busy: int = 0,
    softirq: int = 0,
) -> str:
    parts = []
    for side, name in (("left", "eth1"), ("right", "eth2")):
        link = LINK.format(name=name, received=received, sent=received, dropped=dropped, missed=missed)
        parts += [
            f"{MARK} queues {side}",
            "exit 0",
            f"     rx_queue_0_packets: {received}",
            f"     rx_missed_errors: {missed}",
            f"{MARK} link {side}",
            link,
            f"{MARK} neighbors {side}",
            "3",
            "1",
        ]
    parts += [
        f"{MARK} ip",
        "Ip: Forwarding InHdrErrors InAddrErrors ForwDatagrams InDiscards OutDiscards OutNoRoutes",
        f"Ip: 1 0 0 {received} 0 0 0",
        f"Ip6OutForwDatagrams \t{received}",
        "Ip6InDiscards 0",
        f"{MARK} softnet",
        "0000000a 00000000 00000001 00000000",
        "0000000b 00000002 00000000 00000003",
        f"{MARK} cpus",
        "100",
        f"cpu0 {busy} 0 100 900 5 0 {softirq} 50 0 0",
        "cpu3 0 0 0 1000 0 0 0 0 0 0",
        f"{MARK} uptime",
        f"{uptime} 1.0",
        f"{MARK} {END}",
    ]
    return "\n".join(parts)


INTERFACES = {"left": "eth1", "right": "eth2"}


def read(text: str) -> Reading:
    return parse_reading(text, INTERFACES, where="r1")


def test_a_reading_has_cpus_interfaces_and_neighbours() -> None:
    """Steal, idle and waiting for disks are no work; a CPU that is off leaves a gap in the numbers."""
    seen = read(output(busy=200, softirq=30))
    assert seen.cpus[0].busy_s == pytest.approx(3.3)
    assert seen.cpus[0].softirq_s == pytest.approx(0.3)
    assert list(seen.cpus) == [0, 3]
    assert seen.softnet[3] == {"processed": 11, "dropped": 2, "squeezed": 0}
    assert seen.interfaces["left"].neighbors == {"ipv4": 3, "ipv6": 1}
    assert seen.ip["ipv6"]["forwarded_packets"] == 10


CONNECTIONS = """\
4000
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop
00000fa0  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 0000000a 00000010 00000000
00000fa0  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000002 00000003
"""


def with_connections(part: str, text: str) -> str:
    return text.replace(f"{MARK} softnet", f"{MARK} connections\n{part}{MARK} softnet")


def test_a_dut_that_tracks_connections_tells_how_many_and_which_failed() -> None:
    """R9693-20: recorded, and a drop explains a lost frame; the counters of all CPUs together."""
    before = read(
        with_connections(CONNECTIONS.replace("4000", "0").replace("00000010", "00000001"), output())
    )
    after = read(with_connections(CONNECTIONS, output(uptime=109.5)))
    assert after.connections == {
        "entries": 4000,
        "invalid": 1,
        "insert_failed": 11,
        "drop": 18,
        "early_drop": 3,
    }
    seen = difference(before, after, TRIAL)
    assert seen["connections"] == {
        "entries": [0, 4000],
        "invalid": 0,
        "insert_failed": 0,
        "drop": 15,
        "early_drop": 0,
    }
    assert seen["dropped_packets"] == 15
    without_counters = read(with_connections("12\n", output()))
    assert without_counters.connections == {"entries": 12}
    assert "connections" not in difference(read(output()), after, TRIAL)


JOOL = """\
JSTAT_RECEIVED6,900
JSTAT_SUCCESS,1500
JSTAT_SESSIONS,400
JSTAT_POOL4_MISMATCH,7
"""


def test_a_dut_on_which_jool_translates_tells_what_that_counts() -> None:
    """R9693-20: its own table, not the kernel's, which has nothing of it; with state or without."""

    def with_jool(program: str, part: str) -> Reading:
        text = with_connections(CONNECTIONS, output())
        return read(text.replace(f"{MARK} softnet", f"{MARK} {program}\n{part}{MARK} softnet"))

    before = with_jool("jool", JOOL.replace("900", "0").replace("400", "0"))
    seen = difference(before, with_jool("jool", JOOL), TRIAL)
    assert seen["connections"] == {"entries": [0, 400]}
    assert seen["jool"] == {"JSTAT_RECEIVED6": 900, "JSTAT_SESSIONS": 400}
    without_state = with_jool("jool_siit", JOOL)
    assert without_state.connections["entries"] == 4000
    assert difference(without_state, without_state, TRIAL)["jool"] == {}
    assert "jool" not in difference(read(output()), read(output()), TRIAL)


DIRECTION = {"lost_frames": 40}
TRIAL: dict[str, Any] = {
    "intended_duration_s": 2.0,
    "directions": {"forward": DIRECTION, "reverse": DIRECTION},
}


def test_a_difference_has_shares_of_the_sending_time_and_what_is_unexplained() -> None:
    """SEED-07: lost by the tester's count, less what the DUT says that it dropped."""
    before, after = (
        read(output()),
        read(output(uptime=109.5, received=1010, dropped=20, missed=10, busy=100, softirq=50)),
    )
    seen = difference(before, after, TRIAL)
    cpu = seen["cpus"][0]
    assert (cpu["busy_s"], cpu["busy_share"], cpu["softirq_share"]) == (1.5, 0.75, 0.25)
    assert seen["interval_s"] == 9.5
    assert seen["interfaces"]["left"]["queues"] == [{"queue": 0, "received_packets": 1000}]
    assert seen["interfaces"]["left"]["nic"] == {"rx_missed_errors": 10}
    assert (seen["lost_frames"], seen["dropped_packets"], seen["unexplained_frames"]) == (80, 60, 20)


def test_a_counter_that_went_back_is_not_known() -> None:
    """As after a driver was loaded anew in between: a negative number of packets would be a lie, and so would
    be none."""
    before, after = read(output(received=5000)), read(output(received=10))
    seen = difference(before, after, TRIAL)
    assert seen["interfaces"]["left"]["received_packets"] is None
    assert seen["interfaces"]["left"]["queues"] == [{"queue": 0, "received_packets": None}]


def test_a_trial_that_ended_early_is_measured_by_the_time_that_it_lasted() -> None:
    before, after = read(output()), read(output(busy=50, softirq=0))
    assert difference(before, after, {**TRIAL, "stopped_early_s": 0.5})["cpus"][0]["busy_share"] == 1.0


@pytest.mark.parametrize("answer", ["", "sh: 1: Syntax error", output().replace(f"{MARK} {END}", "")])
def test_an_answer_that_was_cut_off_is_no_reading(answer: str) -> None:
    with raises("rig.dut-answer-not-understood") as refused:
        read(answer)
    assert refused.value.where == "r1"
    assert refused.value.next_step


def test_an_interface_that_is_not_there_is_named() -> None:
    """With the DUT's own words."""
    text = output().replace(
        LINK.format(name="eth1", received=10, sent=10, dropped=0, missed=0), 'Device "eth1" does not exist.'
    )
    with raises("rig.dut-interface-missing", match="'eth1'"):
        read(text)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("exit 127\nsh: 1: ethtool: not found", "ethtool is not installed on the DUT"),
        ("exit 94\nno stats available", "no stats available"),
        ("exit 0", "its driver has no counters per queue that are known to Evenhand"),
    ],
)
def test_a_driver_that_tells_no_queues_is_asked_no_more_than_that(answer: str, why: str) -> None:
    """The rest is read all the same."""
    text = output().replace("exit 0\n     rx_queue_0_packets: 10\n     rx_missed_errors: 0", answer, 1)
    seen = read(text)
    assert seen.interfaces["left"].no_queues == why
    assert seen.interfaces["left"].counters["received_packets"] == 10
    assert seen.interfaces["right"].no_queues is None
    assert difference(seen, replace(seen, uptime_s=101.0), TRIAL)["interfaces"]["left"]["queues"] == []


def with_kernel_queues(told: str, *, ethtool: str) -> Reading:
    text = output().replace("     rx_queue_0_packets: 10", ethtool, 1)
    return read(text.replace(f"{MARK} link left", f"{MARK} kernel queues left\n{told}\n{MARK} link left"))


def test_packets_of_a_queue_that_only_the_kernel_tells_are_counted() -> None:
    """As of virtio_net since Linux 6.10, whose `ethtool -S` has drops of each queue and no packets."""
    told = "received 0 700\nreceived 1 300\nsent 0 20\nreceived 10 1"
    found = with_kernel_queues(told, ethtool="     rx1_drops: 7\n     rx0_drops: 0").interfaces["left"]
    assert list(found.queues.items()) == [
        (0, {"received_packets": 700, "sent_packets": 20, "drops": 0}),
        (1, {"received_packets": 300, "drops": 7}),
        (10, {"received_packets": 1}),
    ]
    assert found.no_queues is None


def test_packets_that_both_tell_count_once() -> None:
    found = with_kernel_queues("received 0 10\nsent 0 5", ethtool="     rx_queue_0_packets: 10").interfaces[
        "left"
    ]
    assert found.queues == {0: {"received_packets": 10, "sent_packets": 5}}


@pytest.mark.parametrize(
    "told", ["", "received 0", "received x 5", "received 0 5 6", "sh: 1: perl: Syntax error"]
)
def test_a_kernel_that_tells_nothing_of_queues_changes_nothing(told: str) -> None:
    assert with_kernel_queues(told, ethtool="").interfaces["left"].queues == {}


def test_a_dut_without_perl_is_told_where_nothing_else_tells_its_queues() -> None:
    assert "perl is not installed" in (
        with_kernel_queues("no perl", ethtool="").interfaces["left"].no_queues or ""
    )
    assert (
        with_kernel_queues("no perl", ethtool="     rx_queue_0_packets: 10").interfaces["left"].no_queues
        is None
    )


def test_this_kernels_own_counters_are_those_of_its_interfaces() -> None:
    """Asked as the DUT is asked. Most interfaces tell nothing, and are answered with nothing; none is
    answered with an error."""
    for interface in Path("/sys/class/net").iterdir():
        if not (interface / "ifindex").exists():
            continue
        asked = subprocess.run(
            ["sh", "-c", kernel_queues_command(interface.name)], capture_output=True, text=True, check=True
        )
        assert asked.stderr == ""
        for counters in read_kernel_queues(asked.stdout).values():
            assert set(counters) <= {"received_packets", "sent_packets"}


def test_names_of_interfaces_are_quoted() -> None:
    """They come from a file; a command of a root shell is made of them."""
    command = reading_command({"left": "eth1; reboot", "right": "$(reboot)"})
    assert "'eth1; reboot'" in command
    assert "'$(reboot)'" in command
    assert "dev eth1; reboot" not in command
