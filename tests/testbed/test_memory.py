# SPDX-License-Identifier: Apache-2.0
"""Testbed: the memory that frame buffers take."""

from __future__ import annotations

from evenhand.plan import SideName
from evenhand.testbed import needed_memory_mb

WORKERS = [
    {
        "cpu": 0,
        "senders": [{"side": "left", "stream": 0}, {"side": "right", "stream": 0}],
        "receivers": [{"side": "left", "queue": 0}, {"side": "right", "queue": 0}],
    }
]


def ports(device: str) -> dict[SideName, dict[str, str]]:
    return {side: {"device": device} for side in ("left", "right")}


def test_jumbo_frames_take_the_pages_that_their_buffers_need() -> None:
    """R8219-01: without hugepages a buffer begins a page of its own; those of usual frames fit into one."""
    # Receiving 16,383 and sending 8,191 buffers of so many pages a side, answers in one; 10 % for the rest.
    for frame_size, of_a_buffer in ((64, 1), (1518, 1), (9216, 3)):
        pages = 2 * (of_a_buffer * (16383 + 8191) + 4095)
        needed = int(pages * 4096 * 1.1) // (1 << 20) + 1
        assert needed_memory_mb(WORKERS, ports("net_ring0"), frame_size) == needed


def test_slots_of_a_packet_socket_are_counted_whatever_the_frames() -> None:
    """DPDK wants buffers that hold a slot of the ring."""
    small = needed_memory_mb(WORKERS, ports("net_af_packet0,iface=eth0,blocksz=16384,framesz=16384"), 64)
    assert small > needed_memory_mb(WORKERS, ports("net_af_packet0,iface=eth0"), 9216)
