# SPDX-License-Identifier: Apache-2.0
"""A campaign on the reference router that takes seconds: throughput with IPv4 and with IPv6."""

from __future__ import annotations


def quick_campaign(name: str, *, elements: int, rate: str, every_suite: str, ipv6: str = "") -> str:
    """The text of its file.

    Args:
        rate: That of each element.
        every_suite: Lines for both suites: hosts, maximum rate, and what else this campaign is about.
        ipv6: Lines for the second suite alone.
    """
    return f"""
name = "{name}"
testbed = "reference"
[reference]
elements = {elements}
rate = "{rate}"
queue-frames = 512
[every-suite]
{every_suite}
repetitions = 2
start = "auto"
precision = "20%"
duration = "200ms"
final-duration = "300ms"
loss-verification = 1
invalid-retries = 4
patience = 20
waits = "short"
wait-after-routing = "0s"
wait-after-learning = "20ms"
wait-residual = "100ms"
wait-restabilize = "20ms"
[[suite]]
name = "IPv4"
[[suite]]
name = "IPv6"
plan = "gateway-v6"
{ipv6}
"""
