# SPDX-License-Identifier: Apache-2.0
"""What all demos are made of. They measure the points of a preset, which a user can measure as a campaign,
and change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from evenhand.cli.common import err
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.run_options import open_run
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Traffic
from evenhand.rig import read_host_facts, read_versions
from evenhand.run import RunStore
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand


def read_demo(preset: str, changed: Mapping[str, str] | None = None) -> CampaignPlan:
    """The preset as a campaign.

    Args:
        changed: Keys of all suites that this demo has otherwise than the preset.
    """
    every = {"every-suite": dict(changed)} if changed else {}
    return expand(make_campaign({"preset": preset, **every}, where="demo"))


def addresses_in_words(plan: AddressPlan) -> str:
    """`one address pair`, or how many there are of each side."""
    if plan.pairs == 1:
        return "one address pair"
    return Traffic(plan=plan, directions=BOTH_DIRECTIONS).address_words


@contextmanager
def opened_demo(
    run: Path | None, *, host_name: bool, greeting: str
) -> Iterator[tuple[RunStore | None, ProgressDisplay]]:
    """The run's file, if the demo is stored, and the progress on stderr, which begins with the greeting."""
    with ExitStack() as stack:
        store = None if run is None else stack.enter_context(open_run(run, host_name=host_name))
        progress = stack.enter_context(ProgressDisplay(err()))
        progress.remedy = None
        progress.say(greeting, style="bold")
        yield store, progress


def demo_document(dut: Mapping[str, Any], run: Path | None, *, host_name: bool) -> dict[str, Any]:
    """The beginning of the document for programs."""
    return {
        "command": "demo",
        "dut": dict(dut),
        "host": read_host_facts(host_name=host_name),
        "versions": read_versions(),
        "run": None if run is None else str(run),
    }
