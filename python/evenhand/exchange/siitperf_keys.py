# SPDX-License-Identifier: Apache-2.0
"""Exchange: a row for each key of a siitperf.conf: what it is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evenhand.exchange.outcome import Became, ImportedKey
from evenhand.exchange.siitperf_connections import NOT_YET, key_row
from evenhand.exchange.siitperf_file import KEYS, SiitperfFile
from evenhand.exchange.siitperf_ports import FoundPorts
from evenhand.exchange.siitperf_tester import cpu_keys, cpus_of, direction_option, is_own_mac
from evenhand.exchange.siitperf_traffic import ImportedTraffic
from evenhand.exchange.testbed_text import GivenHardware
from evenhand.plan import HostRange, SideName

_SHOWN_DEFAULTS = (
    "IP-L-Vers",
    "IP-R-Vers",
    "Fwd-var-sport",
    "Fwd-var-dport",
    "Rev-var-sport",
    "Rev-var-dport",
)
"""Keys whose default decides what is sent, so that it has a row where the file is silent."""


class KeyRows:
    """A row for each key of the file, and for those that are missing where the default decides."""

    def __init__(
        self, file: SiitperfFile, given: GivenHardware, traffic: ImportedTraffic, ports: FoundPorts
    ) -> None:
        self._file, self._given, self._traffic, self._ports = file, given, traffic, ports

    def all(self) -> list[ImportedKey]:
        rows = [
            self._row(setting.key, setting.text, setting.line) for setting in self._file.settings.values()
        ]
        rows += [
            self._row(key, str(self._file.value(self._file.as_written(key))), None)
            for key in _SHOWN_DEFAULTS
            if key not in self._file.settings
        ]
        return rows

    def _row(self, written: str, value: str, line: int | None) -> ImportedKey:
        key = self._file.as_written(written)
        became, text = self._became(key)
        different = self._traffic.differences.get(key) or self._ports.differences.get(key)
        if became is not Became.REFUSED and different is not None:
            became, text = Became.DIFFERS, different
        text = self._file.as_written(text)
        return ImportedKey(
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
            mode = (found.left if part == "L" else found.right).host_range.mode
            return Became.MAPPED, f"--host-mode {mode}" if self._file.value(key) else "one address"
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
        host_range = (found.plan.left if side == "L" else found.plan.right).host_range
        return Became.MAPPED, f"hosts of {found.name}: {_span(host_range)}"

    def _connection_address(self, side: str, what: str, version: int) -> tuple[Became, str]:
        """Hosts of the left, and those on the right that they know: of a NAT64 behind a prefix."""
        (found,) = self._traffic.plans
        plan = found.plan
        is_behind = side == "R" and plan.left.peers is not None
        host_range = plan.left.host_range if side == "L" else plan.left.peers or plan.right.host_range
        used = "Virt" if is_behind else "Real"
        if version != plan.left.ip_version or what not in (used, "offset"):
            return Became.MEANINGLESS, "no frame contains it"
        if what == "offset":
            if not self._file.value(f"IP-{side}-var"):
                return Became.MEANINGLESS, f"IP-{side}-var is 0"
            return Became.MAPPED, "the position of the host's number"
        return Became.MAPPED, f"hosts of {found.name}: {_span(host_range)}"

    def _translated_address(self, side: str, what: str, version: int) -> tuple[Became, str]:
        """A side has the hosts of one IP version; the other side knows them by addresses of the other one."""
        foreground, *background = self._traffic.plans
        own, other = foreground.plan.sides if side == "L" else foreground.plan.sides[::-1]
        if what == "offset":
            if not self._file.value(f"IP-{side}-var"):
                return Became.MEANINGLESS, f"IP-{side}-var is 0"
            return Became.MAPPED, "the position of the host's number"
        if what == "Real" and version == own.ip_version:
            return Became.MAPPED, f"hosts of {foreground.name}: {_span(own.host_range)}"
        if what == "Real" and version == 6 and background:
            host_range = background[0].plan.right.host_range
            return Became.MAPPED, f"hosts of {background[0].name}: {_span(host_range)}"
        if what == "Virt" and version != own.ip_version:
            assert other.peers is not None
            return Became.MAPPED, f"how the other side knows them: {_span(other.peers)}"
        return Became.MEANINGLESS, "no frame contains it"

    def _mac(self, key: str) -> tuple[Became, str]:
        _, side, who = key.split("-")
        name = f"{_side_of(side)}.{'mac' if who == 'Tester' else 'dut_mac'}"
        if not is_own_mac(self._file.value(key)):
            return Became.DIFFERS, f"{name} is omitted: no port can have this address"
        return Became.MAPPED, name

    def _networks(self, key: str) -> tuple[Became, str]:
        if not self._traffic.plans:
            return Became.REFUSED, "no part of this traffic can be sent"
        if self._traffic.plans[0].plan.left.host_range.network_range is None:
            return Became.MAPPED, "one network"
        return Became.MAPPED, "--networks, with --fixed-source"

    def _cpu(self, key: str) -> tuple[Became, str]:
        if key not in cpu_keys(self._file):
            return Became.MEANINGLESS, "its direction is off"
        if self._given.cpus:
            return Became.MEANINGLESS, "--cpus is used instead"
        cpu, cpus = self._file.value(key), cpus_of(self._file)
        same = [other for other in cpu_keys(self._file) if self._file.value(other) == cpu]
        if len(same) > 1:
            return Became.DIFFERS, f"named for {' and '.join(same)}; a CPU may occur only once in tester.cpus"
        return Became.MAPPED, f"tester.cpus, number {cpus.index(cpu) + 1}"

    def _direction(self, key: str) -> tuple[Became, str]:
        option = direction_option(self._file)
        return Became.MAPPED, " ".join(option) if option else "--direction both, the default"

    def _udp(self, key: str) -> tuple[Became, str]:
        if not self._traffic.plans:
            return Became.REFUSED, "no part of this traffic can be sent"
        reason = self._ports.unused.get(key)
        if reason is not None:
            return Became.MEANINGLESS, reason
        return Became.MAPPED, self._ports.texts[key]


def _span(host_range: HostRange) -> str:
    if host_range.address_count == 1:
        return str(host_range.first_address)
    return f"{host_range.first_address} .. {host_range.last_address}"


def _side_of(part: str) -> SideName:
    return "left" if part == "L" else "right"


assert set(_SHOWN_DEFAULTS) <= set(KEYS)
