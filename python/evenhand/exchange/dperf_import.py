# SPDX-License-Identifier: Apache-2.0
"""Exchange: a configuration of dperf's client becomes a testbed file, a command, and a row for each line. Its
requests and answers are written as flows of OTG, which the import of those reads."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import read_foreign, shown
from evenhand.exchange.otg_read import MOST_OCTETS, import_document
from evenhand.exchange.outcome import Became, GivenHardware, Imported, ImportedKey, Places, named, row_of

ORIGIN = "a configuration of dperf"
_HEADERS: Mapping[int, int] = {4: 14 + 20 + 8, 6: 14 + 40 + 8}
_FCS, _SMALLEST = 4, 64
_DEFAULT_S = 100.0
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6}
_OLD = {"keepalive_request_interval": "keepalive"}
"""Keys by their names of today."""
_OWN = "of dperf's own way to send"
_LINE = "the load is --rate"
_OTHERS: Mapping[str, tuple[Became, str]] = {
    **dict.fromkeys(
        ("daemon", "quiet", "socket_mem", "kni", "lldp", "rss", "flow_isolate", "jumbo", "port_id"),
        (Became.MEANINGLESS, _OWN),
    ),
    **dict.fromkeys(
        (
            *("tx_burst", "launch_num", "slow_start", "wait", "fast_close", "send_window"),
            "keepalive_request_num",
        ),
        (Became.MEANINGLESS, "frames are evenly spaced from the start on"),
    ),
    **dict.fromkeys(("mss", "tcp_rst", "retransmit_timeout"), (Became.MEANINGLESS, "a part of TCP")),
    **dict.fromkeys(("tos", "dscp"), (Became.DIFFERS, "the test frame has its own value")),
    **dict.fromkeys(
        ("http_host", "http_path", "http_method", "http"), (Became.REFUSED, "there is no HTTP here")
    ),
    "vxlan": (Became.REFUSED, "there are no tunnels here"),
    "cpu": (Became.MEANINGLESS, "the CPUs of the tester are named by --cpus"),
}
"""What becomes of keys that say nothing of the frames."""


@dataclass(slots=True)
class _File:
    """The lines by their keys: their words, and their numbers in the file."""

    path: Path
    lines: dict[str, list[tuple[int, list[str]]]] = field(default_factory=dict)

    def first(self, key: str) -> tuple[int, list[str]] | None:
        return next(iter(self.lines.get(key, ())), None)

    def has(self, key: str) -> bool:
        return key in self.lines

    def wrong(self, line: int, what: str) -> RequestError:
        return RequestError(
            what,
            code="exchange.dperf-not-read",
            where=f"{self.path}, line {line}",
            next_step="Correct it there, as dperf's configuration.md has it.",
        )

    def read(self, key: str, place: int, read: Callable[[str], Any], default: Any) -> Any:
        """A word of the first line with this key. RequestError names the line."""
        found = self.first(key)
        if found is None:
            return default
        line, words = found
        try:
            return read(words[place])
        except (IndexError, ValueError, KeyError) as error:
            value = " ".join(words) or "nothing"
            raise self.wrong(line, f"{key} cannot have {shown(value)}") from error


def import_dperf(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the configuration. It names no device, and nothing of it is run.

    Raises:
        RequestError: A line that dperf would not take either; names it.
    """
    file = _read(path)
    rows = _own_rows(file)
    places: Places = {}
    flows = _flows(file, places, rows)
    document = {"ports": [{"name": "client"}, {"name": "server"}], "flows": flows}
    imported = import_document(path, document, given, plan=plan, testbed=testbed, kind="dperf", origin=ORIGIN)
    rows += named(imported.rows, places)
    said = {row.line for row in rows}
    for key, lines in file.lines.items():
        for number, words in lines:
            if number not in said:
                became = Became.MAPPED if imported.commands else Became.REFUSED
                text = "as a part of the flows" if imported.commands else "the flows cannot be sent"
                rows.append(row_of(key, " ".join(words), number, became, text))
    return replace(imported, rows=tuple(rows))


