# SPDX-License-Identifier: Apache-2.0
"""Room in the kernel's neighbour tables for labs with hosts on the link (SEED-23).

All namespaces of a kernel share one ARP and one ND table, and the limits of both (gc_thresh1..3) belong to
the initial namespace. So they are a matter of all labs together: one file next to the labs' records holds
what the limits were before the first of these labs, and what each lab needs. It is written before a limit is
raised and removed after all are back. What a killed run leaves behind is put back by the next `lab up` or
`lab down` of its name, like the rest of the lab.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenhand.base import locks
from evenhand.base.errors import HostError
from evenhand.lab import state
from evenhand.lab.namespaces import host_errors

LIMITS_FILE = state.STATE_DIRECTORY.parent / "neighbor-limits.json"
SYSCTLS = Path("/proc/sys")
LIMITS = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
"""Entries up to which none is collected; above which they are soon; above which there is no room for
another."""
UNNOTICED = 100
"""Entries that find room everywhere: below the kernel's own gc_thresh1 (128)."""
MOST_ENTRIES = 1 << 20
"""What limits are raised by at most: an entry takes half a KiB that no process is charged for. nets_v6_direct
in full has 33 million."""

LOCKED_S = 10.0
"""Nobody changes the limits for longer."""

IpVersion = Literal[4, 6]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedLimit:
    """A sysctl of the whole kernel that labs have raised."""

    name: str
    """Name with dots, as `sysctl` shows it."""
    before: int
    now: int | None
    """None where it cannot be seen: in a network namespace that is not the host's own."""


def raised_limits() -> list[RaisedLimit]:
    """What labs, all together, have raised and not yet given back; what is as it was is left out. Needs no
    root."""
    try:
        before: dict[str, dict[str, int]] = json.loads(LIMITS_FILE.read_text())["before"]
    except (OSError, ValueError, KeyError):
        return []
    raised = []
    for version, limits in before.items():
        now = read_limits(4 if version == "4" else 6) or {}
        for limit, value in limits.items():
            if now.get(limit) != value:
                name = _sysctl(version, limit).replace("/", ".")
                raised.append(RaisedLimit(name=name, before=value, now=now.get(limit)))
    return raised


def make_room(lab: str, ip_version: IpVersion, entries: int) -> None:
    """Raise the limits by what this lab needs, if that is more than finds room anyway; the lab has a record
    already.

    Raises:
        HostError: They cannot be written, or are not to be seen in this namespace.
    """
    if entries <= UNNOTICED:
        return
    with _all_labs() as labs:
        if str(ip_version) not in labs["before"]:
            limits = read_limits(ip_version)
            if limits is None:
                raise HostError(
                    f"the plan needs {entries:,} entries in the DUT's neighbour table, but"
                    " its limits are not visible here",
                    code="rig.limits-not-visible",
                    where=_sysctl(ip_version, LIMITS[-1]).replace("/", "."),
                    next_step="They belong to the host's own network namespace: run the lab there, or reduce"
                    " --hosts.",
                )
            labs["before"][str(ip_version)] = limits
        labs["needs"][lab] = {"ip_version": ip_version, "entries": min(entries, MOST_ENTRIES)}
        _write_file(labs)
        _apply(labs)


def give_back(lab: str) -> None:
    """Take back what was raised for this lab; nothing is not an error."""
    if not LIMITS_FILE.exists():
        return
    with _all_labs() as labs:
        labs["needs"].pop(lab, None)
        _write_file(labs)
        _apply(labs)
        needed = {str(need["ip_version"]) for need in labs["needs"].values()}
        labs["before"] = {version: limits for version, limits in labs["before"].items() if version in needed}
        if labs["needs"]:
            _write_file(labs)
        else:
            LIMITS_FILE.unlink()


def read_limits(ip_version: IpVersion) -> dict[str, int] | None:
    """The limits as they are; None if this is not the initial namespace."""
    paths = {limit: SYSCTLS / _sysctl(ip_version, limit) for limit in LIMITS}
    if not all(path.exists() for path in paths.values()):
        return None
    return {limit: int(path.read_text()) for limit, path in paths.items()}


