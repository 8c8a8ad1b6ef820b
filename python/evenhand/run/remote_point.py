# SPDX-License-Identifier: Apache-2.0
"""Station 9: a point that is measured on another machine: kept there in a file of its own, and then stored in
the campaign's file, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.folders import sentence_without_folders, temporary_folder
from evenhand.base.validation.hostile_json import LEAST, MOST, read_json
from evenhand.rig import read_versions
from evenhand.run.campaign_record import CUT_SHORT, HookRun, Repetition
from evenhand.run.record import read_record
from evenhand.run.rows import end_numbers, insert_hook, insert_repetition
from evenhand.run.run_file import SUFFIX, to_json
from evenhand.run.store import CampaignHead, RunStore
from evenhand.spec.request import Point
from evenhand.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePoint:
    """What was left to be measured of a point, measured on one testbed."""

    point: Point
    testbed: str
    """Its name among all that measure this campaign."""
    facts: Mapping[str, Any] | None
    """What is known of it (`CampaignRecord.testbeds`); None: it came to nothing before that was read."""
    versions: Mapping[str, str]
    """Versions of what measured there."""
    hooks: tuple[HookRun, ...]
    repetitions: tuple[Repetition, ...]
    """One without `finished_at` did not end."""
    reason: str | None
    """Why it gets no more repetitions; None: it has them all."""


@contextmanager
def point_file(point: Point) -> Iterator[RunStore]:
    """A file for what a worker measures of one point, a campaign of that point alone, until the block ends.
    StorageError, HostError if there is no place for it."""
    head = CampaignHead(name=point.suite, source="", seed=0, spec={})
    with (
        temporary_folder() as folder,
        RunStore.create(folder / f"point{SUFFIX}", command=[], head=head, points=[point]) as store,
    ):
        store.after_failure = "and start the worker again."
        yield store


def remote_point_of(store: RunStore, point: Point, *, testbed: str) -> RemotePoint:
    """All that `point_file` has of the point. A repetition that did not end is there with what it measured.

    Args:
        testbed: The name that the testbed has in the campaign: two workers may have files of one name.
    """
    record, own = read_record(store.path), read_versions()
    (measured,), (row,) = record.points, store.rows("SELECT reason FROM points")
    return RemotePoint(
        point=point,
        testbed=testbed,
        facts=next(iter(record.testbeds.values()), None),
        versions={name: version for name, version in record.versions.items() if name not in own},
        hooks=tuple(sorted((*measured.hooks, *record.hooks), key=lambda hook: hook.ended_at)),
        repetitions=tuple({each.number: _whole(each) for each in measured.repetitions}.values()),
        reason=row["reason"],
    )


def _whole(repetition: Repetition) -> Repetition:
    """The same with trials that can be sent: those of a large file are read when they are asked for."""
    searches = tuple(
        replace(
            search,
            trials=tuple(
                replace(trial, result=TrialResult.from_contract(dict(trial.result.raw)))
                for trial in search.trials
            ),
        )
        for search in repetition.searches
    )
    return replace(repetition, searches=searches)


def check_remote_point(remote: Any, point: Point, numbers: Collection[int]) -> RemotePoint:
    """What was ordered, if that is it: it comes from another machine, whose Evenhand may be damaged, or none.

    Args:
        numbers: Numbers of the repetitions that were ordered.

    Raises:
        ValueError: It is of another point or repetition, has one twice, or holds what no tester writes.
    """
    if not isinstance(remote, RemotePoint) or remote.point != point:
        raise ValueError("it belongs to another point")
    done = [repetition.number for repetition in remote.repetitions]
    if len(set(done)) != len(done) or not set(done) <= set(numbers):
        raise ValueError(
            f"it has the repetitions {', '.join(map(str, done)) or 'none'}, but"
            f" {', '.join(map(str, numbers))} were ordered"
        )
    try:
        _check_json([remote.facts, dict(remote.versions), [hook.output for hook in remote.hooks]])
        for repetition in remote.repetitions:
            _check_number(repetition.value)
            _check_number(repetition.measured_s)
            _check_json(None if repetition.result is None else dict(repetition.result))
            for search in repetition.searches:
                for document in (search.plan, search.setup, search.goal, search.result):
                    _check_json(document)
                for trial in search.trials:
                    if TrialResult.from_contract(dict(trial.result.raw)) != trial.result:
                        raise ValueError("a trial is not what its document says")
    except EvenhandError as error:
        raise ValueError(error.what) from error
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it does not have the form of a result: {error}") from error
    return remote


def _check_json(value: Any) -> None:
    """ValueError if it would be stored as what no one can read again."""
    read_json(to_json(value))


def _check_number(value: object) -> None:
    if value is not None and (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (value == 0 or LEAST <= abs(value) <= MOST)
    ):
        raise ValueError(f"{value!r} is not a finite number, or one that no one can have measured")


def store_remote_point(store: RunStore, remote: RemotePoint, *, of_testbed: Collection[int] = ()) -> None:
    """All of it in one transaction. What has a result already is left as it is, so that nothing is there
    twice. StorageError.

    Args:
        of_testbed: The repetitions that are this testbed's, where each point is measured on several: what
            ended early there goes on elsewhere. Empty: all.
    """
    testbed = remote.testbed if remote.facts is None else store.add_testbed(remote.testbed, remote.facts)
    _note_versions(store, testbed, remote.versions)
    point_id = store.point_id(remote.point)
    with store.writing() as connection:
        for hook in remote.hooks:
            insert_hook(connection, hook, session_id=store.session_id, point_id=point_id, suite=None)
        for repetition in remote.repetitions:
            attempt = _next_attempt(connection, point_id, repetition.number)
            if attempt is not None:
                outcome = CUT_SHORT if repetition.finished_at is None else repetition.outcome
                insert_repetition(
                    connection,
                    replace(repetition, testbed=testbed, outcome=outcome),
                    point_id=point_id,
                    session_id=store.session_id,
                    attempt=attempt,
                )
        if remote.reason is not None and of_testbed:
            end_numbers(
                connection,
                point_id=point_id,
                session_id=store.session_id,
                numbers=of_testbed,
                testbed=testbed,
                reason=remote.reason,
            )
        elif remote.reason is not None:
            connection.execute(
                "UPDATE points SET reason = ? WHERE id = ?",
                (sentence_without_folders(remote.reason), point_id),
            )


def _note_versions(store: RunStore, testbed: str, versions: Mapping[str, str]) -> None:
    """The file has those of the first testbed; other versions of another one are written to a note."""
    (row,) = store.rows("SELECT versions FROM run")
    known: dict[str, str] = json.loads(row["versions"])
    new = {name: version for name, version in versions.items() if name not in known}
    if new:
        with store.writing() as connection:
            connection.execute("UPDATE run SET versions = ?", (to_json({**known, **new}),))
    for name, version in versions.items():
        if known.get(name, version) != version:
            store.add_note(f"{testbed} has {name} {version}, but the campaign records {known[name]}")


def _next_attempt(connection: sqlite3.Connection, point_id: int, number: int) -> int | None:
    """Number of the next attempt; None if the repetition has ended already. What was begun before, here or on
    a worker that was lost, has other trials, and stays as cut short."""
    attempts = connection.execute(
        "SELECT id, attempt, finished_at FROM repetitions WHERE point_id = ? AND number = ?",
        (point_id, number),
    ).fetchall()
    if any(finished_at is not None for _, _, finished_at in attempts):
        return None
    connection.executemany(
        "UPDATE repetitions SET outcome = ? WHERE id = ?",
        [(CUT_SHORT, begun_id) for begun_id, _, _ in attempts],
    )
    return 1 + max((attempt for _, attempt, _ in attempts), default=0)
