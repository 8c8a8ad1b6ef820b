# SPDX-License-Identifier: Apache-2.0
"""A DUT that does what no router should: a thread that reads the frames of both taps of a namespace and sends
back what it likes."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from evenhand.lab.build import LabNames
from evenhand.lab.namespaces import remove_namespace
from evenhand.lab.ports import af_packet_device, engine_command_inside
from evenhand.lab.taps import close, make_taps
from evenhand.plan import SIDES, AddressPlan
from evenhand.procedure.learning import USUAL_MAX_FRAME_SIZE
from evenhand.trial import find_engine

LEFT, RIGHT = 0, 1
_VNET_HEADER = bytes(10)
_MTU = 1500
Sent = Iterable[tuple[int, bytes]]
Behaviour = Callable[[int, bytes], Sent]
"""From the side where a frame came in, 0 or 1, and its octets without FCS, to what it sends: sides and
octets."""


@dataclass(frozen=True)
class LyingDut:
    """Where the tester finds it."""

    left_device: str
    right_device: str
    engine_command: list[str]


@contextmanager
def lying_dut(behaviour: Behaviour, name: str | None = None) -> Iterator[LyingDut]:
    """In a namespace that leads nowhere, until the block ends.

    Args:
        name: The namespace has it; None: one that no other process of the tests has.
    """
    names = LabNames(name or f"y{os.getpid() % 10_000_000}")
    remove_namespace(names.tester_namespace)
    taps = make_taps(names, 1, _MTU)
    descriptors = (taps[LEFT][0], taps[RIGHT][0])
    over = threading.Event()
    thread = threading.Thread(target=_forward, args=(descriptors, behaviour, over), daemon=True)
    thread.start()
    try:
        devices = [
            af_packet_device(k, names.tester_interface(side), USUAL_MAX_FRAME_SIZE)
            for k, side in enumerate(SIDES)
        ]
        yield LyingDut(
            devices[LEFT], devices[RIGHT], engine_command_inside(names.tester_namespace, find_engine())
        )
    finally:
        over.set()
        thread.join()
        close(taps)
        remove_namespace(names.tester_namespace)


def _forward(descriptors: tuple[int, int], behaviour: Behaviour, over: threading.Event) -> None:
    # Before the engine, which is as urgent as a nice value can say: a DUT that gets no CPU delivers too late,
    # and that is not what it lies about.
    with suppress(PermissionError):
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_RR, os.sched_param(1))
    while not over.is_set():
        for descriptor in select.select(descriptors, [], [], 0.05)[0]:
            side = descriptors.index(descriptor)
            for to, octets in behaviour(side, os.read(descriptor, 65536)[len(_VNET_HEADER) :]):
                os.write(descriptors[to], _VNET_HEADER + octets)


def is_test_frame(plan: AddressPlan, frame: bytes) -> bool:
    """By the payload tag's magic, where the plan's UDP payload begins."""
    return frame[tag_at(plan) : tag_at(plan) + 3] == b"\xe5\xe4\x01"


def tag_at(plan: AddressPlan) -> int:
    return 14 + (20 if plan.ip_version == 4 else 40) + 8


def trial_tag_of(plan: AddressPlan, frame: bytes) -> bytes:
    """The number of the trial as its tag has it, two octets in network order."""
    return frame[tag_at(plan) + 3 : tag_at(plan) + 5]


def sequence_of(plan: AddressPlan, frame: bytes) -> int:
    return int.from_bytes(frame[tag_at(plan) + 6 : tag_at(plan) + 12], "big")


def routed(plan: AddressPlan, frame: bytes, to_mac: bytes) -> bytes:
    """As a router forwards it: to the next MAC, with a hop limit lowered by one and, in IPv4, its checksum
    updated (RFC 1624)."""
    octets = bytearray(frame)
    octets[:6] = to_mac
    if plan.ip_version == 6:
        octets[14 + 7] -= 1
        return bytes(octets)
    octets[14 + 8] -= 1
    checksum = int.from_bytes(octets[14 + 10 : 14 + 12], "big") + 0x100
    octets[14 + 10 : 14 + 12] = ((checksum & 0xFFFF) + (checksum >> 16)).to_bytes(2, "big")
    return bytes(octets)
