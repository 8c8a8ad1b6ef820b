# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a witness saw inside the DUT, from the trials that carry it. Shown beside results, never
judged by (SEED-07).

Files come from others: what is not as Evenhand writes it is taken for not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.analysis.plans import known_plan
from evenhand.base.errors import EvenhandError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan import Direction
from evenhand.run.campaign_record import PointRecord
from evenhand.run.reading import StoredTrial
from evenhand.run.unread_results import may_have, sought

if TYPE_CHECKING:
    from evenhand.dut import facts_interface
else:
    # Most runs have no witness, and the interfaces of all operating systems come with it.
    facts_interface = lazy_import("evenhand.dut.facts_interface")

MOST_CPUS = 4096
MOST_QUEUES = 1024
MOST_PAIRS = 64
_SEEN = sought(r'"busy_share"')
"""Is in each document to which a witness added something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCpu:
    """Shares of the time of sending, 0 to 1."""

    cpu: int
    busy: float
    softirq: float
    """Share of the same time; part of `busy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTrial:
    """One trial."""

    cpus: tuple[SeenCpu, ...]
    """At least one."""
    dropped_packets: int | None
    """Packets that the DUT counted."""

    @property
    def busiest(self) -> SeenCpu:
        return max(self.cpus, key=lambda cpu: cpu.busy)

    @property
    def mean_busy(self) -> float:
        return sum(cpu.busy for cpu in self.cpus) / len(self.cpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenQueues:
    """What the queues of one interface received."""

    direction: Direction
    """Whose frames come to it."""
    interface: str
    counted: tuple[int, ...]
    """Packets, by the number of the queue."""
    predicted: tuple[float, ...] | None
    """Share of each, by the DUT's own key, table and hash fields; None if its driver does not report them, or
    nothing can be predicted."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Counted; the sum is 1."""
        total = sum(self.counted)
        return tuple(packets / total for packets in self.counted)

    @property
    def busiest_to_mean(self) -> float:
        """Counted; 1 is even."""
        return max(self.shares) * len(self.counted)

    @property
    def predicted_to_mean(self) -> float | None:
        return None if self.predicted is None else max(self.predicted) * len(self.predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPoint:
    """One point at its result: in each repetition the trial that passed with the highest load, or failed with
    the lowest if none passed."""

    cpus: tuple[SeenCpu, ...]
    """Mean over the repetitions."""
    queues: tuple[SeenQueues, ...]
    """Sums over the repetitions."""
    dropped_packets: int
    """Packets that the DUT counted."""
    lost_frames: int
    """Frames that the tester missed."""
    trial_count: int

    @property
    def busiest(self) -> SeenCpu | None:
        return max(self.cpus, key=lambda cpu: cpu.busy, default=None)


def seen_at(record: PointRecord) -> SeenPoint | None:
    """What was seen at the point; None if no trial of it carries what a witness saw."""
    chosen = [
        trial
        for repetition in record.repetitions
        if (
            trial := _at_result(
                [
                    trial
                    for search in repetition.searches
                    if search.kind != "ceiling"
                    for trial in search.trials
                ]
            )
        )
    ]
    seen = [document for trial in chosen if (document := seen_in(trial)) is not None]
    cpus = _mean_cpus(seen)
    if not cpus:
        return None
    return SeenPoint(
        cpus=cpus,
        queues=tuple(_queues(record, seen)),
        trial_count=len(seen),
        dropped_packets=sum(_count(document.get("dropped_packets")) or 0 for document in seen),
        lost_frames=sum(_count(document.get("lost_frames")) or 0 for document in seen),
    )


def seen_in(trial: StoredTrial) -> Mapping[str, Any] | None:
    """What the witness added to a trial; None if there was none, or it could not see."""
    return seen_of(trial.result.raw) if may_have(trial.result, _SEEN) else None


def seen_of(trial: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The same of a trial's document."""
    document = trial.get("dut")
    return (
        document
        if isinstance(document, Mapping) and document.get("error") is None and "cpus" in document
        else None
    )


def seen_trial(trial: StoredTrial) -> SeenTrial | None:
    """What was seen in the trial; None if there was no witness, or it could not see."""
    document = seen_in(trial)
    cpus = () if document is None else tuple(cpus_of(document))
    if document is None or not cpus:
        return None
    return SeenTrial(cpus=cpus, dropped_packets=_count(document.get("dropped_packets")))


def cpus_of(document: Mapping[str, Any]) -> list[SeenCpu]:
    """CPUs of one trial."""
    found = []
    for entry in _list(document.get("cpus"))[:MOST_CPUS]:
        cpu, busy, softirq = (_get(entry, key) for key in ("cpu", "busy_share", "softirq_share"))
        if (number := _count(cpu)) is not None and (share := _share(busy)) is not None:
            found.append(SeenCpu(cpu=number, busy=share, softirq=_share(softirq) or 0.0))
    return found


def counted_queues(document: Mapping[str, Any], place: str) -> dict[int, int]:
    """Packets received by each queue of an interface, in one trial; empty if its driver does not report
    them."""
    entries = _list(_get(_get(document.get("interfaces"), place), "queues"))[:MOST_QUEUES]
    pairs = ((_count(_get(entry, "queue")), _count(_get(entry, "received_packets"))) for entry in entries)
    return {
        queue: packets
        for queue, packets in pairs
        if queue is not None and packets is not None and queue < MOST_QUEUES
    }


def _at_result(trials: Sequence[StoredTrial]) -> StoredTrial | None:
    valid = [trial for trial in trials if trial.result.is_valid]
    passed = sorted(
        (trial for trial in valid if trial.result.is_pass),
        key=lambda trial: (-trial.result.intended_fps, -trial.result.intended_duration_s),
    )
    failed = sorted(
        (trial for trial in valid if not trial.result.is_pass),
        key=lambda trial: (trial.result.intended_fps, -trial.result.intended_duration_s),
    )
    return next((trial for trial in (*passed, *failed) if seen_in(trial) is not None), None)


def _mean_cpus(seen: Sequence[Mapping[str, Any]]) -> tuple[SeenCpu, ...]:
    each: dict[int, list[SeenCpu]] = {}
    for document in seen:
        for cpu in cpus_of(document):
            each.setdefault(cpu.cpu, []).append(cpu)
    return tuple(
        SeenCpu(
            cpu=number,
            busy=sum(cpu.busy for cpu in found) / len(found),
            softirq=sum(cpu.softirq for cpu in found) / len(found),
        )
        for number, found in sorted(each.items())
    )


def _queues(record: PointRecord, seen: Sequence[Mapping[str, Any]]) -> Iterator[SeenQueues]:
    """Interfaces with two queues or more that received anything."""
    for direction, place in _places(record, seen):
        total: dict[int, int] = {}
        name = ""
        for document in seen:
            name = str(_get(_get(document.get("interfaces"), place), "name") or name)
            for queue, packets in counted_queues(document, place).items():
                total[queue] = total.get(queue, 0) + packets
        if len(total) < 2 or not any(total.values()):
            continue
        predicted = _predicted(record, direction, place)
        count = max(max(total) + 1, len(predicted or ()))
        yield SeenQueues(
            direction=direction,
            interface=name,
            counted=tuple(total.get(queue, 0) for queue in range(count)),
            predicted=None if predicted is None else (*predicted, *[0.0] * (count - len(predicted))),
        )


def _places(record: PointRecord, seen: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Direction, str]]:
    """Places of the interfaces that the frames of each direction come to: one for each engine."""
    for direction in record.point.directions:
        found = [
            place
            for document in seen
            if isinstance(interfaces := document.get("interfaces"), Mapping)
            for place in interfaces
            if isinstance(place, str) and facts_interface.comes_to(direction, place)
        ]
        yield from ((direction, place) for place in list(dict.fromkeys(found))[:MOST_PAIRS])


def _predicted(record: PointRecord, direction: Direction, place: str) -> tuple[float, ...] | None:
    plan = known_plan(record)
    facts = next(
        (
            found
            for repetition in record.repetitions
            for search in repetition.searches
            if isinstance(found := _get(search.setup.get("inside_dut"), "facts"), Mapping)
        ),
        None,
    )
    if plan is None or facts is None or plan.other is not None:
        return None
    try:
        return tuple(
            map(
                float,
                facts_interface.predict_queues(facts, plan, direction, where="", place=place).loads(
                    direction
                ),
            )
        )
    except (EvenhandError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # what its driver does not report, or what no driver says


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _share(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return min(max(float(value), 0.0), 1.0) if is_number else None
