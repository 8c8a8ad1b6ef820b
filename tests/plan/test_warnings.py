# SPDX-License-Identifier: Apache-2.0
"""Warnings of plans: who is warned, and who is not."""

from __future__ import annotations

import pytest

from evenhand.plan import TOPOLOGIES, make_plan, plan_warnings

DIRECT = ["direct_v4_net16", "direct_v6"]
GATEWAY = [name for name in TOPOLOGIES if not make_plan(name).is_direct]


@pytest.mark.parametrize("name", DIRECT)
def test_more_than_2048_direct_hosts_a_side_are_warned_of(name: str) -> None:
    """SEED-06, SEED-80: the sentence says how many, why it matters, and that the test must be isolated."""
    assert plan_warnings(make_plan(name, 2048)) == []
    (warning,) = plan_warnings(make_plan(name, (1, 2049)))
    assert "2,049 on the right side" in warning
    assert "left side" not in warning
    assert "isolated" in warning


def test_hosts_of_all_networks_count() -> None:
    """SEED-06: the neighbour table is one for all networks of a side."""
    assert plan_warnings(make_plan("nets_v4_multi_host", 8, networks=256)) == []
    assert (
        "2,304 on the left side and 2,304 on the right side"
        in plan_warnings(make_plan("nets_v4_multi_host", 9, networks=256))[0]
    )


@pytest.mark.parametrize("name", GATEWAY)
def test_gateway_plans_are_never_warned_of(name: str) -> None:
    """SEED-06."""
    assert plan_warnings(make_plan(name)) == []
