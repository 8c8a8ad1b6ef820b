# SPDX-License-Identifier: Apache-2.0
"""DUT: what `ethtool` and /sys report of one interface of a Linux router. Pure functions over their
output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from evenhand.base.errors import HostError, RequestError
from evenhand.dut.readings import split_exit, words_of_answer
from evenhand.plan import AddressPlan, Direction, SideName
from evenhand.predict import DeviceModel, HashType, Prediction, predict
from evenhand.predict.ethtool import read_ethtool
from evenhand.predict.ethtool_text import fields_of
from evenhand.testbed.places import is_of_side

COMMANDS = {
    "driver": "ethtool -i {0}",
    "rings": "ethtool -g {0}",
    "channels": "ethtool -l {0}",
    "offloads": "ethtool -k {0}",
    "coalescing": "ethtool -c {0}",
    "table": "ethtool -x {0}",
    "udp4": "ethtool -n {0} rx-flow-hash udp4",
    "udp6": "ethtool -n {0} rx-flow-hash udp6",
    "link": "ip -o link show dev {0}",
}
"""Name of a part of the output, and the command."""
DEVICE = (
    'device=/sys/class/net/$name/device; echo "pci $(cat $device/vendor $device/device 2>/dev/null | tr'
    " '\\n' ' ')\"; "
    "for key in speed threaded gro_flush_timeout napi_defer_hard_irqs; do "
    '[ -r /sys/class/net/$name/$key ] && echo "$key $(cat /sys/class/net/$name/$key 2>/dev/null)"; done; '
    '[ -r $device/numa_node ] && echo "numa_node $(cat $device/numa_node)"; '
    "for cpus in /sys/class/net/$name/queues/rx-*/rps_cpus; do "
    '[ -r $cpus ] && echo "rps $(basename $(dirname $cpus)) $(cat $cpus)"; done; '
    # The interrupts of a virtio device belong to the PCI device above it.
    'for number in $(ls $device/msi_irqs $device/../msi_irqs 2>/dev/null | grep -E "^[0-9]+$" | sort -n -u);'
    " do "
    '[ -r /proc/irq/$number/smp_affinity_list ] && echo "irq $number $(cat'
    " /proc/irq/$number/smp_affinity_list)"
    ' $(sed -n "s/^ *$number:.* //p" /proc/interrupts)"; done'
)
"""Prints lines of a key and its value; `$name` is the interface."""
_OFFLOADS = (
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "rx-vlan-offload",
    "tx-vlan-offload",
    "ntuple-filters",
    "receive-hashing",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "hw-tc-offload",
    "l2-fwd-offload",
)
"""Those offloads, of some sixty, that a router's rate depends on."""
_COALESCING = ("Adaptive RX", "rx-usecs", "rx-frames", "tx-usecs", "tx-frames")


def read_interface(name: str, parts: Mapping[str, str], *, where: str) -> dict[str, Any]:
    """Facts of one interface. None where the driver does not report them; `answers` has what it said instead.

    Args:
        parts: Output of `COMMANDS` and of `DEVICE` (as `device`), by name.

    Raises:
        HostError: There is no such interface.
    """
    code, link = split_exit(parts.get("link", ""))
    if code:
        raise HostError(
            f"the DUT does not report its interface {name!r}: {words_of_answer(code, link)}",
            code="rig.dut-interface-missing",
            where=where,
            next_step="Name its interfaces in the testbed file (dut.left, dut.right) as `ip link` shows them"
            " on the DUT.",
        )
    reported: dict[str, str] = {}
    answers: dict[str, str] = {}
    for part in ("driver", "rings", "channels", "offloads", "coalescing", "table", "udp4", "udp6"):
        code, text = split_exit(parts.get(part, ""))
        if code:
            answers[part] = words_of_answer(code, text)
        else:
            reported[part] = text
    driver = _colons(reported.get("driver", ""))
    device = [line.split(" ", 1) for line in parts.get("device", "").splitlines()]
    values = {key: rest[0].strip() for key, *rest in device if rest}
    offloads = _colons(reported.get("offloads", ""))
    coalescing = _colons(reported.get("coalescing", ""))
    return {
        "name": name,
        "driver": driver.get("driver"),
        "driver_version": driver.get("version") or None,
        "firmware": {"": None, "N/A": None}.get(firmware := driver.get("firmware-version", ""), firmware),
        "pci": ":".join(word.removeprefix("0x") for word in values.get("pci", "").split()) or None,
        "numa_node": number_in(values.get("numa_node")),
        "mtu": number_in(_after("mtu", link)),
        "qdisc": _after("qdisc", link),
        "speed_mbps": number_in(values.get("speed")),
        "threaded_napi": {"0": False, "1": True}.get(values.get("threaded", "")),
        "rings": read_limits(reported.get("rings", "")),
        "channels": read_limits(reported.get("channels", "")),
        "offloads": {name: offloads[name].split()[0] for name in _OFFLOADS if name in offloads},
        "coalescing": {
            name: coalescing[name] for name in _COALESCING if coalescing.get(name, "n/a") != "n/a"
        },
        "rps": {words[1]: words[2] for words in _lines(device, "rps") if words[2].strip("0,")},
        "interrupts": [
            {"irq": int(words[1]), "cpus": words[2], "name": words[3] if len(words) > 3 else ""}
            for words in _lines(device, "irq")
        ],
        "hash": read_hash(reported, answers),
        "answers": answers,
    }