def read_cache_statistics(ip_version: IpVersion) -> dict[str, int]:
    """The kernel's own counts of its table, of all namespaces together since the start; empty where it does
    not report them."""
    try:
        names, *rows = (
            Path(f"/proc/net/stat/{'arp' if ip_version == 4 else 'ndisc'}_cache").read_text().splitlines()
        )
    except (OSError, ValueError):
        return {}
    per_cpu = [
        dict(zip(names.split(), (int(value, 16) for value in row.split()), strict=True)) for row in rows
    ]
    # `entries` is the same for each CPU, all else is counted by each.
    return {
        name: per_cpu[0][name] if name == "entries" else sum(row[name] for row in per_cpu)
        for name in names.split()
    }


@contextmanager
def _all_labs() -> Iterator[dict[str, Any]]:
    """The file's content, while no other process changes it. Labs without a record are gone, and need
    nothing."""
    # A file that only root can open: whoever can open a folder can lock it, and keep root from it.
    path = LIMITS_FILE.with_suffix(".lock")
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.lock_file_within(path, LOCKED_S))
        except BlockingIOError:
            raise HostError(
                "the limits of the kernel's neighbour tables are being changed by process"
                f" {locks.locker(path)}, which has not ended for {LOCKED_S:.0f} s",
                code="rig.limits-in-use",
                where=str(path),
                next_step="End that process, then try again.",
            ) from None
        except OSError as error:
            reason, remedy = locks.why_not_lockable(path, error)
            raise HostError(
                f"the limits of the kernel's neighbour tables cannot be locked: {reason}",
                code="rig.lab-not-lockable",
                where=str(path),
                next_step=remedy,
            ) from error
        labs = _read_file()
        labs["needs"] = {
            lab: need for lab, need in labs["needs"].items() if state.read_record(lab) is not None
        }
        yield labs


def _read_file() -> dict[str, Any]:
    """HostError if it is not what we wrote: without it nobody knows what the limits were."""
    try:
        if LIMITS_FILE.exists() and not LIMITS_FILE.is_file():
            raise ValueError("it is not a file")
        labs: dict[str, Any] = json.loads(LIMITS_FILE.read_text())
        for version, limits in labs["before"].items():
            if version not in ("4", "6") or not all(type(limits[name]) is int for name in LIMITS):
                raise ValueError(f"{version!r} has not the limits {', '.join(LIMITS)}")
        for need in labs["needs"].values():
            if need["ip_version"] not in (4, 6) or type(need["entries"]) is not int:
                raise ValueError(f"{need!r} is not what a lab needs")
    except FileNotFoundError:
        return {"before": {}, "needs": {}}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise HostError(
            f"the limits of the kernel's neighbour tables from before cannot be read: {error}",
            code="rig.limits-not-readable",
            where=str(LIMITS_FILE),
            next_step="Set gc_thresh1, gc_thresh2 and gc_thresh3 of net.ipv4.neigh.default and of"
            " net.ipv6.neigh.default to what they were (128, 512 and 1024 by default), then remove this"
            " file.",
        ) from error
    return labs


def _write_file(labs: dict[str, Any]) -> None:
    state.write_file(LIMITS_FILE, labs)


def _apply(labs: dict[str, Any]) -> None:
    """Every limit that we ever raised becomes what it was and what the labs need on top; without labs, what
    it was."""
    for version, before in labs["before"].items():
        needed = sum(need["entries"] for need in labs["needs"].values() if str(need["ip_version"]) == version)
        # From the largest down: gc_thresh1 is never above gc_thresh3, while they go up.
        for limit in reversed(LIMITS):
            path, wanted = SYSCTLS / _sysctl(version, limit), before[limit] + needed
            with host_errors(
                f"set {_sysctl(version, limit).replace('/', '.')} = {wanted}",
                where="sysctl",
                next_step="The DUT's neighbour table must have room: run the lab where sysctls can be"
                " written, or use a gateway plan.",
            ):
                if int(path.read_text()) != wanted:
                    path.write_text(str(wanted))


def _sysctl(ip_version: IpVersion | str, limit: str) -> str:
    return f"net/ipv{ip_version}/neigh/default/{limit}"
