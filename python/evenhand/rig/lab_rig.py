# SPDX-License-Identifier: Apache-2.0
"""Rig: a lab by its name, `lab:linux` or `lab:vm`, and what is measured with it. A campaign sets it up for
each of its suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError, suggestion
from evenhand.base.lazy_import import lazy_import
from evenhand.base.locks import Resource
from evenhand.dut.connections import Emptied
from evenhand.dut.facts import with_facts
from evenhand.dut.nat import MOST_POOL_ADDRESSES
from evenhand.lab import Lab, LinuxLab, VmLab, lab_names, lab_status, require_root
from evenhand.lab.borrow import KINDS, kind_of
from evenhand.lab.labs import lab_class
from evenhand.lab.namespaces import host_errors, namespace_path, run_inside
from evenhand.lab.state import is_for, networks_to_ask_for, tester_resource
from evenhand.plan import SIDES, AddressPlan, plan_title
from evenhand.reference import ReferenceDut
from evenhand.rig.dut_wish import DutWish, OnDutChange, OnNote, ReachableDut
from evenhand.rig.facts import FACTS, of_this_machine
from evenhand.rig.inside import Inside
from evenhand.rig.lab_lease import LeasedLab, leased_lab
from evenhand.rig.rig import Demands, PlanDefaults, Rig, RigFacts, by_suite
from evenhand.rig.setup import DEFAULT_PLAN, HASH_OF_POINTS, Result, Setup
from evenhand.testbed import make_testbed
from evenhand.trial import find_engine

if TYPE_CHECKING:
    from evenhand.rig import over_ssh
else:
    over_ssh = lazy_import("evenhand.rig.over_ssh")

LAB_PREFIX = "lab:"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSetup(Setup):
    """A lab that is up."""

    lab: Lab

    def _engine_command(self, engine: Path | None) -> list[str]:
        return self.lab.engine_command(find_engine(engine))

    def at_the_ports(self, read: Callable[[], Result]) -> Result:
        with host_errors("look at the interfaces of the lab", where=self.lab.tester_namespace):
            return run_inside(self.lab.tester_namespace, read)

    def why_no_own_loop(self, driver: str) -> str | None:
        return "the ports of a lab are connected to its router"

    @property
    def _namespace(self) -> Path:
        return namespace_path(self.lab.tester_namespace)

    def _own_resources(self) -> list[Resource]:
        return [tester_resource(self.lab.name)]

    def _check_still_there(self) -> None:
        if lab_status(self.lab.name) != self.lab:
            raise HostError(
                f"the lab {self.lab.name!r} has just been taken down or set up again",
                code="rig.lab-changed",
                where=self.name,
                next_step="Run the command again.",
            )

    @property
    def own_plan(self) -> str:
        return plan_title(self.lab.plan)

    def _check_own_plan(self, plan: AddressPlan) -> None:
        if plan.other is not None and self.lab.kind != LinuxLab.kind:
            raise RequestError(
                f"the lab {self.lab.name!r} is set up for one IP version, not for {plan.title}",
                code="rig.lab-of-other-plan",
                where="plan",
                next_step=f"Use only the plan {plan_title(self.lab.plan)}, or a testbed file.",
            )
        if not is_for(self.lab.plan, plan):
            raise RequestError(
                f"the lab {self.lab.name!r} is set up for {plan_title(self.lab.plan)}, not for {plan.title}",
                code="rig.lab-of-other-plan",
                where="plan",
                next_step=f"Use the plan {plan_title(self.lab.plan)}, or run: evenhand lab up"
                f" {self.lab.kind} --plan {plan.title}",
            )
        _check_room(self.lab, plan)
        _check_pool(self.lab, plan)

    def _how_to_take_frames_of(self, size: int) -> tuple[str, str]:
        return (
            "frame_size",
            f"evenhand lab up {self.lab.kind} --plan {plan_title(self.lab.plan)} --largest-frame {size}",
        )

    @property
    def ssh_config(self) -> Path | None:
        return self.lab.ssh_config

    def set_up_for(self, wish: DutWish, *, run: str, on_change: OnDutChange, on_note: OnNote) -> str | None:
        dut = self.reachable
        if dut is not None:
            return over_ssh.set_up(dut, wish, run=run, on_change=on_change, on_note=on_note)
        if wish.hash_type is not None:
            return f"the DUT of {self.name} has no NIC whose hash can be set (hash-types)"
        return None

    @property
    def check_dut(self) -> Callable[[], None]:
        return self.lab.check_running

    def stated_facts(self, inside: Inside | None) -> None:
        return None

    def check_emptied_somehow(self) -> None:
        if isinstance(self.lab, VmLab):
            Setup.check_emptied_somehow(self)
        elif self.lab.nat is None:
            raise HostError(
                f"the DUT of the lab {self.lab.name!r} is a router: it has no table of connections",
                code="rig.lab-without-connections",
                where=self.name,
                next_step=f"Set it up as a NAT: evenhand lab up {self.lab.kind} --plan nat44",
            )

    def empty_connections(self) -> Emptied:
        if isinstance(self.lab, VmLab):
            return Setup.empty_connections(self)
        self.check_emptied_somehow()
        return self.lab.empty_connections()

    @property
    def connection_timeout_s(self) -> float | None:
        if isinstance(self.lab, VmLab):
            return self._read_timeout()
        return self.lab.connection_timeout_s

    def own_facts(self) -> dict[str, Any]:
        return self.lab.facts()

    def describe_dut(
        self, tester: Mapping[str, str | None], inside: Mapping[str, Any] | None
    ) -> dict[str, str | None]:
        if inside is None:
            return of_this_machine(tester, self.testbed.dut.cpus)
        # A virtual machine: a computer of its own on the tester's CPUs.
        known = dict.fromkeys(FACTS) | {"cpu_model": tester["cpu_model"]}
        return {**with_facts(known, inside), "flow_hash": HASH_OF_POINTS}


def make_lab_setup(lab: Lab, plan: AddressPlan | None = None) -> LabSetup:
    """The testbed that a lab is. A lab is its own isolated test environment (SEED-80).

    Raises:
        RequestError: It is set up for another plan.
        HostError: Its DUT has ended.
    """
    lab.check_running()
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "isolated_networks": ["0.0.0.0/0", "::/0"],
        **{side: {"device": lab.device(side)} for side in SIDES},
        "tester": {"cpus": list(lab.tester_cpus)},
        "dut": {
            "cpus": [lab.dut_cpu],
            "threads": lab.dut_threads(),
            "ring_frames": lab.ring_frames,
            "largest_frame_size": lab.largest_frame_size,
            **lab.testbed_dut(),
        },
    }
    setup = LabSetup(
        name=f"{LAB_PREFIX}{lab.name}",
        testbed=make_testbed(document, where=f"lab {lab.name}"),
        is_urgent=True,
        lab=lab,
    )
    if plan is not None:
        setup.check_plan(plan)
    return setup


@dataclass(frozen=True, slots=True)
class LabRig(Rig):
    """The lab of this name, up or down."""

    @classmethod
    def of(cls, text: str) -> LabRig | None:
        return cls(text) if text.startswith(LAB_PREFIX) else None

    @property
    def name(self) -> str:
        return self.text.removeprefix(LAB_PREFIX)

    @property
    def _kind(self) -> str | None:
        """None: no lab of this name is up, and none could be set up."""
        return kind_of(self.name)

    def facts(self, reference: ReferenceDut | None = None) -> RigFacts:
        lab, kind = lab_status(self.name), self._kind
        if kind is None:
            return RigFacts()
        plan = PlanDefaults()
        if lab is not None:
            plan = PlanDefaults(
                plan=plan_title(lab.plan),
                hosts=lab.hosts,
                networks=networks_to_ask_for(lab.plan, lab.networks),
            )
        return RigFacts(plan=plan, sets_up_its_dut=True, connection_timeout_s=lab_class(kind).nat_timeout_s)

    def read(self, plan: AddressPlan | None = None) -> Setup:
        lab = lab_status(self.name)
        if lab is None:
            raise _no_lab(self.text, self.name, DEFAULT_PLAN if plan is None else plan.title)
        return make_lab_setup(lab, plan)

    def reachable_dut(self) -> ReachableDut | None:
        return None if lab_status(self.name) is None else self.read().reachable

    @contextmanager
    def leased(
        self, *, run: str, on_note: OnNote, say: OnNote = lambda text: None
    ) -> Iterator[LeasedLab | None]:
        if self._kind is None:
            yield None
            return
        with leased_lab(self.name, run=run, on_note=on_note, say=say) as lab:
            yield lab

    def check(
        self,
        demands: Demands = tuple,
        *,
        is_made_later: bool = False,
        is_dry: bool = False,
        is_begun: bool = False,
    ) -> list[str]:
        kind = self._kind
        if kind is None:
            return Rig.check(self, demands, is_made_later=is_made_later, is_dry=is_dry, is_begun=is_begun)
        self._check_kind(kind, demands)
        return [] if is_begun else _check_host(kind, is_dry=is_dry)

    def _check_kind(self, kind: str, demands: Demands) -> None:
        """RequestError for points that a lab, which is set up for each of them, cannot measure."""
        lab = lab_class(kind)
        for suite, of_suite in by_suite(demands()):
            hashed = next((each for each in of_suite if each.wish.hash_type is not None), None)
            if hashed is not None and not lab.has_hash:
                raise RequestError(
                    f"{self.text} has no NIC whose hash can be set to {hashed.wish.hash_type}:"
                    " its links are veth pairs, which do not hash",
                    code="rig.hash-not-settable",
                    where=f"{suite}: hash-types",
                    next_step=f"{hashed.without_hash}; or use --testbed lab:vm, whose NICs hash.",
                )
            mixed = next((each.plan for each in of_suite if each.plan.other is not None), None)
            if mixed is not None and mixed.is_direct and not lab.mixes_direct_plans:
                raise RequestError(
                    f"{self.text} has room for the neighbours of one IP version, but {mixed.title} has"
                    " hosts of both on the links",
                    code="rig.one-version-at-a-time",
                    where=f"{suite}: plan",
                    next_step="Use gateway plans, --testbed lab:vm or reference, or one suite for each"
                    " version.",
                )
            of_suite[0].lab_wish.make_plan()


def _check_host(kind: str, *, is_dry: bool) -> list[str]:
    """Whether this machine, and this user, can have a lab of this kind. See `Rig.check`."""
    lab = lab_class(kind)
    lab.check_programs()
    try:
        require_root(lab=lab.title)
    except HostError as error:
        if not is_dry:
            raise
        return [f"{error.what[0].upper()}{error.what[1:]}: run the command with sudo."]
    return []


def _check_room(lab: Lab, plan: AddressPlan) -> None:
    """RequestError if the DUT was not set up for so many: its neighbour table would be full, and other labs'
    too, or it has no routes."""
    for side, host_count, network_count in zip(plan.sides, lab.hosts, lab.networks, strict=True):
        what = ""
        # Behind a gateway the DUT has one neighbour, whatever the number of hosts.
        if side.dut_neighbors > max(1, host_count * network_count):
            room = host_count * network_count
            what = f"room for {room} hosts on the {side.name} side, not for {side.dut_neighbors}"
        elif (asked := side.host_range.network_count) > network_count:
            what = f"routes to {network_count} networks on the {side.name} side, not to {asked}"
        if what:
            raise RequestError(
                f"the DUT of the lab {lab.name!r} has {what}",
                code="rig.lab-too-small",
                where="hosts, networks",
                next_step=f"Use fewer, or set the lab up for more: evenhand lab up {lab.kind} --plan"
                f" {plan.title} --hosts N",
            )


def _check_pool(lab: Lab, plan: AddressPlan) -> None:
    """RequestError if Jool would give hosts addresses that the plan does not expect of them: it draws from
    all of its pool."""
    if not isinstance(lab, VmLab) or lab.translator != "jool" or plan.nat is None:
        return
    pool, host_count = min(lab.hosts.left, MOST_POOL_ADDRESSES), plan.left.host_range.count
    if host_count < pool:
        raise RequestError(
            f"Jool in the lab {lab.name!r} draws from {pool} addresses, but the plan has {host_count} hosts",
            code="rig.pool-too-large",
            where="hosts",
            next_step=f"Use at least {pool} hosts on the left, or set the lab up for fewer: evenhand lab"
            f" up {lab.kind} {lab.options} --hosts {host_count},{plan.right.host_range.count}",
        )


def _no_lab(text: str, name: str, plan: str) -> RequestError:
    if name in KINDS:
        return RequestError(
            f"the lab {name!r} is not up",
            code="rig.lab-not-up",
            where=text,
            next_step=f"Set it up: sudo evenhand lab up {name} --plan {plan}",
        )
    there = [f"{LAB_PREFIX}{known}" for known in dict.fromkeys((*KINDS, *lab_names()))]
    near = suggestion(text, there, cutoff=0.7)
    hint = "" if near is None else f"Did you mean {near}? "
    return RequestError(
        f"{name!r} is not a lab",
        code="rig.not-a-lab",
        where=text,
        next_step=f"{hint}The labs are: {', '.join(there)}; to set one up: sudo evenhand"
        f" lab up {LinuxLab.kind} --plan {plan}",
    )
