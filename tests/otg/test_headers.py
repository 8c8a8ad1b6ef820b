# SPDX-License-Identifier: Apache-2.0
"""Headers behind IP: what of TCP's and ICMP's is sent, and what is refused by its key."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.otg.headers import read_header
from evenhand.otg.refusals import OtgError
from evenhand.otg.traffic import traffic_of
from evenhand.plan import FieldPattern, Flow
from tests.otg.configs import config, document


def flow_with(header: dict[str, Any], version: int = 4, size: int = 128) -> Flow:
    def change(found: dict[str, Any]) -> None:
        found["flows"][0]["packet"][2] = {"choice": next(iter(header)), **header}
        found["flows"][0]["size"] = {"choice": "fixed", "fixed": size}

    (flow,) = traffic_of(document(config(version, names=("only",), hosts=1), change)).plan.flows
    return flow


def test_a_header_of_tcp_has_the_values_of_its_fields() -> None:
    """RFC 9293, 3.1: five words, the flags in the lowest nine bits of the fourth."""
    fields = {
        name: {"choice": "value", "value": value}
        for name, value in {"seq_num": 7, "ack_num": 9, "ctl_syn": 1, "ctl_ack": 1, "ecn_ns": 1}.items()
    }
    ports = {"src_port": {"value": 5000}, "dst_port": {"value": 80}, "window": {"value": 1024}}
    flow = flow_with({"tcp": {**ports, **fields}})
    assert flow.transport is not None
    assert flow.transport.header.hex() == "0000000000000007000000095112040000000000"
    assert flow.transport.words in flow.words
    assert (flow.source_port, flow.destination_port) == (None, None)  # those of the plan


@pytest.mark.parametrize(("version", "kind", "first"), [(4, "icmp", 8), (6, "icmpv6", 128)])
def test_numbers_of_an_echo_are_those_of_the_flow(version: int, kind: str, first: int) -> None:
    number = {"choice": "increment", "increment": {"start": 0, "step": 1, "count": 9}}
    flow = flow_with({kind: {"choice": "echo", "echo": {"sequence_number": number}}}, version)
    assert flow.transport is not None
    assert flow.transport.header == bytes([first, *bytes(7)])
    assert flow.source_port == 0
    assert flow.destination_port == FieldPattern(first=0, count=9, mode="increment")
    assert flow.to_document()["source_port"] == 0


def test_a_frame_of_tcp_has_room_for_its_header() -> None:
    tcp = {"tcp": {"src_port": {"value": 5000}, "dst_port": {"value": 80}}}
    assert flow_with(tcp, size=76).transport is not None
    with pytest.raises(OtgError, match="these headers have 76 at least"):
        flow_with(tcp, size=75)
    with pytest.raises(OtgError, match="these headers have 96 at least"):
        flow_with(tcp, 6, size=95)


@pytest.mark.parametrize(
    ("kind", "fields", "version", "key"),
    [
        ("tcp", {"data_offset": {"value": 6}}, 4, "at.data_offset"),
        ("tcp", {"window": {"choice": "values", "values": [1, 2]}}, 4, "at.window"),
        ("tcp", {"checksum": {"choice": "custom", "custom": 1}}, 4, "at.checksum"),
        ("icmp", {"echo": {"type": {"value": 3}}}, 4, "at.echo.type"),
        ("icmp", {"echo": {"code": {"value": 1}}}, 4, "at.echo.code"),
        ("icmp", {}, 6, "at"),
        ("icmpv6", {}, 4, "at"),
        ("icmpv6", {"echo": {"type": {"value": 135}}}, 6, "at.echo.type"),
    ],
)
def test_what_a_header_cannot_have_is_refused_by_its_key(
    kind: str, fields: dict[str, Any], version: Any, key: str
) -> None:
    errors: list[str] = []
    read_header(kind, fields, "at", version, errors)
    assert any(error.startswith(f"{key}:") for error in errors), errors