def _read(path: Path) -> _File:
    text = read_foreign(path, most_octets=MOST_OCTETS, what=ORIGIN)
    file = _File(path)
    for number, content in enumerate(text.split("\n"), 1):
        written = content.partition("#")[0].split()
        if written:
            key = written[0].lower()
            file.lines.setdefault(_OLD.get(key, key), []).append((number, written[1:]))
    line, words = file.first("mode") or (1, ["client"])
    if words[:1] not in (["client"], ["server"]):
        raise file.wrong(line, f"mode cannot have {shown(' '.join(words))}")
    if words == ["server"]:
        raise RequestError(
            "this is the side of dperf that answers; what is sent is in its client's file",
            code="exchange.dperf-server",
            where=f"{path}, line {line}",
            next_step="Import the client's file: the tester answers on both sides by itself.",
        )
    for key in ("client", "server"):
        if not file.has(key):
            raise file.wrong(1, f"there is no line with {key}, so no addresses to send between")
    return file


def _own_rows(file: _File) -> list[ImportedKey]:
    """The rows of the lines that are no part of a flow."""
    used = {
        *("mode", "duration", "cps", "cc", "keepalive", "flood", "client", "server", "listen", "protocol"),
        *("payload_size", "packet_size", "change_dip", "port", "lport_range", "vlan"),
    }
    rows = []
    for key, lines in file.lines.items():
        for place, (line, words) in enumerate(lines):
            value = " ".join(words)
            if key == "port" and place == 0:
                text = "ports are named by --left and --right only"
                rows.append(row_of(key, value, line, Became.MEANINGLESS, text))
            elif key in used and place:
                text = f"one {key} for each side, as there is one port"
                rows.append(row_of(key, value, line, Became.REFUSED, text))
            elif key not in used:
                became, text = _OTHERS.get(key, (Became.REFUSED, "this key is not known"))
                rows.append(row_of(key, value, line, became, text))
    return rows


def _flows(file: _File, places: Places, rows: list[ImportedKey]) -> list[dict[str, Any]]:
    """The client's, and the server's answers to it."""
    client, server = (_addresses(file, key) for key in ("client", "server"))
    if file.has("change_dip"):
        line = _line(file, "change_dip")
        start = file.read("change_dip", 0, _ip, None)
        step, count = (file.read("change_dip", place, int, None) for place in (1, 2))
        if step < 0 or count < 1:
            raise file.wrong(line, f"{count} addresses {step} apart are none")
        server = start, step, count
        rows.append(row_of("server", "...", line, Became.DIFFERS, "change_dip takes its place"))
    version = client[0].version
    if server[0].version != version:
        raise file.wrong(_line(file, "server"), "client and server have unlike IP versions")
    protocol = file.read("protocol", 0, str.lower, "tcp")
    is_flood = file.has("flood")
    _say_load(file, rows)
    listen = file.read("listen", 0, int, 80), file.read("listen", 1, int, 1)
    own = file.read("lport_range", 0, int, 1), file.read("lport_range", 1, int, 65535)
    for key, (first, last) in (("listen", (listen[0], sum(listen) - 1)), ("lport_range", own)):
        if not 0 < first <= last <= 65535:
            raise file.wrong(_line(file, key), f"{first} to {last} are no ports")
    ends = {
        "src": _pattern(client, version),
        "dst": _pattern(server, version),
        "src_port": _ports(own[0], own[1] - own[0] + 1),
        "dst_port": _ports(*listen),
    }
    turned = {
        "src": ends["dst"],
        "dst": ends["src"],
        "src_port": ends["dst_port"],
        "dst_port": ends["src_port"],
    }
    size = _size(file, version, rows)
    mac = file.read("port", 3, str, None) if len((file.first("port") or (0, []))[1]) > 3 else None
    flows = []
    for number, fields in enumerate((ends,) if is_flood or protocol == "tcp" else (ends, turned)):
        at, ip = f"flows[{number}]", f"ipv{version}"
        for key, name in (
            (f"{at}.tx_rx", "client"),
            (f"{at}.{ip}.{'src' if not number else 'dst'}", "client"),
            (f"{at}.{ip}.{'dst' if not number else 'src'}", "server"),
            (f"{at}.{protocol}.dst_port", "listen" if not number else "lport_range"),
            (f"{at}.{protocol}.src_port", "lport_range" if not number else "listen"),
            (f"{at}.packet", "protocol"),
            (f"{at}.size", "packet_size" if file.has("packet_size") else "payload_size"),
            (f"{at}.rate", "cc" if file.has("cc") else "cps"),
            (f"{at}.duration", "duration"),
            (f"{at}.ethernet", "port"),
        ):
            places[key] = (name, _line(file, name))
        ethernet = {} if mac is None or number else {"dst": {"choice": "value", "value": mac}}
        ports = {key: value for key, value in fields.items() if key.endswith("port")}
        addresses = {key: value for key, value in fields.items() if not key.endswith("port")}
        tags = [_tag(file)] if file.has("vlan") else []
        flows.append(
            {
                "name": "requests" if not number else "answers",
                "tx_rx": {
                    "choice": "port",
                    "port": {
                        "tx_name": ("client", "server")[number],
                        "rx_names": [("server", "client")[number]],
                    },
                },
                "packet": [
                    {"choice": "ethernet", "ethernet": ethernet},
                    *tags,
                    {"choice": ip, ip: addresses},
                    {"choice": protocol, protocol: ports},
                ],
                "size": {"choice": "fixed", "fixed": size},
                "rate": {"choice": "pps", "pps": _rate(file)},
                "duration": {
                    "choice": "fixed_seconds",
                    "fixed_seconds": {"seconds": file.read("duration", 0, _seconds, _DEFAULT_S)},
                },
            }
        )
    if len(flows) > 1:
        text = "the answers are sent by themselves, whether requests arrive or not"
        rows.append(row_of("protocol", protocol, _line(file, "protocol"), Became.DIFFERS, text))
    return flows


