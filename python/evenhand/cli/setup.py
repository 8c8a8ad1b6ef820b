# SPDX-License-Identifier: Apache-2.0
"""From a testbed file, or a lab that is up, to an engine whose ports are open and whose DUT has answered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import HostError, RequestError
from evenhand.lab import RING_FRAMES as LAB_RING_FRAMES
from evenhand.lab import LinuxLab, lab_status
from evenhand.lab.namespaces import namespace_path
from evenhand.lab.state import tester_resource
from evenhand.locks import holding
from evenhand.plan import AddressPlan, Direction, HostMacs, PortMacs, SideName, plan_title
from evenhand.reference import RING_FRAMES as ROUTER_RING_FRAMES
from evenhand.reference import ReferenceRouter
from evenhand.report import Profile
from evenhand.testbed import Testbed, TestbedLimits, Tester, check_device, check_rate, make_testbed, read_host_network, read_testbed
from evenhand.testbed.resources import OWN_NAMESPACE, resources_of
from evenhand.trial import EngineSession, find_engine
from evenhand.units import max_theoretical_fps

LAB_PREFIX = "lab:"
RESOLVE_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What to test with: a checked testbed, and how the engine is started for it."""

    name: str
    testbed: Testbed
    lab: LinuxLab | None = None
    router: ReferenceRouter | None = None

    @property
    def dut_facts(self) -> dict[str, str | None] | None:
        """What the testbed file tells of the DUT, and None for what it does not; None for a DUT of our own."""
        return None if self.lab or self.router else self.testbed.dut.facts.model_dump()

    def engine_command(self, engine: Path | None) -> list[str]:
        """HostError if there is no engine."""
        path = find_engine(engine)
        return [str(path)] if self.lab is None else self.lab.engine_command(path)

    def to_document(self) -> dict[str, Any]:
        """For the run file."""
        known = self.lab or self.router
        dut = None if known is None else known.facts()
        return {"name": self.name, "testbed": self.testbed.model_dump(mode="json"), "dut": dut}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTester:
    """An engine with open ports and a resolved DUT."""

    session: EngineSession
    profile: Profile
    opened: dict[str, Any]
    resolved: dict[str, Any]
    unresolved: HostError | None = None
    """Why there is no `resolved`; only where `open_tester` was told to go on without."""


def read_setup(text: str, plan: AddressPlan) -> Setup:
    """`lab:linux` is a lab that is up; all else is a testbed file. Its ports are checked; nothing is started.

    Raises:
        RequestError, HostError: See `read_testbed` and `check_device`; or the lab is not up; or the DUT is set up for another plan.
    """
    if text.startswith(LAB_PREFIX):
        name = text.removeprefix(LAB_PREFIX)
        lab = lab_status(name)
        if lab is None:
            raise RequestError(
                f"the lab {name!r} is not up", where=text, next_step=f"Use lab:linux after: evenhand lab up linux --plan {plan.title}"
            )
        return make_lab_setup(lab, plan)
    setup = Setup(name=text, testbed=read_testbed(Path(text)))
    known = setup.testbed.dut.plan
    if known not in (None, plan.name):
        # It would not answer for the plan's addresses, and "not resolved" would not say why.
        raise RequestError(
            f"the DUT is set up for {plan_title(known)}, not for {plan.title}",
            where=f"{text}: dut.plan",
            next_step=f"Use --plan {plan_title(known)}, or set the DUT up for {plan.title}, and name that in the file.",
        )
    network = read_host_network()
    for side, port in setup.testbed.ports.items():
        check_device(port.device, network, where=f"{text}: {side}.device")
    return setup


def make_lab_setup(lab: LinuxLab, plan: AddressPlan) -> Setup:
    """The testbed that a lab is. A lab is its own isolated test environment (SEED-80)."""
    if lab.plan != plan.name:
        raise RequestError(
            f"the lab {lab.name!r} is set up for {plan_title(lab.plan)}, not for {plan.title}",
            where="--plan",
            next_step=f"Use --plan {plan_title(lab.plan)}, or: evenhand lab up linux --plan {plan.title}",
        )
    document = {
        "isolated_test_environment": True,
        "left": {"device": lab.left_device},
        "right": {"device": lab.right_device},
        "tester": {"cpus": list(lab.tester_cpus)},
        "dut": {"cpus": [lab.dut_cpu], "threads": lab.dut_threads(), "ring_frames": LAB_RING_FRAMES},
    }
    return Setup(name=f"{LAB_PREFIX}{lab.name}", testbed=make_testbed(document, where=f"lab {lab.name}"), lab=lab)


def make_reference_setup(router: ReferenceRouter) -> Setup:
    """The testbed that a reference router is. Both ends of its memif cables are ours, so it is isolated (SEED-80)."""
    document = {
        "isolated_test_environment": True,
        "left": {"device": router.left_device},
        "right": {"device": router.right_device},
        "tester": {"cpus": list(router.tester_cpus)},
        "dut": {"cpus": [router.cpu], "threads": [router.thread], "ring_frames": ROUTER_RING_FRAMES},
        "limits": router.dut.justified_limits(),
    }
    return Setup(name="reference router", testbed=make_testbed(document, where="reference router"), router=router)


