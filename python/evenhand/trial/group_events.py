# SPDX-License-Identifier: Apache-2.0
"""Station 7: what several engines report while they work, and what they have learnt, as one engine would
report it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenhand.plan import SIDES
from evenhand.trial.engine_session import Document, EventCallback

MOST_NAMED = 100
"""Most unreachable hosts that are named, as many as one engine names."""
_COUNTS = ("sent_frames", "received_frames", "settled_frames", "lost_frames")


def progress_of_all(engines: int, on_event: EventCallback) -> Callable[[int, Document], None]:
    """Takes the number of an engine and its `progress` event. Whenever the first reports something, the sums
    of what all have reported last are passed on."""

    def add_up(event: Document, reported: Sequence[Document]) -> Document:
        directions = {
            name: _direction(
                [each["directions"][name] for each in reported if name in each.get("directions", {})]
            )
            for name in event.get("directions", {})
        }
        return {
            # `failing` is one engine's word to the group.
            **{key: value for key, value in event.items() if key != "failing"},
            **{key: sum(each.get(key, 0) for each in reported) for key in ("sent_frames", "received_frames")},
            **({"directions": directions} if directions else {}),
        }

    return _in_step_with_the_first(engines, on_event, add_up)


def learning_of_all(engines: int, on_event: EventCallback) -> Callable[[int, Document], None]:
    """The same of `learning` events: each engine has all hosts behind its own ports."""

    def add_up(event: Document, reported: Sequence[Document]) -> Document:
        sides: Document = {
            side: {
                key: sum(each[side][key] for each in reported if side in each)
                for key in ("hosts", "reachable")
            }
            for side in SIDES
            if side in event
        }
        return {**event, **sides}

    return _in_step_with_the_first(engines, on_event, add_up)


def _in_step_with_the_first(
    engines: int, on_event: EventCallback, add_up: Callable[[Document, Sequence[Document]], Document]
) -> Callable[[int, Document], None]:
    """`add_up` gets the event of the first engine, and the last of each that has reported one, in their
    order."""
    last: dict[int, Document] = {}

    def take(number: int, event: Document) -> None:
        last[number] = event
        if number == 0:
            on_event(add_up(event, [last[each] for each in range(engines) if each in last]))

    return take


def _direction(reported: Sequence[Document]) -> Document:
    timed = [each for each in reported if each["latency"]["mean_ns"] is not None]
    frames = sum(each["received_frames"] for each in timed)
    return {
        **{key: sum(each[key] for each in reported) for key in _COUNTS},
        "latency": {
            "mean_ns": sum(each["latency"]["mean_ns"] * each["received_frames"] for each in timed) / frames
            if frames
            else None,
            "max_ns": max((each["latency"]["max_ns"] for each in timed), default=None),
        },
    }


def sum_of_learning(replies: Sequence[Document]) -> Document:
    """Sum of the replies to `learn`: hosts count once for each engine that has them."""

    def side_of_all(side: str) -> dict[str, Any]:
        reported = [reply[side] for reply in replies]
        return {
            **{
                key: sum(each[key] for each in reported)
                for key in ("hosts", "reachable", "questions_answered")
            },
            "rounds": max(each["rounds"] for each in reported),
            "unreachable": [address for each in reported for address in each["unreachable"]][:MOST_NAMED],
        }

    sides: dict[str, Any] = {side: side_of_all(side) for side in SIDES if side in replies[0]}
    return {
        **replies[0],
        "stopped": any(reply["stopped"] for reply in replies),
        "rate_share": min(reply.get("rate_share", 1.0) for reply in replies),
        **sides,
    }
