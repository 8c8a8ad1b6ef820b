# SPDX-License-Identifier: Apache-2.0
"""DUT: a witness inside it, which reads its counters before and after a trial and never while frames are
sent.

What it saw is kept with the trial as `dut` (contract/witness.schema.json), and nothing is decided by it: the
verdict is the tester's alone (SEED-07).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.dut.readings import InterfaceReading, Reading, parse_reading, reading_command
from evenhand.dut.shell import Shell

READING_TIMEOUT_S = 20.0
"""A neighbour table of 100,000 entries takes seconds to be counted."""
LOSSES_OF_INTERFACE = ("receive_drops", "receive_misses", "send_drops")
LOSSES_OF_IP = ("discards", "send_discards", "no_routes", "header_errors", "address_errors")
"""Together with those of the interfaces and of connection tracking: each packet that a kernel counts as
dropped is in one of them."""

OnTrouble = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class DutWitness:
    """Looks into a Linux DUT around each trial. One command, and so one round trip, for each look."""

    shell: Shell
    interfaces: Mapping[str, str]
    """Names of interfaces by their places."""
    where: str
    """For errors."""
    on_trouble: OnTrouble = lambda text: None
    """Called once when the DUT cannot be read any longer. The trials go on: their verdicts do not depend on
    the witness."""
    _has_reported: bool = field(default=False, init=False)

    def read(self) -> Reading:
        """All counters now. HostError if the DUT cannot be reached, or does not report them."""
        answer = self.shell.run(reading_command(self.interfaces), timeout_s=READING_TIMEOUT_S)
        return parse_reading(answer.stdout, self.interfaces, where=self.where)

    def watch(self, trial: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make the trial, and add to its document what the DUT counted meanwhile. See `trial.Witness`."""
        before, why_not = self._look()
        document = trial()
        if before is None:
            return {**document, "dut": unseen(why_not)}
        after, why_not = self._look()
        if after is None:
            return {**document, "dut": unseen(why_not)}
        return {**document, "dut": difference(before, after, document)}

    def _look(self) -> tuple[Reading | None, str]:
        try:
            return self.read(), ""
        except EvenhandError as error:
            if not self._has_reported:
                self._has_reported = True
                self.on_trouble(
                    f"The DUT can no longer be observed; trials continue without its counters: {error.what}"
                )
            return None, error.what


def unseen(why: str) -> dict[str, Any]:
    """Instead of counters: why there are none."""
    return {"error": why}


def difference(before: Reading, after: Reading, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the DUT counted between two readings, next to what the tester counted of the trial between them.

    A counter that went down, as after a driver was loaded anew, is null.

    Args:
        document: The engine's document of the trial.
    """
    stopped_s = document.get("stopped_early_s")
    sending_s = float(document["intended_duration_s"] if stopped_s is None else stopped_s)
    interfaces = {
        place: _of_interface(before.interfaces[place], found)
        for place, found in after.interfaces.items()
        if place in before.interfaces
    }
    ip = {version: _less(before.ip.get(version, {}), counters) for version, counters in after.ip.items()}
    connections = _of_connections(before.connections, after.connections)
    jool = {name: count for name, count in _less(before.jool, after.jool).items() if count != 0}
    lost = sum(direction["lost_frames"] for direction in document["directions"].values())
    dropped = sum(
        counters.get(name) or 0
        for names, each in ((LOSSES_OF_INTERFACE, interfaces.values()), (LOSSES_OF_IP, ip.values()))
        for counters in each
        for name in names
    ) + (connections.get("drop") or 0)
    return {
        "error": None,
        "interval_s": round(after.uptime_s - before.uptime_s, 2),
        "sending_s": sending_s,
        "cpus": [
            {"cpu": cpu, **_of_cpu(before, after, cpu, sending_s=sending_s)}
            for cpu in sorted(before.cpus.keys() & after.cpus.keys())
        ],
        "softnet": [
            {"cpu": cpu, **_less(before.softnet[cpu], after.softnet[cpu])}
            for cpu in sorted(before.softnet.keys() & after.softnet.keys())
        ],
        "ip": ip,
        **({"connections": connections} if connections else {}),
        **({"jool": jool} if after.jool else {}),
        "interfaces": interfaces,
        "dropped_packets": dropped,
        "lost_frames": lost,
        "unexplained_frames": lost - dropped,
    }


def _of_cpu(before: Reading, after: Reading, cpu: int, *, sending_s: float) -> dict[str, float | None]:
    """Busy time relative to the time of sending: in the waits around it a router has next to nothing to
    do."""
    busy_s = after.cpus[cpu].busy_s - before.cpus[cpu].busy_s
    softirq_s = after.cpus[cpu].softirq_s - before.cpus[cpu].softirq_s
    return {
        "busy_s": round(busy_s, 3),
        "softirq_s": round(softirq_s, 3),
        "busy_share": None if sending_s <= 0 else round(min(max(busy_s / sending_s, 0.0), 1.0), 4),
        "softirq_share": None if sending_s <= 0 else round(min(max(softirq_s / sending_s, 0.0), 1.0), 4),
    }


def _of_connections(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, Any]:
    if "entries" not in before or "entries" not in after:
        return {}
    counted = {name: count for name, count in _less(before, after).items() if name != "entries"}
    return {"entries": [before["entries"], after["entries"]], **counted}


def _of_interface(before: InterfaceReading, after: InterfaceReading) -> dict[str, Any]:
    return {
        "name": after.name,
        **_less(before.counters, after.counters),
        "queues": [
            {"queue": queue, **_less(before.queues[queue], counters)}
            for queue, counters in after.queues.items()
            if queue in before.queues
        ],
        "no_queues": after.no_queues,
        "nic": {name: count for name, count in _less(before.of_nic, after.of_nic).items() if count != 0},
        "neighbors": {
            version: [before.neighbors.get(version), count] for version, count in after.neighbors.items()
        },
    }


def _less(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int | None]:
    return {
        name: count - before[name] if count >= before[name] else None
        for name, count in after.items()
        if name in before
    }


def open_witness(
    shell: Shell, interfaces: Mapping[str, str], *, where: str, on_trouble: OnTrouble
) -> DutWitness:
    """A witness that has looked once, so that what cannot be read is reported before anything is sent.
    HostError if the DUT does not report its counters."""
    witness = DutWitness(shell=shell, interfaces=interfaces, where=where, on_trouble=on_trouble)
    witness.read()
    return witness
