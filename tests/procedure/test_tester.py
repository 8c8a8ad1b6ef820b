# SPDX-License-Identifier: Apache-2.0
"""Procedures measure with any tester that has the members of `TesterSession`: whether its ports can be opened
again is asked of it, and not which class it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evenhand import trial
from evenhand.plan import make_plan
from evenhand.procedure import Note
from evenhand.procedure.tester import REOPENED, EnginesOf, open_tester
from evenhand.rig import Setup, make_testbed

SETUP = Setup(
    name="bed",
    testbed=make_testbed(
        {
            "isolated_test_environment": True,
            "left": {"device": "net_ring0"},
            "right": {"device": "net_ring1"},
            "tester": {"cpus": [0]},
        },
        where="bed",
    ),
)
MACS = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}


@dataclass(slots=True, kw_only=True)
class OtherTester:
    """Neither an engine nor several."""

    can_reopen: bool
    is_alone = True
    done: list[str] = field(default_factory=list)

    @property
    def about(self) -> dict[str, Any]:
        return {}

    def open(self, requests: Sequence[dict[str, Any]], **arguments: Any) -> dict[str, Any]:
        (request,) = requests
        assert request["ports"]["left"]["device"] == "net_ring0"
        assert arguments == {"host_macs": "port"}
        self.done.append("open")
        return {side: {"mac": mac, "line_rate_bps": 1e9} for side, mac in MACS.items()}

    def restart(self) -> None:
        self.done.append("restart")

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.done.append(name)
        return {side: {"dut_mac": mac} for side, mac in MACS.items()}


class StartsAnother(EnginesOf):
    def __init__(self, session: trial.TesterSession) -> None:
        super().__init__(SETUP, Path(sys.executable))
        self._session = session

    def start(self, stack: ExitStack, locked: Sequence[int]) -> trial.TesterSession:
        return self._session


@pytest.mark.parametrize("can_reopen", [True, False])
def test_ports_are_opened_again_by_any_tester_that_can(can_reopen: bool) -> None:
    session = OtherTester(can_reopen=can_reopen)
    notes: list[object] = []
    tester = open_tester(
        SETUP,
        make_plan("gateway_v4"),
        frame_size=64,
        seed=1,
        directions=("forward", "reverse"),
        engine=StartsAnother(session),
        on_event=notes.append,
    )
    with tester as opened:
        assert session.done == ["open", "resolve"]
        assert opened.measurer(notes.append).reopen is opened.reopen
        assert (opened.reopen is not None) == can_reopen
        if opened.reopen is not None:
            opened.reopen()
            assert session.done == ["open", "resolve", "restart", "open", "resolve"]
            assert notes == [Note(text=REOPENED)]
