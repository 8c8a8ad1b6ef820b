# SPDX-License-Identifier: Apache-2.0
"""Campaign: the user's own commands before and after a point or a suite."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence

from evenhand.base.shell_command import run_shell_command
from evenhand.base.units import format_duration
from evenhand.run.campaign_record import HookRun
from evenhand.spec.point import Point

MOST_SHOWN = 600
"""Characters of what a failed command printed."""
_ERROR = re.compile(r"(?:\S+: )?(?:error|fatal)\b", re.IGNORECASE)
"""`Error: ...`, as this and other programs begin; `fatal: ...`; `ssh: error ...`."""


def run_hook(command: str, *, when: str, timeout_s: float, environment: Mapping[str, str]) -> HookRun:
    """Run it to its end, with what `environment` adds to this process's own. See `run_shell_command`."""
    ended = run_shell_command(command, timeout_s=timeout_s, environment=environment)
    return HookRun(
        when=when,
        command=command,
        exit_code=ended.exit_code,
        output=ended.output,
        duration_s=ended.duration_s,
    )


def why_failed(hook: HookRun, timeout_s: float) -> str | None:
    """Why it failed, for people; None if it ended with 0."""
    if hook.exit_code == 0:
        return None
    name = hook.when.replace("_", "-")
    if hook.exit_code is None:
        return f"the hook {name} did not end within {format_duration(timeout_s)}, and was stopped"
    ended = (
        f"ended with exit code {hook.exit_code}"
        if hook.exit_code > 0
        else f"was terminated by {signal.Signals(-hook.exit_code).name}"
    )
    said = _what_it_said(hook.output)
    return f"the hook {name} {ended}" + (f": {said}" if said else "")


def _what_it_said(output: str) -> str:
    """Its output from the first line that begins with "Error" on, since the next step follows it; without
    one, the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    begin = next((number for number, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
    text = " ".join(lines[max(begin, 0) :])
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."


def environment_of_suite(points: Sequence[Point]) -> dict[str, str]:
    """What a hook gets to know of a suite: its name, its plan, and the hash type that all its points have;
    empty where they have several, or the file does not say."""
    hash_types = {point.hash_type for point in points}
    return {
        "EVENHAND_SUITE": points[0].suite,
        "EVENHAND_PLAN": points[0].plan,
        "EVENHAND_HASH_TYPE": (hash_types.pop() or "") if len(hash_types) == 1 else "",
    }


def environment_of(point: Point) -> dict[str, str]:
    """What a hook gets to know of its point."""
    return {
        "EVENHAND_SUITE": point.suite,
        "EVENHAND_POINT": point.key,
        "EVENHAND_PROCEDURE": point.procedure,
        "EVENHAND_PLAN": point.plan,
        "EVENHAND_HASH_TYPE": point.hash_type or "",
        "EVENHAND_HOSTS_LEFT": str(point.hosts[0]),
        "EVENHAND_HOSTS_RIGHT": str(point.hosts[1]),
        "EVENHAND_NETWORKS_LEFT": str(point.networks[0]),
        "EVENHAND_NETWORKS_RIGHT": str(point.networks[1]),
        "EVENHAND_FRAME_SIZE": str(point.frame_size),
    }
