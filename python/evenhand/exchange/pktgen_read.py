# SPDX-License-Identifier: Apache-2.0
"""Exchange: what a script of Pktgen-DPDK sets, a program in Lua or a list of its commands. Nothing of it is
run: settings are read where they stand, with the constants that stand before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evenhand.exchange.outcome import Became, ImportedKey, row_of
from evenhand.exchange.trex_values import ProfileError

MOST_PORTS = 2
_RANGE = (
    *("dst_mac", "src_mac", "dst_ip", "src_ip", "dst_port", "src_port", "pkt_size", "vlan_id", "ttl"),
    *("hop_limits", "traffic_class", "cos", "tos", "teid", "ip_proto", "proto", "gtpu_teid"),
)
_PARTS = ("start", "min", "max", "inc")
_SETS = ("set", "set_mac", "set_ipaddr", "set_proto", "set_type", "set_range", "range", "vlan", "vlanid")
_SEQUENCES = ("seq", "seqTable", "set_seq", "set_seqTable", "rnd", "random", "set_random", "pcap", "imix")
_IDLE = (
    *("page", "delay", "sleep", "pause", "clear", "clr", "cls", "reset", "rst", "screen", "start", "stop"),
    *(
        "ports_per_page",
        "portStats",
        "portCount",
        "totalPorts",
        "isSending",
        "mac_from_arp",
        "ping4",
        "ping6",
    ),
    *("prime", "process", "quit", "save", "load", "update", "redisplay", "icmp_echo", "garp", "send_arp"),
    *(
        "continue",
        "linkState",
        "rxStats",
        "pktStats",
        "portSizes",
        "portInfo",
        "info",
        "ver",
        "help",
        "theme",
    ),
    *("latency", "sing", "bonding", "capture", "blink", "enable", "disable", "script", "run", "geometry"),
    *("set_page_size", "dbg", "plugin", "port_sizes", "str", "clear_screen", "bcast", "is_sending", "clrall"),
    *("off", "on", "rate", "mempool", "echo", "exit", "#", "color", "tlist", "arp", "pcap_filter"),
)
_FLAGS = (
    "process",
    "icmp",
    "capture",
    "latency",
    "bonding",
    "blink",
    "garp",
    "screen",
    "mac_from_arp",
    "rx_tap",
)
"""Properties of a port that change no frame that it sends."""
_WORDS = {
    "size": "pkt_size",
    "sport": "src_port",
    "dport": "dst_port",
    "vlan": "vlan_id",
    "vlanid": "vlan_id",
}
_BLOCK = re.compile(r"\b(?:function|do|if|repeat)\b")
_END = re.compile(r"\b(?:end|until)\b")
_CALL = re.compile(
    r"^(?:return\s+)?pktgen\.(?P<range>range\.)?(?P<name>\w+)\s*\((?P<arguments>.*)\)\s*;?\s*$"
)
_SET = re.compile(r"^(?:local\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>[^=].*?);?\s*$")
_TEXT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(-?\d+(?:\.\d+)?)|([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and the line where it is set."""

    value: str
    line: int


@dataclass(slots=True)
class PktgenPort:
    """What is set for a port: `src_ip.start` is of its ranges, `src_ip` of its single frame."""

    settings: dict[str, Setting] = field(default_factory=dict)
    has_range: bool = False
    is_started: bool = False


