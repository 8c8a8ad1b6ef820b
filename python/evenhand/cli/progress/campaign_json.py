# SPDX-License-Identifier: Apache-2.0
"""Live progress of a campaign for programs: a JSON document in each line."""

from __future__ import annotations

from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.json_lines import JsonProgress
from evenhand.procedure import ProcedureEvent
from evenhand.run.campaign.events import (
    CampaignEvent,
    HookEnded,
    PointArrived,
    PointBegan,
    PointEnded,
    RepetitionBegan,
    RepetitionEnded,
)


class JsonCampaignProgress(JsonProgress):
    """Lines for points and repetitions in addition to those of their trials; docs/reference/progress.md has
    their keys."""

    @contained
    def on_campaign_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """Takes an event of a campaign, or of one of its procedures."""
        match event:
            case PointBegan(point=point, place=place):
                in_round = {} if place is None else {"round": place.round, "rounds": place.rounds}
                self.write("point", point=point.key, **in_round)
            case RepetitionBegan(job=job, stored_trials=stored):
                self.write(
                    "repetition",
                    point=job.point.key,
                    repetition=job.repetition,
                    round=job.place.round,
                    stored_trials=stored,
                )
            case RepetitionEnded(job=job):
                self.write(
                    "repetition_ended",
                    point=job.point.key,
                    repetition=job.repetition,
                    value=event.value,
                    reason=event.reason,
                )
            case PointEnded(point=point, reason=reason):
                self.write("point_ended", point=point.key, reason=reason)
            case PointArrived(point=point, reason=reason, verdicts=verdicts):
                self.write(
                    "point_arrived",
                    point=point.key,
                    testbed=event.testbed,
                    reason=reason,
                    verdicts=dict(verdicts),
                )
            case HookEnded(failure=failure):
                if failure is not None:
                    self.say(failure)
            case _:
                self.on_event(event)
