# SPDX-License-Identifier: Apache-2.0
"""The API without a transport and without a tester: what is answered before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from snappi import otg_pb2 as pb

from evenhand.otg.refusals import OtgError
from evenhand.otg.service import OtgService
from evenhand.otg.traffic import OtgTraffic
from tests.otg.configs import SIZE, config


class Idle:
    """A tester that has sent nothing."""

    failure = None
    results = ()
    is_running = False

    def line_rates_bps(self) -> dict[str, None]:
        return {"left": None, "right": None}

    def open(self, traffic: OtgTraffic) -> None:
        self.opened = traffic


@pytest.fixture
def idle() -> Any:
    return Idle()


@pytest.fixture
def service(idle: Any) -> OtgService:
    return OtgService(idle, plans=(), locations={}, run_name="a.evenhand")


def updated(**properties: Any) -> Any:
    """Both properties of the flow there; those named are to be updated."""
    update = pb.ConfigUpdate(choice="flows")
    update.flows.property_names.extend([pb.FlowsUpdate.PropertyNames.Enum.Value(name) for name in properties])
    flow = update.flows.flows.add(name="there")
    flow.rate.choice, flow.rate.pps = "pps", properties.get("rate", 7)
    flow.size.choice, flow.size.fixed = "fixed", properties.get("size", 7)
    return update


def test_an_update_changes_what_it_names_and_nothing_else(service: OtgService, idle: Any) -> None:
    with pytest.raises(OtgError, match="no configuration is set"):
        service.update_config(updated(rate=500))
    made = json_format.Parse(config(4, names=("there",)).serialize(), pb.Config())
    service.set_config(made)
    service.update_config(updated(rate=500))
    assert [(flow.rate_fps, flow.packets) for flow in idle.opened.flows] == [(500.0, 200)]
    assert idle.opened.frame_size == SIZE
    service.update_config(updated(size=256))
    assert (idle.opened.flows[0].rate_fps, idle.opened.frame_size) == (500.0, 256)
    assert service.get_config().flows[0].size.fixed == 256
    with pytest.raises(OtgError, match="no rate that can be sent"):
        service.update_config(updated(rate=0))
    assert service.get_config().flows[0].rate.pps == 500
    other = updated(rate=1)
    other.flows.flows[0].name = "nobody"
    with pytest.raises(OtgError, match="there is no 'nobody'"):
        service.update_config(other)
    with pytest.raises(OtgError, match="rates and sizes"):
        service.update_config(pb.ConfigUpdate(choice="protocols"))
    idle.is_running = True
    with pytest.raises(OtgError, match="stop them first"):
        service.update_config(updated(rate=1))


@pytest.mark.parametrize("state", ["start", "stop"])
def test_protocols_start_and_stop_with_a_word_on_what_answers(service: OtgService, state: str) -> None:
    """Scripts do both around their flows."""
    asked = pb.ControlState(choice="protocol")
    asked.protocol.choice, asked.protocol.all.state = "all", state
    (said,) = service.set_control_state(asked).warnings
    assert "answers ARP and ND" in said


def test_flows_are_added_and_removed_as_if_they_had_been_set_so(service: OtgService, idle: Any) -> None:
    append, delete = pb.ConfigAppend(), pb.ConfigDelete()
    with pytest.raises(OtgError, match="config_append: no configuration is set"):
        service.append_config(append)
    both = json_format.Parse(config(4).serialize(), pb.Config())
    service.set_config(json_format.Parse(config(4, names=("there",)).serialize(), pb.Config()))
    append.config_append_list.add(choice="flows").flows.extend([both.flows[1]])
    service.append_config(append)
    assert [flow.name for flow in idle.opened.flows] == ["there", "back"]
    with pytest.raises(OtgError, match="'back' is there twice"):
        service.append_config(append)
    delete.config_delete_list.add(choice="flows").flows.extend(["there"])
    service.delete_config(delete)
    assert [flow.name for flow in idle.opened.flows] == ["back"]
    assert [flow.name for flow in service.get_config().flows] == ["back"]
    for names, why in ((["there"], "there is no 'there'"), (["back"], "flows: there are none")):
        delete.config_delete_list[0].flows[:] = names
        with pytest.raises(OtgError, match=why):
            service.delete_config(delete)
    idle.is_running = True
    with pytest.raises(OtgError, match="config_delete: flows are being sent"):
        service.delete_config(delete)


def test_what_cannot_be_controlled_is_refused(service: OtgService) -> None:
    links = pb.ControlState(choice="port")
    links.port.choice, links.port.link.state = "link", "down"
    routes = pb.ControlState(choice="protocol")
    routes.protocol.choice, routes.protocol.route.state = "route", "withdraw"
    for asked, why in (
        (links, "port.link: no configuration is set"),
        (routes, "protocol: there are no protocols"),
        (pb.ControlState(), "choice: traffic, ports and protocols"),
    ):
        with pytest.raises(OtgError, match=why):
            service.set_control_state(asked)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"flows": [{"duration": {"choice": 99}}]}', "flows[0].duration.choice: 99"),
        ('{"captures": [{"format": 99}]}', "captures[0].format: 99"),
        (
            '{"flows": [{"duration": {"fixed_packets": {"packets": 100}}}]}',
            "flows[0].duration.choice: is missing beside fixed_packets",
        ),
        (
            '{"flows": [{"size": {"choice": "fixed", "increment": {}}}]}',
            "flows[0].size.increment: the choice",
        ),
        (
            '{"flows": [{"packet": [{"choice": "udp", "udp": {"src_port": {"choice": "value", "value": 1,'
            ' "metric_tags": [{"name": "a"}]}}}]}]}',
            "flows[0].packet[0].udp.src_port.metric_tags",
        ),
    ],
)
def test_what_the_classes_take_and_the_model_does_not_is_refused(
    service: OtgService, text: str, said: str
) -> None:
    with pytest.raises(OtgError) as caught:
        service.set_config(json_format.Parse(text, pb.Config()))
    assert any(error.startswith(said) for error in caught.value.errors), caught.value.errors
    service.set_config(json_format.Parse(config(4).serialize(), pb.Config()))
