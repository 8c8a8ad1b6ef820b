# SPDX-License-Identifier: Apache-2.0
"""Campaign: a lab as its testbed: set up for each suite, brought up where it is down, and given back as it
was found, whatever happens.

A guardian process waits beside the run. If the run is killed, and so cannot give its lab back, the guardian
does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from evenhand.base.errors import EvenhandError
from evenhand.base.locks import InUseError
from evenhand.campaign.events import OnCampaignEvent
from evenhand.plan import largest_octets
from evenhand.procedure import LAB_PREFIX, Note
from evenhand.rig.lab.borrow import BorrowedLab, LabWish, borrowed, kind_of
from evenhand.rig.lab.build import USUAL_MAX_FRAME_SIZE
from evenhand.series.campaign import Point
from evenhand.spec.frames import read_size
from evenhand.spec.plan import build_plan

GIVEN_BACK_WITHIN_S = 180.0
"""After a run that was killed: its guardian may have to boot a machine."""
LOOK_AGAIN_S = 0.2
GUARDIAN_ENDS_S = 10.0
GIVEN_BACK = b"given back"
_GUARD = f"""
import sys
if sys.stdin.buffer.read() != {GIVEN_BACK!r}:
    from evenhand.campaign.lab_guardian import take_over
    take_over(*sys.argv[1:])
"""
"""The guardian imports nothing as long as the run goes on: it is a sleeping process, and nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabOfRun:
    """The lab of this run, which it has borrowed."""

    lab: BorrowedLab
    on_event: OnCampaignEvent

    def set_up_for(self, wish: LabWish) -> str | None:
        """Why it cannot be set up for this; None if it is.

        Raises:
            InUseError: A tester, or somebody who sets it up, has it now.
        """
        try:
            self.lab.set_up_for(wish, tell=self._tell)
        except InUseError:
            raise
        except EvenhandError as error:
            return f"the lab {self.lab.name} cannot be set up for it: {error.what} ({error.where})"
        return None

    def _tell(self, text: str) -> None:
        self.on_event(Note(text=f"{text[0].upper()}{text[1:]}."))


def lab_name_of(testbed: str) -> str | None:
    """`linux` of `lab:linux`; None for a testbed that is no lab."""
    return testbed.removeprefix(LAB_PREFIX) if testbed.startswith(LAB_PREFIX) else None


def wish_of(points: Iterable[Point], of_all: Iterable[Point] = ()) -> LabWish:
    """What a lab must be set up for to measure all these points, which have one plan.

    Args:
        of_all: All points of the campaign: the links take the frames of each, so that all are measured on the
            same links.
    """
    known = list(points)
    hosts, networks = (
        (max(getattr(point, part)[0] for point in known), max(getattr(point, part)[1] for point in known))
        for part in ("hosts", "networks")
    )
    first = known[0]
    # Of a mix of both IP versions the first plan: only a machine takes part in it, and the rest is set up
    # over SSH.
    name = first.plan.partition("+")[0]
    plan = build_plan(
        name, None, None, {key: value for key, value in first.plan_options.items() if key != "mix"}
    )
    largest = max(largest_octets(read_size(point.frame_size)) for point in (*known, *of_all))
    return LabWish(
        plan=plan.title,
        hosts=hosts,
        networks=networks if plan.left.hosts.networks is not None else None,
        largest_frame_size=max(largest, USUAL_MAX_FRAME_SIZE),
    )


@contextmanager
def lab_of_run(
    testbed: str, *, run: str, on_event: OnCampaignEvent, say: Callable[[str], None] = lambda text: None
) -> Iterator[LabOfRun | None]:
    """The lab that the testbed is, to be set up at will, given back when the block ends. None for another
    testbed.

    Args:
        run: Which run this is, for the set-up of a virtual machine over SSH (see `dut_setup.name_of_run`).
        say: Gets a line if a lab is waited for.

    Raises:
        InUseError: Another run has it.
        HostError: Not root, or nothing can be written.
    """
    name = lab_name_of(testbed)
    if name is None or kind_of(name) is None:
        yield None
        return
    with ExitStack() as stack:
        lab, descriptors = _borrow(stack, name, say)
        guardian = _start_guardian(name, run, descriptors)
        stack.callback(_dismiss, guardian)
        try:
            yield LabOfRun(lab=lab, on_event=on_event)
        finally:
            lab.give_back()
            assert guardian.stdin is not None
            guardian.stdin.write(GIVEN_BACK)


def _borrow(stack: ExitStack, name: str, say: Callable[[str], None]) -> tuple[BorrowedLab, tuple[int, ...]]:
    """The lab of a run that was killed a moment ago is about to be given back."""
    give_up, has_said = time.monotonic() + GIVEN_BACK_WITHIN_S, False
    while True:
        try:
            return stack.enter_context(borrowed(name))
        except InUseError as error:
            if not error.is_ending or time.monotonic() > give_up:
                raise
            if not has_said:
                say(f"Waiting for the lab {name}: a run that was killed is giving it back.")
                has_said = True
            time.sleep(LOOK_AGAIN_S)


def _start_guardian(name: str, run: str, descriptors: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """In a session of its own: no Ctrl-C of the terminal ends it. It holds the lock as long as it lives."""
    modules = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", _GUARD, name, run],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        start_new_session=True,
        cwd="/",
        env={**os.environ, **modules},
    )


def _dismiss(guardian: subprocess.Popen[bytes]) -> None:
    """What it has not heard of as given back, it gives back now."""
    assert guardian.stdin is not None
    guardian.stdin.close()
    with suppress(subprocess.TimeoutExpired):  # it is at work; whoever comes next waits for it
        guardian.wait(GUARDIAN_ENDS_S)
