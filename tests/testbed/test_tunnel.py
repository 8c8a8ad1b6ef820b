# SPDX-License-Identifier: Apache-2.0
"""Testbed file: the tunnel of a side, what it makes of sizes and rates, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import SideName, make_plan, theoretical_fps
from evenhand.testbed import Testbed, make_testbed
from tests.errors import raises

SCHEMA = Path(__file__).resolve().parents[2] / "contract" / "request.schema.json"
Document = dict[str, Any]
VXLAN: Document = {"kind": "vxlan", "local": "192.0.2.2", "remote": "192.0.2.1", "vni": 100}
GRE: Document = {"kind": "gre", "local": "2001:db8::2", "remote": "2001:db8::1"}


def with_tunnels(**tunnels: Document) -> Testbed:
    """A testbed with tunnels on these sides, whose left line is the slower one."""
    document: Document = {"isolated_test_environment": True, "tester": {"cpus": [1]}}
    for number, (side, rate) in enumerate({"left": "1Gbps", "right": "10Gbps"}.items()):
        device = f"net_memif{number},role=client,id={number},socket=/run/x{number}.sock"
        document[side] = {"device": device, "line_rate": rate}
        if side in tunnels:
            document[side]["tunnel"] = tunnels[side]
    return make_testbed(document, where="bed.toml")


@pytest.mark.parametrize(
    ("tunnel", "octets"),
    [
        (VXLAN, 50),
        ({**VXLAN, "local": "2001:db8::2", "remote": "2001:db8::1"}, 70),
        ({"kind": "mpls", "labels": 100}, 4),
        ({"kind": "mpls", "labels": [100, 16], "arriving_labels": [17, 1_048_575]}, 8),
        (GRE, 44),
        ({**GRE, "kind": "ip", "local": "192.0.2.2", "remote": "192.0.2.1"}, 20),
    ],
    ids=("vxlan", "vxlan-v6", "label", "labels", "gre-v6", "ip"),
)
def test_a_tunnel_makes_frames_longer_on_its_link_alone(tunnel: Document, octets: int) -> None:
    """RFC 7348, 3032, 2784, 2003: a frame size is that of the frame inside; the line rate, and what a DUT
    must accept, are those of the longer one."""
    testbed = with_tunnels(left=tunnel)
    plan = make_plan("gateway_v4")
    streams = testbed.streams(plan, 64)
    assert [(stream.sent.octets, stream.arrives.octets) for stream in streams] == [
        ((64 + octets,), (64,)),
        ((64,), (64 + octets,)),
    ]
    assert not any(stream.is_translated for stream in streams)
    assert theoretical_fps(streams, testbed.line_rates) == int(1e9 / (8 * (64 + octets + 20)))
    request = testbed.open_request(plan, frame_size=64, seed=1)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        {"id": 1, "request": "open", **request}
    )
    assert request["frame_size"] == 64
    assert request["ports"]["left"]["tunnel"]["kind"] == tunnel["kind"]
    assert "tunnel" not in request["ports"]["right"]


@pytest.mark.parametrize(
    ("tunnel", "code", "place"),
    [
        ({**VXLAN, "vni": 1 << 24}, "base.out-of-range", "left.tunnel.vni"),
        ({**VXLAN, "vni": -1}, "base.out-of-range", "left.tunnel.vni"),
        ({**VXLAN, "udp_port": 65_536}, "base.out-of-range", "left.tunnel.udp_port"),
        ({**VXLAN, "local": "192.0.2"}, "rig.not-an-address", "left.tunnel.local"),
        ({**VXLAN, "remote": "239.0.0.1"}, "rig.not-an-address", "left.tunnel.remote"),
        ({**VXLAN, "remote": "127.0.0.1"}, "rig.not-an-address", "left.tunnel.remote"),
        ({**GRE, "local": "::1"}, "rig.not-an-address", "left.tunnel.local"),
        ({**GRE, "local": "::"}, "rig.not-an-address", "left.tunnel.local"),
        ({**VXLAN, "local": "0.0.0.0"}, "rig.not-an-address", "left.tunnel.local"),
        ({**VXLAN, "remote": "2001:db8::1"}, "rig.unfit-tunnel", "left.tunnel"),
        ({**VXLAN, "remote": "192.0.2.2"}, "rig.unfit-tunnel", "left.tunnel"),
        ({**GRE, "vni": 100}, "rig.unfit-tunnel", "left.tunnel"),
        ({"kind": "gre", "local": "192.0.2.2"}, "rig.unfit-tunnel", "left.tunnel"),
        ({"kind": "mpls", "labels": 3}, "base.out-of-range", "left.tunnel.labels.0"),
        ({"kind": "mpls", "labels": 1 << 20}, "base.out-of-range", "left.tunnel.labels.0"),
        ({"kind": "mpls", "labels": [16] * 9}, "base.too-long", "left.tunnel.labels"),
        ({"kind": "mpls", "labels": [16], "arriving_labels": [16, 17]}, "rig.unfit-tunnel", "left.tunnel"),
        ({"kind": "l2tp"}, "base.not-one-of", "left.tunnel.kind"),
    ],
)
def test_a_tunnel_that_cannot_be_is_refused_by_its_place(tunnel: Document, code: str, place: str) -> None:
    with raises(code) as refused:
        with_tunnels(left=tunnel)
    assert refused.value.where == f"bed.toml: {place}"


@pytest.mark.parametrize("receiving_bps", [1e9, 1.2e9])
def test_a_line_that_is_no_slower_limits_what_arrives_in_a_tunnel_of_an_overload(
    receiving_bps: float,
) -> None:
    """Frames that are longer there need more of it than of the sending line: no overload on purpose."""
    streams = with_tunnels(right=VXLAN).streams(make_plan("gateway_v4"), 64, ["forward"])
    rates: dict[SideName, float | None] = {"left": 1e9, "right": receiving_bps}
    for may_overload in (False, True):
        found = theoretical_fps(streams, rates, may_overload=may_overload)
        assert found == int(receiving_bps / (8 * (64 + 50 + 20)))
    slower = theoretical_fps(streams, {**rates, "right": 0.9e9}, may_overload=True)
    assert slower == int(1e9 / (8 * (64 + 20)))


def test_engines_whose_frames_would_differ_in_size_by_their_tunnels_are_refused() -> None:
    def engine(number: int, tunnel: Document) -> Document:
        ports: dict[str, Document] = {
            side: {"device": f"net_memif{at},role=client,id={at},socket=/run/x{number}.sock"}
            for at, side in enumerate(("left", "right"))
        }
        ports["left"] |= {"tunnel": tunnel}
        return {"name": f"e{number}", "ssh": f"host{number}", "cpus": [1], **ports}

    def make(*tunnels: Document) -> Testbed:
        engines = [engine(number, tunnel) for number, tunnel in enumerate(tunnels)]
        return make_testbed({"isolated_test_environment": True, "engine": engines}, where="bed.toml")

    assert len(make(VXLAN, {**VXLAN, "vni": 7}).engine) == 2
    with raises("rig.engines-differ", match="e1 has other tunnels than engine e0"):
        make(VXLAN, GRE)


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        (VXLAN, "VXLAN 100 between 192.0.2.2 and 192.0.2.1"),
        (GRE, "GRE between 2001:db8::2 and 2001:db8::1"),
        ({"kind": "mpls", "labels": [100, 200]}, "MPLS label 100 outside 200"),
        ({"kind": "mpls", "labels": [100], "arriving_labels": [300]}, "MPLS label 100, arriving label 300"),
    ],
    ids=("vxlan", "gre", "labels", "arriving"),
)
def test_a_tunnel_in_words_says_what_arrives_where_it_is_another(tunnel: Document, words: str) -> None:
    assert with_tunnels(left=tunnel).tunnels["left"].words == words


def on_a_stick(left: Document, right: Document) -> Testbed:
    """Both sides on one port; `vlan` and `tunnel` of each."""
    device = "net_memif0,role=client,id=0,socket=/run/x.sock"
    document: Document = {
        "isolated_test_environment": True,
        "one_armed": True,
        "left": {"device": device, **left},
        "right": {"device": device, **right},
        "tester": {"cpus": [1]},
    }
    return make_testbed(document, where="bed.toml")


LABELS: Document = {"kind": "mpls", "labels": [100, 200], "arriving_labels": [300, 400]}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"vlan": 10, "tunnel": VXLAN}, {"vlan": 20, "tunnel": VXLAN}),
        ({"tunnel": VXLAN}, {"tunnel": {**VXLAN, "vni": 101}}),
        ({"tunnel": VXLAN}, {"tunnel": {**VXLAN, "udp_port": 8472}}),
        ({"tunnel": GRE}, {"tunnel": {**GRE, "kind": "ip"}}),
        ({"tunnel": GRE}, {"tunnel": {**GRE, "remote": "2001:db8::3"}}),
        ({"tunnel": LABELS}, {"tunnel": {**LABELS, "arriving_labels": [300, 401]}}),
        ({"tunnel": LABELS}, {}),
        ({}, {"tunnel": GRE}),
    ],
    ids=("vlans", "vni", "udp-port", "kind", "remote", "labels", "left-only", "right-only"),
)
def test_a_router_on_a_stick_can_be_the_end_of_tunnels(left: Document, right: Document) -> None:
    """Each side is known by what its frames arrive in."""
    testbed = on_a_stick(left, right)
    assert set(testbed.tunnels) == {side for side, of in (("left", left), ("right", right)) if "tunnel" in of}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (VXLAN, {**VXLAN, "udp_port": 4789}),
        (VXLAN, {**VXLAN, "dut_mac": "02:00:00:00:00:02"}),
        (GRE, {**GRE, "local": "2001:db8:0::2"}),
        (LABELS, {"kind": "mpls", "labels": [300, 400]}),
    ],
    ids=("udp-port", "mac", "written-otherwise", "labels"),
)
@pytest.mark.parametrize("vlan", [{}, {"vlan": 10}], ids=("untagged", "tagged"))
def test_one_tunnel_for_both_sides_of_a_stick_is_refused(
    left: Document, right: Document, vlan: Document
) -> None:
    """What arrives could be of either side."""
    with raises("rig.one-armed", match="in one tunnel"):
        on_a_stick({"tunnel": left, **vlan}, {"tunnel": right, **vlan})