def read_hash(reported: Mapping[str, str], answers: dict[str, str]) -> dict[str, Any]:
    """Key, table and function of `ethtool -x`, and the fields by protocol: `sd` is type 1, `sdfn` type 2
    (RSS-01, RSS-02)."""
    table: list[int] = []
    key, symmetric, function = None, False, None
    if "table" in reported:
        on = re.findall(r"^ +([a-z][a-z0-9-]*): on *$", reported["table"], re.MULTILINE)
        function = next((name for name in on if not name.startswith("symmetric-")), None)
        try:
            found = read_ethtool(reported["table"], where="")
            table = [int(word) for word in found.words if word.isdecimal()]
            key, symmetric = found.key, found.is_symmetric
            if key is None:
                answers["key"] = found.why_no_key
        except RequestError as error:  # such as another function than Toeplitz
            answers["table"] = error.what
    fields = {
        protocol: word
        for protocol in ("udp4", "udp6")
        if protocol in reported and (word := read_fields(reported[protocol])) is not None
    }
    for protocol in ("udp4", "udp6"):
        if protocol in reported and protocol not in fields:
            answers[protocol] = " ".join(reported[protocol].split())[:200] or "no answer"
    return {
        "function": function,
        "key": None if key is None else key.hex(),
        "table": table,
        "is_symmetric": symmetric,
        "fields": fields,
    }


def read_fields(text: str) -> str | None:
    """`sd`, `sdfn` ... of what `ethtool -n IF rx-flow-hash udp4` prints; None if it says none, or one that
    has no letter here."""
    return fields_of(text.splitlines()) or None


def read_limits(text: str) -> dict[str, int]:
    """Limits that `ethtool -g` and `-l` print: `rx`, `combined` ... as they are, and `rx_max` ... as they can
    be."""
    found: dict[str, int] = {}
    suffix = ""
    for line in text.splitlines():
        if line.startswith("Pre-set maximums"):
            suffix = "_max"
        elif line.startswith("Current hardware settings"):
            suffix = ""
        name, colon, value = line.partition(":")
        if colon and value.strip().isdecimal():
            found[name.strip().lower().replace(" ", "_") + suffix] = int(value)
    return found


def _colons(text: str) -> dict[str, str]:
    """Lines of a name, a colon and a value; of `Adaptive RX: off  TX: off` the first."""
    found = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            found[name.strip()] = value.split("  ")[0].strip()
    return found


def _lines(device: list[list[str]], key: str) -> list[list[str]]:
    """Words of the lines with this key that have a value."""
    each = [[first, *rest[0].split()] for first, *rest in device if rest and first == key]
    return [words for words in each if len(words) >= 3]


def _after(word: str, link: str) -> str | None:
    found = re.search(rf" {word} (\S+)", link)
    return found[1] if found else None


def number_in(text: str | None) -> int | None:
    """None if it is not a number, or not there."""
    return int(text) if text is not None and text.strip().isdecimal() else None


TYPES: Mapping[str, HashType] = {"sd": "type1", "sdfn": "type2"}
RECEIVES: Mapping[Direction, SideName] = {"forward": "left", "reverse": "right"}
"""The DUT's interface that frames of a direction come to."""


def comes_to(direction: Direction, place: str) -> bool:
    """Whether the interface in this place is one that frames of the direction come to."""
    return is_of_side(place, RECEIVES[direction])


def device_of(
    interface: Mapping[str, Any], ip_version: Literal[4, 6], *, where: str, rate_fps: float | None = None
) -> DeviceModel:
    """The queues of an interface, and how its NIC chooses one.

    Args:
        interface: One of `interfaces` of the facts.
        rate_fps: What one queue forwards, if that is known.

    Raises:
        RequestError: The driver does not report them, with its answer; or it hashes in a way that is not
            predicted.
    """
    reported, protocol = interface["hash"], f"udp{ip_version}"
    if not reported["table"]:
        raise _not_reported(interface, "its indirection table", "table", where)
    if reported["key"] is None:
        raise _not_reported(interface, "its hash key", "key", where)
    if protocol not in reported["fields"]:
        raise _not_reported(
            interface, f"which fields it hashes for UDP over IPv{ip_version}", protocol, where
        )
    fields = reported["fields"][protocol]
    if fields not in TYPES:
        raise RequestError(
            f"{interface['name']} hashes {fields!r} for UDP over IPv{ip_version}, which is"
            " neither type 1 (sd) nor type 2 (sdfn)",
            code="rig.hash-of-other-fields",
            where=where,
            next_step=f"Set it there: ethtool -N {interface['name']} rx-flow-hash {protocol} sd",
        )
    table = tuple(reported["table"])
    return DeviceModel(
        elements=max(table) + 1,
        hash_type=TYPES[fields],
        symmetric=reported["is_symmetric"],
        key=bytes.fromhex(reported["key"]),
        table=table,
        rate_fps=rate_fps,
    )


def predict_queues(
    facts: Mapping[str, Any], plan: AddressPlan, direction: Direction, *, where: str, place: str | None = None
) -> Prediction:
    """The load of each queue of the interface that the frames of this direction come to.

    Args:
        place: This one's place, where there are several such interfaces.

    Raises:
        RequestError: As `device_of`; or fields of the plan count together.
    """
    version = plan.stream_of(direction).sent.ip_version
    interface = facts["interfaces"][place or RECEIVES[direction]]
    return predict(plan, device_of(interface, version, where=where), (direction,))


def _not_reported(interface: Mapping[str, Any], what: str, part: str, where: str) -> RequestError:
    answer = interface["answers"].get(part) or interface["answers"].get("table") or "no answer"
    return RequestError(
        f"the driver of {interface['name']} ({interface['driver'] or 'unknown'}) does not report"
        f" {what}: {answer}",
        code="rig.not-reported-by-nic",
        where=where,
        next_step="Omit --dut, and give what you know about the device: --table, --key, --hash, --elements.",
    )
