# SPDX-License-Identifier: Apache-2.0
"""Exchange: a script of Pktgen-DPDK becomes a testbed file, a command, and a row for each setting. Its ports
are written as flows of OTG, which the import of those reads."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import read_foreign
from evenhand.exchange.otg_read import MOST_OCTETS, import_document
from evenhand.exchange.outcome import Became, GivenHardware, Imported, ImportedKey, Places, named, row_of
from evenhand.exchange.pktgen_read import PktgenPort, PktgenScript, Setting
from evenhand.exchange.trex_values import ProfileError

ORIGIN = "a script of Pktgen-DPDK"
SECONDS = 60
"""A script says no duration unless it has a count; its user stops it."""
_USUAL: Mapping[str, str] = {"pkt_size": "64", "src_port": "1234", "dst_port": "5678", "rate": "100"}
"""Pktgen's own, where a script sets nothing."""
_KEYS = {"src_port": "src_port", "dst_port": "dst_port", "src_ip": "src", "dst_ip": "dst"}
_IDLE = {
    **dict.fromkeys(
        ("burst", "txburst", "rxburst", "prime", "jitter", "sequence", "nb_pkts"),
        (Became.MEANINGLESS, "frames are evenly spaced by the rate"),
    ),
    **dict.fromkeys(
        ("ttl", "hop_limits", "traffic_class", "tos", "cos", "type", "pattern", "user.pattern", "dump"),
        (Became.DIFFERS, "the test frame has its own value"),
    ),
}


def import_pktgen(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the settings of the script. It names no device, and nothing of it is run.

    Raises:
        RequestError: It sets nothing that is sent, or computes it; names the line.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what=ORIGIN)
    places: Places = {}
    try:
        script = PktgenScript(text)
        rows = list(script.rows)
        sending = _sending(script, rows)
        if len(sending) == 2 and script.ports[0].settings == script.ports[1].settings:
            rows.append(row_of("all", "both ports", 1, Became.DIFFERS, "sent from left to right only"))
            sending = sending[:1]
        flows = [_flow(place, number, port, places, rows) for place, (number, port) in enumerate(sending)]
    except ProfileError as error:
        raise RequestError(
            f"this script cannot be read: {error.what}",
            code="exchange.script-not-read",
            where=f"{path}, line {error.line}",
            next_step="Write there what is sent with constants and without loops.",
        ) from error
    if not flows:
        raise RequestError(
            "this script of Pktgen-DPDK sets no addresses, so nothing is known of its frames",
            code="exchange.script-without-frames",
            where=str(path),
            next_step="Name one that sets src ip and dst ip, such as those with range.",
        )
    document = {"ports": [{"name": "port 0"}, {"name": "port 1"}], "flows": flows}
    imported = import_document(
        path, document, given, plan=plan, testbed=testbed, kind="pktgen", origin=ORIGIN
    )
    return replace(imported, rows=(*rows, *named(imported.rows, places)))


def _sending(script: PktgenScript, rows: list[ImportedKey]) -> list[tuple[int, PktgenPort]]:
    """The ports whose frames are known: of several those that are started, or whose range is on."""
    found = [(number, port) for number, port in enumerate(script.ports) if _sends(port)]
    started = [each for each in found if each[1].is_started]
    for used in (started, [each for each in found if each[1].has_range]):
        if 0 < len(used) < len(found):
            (number, _), *_ = (each for each in found if each not in used)
            text = "neither started nor switched to its range"
            rows.append(row_of(f"port {number}", "...", 1, Became.MEANINGLESS, text))
            return used
    return found


def _sends(port: PktgenPort) -> bool:
    return any(f"{end}_ip{part}" in port.settings for end in ("src", "dst") for part in ("", ".start"))


