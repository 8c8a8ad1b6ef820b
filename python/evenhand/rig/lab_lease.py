# SPDX-License-Identifier: Apache-2.0
"""Rig: a lab that a run has to itself: set up for what is to be measured, brought up where it is down, and
given back as it was found, whatever happens.

A guardian process waits alongside the run. If the run is killed, and so cannot give its lab back, the
guardian does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from evenhand.base.errors import EvenhandError
from evenhand.base.locks import InUseError
from evenhand.lab.borrow import BorrowedLab, LabWish, borrowed
from evenhand.lab.nft import check_nft
from evenhand.rig.dut_wish import OnNote

GIVEN_BACK_WITHIN_S = 180.0
"""Seconds within which a lab is given back after a run that was killed: its guardian may have to boot a
machine."""
LOOK_AGAIN_S = 0.2
GUARDIAN_ENDS_S = 10.0
GIVEN_BACK = b"given back"
_GUARD = f"""
import sys
if sys.stdin.buffer.read() != {GIVEN_BACK!r}:
    from evenhand.rig.lab_guardian import take_over
    take_over(*sys.argv[1:])
"""
"""The guardian imports nothing as long as the run goes on: it is a sleeping process, and nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedLab:
    """The lab of a run, which has borrowed it."""

    lab: BorrowedLab
    on_note: OnNote

    @property
    def takes_rules(self) -> bool:
        """Whether it can have a firewall."""
        return self.lab.takes_rules

    @property
    def users_rules(self) -> int:
        """How many rules its firewall had when it was borrowed; 0: it was down, or had none."""
        return self.lab.users_rules

    @staticmethod
    def check_rules() -> None:
        """HostError if this machine lacks what a firewall needs."""
        check_nft("the firewall")

    def set_up_for(self, wish: LabWish) -> str | None:
        """Why it cannot be set up for this; None if it is.

        Raises:
            InUseError: A tester, or someone who sets it up, has it now.
        """
        try:
            self.lab.set_up_for(wish, say=self._note)
        except InUseError:
            raise
        except EvenhandError as error:
            return f"the lab {self.lab.name} cannot be set up for this campaign: {error.what} ({error.where})"
        return None

    def _note(self, text: str) -> None:
        self.on_note(f"{text[0].upper()}{text[1:]}.")


@contextmanager
def leased_lab(name: str, *, run: str, on_note: OnNote, say: OnNote) -> Iterator[LeasedLab]:
    """The lab of this name, to be set up at will, given back when the block ends. See `Rig.leased`."""
    with ExitStack() as stack:
        lab, descriptors = _borrow(stack, name, say)
        guardian = _start_guardian(name, run, descriptors)
        stack.callback(_dismiss, guardian)
        try:
            yield LeasedLab(lab=lab, on_note=on_note)
        finally:
            lab.give_back()
            assert guardian.stdin is not None
            guardian.stdin.write(GIVEN_BACK)


def _borrow(stack: ExitStack, name: str, say: OnNote) -> tuple[BorrowedLab, tuple[int, ...]]:
    """The lab of a run that was killed a moment ago is about to be given back."""
    give_up, has_said = time.monotonic() + GIVEN_BACK_WITHIN_S, False
    while True:
        try:
            return stack.enter_context(borrowed(name))
        except InUseError as error:
            if not error.is_ending or time.monotonic() > give_up:
                raise
            if not has_said:
                say(f"Waiting for the lab {name}: a run that was killed is restoring it.")
                has_said = True
            time.sleep(LOOK_AGAIN_S)


def _start_guardian(name: str, run: str, descriptors: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """Start the guardian in a session of its own: no Ctrl-C of the terminal ends it. It holds the lock as
    long as it lives."""
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
