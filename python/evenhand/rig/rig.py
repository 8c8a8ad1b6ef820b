# SPDX-License-Identifier: Apache-2.0
"""Rig: a testbed as its user names it, before anything of it is touched.

Each kind of DUT is one subclass, in a file of its own, and one entry of `registry.py`. It knows how the DUT
is opened, which plan is meant, what is refused before a campaign begins, and how a run has the DUT to itself.
An open one is a `Setup`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evenhand.base.errors import HostError, RequestError
from evenhand.plan import AddressPlan, Direction, FrameSize, SideCounts
from evenhand.rig.dut_wish import DutWish, OnNote, ReachableDut
from evenhand.rig.lab.borrow import LabWish
from evenhand.rig.lab_lease import LeasedLab
from evenhand.rig.reference import ReferenceDut
from evenhand.rig.setup import DEFAULT_PLAN, Setup
from evenhand.rig.testbed import TestbedDut


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDefaults:
    """What is meant of the address plan where a command line does not say it."""

    plan: str = DEFAULT_PLAN
    hosts: SideCounts | None = None
    """Hosts of this plan, left and right; None: its maximum."""
    networks: SideCounts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a point of a campaign asks of its testbed."""

    suite: str
    """Suite of the point, for errors: `suite 'a'`."""
    plan: AddressPlan
    """The addresses that it sends."""
    frame_size: FrameSize
    directions: tuple[Direction, ...]
    wish: DutWish
    """What the DUT is set up for."""
    lab_wish: LabWish
    """The same for a lab, of all points of the suite."""
    without_hash: str
    """What to write where no hash can be set."""


Demands = Callable[[], Iterable[Demand]]
"""They are made when they are looked at."""


@dataclass(frozen=True, slots=True)
class Rig(ABC):
    """What the user names as TESTBED. Nothing is touched before a method is called."""

    is_file: ClassVar[bool] = False
    """Whether the text is a path, to be read from the folder of the file that has it."""
    takes_reference: ClassVar[bool] = False
    """Whether the table `[reference]` of a campaign file sets up its DUT."""

    text: str

    @abstractmethod
    def read(self, plan: AddressPlan | None = None) -> Setup:
        """The set-up as it is now. Its ports are checked; nothing is started.

        Args:
            plan: What the DUT must be set up for; None if that is checked later.

        Raises:
            RequestError, HostError: There is none, or it is not right; or the DUT is set up for another plan.
        """

    @contextmanager
    def open(self, plan: Callable[[], AddressPlan], reference: Callable[[], ReferenceDut]) -> Iterator[Setup]:
        """The same for one point: what is made for each point is made now, and is gone when the block ends.

        Args:
            plan: What the point sends, for a DUT that is made for it.
            reference: The router, likewise.
        """
        yield self.read()

    def read_dut(self) -> tuple[TestbedDut, Path | None]:
        """The DUT, and its `Setup.ssh_config`. Errors as `read`."""
        setup = self.read()
        return setup.testbed.dut, setup.ssh_config

    def plan_defaults(self) -> PlanDefaults:
        """Which plan is meant where none is named, before the ports are checked. Never an error."""
        return PlanDefaults()

    @property
    def sets_up_its_dut(self) -> bool:
        """Whether a campaign sets up the DUT for each of its points by itself; False where that cannot be
        read."""
        return False

    def reachable_dut(self) -> ReachableDut | None:
        """The DUT, if a run is to set it up over SSH; None for a lab that is down. Errors as `read`."""
        return self.read().reachable

    @contextmanager
    def leased(
        self, *, run: str, on_note: OnNote, say: OnNote = lambda text: None
    ) -> Iterator[LeasedLab | None]:
        """What is this run's as a whole, to be set up at will, until the block ends; it is given back as it
        was found. None if there is nothing such.

        Args:
            run: Which run this is, for a set-up over SSH.
            say: Gets a line if something is waited for.

        Raises:
            InUseError: Another run has it.
            HostError: Not root, or nothing can be written.
        """
        yield None

    def connection_timeout_s(self, reference: ReferenceDut | None = None) -> float | None:
        """Seconds without a frame after which the DUT of a plan with state forgets a connection, as far as
        that is known before the DUT is there. Never an error.

        Args:
            reference: The router that a campaign starts.
        """
        try:
            return self.read().expected_timeout_s
        except (RequestError, HostError):
            return None  # reported where the testbed itself is checked

    def check_demands(self, demands: Demands) -> None:
        """RequestError for what the testbed cannot measure, by what is known of it."""
        setup = self.read()
        _check_points(setup, demands())

    def check_campaign(self, demands: Demands, *, is_made_later: bool, is_dry: bool) -> list[str]:
        """What is wrong with the testbed, or with these points on it, before the first is measured.

        Args:
            is_made_later: A command of the user's comes before: what only it can bring about is not looked
                at, such as an interface, or a DUT that answers.
            is_dry: Nothing is going to be measured: that this user is not root is then no error but a note.

        Returns:
            Notes for people.

        Raises:
            RequestError: Points and testbed contradict each other.
            HostError: A program, or a right, is missing; or the DUT that is to be set up over SSH cannot be
                reached.
        """
        try:
            setup = self.read()
        except RequestError:
            if is_made_later and not self._is_there():
                return []
            raise
        except HostError:
            if is_made_later:
                return []
            raise
        _check_points(setup, demands())
        if not is_made_later:
            setup.check_settable(lambda: (demand.wish for demand in demands()))
        return []

    def check_host(self) -> None:
        """What is wrong with it whatever is measured. Errors as `check_campaign`."""
        self.read().check_settable(lambda: iter(()))

    def _is_there(self) -> bool:
        """Whether there is what the text names, right or wrong."""
        return False


def _check_points(setup: Setup, demands: Iterable[Demand]) -> None:
    """RequestError if the DUT is set up for another plan than a point's, or does not take its frames."""
    is_set_up = setup.reachable is not None
    for demand in demands:
        try:
            if not is_set_up:
                setup.check_plan(demand.plan)
            setup.check_frame_sizes(setup.testbed.streams(demand.plan, demand.frame_size, demand.directions))
        except RequestError as error:
            raise RequestError(
                f"{error.what} ({demand.wish.label})",
                code=error.code,
                where=error.where,
                next_step=error.next_step,
            ) from error


def by_suite(demands: Iterable[Demand]) -> Iterator[tuple[str, Sequence[Demand]]]:
    """Those of each suite, in their order."""
    found: dict[str, list[Demand]] = {}
    for demand in demands:
        found.setdefault(demand.suite, []).append(demand)
    yield from found.items()
