# SPDX-License-Identifier: Apache-2.0
"""DUT: set up over a shell, and put back. What is changed is written down first and read back; if any did not
take, nothing of it stays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.programs import uninterrupted
from evenhand.dut import record as records
from evenhand.dut.description import DutSetup
from evenhand.dut.items import Item, NotTakenError, moves
from evenhand.dut.linux_answers import read_state
from evenhand.dut.linux_items import linux_items
from evenhand.dut.linux_moves import LinuxReader, check_interfaces, move_of, shell_lines
from evenhand.dut.linux_nic import NO_WISHES, NicWishes
from evenhand.dut.linux_state import LinuxState
from evenhand.dut.many_routes import ManyRoutes, longest_s, many_routes_of, move_routes, not_taken
from evenhand.dut.record import Holder, SetupRecord, restoring_after
from evenhand.dut.ssh import SshShell
from evenhand.testbed import TestbedDut

CHANGE_S = 180.0
"""For 131,072 static neighbours on a slow DUT."""
_PASSES = 4
"""Most passes of setting up and of putting back: what one thing takes along is brought to its place by the
next pass."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DutOnShell:
    """The DUT of a testbed, and the shell that reaches it."""

    dut: TestbedDut
    shell: SshShell

    @property
    def destination(self) -> str:
        return self.shell.destination

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Left and right interface of each engine."""
        return self.dut.interface_pairs

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Interfaces of all pairs."""
        return tuple(self.dut.interfaces.values())

    def read(self, interfaces: Sequence[str] | None = None) -> LinuxState:
        """What is so now."""
        host = self.shell.host
        return read_state(self.shell, interfaces or self.interfaces, address=host.address, peer=host.peer)


def check_dut(on: DutOnShell) -> tuple[LinuxState, SetupRecord | None]:
    """What is there, and who has set it up. Changes nothing.

    Raises:
        RequestError: Its interfaces cannot be used.
        HostError: As `read_state`.
    """
    refuse_other_systems(on.dut)
    state = on.read()
    for left, right in on.pairs:
        check_interfaces([("left", left), ("right", right)], state)
    return state, records.read_held(on.shell)


def refuse_other_systems(dut: TestbedDut) -> None:
    """Only Linux is read back, so only Linux is put back exactly."""
    if dut.os != "linux":
        raise RequestError(
            f"Evenhand does not set up a DUT under {dut.os} itself, because it cannot yet"
            " read the state that it would have to restore",
            code="rig.system-not-supported",
            where="[dut] os",
            next_step="Print the commands, and run them on the DUT (untested): evenhand dut"
            f" setup --os {dut.os}; later with --undo.",
        )


def apply(
    on: DutOnShell,
    setups: Sequence[DutSetup],
    *,
    holder: Holder,
    nics: NicWishes = NO_WISHES,
    options: Mapping[str, Any] | None = None,
    on_record: Callable[[SetupRecord], None] = lambda record: None,
) -> SetupRecord:
    """Set up the DUT, and read back that it is so. If it is not, or this is stopped, nothing of it stays.

    Args:
        setups: One for each IP version and each pair.
        on_record: Receives what will be changed, before anything is.

    Raises:
        RequestError: The DUT cannot be set up so; nothing was changed.
        NotTakenError: The DUT did not take a change; it was put back.
        HeldError: Someone else has set it up; nothing was changed.
        HostError: The DUT cannot be reached, or nothing can be written there or here.
    """
    refuse_other_systems(on.dut)
    many = [each for setup in setups for each in many_routes_of(setup)]
    held = records.read_held(on.shell) or _left_here(on)
    if held is not None:
        raise HeldError(held)
    state = on.read()
    record = SetupRecord(
        identity=records.new_identity(),
        holder=holder,
        system="linux",
        boot_id=state.boot_id,
        plan="+".join(dict.fromkeys(setup.plan.title for setup in setups)),
        hash_type=setups[0].hash_type,
        interfaces=on.interfaces,
        fingerprint=fingerprint_of(setups),
        items=tuple(linux_items(setups, state, nics=nics)),
        options=dict(options or {}),
    )
    try:
        other = records.take(on.shell, record)
        if other is not None:
            raise HeldError(other)
        records.keep_here(on.destination, record)
        on_record(record)
        left, failures = settle(
            record.items,
            lambda: on.read(record.interfaces),
            lambda state: _go(on, record, state, back=False, many=many),
            back=False,
        )
        for item in left:
            if item.kind == "routes":
                now = LinuxReader(on.read(record.interfaces)).value_of(item)
                raise not_taken(item, now, failures.get(item, ""))
        if left:
            raise NotTakenError(
                f"the DUT did not accept {_named(left, failures)}",
                code="rig.set-up-not-accepted",
                where=f"[dut] ssh, {on.destination}",
                next_step=(
                    "Nothing was sent, and the DUT is in its previous state. Try that change there by hand."
                ),
            )
    except HeldError:
        raise
    except BaseException as error:
        with restoring_after(error):
            put_back(on, record)
        raise
    return record


def is_in_place(on: DutOnShell, record: SetupRecord) -> bool:
    """Whether all of it is still so: the DUT may have lost what was set."""
    return not moves(record.items, LinuxReader(on.read(record.interfaces)), back=False)


