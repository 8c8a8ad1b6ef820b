# SPDX-License-Identifier: Apache-2.0
"""Campaign: who measures the points. Here it is this process, one after the other; `scheduled.py` has those
of other machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evenhand.rig import LeasedLab
from evenhand.run import RunStore
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.run.campaign.measure import PointOrder, measure_point
from evenhand.spec.point import Point


class Executor(Protocol):
    """Measures points, each at one place at a time."""

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        """Gives each point when all of it is kept.

        Args:
            orders: Independent of each other. The next one is requested only when there is a place for it.
            lab: The lab that is the testbed of this process; it is set up for each order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HereExecutor:
    """This process, on one testbed."""

    engine: Path | None = None

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        """See `Executor`."""
        for order in orders:
            measure_point(order, keeper, engine=self.engine, on_event=on_event, lab=lab)
            yield order.point
