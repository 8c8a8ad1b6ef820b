# SPDX-License-Identifier: Apache-2.0
"""A lab that a campaign has borrowed, or gives back, is not set up or taken down by hand meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from evenhand.base.locks import Resource, holding
from evenhand.lab import borrow
from tests.cli.running import Ended


@pytest.mark.parametrize("verb", ["up", "down"])
@pytest.mark.parametrize("lab", ["linux", "vm"])
def test_a_borrowed_lab_is_refused_with_the_process_that_has_it(
    verb: str, lab: str, evenhand: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test may have borrowed the lab itself.
    monkeypatch.setattr(
        borrow, "borrowing", lambda name: Resource(key=f"{name} {os.getpid()} here", label="the lab")
    )
    with holding([borrow.borrowing(lab)], where="lab", next_step="Wait."):
        refused = evenhand("lab", verb, lab)
    assert refused.code == 3
    assert f"process {os.getpid()}" in refused.err
    assert "its lab is what it was before" in refused.err
