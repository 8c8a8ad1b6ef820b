# SPDX-License-Identifier: Apache-2.0
"""What a reader of a result is told of the frames is of what is on the lines: also the tunnel of a side, and
one port for both."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, gateway_v4, gateway_v6, theoretical_fps
from evenhand.procedure import Profile
from evenhand.rig import make_testbed

G = 1e9
VXLAN = {
    4: {"kind": "vxlan", "local": "192.0.2.2", "remote": "192.0.2.1", "vni": 100},
    6: {"kind": "vxlan", "local": "2001:db8::2", "remote": "2001:db8::1", "vni": 100},
}


@pytest.mark.parametrize("one_armed", [False, True])
@pytest.mark.parametrize(("plan", "octets"), [(gateway_v4(), 50), (gateway_v6(), 70)])
def test_the_frames_of_a_profile_are_those_of_its_testbed(
    plan: AddressPlan, octets: int, one_armed: bool
) -> None:
    """R2544-16: the share of the line rate is of the frames on the line, in the tunnel of a side."""
    port: dict[str, Any] = {"device": "0000:01:00.0", "line_rate": "1Gbps"}
    testbed = make_testbed(
        {
            "isolated_test_environment": True,
            "one_armed": one_armed,
            "left": {**port, "tunnel": VXLAN[plan.ip_version]},
            "right": port if one_armed else {**port, "device": "0000:01:00.1"},
            "tester": {"cpus": [1]},
        },
        where="bed",
    )
    streams = testbed.streams(plan, 128)
    most_fps = theoretical_fps(streams, testbed.line_rates)
    profile = Profile(
        plan=plan,
        frame_size=128,
        seed=1,
        directions=BOTH_DIRECTIONS,
        line_rate_bps=G,
        line_rates_bps=testbed.line_rates,
        theoretical_fps=most_fps,
        tunnels=testbed.tunnels,
        one_armed=one_armed,
    )
    assert profile.streams == streams
    assert most_fps == int(G / 8 / (128 + 20 + octets + (128 + 20 if one_armed else 0)))
    assert profile.line_share("forward", most_fps) == "100 % of the line rate"
    assert f"does not include its {octets} octets." in " ".join(profile.sent_lines)
