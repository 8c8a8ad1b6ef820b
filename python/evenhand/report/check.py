# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a host offers, what a testbed's ports are, and what the tester keeps there; 80 columns
hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from evenhand.base.cpu_list import format_cpu_list
from evenhand.base.errors import HostError
from evenhand.base.programs import in_checkout
from evenhand.base.table import Cell, Column, Table, make_table
from evenhand.base.units import format_count, format_line_rate, format_rate, format_ratio
from evenhand.procedure import DUT_WAY, CableState, CableTest, CeilingEntry
from evenhand.report.plain import STAMPS
from evenhand.rig import HostSurvey, Part, PortFacts, State
from evenhand.trial import ComparedClock, Limits, Verdict

STATE_STYLES = {State.GOOD: "good", State.WEAK: "flag", State.MISSING: "bad", State.UNKNOWN: "small"}
CABLE_STYLES = {CableState.GOOD: "good", CableState.BAD: "bad", CableState.ABSENT: "small"}
PART_COMMANDS = {
    Part.REFERENCE: in_checkout("make demo", installed="evenhand demo"),
    Part.LAB: in_checkout("make demo-linux", installed="sudo evenhand demo --dut linux"),
    Part.INTERFACES: "ports net_af_packet, net_af_xdp of a testbed",
    Part.NICS: "PCI ports of a testbed (vfio-pci, mlx)",
}
_INDENT = "    "


def host_table(survey: HostSurvey, *, title: str = "This machine") -> Table:
    """A row for each finding."""
    rows: Iterator[list[str | Cell]] = (
        [finding.name, Cell(str(finding.state), STATE_STYLES[finding.state]), finding.found]
        for finding in survey.findings
    )
    return make_table([_name("check"), _name("state"), "found"], rows, title=title)


def parts_table(survey: HostSurvey) -> Table:
    """What can run here."""
    rows: Iterator[list[str | Cell]] = (
        [readiness.part.label, Cell("yes", "good"), PART_COMMANDS[readiness.part]]
        if readiness.can_run
        else [readiness.part.label, Cell("no", "bad"), f"missing: {', '.join(readiness.missing)}"]
        for readiness in survey.parts
    )
    return make_table(
        [_name("part"), _name("runs"), "how it runs, or what is missing"], rows, title="What can run here"
    )


def advice_lines(survey: HostSurvey) -> Iterator[str]:
    """What to do about each finding that is weak or missing; commands are alone on their lines, to be
    copied."""
    for finding in survey.with_advice:
        needed = (
            f" (for {', '.join(part.label for part in finding.missing_for)})" if finding.missing_for else ""
        )
        if set(finding.missing_for) == set(Part):
            needed = " (for all)"
        yield f"{finding.name}{needed}: {finding.advice}"
        for command in finding.commands:
            yield f"{_INDENT}{command}"


def nics_table(survey: HostSurvey) -> Table | None:
    """A row for each PCI NIC; None if there is none."""
    nics = _nics(survey)
    if not nics:
        return None
    rows = []
    for nic in nics:
        library = "none known" if nic["dpdk_driver"] is None else f"net_{nic['dpdk_driver']}"
        if nic["missing_package"] is not None:
            library += " (missing)"
        use = (
            "ready"
            if nic["is_ready"]
            else "do not bind"
            if nic["warning"]
            else "to be bound"
            if nic["bind_command"]
            else "not ready"
        )
        interfaces = ", ".join(nic["interfaces"]) or "none"
        rows.append([nic["address"], nic["driver"] or "nothing", interfaces, library, use])
    return make_table(
        [_name("NIC"), "bound to", "interface", "driver of DPDK", "for a tester"], rows, title="NICs"
    )


def nic_lines(survey: HostSurvey) -> Iterator[str]:
    """The commands that give each NIC to DPDK and take it back, and which must stay; commands are alone on
    their lines, to be copied."""
    nics = _nics(survey)
    packages = sorted(
        {nic["missing_package"] for nic in nics if nic["missing_package"] is not None and not nic["warning"]}
    )
    groups = (
        (
            "To install drivers of DPDK that are missing:",
            [f"sudo apt-get install {package}" for package in packages],
        ),
        (
            "To give a NIC to DPDK, provided that none of its cables leads to a network that people use:",
            [nic["bind_command"] for nic in nics],
        ),
        ("To give a NIC back to the kernel:", [nic["give_back_command"] for nic in nics]),
    )
    for title, commands in groups:
        if any(commands):
            yield title
            yield from (f"{_INDENT}{command}" for command in commands if command)
    for nic in nics:
        if nic["warning"]:
            yield f"Do not bind {nic['address']}: {nic['warning']}."


