# SPDX-License-Identifier: Apache-2.0
"""What a DUT says of frames that it does not forward, by ICMP, is counted and is part of the reason."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from tests.wire.lying_dut import Sent, is_test_frame, lying_dut, sequence_of
from tests.wire.wire_session import FAST_WAITS, Document, engine, open_ports, run_trial, until

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.two_cpus,  # a DUT in Python starves beside a tester that never sleeps
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
OWN_MACS = ("02:00:00:00:a0:01", "02:00:00:00:a0:02")
DUT_MAC = "02:00:00:00:d0:01"
MTU = 1280
FIRST = 7
"""The first frame that the DUT calls too big; then each tenth. About number 3 it says
that there is no route, and quotes only as much as RFC 792 demands. About number 4 it quotes what nobody has
sent."""


TOO_BIG = 4
"""So many of 40 frames."""


def said_all(document: Document) -> bool:
    """Whether the DUT has seen all frames that it says something about, of a valid trial."""
    errors = document["ports"]["left"].get("icmp_errors", [])
    said = sum(int(error["frames"]) for error in errors)
    return bool(document["verdict"] == "FAIL") and said == TOO_BIG + 1


def error_about(plan: AddressPlan, frame: bytes) -> bytes | None:
    packet, number = frame[14:], sequence_of(plan, frame)
    head: Any = Ether(dst=OWN_MACS[0], src=DUT_MAC)
    v4 = plan.ip_version == 4
    too_big: Any
    no_route: Any
    if v4:
        head /= IP(src="198.18.0.1", dst=IP(packet).src)
        too_big, no_route = ICMP(type=3, code=4, nexthopmtu=MTU), ICMP(type=3, code=0)
    else:
        head /= IPv6(src="2001:2::1", dst=IPv6(packet).src)
        too_big, no_route = ICMPv6PacketTooBig(mtu=MTU), ICMPv6DestUnreach(code=0)
    enough = (20 if v4 else 40) + 8
    if number == 3:
        return bytes(head / no_route / Raw(packet[:enough]))
    if number == 4:
        at = 12 if v4 else 8
        stranger = b"\xc0\x00\x02\x01" if v4 else bytes(16)
        return bytes(head / no_route / Raw(packet[:at] + stranger + packet[at + len(stranger) : enough]))
    return bytes(head / too_big / Raw(packet)) if number % 10 == FIRST else None


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: f"v{plan.ip_version}")
def test_an_icmp_error_about_test_frames_is_part_of_the_reason(plan: AddressPlan) -> None:
    """It comes to the sending port, also where nothing is expected there: in a trial of one direction. MTU
    and number of the quoted frame stand in the reason, with what to do. Quotes of other packets are
    foreign."""

    def behave(side: int, frame: bytes) -> Sent:
        answer = error_about(plan, frame) if side == 0 and is_test_frame(plan, frame) else None
        return [] if answer is None else [(0, answer)]

    with lying_dut(behave, f"icmp{plan.ip_version}") as dut, engine(dut.engine_command) as session:
        open_ports(session, plan, dut.left_device, dut.right_device, frame_size=256, own_macs=OWN_MACS)
        numbers = count(1)

        def measured(*directions: str) -> Document:
            trial = next(numbers)
            return run_trial(
                session,
                trial=trial,
                rate_fps=200,
                duration_s=0.2,
                directions=list(directions),
                waits={**FAST_WAITS, "residual_s": 0.5},
            )

        document = until(said_all, lambda: measured("forward"))
        both = until(said_all, lambda: measured("forward", "reverse"))
    assert document["verdict"] == "FAIL"
    version = plan.ip_version
    kinds = {(e["type"], e["code"]): e for e in document["ports"]["left"]["icmp_errors"]}
    assert "icmp_errors" not in document["ports"]["right"]
    too_big, no_route = (
        kinds.pop((3, 4) if version == 4 else (2, 0)),
        kinds.pop((3, 0) if version == 4 else (1, 0)),
    )
    assert not kinds
    assert (too_big["frames"], too_big["mtu"], too_big["first_frame"]) == (TOO_BIG, MTU, FIRST)
    assert (no_route["frames"], no_route["mtu"], no_route["first_frame"]) == (1, None, None)
    texts = [reason["text"] for reason in document["reasons"] if reason["code"] == "icmp_error"]
    assert len(texts) == 2
    about_size = next(text for text in texts if f"MTU {MTU}" in text)
    assert about_size.startswith(f'left: {TOO_BIG} ICMP errors "packet too big')
    assert f"number {FIRST}" in about_size
    assert f"at most {MTU + 18} octets" in about_size
    assert both["ports"]["left"]["icmp_errors"] == document["ports"]["left"]["icmp_errors"], (
        "of this trial alone"
    )
    assert both["directions"]["reverse"]["foreign_frames"] == 1, "the quote of what nobody has sent"
