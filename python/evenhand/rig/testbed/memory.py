# SPDX-License-Identifier: Apache-2.0
"""Testbed: how much memory the engine's frame buffers take, where the user has not said it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.plan import SideName

LEAST_MEMORY_MB = 512
"""Enough for rings of the usual size and up to four streams a side."""

_DEFAULT_RING_FRAMES = 2048
_LEAST_RECEIVE_BUFFERS = 16383
_LEAST_TRANSMIT_BUFFERS = 8191
_ANSWER_BUFFERS = 8191
_PAGE_OCTETS = 4096
"""Without hugepages a buffer begins a page of its own, if it does not share it with others."""
_AROUND_OCTETS = 512
"""Headroom, and what DPDK keeps of each buffer."""
_MARGIN = 1.1
"""For what is not a buffer. Measured with `net_null`: 2 to 4 % for 1 to 8 streams, 1 to 4 queues, rings of
2048 to 16384."""


def needed_memory_mb(
    workers: Sequence[Mapping[str, Any]], ports: Mapping[SideName, Mapping[str, Any]], frame_size: int = 64
) -> int:
    """Mebibytes for these workers, ports and frames of the contract's `open`, without hugepages: at least
    512.

    A port has a pool of buffers for all its receive queues, one for each stream and one for answers to
    neighbours, as in `engine/port/dpdk_port.cpp`.
    """
    pages = len(ports) * _ANSWER_BUFFERS
    for side, port in ports.items():
        streams = sum(sender["side"] == side for worker in workers for sender in worker.get("senders", ()))
        queues = sum(
            receiver["side"] == side for worker in workers for receiver in worker.get("receivers", ())
        )
        buffers = max(
            _LEAST_RECEIVE_BUFFERS, 4 * queues * port.get("receive_ring_frames", _DEFAULT_RING_FRAMES)
        )
        buffers += streams * max(
            _LEAST_TRANSMIT_BUFFERS, 2 * port.get("transmit_ring_frames", _DEFAULT_RING_FRAMES)
        )
        # The slots of a packet socket's ring have a size of their own, and buffers must hold one.
        slot = re.search(r",framesz=(\d+)", port.get("device", ""))
        largest = frame_size if slot is None else max(frame_size, int(slot[1]))
        pages += buffers * -(-(largest + _AROUND_OCTETS) // _PAGE_OCTETS)
    return max(LEAST_MEMORY_MB, int(pages * _PAGE_OCTETS * _MARGIN) // (1 << 20) + 1)