def _say_load(file: _File, rows: list[ImportedKey]) -> None:
    for key in ("cps", "cc", "keepalive", "flood"):
        found = file.first(key)
        if found is None:
            continue
        line, words = found
        if key == "cps" and file.has("cc") and file.has("keepalive"):
            text = "connections that are there already send the requests of cc and keepalive"
            rows.append(row_of(key, " ".join(words), line, Became.DIFFERS, text))
        elif key == "flood":
            rows.append(row_of(key, "", line, Became.MAPPED, "--direction forward: nothing answers"))
        elif key == "keepalive":
            rows.append(row_of(key, " ".join(words), line, Became.MAPPED, _LINE))


def _rate(file: _File) -> int:
    """Frames per second: each connection sends one request per interval, or one in all."""
    every_s = file.read("keepalive", 0, _seconds, None)
    count = file.read("cc", 0, _count, None)
    if every_s and count:
        rate_fps: int = round(count / every_s)
        return max(1, rate_fps)
    if not file.has("cps"):
        line = _line(file, "mode")
        raise file.wrong(line, "there is no cps, nor cc with keepalive, so no frame has a time to be sent")
    return int(file.read("cps", 0, _count, None))


def _size(file: _File, version: int, rows: list[ImportedKey]) -> int:
    """Octets with FCS."""
    if file.has("packet_size"):
        return max(_SMALLEST, int(file.read("packet_size", 0, int, 0)) + _FCS)
    if file.has("payload_size"):
        return max(_SMALLEST, _HEADERS[version] + int(file.read("payload_size", 0, int, 1)) + _FCS)
    text = "the file states no size: that of dperf's own request; here the smallest"
    rows.append(row_of("payload_size", "", _line(file, "payload_size"), Became.DIFFERS, text))
    return _SMALLEST


def _tag(file: _File) -> dict[str, Any]:
    number = file.read("vlan", 0, int, 0)
    return {"choice": "vlan", "vlan": {"id": {"choice": "value", "value": number}}}


def _line(file: _File, key: str) -> int:
    """The number of its first line; that of `mode` stands for what the file leaves out."""
    found = file.first(key) or file.first("mode")
    return 1 if found is None else found[0]


def _addresses(file: _File, key: str) -> tuple[Any, int, int]:
    """The first, the step and how many."""
    count = file.read(key, 1, int, 1)
    if count < 1:
        raise file.wrong(_line(file, key), f"{key} cannot have {count} addresses")
    return file.read(key, 0, _ip, None), 1, count


def _pattern(addresses: tuple[Any, int, int], version: int) -> dict[str, Any]:
    start, step, count = addresses
    if count == 1:
        return {"choice": "value", "value": str(start)}
    steps = ipaddress.IPv4Address(step) if version == 4 else ipaddress.IPv6Address(step)
    return {"choice": "increment", "increment": {"start": str(start), "step": str(steps), "count": count}}


def _ports(first: int, count: int) -> dict[str, Any]:
    if count == 1:
        return {"choice": "value", "value": first}
    return {"choice": "increment", "increment": {"start": first, "step": 1, "count": count}}


def _ip(text: str) -> Any:
    return ipaddress.ip_address(text)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|[smhd]?)", text.lower())
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _TIMES[found[2]]


def _count(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([km]?)", text.lower())
    if found is None:
        raise ValueError(text)
    return round(float(found[1]) * _COUNTS[found[2]])
