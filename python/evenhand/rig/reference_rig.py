# SPDX-License-Identifier: Apache-2.0
"""Rig: a reference router that is started for each point of a campaign, and what is measured with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from evenhand.base.errors import RequestError
from evenhand.base.programs import ROUTER, find_program
from evenhand.dut.connections import Emptied
from evenhand.plan import SIDES, AddressPlan
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig.dut_wish import ReachableDut
from evenhand.rig.facts import of_this_machine
from evenhand.rig.inside import Inside
from evenhand.rig.rig import Demands, Rig, RigFacts
from evenhand.rig.setup import Setup
from evenhand.rig.testbed_rig import TestbedRig
from evenhand.testbed import make_testbed

REFERENCE = "reference"
"""The testbed that is made for a campaign: a reference router, set by its `[reference]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSetup(Setup):
    """A reference router that runs."""

    has_new_macs: ClassVar[bool] = True

    router: ReferenceRouter

    def _how_to_take_frames_of(self, size: int) -> tuple[str, str]:
        return "frame_size", f"Start it with largest_frame_size {size}."

    def stated_facts(self, inside: Inside | None) -> None:
        return None

    @property
    def reachable(self) -> None:
        """It is set up when it is started."""
        return None

    @property
    def check_dut(self) -> Callable[[], None]:
        return self.router.check_running

    def check_emptied_somehow(self) -> None:
        """It takes the request itself."""

    def empty_connections(self) -> Emptied:
        flushed = self.router.flush()
        return Emptied(seconds=float(flushed["seconds"]), connections=int(flushed["entries"]))

    @property
    def connection_timeout_s(self) -> float | None:
        return self.router.dut.connection_timeout_s

    def own_facts(self) -> dict[str, Any]:
        return self.router.facts()

    def describe_dut(
        self, tester: Mapping[str, str | None], inside: Mapping[str, Any] | None
    ) -> dict[str, str | None]:
        return {**of_this_machine(tester, self.testbed.dut.cpus), **self.router.dut_facts()}

    def to_campaign_document(self, own_dut: Any, configured: Mapping[str, Any] | None) -> dict[str, Any]:
        # Each point has a router of its own: what is set for it is recorded with its searches.
        facts = self.router.facts()
        own_dut = {"kind": facts["kind"], "version": facts["version"], "configured": configured}
        return {"own_dut": own_dut, "testbed": {"tester": self.testbed.model_dump(mode="json")["tester"]}}


def make_reference_setup(router: ReferenceRouter) -> ReferenceSetup:
    """The testbed that a reference router is. Both ends of its memif cables are ours, so it is isolated
    (SEED-80)."""
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "isolated_networks": ["0.0.0.0/0", "::/0"],
        "one_armed": router.dut.one_armed,
        **{side: {"device": router.device(side), "vlan": router.dut.vlans.get(side, ())} for side in SIDES},
        "tester": {"cpus": list(router.tester_cpus)},
        "dut": {
            "cpus": [router.cpu],
            "threads": [router.thread],
            "ring_frames": router.ring_frames,
            "largest_frame_size": router.dut.largest_frame_size,
        },
        "limits": router.dut.justified_limits(),
    }
    return ReferenceSetup(
        name="reference router", testbed=make_testbed(document, where="reference router"), router=router
    )


@dataclass(frozen=True, slots=True)
class ReferenceRig(Rig):
    """A router that only a campaign has started."""

    takes_reference: ClassVar[bool] = True

    @classmethod
    def of(cls, text: str) -> ReferenceRig | None:
        return cls(text) if text == REFERENCE else None

    def read(self, plan: AddressPlan | None = None) -> Setup:
        """What a user has in a file of this name; the router itself there is for the length of a point."""
        if Path(self.text).exists():
            return TestbedRig(self.text).read(plan)
        raise RequestError(
            "this is not a testbed here: only a campaign starts a reference router for itself",
            code="rig.reference-not-here",
            where=self.text,
            next_step="Start one in another terminal with `evenhand router gateway-v4 --testbed"
            " router.toml`, and name router.toml here.",
        )

    def facts(self, reference: ReferenceDut | None = None) -> RigFacts:
        return RigFacts(
            plan=TestbedRig(self.text).facts().plan,
            sets_up_its_dut=True,
            connection_timeout_s=None if reference is None else reference.connection_timeout_s,
        )

    @contextmanager
    def open(self, plan: Callable[[], AddressPlan], reference: Callable[[], ReferenceDut]) -> Iterator[Setup]:
        with reference_router(plan(), reference()) as router:
            yield make_reference_setup(router)

    def reachable_dut(self) -> ReachableDut | None:
        return None

    def check(
        self,
        demands: Demands = tuple,
        *,
        is_made_later: bool = False,
        is_dry: bool = False,
        is_begun: bool = False,
    ) -> list[str]:
        """It can be set to whatever a campaign file may ask for, which is checked when that is read."""
        if not is_begun:
            find_program(ROUTER)
        return []