def _flow(
    number: int, side: int, port: PktgenPort, places: Places, rows: list[ImportedKey]
) -> dict[str, Any]:
    at, line = f"flows[{number}]", min(each.line for each in port.settings.values())
    places[at] = (f"port {side}", line)
    if not port.has_range and any("." in key for key in port.settings):
        rows.append(
            row_of("range", f"port {side}", line, Became.DIFFERS, "it is never switched on; here it is used")
        )
    version = _version(port)
    ip, used = f"ipv{version}", set[str]()

    def pattern(key: str, where: str) -> dict[str, Any] | None:
        made, setting = _pattern(key, port, version, rows, used)
        if setting is not None:
            places[where] = (f"{key} of port {side}", setting.line)
        return made

    proto = port.settings.get("proto", Setting("udp", line))
    used.add("proto")
    kind = proto.value.lower() if proto.value.lower() in ("udp", "tcp") else "icmp"
    places[f"{at}.packet"] = (f"proto of port {side}", proto.line)
    packet: list[dict[str, Any]] = [{"choice": "ethernet", "ethernet": {}}]
    for key, name in (("src_mac", "src"), ("dst_mac", "dst")):
        if (mac := pattern(key, f"{at}.ethernet.{name}")) is not None:
            packet[0]["ethernet"][name] = mac
    tag = pattern("vlan_id", f"{at}.vlan.id")
    is_tagged = port.settings.get("vlan_on", Setting("", line)).value in ("on", "enable")
    used.add("vlan_on")
    is_tagged = is_tagged or any(key.startswith("vlan_id.") for key in port.settings)
    if tag is not None and is_tagged and tag.get("value") != 0:
        packet.append({"choice": "vlan", "vlan": {"id": tag}})
    elif tag is not None:
        said = port.settings["vlan_id"]
        rows.append(
            row_of("vlan_id", said.value, said.line, Became.MEANINGLESS, "no tag: vlan is never enabled")
        )
    addresses = {
        name: pattern(key, f"{at}.{ip}.{name}") for key, name in (("src_ip", "src"), ("dst_ip", "dst"))
    }
    packet.append({"choice": ip, ip: {key: value for key, value in addresses.items() if value is not None}})
    ports = {key: pattern(key, f"{at}.{kind}.{key}") for key in ("src_port", "dst_port")}
    packet.append({"choice": kind, kind: ports})
    size = pattern("pkt_size", f"{at}.size") or {}
    places.setdefault(f"{at}.size", ("size", line))
    fixed = {"choice": "fixed", "fixed": size.get("value")}
    flow = {
        "name": f"port {side}",
        "tx_rx": {"choice": "port", "port": {"tx_name": f"port {side}", "rx_names": [f"port {1 - side}"]}},
        "packet": packet,
        "size": fixed if "value" in size else {"choice": "increment", "increment": {}},
        **_load(at, port, places, rows, used, line),
    }
    for key, setting in port.settings.items():
        if key not in used:
            became, text = _IDLE.get(key.split(".")[0], (Became.REFUSED, "cannot be represented"))
            rows.append(row_of(f"{key} of port {side}", setting.value, setting.line, became, text))
    return flow


def _load(
    at: str, port: PktgenPort, places: Places, rows: list[ImportedKey], used: set[str], line: int
) -> dict[str, Any]:
    """Rate and duration."""
    used.update(("rate", "pps", "count"))
    rate = port.settings.get("rate", Setting(_USUAL["rate"], line))
    pps = port.settings.get("pps")
    count = port.settings.get("count", Setting("0", line))
    places[f"{at}.rate"] = ("rate" if pps is None else "pps", (pps or rate).line)
    places[f"{at}.duration"] = ("count", count.line)
    packets = _whole(count.value, count.line)
    if not packets:
        text = f"has no end: --duration {SECONDS}s stands for the time until stop"
        rows.append(row_of("count", count.value, count.line, Became.DIFFERS, text))
    return {
        "rate": {"choice": "percentage", "percentage": _number(rate)}
        if pps is None
        else {"choice": "pps", "pps": _whole(pps.value, pps.line)},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": packets}}
        if packets
        else {"choice": "fixed_seconds", "fixed_seconds": {"seconds": SECONDS}},
    }


