# SPDX-License-Identifier: Apache-2.0
"""Exchange: what each key of a siitperf.conf, and each argument of siitperf, is here: two tables, `MAPPED`
and `NOT_CARRIED_OVER`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import refuse_if
from evenhand.exchange.outcome import Became, GivenHardware, ImportedKey
from evenhand.exchange.siitperf_read import KEYS, SiitperfCommand, SiitperfFile, is_own_mac
from evenhand.exchange.siitperf_traffic import ImportedPorts, ImportedTraffic
from evenhand.plan import SideName
from evenhand.procedure.connection_trials import check_plan_has

NOT_YET = "no plan has connections from IPv4 to IPv6, or other traffic in addition to connections"
OF_CONNECTIONS = r"Stateful|Enumerate-.*|Responder-.*"
"""Pattern of the keys of stateful tests (RFC 9693)."""
INITIATOR_ON_THE_RIGHT = 2
"""Value of `Stateful`."""
ORDERS = ("", "increasing", "decreasing", "pseudorandom", "pseudorandom")
"""What the values of Enumerate-ports, Enumerate-ips and Responder-... mean."""
CPUS = {
    (True, True): ("CPU-L-Send", "CPU-R-Send", "CPU-L-Recv", "CPU-R-Recv"),
    (True, False): ("CPU-L-Send", "CPU-R-Recv"),
    (False, True): ("CPU-L-Recv", "CPU-R-Send"),
}
"""By whether forward and reverse are on: four are two senders and two receivers, two have a port each."""
MACS: Mapping[str, tuple[SideName, str]] = {
    "MAC-L-Tester": ("left", "mac"),
    "MAC-R-Tester": ("right", "mac"),
    "MAC-L-DUT": ("left", "dut_mac"),
    "MAC-R-DUT": ("right", "dut_mac"),
}
"""Table and key of the testbed file."""


@dataclass(frozen=True, slots=True)
class SiitperfReading:
    """What was read, and what was found for it. Without a command line, the program is "", and there are no
    arguments."""

    file: SiitperfFile
    typed: SiitperfCommand
    given: GivenHardware
    traffic: ImportedTraffic
    ports: ImportedPorts

    def value(self, key: str) -> Any:
        """The value of a key, or of an argument, which has <> around it."""
        return self.typed.arguments[key[1:-1]] if key.startswith("<") else self.file.value(key)

    @property
    def order(self) -> str:
        """The order in which four tuples are used. Where siitperf enumerates none, it repeats them, and they
        are used once here."""
        orders = [ORDERS[self.file.value(key)] for key in ("Enumerate-ports", "Enumerate-ips")]
        return orders[0] or orders[1] or ORDERS[-1]

    @property
    def direction(self) -> str:
        """The option; empty for both directions."""
        is_both = self.file.value("Forward") and self.file.value("Reverse")
        return "" if is_both else f"--direction {'forward' if self.file.value('Forward') else 'reverse'}"

    @property
    def cpus(self) -> dict[str, int]:
        """CPUs by their keys, in the order of the testbed file."""
        keys = CPUS[
            bool(self.file.value("Forward") or not self.file.value("Reverse")),
            bool(self.file.value("Reverse")),
        ]
        return {key: self.file.value(key) for key in keys if self.file.has(key)}

    @property
    def frame_size(self) -> int:
        """Octets with FCS, on the IPv4 side if there is one. RequestError if siitperf would refuse it."""
        size, traffic = self.typed.arguments["IPv6 frame size"], self.traffic
        is_ipv4 = tuple(traffic.versions) == (4,)
        refuse_if(
            (
                size > 1518 and not is_ipv4,
                RequestError(
                    f"{size} octets: siitperf accepts more than 1518 only for pure IPv4 traffic",
                    code="exchange.frame-too-large",
                    where="--command",
                    next_step="Write 84 to 1518.",
                ),
            )
        )
        # The smallest of a mix is that of its IPv6 frames.
        return max(size - 20, 84 if traffic.share else 0) if is_ipv4 or traffic.is_to_ipv4 else size

    @property
    def why_not_opened(self) -> str:
        """Why the plan cannot have so many connections; empty if it can, or if none are asked for."""
        try:
            if self.typed.arguments and self.traffic.has_state:
                plan = replace(self.traffic.plans[0].plan, **self.ports.fields)
                check_plan_has(plan, self.typed.arguments["N"])
        except RequestError as error:
            return error.what
        return ""


def _var_of(key: str) -> str:
    """The key that has the order of these UDP ports."""
    return f"{key[:3]}-var-{'sport' if 'sport' in key else 'dport'}"


def _is_unlike(at: SiitperfReading, key: str) -> bool:
    """Whether it is not as in the forward direction. Where neither varies, it does not matter from where to
    where."""
    varies = at.value(_var_of(key)) or at.value(_var_of(f"Fwd{key[3:]}"))
    return at.value(key) != at.value(f"Fwd{key[3:]}") and ("var" in key or varies)


_When = Callable[[SiitperfReading, str], object]
NOT_CARRIED_OVER: Sequence[tuple[str, _When, str]] = (
    ("IP-.-Vers", lambda at, _: at.traffic.kind == "rest", f"stateful translation: {NOT_YET}"),
    ("IPv.-.-Virt", lambda at, _: at.traffic.kind == "rest", f"goes with stateful translation: {NOT_YET}"),
    (
        "IPv.-.-(Real|offset)",
        lambda at, key: (
            at.traffic.kind == "rest"
            and int(key[3]) == at.file.value(f"IP-{key[5]}-Vers")
            and int(key[3]) not in at.traffic.versions
        ),
        f"goes with stateful translation: {NOT_YET}",
    ),
    (f"{OF_CONNECTIONS}|<[NMRTD]>", lambda at, _: at.traffic.kind in ("rest", "background"), NOT_YET),
    (
        "IP-.-(var|min|max)|Num-.*|(Fwd|Rev)-.*|<.*>",
        lambda at, _: not at.traffic.plans,
        "no part of this traffic can be sent",
    ),
    ("<N>", lambda at, _: at.why_not_opened, "{at.why_not_opened}"),
    (
        "<[nm]>",
        lambda at, _: at.traffic.has_state and at.value("<m>") < at.value("<n>"),
        "there is no background traffic: all frames belong to connections",
    ),
    (
        "<frame timeout>",
        lambda at, key: at.value(key) > 0,
        "trials are not judged by the delay of each frame; frames that arrive after --wait-residual count as"
        " lost",
    ),
)
"""All that is refused: pattern of the keys and arguments, when, and why."""

MAPPED: Sequence[tuple[str, _When, Became, str]] = (
    (
        "IP-.-Vers",
        lambda at, _: at.typed.arguments.get("m") == 0,
        Became.MEANINGLESS,
        "m is 0: all frames belong to the background, which is IPv6",
    ),
    ("IP-.-Vers", lambda *_: True, Became.MAPPED, "--plan {at.traffic.names}"),
    ("IP-.-var", lambda at, key: not at.value(key), Became.MAPPED, "one address"),
    (
        "IP-L-var",
        lambda *_: True,
        Became.MAPPED,
        "--host-mode {at.traffic.plans[0].plan.left.host_range.mode}",
    ),
    (
        "IP-R-var",
        lambda *_: True,
        Became.MAPPED,
        "--host-mode {at.traffic.plans[0].plan.right.host_range.mode}",
    ),
    ("IPv.-.-(Real|Virt)", lambda at, key: key in at.traffic.texts, Became.MAPPED, "{host}"),
    (
        "IPv.-.-Virt",
        lambda at, _: at.traffic.kind not in ("translated", "stateful"),
        Became.MEANINGLESS,
        "only translated traffic uses it",
    ),
    (
        "IPv.-.-.*",
        lambda at, key: (
            at.traffic.kind not in ("translated", "stateful") and int(key[3]) not in at.traffic.versions
        ),
        Became.MEANINGLESS,
        "no IPv{key[3]} frame contains it",
    ),
    (
        "IPv.-.-.*",
        lambda at, key: not key.endswith("offset") or int(key[3]) not in at.traffic.versions,
        Became.MEANINGLESS,
        "no frame contains it",
    ),
    ("IP-L-m..|IPv.-L-offset", lambda at, _: not at.value("IP-L-var"), Became.MEANINGLESS, "IP-L-var is 0"),
    ("IP-R-m..|IPv.-R-offset", lambda at, _: not at.value("IP-R-var"), Became.MEANINGLESS, "IP-R-var is 0"),
    ("IPv.-.-offset", lambda *_: True, Became.MAPPED, "the position of the host's number"),
    ("IP-.-min", lambda *_: True, Became.MAPPED, "the number in the first host"),
    ("IP-.-max", lambda *_: True, Became.MAPPED, "the number in the last host"),
    (
        "MAC-.*",
        lambda at, key: not is_own_mac(at.value(key)),
        Became.DIFFERS,
        "{mac} is omitted: no port can have this address",
    ),
    ("MAC-.*", lambda *_: True, Became.MAPPED, "{mac}"),
    (
        "Rev-.*",
        lambda at, _: at.traffic.has_state,
        Became.MEANINGLESS,
        "an answer has the ports of its connection",
    ),
    (
        "Fwd-.*",
        lambda at, _: not at.value("Forward") and not at.traffic.has_state,
        Became.MEANINGLESS,
        "Forward is 0",
    ),
    (
        "Rev-.*",
        lambda at, _: at.value("Forward") and not at.value("Reverse"),
        Became.MEANINGLESS,
        "Reverse is 0",
    ),
    (
        "...-.port-m..",
        lambda at, key: at.traffic.has_state and "fixed" in at.ports.texts[key[4:9]],
        Became.MEANINGLESS,
        "{var} and Enumerate-ports are 0",
    ),
    (
        "Rev-.*",
        lambda at, key: at.ports.way == "Fwd" and _is_unlike(at, key),
        Became.DIFFERS,
        "{ports}: both directions use the ports of Fwd-...",
    ),
    (
        "...-.port-m..",
        lambda at, key: not at.traffic.has_state and not at.value(_var_of(key)),
        Became.MEANINGLESS,
        "{var} is 0",
    ),
    (
        "...-.port-min",
        lambda at, key: key[:3] == at.ports.way and not at.value(key),
        Became.DIFFERS,
        "1: port 0 is reserved (RFC 4814, 4.5)",
    ),
    ("(Fwd|Rev)-.*", lambda *_: True, Became.MAPPED, "{ports}"),
    (
        "Num-.*",
        lambda at, _: at.traffic.plans[0].plan.left.host_range.network_range is None,
        Became.MAPPED,
        "one network",
    ),
    ("Num-.*", lambda *_: True, Became.MAPPED, "--networks, with --fixed-source"),
    ("CPU-.*", lambda at, key: key not in at.cpus, Became.MEANINGLESS, "its direction is off"),
    ("CPU-.*", lambda at, _: at.given.cpus, Became.MEANINGLESS, "--cpus is used instead"),
    (
        "CPU-.*",
        lambda at, key: list(at.cpus.values()).count(at.value(key)) > 1,
        Became.DIFFERS,
        "named for {cpu_keys}; a CPU may occur only once in tester.cpus",
    ),
    ("CPU-.*", lambda *_: True, Became.MAPPED, "tester.cpus, number {cpu_number}"),
    ("Forward|Reverse", lambda at, _: at.direction, Became.MAPPED, "{at.direction}"),
    ("Forward|Reverse", lambda *_: True, Became.MAPPED, "--direction both, the default"),
    (
        "Promisc",
        lambda *_: True,
        Became.MEANINGLESS,
        "the ports are always promiscuous, and a test frame is recognised by its tag",
    ),
    ("MEM-Channels", lambda *_: True, Became.MEANINGLESS, "DPDK determines the memory channels"),
    ("Stateful", lambda at, key: not at.value(key), Became.MAPPED, "no connections"),
    (OF_CONNECTIONS, lambda at, _: not at.traffic.has_state, Became.MEANINGLESS, "Stateful is 0"),
    (
        "Stateful",
        lambda at, key: at.value(key) == INITIATOR_ON_THE_RIGHT,
        Became.MAPPED,
        "--plan {at.traffic.names}: the right port opens connections",
    ),
    (
        "Stateful",
        lambda *_: True,
        Became.MAPPED,
        "--plan {at.traffic.names}: the left port opens connections",
    ),
    (
        "Enumerate-.*",
        lambda at, key: not at.value(key) and (at.value("Enumerate-ports") or at.value("Enumerate-ips")),
        Became.MAPPED,
        "each four tuple is used once",
    ),
    (
        "Enumerate-.*",
        lambda at, key: not at.value(key),
        Became.DIFFERS,
        "each connection has a four tuple of its own: none is used twice",
    ),
    (
        "Enumerate-.*",
        lambda at, key: ORDERS[at.value(key)] != at.order,
        Became.DIFFERS,
        "--order {at.order}: addresses and ports have one order",
    ),
    (
        "Enumerate-.*",
        lambda at, _: at.order == ORDERS[-1],
        Became.MAPPED,
        "each four tuple is used once, in pseudorandom order",
    ),
    (
        "Enumerate-.*",
        lambda *_: True,
        Became.DIFFERS,
        "--order {at.order} of evenhand connections; --established ones are opened in pseudorandom order",
    ),
    (
        "Responder-.*",
        lambda at, key: ORDERS[at.value(key)] == ORDERS[-1],
        Became.MAPPED,
        "each frame of the responder is of any connection",
    ),
    (
        "Responder-.*",
        lambda *_: True,
        Became.DIFFERS,
        "each frame of the responder is of any connection, drawn anew",
    ),
    (
        "<IPv6 frame size>",
        lambda at, _: at.traffic.share and at.traffic.is_to_ipv4,
        Became.DIFFERS,
        "--frame-size {at.frame_size}, on the IPv4 side; the frames of the background have it as well, and"
        " are 20 octets longer in siitperf",
    ),
    (
        "<IPv6 frame size>",
        lambda at, _: at.traffic.share,
        Became.DIFFERS,
        "--frame-size {at.frame_size} for both IP versions; siitperf's IPv4 frames are 20 octets shorter",
    ),
    (
        "<IPv6 frame size>",
        lambda at, _: at.traffic.is_to_ipv4,
        Became.MAPPED,
        "--frame-size {at.frame_size}, on the IPv4 side",
    ),
    ("<IPv6 frame size>", lambda *_: True, Became.MAPPED, "--frame-size {at.frame_size}"),
    ("<rate>", lambda *_: True, Became.MAPPED, "--rate {value}, per direction"),
    ("<duration>", lambda *_: True, Became.MAPPED, "--duration {value}s"),
    ("<global timeout>", lambda *_: True, Became.MAPPED, "--wait-residual {value}ms"),
    ("<[nm]>", lambda at, _: at.value("<m>") == 0, Became.MAPPED, "all background: IPv6"),
    (
        "<[nm]>",
        lambda at, _: at.traffic.share is None,
        Became.MAPPED,
        "no background: all frames use the same plan",
    ),
    (
        "<[nm]>",
        lambda at, _: (
            Fraction((at.traffic.share or (1, 0))[0], sum(at.traffic.share or (1, 0)))
            != Fraction(at.value("<m>"), at.value("<n>"))
        ),
        Became.DIFFERS,
        "--mix {at.traffic.share[0]}/{at.traffic.share[1]}, the closest share",
    ),
    ("<[nm]>", lambda *_: True, Became.MAPPED, "--mix {at.traffic.share[0]}/{at.traffic.share[1]}"),
    ("<N>", lambda *_: True, Became.MAPPED, "--established {value}, or --connections {value}"),
    (
        "<M>",
        lambda at, key: at.value(key) >= at.value("<N>"),
        Became.MEANINGLESS,
        "the responder keeps every connection",
    ),
    (
        "<M>",
        lambda *_: True,
        Became.DIFFERS,
        "all {at.typed.arguments[N]:,} connections are kept: each has a place of its own",
    ),
    ("<R>", lambda *_: True, Became.MAPPED, "--establish-rate {value}"),
    (
        "<T>",
        lambda at, key: at.value(key) == at.value("<global timeout>"),
        Became.MAPPED,
        "--wait-residual {value}ms",
    ),
    (
        "<T>",
        lambda *_: True,
        Became.DIFFERS,
        "--wait-residual {at.typed.arguments[global timeout]}ms: both phases wait as long for the last"
        " frames",
    ),
    (
        "<D>",
        lambda *_: True,
        Became.MEANINGLESS,
        "phase 2 begins when phase 1 is over, and the waits after it",
    ),
    ("<delay>", lambda *_: True, Became.MAPPED, "--from {value}s"),
    ("<timestamps>", lambda *_: True, Became.MAPPED, "--tagged {value}"),
    ("<frame timeout>", lambda *_: True, Became.MAPPED, "0: packet delay variation, evenhand pdv"),
)
"""What each key and argument is here: pattern, when, what became of it, and what it is. The first line that
fits counts."""


def row_of(at: SiitperfReading, written: str) -> ImportedKey:
    """What became of a key, as the file has it, or of an argument. What no plan can say of addresses differs
    (`FoundPlan.differences`)."""
    key, line = at.file.as_written(written), at.file.lines.get(written)
    value = at.value(key)
    rows = {
        name: (Became.DIFFERS, text) for found in at.traffic.plans for name, text in found.differences.items()
    }
    words = {
        "at": at,
        "key": key,
        "value": value,
        "host": at.traffic.texts.get(key),
        "var": _var_of(key),
        "ports": at.ports.texts["sport" if "sport" in key else "dport"],
        "mac": ".".join(MACS.get(key, ())),
        "cpu_keys": " and ".join(each for each, cpu in at.cpus.items() if cpu == value),
        "cpu_number": [*dict.fromkeys(at.cpus.values()), value].index(value) + 1,
    }
    for pattern, when, why in NOT_CARRIED_OVER:
        if re.fullmatch(pattern, key) and when(at, key):
            rows[key] = Became.REFUSED, why.format(**words)
            break
    if key not in rows:
        rows[key] = next(
            (became, text.format(**words))
            for pattern, when, became, text in MAPPED
            if re.fullmatch(pattern, key) and when(at, key)
        )
    became, text = rows[key]
    is_default = line is None and key in KEYS
    return ImportedKey(
        key=written,
        value=str(value),
        line=line,
        became=became,
        text=at.file.as_written(text) + " (siitperf's default)" * is_default,
    )
