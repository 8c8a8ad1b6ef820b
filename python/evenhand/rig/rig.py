# SPDX-License-Identifier: Apache-2.0
"""Rig: a testbed as its user names it, before anything of it is touched.

Each kind of DUT is one subclass, in a file of its own, and one entry of `registry.py`. It knows how the DUT
is opened, what is known of it before, what is refused before a campaign begins, and how a run has the DUT to
itself. An open one is a `Setup`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from evenhand.base.errors import HostError, RequestError
from evenhand.lab.borrow import LabWish
from evenhand.plan import AddressPlan, Direction, FrameSize, SideCounts
from evenhand.reference import ReferenceDut
from evenhand.rig.dut_wish import DutWish, OnNote, ReachableDut
from evenhand.rig.lab_lease import LeasedLab
from evenhand.rig.setup import DEFAULT_PLAN, Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDefaults:
    """What is meant of the address plan where a command line does not say it."""

    plan: str = DEFAULT_PLAN
    hosts: SideCounts | None = None
    """Hosts of this plan, left and right; None: its maximum."""
    networks: SideCounts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RigFacts:
    """What is known of a testbed before it is open."""

    plan: PlanDefaults = PlanDefaults()
    sets_up_its_dut: bool = False
    """Whether a campaign sets up the DUT for each of its points by itself."""
    connection_timeout_s: float | None = None
    """Seconds without a frame after which the DUT of a plan with state forgets a connection; None if that is
    not known before the DUT is there."""


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
    def facts(self, reference: ReferenceDut | None = None) -> RigFacts:
        """What is known of it before its ports are checked. Not an error if there is nothing of this name.

        Args:
            reference: The router that a campaign starts.
        """

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

    def check(
        self,
        demands: Demands = tuple,
        *,
        is_made_later: bool = False,
        is_dry: bool = False,
        is_begun: bool = False,
    ) -> list[str]:
        """What is wrong with the testbed, or with these points on it.

        Args:
            demands: Default: whatever is measured.
            is_made_later: A command of the user's comes before: what only it can bring about is not looked
                at, such as an interface, or a DUT that answers.
            is_dry: Nothing is going to be measured: that this user is not root is then no error but a note.
            is_begun: The run has begun, so that its host is as it must be: only points and testbed are
                compared.

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
        if not (is_made_later or is_begun):
            setup.check_settable(lambda: (demand.wish for demand in demands()))
        return []

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
