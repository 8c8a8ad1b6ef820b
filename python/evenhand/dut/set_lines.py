# SPDX-License-Identifier: Apache-2.0
"""Systems whose configuration is one tree: `set` and `delete` with a path in it."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.dut.script import Check, Part, Step


def set_step(
    part: Part,
    purpose: str,
    statements: Sequence[str],
    *,
    cut: tuple[str, ...] = (),
    verb: str = "set ",
    notes: tuple[str, ...] = (),
    checks: tuple[Check, ...] = (),
) -> Step:
    """Statements to set, each deleted by the same path.

    Args:
        cut: To delete one, it is named up to one of these: else what is before it would remain, empty.
        verb: What the system has before the path; its `delete` has the same behind it.
    """
    named = list(statements)
    for word in cut:
        named = [statement.partition(word)[0] for statement in named]
    return Step(
        part=part,
        purpose=purpose,
        do=tuple(f"{verb}{statement}" for statement in statements),
        undo=tuple(f"{verb.replace('set', 'delete')}{statement}" for statement in reversed(named)),
        notes=notes,
        checks=checks,
    )
