# SPDX-License-Identifier: Apache-2.0
"""What a frame costs the receiver on one core, before `rx_burst`: every check, the map, its delay; and its
parts alone. Frames lie in memory as far apart as a driver's buffers do.

The least of many short rounds is what other programs on the host have the smallest share in.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from pieces import IS_SHORT, at_length, record

from evenhand.trial.engine_process import find_engine

PARTS = find_engine().parent / "bench" / "evenhand-bench-receiver-parts"
CPU = 1
ROUNDS = at_length(20_000, 200)
"""Rounds of 1,024 frames, some 6 us each for the whole."""
IN_L2, IN_L3 = 4, 16
"""Bursts of 64 frames that a round goes over: with 1,518 octets 256 frames stay in a second-level cache,
where a software port's copy leaves them, and 1,024 do not, as what a NIC writes does not."""
SENT_TOGETHER, ONE_BY_ONE = 32, 1
"""Frames with the same time in their tags: those of a turn of a sender at full load, or each has its own."""
CASES = {
    "IPv4, 64 octets": ("4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 84 octets": ("6", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 64 octets, one by one": ("4", 64, 1, ONE_BY_ONE, IN_L3),
    "IPv6, 84 octets, one by one": ("6", 84, 1, ONE_BY_ONE, IN_L3),
    "IPv4, 64 octets, one of 8 queues": ("4", 64, 8, SENT_TOGETHER, IN_L3),
    "IPv6, 84 octets, one of 8 queues": ("6", 84, 8, SENT_TOGETHER, IN_L3),
    "IPv4, 84 octets": ("4", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 512 octets": ("4", 512, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 1518 octets, in L2": ("4", 1518, 1, SENT_TOGETHER, IN_L2),
    "IPv6, 1518 octets, in L2": ("6", 1518, 1, SENT_TOGETHER, IN_L2),
    "IPv4, 1518 octets, in L3": ("4", 1518, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 1518 octets, in L3": ("6", 1518, 1, SENT_TOGETHER, IN_L3),
    "IPv6 to IPv4, 64 octets": ("6to4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv4 to IPv6, 84 octets": ("4to6", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 64 flows": ("flows4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 64 flows": ("flows6", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, one prefix": ("prefix4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, one prefix": ("prefix6", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 10^6 prefixes": ("table4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 10^6 prefixes": ("table6", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 362 octets": ("4", 362, 1, SENT_TOGETHER, IN_L3),
    "IPv4, sizes of 362 octets in the mean": ("sizes4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 374 octets": ("6", 374, 1, SENT_TOGETHER, IN_L3),
    "IPv6, sizes of 374 octets in the mean": ("sizes6", 84, 1, SENT_TOGETHER, IN_L3),
    "half IPv4 and half IPv6, 84 octets": ("versions4", 84, 1, SENT_TOGETHER, IN_L3),
    "IPv4, 64 octets, delays of every frame": ("delays4", 64, 1, SENT_TOGETHER, IN_L3),
    "IPv6, 84 octets, delays of every frame": ("delays6", 84, 1, SENT_TOGETHER, IN_L3),
}
"""IP version, or what was translated to what, or what else differs or is recorded; frame size with FCS as it
arrives (of a mix of sizes, the smallest); of how many queues this is one, each of which gets a random share
of the frames; how many are sent together; bursts of a round."""
CONNECTION_ROUNDS = at_length(6000, 100)
CONNECTION_CASES = {
    f"IPv{version}, {what}, 10^{power}, {pages} pages": (
        f"{kind}{version}",
        octets,
        CONNECTION_ROUNDS if 10**power > 1024 * CONNECTION_ROUNDS else 10**power // 1024 - 20,
        10**power,
        pages,
    )
    for version, octets in ((4, 64), (6, 84))
    for kind, what in (("learn", "new connections"), ("use", "established connections"))
    for power in ((6,) if IS_SHORT else (6, 7, 8))
    for pages in ("huge", "small")
}
"""A responder behind a DUT that keeps state: what its frames are, of how many connections, and the pages of
its state table. Each round has 1,024 frames, and there are 20 rounds before the first that counts."""


def parts(kind: str, octets: int, queues: int, together: int, bursts: int) -> dict[str, dict[str, float]]:
    """Nanoseconds a frame: the least and the median of all rounds, of each part and of the whole."""
    command = [str(PARTS), *map(str, (CPU, kind, octets, ROUNDS, queues, together, bursts))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def connection_parts(
    kind: str, octets: int, rounds: int, connections: int, pages: str
) -> dict[str, dict[str, float]]:
    """As `parts`, of frames of connections."""
    command = [
        str(PARTS),
        *map(str, (CPU, kind, octets, rounds, 1, SENT_TOGETHER, IN_L3, connections, pages)),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    found: dict[str, Any] = {name: parts(*case) for name, case in CASES.items()}
    found |= {name: connection_parts(*case) for name, case in CONNECTION_CASES.items()}
    for name, of_case in found.items():
        told = ", ".join(f"{part} {ns['least']:.2f}" for part, ns in of_case.items())
        print(f"{name:34} ns a frame (least): {told}")
    figures = {f"{name} (ns a frame)": of_case["all"]["least"] for name, of_case in found.items()}
    record("receiver_rate", {"unit": "ns a frame", "parts": found}, figures)


if __name__ == "__main__":
    main()