def fingerprint_of(setups: Sequence[DutSetup]) -> str:
    """See `SetupRecord.fingerprint`. Queues, key and table of the NICs are not in it, nor what a NAT does
    with ports and addresses, nor its size: a point asks for none, so any will do."""
    asked = [
        (
            setup.hash_type,
            setup.neighbor_entries,
            None if setup.translation is None else setup.translation.to_document(),
            *(() if setup.plan.nat is None else (setup.plan.nat.to_document(),)),
            *(() if setup.table is None else (setup.table,)),
            *(each.prefixes.digest for each in many_routes_of(setup)),
            [
                (str(link.interface), list(map(str, (*link.addresses, *link.routes))), link.gateway_mac)
                for link in setup.links
            ],
        )
        for setup in setups
    ]
    return hashlib.sha256(repr(asked).encode()).hexdigest()


class HeldError(HostError):
    """The DUT is already set up."""

    def __init__(self, held: SetupRecord) -> None:
        ended = (
            {False: " That process has ended.", True: " That process is still running.", None: ""}[
                held.holder.lives()
            ]
            if held.holder.kind == "run"
            else ""
        )
        super().__init__(
            f"the DUT is already set up for {held.plan}, by {held.holder.name}.{ended}".rstrip("."),
            code="rig.dut-held",
            where=records.SHOWN,
            next_step="If it is no longer needed, restore the DUT: evenhand dut undo TESTBED",
        )
        self.held = held


def undo(on: DutOnShell, *, is_forced: bool = False, run: str | None = None) -> SetupRecord | None:
    """Put the DUT back as it was, from what was written down; None if nothing is to be put back.

    Args:
        is_forced: Put it back even where a run has the DUT and is not known to have ended.
        run: Put back what this run has set up, and nothing else.

    Raises:
        HeldError: A run has the DUT.
        HostError: The DUT cannot be reached, or something of it does not go back; then it stays written down.
    """
    record = records.read_held(on.shell)
    if record is None and run is None:
        if records.is_begun(on.shell):
            records.drop(on.shell, None)
        record = _left_here(on)
        if record is not None and records.take(on.shell, record) is not None:
            raise HeldError(record)
    if record is None or (run is not None and record.holder.run != run):
        return None
    if run is None and not is_forced and record.holder.kind == "run" and record.holder.lives() is not False:
        error = HeldError(record)
        error.next_step = (
            "Stop that run, which then restores the DUT. If it has certainly ended: evenhand dut undo"
            " TESTBED --force"
        )
        raise error
    with uninterrupted():
        put_back(on, record)
    return record


def _left_here(on: DutOnShell) -> SetupRecord | None:
    """What was written down here, where the DUT has lost its own; with a restart it has lost the set-up as
    well."""
    record = records.read_here(on.destination)
    if record is None:
        return None
    if record.boot_id == on.read(record.interfaces).boot_id:
        return record
    records.forget_here(on.destination)
    return None


def put_back(on: DutOnShell, record: SetupRecord) -> None:
    """All that the record names as it was before. Errors as `undo`."""
    left, failures = settle(
        record.items,
        lambda: on.read(record.interfaces),
        lambda state: _go(on, record, state, back=True),
        back=True,
    )
    if not left:
        records.forget_here(on.destination)
        records.drop(on.shell, record.identity)
        return
    raise HostError(
        f"not restored: {_named(left, failures)}",
        code="rig.not-restored",
        where=f"[dut] ssh, {on.destination}",
        next_step="Correct this on the DUT, and run evenhand dut undo TESTBED again; the"
        f" previous state is in {records.SHOWN}.",
    )


def settle(
    items: Sequence[Item],
    read: Callable[[], LinuxState],
    go: Callable[[LinuxState], dict[Item, str]],
    *,
    back: bool,
) -> tuple[list[Item], dict[Item, str]]:
    """Go there, or back, until all items are where they should be: one that is set may move another, as new
    queues do a NIC's hash table.

    Args:
        go: One pass from that state. What the DUT said of those that failed.

    Returns:
        The items that are still not there, and what the DUT said of them last.
    """
    failures: dict[Item, str] = {}
    is_full = False
    for passes_left in reversed(range(_PASSES + 1)):
        state = read()
        left = [item for item, *_ in moves(items, LinuxReader(state), back=back)]
        if not left or not passes_left or is_full:
            break
        failures = go(state)
        # A table that is full stays so, and to fill it once more takes minutes.
        is_full = not back and any(item.kind == "routes" for item in failures)
    return left, failures


def _go(
    on: DutOnShell, record: SetupRecord, state: LinuxState, *, back: bool, many: Sequence[ManyRoutes] = ()
) -> dict[Item, str]:
    """One pass there or back. What the DUT said of those that failed."""
    wanted = [
        move
        for item, now, target in moves(record.items, LinuxReader(state), back=back)
        for move in (
            move_routes(item, now, target, many) if item.kind == "routes" else move_of(item, now, target)
        )
    ]
    lines = shell_lines(wanted)
    longest = CHANGE_S + longest_s(record.items)
    said = records.run_held(on.shell, record.identity, [command for command, _ in lines], timeout_s=longest)
    return {
        move.item: text for (_, of), text in zip(lines, said, strict=True) if text is not None for move in of
    }


def _named(items: Sequence[Item], failures: Mapping[Item, str]) -> str:
    shown = [
        item.name + (f" ({' '.join(failures[item].split())[:200]})" if item in failures else "")
        for item in items[:_MOST_NAMED]
    ]
    return ", ".join(shown) + (f" and {len(items) - _MOST_NAMED} more" if len(items) > _MOST_NAMED else "")
