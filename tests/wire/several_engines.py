# SPDX-License-Identifier: Apache-2.0
"""Several real engines as one tester: on the port pairs of a reference router, or on ports that nothing comes
from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from evenhand.plan import SIDES, AddressPlan, SideName
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig import Setup
from evenhand.testbed import make_testbed, needed_memory_mb
from evenhand.trial import EngineGroup, EngineMember, EngineSession, find_engine
from tests.wire.wire_session import NOBODY, Document, cpus, one_worker

LENIENT = {
    "offered_tolerance": "10%",
    "overdue_after": "50ms",
    "overdue_tolerance": "99%",
    "longest_overdue": "1000s",
}
"""Engines and routers share two CPUs: being late is not what these tests are about."""
NAMES = "abcdefgh"


@contextmanager
def router_of_pairs(plan: AddressPlan, dut: ReferenceDut, pairs: int = 2) -> Iterator[ReferenceRouter]:
    """A DUT with so many port pairs, each of which forwards for this plan by itself. Not on the CPU of the
    first engine."""
    available = cpus()
    with reference_router(plan, dut, cpus=[available[1], available[0]], pairs=pairs) as router:
        yield router


def engine_table(router: ReferenceRouter, number: int, *, pair: int = 0, **more: Any) -> Document:
    """`[[engine]]` of the testbed file, on this pair of the router's ports."""
    return {
        "name": NAMES[number],
        "cpus": [cpus()[number % 2]],
        **{side: {"device": router.device(side, pair)} for side in SIDES},
        **more,
    }


def setup_of(engines: Sequence[Document], **more: Any) -> Setup:
    document: Document = {
        "isolated_test_environment": True,
        "engine": list(engines),
        "limits": LENIENT,
        **more,
    }
    return Setup(name="several", testbed=make_testbed(document, where="several.toml"))


def setup_of_one(router: ReferenceRouter) -> Setup:
    ports: Document = {side: {"device": router.device(side)} for side in SIDES}
    document: Document = {
        "isolated_test_environment": True,
        **ports,
        "tester": {"cpus": [cpus()[0]]},
        "limits": LENIENT,
    }
    return Setup(name="one", testbed=make_testbed(document, where="one.toml"))


@contextmanager
def group_of(number: int, **options: Any) -> Iterator[EngineGroup]:
    """Engines of this machine, whose ports are not open yet."""
    with ExitStack() as stack:
        members = [
            EngineMember(
                name=name,
                session=stack.enter_context(EngineSession([find_engine()])),
                streams=1,
                is_here=True,
            )
            for name in NAMES[:number]
        ]
        yield EngineGroup(members, **options)


def open_group(
    group: EngineGroup,
    plan: AddressPlan,
    devices: Sequence[Sequence[str]],
    *,
    own_macs: Sequence[str] | None = None,
    seed: int = 1,
    resolves: bool = False,
) -> Document:
    """Open the ports of all.

    Args:
        devices: Those of each engine, left and right.
        resolves: There is a DUT, which is yet to be asked for its MACs.
    """
    requests = []
    for number, of_engine in enumerate(devices):
        workers = one_worker()
        workers[0]["cpu"] = cpus()[number % len(cpus())]
        ports: dict[SideName, Document] = {
            side: {
                "device": device,
                **({} if resolves else {"dut_mac": mac}),
                **({} if own_macs is None else {"mac": own_macs[i]}),
            }
            for i, (side, device, mac) in enumerate(zip(SIDES, of_engine, NOBODY, strict=True))
        }
        requests.append(
            {
                "host": {"memory_mb": needed_memory_mb(workers, ports)},
                "ports": ports,
                "workers": workers,
                "plan": plan.to_contract(),
                "frame_size": plan.smallest_frame_size,
                "seed": seed,
            }
        )
    return group.open(requests)


def silent_ports(number: int) -> list[tuple[str, str]]:
    """Ports of so many engines: what is sent is gone, and nothing comes."""
    return [("net_null0,no-rx=1", "net_null1,no-rx=1")] * number


def process_of(member: EngineMember) -> int:
    """Its process id."""
    return member.session._process.pid


def pcap_ports(folder: Path, number: int) -> tuple[list[tuple[str, str]], list[dict[SideName, Path]]]:
    """Ports of so many engines, which write what they are given; and the files."""
    captures: list[dict[SideName, Path]] = [
        {side: folder / f"{NAMES[each]}-{side}.pcap" for side in SIDES} for each in range(number)
    ]
    devices = [tuple(f"net_pcap_{side},tx_pcap={path}" for side, path in of.items()) for of in captures]
    return [(left, right) for left, right in devices], captures
