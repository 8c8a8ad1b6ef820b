# SPDX-License-Identifier: Apache-2.0
"""`evenhand run --dry-run`: what a campaign would measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from evenhand.base.errors import EvenhandError
from evenhand.cli.common import out, write_json
from evenhand.report.campaign_document import campaign_plan_report
from evenhand.run.campaign.dut_setup import check_fit, sets_up_its_dut
from evenhand.run.campaign.outline import describe
from evenhand.run.campaign.runner import choose_testbed
from evenhand.spec.points import CampaignPlan


def show_outline(
    plan: CampaignPlan,
    *,
    left: dict[str, int] | None,
    testbed: str | None,
    engine: Path | None,
    is_scheduled: bool,
    json_output: bool,
) -> None:
    """What will be measured; then why it cannot be, if that is known already: RequestError or HostError as
    `check_fit`."""
    is_here = not is_scheduled and not plan.on_each_testbed and (testbed or plan.testbed) is not None
    refusal: EvenhandError | None = None
    outline = describe(plan, is_set_up=is_here and sets_up_its_dut(testbed or plan.testbed), left=left)
    if is_here:
        try:
            notes = check_fit(plan, choose_testbed(plan, testbed), engine=engine, is_dry=True)
            outline = replace(outline, notes=(*outline.notes, *notes))
        except EvenhandError as error:
            refusal = error
    if json_output:
        # One document, which has the refusal in it.
        refused = (
            None
            if refusal is None
            else {"id": refusal.code, "what": refusal.what, "where": refusal.where, "next": refusal.next_step}
        )
        write_json({"command": "run", "run": None, **outline.to_document(), "refused": refused})
        if refusal is not None:
            raise typer.Exit(refusal.exit_code)
        return
    for part in campaign_plan_report(outline):
        out().print(part)
    if refusal is not None:
        raise refusal