def make_looped_setup(tester: Tester, folder: Path, *, limits: TestbedLimits | None = None) -> Setup:
    """The tester's two ports joined to each other by a memif cable, on the CPUs of this tester. No frame leaves the process (SEED-80).

    Both ends have as many queues as streams: what a stream sends on a ring without a queue at the other end would never arrive.

    Args:
        folder: For the cable's socket; its path must be short.
        limits: Of the testbed that the tester stands in.
    """
    queues = max(len(tester.cpus) // 4, 1)
    cpus = tester.cpus if len(tester.cpus) < 4 else tester.cpus[: 4 * queues]
    cable = f"id=0,socket={folder / 'cable'},socket-abstract=no,rsize=11"
    document = {
        "isolated_test_environment": True,
        "left": {"device": f"net_memif0,role=server,{cable}", "dut_mac": "02:00:00:00:d0:01"},
        "right": {"device": f"net_memif1,role=client,{cable}", "dut_mac": "02:00:00:00:d0:02"},
        "tester": {"cpus": list(cpus), "receive_queues": queues},
    }
    testbed = make_testbed(document, where="looped ports")
    return Setup(name="looped", testbed=testbed if limits is None else testbed.model_copy(update={"limits": limits}))


@contextmanager
def open_tester(
    setup: Setup,
    plan: AddressPlan,
    *,
    frame_size: int,
    seed: int,
    directions: tuple[Direction, ...],
    engine: Path | None,
    host_macs: HostMacs = "port",
    needs_dut: bool = True,
) -> Iterator[OpenTester]:
    """Start the engine, open its ports, find the DUT. Everything is closed when the block ends, however it ends.

    The one place where testers begin: the lab and each port are locked here, before anything of them is touched.

    Args:
        needs_dut: Whether a DUT that does not answer is an error; if not, `OpenTester.unresolved` tells.

    Raises:
        HostError: Another tester has the lab or one of the ports; names its process.
    """
    with ExitStack() as stack:
        command = setup.engine_command(engine)
        locked = stack.enter_context(_locked(setup))
        session = stack.enter_context(EngineSession(command, inherited=locked))
        request = setup.testbed.open_request(plan, frame_size=frame_size, seed=seed)
        stack.enter_context(_kept_off(worker["cpu"] for worker in request["workers"]))
        opened = session.request("open", **request, host_macs=host_macs)
        resolved, unresolved = _resolve(session, needs_dut=needs_dut)
        rates = [opened[side]["line_rate_bps"] for side in ("left", "right")]
        known = [rate for rate in rates if rate is not None]
        line_rate_bps = min(known) if known else None
        profile = Profile(
            plan=plan, frame_size=frame_size, seed=seed, directions=directions, line_rate_bps=line_rate_bps,
            theoretical_fps=None if line_rate_bps is None else max_theoretical_fps(line_rate_bps, frame_size), host_macs=host_macs,
            macs=_macs_of(opened, resolved), dut=setup.dut_facts,
        )  # fmt: skip
        yield OpenTester(session=session, profile=profile, opened=opened, resolved=resolved, unresolved=unresolved)


@contextmanager
def _locked(setup: Setup) -> Iterator[tuple[int, ...]]:
    """Nobody else has the lab and the ports until the block ends."""
    lab = setup.lab
    namespace = OWN_NAMESPACE if lab is None else namespace_path(lab.tester_namespace)
    resources = [] if lab is None else [tester_resource(lab.name)]
    next_step = "Wait for it, or stop it; two testers on one port take each other's frames."
    with ExitStack() as stack:
        locked = stack.enter_context(holding(resources, where=setup.name, next_step=next_step))
        if lab is not None and lab_status(lab.name) != lab:
            raise HostError(
                f"the lab {lab.name!r} was taken down or set up anew just now", where=setup.name, next_step="Give the command again."
            )
        ports = [resource for port in setup.testbed.ports.values() for resource in resources_of(port.device, namespace=namespace)]
        yield (*locked, *stack.enter_context(holding(ports, where=setup.name, next_step=next_step)))


def _macs_of(opened: dict[str, Any], resolved: dict[str, Any]) -> dict[SideName, PortMacs]:
    sides: tuple[SideName, SideName] = ("left", "right")
    return {side: PortMacs(tester=opened[side]["mac"], dut=resolved.get(side, {}).get("dut_mac")) for side in sides}


def _resolve(session: EngineSession, *, needs_dut: bool) -> tuple[dict[str, Any], HostError | None]:
    """The DUT's MACs, or why there are none."""
    try:
        return session.request("resolve", timeout_s=RESOLVE_TIMEOUT_S), None
    except HostError as error:
        if needs_dut:
            raise
        return {}, error


@contextmanager
def _kept_off(cpus: Iterable[int]) -> Iterator[None]:
    """Keep this process (progress, storage) off the tester's CPUs, as long as that leaves it any. The engine has started by then."""
    before = os.sched_getaffinity(0)
    elsewhere = before - set(cpus)
    if elsewhere:
        os.sched_setaffinity(0, elsewhere)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def engine_versions(session: EngineSession) -> dict[str, str]:
    """For the run file."""
    about = session.about
    return {"engine": str(about["version"]), **{key: str(about[key]) for key in ("dpdk", "compiler", "build_type", "contract")}}


def choose_maximum(rate_fps: float | None, profile: Profile, *, where: str) -> float:
    """The user's maximum, else the theoretical one. RequestError if there is neither, or the user's is above the line rate."""
    if rate_fps is None:
        if profile.theoretical_fps is None:
            raise RequestError(
                "the ports do not know their line rate, so the search needs a maximum",
                where=where,
                next_step=f"Add {where} 1Mfps, or line_rate to the testbed file.",
            )
        return float(profile.theoretical_fps)
    check_rate(rate_fps, profile.theoretical_fps, line_rate_bps=profile.line_rate_bps, frame_size=profile.frame_size, where=where)
    return rate_fps
