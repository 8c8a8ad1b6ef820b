# SPDX-License-Identifier: Apache-2.0
"""Procedure: where a procedure keeps its trials while it goes on; `evenhand.run.RunStore` is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from evenhand.base.errors import DutGoneError
from evenhand.procedure.tester import OpenTester
from evenhand.search import DUT_GONE, Goal, Role, SearchHead, SearchResult, SearchTrial
from evenhand.trial import TrialResult


class SearchRecord(Protocol):
    """Keeps the trials of one search, or of one procedure that is not a search."""

    def add_trial(self, trial: SearchTrial) -> None:
        """Keep a trial of a search, before the next one begins (D11)."""

    def add_result(
        self,
        result: TrialResult,
        *,
        number: int,
        purpose: str,
        attempt: int = 1,
        is_full_length: bool = False,
    ) -> None:
        """Keep any other trial."""

    def finish(self, result: SearchResult) -> None:
        """Keep what a search found."""

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """Keep any other end."""


class Recorder(Protocol):
    """Keeps what was measured, search by search."""

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """What measures."""

    def search(self, head: SearchHead) -> AbstractContextManager[SearchRecord]:
        """Begin a search; when the block ends early, what was kept stays."""

    def keep(self, result: Mapping[str, Any]) -> None:
        """What a procedure found as a whole, when its searches have ended: its document."""


class _Nowhere:
    """Keeps nothing."""

    def add_trial(self, trial: SearchTrial) -> None:
        pass

    def add_result(
        self,
        result: TrialResult,
        *,
        number: int,
        purpose: str,
        attempt: int = 1,
        is_full_length: bool = False,
    ) -> None:
        pass

    def finish(self, result: SearchResult) -> None:
        pass

    def finish_with(self, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        pass


def nowhere() -> SearchRecord:
    """A record that keeps nothing."""
    return _Nowhere()


@contextmanager
def recording(
    recorder: Recorder | None,
    tester: OpenTester,
    label: str,
    *,
    kind: str,
    goal: Goal | Mapping[str, Any],
    role: Role = Role.MEASUREMENT,
    procedure: str = "",
    repetition: int | None = None,
) -> Iterator[SearchRecord]:
    """What this tester measures in the block is kept, or nowhere if there is no recorder.

    Args:
        label: See `SearchHead`; also for the others.
    """
    if recorder is None:
        yield nowhere()
        return
    recorder.add_versions(tester.versions)
    profile = tester.profile
    head = SearchHead(
        label=label,
        kind=kind,
        plan=profile.plan.to_contract(),
        frame_size=profile.frame_size,
        seed=profile.seed,
        setup=tester.details(),
        goal=goal,
        role=role,
        procedure=procedure,
        repetition=repetition,
    )
    with recorder.search(head) as record:
        try:
            yield record
        except DutGoneError:
            record.finish_with(DUT_GONE)
            raise
