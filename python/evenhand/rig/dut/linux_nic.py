# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: what ethtool sets of its NICs. Queues, and the hash by which frames are shared out to them:
fields, key and table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenhand.rig.dut.description import HashType
from evenhand.rig.dut.items import Item, Move, NotTakenError
from evenhand.rig.dut.linux import HASH_FIELDS
from evenhand.rig.dut.linux_state import FLOWS, LinuxState
from evenhand.rig.dut.reading import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class NicWishes:
    """What is asked for of both interfaces in addition to the hash type; None leaves it as it is."""

    channels: int | None = None
    """Queues (`ethtool -L`), and a table that names them all, where `table_queues` asks for no other."""
    hash_key: bytes | None = None
    """Key of the hash (`ethtool -X hkey`), as long as the NIC's own (RSS-03)."""
    table_queues: int | None = None
    """The hash table names the first so many queues, one after the other (`ethtool -X equal`; RSS-04)."""


NO_WISHES = NicWishes()


def nic_items(name: str, state: LinuxState, wishes: NicWishes) -> Iterator[Item]:
    """Items of one interface. The queues come first: a table names queues that must be there. Where fewer
    queues wait for another table, or a driver makes a new table with its queues, the next pass brings them
    right (`setup.settle`). Whoever asks for queues alone gets a table that names all of them, unless the one
    that is there could not be put back.

    Raises:
        NotTakenError: The driver does not report what is to be changed, or it could not be put back.
    """
    if wishes.channels is not None:
        yield _channels(name, state, wishes.channels)
    if wishes.table_queues is not None:
        yield _table(name, state, wishes.table_queues)
    elif wishes.channels is not None and not state.hash_tables.get(name, "0")[0].isdigit():
        yield _table(name, state, min(wishes.channels, state.hash_table_entries[name]))
    if wishes.hash_key is not None:
        yield _key(name, state, wishes.hash_key)


def hash_items(name: str, state: LinuxState, hash_type: HashType) -> Iterator[Item]:
    """Fields of one interface for UDP over both IP versions (RSS-02). Errors as `nic_items`."""
    if (now := state.receive_hashing.get(name)) is not None:
        yield Item("receive_hashing", (name,), now, "on")
    for flow in FLOWS:
        key = (name, flow)
        if key in state.hash_refusals:
            raise NotTakenError(
                f"{name} does not report what it hashes: {state.hash_refusals[key]}",
                code="rig.not-reported-by-nic",
                where=f"hash {hash_type}",
                next_step="Do not change the hash, or use a NIC whose driver can set it.",
            )
        yield Item("hash", key, state.hashes[key], HASH_FIELDS[hash_type])


def _channels(name: str, state: LinuxState, count: int) -> Item:
    now = state.channels.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its channels",
            code="rig.not-reported-by-nic",
            where="--channels",
            next_step="Omit --channels: its driver has one queue, or cannot change their number.",
        )
    kinds = now.split()[::2]
    return Item("channels", (name,), now, " ".join(f"{kind} {count}" for kind in kinds))


def _key(name: str, state: LinuxState, key: bytes) -> Item:
    now = state.hash_keys.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its hash key",
            code="rig.not-reported-by-nic",
            where="--key",
            next_step="Omit --key: its driver cannot set it.",
        )
    octets = len(now.split(":"))
    if len(key) != octets:
        raise NotTakenError(
            f"the hash key of {name} has {octets} octets, but the requested one has {len(key)}",
            code="rig.hash-key-length",
            where="--key",
            next_step=f"Write {octets} octets: 6d:5a:56:da:...",
        )
    return Item("hash_key", (name,), now, key.hex(":"))


def _table(name: str, state: LinuxState, queues: int) -> Item:
    now = state.hash_tables.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its hash table",
            code="rig.not-reported-by-nic",
            where="--table-queues",
            next_step="Omit --table-queues: its driver has one queue, or cannot set the table.",
        )
    if now[0].isdigit():
        raise NotTakenError(
            f"{name} has a hash table that ethtool could not restore, as some drivers"
            f" create by themselves: {now[:100]}",
            code="rig.hash-table-not-restorable",
            where="--table-queues",
            next_step=f"Omit --table-queues, or reset that table on the DUT first: ethtool -X {name} default",
        )
    if queues > (entries := state.hash_table_entries[name]):
        raise NotTakenError(
            f"the hash table of {name} has {entries} entries, which is not enough for {queues} queues",
            code="rig.hash-table-too-small",
            where="--table-queues",
            next_step=f"Name {entries} at most.",
        )
    return Item("hash_table", (name,), now, f"equal {queues}")


def nic_move_of(item: Item, target: str | None) -> list[Move]:
    """What brings one of these items to that value."""
    name = quote(item.key[0])
    match item.kind:
        case "hash":  # no letters: a flow that is not hashed
            return [Move(item, f"ethtool -N {name} rx-flow-hash {quote(item.key[1], target or '')}")]
        case _ if not target:
            return []
        case "receive_hashing":
            return [Move(item, f"ethtool -K {name} rxhash {target}")]
        case "channels":
            return [Move(item, f"ethtool -L {name} {target}")]
        case "hash_key":
            return [Move(item, f"ethtool -X {name} hkey {target}")]
        case "hash_table" if target.startswith("default"):
            return [Move(item, f"ethtool -X {name} default")]
        case "hash_table":
            return [Move(item, f"ethtool -X {name} {target}")]
    return []
