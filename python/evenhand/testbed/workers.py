# SPDX-License-Identifier: Apache-2.0
"""Testbed: which CPU runs which senders and receivers, where the user has not said more than the CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.plan import SideName


def lay_out_workers(cpus: Sequence[int]) -> list[dict[str, Any]]:
    """The contract's `workers` for these CPUs, the same for both directions.

    One CPU is a whole tester. Two have a port each. With more, each side gets one CPU that receives, the others send
    one stream each; a CPU left over takes both receivers, and frees two for sending.
    """
    if len(cpus) == 1:
        return [_worker(cpus[0], senders=[("left", 0), ("right", 0)], receivers=["left", "right"])]
    if len(cpus) == 2:
        return [_worker(cpus[0], senders=[("left", 0)], receivers=["left"]), _worker(cpus[1], senders=[("right", 0)], receivers=["right"])]
    sides: tuple[SideName, SideName] = ("left", "right")
    if len(cpus) % 2:
        *sending, receiving = cpus
        workers = [_worker(receiving, receivers=list(sides))]
    else:
        *sending, left_receiving, right_receiving = cpus
        workers = [_worker(left_receiving, receivers=["left"]), _worker(right_receiving, receivers=["right"])]
    half = len(sending) // 2
    for side, own in zip(sides, (sending[:half], sending[half:]), strict=True):
        workers += [_worker(cpu, senders=[(side, stream)]) for stream, cpu in enumerate(own)]
    return sorted(workers, key=lambda worker: cpus.index(worker["cpu"]))


def _worker(cpu: int, *, senders: Sequence[tuple[SideName, int]] = (), receivers: Sequence[SideName] = ()) -> dict[str, Any]:
    worker: dict[str, Any] = {"cpu": cpu}
    if senders:
        worker["senders"] = [{"side": side, "stream": stream} for side, stream in senders]
    if receivers:
        worker["receivers"] = [{"side": side, "queue": 0} for side in receivers]
    return worker
