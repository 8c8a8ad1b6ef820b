# SPDX-License-Identifier: Apache-2.0
"""Exchange: a siitperf.conf, and a command line of siitperf, become a testbed file, commands, and a row for
each key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from evenhand.base.errors import RequestError
from evenhand.exchange.outcome import Became, Command, Imported, Row
from evenhand.exchange.siitperf_command import STATEFUL, SiitperfCommand, read_command
from evenhand.exchange.siitperf_connections import (
    INITIATOR_ON_THE_RIGHT,
    argument_row,
    connection_notes,
    key_row,
    order_of,
)
from evenhand.exchange.siitperf_file import KEYS, PARTS, Part, SiitperfFile, read_siitperf
from evenhand.exchange.siitperf_plan import SIDE
from evenhand.exchange.siitperf_ports import FoundPorts, find_ports
from evenhand.exchange.siitperf_traffic import Traffic, traffic_of
from evenhand.exchange.testbed_text import Given, PortFacts, write_testbed
from evenhand.plan import HostRange, SideName
from evenhand.procedure.registry import CAPACITY, CONNECTIONS, LATENCY, PDV, THROUGHPUT

NOT_YET = "there is no plan whose connections go from IPv4 to IPv6, or beside which there is other traffic"
STATEFUL_KEYS = ("Stateful", "Enumerate-ports", "Enumerate-ips", "Responder-tuples", "Responder-ports")
_SHOWN_DEFAULTS = (
    "IP-L-Vers",
    "IP-R-Vers",
    "Fwd-var-sport",
    "Fwd-var-dport",
    "Rev-var-sport",
    "Rev-var-dport",
)
"""Keys whose default decides what is sent, so that it has a row where the file is silent."""


def import_siitperf(
    path: Path, given: Given, *, command: str | None, plan: str | None, testbed: Path
) -> Imported:
    """Read the file, and write down what it is here. Nothing of it names a device, is run, or reaches DPDK as
    an option.

    Args:
        command: A command line of siitperf; None: that of its search script is taken, with all frames in the
            foreground.
        plan: The user's choice of an address plan; None: the nearest.
        testbed: Where the testbed file will be, for the commands.

    Raises:
        RequestError: The file or the command line is wrong; a plan, device or CPU of the user's is.
    """
    file = read_siitperf(path)
    is_stateful = bool(file.value("Stateful"))
    is_backwards = file.value("IP-L-Vers") == 4 and file.value("IP-R-Vers") == 6
    if file.value("Stateful") == INITIATOR_ON_THE_RIGHT or (is_backwards and not is_stateful):
        file = replace(file, is_mirrored=True)
    typed = None if command is None else read_command(command, is_stateful=is_stateful)
    traffic = traffic_of(file, typed, plan)
    ports = find_ports(file, has_state=traffic.has_state)
    names = tuple(found.name for found in traffic.plans)
    written = write_testbed(
        "a siitperf.conf",
        given,
        ports={SIDE[part]: _port_facts(file, part) for part in PARTS},
        cpus=_cpus(file),
        cpus_from=file.as_written(", ".join(_cpu_keys(file))),
        plan=names[0] if len(names) == 1 else None,
    )
    rows = _KeyRows(file, given, traffic, ports).all()
    if typed is not None:
        rows += _command_rows(typed, traffic)
    commands = () if not traffic.plans else tuple(_commands(file, typed, traffic, ports, testbed))
    return Imported(
        kind="siitperf",
        rows=tuple(rows),
        testbed=written.text,
        commands=commands,
        gaps=written.gaps,
        notes=tuple(_notes(file, traffic, typed)),
    )


def _mac(file: SiitperfFile, key: str) -> tuple[str, str] | None:
    if not file.has(key) or not _is_own(file.value(key)):
        return None
    return file.value(key), key


def _is_own(mac: str) -> bool:
    """Whether a port can have it: no group address, and not all zero."""
    return not int(mac[:2], 16) & 1 and bool(int(mac.replace(":", ""), 16))


def _port_facts(file: SiitperfFile, part: Part) -> PortFacts:
    return PortFacts(mac=_mac(file, f"MAC-{part}-Tester"), dut_mac=_mac(file, f"MAC-{part}-DUT"))


def _cpu_keys(file: SiitperfFile) -> list[str]:
    """In the order of the testbed file: four CPUs are two senders and two receivers, two have a port each."""
    if not file.value("Reverse"):
        keys = ["CPU-L-Send", "CPU-R-Recv"]
    elif not file.value("Forward"):
        keys = ["CPU-L-Recv", "CPU-R-Send"]
    else:
        keys = ["CPU-L-Send", "CPU-R-Send", "CPU-L-Recv", "CPU-R-Recv"]
    return [key for key in keys if file.has(key)]


def _cpus(file: SiitperfFile) -> list[int]:
    return list(dict.fromkeys(file.value(key) for key in _cpu_keys(file)))


class _KeyRows:
    """A row for each key of the file, and for those that are missing where the default decides."""

    def __init__(self, file: SiitperfFile, given: Given, traffic: Traffic, ports: FoundPorts) -> None:
        self._file, self._given, self._traffic, self._ports = file, given, traffic, ports

    def all(self) -> list[Row]:
        rows = [
            self._row(setting.key, setting.text, setting.line) for setting in self._file.settings.values()
        ]
        rows += [
            self._row(key, str(self._file.value(self._file.as_written(key))), None)
            for key in _SHOWN_DEFAULTS
            if key not in self._file.settings
        ]
        return rows

    def _row(self, written: str, value: str, line: int | None) -> Row:
        key = self._file.as_written(written)
        became, text = self._became(key)
        different = self._traffic.differences.get(key) or self._ports.differences.get(key)
        if became is not Became.REFUSED and different is not None:
            became, text = Became.DIFFERS, different
        text = self._file.as_written(text)
        return Row(
            key=written,
            value=value,
            line=line,
            became=became,
            text=text if line is not None else f"{text} (siitperf's default)",
        )

    def _became(self, key: str) -> tuple[Became, str]:
        group = key.split("-")[0]
        handlers: dict[str, Callable[[str], tuple[Became, str]]] = {
            "IP": self._ip,
            "IPv4": self._address,
            "IPv6": self._address,
            "MAC": self._mac,
            "Num": self._networks,
            "CPU": self._cpu,
            "Fwd": self._udp,
            "Rev": self._udp,
            "Forward": self._direction,
            "Reverse": self._direction,
        }
        if group in handlers:
            return handlers[group](key)
        if key == "Promisc":
            return (
                Became.MEANINGLESS,
                "the ports are always promiscuous, and a test frame is recognised by its tag",
            )
        if key == "MEM-Channels":
            return Became.MEANINGLESS, "DPDK determines the memory channels"
        if not self._traffic.is_stateful:
            word = Became.MAPPED if key == "Stateful" else Became.MEANINGLESS
            return word, "no connections" if key == "Stateful" else "Stateful is 0"
        if self._traffic.has_state:
            return key_row(self._file, key, self._plan_names)
        return Became.REFUSED, NOT_YET

    @property
    def _is_left_out(self) -> bool:
        """Connections to another IP version for which there is no plan."""
        return self._traffic.is_translated and self._traffic.is_rest

    @property
    def _plan_names(self) -> str:
        return "+".join(found.name for found in self._traffic.plans)

    def _ip(self, key: str) -> tuple[Became, str]:
        part: Literal["L", "R"] = "L" if key.split("-")[1] == "L" else "R"
        what = key.split("-")[2]
        if what == "Vers":
            if self._is_left_out:
                return Became.REFUSED, f"stateful translation: {NOT_YET}"
            if self._traffic.is_background_only:
                return Became.MEANINGLESS, "m is 0: all frames belong to the background, which is IPv6"
            return Became.MAPPED, f"--plan {self._plan_names}"
        if not self._traffic.plans:
            return Became.REFUSED, "no part of this traffic can be sent"
        if what == "var":
            found = self._traffic.plans[0].plan
            hosts = (found.left if part == "L" else found.right).hosts
            return Became.MAPPED, "one address" if not self._file.value(key) else f"--host-mode {hosts.mode}"
        if not self._file.value(f"IP-{part}-var"):
            return Became.MEANINGLESS, f"IP-{part}-var is 0"
        return Became.MAPPED, "the number in the " + ("first host" if what == "min" else "last host")

    def _address(self, key: str) -> tuple[Became, str]:
        group, side, what = key.split("-")
        version = int(group[-1])
        if self._traffic.translation is not None:
            return self._translated_address(side, what, version)
        if self._traffic.has_state:
            return self._connection_address(side, what, version)
        if what == "Virt":
            if self._is_left_out:
                return Became.REFUSED, f"goes with stateful translation: {NOT_YET}"
            return Became.MEANINGLESS, "only translated traffic uses it"
        if version not in self._traffic.versions:
            if self._is_left_out and self._file.value(f"IP-{side}-Vers") == version:
                return Became.REFUSED, f"goes with stateful translation: {NOT_YET}"
            return Became.MEANINGLESS, f"no IPv{version} frame contains it"
        if what == "offset":
            if not self._file.value(f"IP-{side}-var"):
                return Became.MEANINGLESS, f"IP-{side}-var is 0"
            return Became.MAPPED, "the position of the host's number"
        found = next(plan for plan in self._traffic.plans if plan.plan.ip_version == version)
        hosts = (found.plan.left if side == "L" else found.plan.right).hosts
        return Became.MAPPED, f"hosts of {found.name}: {_span(hosts)}"

    def _connection_address(self, side: str, what: str, version: int) -> tuple[Became, str]:
        """Hosts of the left, and those on the right that they know: of a NAT64 behind a prefix."""
        (found,) = self._traffic.plans
        plan = found.plan
        is_behind = side == "R" and plan.left.peers is not None
        hosts = plan.left.hosts if side == "L" else plan.left.peers or plan.right.hosts
        used = "Virt" if is_behind else "Real"
        if version != plan.left.ip_version or what not in (used, "offset"):
            return Became.MEANINGLESS, "no frame contains it"
        if what == "offset":
            if not self._file.value(f"IP-{side}-var"):
                return Became.MEANINGLESS, f"IP-{side}-var is 0"
            return Became.MAPPED, "the position of the host's number"
        return Became.MAPPED, f"hosts of {found.name}: {_span(hosts)}"

    def _translated_address(self, side: str, what: str, version: int) -> tuple[Became, str]:
        """A side has the hosts of one IP version; the other side knows them by addresses of the other one."""
        foreground, *background = self._traffic.plans
        own, other = foreground.plan.sides if side == "L" else foreground.plan.sides[::-1]
        if what == "offset":
            if not self._file.value(f"IP-{side}-var"):
                return Became.MEANINGLESS, f"IP-{side}-var is 0"
            return Became.MAPPED, "the position of the host's number"
        if what == "Real" and version == own.ip_version:
            return Became.MAPPED, f"hosts of {foreground.name}: {_span(own.hosts)}"
        if what == "Real" and version == 6 and background:
            hosts = background[0].plan.right.hosts
            return Became.MAPPED, f"hosts of {background[0].name}: {_span(hosts)}"
        if what == "Virt" and version != own.ip_version:
            assert other.peers is not None
            return Became.MAPPED, f"how the other side knows them: {_span(other.peers)}"
        return Became.MEANINGLESS, "no frame contains it"

    def _mac(self, key: str) -> tuple[Became, str]:
        _, side, who = key.split("-")
        name = f"{_side_of(side)}.{'mac' if who == 'Tester' else 'dut_mac'}"
        if not _is_own(self._file.value(key)):
            return Became.DIFFERS, f"{name} is omitted: no port can have this address"
        return Became.MAPPED, name

    def _networks(self, key: str) -> tuple[Became, str]:
        if not self._traffic.plans:
            return Became.REFUSED, "no part of this traffic can be sent"
        if self._traffic.plans[0].plan.left.hosts.networks is None:
            return Became.MAPPED, "one network"
        return Became.MAPPED, "--networks, with --fixed-source"

    def _cpu(self, key: str) -> tuple[Became, str]:
        if key not in _cpu_keys(self._file):
            return Became.MEANINGLESS, "its direction is off"
        if self._given.cpus:
            return Became.MEANINGLESS, "--cpus is used instead"
        cpu, cpus = self._file.value(key), _cpus(self._file)
        same = [other for other in _cpu_keys(self._file) if self._file.value(other) == cpu]
        if len(same) > 1:
            return Became.DIFFERS, f"named for {' and '.join(same)}; a CPU may occur only once in tester.cpus"
        return Became.MAPPED, f"tester.cpus, number {cpus.index(cpu) + 1}"

    def _direction(self, key: str) -> tuple[Became, str]:
        option = _direction_option(self._file)
        return Became.MAPPED, " ".join(option) if option else "--direction both, the default"

    def _udp(self, key: str) -> tuple[Became, str]:
        if not self._traffic.plans:
            return Became.REFUSED, "no part of this traffic can be sent"
        reason = self._ports.unused.get(key)
        if reason is not None:
            return Became.MEANINGLESS, reason
        return Became.MAPPED, self._ports.texts[key]


def _span(hosts: HostRange) -> str:
    if hosts.addresses == 1:
        return str(hosts.first_address)
    return f"{hosts.first_address} .. {hosts.last_address}"


def _side_of(part: str) -> SideName:
    return "left" if part == "L" else "right"


def _direction_option(file: SiitperfFile) -> list[str]:
    if file.value("Forward") and file.value("Reverse"):
        return []
    return ["--direction", "forward" if file.value("Forward") else "reverse"]


def _command_rows(typed: SiitperfCommand, traffic: Traffic) -> list[Row]:
    rows: list[Row] = []
    arguments = typed.arguments
    for key, value in arguments.items():
        became, text = Became.MAPPED, ""
        if key in STATEFUL and traffic.has_state:
            became, text = argument_row(typed, key)
        elif key in STATEFUL:
            became, text = Became.REFUSED, NOT_YET
        elif not traffic.plans:
            became, text = Became.REFUSED, "no part of this traffic can be sent"
        elif key == "IPv6 frame size":
            text = f"--frame-size {_frame_size(typed, traffic)}"
            if traffic.translation is not None or (len(traffic.versions) > 1 and traffic.has_state):
                text = f"{text}, on the IPv4 side"
                if traffic.share is not None:
                    became = Became.DIFFERS
                    text += (
                        "; the frames of the background have it as well, and are 20 octets longer in siitperf"
                    )
            elif traffic.share is not None:
                became, text = (
                    Became.DIFFERS,
                    f"{text} for both IP versions; siitperf's IPv4 frames are 20 octets shorter",
                )
        elif key == "rate":
            text = f"--rate {value}, per direction"
        elif key == "duration":
            text = f"--duration {value}s"
        elif key == "global timeout":
            text = f"--wait-residual {value}ms"
        elif key in ("n", "m"):
            became, text = _share_row(arguments["n"], arguments["m"], traffic)
        elif key == "delay":
            text = f"--from {value}s"
        elif key == "timestamps":
            text = f"--tagged {value}"
        elif value:
            became, text = (
                Became.REFUSED,
                (
                    "trials are not judged by the delay of each frame; frames that arrive after"
                    " --wait-residual count as lost"
                ),
            )
        else:
            text = "0: packet delay variation, evenhand pdv"
        rows.append(Row(key=f"<{key}>", value=str(value), became=became, text=text))
    return rows


def _share_row(n: int, m: int, traffic: Traffic) -> tuple[Became, str]:
    if traffic.has_state and m < n:
        return Became.REFUSED, "there is no background traffic beside connections: all frames are of them"
    if traffic.share is None:
        return (
            Became.MAPPED,
            "all background: IPv6" if m == 0 else "no background: all frames use the same plan",
        )
    foreground, background = traffic.share
    is_exact = Fraction(foreground, foreground + background) == Fraction(m, n)
    text = f"--mix {foreground}/{background}"
    return (Became.MAPPED, text) if is_exact else (Became.DIFFERS, f"{text}, the closest share")


def _frame_size(typed: SiitperfCommand, traffic: Traffic) -> int:
    """Octets with FCS. RequestError if siitperf would refuse it."""
    size = typed.arguments["IPv6 frame size"]
    if traffic.versions == (4,):
        return size - 20
    if size > 1518:
        raise RequestError(
            f"{size} octets: only for pure IPv4 traffic does siitperf accept more than 1518",
            code="exchange.frame-too-large",
            where="--command",
            next_step="Write 84 to 1518.",
        )
    if traffic.has_state and len(traffic.versions) > 1:
        return size - 20
    if traffic.translation is not None:
        # The smallest of a mix is that of its IPv6 frames.
        return max(size - 20, 84 if traffic.share is not None else 0)
    return size


def _commands(
    file: SiitperfFile, typed: SiitperfCommand | None, traffic: Traffic, ports: FoundPorts, testbed: Path
) -> list[Command]:
    options: list[str] = ["--plan", "+".join(found.name for found in traffic.plans)]
    if traffic.share is not None:
        options += ["--mix", f"{traffic.share[0]}/{traffic.share[1]}"]
    options += [*traffic.plans[0].options, *ports.options]
    name = str(testbed) if not str(testbed).startswith("-") else f"./{testbed}"
    if traffic.has_state:
        opening = _opening_commands(file, typed, traffic, options, name)
        if typed is None or not (file.value("Forward") or file.value("Reverse")):
            return opening
        options += ["--established", str(typed.arguments["N"]), "--establish-rate", str(typed.arguments["R"])]
        after = _load_commands(typed, traffic, [*options, *_direction_option(file)], name)
        return [*opening, *after]
    options += _direction_option(file)
    if typed is None:
        return [Command(instead_of="binary-rate-alg.sh", words=("evenhand", THROUGHPUT.name, name, *options))]
    return _load_commands(typed, traffic, options, name)


def _opening_commands(
    file: SiitperfFile, typed: SiitperfCommand | None, traffic: Traffic, options: list[str], name: str
) -> list[Command]:
    """What opens connections, and validates them."""
    common = [*options] if typed is None else [*options, *_size_and_wait(typed, traffic)]
    number = [] if typed is None else ["--connections", str(typed.arguments["N"])]
    order = [] if order_of(file) == "pseudorandom" else ["--order", order_of(file)]
    return [
        Command(
            instead_of="binary-rate-alg.sh-R",
            words=("evenhand", CONNECTIONS.name, name, *number, *order, *common),
        ),
        Command(instead_of="cttc.sh", words=("evenhand", CAPACITY.name, name, *common)),
    ]


def _size_and_wait(typed: SiitperfCommand, traffic: Traffic) -> list[str]:
    timeout_ms = typed.arguments["global timeout"]
    wait = [] if timeout_ms == 2000 else ["--wait-residual", f"{timeout_ms}ms"]
    return ["--frame-size", str(_frame_size(typed, traffic)), *wait]


def _load_commands(typed: SiitperfCommand, traffic: Traffic, options: list[str], name: str) -> list[Command]:
    """What offers a load."""
    arguments = typed.arguments
    load = ["--rate", str(arguments["rate"]), "--duration", f"{arguments['duration']}s"]
    common = [*options, *_size_and_wait(typed, traffic)]
    search_of = "binary-rate-alg.sh-sf" if traffic.has_state else "binary-rate-alg.sh"
    if typed.program == "siitperf-lat":
        more = [
            "--from",
            f"{arguments['delay']}s",
            "--tagged",
            str(arguments["timestamps"]),
            "--repetitions",
            "1",
        ]
        return [
            Command(instead_of="siitperf-lat", words=("evenhand", LATENCY.name, name, *load, *more, *common))
        ]
    if typed.program == "siitperf-pdv" and not arguments["frame timeout"]:
        return [
            Command(
                instead_of="siitperf-pdv",
                words=("evenhand", PDV.name, name, *load, "--repetitions", "1", *common),
            )
        ]
    search = ("--final-duration", f"{arguments['duration']}s")
    return [
        Command(instead_of=typed.program, words=("evenhand", "trial", name, *load, *common)),
        Command(instead_of=search_of, words=("evenhand", THROUGHPUT.name, name, *search, *common)),
    ]


def _notes(file: SiitperfFile, traffic: Traffic, typed: SiitperfCommand | None) -> list[str]:
    notes = []
    if file.is_mirrored:
        notes.append(
            "Left and right are exchanged: plans have IPv6, if they are translated, and the side that opens"
            " connections on the left, so siitperf's left port is the right one here."
        )
    if traffic.has_state:
        notes += connection_notes(typed)
    elif traffic.is_stateful:
        keys = [key for key in STATEFUL_KEYS if file.has(key)] + [
            f"<{key}>" for key in (typed.arguments if typed else ()) if key in STATEFUL
        ]
        notes.append(f"Not imported, as they belong to stateful tests (RFC 9693): {', '.join(keys)}.")
    if traffic.is_rest and traffic.plans:
        missing = "stateful translation" if traffic.is_translated else "NAT and its connections"
        left = (
            "the IPv6 background traffic"
            if traffic.is_translated
            else "plain forwarding between the same hosts"
        )
        notes.append(
            f"Without {missing}, {left} remains: its results are not comparable with those of"
            " siitperf for this file."
        )
    elif not traffic.plans:
        notes.append(f"No part of this traffic can be sent: {NOT_YET}.")
    if (
        typed is not None
        and typed.program != "siitperf-tp"
        and any(found.plan.pairs > 1 for found in traffic.plans)
    ):
        notes.append(
            f"{typed.program} sends one address pair regardless of IP-L-var and IP-R-var;"
            " Evenhand sends all of them."
        )
    told = traffic.translation
    if told is not None:
        mapping = (
            f" and the mapping {told.ipv6_hosts_as_ipv4} = {told.ipv6_hosts}" if told.needs_mapping else ""
        )
        notes.append(
            f"{traffic.plans[0].name} has addresses of its own: the DUT must translate with the prefix"
            f" {told.prefix}{mapping}."
        )
    for found in traffic.plans:
        dut = " and ".join(str(side.dut[0]) for side in found.plan.sides)
        notes.append(
            f"{found.name} has the DUT at {dut}; to see the whole plan: `evenhand plan show {found.name}`."
        )
    return notes


assert set(_SHOWN_DEFAULTS) <= set(KEYS)