def _number(setting: Setting) -> float:
    try:
        found = float(setting.value)
    except ValueError:
        found = -1.0
    if not 0 < found <= 100:
        raise ProfileError(setting.line, f"{setting.value[:40]!r} is no rate in percent")
    return found


def _whole(text: str, line: int) -> int:
    if not re.fullmatch(r"\d{1,19}", text):
        raise ProfileError(line, f"{text[:40]!r} is no number")
    return int(text)


def _version(port: PktgenPort) -> int:
    found = [setting for key, setting in port.settings.items() if re.match(r"(?:src|dst)_ip", key)]
    return 6 if any(":" in setting.value for setting in found) else 4


def _pattern(
    key: str, port: PktgenPort, version: int, rows: list[ImportedKey], used: set[str]
) -> tuple[dict[str, Any] | None, Setting | None]:
    """The field's pattern, and the setting that is named for it; None without one."""
    parts = {part: port.settings.get(f"{key}.{part}") for part in ("start", "min", "max", "inc")}
    used.update((key, *(f"{key}.{part}" for part in parts)))
    first = next((setting for setting in parts.values() if setting is not None), None)
    if first is None:
        single = port.settings.get(key)
        if single is None and key not in _USUAL:
            return None, None
        setting = single or Setting(_USUAL[key], 1)
        return {"choice": "value", "value": _read(key, setting, version)}, single
    if key.endswith("mac"):
        start = parts["start"] or first
        if parts["inc"] is not None and _read(key, parts["inc"], version) != "00:00:00:00:00:00":
            return {"choice": "increment", "increment": {}}, parts["inc"]
        return {"choice": "value", "value": _read(key, start, version)}, start
    start = parts["start"] or parts["min"] or first
    value = _int(key, start, version)
    low, high, step = (
        value if part is None else _int(key, part, version)
        for part in (parts["min"], parts["max"], parts["inc"])
    )
    step = 0 if parts["inc"] is None else step
    if parts["max"] is not None and parts["inc"] is None and high != value:
        step = 1
        text = "the script has no inc for it: a step of 1"
        rows.append(row_of(f"{key}.inc", "", start.line, Became.DIFFERS, text))
    if step == 0 or low == high:
        return {"choice": "value", "value": _shown(key, value, version)}, start
    if not low <= value <= high:
        raise ProfileError(start.line, f"{key} starts at {start.value[:40]}, outside of its range")
    if value != low:
        text = f"from {_shown(key, low, version)} on: the order begins at the lowest here"
        rows.append(row_of(f"{key}.start", start.value, start.line, Became.DIFFERS, text))
    count = (high - low) // step + 1
    inner = {"start": _shown(key, low, version), "step": _shown(key, step, version), "count": count}
    return {"choice": "increment", "increment": inner}, start


def _read(key: str, setting: Setting, version: int) -> Any:
    if key.endswith("mac"):
        octets = re.sub(r"[^0-9a-fA-F]", "", setting.value).lower()
        if len(octets) != 12:
            raise ProfileError(setting.line, f"{setting.value[:40]!r} is no MAC")
        return ":".join(octets[place : place + 2] for place in range(0, 12, 2))
    return _shown(key, _int(key, setting, version), version)


def _int(key: str, setting: Setting, version: int) -> int:
    if not key.endswith("ip"):
        return _whole(setting.value, setting.line)
    text = setting.value.partition("/")[0].strip()
    try:
        return int((ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address)(text))
    except ValueError:
        raise ProfileError(setting.line, f"{text[:60]!r} is no IPv{version} address") from None


def _shown(key: str, value: int, version: int) -> Any:
    if not key.endswith("ip"):
        return value
    return str((ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address)(value))
