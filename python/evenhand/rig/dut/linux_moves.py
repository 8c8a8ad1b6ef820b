# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: the value that each thing has there, and the commands that bring it to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.rig.dut.items import Item, Move
from evenhand.rig.dut.linux_nat import move_nat
from evenhand.rig.dut.linux_nic import nic_move_of
from evenhand.rig.dut.linux_state import NOWHERE, TAYGA_FILES, LinuxState
from evenhand.rig.dut.linux_tables import move_rule, value_of_rule
from evenhand.rig.dut.reading import quote
from evenhand.rig.dut.translator import start_tayga, stop_tayga


@dataclass(frozen=True, slots=True)
class LinuxReader:
    """See `items.Reader`."""

    state: LinuxState

    def value_of(self, item: Item) -> str | None:
        state, (first, *rest) = self.state, item.key
        match item.kind:
            case "sysctl":
                # Nothing can be set on an interface that is gone.
                return state.sysctls.get(first, item.before)
            case "link":
                link = state.links.get(first)
                return item.before if link is None else "up" if link.is_up else "down"
            case "address":
                link = state.links.get(first)
                return (
                    None if link is None or rest[0] not in link.addresses else link.addresses[rest[0]] or ""
                )
            case "route":
                route = state.route(first, *rest)
                return None if route is None else route.text
            case "rule":
                return value_of_rule(item.key, state, item.wanted)
            case "neighbor":
                found = state.neighbors.get(first, {}).get(rest[0])
                return found if found is not None and found.endswith(" permanent") else None
            case "translator":
                return state.tayga
            case "nat":
                return state.nat
            case "hash":
                return state.hashes.get((first, rest[0]))
            case "receive_hashing":
                return state.receive_hashing.get(first)
            case "channels":
                return state.channels.get(first)
            case "hash_key":
                return state.hash_keys.get(first)
            case "hash_table":
                return state.hash_tables.get(first)
            case "learned":
                known = set((item.before or "").split())
                learned = {
                    address
                    for address, text in state.neighbors.get(first, {}).items()
                    if not text.endswith(" permanent")
                }
                return item.before if learned <= known else " ".join(sorted(learned))


def move_of(item: Item, now: str | None, target: str | None) -> list[Move]:
    """What brings the item from its value now to that one."""
    first, rest = item.key[0], item.key[1:]

    def ip(*words: str) -> list[Move]:
        return [Move(item, " ".join(words), is_batch=True)]

    match item.kind:
        case "sysctl":
            return [Move(item, f"echo {quote(target or '')} > {quote(f'/proc/sys/{first}')}")]
        case "link":
            return ip("link set dev", first, target or "down")
        case "address":
            return ip("address del" if target is None else "address add", rest[0], "dev", first, target or "")
        case "route":
            verb, to = ("del", now or "") if target is None else ("add", target)
            table = [f"table {name}" for name in rest]
            return ip("route", verb, *((to, first) if to in NOWHERE else (first, to)), *table)
        case "rule":
            return move_rule(item, now, target)
        case "neighbor" if target is None:
            return ip("neighbor del", rest[0], "dev", first)
        case "neighbor":
            return (
                ip("neighbor replace", rest[0], "lladdr", target.split()[0], "dev", first, "nud permanent")
                if target
                else []
            )
        case "translator":
            return [_move_tayga(item, now, target)]
        case "nat":
            return [move_nat(item, now, target)]
        case "learned":
            extra = set((now or "").split()) - set((target or "").split())
            return [move for address in sorted(extra) for move in ip("neighbor del", address, "dev", first)]
        case _:
            return nic_move_of(item, target)


def _move_tayga(item: Item, now: str | None, target: str | None) -> Move:
    lines = ["exec 9>&-", "set -e"]  # 9 is the lock of the set-up, which what stays would keep
    if now is not None or target is None:
        lines += stop_tayga(files=TAYGA_FILES)
    if target is not None:
        lines += start_tayga(target, files=TAYGA_FILES, like=item.key[1])
    return Move(item, "\n".join(lines))


def shell_lines(moves: Iterable[Move]) -> list[tuple[str, list[Move]]]:
    """Commands of the shell, each with the moves that it makes: lines of `ip` that follow each other in one
    process."""
    lines: list[tuple[str, list[Move]]] = []
    batch: list[Move] = []
    for move in [*moves, None]:
        if move is not None and move.is_batch:
            batch.append(move)
            continue
        if batch:
            lines.append(
                ("\n".join(("ip -force -batch - <<'END'", *(each.command for each in batch), "END")), batch)
            )
            batch = []
        if move is not None:
            lines.append((move.command, [move]))
    return lines
