# SPDX-License-Identifier: Apache-2.0
"""What is kept of a lab, and who may change it."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from evenhand.base import locks
from evenhand.lab import state
from evenhand.lab.state import lab_of
from evenhand.lab.vm import VmLab
from evenhand.lab.vm_image import _alone
from tests.errors import raises


def test_a_lab_of_another_version_is_an_error_that_says_what_to_do() -> None:
    """Its record has what this version does not know, or lacks what it needs."""
    for document in ({"plan": "gateway-v4", "is_odd": True}, {"plan": "gateway-v4"}):
        with raises("rig.lab-of-another-version") as error:
            lab_of(VmLab, "vm", document)
        assert "evenhand lab down vm" in str(error.value.next_step)


def put(path: Path, what: str) -> None:
    """Something in the place of a lock."""
    match what:
        case "link":
            path.symlink_to("elsewhere")
        case "folder":
            path.mkdir()
        case "FIFO":
            os.mkfifo(path)


@pytest.mark.parametrize("what", ["link", "folder", "FIFO"])
def test_what_is_in_the_place_of_a_lock_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(state, "STATE_DIRECTORY", tmp_path)
    put(tmp_path / "odd.lock", what)
    with raises("rig.lab-not-lockable", match=f"the lab 'odd' cannot be locked: a {what}"), state.hold("odd"):
        pass
    with (
        raises("rig.image-not-writable", match=f"an image cannot be made: a {what}") as refused,
        _alone(tmp_path / "odd.lock", print),
    ):
        pass
    assert refused.value.where == str(tmp_path / "odd.lock")


def test_who_waits_for_the_image_that_another_makes_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / ".vm.lock"
    with ExitStack() as stack:
        stack.enter_context(locks.lock_file(path))
        timer = threading.Timer(0.2, stack.close)
        timer.start()
        with _alone(path, said.append):
            pass
        timer.join()
    assert said == [f"waiting for process {os.getpid()}, which is making this image"]
