# SPDX-License-Identifier: Apache-2.0
"""The real engine on software ports: how the wire tests open it and what they ask of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from evenhand.base.errors import HostError
from evenhand.base.programs import ROUTER, find_program
from evenhand.lab import RING_FRAMES, LinuxLab, VmLab
from evenhand.plan import SIDES, AddressPlan, SideName, gateway_v4, gateway_v6
from evenhand.procedure import OpenTestbed, host_limits
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig import Setup, make_reference_setup
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession, Limits, TrialResult, Waits, find_engine

Document = dict[str, Any]
Found = TypeVar("Found")

NOBODY = ("02:00:00:00:d0:01", "02:00:00:00:d0:02")
"""DUT MACs for wires without a DUT."""
FAST_WAITS = {"after_routing_s": 0, "after_learning_s": 0.05, "residual_s": 0.2, "restabilize_s": 0}
PATIENT = {"overdue_tolerance": 0.9999, "longest_overdue_us": 1e9, "offered_tolerance": 0.1}
"""For tests of counts on a busy machine: being late is not what they are about. A trial of which not every
frame left is INVALID all the same: `valid_trial` makes it again."""
MOST_ATTEMPTS = 30
LENIENT_OPTIONS = ("--overdue-tolerance", "99%", "--longest-overdue", "10s", "--offered-tolerance", "10%")
"""Options of a command, where being late is not what a test is about."""
QUIET_FPS = 20_000
"""Rings of software ports hold 50 ms and more of it."""


def versions(
    *, proved: Literal["v4", "v6"], plans: tuple[AddressPlan, AddressPlan] = (gateway_v4(), gateway_v6())
) -> pytest.MarkDecorator:
    """Both IP versions as `plan`, for a test of what has nothing to do with either: rates, delays, queues,
    what happens when somebody goes away. One of them in `make test-all`, the other in `make prove`.

    Args:
        proved: That of `make prove`. Tests beside each other take turns.
    """
    return pytest.mark.parametrize(
        "plan", versions_of(*plans, proved=proved), ids=lambda plan: f"v{plan.ip_version}"
    )


def versions_of(v4: Any, v6: Any, *, proved: Literal["v4", "v6"]) -> list[Any]:
    """The same for other parameters; a tuple is of several."""
    return [
        _case(found, pytest.mark.slow if name == proved else ()) for name, found in (("v4", v4), ("v6", v6))
    ]


def proved(*cases: Any) -> list[Any]:
    """Cases that go the same way as one beside them: `make prove` runs them. A tuple is of several
    parameters."""
    return [_case(case, pytest.mark.slow) for case in cases]


def thorough(*cases: Any) -> list[Any]:
    """Cases that only `make test-all` runs."""
    return [_case(case, pytest.mark.thorough) for case in cases]


def _case(values: Any, marks: Any) -> Any:
    return pytest.param(*(values if isinstance(values, tuple) else (values,)), marks=marks)


def cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def one_worker() -> list[Document]:
    return [
        {
            "cpu": cpus()[-1],
            "senders": [{"side": "left", "stream": 0}, {"side": "right", "stream": 0}],
            "receivers": [{"side": "left", "queue": 0}, {"side": "right", "queue": 0}],
        }
    ]


def memif_cable(folder: Path, *, buffer_octets: int = 2048) -> tuple[str, str]:
    """Both ports of one engine, joined to each other: what the left sends the right receives."""
    options = f"id=0,socket={folder / 'cable'},socket-abstract=no,rsize=11,bsize={buffer_octets}"
    return f"net_memif0,role=server,{options}", f"net_memif1,role=client,{options}"


@contextmanager
def engine(command: Sequence[str | Path] | None = None) -> Iterator[EngineSession]:
    with EngineSession(command or [find_engine()]) as session:
        yield session


def built_router() -> Path:
    """The reference router's program; a test is skipped where it is not built."""
    try:
        return find_program(ROUTER)
    except HostError as error:
        pytest.skip(f"no router: {error}")


@contextmanager
def router_beside_tester(plan: AddressPlan, dut: ReferenceDut | None = None) -> Iterator[ReferenceRouter]:
    """A reference router on the CPU of `one_worker`: for tests of what arrives, whenever that is. So several
    of them run at once, each with a CPU."""
    cpu = cpus()[-1]
    with reference_router(plan, dut or ReferenceDut(), cpus=(cpu, cpu)) as router:
        yield router


def setup_beside_tester(router: ReferenceRouter) -> Setup:
    """The set-up of `router_beside_tester`. How long the router was without its CPU is nothing to judge
    by."""
    setup = make_reference_setup(router)
    dut = setup.testbed.dut.model_copy(update={"cpus": (), "threads": (), "ring_frames": None})
    return replace(setup, testbed=setup.testbed.model_copy(update={"dut": dut}))


