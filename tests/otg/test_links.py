# SPDX-License-Identifier: Apache-2.0
"""Links of ports without a port: which are taken down, what scripts are told of them, and what is left once
the tester has ended."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from snappi import otg_pb2 as pb

from evenhand.base.errors import EvenhandError
from evenhand.otg.flow_counts import FlowCounts
from evenhand.otg.links import PortLinks
from evenhand.otg.refusals import OtgError
from evenhand.otg.service import OtgService
from tests.otg.configs import config


class Engine:
    """What of an engine's session is asked for links; as the engine answers."""

    def __init__(self) -> None:
        self.states = {"left": True, "right": True}
        self.fixed: set[str] = set()
        """Sides whose driver cannot take a link down."""
        self.has_ended = False

    def set_link(self, side: str, state: str) -> dict[str, bool]:
        if side in self.fixed or self.has_ended:
            raise EvenhandError(f"the {side} port cannot", code="engine.bad-request")
        self.states[side] = state == "up"
        return dict(self.states)

    def links_up(self) -> dict[str, bool]:
        if self.has_ended:
            raise EvenhandError("the engine has ended", code="trial.engine-ended")
        return dict(self.states)


@pytest.fixture
def engine() -> Any:
    return Engine()


def test_links_that_were_taken_down_are_known_until_they_are_up_again(engine: Any) -> None:
    links = PortLinks(engine)
    links.set(["left", "right"], is_up=False)
    assert engine.states == {"left": False, "right": False}
    assert set(links.taken_down) == {"left", "right"}
    links.set(["left"], is_up=True)
    assert (links.up(), set(links.taken_down)) == ({"left": True, "right": False}, {"right"})
    engine.states["left"] = False  # the cable was pulled
    assert (links.up()["left"], set(links.taken_down)) == (False, {"right"})


def test_a_port_that_cannot_take_its_link_down_is_not_taken_for_down(engine: Any) -> None:
    engine.fixed = {"right"}
    links = PortLinks(engine)
    with pytest.raises(OtgError, match="the right port cannot") as refused:
        links.set(["left", "right"], is_up=False)
    assert refused.value.errors[0].startswith("port.link: ")
    assert set(links.taken_down) == {"left"}


def test_after_the_end_of_the_tester_links_are_as_they_were_last(engine: Any) -> None:
    links = PortLinks(engine)
    links.set(["right"], is_up=False)
    engine.has_ended = True
    assert links.up() == {"left": True, "right": False}
    with pytest.raises(OtgError, match="the tester has ended"):
        links.set(["right"], is_up=True)
    assert PortLinks().up() == {"left": True, "right": True}


class Captures:
    sides: frozenset[str] = frozenset()


class Stopped:
    """A tester that sends nothing, on ports whose links are this engine's."""

    failure = None
    results = ()
    is_running = False

    def __init__(self, engine: Engine) -> None:
        self.captures = Captures()
        self.links = PortLinks(engine)  # type: ignore[arg-type]  # only its links are asked

    def line_rates_bps(self) -> dict[str, None]:
        return {"left": None, "right": None}

    def open(self, traffic: Any) -> None: ...

    def counts(self, direction: Any) -> FlowCounts:
        return FlowCounts()


@pytest.mark.parametrize("version", [4, 6])
def test_a_script_names_the_ports_whose_links_it_means(engine: Any, version: int) -> None:
    """No name means all of them."""
    service = OtgService(Stopped(engine), plans=(), locations={}, run_name="a.evenhand")  # type: ignore[arg-type]
    service.set_config(json_format.Parse(config(version).serialize(), pb.Config()))

    def set_link(state: str, *names: str) -> None:
        asked = pb.ControlState(choice="port")
        asked.port.choice, asked.port.link.state = "link", state
        asked.port.link.port_names.extend(names)
        service.set_control_state(asked)

    def states() -> list[tuple[str, str]]:
        metrics = service.get_metrics(pb.MetricsRequest(choice="port")).port_metrics
        return [(each.name, pb.PortMetric.Link.Enum.Name(each.link)) for each in metrics]

    set_link("down", "p2")
    assert states() == [("p1", "up"), ("p2", "down")]
    set_link("down")
    assert states() == [("p1", "down"), ("p2", "down")]
    set_link("up", "p1")
    assert states() == [("p1", "up"), ("p2", "down")]
    with pytest.raises(OtgError, match="there is no 'p9'"):
        set_link("up", "p9")
    with pytest.raises(OtgError, match=r"port\.link\.state: up or down"):
        set_link("unspecified")
    assert states() == [("p1", "up"), ("p2", "down")]
