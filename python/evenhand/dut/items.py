# SPDX-License-Identifier: Apache-2.0
"""What a set-up changes on a DUT, one thing at a time: what it was, and what it is to be. Going there and
back are the same step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from evenhand.base.errors import EvenhandError

Kind = Literal[
    "learned",
    "sysctl",
    "link",
    "address",
    "route",
    "routes",
    "rule",
    "neighbor",
    "translator",
    "nat",
    "hash",
    "receive_hashing",
    "channels",
    "hash_key",
    "hash_table",
]
KINDS = get_args(Kind)


class NotTakenError(EvenhandError):
    """The DUT cannot be set up so, and another set-up might do: a driver that refuses a hash, a limit that is
    not there."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be set, with its value before the set-up and with it. None: it is not there."""

    kind: Kind
    key: tuple[str, ...]
    before: str | None
    wanted: str | None

    @property
    def name(self) -> str:
        """For people: `net.ipv4.conf.eth1.forwarding`, `address 10.0.0.1/24 of eth1`."""
        first, rest = self.key[0], self.key[1:]
        match self.kind:
            case "sysctl":
                return f"sysctl {first}"
            case "link":
                return f"interface {first}"
            case "route":
                return f"route to {first}" + (f" in table {rest[0]}" if rest else "")
            case "routes":
                return f"IPv{rest[0]} routes over {first} in table {rest[1]}"
            case "rule":
                return f"IPv{rest[0]} rule for what comes in on {first}"
            case "hash":
                return f"hash of {first} for {rest[0]}"
            case "receive_hashing":
                return f"receive hashing of {first}"
            case "channels":
                return f"channels of {first}"
            case "hash_key":
                return f"hash key of {first}"
            case "hash_table":
                return f"hash table of {first}"
            case "translator":
                return f"translator {first}"
            case "nat":
                return f"NAT by {first}"
            case "learned":
                return f"neighbours learned on {first}"
            case _:
                return f"{self.kind} {rest[0]} of {first}"

    def is_at(self, now: str | None, target: str | None) -> bool:
        """Whether this value will do for that one: of an address only whether it is there. A driver's own
        table serves for an equal one that is asked for, but whoever had the driver's own gets it back as
        such, so that it follows the queues again."""
        match self.kind:
            case "address":
                return (now is None) == (target is None)
            case "hash_table" if (target or "").startswith("equal") and now is not None:
                return now.replace("default", "equal") == target
            case _:
                return now == target

    @property
    def is_change(self) -> bool:
        return not self.is_at(self.before, self.wanted)

    def to_document(self) -> list[object]:
        return [self.kind, list(self.key), self.before, self.wanted]

    @classmethod
    def from_document(cls, document: Any, place: str) -> Item:
        """ValueError or TypeError if it is not one."""
        kind, key, before, wanted = document
        texts = (*key, *(value for value in (before, wanted) if value is not None))
        if kind not in KINDS or not key or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"{place} is {document!r}, but must be something that a set-up changes")
        return cls(kind, tuple(key), before, wanted)


@dataclass(frozen=True, slots=True)
class Move:
    """What brings one item to a value."""

    item: Item
    command: str
    is_batch: bool = False
    """A line of `ip -batch`, not of the shell."""


class Reader(Protocol):
    """What the DUT's state says of one item."""

    def value_of(self, item: Item) -> str | None:
        """Its value now; None if it is not there."""
        ...


_QUEUES_FIRST = ("channels", "hash_table", "hash_key")
"""Kinds of items of a NIC, in the order in which they are set, there and back."""


def moves(items: Iterable[Item], reader: Reader, *, back: bool) -> list[tuple[Item, str | None, str | None]]:
    """Items that are not where they should be, in the order in which they are to go: with the value now, and
    the one to be had.

    Whoever gets other queues gets the hash table again, although it reads right: virtio_net stops hashing
    when its queues change, says nothing of it, and hashes again when it is given a table.
    """
    ordered: Sequence[Item] = list(items)
    if back:
        of_nics = [item for item in ordered if item.kind in _QUEUES_FIRST]
        ordered = of_nics + [item for item in ordered[::-1] if item.kind not in _QUEUES_FIRST]
    found: list[tuple[Item, str | None, str | None]] = []
    for item in ordered:
        if item.kind == "learned" and not back:  # neighbours come by themselves while the set-up is in place
            continue
        now, target = reader.value_of(item), item.before if back else item.wanted
        has_new_queues = item.kind == "hash_table" and any(
            each.kind == "channels" and each.key == item.key for each, _, _ in found
        )
        if has_new_queues or not item.is_at(now, target):
            found.append((item, now, target))
    return found