class PktgenScript:
    """Reads the text of a script.

    Raises:
        ProfileError: A setting that is computed, or made in a loop; names the line.
    """

    def __init__(self, text: str) -> None:
        self.ports = tuple(PktgenPort() for _ in range(MOST_PORTS))
        self.rows: list[ImportedKey] = []
        self._values: dict[str, str] = {}
        is_lua = bool(re.search(r"\bpktgen\.\w+", text))
        for number, line in _lines(text, is_lua=is_lua):
            if is_lua:
                self._read_lua(number, line)
            else:
                self._read_command(number, line.split())

    def _row(self, key: str, value: str, line: int, became: Became, text: str) -> None:
        if not any(row.key == key and row.became is became for row in self.rows):
            self.rows.append(row_of(key, value, line, became, text))

    # Lua

    def _read_lua(self, line: int, text: str) -> None:
        depth, text = int(text[0]), text[1:]
        if call := _CALL.match(text):
            name, is_range = call["name"], call["range"] is not None
            sets = is_range or name in (*_RANGE, *_SETS, *_SEQUENCES)
            if not sets:
                self._idle(name, line)
                if name == "start" and re.fullmatch(r"[\d,\"'\s]+", call["arguments"]):
                    self._start(re.sub(r"[\"'\s]", "", call["arguments"]), line)
                return
            if depth:
                raise ProfileError(line, f"pktgen.{name} is called in a block, which may run often or never")
            self._take(name, [self._value(each, line) for each in _split(call["arguments"])], line)
        elif "pktgen." in text and re.search(r"pktgen\.(?:range\.|set)", text):
            raise ProfileError(line, "a setting of Pktgen is not a line of its own")
        elif assigned := _SET.match(text):
            try:
                self._values[assigned["name"]] = self._value(assigned["value"], line)
            except ProfileError:
                self._values.pop(assigned["name"], None)

    def _value(self, text: str, line: int) -> str:
        """A constant, or several that `..` joins."""
        found = []
        for part in text.strip().split(".."):
            match = _TEXT.fullmatch(part.strip())
            if match is None:
                raise ProfileError(line, f"{text.strip()[:60]} is computed")
            double, single, number, name = match.groups()
            if name is not None and name not in self._values:
                raise ProfileError(line, f"{name} is no constant that stands before")
            found.append(
                next(
                    each for each in (double, single, number, name and self._values[name]) if each is not None
                )
            )
        return "".join(found)

    def _take(self, name: str, arguments: Sequence[str], line: int) -> None:
        if not arguments:
            raise ProfileError(line, f"pktgen.{name} has no arguments")
        ports, words = arguments[0], list(arguments[1:])
        if name in _SEQUENCES:
            self._row(
                name, "...", line, Became.REFUSED, "a frame has one range of each field, and no sequence"
            )
        elif name in ("set_range", "range"):
            self._enable(ports, words[:1] == ["on"] or words[:1] == ["enable"], line)
        elif name in ("set_proto", "ip_proto", "proto"):
            self._set(ports, "proto", words, line)
        elif name in ("set_type", "vlan", "vlanid"):
            self._set(ports, {"set_type": "type", "vlan": "vlan_on", "vlanid": "vlan_id"}[name], words, line)
        elif name in ("set_mac", "set_ipaddr"):
            kind = "mac" if name == "set_mac" else "ip"
            end, value = (words[0], words[1:]) if words[:1] in (["src"], ["dst"]) else ("dst", words)
            self._set(ports, f"{end}_{kind}", value, line)
        elif name == "set":
            self._set(
                ports, _WORDS.get(words[0] if words else "", words[0] if words else ""), words[1:], line
            )
        else:
            self._ranged(ports, name, words, line)

    # Commands

    def _read_command(self, line: int, words: list[str]) -> None:
        verb, rest = words[0], words[1:]
        if verb in ("enable", "disable", "on", "off") and "range" in rest:
            self._enable(rest[0] if rest[0] != "range" else "all", verb in ("enable", "on"), line)
        elif verb in ("enable", "disable") and len(rest) > 1:
            for flag in rest[1:]:
                self._flag(rest[0], flag, verb == "enable", line)
        elif verb in ("seq", "sequence") or (verb == "set" and rest[1:2] == ["seq_cnt"]):
            self._row(verb, " ".join(rest), line, Became.REFUSED, "a frame has one range of each field")
        elif verb == "set" and len(rest) > 1:
            key, value = (
                (f"{rest[1]}_{rest[2]}", rest[3:])
                if rest[1] in ("src", "dst") and rest[2:]
                else (rest[1], rest[2:])
            )
            self._set(rest[0], _WORDS.get(key, key), value, line)
        elif verb in ("vlan", "vlanid") and len(rest) > 1:
            self._set(rest[0], "vlan_id", rest[1:], line)
        elif verb == "range" and len(rest) > 1:
            ends = rest[1] in ("src", "dst") and len(rest) > 2
            key, value = (f"{rest[1]}_{rest[2]}", rest[3:]) if ends else (rest[1], rest[2:])
            if key in ("dst_mac", "src_mac") or key in _RANGE or key in _WORDS:
                self._ranged(rest[0], _WORDS.get(key, key), value, line)
            else:
                self._row(f"range {key}", " ".join(value), line, Became.REFUSED, "this range is not known")
        elif verb in _SEQUENCES:
            self._row(verb, " ".join(rest), line, Became.REFUSED, "cannot be represented")
        else:
            self._idle(verb, line)
            if verb == "start" and rest and rest[0] != "all":
                self._start(rest[0], line)

    # Both

    def _idle(self, name: str, line: int) -> None:
        if name in _IDLE:
            self._row(name, "", line, Became.MEANINGLESS, "says nothing of the frames")
        else:
            self._row(name, "...", line, Became.REFUSED, "this command is not known")

    def _of(self, ports: str, line: int) -> Iterator[PktgenPort]:
        """The ports of a list: `0`, `all`, `0,1`, `0-1`."""
        if ports == "all":
            yield from self.ports
            return
        for part in ports.split(","):
            match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", part.strip())
            if match is None:
                raise ProfileError(line, f"{ports[:40]!r} are no ports")
            for number in range(int(match[1]), int(match[2] or match[1]) + 1):
                if number < MOST_PORTS:
                    yield self.ports[number]
                else:
                    self._row(
                        f"port {number}", "...", line, Became.REFUSED, "a tester has two ports, 0 and 1"
                    )

    def _start(self, ports: str, line: int) -> None:
        for port in self._of(ports, line):
            port.is_started = True

    def _enable(self, ports: str, is_on: bool, line: int) -> None:
        for port in self._of(ports, line):
            port.has_range = is_on

    def _flag(self, ports: str, flag: str, is_on: bool, line: int) -> None:
        """A property of ports: what frames are like, or what becomes of those that arrive."""
        if flag == "vlan":
            self._set(ports, "vlan_on", ["on" if is_on else "off"], line)
        elif not is_on or flag in _FLAGS:
            self._row(flag, "", line, Became.MEANINGLESS, "says nothing of the frames")
        else:
            self._row(flag, "...", line, Became.REFUSED, "frames of this kind are not sent")

    def _set(self, ports: str, key: str, words: Sequence[str], line: int) -> None:
        if not key:
            raise ProfileError(line, "the line sets nothing")
        for port in self._of(ports, line):
            port.settings[key] = Setting(" ".join(words), line)

    def _ranged(self, ports: str, key: str, words: Sequence[str], line: int) -> None:
        """`start 198.18.0.1`, or all four values in a row."""
        for port in self._of(ports, line):
            if words[:1] and words[0] in _PARTS:
                port.settings[f"{key}.{words[0]}"] = Setting(" ".join(words[1:]), line)
            elif len(words) == len(_PARTS):
                for part, word in zip(_PARTS, words, strict=True):
                    port.settings[f"{key}.{part}"] = Setting(word, line)
            elif len(words) == 1:
                port.settings["proto" if "proto" in key else f"{key}.start"] = Setting(words[0], line)
            else:
                raise ProfileError(line, f"{key} has start, min, max and inc, or four values")


