# SPDX-License-Identifier: Apache-2.0
"""Station 10: which hosts the DUT reaches, for people."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.base.units import format_count, format_ratio
from evenhand.plan import SideName
from evenhand.trial import LearningResult, name_first


def learning_status(
    reachable: Mapping[SideName, int], host_counts: Mapping[SideName, int], attempt: int = 1
) -> str:
    """One line: `learning: 1,200 of 65,533 reachable on the left, 0 of 65,533 on the right`."""
    sides = [f"{format_count(reachable[name])} of {format_count(host_counts[name])}" for name in host_counts]
    if len(set(sides)) == 1:
        shown = f"{sides[0]} reachable" + (" on each side" if len(sides) > 1 else "")
    else:
        parts = [
            f"{text}{' reachable' if n == 0 else ''} on the {name}"
            for n, (name, text) in enumerate(zip(host_counts, sides, strict=True))
        ]
        shown = ", ".join(parts)
    return f"learning: {shown}" + (f", round {attempt}" if attempt > 1 else "")


def learning_lines(result: LearningResult) -> list[str]:
    """What came out, and who stayed unreachable: the first few of each side."""
    sides = result.sides
    lines = [
        learning_status(
            {name: s.reachable for name, s in sides.items()},
            {name: s.host_count for name, s in sides.items()},
        )
    ]
    if result.rate_share < 1:
        lines.append(
            "answers were lost, perhaps because the DUT was asked too fast: after each"
            f" such round the rate was halved, to {format_ratio(result.rate_share)} of the"
            " first rate"
        )
    for name, side in sides.items():
        if side.unreachable:
            lines.append(f"unreachable on the {name}: {name_first(side.unreachable, side.unreachable_hosts)}")
    return lines
