# SPDX-License-Identifier: Apache-2.0
"""Campaign: the recorder of a worker: collects all of one point, which then goes to whoever ordered it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.run import RepetitionEnd, StoredSearch, StoredTrial
from evenhand.run.campaign_record import HookRun, Repetition
from evenhand.run.recorder import STOPPED
from evenhand.run.remote_point import RemotePoint
from evenhand.run.rows import begun_search, search_columns
from evenhand.run.run_file import now
from evenhand.search import DUT_GONE, Role, SearchHead, SearchResult, SearchTrial
from evenhand.spec.request import Point
from evenhand.trial import Load, TrialResult


class CollectedSearch:
    """`procedure.SearchRecord` of one search."""

    def __init__(self, begun: StoredSearch) -> None:
        self._begun = begun
        self._trials: list[StoredTrial] = []

    def add_trial(self, trial: SearchTrial) -> None:
        """See `SearchRecord`."""
        self.add_result(
            trial.result,
            number=trial.number,
            purpose=str(trial.purpose),
            attempt=trial.attempt,
            is_full_length=trial.is_full_length,
        )

    def add_result(
        self,
        result: TrialResult,
        *,
        number: int,
        purpose: str,
        attempt: int = 1,
        is_full_length: bool = False,
    ) -> None:
        """See `SearchRecord`."""
        if not result.was_stopped:
            self._trials.append(
                StoredTrial(
                    number=number,
                    purpose=purpose,
                    attempt=attempt,
                    is_full_length=is_full_length,
                    result=result,
                )
            )

    def finish(self, result: SearchResult) -> None:
        """See `SearchRecord`."""
        self.finish_with(str(result.outcome), result.to_document())

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """See `SearchRecord`."""
        if outcome not in (STOPPED, DUT_GONE):
            document = None if result is None else dict(result)
            self._begun = replace(self._begun, finished_at=now(), outcome=outcome, result=document)

    @property
    def search(self) -> StoredSearch:
        """The search as it is so far."""
        return replace(self._begun, trials=tuple(self._trials))


@dataclass(slots=True)
class CollectedRepetition:
    """`procedure.Recorder` and `trial.Replay` of one repetition. It has nothing from before: a point that was
    lost begins anew."""

    number: int
    seed: int
    testbed: str
    versions: dict[str, str] = field(default_factory=dict)
    _end: RepetitionEnd | None = None
    _started_at: str = field(default_factory=now)
    _began_s: float = field(default_factory=time.monotonic)
    _finished_at: str | None = None
    _searches: list[CollectedSearch] = field(default_factory=list)
    _roles: Counter[Role] = field(default_factory=Counter)

    @property
    def stored_trials(self) -> int:
        """0: nothing is stored from before."""
        return 0

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """See `Recorder`."""
        self.versions.update(versions)

    def keep(self, result: Mapping[str, Any]) -> None:
        """See `Recorder`: the repetition ends with its result."""

    def take(self, load: Load) -> TrialResult | None:
        """See `Replay`: every trial has to be made."""
        del load
        return None

    @contextmanager
    def search(self, head: SearchHead) -> Iterator[CollectedSearch]:
        """See `Recorder`."""
        self._roles[head.role] += 1
        begun = begun_search(head, search_columns(head))
        search = CollectedSearch(replace(begun, number=self._roles[head.role]))
        self._searches.append(search)
        yield search

    def end(self, end: RepetitionEnd) -> None:
        """It has ended."""
        self._end, self._finished_at = end, now()

    @property
    def repetition(self) -> Repetition:
        """The repetition as it is so far."""
        end = self._end
        return Repetition(
            number=self.number,
            seed=self.seed,
            testbed=self.testbed,
            started_at=self._started_at,
            finished_at=self._finished_at,
            outcome=None if end is None else end.outcome,
            value=None if end is None else end.value,
            result=None if end is None else end.result,
            searches=tuple(search.search for search in self._searches),
            reason=None if end is None else end.reason,
            measured_s=time.monotonic() - self._began_s,
        )


@dataclass(slots=True)
class CollectingRecorder:
    """A `PointRecorder` in memory, of one point."""

    testbed: str
    """The name that this testbed has in the campaign."""
    _facts: Mapping[str, Any] | None = None
    _versions: dict[str, str] = field(default_factory=dict)
    _hooks: list[HookRun] = field(default_factory=list)
    _repetitions: dict[int, Repetition] = field(default_factory=dict)
    _begun: CollectedRepetition | None = None
    _reason: str | None = None

    def add_testbed(self, name: str, document: Mapping[str, Any]) -> str:
        """See `PointRecorder`. In the campaign it has the worker's name: two workers may have files of one
        name."""
        del name
        self._facts = document
        return self.testbed

    def add_hook(self, hook: HookRun, *, point: Point | None, suite: str | None) -> None:
        """See `PointRecorder`."""
        del point, suite
        self._hooks.append(replace(hook, ended_at=now()))

    def begin(
        self, point: Point, number: int, *, seed: int, testbed: str, anew: bool = False
    ) -> CollectedRepetition:
        """See `PointRecorder`."""
        del point, anew
        self._begun = CollectedRepetition(number=number, seed=seed, testbed=testbed)
        return self._begun

    def end(self, recorder: CollectedRepetition, end: RepetitionEnd) -> None:
        """See `PointRecorder`."""
        recorder.end(end)
        self._close(recorder)
        self._begun = None

    def end_point(self, point: Point, reason: str) -> None:
        """See `PointRecorder`."""
        del point
        self._reason = reason

    def collected(self, point: Point) -> RemotePoint:
        """All of it. A repetition that did not end is there with what it measured."""
        if self._begun is not None:
            self._close(self._begun)
        return RemotePoint(
            point=point,
            testbed=self.testbed,
            facts=self._facts,
            versions=self._versions,
            hooks=tuple(self._hooks),
            repetitions=tuple(self._repetitions.values()),
            reason=self._reason,
        )

    def _close(self, recorder: CollectedRepetition) -> None:
        self._versions.update(recorder.versions)
        self._repetitions[recorder.number] = recorder.repetition
