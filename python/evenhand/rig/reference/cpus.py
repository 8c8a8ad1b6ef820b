# SPDX-License-Identifier: Apache-2.0
"""Which CPU a reference router forwards on, and which are left for its tester: not one that another living
router of this host has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from evenhand.base.errors import HostError
from evenhand.base.locks import InUseError, Resource, holder_of, holding


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterCpus:
    """CPUs of this host, for a router and its tester."""

    router: int
    tester: tuple[int, ...]
    other: str | None = None
    """Who has another living router of this host, such as `process 17`; None if there is none."""
    is_shared: bool = False
    """The other one has the router's CPU too: there was none for it."""


@contextmanager
def chosen_cpus(cpus: Sequence[int] | None = None) -> Iterator[RouterCpus]:
    """The router's CPU is locked until the block ends, so that the next router takes another one.

    Args:
        cpus: The router's, and the tester's after it. Default: those that this process may use; the first
            that no living router has is the router's, if that leaves the tester one that no router has.

    Raises:
        HostError: There are fewer than two.
    """
    available = sorted(os.sched_getaffinity(0)) if cpus is None else list(cpus)
    if len(available) < 2:
        raise HostError(
            f"{len(available)} CPU: the router and the tester need one CPU each",
            code="rig.too-few-cpus",
            where="CPUs",
            next_step="Allow this process a second CPU; `evenhand check` shows which it may use.",
        )
    with ExitStack() as stack:
        if cpus is not None:
            _try_lock(available[0], stack)
            yield RouterCpus(router=available[0], tester=tuple(available[1:]))
            return
        holders = {cpu: holder for cpu in available if (holder := holder_of(_resource(cpu))) is not None}
        other = next(iter(holders.values()), None)
        for cpu in available:
            rest = tuple(each for each in available if each != cpu and each not in holders)
            if rest and _try_lock(cpu, stack):
                yield RouterCpus(router=cpu, tester=rest, other=other)
                return
        yield RouterCpus(router=available[0], tester=tuple(available[1:]), other=other, is_shared=True)


def _resource(cpu: int) -> Resource:
    return Resource(key=f"reference router on CPU {cpu}", label=f"CPU {cpu}")


def _try_lock(cpu: int, stack: ExitStack) -> bool:
    """False if another router has it. Where no folder for locks can be had, others are not seen, and no one
    is kept from anything."""
    try:
        stack.enter_context(holding([_resource(cpu)], where="CPUs", next_step="Use another one."))
    except InUseError:
        return False
    except HostError:
        pass
    return True