def _nics(survey: HostSurvey) -> list[dict[str, Any]]:
    return [nic for finding in survey.findings for nic in finding.facts.get("nics", ())]


FLOW_CONTROL = {
    "off": "switched off",
    "on": "on; it cannot be switched off",
    "none": "none: a software port",
    "unknown": "unknown: the driver does not report it",
}
"""Ethernet PAUSE, by what the engine says."""
RECEIVE_COUNT = {"exact": "exact: compared with the frames seen", "unknown": "unknown: not compared"}


def ports_table(ports: Sequence[PortFacts], *, title: str = "Ports") -> Table:
    """A column for each port."""
    rows: list[tuple[str, list[str]]] = [
        ("device", [port.device for port in ports]),
        ("driver", [port.driver for port in ports]),
        ("link", ["up" if port.link_up else "down" for port in ports]),
        (
            "line rate",
            [
                "not known" if port.line_rate_bps is None else format_line_rate(port.line_rate_bps)
                for port in ports
            ],
        ),
        ("MAC", [port.mac for port in ports]),
        ("MTU", ["not known" if port.mtu is None else format_count(port.mtu) for port in ports]),
        ("receive", [_queues(port.receive_queues, port.receive_ring_frames) for port in ports]),
        ("transmit", [_queues(port.transmit_queues, port.transmit_ring_frames) for port in ports]),
        ("hardware stamps", [STAMPS[port.hardware_stamps] for port in ports]),
        ("flow control", [FLOW_CONTROL[port.flow_control] for port in ports]),
        ("frames counted", [RECEIVE_COUNT[port.receive_count] for port in ports]),
        ("hash", [_hash(port.flow_hash) for port in ports]),
        ("DUT's MAC", [_dut_mac(port) for port in ports]),
    ]
    if any(port.control_queue == "own" for port in ports):
        rows.append(("answers", [_answers(port) for port in ports]))
    if any(port.numa_node is not None for port in ports):
        rows.append(("NUMA node", [_node(port) for port in ports]))
    titles = [_name(""), *(port.side for port in ports)]
    return make_table(titles, ([name, *cells] for name, cells in rows), title=title)


def far_lines(ports: Sequence[PortFacts]) -> Iterator[str]:
    """What to do where a CPU reaches over to another NUMA node for each frame; nothing elsewhere."""
    for port in ports:
        if port.far_cpus:
            yield (
                f"The {port.side} port is on NUMA node {port.numa_node}, and the tester's CPU"
                f" {format_cpu_list(port.far_cpus)} is not: each frame goes over the link between the nodes,"
                f" so the tester's ceiling is lower. Use CPUs of node {port.numa_node}: cat"
                f" /sys/devices/system/node/node{port.numa_node}/cpulist"
            )


def _node(port: PortFacts) -> str:
    if port.numa_node is None:
        return "not known"
    far = f"; CPU {format_cpu_list(port.far_cpus)} is on another" if port.far_cpus else ""
    return f"{port.numa_node}{far}"


def _answers(port: PortFacts) -> str:
    """Only ports of NICs may have a queue for them; what it allows is shown with it."""
    queue = "by a queue of their own" if port.control_queue == "own" else "by the first queue"
    return queue + (", so that buffers are freed at once" if port.fast_free else "")


def cable_table(test: CableTest, *, engine: str = "") -> Table:
    """A row for each thing that was looked at.

    Args:
        engine: With several engines, the one whose ports they are.
    """
    rows: Iterator[list[str | Cell]] = (
        [check.name, Cell(str(check.state), CABLE_STYLES[check.state]), check.found] for check in test.checks
    )
    title = f"The ports{engine and ' of engine '}{engine}, joined by a cable"
    return make_table(["check", _name("state"), "found"], rows, title=title)


def dut_line(unresolved: HostError | None, ports: Sequence[PortFacts]) -> str:
    """Whether the DUT answered."""
    if unresolved is not None:
        # With MACs it has answered, but not as the testbed says.
        what = "has not been resolved" if all(port.dut_mac is None for port in ports) else "cannot be used"
        return f"The DUT {what}: {unresolved}. {unresolved.next_step}"
    if all(port.is_dut_mac_static for port in ports):
        return "The DUT's MACs are taken from the testbed file and were not verified."
    return "The DUT is resolved."


def unreached_line(unreached: HostError) -> str:
    """Why the DUT is not looked into, though the testbed file says how: every verb that measures ends with
    this error."""
    return f"The DUT cannot be reached over SSH: {unreached}. {unreached.next_step}"


