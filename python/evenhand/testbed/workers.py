# SPDX-License-Identifier: Apache-2.0
"""Testbed: which CPU runs which senders and receivers, where the user has not said more than the CPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.validation.checked_file import UnfitError
from evenhand.plan import SideName

_SIDES: tuple[SideName, SideName] = ("left", "right")


def lay_out_workers(
    cpus: Sequence[int], receive_queues: int = 1, *, one_armed: bool = False
) -> list[dict[str, Any]]:
    """The contract's `workers` for these CPUs, the same for both directions.

    One CPU is a whole tester. Two have a port each, with all its receive queues. With more, each side gets
    one CPU for each of its receive queues, the others send one stream each; with one queue, a CPU left over
    takes both receivers, and frees two for sending.

    Args:
        receive_queues: Receive queues of each side. With more than two CPUs, more than one want an even
            number of them, two more than the queues at least.
        one_armed: Both sides are on one port. Its frames of both sides arrive in the same queues, and leave
            by the same: each CPU sends or receives for both.

    Raises:
        ValueError: The CPUs do not suffice for `receive_queues`, or cannot be the same for both directions.
    """
    queues = range(receive_queues)
    if one_armed and len(cpus) > 1:
        return _on_one_port(cpus, receive_queues)
    if len(cpus) == 1:
        return [
            _worker(
                cpus[0],
                senders=[(side, 0) for side in _SIDES],
                receivers=[(side, queue) for side in _SIDES for queue in queues],
            )
        ]
    if len(cpus) == 2:
        both = zip(_SIDES, cpus, strict=True)
        return [
            _worker(cpu, senders=[(side, 0)], receivers=[(side, queue) for queue in queues])
            for side, cpu in both
        ]
    if receive_queues > 1:
        return _many_queues(cpus, receive_queues)
    if len(cpus) % 2:
        *sending, receiving = cpus
        return [*_senders(sending), _worker(receiving, receivers=[(side, 0) for side in _SIDES])]
    return _many_queues(cpus, 1)


def _on_one_port(cpus: Sequence[int], queues: int) -> list[dict[str, Any]]:
    """The last CPUs receive, a queue of both sides each, or all where there are but two; the others send a
    stream of both sides each."""
    lay_out_workers(cpus, queues)  # as many as two ports would need
    receiving = [[number] for number in range(queues)] if len(cpus) > 2 else [list(range(queues))]
    sending = cpus[: len(cpus) - len(receiving)]
    return [
        *(_worker(cpu, senders=[(side, stream) for side in _SIDES]) for stream, cpu in enumerate(sending)),
        *(
            _worker(cpu, receivers=[(side, queue) for side in _SIDES for queue in numbers])
            for numbers, cpu in zip(receiving, cpus[len(sending) :], strict=True)
        ),
    ]


def _many_queues(cpus: Sequence[int], queues: int) -> list[dict[str, Any]]:
    """The last CPUs receive, a queue each; first those of the left side."""
    if len(cpus) < 2 * queues + 2:
        raise UnfitError(
            f"{queues} receive queues per side need {2 * queues} CPUs, and at least two more"
            f" must send; there are {len(cpus)}",
            code="rig.too-few-cpus",
        )
    if len(cpus) % 2:
        raise UnfitError(
            f"{len(cpus)} CPUs cannot be divided equally between both directions if each of"
            f" {2 * queues} receive queues has its own",
            code="rig.cpus-not-divisible",
        )
    sending, receiving = cpus[: -2 * queues], cpus[-2 * queues :]
    numbered = [(side, queue) for side in _SIDES for queue in range(queues)]
    return [
        *_senders(sending),
        *(_worker(cpu, receivers=[queue]) for queue, cpu in zip(numbered, receiving, strict=True)),
    ]


def _senders(cpus: Sequence[int]) -> list[dict[str, Any]]:
    """Half of the CPUs for each side, a stream each."""
    half = len(cpus) // 2
    numbered = [(side, stream) for side in _SIDES for stream in range(half)]
    return [_worker(cpu, senders=[stream]) for stream, cpu in zip(numbered, cpus, strict=True)]


def _worker(
    cpu: int, *, senders: Sequence[tuple[SideName, int]] = (), receivers: Sequence[tuple[SideName, int]] = ()
) -> dict[str, Any]:
    worker: dict[str, Any] = {"cpu": cpu}
    if senders:
        worker["senders"] = [{"side": side, "stream": stream} for side, stream in senders]
    if receivers:
        worker["receivers"] = [{"side": side, "queue": queue} for side, queue in receivers]
    return worker


_USER = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}@"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
_ADDRESS = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]{1,15})?"
_PORT = r"(?::[0-9]{1,5})?"
_DESTINATION = re.compile(
    rf"(?:{_USER})?(?:{_NAME}|{_ADDRESS})|ssh://(?:{_USER})?(?:{_NAME}|\[{_ADDRESS}\]){_PORT}", re.ASCII
)


def check_destination(text: str) -> str:
    """A host, or a name of the user's own ~/.ssh/config, with or without a user: `root@r1`,
    `ssh://root@[2001:db8::1]:2222`.

    Nothing else passes: what begins with `-` would be an option of ssh, and `%h` and `%r` of the user's own
    file hand names to shells.

    Raises:
        RequestError: It is not one of these.
    """
    if not _DESTINATION.fullmatch(text):
        raise RequestError(
            f"{text[:300]!r} is not a host that may be passed to ssh",
            code="rig.not-an-ssh-destination",
            next_step='Write, for example, "root@r1", "ssh://root@192.0.2.1:2222" or a Host of'
            " ~/.ssh/config: only letters, digits and ._-.",
        )
    return text
