# SPDX-License-Identifier: Apache-2.0
"""DUT: what `ethtool -S` reports of each queue, by the names that drivers give their counters, and what a NIC
itself says that it lost.

Every driver has words of its own. Those that are known here were taken from the drivers' sources in the
kernel; a name that is not known is left out, so that a queue is never counted by something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

OF_NIC = (
    r"(port\.)?[rt]x_(missed_errors|no_dma_resources|no_buffer_count|out_of_buffer|discards_phy|dropped"
    r"|discards|fifo_errors|over_errors|steer_missed_packets)(\.nic)?"
)
"""Counters of the whole NIC that count what it did not hand on."""
KEPT = (
    # igb, igc, ixgbe, ice, hv_netvsc, veth, virtio_net (packets up to Linux 6.9: see readings_kernel.py)
    r"[rt]x_queue_[0-9]+_(packets|xdp_packets|drops)"
    # mlx4, mlx5, mana: rx0_packets; i40e: rx-0.packets; sfc: rx-0.rx_packets
    r"|[rt]x[-_]?[0-9]+[._]([rt]x_)?(packets|drops|dropped)"
    # bnxt_en, bnx2x
    r"|\[[0-9]+\]: [rt]x_[umb]cast_packets|\[[0-9]+\]: [rt]x_discards"
    # ena, gve, nfp, atlantic
    r"|queue_[0-9]+_[rt]x_cnt|[rt]x_packets\[[0-9]+\]|rvec_[0-9]+_[rt]x_pkts|Queue\[[0-9]+\] (In|Out)Packets"
    # vmxnet3 names the queue once, above its counters
    r"|[RT]x Queue#|[umb]cast pkts [rt]x"
)
"""Written so that POSIX reads it as an extended regular expression too: the DUT itself leaves the rest of
some thousand lines out."""
FILTER = rf"^ *({KEPT}|{OF_NIC}):"

_LINE = re.compile(r"^ *(.+?): +(-?[0-9]+) *$")
_QUEUE = (
    re.compile(r"(?P<way>[rt]x)_queue_(?P<queue>\d+)_(?P<what>\w+)"),
    re.compile(r"(?P<way>[rt]x)[-_]?(?P<queue>\d+)[._](?:[rt]x_)?(?P<what>\w+)"),
    re.compile(r"\[(?P<queue>\d+)\]: (?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"queue_(?P<queue>\d+)_(?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"(?P<way>[rt]x)_(?P<what>packets)\[(?P<queue>\d+)\]"),
    re.compile(r"rvec_(?P<queue>\d+)_(?P<way>[rt]x)_(?P<what>pkts)"),
    re.compile(r"Queue\[(?P<queue>\d+)\] (?P<way>In|Out)(?P<what>Packets)"),
)
_WAYS = {"rx": "received", "tx": "sent", "in": "received", "out": "sent"}
_PACKETS = frozenset({"packets", "pkts", "cnt", "ucast_packets", "mcast_packets", "bcast_packets"})
_ONLY_COUNT = "xdp_packets"
"""Counter of veth: all that its queue took, with a program or without. Other drivers count with it what a
program took, in addition to `packets`."""
_DROPS = frozenset({"drops", "dropped", "discards"})

Queues = dict[int, dict[str, int]]
"""Counters by the number of the queue: `received_packets`, `sent_packets`, `drops`; only what the driver
reports."""


def read_queues(text: str) -> tuple[Queues, dict[str, int]]:
    """Counters of each queue, and by their own names those of the NIC that count losses. Both empty if the
    driver reports nothing known."""
    queues: Queues = {}
    of_nic: dict[str, int] = {}
    for name, value in _known_lines(text):
        if re.fullmatch(OF_NIC, name):
            of_nic[name] = value
            continue
        found = next((match for pattern in _QUEUE if (match := pattern.fullmatch(name))), None)
        if found is None:
            continue
        key = _key_of(found["way"].lower(), found["what"].lower())
        if key is not None:
            counters = queues.setdefault(int(found["queue"]), {})
            counters[key] = counters.get(key, 0) + value
    for counters in queues.values():
        for way in ("received", "sent"):
            only = counters.pop(f"{way}_{_ONLY_COUNT}", None)
            if only is not None:
                counters.setdefault(f"{way}_packets", only)
    return dict(sorted((number, counters) for number, counters in queues.items() if counters)), of_nic


def _known_lines(text: str) -> Iterator[tuple[str, int]]:
    """Those that the DUT should have sent, and no others; vmxnet3's under names that have the queue in
    them."""
    queue = 0
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None or not re.match(FILTER, line):
            continue
        name, value = found[1], int(found[2])
        if name.endswith("Queue#"):
            queue = value
        elif " pkts " in name:
            kind, _, way = name.split()
            yield f"[{queue}]: {way}_{kind}_packets", value
        else:
            yield name, value


def _key_of(way: str, what: str) -> str | None:
    if what in _PACKETS:
        return f"{_WAYS[way]}_packets"
    if what == _ONLY_COUNT:
        return f"{_WAYS[way]}_{_ONLY_COUNT}"
    return "drops" if what in _DROPS else None
