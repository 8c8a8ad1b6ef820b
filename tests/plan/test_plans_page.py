# SPDX-License-Identifier: Apache-2.0
"""docs/reference/plans.md says what the code does."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.plan import TOPOLOGIES, make_plan
from evenhand.plan.validate import MOST_UNSUSPICIOUS_DIRECT_HOSTS
from evenhand.spec.plan import MODES
from tests.docs.documents import read, table_rows
from tests.plan.routed import PREFIXES

PAGE = "docs/reference/plans.md"


def span(several: Sequence[object]) -> str:
    return str(several[0]) if len(several) == 1 else f"{several[0]} .. {several[-1]}"


def test_the_page_lists_every_plan_with_its_addresses() -> None:
    """SEED-05, SEED-10 .. SEED-17, SEED-36, R2544-38."""
    expected_hosts, expected_links = [], []
    for name in TOPOLOGIES:
        plan = make_plan(name)
        side, hosts = plan.left, plan.left.host_range
        shown = name.replace("_", "-")
        counts = (f"{hosts.count:,}", f"{hosts.network_count:,}", f"{hosts.address_count:,}")
        expected_hosts.append(
            [shown, plan.figure, *counts, str(hosts.first_address), str(hosts.last_address)]
        )
        gateway, routes = (
            (str(side.gateway), span(side.routes)) if side.gateway is not None else ("none", "nothing")
        )
        expected_links.append([shown, span(side.dut), gateway, routes, f"{side.dut_neighbors:,}"])
    rows = table_rows(PAGE, "plan")
    assert [row for row in rows if len(row) == 7] == expected_hosts
    assert [row for row in rows if len(row) == 5] == expected_links
    expected_prefixes = []
    for prefix in PREFIXES:
        plan = make_plan(f"siit@{prefix}")
        hosts = plan.left.host_range
        ends = (str(hosts.first_address), str(hosts.last_address))
        expected_prefixes.append([plan.title, *ends, span(plan.left.routes)])
    assert [row for row in rows if len(row) == 4] == expected_prefixes


def test_the_page_lists_every_mode_and_the_limit_of_the_warning() -> None:
    """SEED-06, SEED-40."""
    assert [row[0] for row in table_rows(PAGE, "mode")] == list(MODES)
    assert f"Above {MOST_UNSUSPICIOUS_DIRECT_HOSTS:,} hosts" in " ".join(read(PAGE).split())