def open_ports(
    session: EngineSession,
    plan: AddressPlan,
    left: str,
    right: str,
    *,
    frame_size: int | None = None,
    seed: int = 1,
    workers: list[Document] | None = None,
    dut_macs: tuple[str, str] | None = NOBODY,
    own_macs: tuple[str, str] | None = None,
    **arguments: Any,
) -> Document:
    ports: dict[SideName, Document] = {"left": {"device": left}, "right": {"device": right}}
    if dut_macs:
        for side, mac in zip(SIDES, dut_macs, strict=True):
            ports[side]["dut_mac"] = mac
    if own_macs:
        for side, mac in zip(SIDES, own_macs, strict=True):
            ports[side]["mac"] = mac
    workers = workers or one_worker()
    arguments.setdefault("session", 0)  # so that a trial's number on the wire is its own
    host = {"memory_mb": needed_memory_mb(workers, ports, frame_size or plan.smallest_frame_size)}
    return session.request(
        "open",
        host=host,
        ports=ports,
        workers=workers,
        plan=plan.to_request(),
        frame_size=frame_size or plan.smallest_frame_size,
        seed=seed,
        **arguments,
    )


def open_to_dut(
    session: EngineSession, plan: AddressPlan, left: str, right: str, **arguments: Any
) -> Document:
    """Open ports to a DUT that is then asked for its MACs. Other arguments as in `open_ports`."""
    opened = open_ports(session, plan, left, right, dut_macs=None, **arguments)
    session.request("resolve", timeout_s=10)
    return opened


def dut_of(lab: LinuxLab | VmLab) -> Document:
    """Where the lab's DUT runs, for `open`: what the host does to it is not charged to it."""
    return {"ring_frames": RING_FRAMES, "cpus": [{"cpu": lab.dut_cpu, "threads": lab.dut_threads()}]}


def valid_trial(session: EngineSession, *, trial: int = 1, **arguments: Any) -> Document:
    """A trial that neither the tester nor this machine spoiled: INVALID ones are repeated, as a search does,
    but with more patience.

    PASS and FAIL count at once. Each attempt has a number of its own, from `trial` on.
    """
    reasons = []
    for attempt in range(MOST_ATTEMPTS):
        document = run_trial(session, trial=trial + attempt, **arguments)
        if document["verdict"] != "INVALID":
            return document
        reasons.append("; ".join(f"{reason['code']}: {reason['text']}" for reason in document["reasons"]))
    raise AssertionError(f"no valid trial in {MOST_ATTEMPTS} attempts:\n" + "\n".join(reasons))


AMISS = ("lost", "duplicated", "reordered", "late", "corrupted", "wrong_length", "foreign", "stale")
"""Kinds of frames of which a direction counts none where all is well."""


def assert_all_came(direction: Document, *, but: Collection[str] = ()) -> None:
    """What was to be sent was sent and received, and nothing is amiss with it.

    Args:
        but: What of AMISS is not asked for.
    """
    assert direction["received_frames"] == direction["offered_frames"] == direction["intended_frames"]
    for kind in AMISS:
        assert kind in but or direction[f"{kind}_frames"] == 0, kind


def run_trial(
    session: EngineSession,
    *,
    trial: int = 1,
    rate_fps: float = QUIET_FPS,
    duration_s: float = 0.5,
    **arguments: Any,
) -> Document:
    arguments.setdefault("waits", FAST_WAITS)
    arguments.setdefault("limits", PATIENT)
    return session.request("trial", trial=trial, rate_fps=rate_fps, duration_s=duration_s, **arguments)


def until(holds: Callable[[Found], bool], measured: Callable[[], Found]) -> Found:
    """What was measured when it first held. Asked again where this machine may have taken a CPU away: that
    adds to delays and to losses, and now and then takes from them, but never as often as this is asked."""
    found = []
    for _ in range(MOST_ATTEMPTS):
        found.append(measured())
        if holds(found[-1]):
            return found[-1]
    raise AssertionError(found)


def was_sent_whole(document: Document) -> bool:
    """Whether each frame of each direction left: none is sent that a stall of this machine has made too
    late."""
    return all(
        direction["offered_frames"] == direction["intended_frames"]
        for direction in document["directions"].values()
    )


@pytest.fixture
def few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process find out in a second, not in ten, which limits this machine keeps."""
    monkeypatch.setattr(host_limits, "PROBES", 2)
    monkeypatch.setattr(host_limits, "PROBE_S", 0.2)


def drop_captures(folder: Path) -> None:
    """Before they are made again: the engine overwrites none."""
    for capture in folder.glob("*.pcap"):
        capture.unlink()


def measure(setup: Setup, plan: AddressPlan, frame_size: int) -> TrialResult:
    """One short trial by the procedure, of a set-up with a DUT; one that this machine spoiled is repeated."""
    limits = replace(Limits(), **PATIENT)
    for _ in range(MOST_ATTEMPTS):
        result = (
            OpenTestbed(setup=setup)
            .trial(
                plan=plan,
                rate_fps=1000,
                duration_s=0.2,
                frame_size=frame_size,
                waits=Waits(**FAST_WAITS),
                limits=limits,
            )
            .trial
        )
        if result.is_valid:
            return result
    raise AssertionError(result.reasons)
