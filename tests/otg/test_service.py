# SPDX-License-Identifier: Apache-2.0
"""The API without a transport and without a tester: what is answered before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from snappi import otg_pb2 as pb

from evenhand.otg.refusals import OtgError
from evenhand.otg.service import OtgService


class Idle:
    """A tester that has sent nothing."""

    failure = None
    results = ()
    is_running = False


@pytest.fixture
def service() -> OtgService:
    idle: Any = Idle()
    return OtgService(idle, plans=(), locations={}, run_name="a.evenhand")


@pytest.mark.parametrize("state", ["start", "stop"])
def test_protocols_start_and_stop_with_a_word_on_what_answers(service: OtgService, state: str) -> None:
    """Scripts do both around their flows."""
    asked = pb.ControlState(choice="protocol")
    asked.protocol.choice, asked.protocol.all.state = "all", state
    (said,) = service.set_control_state(asked).warnings
    assert "answers ARP and ND" in said


def test_links_stay_up_and_nothing_else_is_controlled(service: OtgService) -> None:
    links = pb.ControlState(choice="port")
    links.port.choice, links.port.link.state = "link", "down"
    routes = pb.ControlState(choice="protocol")
    routes.protocol.choice, routes.protocol.route.state = "route", "withdraw"
    for asked, why in (
        (links, "port.link: links stay up"),
        (routes, "protocol: there are no protocols"),
        (pb.ControlState(), "choice: traffic, ports and protocols"),
    ):
        with pytest.raises(OtgError, match=why):
            service.set_control_state(asked)
