# SPDX-License-Identifier: Apache-2.0
"""What is ours: one record and one lock per lab under /run/evenhand/labs, and one file of all labs next to it
(limits.py).

The record is written before the first namespace is made and removed after the last one is gone. So whatever a
killed run leaves behind is known as ours, and what has no record is never touched. The kernel drops the lock
of a killed process by itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from evenhand.base import locks
from evenhand.base.errors import HostError, RequestError
from evenhand.base.locks import Resource
from evenhand.plan import AddressPlan, SideCounts, find_topology
from evenhand.plan.translation import Nat

STATE_DIRECTORY = Path("/run/evenhand/labs")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,8}", re.ASCII)


def check_name(name: str) -> None:
    """RequestError unless interface names of 15 characters can hold the lab's name."""
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} is not a name for a lab: 1 to 9 characters of a-z, 0-9, '-' and"
            " '_', beginning with a letter or digit",
            code="rig.not-a-lab-name",
            where="lab",
            next_step="Use a name such as linux or ci-2.",
        )


def record_path(name: str) -> Path:
    return STATE_DIRECTORY / f"{name}.json"


def read_record(name: str) -> dict[str, Any] | None:
    """The lab's record; None if there is none, {} if it is cut off or not ours to read."""
    try:
        record = json.loads(record_path(name).read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(name: str, record: dict[str, Any]) -> None:
    """Write or replace the record in one step."""
    write_file(record_path(name), record)


def write_file(path: Path, document: dict[str, Any]) -> None:
    """Write or replace a file of ours in one step. HostError if that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".json.new")
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(path)
    except OSError as error:
        raise HostError(
            f"cannot write: {error.strerror}",
            code="rig.lab-file-not-writable",
            where=str(path),
            next_step="The lab needs a writable /run.",
        ) from error


def remove_record(name: str) -> None:
    path = record_path(name)
    path.with_suffix(".json.new").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


@contextmanager
def hold(name: str) -> Iterator[None]:
    """Keep other processes, and other callers in this one, from changing the lab meanwhile.

    Raises:
        HostError: Someone holds it; names the process.
    """
    path = STATE_DIRECTORY / f"{name}.lock"
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.lock_file(path))
        except BlockingIOError:
            raise HostError(
                f"the lab {name!r} is in use by process {locks.locker(path)}",
                code="rig.lab-in-use",
                where="lab",
                next_step="Wait until it ends, or stop it.",
            ) from None
        except OSError as error:
            reason, remedy = locks.why_not_lockable(path, error)
            raise HostError(
                f"the lab {name!r} cannot be locked: {reason}",
                code="rig.lab-not-lockable",
                where=str(path),
                next_step=remedy if os.geteuid() == 0 else "Run with sudo.",
            ) from error
        yield


def tester_resource(name: str) -> Resource:
    """What a tester holds as long as it uses the lab's ports; not the lock of those who set labs up and take
    them down."""
    return Resource(key=f"lab {name}", label=f"the lab {name!r}")


@contextmanager
def kept_from_testers(name: str, *, force: bool) -> Iterator[None]:
    """Keep testers from the lab meanwhile.

    Args:
        force: Go on although there is one.

    Raises:
        HostError: There is one; names the process.
    """
    with ExitStack() as stack:
        next_step = "Wait until it ends, or stop it; `evenhand lab down --force` would spoil its trial."
        try:
            stack.enter_context(locks.holding([tester_resource(name)], where="lab", next_step=next_step))
        except HostError:
            if not force:
                raise
        yield


RECORD_VERSION = 1
_AnyLab = TypeVar("_AnyLab")


def plan_name(plan: AddressPlan) -> str:
    """Name of the plan as a lab has it; for a mix, both names."""
    return "+".join(each.name for each in plan.plans)


def is_for(name: str, plan: AddressPlan) -> bool:
    """Whether a lab that has this name of a plan is for this one; of a mix in either order."""
    return sorted(name.split("+")) == sorted(plan_name(plan).split("+"))


def addresses_of(plan: AddressPlan) -> dict[str, Any]:
    """What a lab knows of the plan that it is made for."""
    return {
        "plan": plan_name(plan),
        "ip_version": plan.versions[0] if len(plan.versions) == 1 else None,
        "hosts": _most(each.hosts for each in plan.plans),
        "networks": _most(each.networks for each in plan.plans),
    }


def _most(counts: Iterable[SideCounts]) -> SideCounts:
    """The most of each side: the plans of a mix may have room for unlike numbers."""
    left, right = zip(*counts, strict=True)
    return SideCounts(max(left), max(right))


def networks_to_ask_for(name: str, networks: SideCounts | None) -> SideCounts | None:
    """The networks of a lab with this name of a plan, as they are asked for; None where its plans have one
    that has no number, so that nothing can be asked."""
    topologies = [find_topology(each) for each in name.split("+")]
    return (
        networks if any(each is not None and each.most_networks is not None for each in topologies) else None
    )


def nat_of(name: str) -> Nat | None:
    """The NAT that the DUT of a lab with this name of a plan was configured for; None: it keeps no state."""
    topology = find_topology(name)  # none of a mix, in which no plan has state
    return None if topology is None else topology.nat


def translates(name: str) -> bool:
    """Whether it translates without state; of a mix one of the plans."""
    return any(
        topology.translation is not None
        for each in name.split("+")
        if (topology := find_topology(each)) is not None
    )


def with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists only."""
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
    counts = {name: SideCounts._make(found[name]) for name in ("hosts", "networks") if name in found}
    return found | counts


def lab_of(kind: Callable[..., _AnyLab], name: str, document: dict[str, Any]) -> _AnyLab:
    """The lab of that name, from what its record has of it. HostError if another version of Evenhand wrote
    that."""
    try:
        return kind(**with_tuples(document))
    except TypeError as error:
        raise HostError(
            f"the lab {name} was set up by another version of Evenhand",
            code="rig.lab-of-another-version",
            where=f"lab {name}",
            next_step=f"Remove it, and set it up again: evenhand lab down {name}",
        ) from error
