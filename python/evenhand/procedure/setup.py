# SPDX-License-Identifier: Apache-2.0
"""Procedure: what to test with, from a testbed file, a lab that is up, or a router of our own. Starts
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.suggestion import suggestion
from evenhand.plan import AddressPlan, Stream, largest_frame, make_plan, plan_title
from evenhand.rig.lab import Lab, LinuxLab, VmLab, lab_names, lab_status
from evenhand.rig.lab.napi import MOST_URGENT
from evenhand.rig.reference import ReferenceRouter
from evenhand.rig.testbed import (
    Testbed,
    TestbedDut,
    TestbedLimits,
    Tester,
    check_device,
    make_testbed,
    read_host_network,
    read_testbed,
)
from evenhand.trial import find_engine

LAB_PREFIX = "lab:"
LAB_KINDS = (LinuxLab.kind, VmLab.kind)
REFERENCE = "reference"
"""The testbed that is made for a campaign: a reference router, set by its `[reference]`."""
DEFAULT_PLAN = "gateway-v4"
"""With all its addresses (SEED-05)."""

MEMIF_BUFFER_OCTETS = 2048
"""Without `bsize`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What to test with: a checked testbed, and how the engine is started for it."""

    name: str
    testbed: Testbed
    lab: Lab | None = None
    router: ReferenceRouter | None = None
    is_urgent: bool = False
    """Whether the engine is as urgent as in a lab, which only root may ask for."""
    is_set_up: bool = False
    """Whether the DUT was set up just now for the plan that is to be measured: what lab and testbed file say
    of its plan is of before."""

    @property
    def dut_facts(self) -> dict[str, str | None] | None:
        """What the testbed file tells of the DUT, and None for what it does not; None for a DUT of our
        own."""
        return None if self.lab or self.router else self.testbed.dut.facts.model_dump()

    @property
    def ssh_config(self) -> Path | None:
        """Instead of the user's own ~/.ssh/config, for a DUT that a lab has made."""
        return None if self.lab is None else self.lab.ssh_config

    @property
    def own_plan(self) -> str:
        """The plan that is meant where none is named: what the DUT is set up for, if that is known, else
        DEFAULT_PLAN."""
        own = self.testbed.dut.plan if self.lab is None else self.lab.plan
        return DEFAULT_PLAN if own is None else plan_title(own)

    def make_own_plan(self) -> AddressPlan:
        """The same with its addresses: those that the DUT is set up for, if that is known, else all."""
        dut = self.testbed.dut
        return make_plan(self.own_plan, dut.pair("hosts"), networks=dut.pair("networks"))

    def engine_command(self, engine: Path | None) -> list[str]:
        """HostError if there is no engine."""
        path = find_engine(engine)
        if self.lab is not None:
            return self.lab.engine_command(path)
        return [*(["nice", "-n", str(MOST_URGENT)] if self.is_urgent else []), str(path)]

    def check_plan(self, plan: AddressPlan) -> None:
        """RequestError if the DUT is set up for another one: it would not answer for the plan's addresses,
        and nothing would say why."""
        if self.is_set_up:
            return
        if self.lab is not None and plan.other is not None:
            raise RequestError(
                f"the lab {self.lab.name!r} is set up for one IP version, not for {plan.title}",
                where="plan",
                next_step=f"Use the plan {plan_title(self.lab.plan)} alone, or a testbed file.",
            )
        if self.lab is not None and self.lab.plan != plan.name:
            raise RequestError(
                f"the lab {self.lab.name!r} is set up for {plan_title(self.lab.plan)}, not for {plan.title}",
                where="plan",
                next_step=f"Use the plan {plan_title(self.lab.plan)}, or: evenhand lab up {self.lab.kind}"
                f" --plan {plan.title}",
            )
        if self.lab is not None:
            _check_room(self.lab, plan)
        known = self.testbed.dut.plan
        if known is not None and (known != plan.name or plan.other is not None):
            raise RequestError(
                f"the DUT is set up for {plan_title(known)}, not for {plan.title}",
                where=f"{self.name}: dut.plan",
                next_step=f"Use the plan {plan_title(known)}, or set the DUT up for {plan.title}, and name"
                " that in the file.",
            )
        self._check_networks(plan)

    def _check_networks(self, plan: AddressPlan) -> None:
        """RequestError if there are more than the DUT knows: it would lose all frames to the others."""
        for side, known in zip(plan.sides, self.testbed.dut.pair("networks") or (), strict=False):
            asked = side.hosts.network_count
            if asked > known:
                raise RequestError(
                    f"the DUT is set up for {known} networks on the {side.name}, not for {asked}",
                    where=f"{self.name}: dut.networks",
                    next_step=f"Use at most {known} networks, or set the DUT up for more, and say so in the"
                    " file.",
                )

    def check_frame_sizes(self, streams: Sequence[Stream]) -> None:
        """RequestError if the DUT's interfaces do not take frames of this size: it would lose all of them
        (R8219-20)."""
        largest = self.testbed.dut.largest_frame_size
        # An MTU does not count the tags of a link.
        size = largest_frame(streams, has_tags=False)
        if largest is None or size <= largest:
            return
        where, next_step = (
            f"{self.name}: dut.largest_frame_size",
            "Give the DUT's interfaces a larger MTU, and say so there.",
        )
        if self.lab is not None:
            where, next_step = (
                "frame_size",
                f"evenhand lab up {self.lab.kind} --plan {plan_title(self.lab.plan)} --largest-frame {size}",
            )
        elif self.router is not None:
            where, next_step = "frame_size", f"Start it with largest_frame_size {size}."
        without = " (without VLAN tags)" if any(self.testbed.tag_octets) else ""
        raise RequestError(
            f"the DUT takes frames of {largest} octets at the most, not of {size}{without}",
            where=where,
            next_step=next_step,
        )

    def to_document(self) -> dict[str, Any]:
        """For the run file."""
        known = self.lab or self.router
        dut = None if known is None else known.facts()
        return {"name": self.name, "testbed": self.testbed.model_dump(mode="json"), "dut": dut}


