# SPDX-License-Identifier: Apache-2.0
"""Whatever plan a campaign sends is read back from its points exactly: a prediction is of that plan, or there
is none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.plans import plan_of, second_of_mix
from evenhand.base.errors import RequestError
from evenhand.plan import RFC4814_SOURCE_PORTS, UdpRange
from evenhand.plan.ranges import MAX_PORT, parse_ports
from evenhand.spec.request import plan_of as sent_plan_of
from tests.run.campaign.campaigns import expanded

NUMBERS = st.integers(1, MAX_PORT)
WRITTEN = st.sampled_from(["{}", "{:#x}", "0x{:X}", "{:05}"])


@st.composite
def ports(draw: st.DrawFn) -> str:
    """Each text that the grammar of UDP port ranges allows."""
    first, last = sorted((draw(NUMBERS), draw(NUMBERS)))
    one, other = draw(WRITTEN).format(first), draw(WRITTEN).format(last)
    return str(
        draw(
            st.sampled_from(
                [
                    "fixed",
                    one,
                    f" {one} ",
                    f"{one}-{other}",
                    f"{one}-{other}:increment",
                    f"{one}-{other}:decrement",
                ]
            )
        )
    )


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "source-ports": ports(),
        "destination-ports": ports(),
        "fixed-source": st.booleans(),
        "common-network": st.booleans(),
        "host-mode": st.sampled_from(["pseudorandom", "increment", "decrement", "fixed"]),
        "network-mode": st.sampled_from(["pseudorandom", "increment"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(plan=st.sampled_from(["gateway-v4", "gateway-v6", "direct-v6", "nets-v4-gateway"]), options=OPTIONS)
def test_every_plan_that_a_campaign_can_send_is_read_back_exactly(plan: str, options: dict[str, Any]) -> None:
    """R4814-01: `source-ports = "0xC020"` was measured, and its page had no prediction."""
    try:
        points = expanded({"plan": plan, "hosts": 4, "maximum-rate": "1kfps", **options}).points
    except RequestError:
        return  # options that exclude each other are refused before anything is sent
    for point in points:
        assert plan_of(point) == sent_plan_of(point)


@settings(max_examples=150, deadline=None)
@given(
    plan=st.sampled_from(["gateway-v4", "gateway-v6", "direct-v6", "nets-v4-gateway", "siit@2001:db8::/40"]),
    options=OPTIONS,
    hosts=st.integers(1, 200),
)
def test_every_plan_that_may_be_the_second_of_a_mix_is_made_from_its_document(
    plan: str, options: dict[str, Any], hosts: int
) -> None:
    """SEED-49: its addresses are shown as they were sent, whatever options it had."""
    try:
        points = expanded({"plan": plan, "hosts": hosts, "maximum-rate": "1kfps", **options}).points
    except RequestError:
        return
    for point in points:
        sent = sent_plan_of(point)
        versions = {"other_plan": {**sent.to_document(), "name": sent.title}, "share": [9, 1]}
        assert second_of_mix(json.loads(json.dumps(versions))) == sent


@pytest.mark.parametrize(
    ("text", "first", "last"), [("0080", 80, 80), ("0xC020", 0xC020, 0xC020), ("007-0x10", 7, 16)]
)
def test_a_port_may_be_hexadecimal_or_have_zeros_before_it(text: str, first: int, last: int) -> None:
    """`0080` ended as a bug of Evenhand."""
    found = parse_ports(text, RFC4814_SOURCE_PORTS, RFC4814_SOURCE_PORTS, where="--source-ports")
    assert found == UdpRange(first=first, last=last, mode="fixed" if first == last else "pseudorandom")


@pytest.mark.parametrize(
    "options",
    [{"source_ports": 7}, {"host_mode": 3}, {"fixed_source": "yes"}, {"unknown": "x"}, {"source_ports": "x"}],
)
def test_options_that_no_campaign_writes_give_no_plan(options: dict[str, Any]) -> None:
    """A run file is untrusted."""
    point = replace(expanded({"hosts": 1, "maximum-rate": "1kfps"}).points[0], plan_options=options)
    assert plan_of(point) is None
