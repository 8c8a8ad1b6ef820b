# SPDX-License-Identifier: Apache-2.0
"""Analysis: the DUT's own configuration, where a record has it, for a prediction. Shown beside results, never
judged by (SEED-07)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.plans import known_plan
from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan
from evenhand.predict import DeviceModel, NeighborCost, Prediction, neighbor_entries, predict
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.stored_shapes import flag, list_of, number, table, text, whole
from evenhand.spec.request import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A router whose elements, hash and neighbour cost are in the record, as those of a reference router
    do."""

    model: DeviceModel
    neighbor_cost: NeighborCost | None

    def throughput_fps(self, record: PointRecord) -> float | None:
        """Per direction, in the long run: the busiest element decides, and the table makes all dearer alike.
        None: not of this point."""
        prediction = self._predict(record)
        if prediction is None or prediction.throughput_fps is None:
            return None
        return prediction.throughput_fps / self.cost_factor(prediction.plan, record.point)

    def plateau_fps(self, record: PointRecord) -> float | None:
        """Rate with an even load and a table that costs nothing."""
        prediction = self._predict(record)
        return None if prediction is None else prediction.plateau_fps

    def cost_factor(self, plan: AddressPlan, point: Point) -> float:
        """Factor by which its neighbours make a frame dearer, once the device knows them all."""
        return (
            1.0
            if self.neighbor_cost is None
            else self.neighbor_cost.factor(neighbor_entries(plan, point.directions))
        )

    def _predict(self, record: PointRecord) -> Prediction | None:
        plan = known_plan(record)
        if plan is None:
            return None
        try:
            return predict(plan, self.model, record.point.directions)
        except RequestError:
            return None  # fields that count together


def known_device(record: CampaignRecord, points: Iterable[PointRecord]) -> KnownDevice | None:
    """The device of the first point that has one: by what its searches stored, else by what its testbed
    has."""
    for point in points:
        for repetition in point.repetitions:
            documents = [search.setup.get("dut") for search in repetition.searches]
            documents.append(record.testbeds.get(repetition.testbed, {}).get("dut"))
            for document in documents:
                if isinstance(document, Mapping) and (device := read_device(document)) is not None:
                    return device
    return None


_CONFIG = table(
    elements=table(count=whole, hash=text, symmetric=flag, key=text, table=list_of(whole), rate_fps=number),
    neighbors=table(free_entries=whole, growth=number),
)


def read_device(document: Mapping[str, Any]) -> KnownDevice | None:
    """Made from the facts of a reference router (`ReferenceRouter.facts`), or its configuration
    (contract/router-config.schema.json). None if it is not one: nothing is predicted from it then."""
    config = document.get("config", document)
    try:
        _CONFIG(config, "config")
        elements = config["elements"]
        model = DeviceModel(
            elements=elements["count"],
            hash_type=elements["hash"],
            symmetric=elements.get("symmetric") or False,
            key=bytes.fromhex(elements["key"]),
            table=tuple(elements["table"]),
            rate_fps=elements["rate_fps"],
        )
        return KnownDevice(model=model, neighbor_cost=_neighbor_cost(config.get("neighbors") or {}))
    except (KeyError, TypeError, ValueError, RequestError):
        return None


def _neighbor_cost(neighbors: Mapping[str, Any]) -> NeighborCost | None:
    free_entries, growth = neighbors.get("free_entries"), neighbors.get("growth")
    if free_entries is None or growth is None:
        return None
    return NeighborCost(free_entries=free_entries, growth=growth)
