# SPDX-License-Identifier: Apache-2.0
"""Rig: what is measured with and measured on, once it is there: a checked testbed and its DUT. Starts
nothing.

`Setup` is all that later rooms know of a DUT: how the tester is opened on it, what its facts are, how it is
watched, and how its hash is set. This one is for a DUT of which there is a testbed file and no more. A DUT
that Evenhand makes is a subclass next to the `Rig` that makes it (`lab_rig.py`, `reference_rig.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from evenhand.base.errors import HostError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.base.locks import Resource, holding
from evenhand.base.programs import ENGINE
from evenhand.dut.connections import Emptied, empty_by_command
from evenhand.dut.facts import READ_THERE, with_facts
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.ssh import command_over_ssh
from evenhand.lab.napi import MOST_URGENT
from evenhand.plan import (
    AddressPlan,
    Stream,
    is_plan_file,
    largest_frame,
    make_mix,
    name_of_plan_file,
    own_title,
    plan_title,
    read_plan_file,
)
from evenhand.rig.dut_wish import DutWish, OnDutChange, OnNote, ReachableDut
from evenhand.rig.inside import Inside, lasting_facts, look_inside
from evenhand.testbed import Testbed, read_device
from evenhand.testbed.drivers import PCI
from evenhand.testbed.resources import OWN_NAMESPACE, resources_of
from evenhand.trial import find_engine

if TYPE_CHECKING:
    from evenhand.rig import over_ssh
else:
    over_ssh = lazy_import("evenhand.rig.over_ssh")

DEFAULT_PLAN = "gateway-v4"
"""Used with all its addresses (SEED-05)."""
HASH_OF_POINTS = f"each point has its own, with its results{READ_THERE}"
"""A campaign may set it from point to point, and each search has what was read before it."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What to test with: a checked testbed, and how the engine is started for it."""

    has_new_macs: ClassVar[bool] = False
    """Whether it is another process each time, so that its MACs say nothing of whether it is the same DUT."""

    name: str
    testbed: Testbed
    is_urgent: bool = False
    """Whether the engine is as urgent as the DUT's threads, which only root may ask for."""
    is_set_up: bool = False
    """Whether the DUT was set up just now for the plan that is to be measured: what lab and testbed file say
    of its plan is of before."""

    # Open: the engine, and what no one else may use meanwhile.

    def _engine_command(self, engine: Path | None) -> list[str]:
        return [*(["nice", "-n", str(MOST_URGENT)] if self.is_urgent else []), str(find_engine(engine))]

    def engine_commands(self, engine: Path | None) -> list[list[str]]:
        """How the engine is started, or each of several in their order; those elsewhere are reached over SSH.
        HostError if there is no engine here, or no ssh."""
        if not self.testbed.engine:
            return [self._engine_command(engine)]
        return [
            self._engine_command(engine) if each.ssh is None else command_over_ssh(each.ssh, ENGINE.name)
            for each in self.testbed.engine
        ]

    @contextmanager
    def locked(self) -> Iterator[tuple[int, ...]]:
        """No one else has the DUT and the ports until the block ends. Gives the descriptors of the locks, for
        the engine to inherit. InUseError names who has them."""
        next_step = "Wait until it ends, or stop it; two testers on one port would take each other's frames."
        with ExitStack() as stack:
            locked = stack.enter_context(holding(self._own_resources(), where=self.name, next_step=next_step))
            self._check_still_there()
            ports = list(
                dict.fromkeys(  # one port may be both sides
                    resource
                    for port in self.testbed.local_ports
                    for resource in resources_of(port.device, namespace=self._namespace)
                )
            )
            yield (*locked, *stack.enter_context(holding(ports, where=self.name, next_step=next_step)))

    def each_alone(self) -> dict[str, Setup]:
        """A set-up of each of several engines, by its name: with the ports of no other one. Empty where there
        is one engine."""
        return {
            engine.name: replace(
                self,
                testbed=self.testbed.model_copy(
                    update={"engine": (engine,), "tester": engine, "left": engine.left, "right": engine.right}
                ),
            )
            for engine in self.testbed.engine
        }

    def at_the_ports(self, read: Callable[[], Result]) -> Result:
        """The result of a function that looks at the ports' interfaces, called where they are."""
        return read()

    def why_no_own_loop(self, driver: str) -> str | None:
        """Why its ports cannot be joined to each other in this machine by ports of this driver; None if they
        can: they are such."""
        if self.testbed.engine:
            return "the ports of several engines cannot be joined to each other inside one machine"
        drivers = {read_device(port.device).driver for port in self.testbed.ports.values()} - {driver}
        if not drivers:
            return None
        names = sorted("a PCI device" if driver == PCI else driver for driver in drivers)
        return (
            f"ports of {' and '.join(names)} cannot be connected to each other inside this"
            " machine; with a cable between them instead of the DUT, the same command"
            " measures it"
        )

    @property
    def _namespace(self) -> Path:
        """The file of the network namespace that the ports are in."""
        return OWN_NAMESPACE

    def _own_resources(self) -> list[Resource]:
        """What a tester takes in addition to the ports."""
        return []

    def _check_still_there(self) -> None:
        """HostError if what was read is no longer so, now that no one else can change it."""

    # What is asked of it: plan and frame size.

    @property
    def own_plan(self) -> str:
        """The plan that is meant where none is named: what the DUT is set up for, if that is known, else
        DEFAULT_PLAN."""
        own = self.testbed.dut.plan
        return DEFAULT_PLAN if own is None else own_title(own)

    def make_own_plan(self) -> AddressPlan:
        """The same with its addresses: those that the DUT is set up for, if that is known, else all."""
        dut = self.testbed.dut
        if is_plan_file(self.own_plan):
            return read_plan_file(self.own_plan)
        return make_mix(self.own_plan, dut.hosts, networks=dut.networks)

    def check_plan(self, plan: AddressPlan) -> None:
        """RequestError if the DUT is set up for another one: it would not answer for the plan's addresses,
        and nothing would say why; or if its addresses are not such as the testbed is isolated for."""
        self._check_isolated(plan)
        if self.is_set_up:
            return
        self._check_own_plan(plan)
        known = self.testbed.dut.plan
        if known is not None and is_plan_file(known):
            known = name_of_plan_file(known)
        if known is not None and not {each.name for each in plan.plans} <= set(known.split("+")):
            raise RequestError(
                f"the DUT is set up for {plan_title(known)}, not for {plan.title}",
                code="rig.dut-of-other-plan",
                where=f"{self.name}: dut.plan",
                next_step=f"Use the plan {plan_title(known)}, or set the DUT up for {plan.title}"
                " and name that plan in the file.",
            )
        self._check_networks(plan)

    def _check_isolated(self, plan: AddressPlan) -> None:
        """RequestError for addresses that are not reserved for benchmarking, unless the testbed names them
        (R2544-37, R5180-01, R6815-01)."""
        listed = plan.has_files
        away = next((engine.name for engine in self.testbed.engine if engine.ssh is not None), None)
        if listed and away is not None:
            raise RequestError(
                f"the prefixes of {plan.title} are a file on this machine, but the engine {away!r} is on"
                " another",
                code="rig.list-for-another-machine",
                where=f"{self.name}: engine",
                next_step="Use engines on this machine, or a plan without prefixes.",
            )
        found = plan.first_not_named(self.testbed.isolated_networks)
        if found is not None:
            raise RequestError(
                f"{plan.title} has addresses that are not reserved for benchmarking: {found}",
                code="rig.addresses-not-isolated",
                where=f"{self.name}: isolated_networks",
                next_step="If no frame to them can leave your lab (RFC 6815), name their networks at the top"
                ' of the testbed file: isolated_networks = ["16.0.0.0/8"]. Otherwise use 198.18.0.0/15 and'
                " 2001:2::/48.",
            )

    def _check_own_plan(self, plan: AddressPlan) -> None:
        """The same for what is known of the DUT in addition to its testbed."""

    def _check_networks(self, plan: AddressPlan) -> None:
        """RequestError if there are more than the DUT knows: it would lose all frames to the others."""
        for side, known in zip(plan.sides, self.testbed.dut.networks or (), strict=False):
            asked = side.host_range.network_count
            if asked > known:
                raise RequestError(
                    f"the DUT is set up for {known} networks on the {side.name} side, not for {asked}",
                    code="rig.too-few-networks-on-dut",
                    where=f"{self.name}: dut.networks",
                    next_step=f"Use at most {known} networks, or set the DUT up for more and"
                    " change the number in the file.",
                )

    def check_frame_sizes(self, streams: Sequence[Stream]) -> None:
        """RequestError if the DUT's interfaces do not take frames of this size: it would lose all of them
        (R8219-20)."""
        largest = self.testbed.dut.largest_frame_size
        # An MTU does not count the tags of a link.
        size = largest_frame(streams, has_tags=False)
        if largest is None or size <= largest:
            return
        without = " (without VLAN tags)" if any(self.testbed.tag_octets) else ""
        where, next_step = self._how_to_take_frames_of(size)
        raise RequestError(
            f"the DUT accepts frames of at most {largest} octets, not of {size}{without}",
            code="rig.frame-too-large",
            where=where,
            next_step=next_step,
        )

    def _how_to_take_frames_of(self, size: int) -> tuple[str, str]:
        """Where, and what to do."""
        return (
            f"{self.name}: dut.largest_frame_size",
            "Give the DUT's interfaces a larger MTU, and change the value in the file.",
        )

    # Set: the plan and the hash, for each point of a run.

    @property
    def ssh_config(self) -> Path | None:
        """Instead of the user's own ~/.ssh/config, for a DUT that a lab has made."""
        return None

    @property
    def reachable(self) -> ReachableDut | None:
        """The DUT, if a run is to set it up over SSH for each of its points."""
        dut = self.testbed.dut
        return None if dut.ssh is None else ReachableDut(dut=dut, ssh_config=self.ssh_config)

    def set_up_for(self, wish: DutWish, *, run: str, on_change: OnDutChange, on_note: OnNote) -> str | None:
        """Have the DUT set up for this plan and this hash. Why it cannot be; None if it is, or if it is not
        for a run to do. Arguments and errors as `over_ssh.set_up`."""
        dut = self.reachable
        if dut is not None:
            return over_ssh.set_up(dut, wish, run=run, on_change=on_change, on_note=on_note)
        return None

    def check_settable(self, wishes: Callable[[], Iterable[DutWish]]) -> None:
        """See `over_ssh.check_settable`; nothing where no run sets up the DUT."""
        if self.reachable is not None:
            over_ssh.check_settable(self.reachable, wishes())

    # Watch, and look inside.

    @property
    def check_dut(self) -> Callable[[], None] | None:
        """Raises HostError if the DUT has ended; None if that cannot be known."""
        return None

    # What a DUT that keeps state has of connections.

    def check_emptied_somehow(self) -> None:
        """HostError if no way is known to empty the DUT's table of connections. Nothing is done."""
        if self.testbed.dut.empty_connections is None and self._linux is None:
            raise HostError(
                "no command is known that empties the DUT's table of connections",
                code="rig.no-way-to-empty",
                where=self.name,
                next_step="Write the command in the testbed file: [dut] empty_connections ="
                ' "ssh root@dut conntrack -F". A Linux DUT with [dut] ssh needs none.',
            )

    def empty_connections(self) -> Emptied:
        """Empty the DUT's table of connections, out of band (R9693-07): by the user's command if there is
        one, else over SSH. HostError if it cannot be."""
        self.check_emptied_somehow()
        command = self.testbed.dut.empty_connections
        if command is None and self._linux is not None:
            return over_ssh.empty_connections(self._linux, where=self.name)
        assert command is not None
        return empty_by_command(command, where=self.name)

    @property
    def connection_timeout_s(self) -> float | None:
        """Seconds without a frame after which the DUT forgets a connection: as the testbed file says, else as
        it is read there. None if that is not known; HostError if the DUT cannot be reached."""
        return self._read_timeout()

    def _read_timeout(self) -> float | None:
        written = self.testbed.dut.connection_timeout
        if written is None and self._linux is not None:
            return over_ssh.read_timeout(self._linux)
        return written

    @property
    def expected_timeout_s(self) -> float | None:
        """The same for a campaign, before its DUT is set up for any point."""
        written = self.testbed.dut.connection_timeout
        return TIMEOUT_S if written is None and self._linux is not None else written

    @property
    def _linux(self) -> ReachableDut | None:
        """The DUT, if it is a Linux that is reached over SSH."""
        return self.reachable if self.testbed.dut.os == "linux" else None

    def look_inside(self, on_note: OnNote | None) -> AbstractContextManager[Inside | None]:
        """Facts and witness of the DUT; see `inside.look_inside`."""
        return look_inside(self.testbed.dut, name=self.name, config=self.ssh_config, on_note=on_note)

    def lasting_facts(self) -> dict[str, Any] | None:
        """See `inside.lasting_facts`."""
        return lasting_facts(self.testbed.dut, name=self.name, config=self.ssh_config)

    # Facts.

    def stated_facts(self, inside: Inside | None) -> dict[str, str | None] | None:
        """What the testbed file states of the DUT, then what the look into it found, and None for the rest;
        None for a DUT of our own."""
        stated: dict[str, str | None] = self.testbed.dut.facts.model_dump()
        return stated if inside is None else with_facts(stated, inside.facts)

    def own_facts(self) -> dict[str, Any] | None:
        """What a DUT of our own reports of itself, recorded with each search; None for any other."""
        return None

    def describe_dut(
        self, tester: Mapping[str, str | None], inside: Mapping[str, Any] | None
    ) -> dict[str, str | None]:
        """What a reader must know of the DUT, by the keys of `[dut.facts]` (SEED-84).

        Args:
            tester: The same of this machine.
            inside: What was read on the DUT; None if it cannot be looked into.
        """
        written: dict[str, str | None] = self.testbed.dut.facts.model_dump()
        if inside is None:
            return written
        hashes = {} if written["flow_hash"] else {"flow_hash": HASH_OF_POINTS}
        return {**with_facts(written, inside), **hashes}

    def to_document(self) -> dict[str, Any]:
        """For the run file."""
        testbed = self.testbed.model_dump(mode="json")
        return {"name": self.name, "testbed": testbed, "dut": self.own_facts()}

    def to_campaign_document(self, own_dut: Any, configured: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of the testbed must be the same when a campaign goes on: `testbed` and `own_dut`.

        Args:
            own_dut: `own_facts`, without what a plan sets.
            configured: The table `[reference]`, for a DUT that is set by it.
        """
        testbed = self.testbed.model_dump(mode="json")
        testbed["dut"].pop("threads", None)
        return {"own_dut": own_dut, "testbed": testbed}


def put_back(dut: ReachableDut, *, run: str, on_change: OnDutChange, on_note: OnNote) -> None:
    """See `over_ssh.put_back`."""
    over_ssh.put_back(dut, run=run, on_change=on_change, on_note=on_note)