def ceiling_lines(entry: CeilingEntry) -> Iterator[Text]:
    """The highest load that the tester kept, what it was made with, and what happened above."""
    ceiling, profile = entry.ceiling, entry.profile
    way = "through the DUT" if entry.way == DUT_WAY else "in its own loop, no DUT"
    yield Text(f"The tester's ceiling, {way}", style="bold")
    both = "each of both directions" if len(profile.directions) == 2 else "one direction"
    cpus = f"CPU{'s' if len(entry.cpus) > 1 else ''} {format_cpu_list(entry.cpus)}"
    yield Text(
        f"{profile.plan.label}, {profile.address_words}, {profile.protocol}, {profile.octets}, {both}, {cpus}"
    )
    changed = [
        f"{key} {value:g}"
        for key, value in entry.limits.to_contract().items()
        if value != Limits().to_contract().get(key)
    ]
    if changed:
        yield Text(f"Judged by limits that differ from the defaults: {', '.join(changed)}.")
    if ceiling.rate_fps is None:
        yield Text(
            f"No load could be kept, down to {format_rate(ceiling.min_fps)} per direction.", style="red"
        )
    else:
        at = f"; offered: {format_count(round(ceiling.offered_fps))} fps" if ceiling.offered_fps else ""
        more = ": the maximum that was tried" if ceiling.is_at_maximum else ""
        line = f"The tester keeps {format_count(ceiling.rate_fps)} fps per direction{more}{at}."
        yield Text(line, style="green")
    if ceiling.was_stopped:
        yield Text("The search was stopped before its end.")
    if ceiling.above_fps is not None:
        yield Text(
            f"It does not keep {format_count(ceiling.above_fps)} fps; it offered"
            f" {format_count(round(ceiling.offered_above_fps or 0))} fps:"
        )
        for reason in ceiling.reasons_above:
            yield Text(f"{_INDENT}{reason.code}: {reason.text}")
        if ceiling.is_disturbed:
            yield Text(
                "It offered twice that in other trials: this trial was ended not by the load, but by"
                " what took the tester's CPU away. See absences above."
            )
    if ceiling.maximum_offered_load_fps is not None:
        yield Text(
            "The highest load that it offered, on schedule or not:"
            f" {format_count(round(ceiling.maximum_offered_load_fps))} fps."
        )
    counts = ", ".join(
        f"{sum(trial.verdict is verdict for trial in ceiling.trials)} {verdict}" for verdict in Verdict
    )
    if ceiling.is_loss_ours:
        judged = "a lost frame was lost by the tester, so only PASS counts"
    else:
        worst = max((trial.loss_ratio for trial in ceiling.trials if trial.is_valid), default=0.0)
        judged = f"what was lost (at most {format_ratio(worst)}) was lost by the DUT and is ignored"
    yield Text(f"{len(ceiling.trials)} trials: {counts}; {judged}.")


def _name(title: str) -> Column:
    return Column(title, is_name=True)


def _queues(queues: int, ring_frames: int) -> str:
    return f"{queues} queue{'s' if queues != 1 else ''} of {format_count(ring_frames)} frames"


def _hash(flow_hash: Mapping[str, str | None] | None) -> str:
    known = {flow: letters for flow, letters in (flow_hash or {}).items() if letters is not None}
    return ", ".join(f"{flow}: {letters}" for flow, letters in known.items()) or "not known"


def _dut_mac(port: PortFacts) -> str:
    if port.dut_mac is None:
        return "not resolved"
    return f"{port.dut_mac} ({'from the file' if port.is_dut_mac_static else 'answered'})"


def engine_title(name: str, ssh: str | None) -> str:
    return f"engine {name}, on {'this machine' if ssh is None else ssh}"


def clock_lines(clocks: Mapping[str, ComparedClock], limit_us: float) -> Iterator[str]:
    """How far each engine's clock is from this machine's, and whether trials can start together.

    Args:
        clocks: Clocks by the engine's name.
        limit_us: Limit of a valid trial for the offset's uncertainty, in us: the offset itself is corrected.
    """
    for name, clock in clocks.items():
        line = (
            f"Clock of engine {name}, against this machine's: {clock.offset_us:+,.0f} us"
            f" (give or take {clock.uncertainty_us:,.0f} us)."
        )
        if clock.uncertainty_us > limit_us:
            line += (
                f" Trials will be INVALID: how far the starts are apart must be known to {limit_us:,.0f} us."
                " Use a shorter way to that host, or raise start_difference in [limits]."
            )
        yield line