def _lines(text: str, *, is_lua: bool) -> Iterator[tuple[int, str]]:
    """Lines that say something, and their numbers; those of Lua begin with 1 inside of a block, else 0."""
    if is_lua:
        text = re.sub(r"--\[\[.*?\]\]", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        plain = (re.sub(r"--.*", "", line) if is_lua else line.partition("#")[0]).strip()
        if not plain:
            continue
        if not is_lua:
            yield number, plain
            continue
        for part in filter(None, (each.strip() for each in _statements(plain))):
            code = re.sub(r"\"[^\"]*\"|'[^']*'", "", part)
            opens, ends = len(_BLOCK.findall(code)), len(_END.findall(code))
            yield number, f"{int(depth > 0 or opens > 0)}{part}"
            depth = max(0, depth + opens - ends)


def _statements(line: str) -> list[str]:
    """Parts of a line at its semicolons, except within texts."""
    return re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^;\"'])+", line)


def _split(arguments: str) -> list[str]:
    """At the commas, except within texts and brackets."""
    found, depth, quote = [""], 0, ""
    for letter in arguments:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "({[":
            depth += 1
        elif letter in ")}]":
            depth -= 1
        elif letter == "," and not depth:
            found.append("")
            continue
        found[-1] += letter
    return [each for each in found if each.strip()]