def _check_room(lab: Lab, plan: AddressPlan) -> None:
    """RequestError if the DUT was not set up for so many: its neighbour table would be full, and other labs'
    too, or it has no routes."""
    if lab.hosts is None or lab.networks is None:
        return
    for side, hosts, networks in zip(plan.sides, lab.hosts, lab.networks, strict=True):
        what = ""
        # Behind a gateway the DUT has one neighbour, whatever the number of hosts.
        if side.dut_neighbors > max(1, hosts * networks):
            what = f"room for {hosts * networks} hosts on the {side.name}, not for {side.dut_neighbors}"
        elif side.hosts.network_count > networks:
            what = f"routes to {networks} networks on the {side.name}, not to {side.hosts.network_count}"
        if what:
            raise RequestError(
                f"the DUT of the lab {lab.name!r} has {what}",
                where="hosts, networks",
                next_step=f"Use fewer, or set the lab up for more: evenhand lab up {lab.kind} --plan"
                f" {plan.title} --hosts N",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDefaults:
    """What is meant of the address plan where a command line does not say it."""

    plan: str = DEFAULT_PLAN
    hosts: tuple[int, int] | None = None
    """Of this plan, left and right; None: its maximum."""
    networks: tuple[int, int] | None = None


def plan_defaults_of(testbed: str) -> PlanDefaults:
    """Of a testbed as it is named on the command line, before its ports are checked."""
    if testbed.startswith(LAB_PREFIX):
        lab = lab_status(testbed.removeprefix(LAB_PREFIX))
        return (
            PlanDefaults()
            if lab is None
            else PlanDefaults(
                plan=plan_title(lab.plan),
                hosts=lab.hosts,
                networks=lab.networks if lab.plan.startswith("nets_") else None,
            )
        )
    try:
        dut = read_testbed(Path(testbed)).dut
    except RequestError:
        return PlanDefaults()  # told when the file is read for its ports
    return (
        PlanDefaults()
        if dut.plan is None
        else PlanDefaults(plan=plan_title(dut.plan), hosts=dut.pair("hosts"), networks=dut.pair("networks"))
    )


def default_plan_of(testbed: str) -> str:
    """The plan alone."""
    return plan_defaults_of(testbed).plan


def read_setup(text: str, plan: AddressPlan | None = None) -> Setup:
    """`lab:linux` or `lab:vm` is a lab that is up; all else is a testbed file. Its ports are checked; nothing
    is started.

    Args:
        plan: What the DUT must be set up for; None if that is checked later.

    Raises:
        RequestError, HostError: See `read_testbed` and `check_device`; or the lab is not up; or the DUT is
            set up for another plan.
    """
    if text.startswith(LAB_PREFIX):
        name = text.removeprefix(LAB_PREFIX)
        lab = lab_status(name)
        if lab is None:
            raise _no_lab(text, name, DEFAULT_PLAN if plan is None else plan.title)
        return make_lab_setup(lab, plan)
    if text == REFERENCE and not Path(text).exists():
        raise RequestError(
            "there is no testbed of this name: only a campaign has a reference router started for it",
            where=text,
            next_step="Start one in another terminal with `evenhand router gateway-v4 --testbed"
            " router.toml`, and name router.toml here.",
        )
    setup = Setup(name=text, testbed=read_testbed(Path(text)))
    if plan is not None:
        setup.check_plan(plan)
    network = read_host_network()
    for side, port in setup.testbed.ports.items():
        check_device(port.device, network, where=f"{text}: {side}.device")
    return setup


def _no_lab(text: str, name: str, plan: str) -> RequestError:
    if name in LAB_KINDS:
        return RequestError(
            f"the lab {name!r} is not up",
            where=text,
            next_step=f"Set it up: sudo evenhand lab up {name} --plan {plan}",
        )
    there = [f"{LAB_PREFIX}{known}" for known in dict.fromkeys((*LAB_KINDS, *lab_names()))]
    near = suggestion(text, there, cutoff=0.7)
    hint = "" if near is None else f"Did you mean {near}? "
    return RequestError(
        f"there is no lab {name!r}",
        where=text,
        next_step=f"{hint}There are {', '.join(there)}; one is set up by: sudo evenhand lab up"
        f" {LinuxLab.kind} --plan {plan}",
    )


def read_dut(text: str) -> tuple[TestbedDut, Path | None]:
    """The DUT of a testbed file or of a lab that is up, and its `Setup.ssh_config`. No port is looked at.
    Errors as `read_setup`."""
    if text.startswith(LAB_PREFIX):
        setup = read_setup(text)
        return setup.testbed.dut, setup.ssh_config
    return read_testbed(Path(text)).dut, None


def make_lab_setup(lab: Lab, plan: AddressPlan | None = None) -> Setup:
    """The testbed that a lab is. A lab is its own isolated test environment (SEED-80).

    Raises:
        RequestError: It is set up for another plan.
        HostError: Its DUT has ended.
    """
    lab.check_running()
    document = {
        "isolated_test_environment": True,
        "left": {"device": lab.left_device},
        "right": {"device": lab.right_device},
        "tester": {"cpus": list(lab.tester_cpus)},
        "dut": {
            "cpus": [lab.dut_cpu],
            "threads": lab.dut_threads(),
            "ring_frames": lab.ring_frames,
            "largest_frame_size": lab.largest_frame_size,
            **lab.testbed_dut(),
        },
    }
    setup = Setup(
        name=f"{LAB_PREFIX}{lab.name}", testbed=make_testbed(document, where=f"lab {lab.name}"), lab=lab
    )
    if plan is not None:
        setup.check_plan(plan)
    return setup


def make_reference_setup(router: ReferenceRouter) -> Setup:
    """The testbed that a reference router is. Both ends of its memif cables are ours, so it is isolated
    (SEED-80)."""
    document = {
        "isolated_test_environment": True,
        "left": {"device": router.left_device, "vlan": router.dut.vlans.get("left", ())},
        "right": {"device": router.right_device, "vlan": router.dut.vlans.get("right", ())},
        "tester": {"cpus": list(router.tester_cpus)},
        "dut": {
            "cpus": [router.cpu],
            "threads": [router.thread],
            "ring_frames": router.ring_frames,
            "largest_frame_size": router.dut.largest_frame_size,
        },
        "limits": router.dut.justified_limits(),
    }
    return Setup(
        name="reference router", testbed=make_testbed(document, where="reference router"), router=router
    )


def make_looped_setup(
    tester: Tester, folder: Path, *, limits: TestbedLimits | None = None, largest_octets: int = 0
) -> Setup:
    """The tester's two ports joined to each other by a memif cable, on the CPUs of this tester. No frame
    leaves the process (SEED-80).

    Both ends have as many queues as streams: what a stream sends on a ring without a queue at the other end
    would never arrive.

    Args:
        folder: For the cable's socket; its path must be short.
        limits: Of the testbed that the tester stands in.
        largest_octets: Of the frames that are to be sent; the cable's buffers must hold one.
    """
    queues = max(len(tester.cpus) // 4, 1)
    cpus = tester.cpus if len(tester.cpus) < 4 else tester.cpus[: 4 * queues]
    buffers = f",bsize={largest_octets}" if largest_octets > MEMIF_BUFFER_OCTETS else ""
    cable = f"id=0,socket={folder / 'cable'},socket-abstract=no,rsize=11{buffers}"
    document = {
        "isolated_test_environment": True,
        "left": {"device": f"net_memif0,role=server,{cable}", "dut_mac": "02:00:00:00:d0:01"},
        "right": {"device": f"net_memif1,role=client,{cable}", "dut_mac": "02:00:00:00:d0:02"},
        "tester": {"cpus": list(cpus), "receive_queues": queues},
    }
    testbed = make_testbed(document, where="looped ports")
    return Setup(
        name="looped", testbed=testbed if limits is None else testbed.model_copy(update={"limits": limits})
    )
