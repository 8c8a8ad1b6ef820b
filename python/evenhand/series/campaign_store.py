# SPDX-License-Identifier: Apache-2.0
"""Station 9: writing a campaign's file, from its first trial or from where it was cut short. One process at a
time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.base.errors import HostError, RequestError
from evenhand.base.without_folders import without_folders
from evenhand.rig.host.facts import read_host_facts, read_versions
from evenhand.series.campaign import TESTER_LIMIT, HookRun, Point
from evenhand.series.campaign_lock import campaign_locked
from evenhand.series.point_document import point_document
from evenhand.series.record import CUT_SHORT, read_record
from evenhand.series.repetition_recorder import RepetitionRecorder
from evenhand.series.resume_command import resume_command
from evenhand.series.schema import CAMPAIGN_VERSION
from evenhand.series.store import (
    LOCK_TIMEOUT_S,
    MeasuredSearch,
    WritableFile,
    create_file,
    not_stored,
    now,
    to_json,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignHead:
    """What a campaign is, as its file keeps it."""

    name: str
    source: str
    """Name of the campaign file, without its folder."""
    seed: int
    spec: Mapping[str, Any]
    """The file as it was understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one repetition ended."""

    outcome: str
    value: float | None
    """In the unit of its procedure's figure; None: it ended without a number."""
    result: Mapping[str, Any]
    """The procedure's document without its trials."""
    reason: str | None
    """Why there is no number."""


class CampaignStore(WritableFile):
    """A campaign's file, open for writing. A context manager; made by `create` or `resume`. Methods raise
    StorageError.

    While it is open nobody else can write the file. It can be read at any time.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        stack: ExitStack,
        *,
        command: list[str],
        host_name: bool,
        is_new: bool,
    ) -> None:
        super().__init__(path, connection)
        self.after_failure = f"and go on with: {resume_command(path)}"
        self._stack = stack
        self._is_new = is_new
        self.measured: list[MeasuredSearch] = []
        """Of the present repetition, stored or not."""
        self.notes: list[str] = []
        """Of this session."""
        self._engine: dict[str, str] | None = None
        self._host = read_host_facts(host_name=host_name)
        with self.writing() as opened:
            self._session_id = opened.execute(
                "INSERT INTO sessions (started_at, command, versions, host, notes) VALUES (?, ?, ?, ?, '[]')",
                (now(), to_json(without_folders(command)), to_json(read_versions()), to_json(self._host)),
            ).lastrowid

    @classmethod
    def create(
        cls,
        path: Path,
        head: CampaignHead,
        points: Sequence[Point],
        *,
        command: list[str],
        host_name: bool = False,
    ) -> CampaignStore:
        """A new file in which all points are pending.

        Raises:
            RequestError: It exists already; a campaign is never overwritten.
            HostError: It cannot be written.
        """
        connection = create_file(path, command=command, host_name=host_name, schema_version=CAMPAIGN_VERSION)
        with ExitStack() as stack:
            stack.callback(connection.close)
            stack.enter_context(campaign_locked(path))
            try:
                with connection:
                    connection.execute(
                        "INSERT INTO campaign (id, name, source, seed, spec) VALUES (1, ?, ?, ?, ?)",
                        (head.name, head.source, str(head.seed), to_json(head.spec)),
                    )
                    connection.executemany(
                        "INSERT INTO points (key, suite, document) VALUES (?, ?, ?)",
                        [(point.key, point.suite, to_json(point_document(point))) for point in points],
                    )
                return cls(
                    path, connection, stack.pop_all(), command=command, host_name=host_name, is_new=True
                )
            except (sqlite3.Error, HostError) as error:
                path.unlink(missing_ok=True)
                raise not_stored(path, error, "the campaign") from error
        raise AssertionError

    @classmethod
    def resume(cls, path: Path, *, command: list[str], host_name: bool = False) -> CampaignStore:
        """A file that is there, whole or cut short.

        Raises:
            RequestError: It is no campaign.
            HostError: Another process writes it; or it cannot be written.
        """
        with ExitStack() as stack:
            stack.enter_context(campaign_locked(path))
            if not read_record(path).is_campaign:
                raise RequestError(
                    "this is the run of a single verb, not a campaign",
                    where=str(path),
                    next_step="Give that verb again.",
                )
            try:
                connection = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_S
                )
                stack.callback(connection.close)
                connection.executescript("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
                return cls(
                    path, connection, stack.pop_all(), command=command, host_name=host_name, is_new=False
                )
            except (sqlite3.Error, HostError) as error:
                raise HostError(
                    f"the campaign cannot be stored: {error}",
                    where=str(path),
                    next_step="Make the file writable, and give it room.",
                ) from error
        raise AssertionError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if kind is None:
                self._end_session()
                return
            with suppress(HostError):  # the first error is the one to be told
                self._end_session()
                if self._is_new and self.stored_trials == 0 and not self.rows("SELECT id FROM hooks LIMIT 1"):
                    self.path.unlink()

    @property
    def session_id(self) -> int:
        """Of the writing that goes on now, in `sessions`."""
        assert self._session_id is not None
        return self._session_id

    @property
    def stored_trials(self) -> int:
        """How many are in the file."""
        return int(self.rows("SELECT count(*) AS trials FROM trials")[0]["trials"])

    def _end_session(self) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE sessions SET finished_at = ? WHERE id = ?", (now(), self._session_id))

    def finish(self) -> None:
        """Nothing is left to be measured."""
        with self.writing() as connection:
            connection.execute("UPDATE run SET finished_at = ? WHERE finished_at IS NULL", (now(),))

    def add_note(self, text: str) -> None:
        """What a reader of the results should know; once."""
        if text in self.notes:
            return
        self.notes.append(text)
        with self.writing() as connection:
            connection.execute(
                "UPDATE sessions SET notes = ? WHERE id = ?", (to_json(self.notes), self._session_id)
            )

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """The engine's. What is another one than before becomes a note."""
        if versions == self._engine:
            return
        self._engine = dict(versions)
        (text,) = self._connection.execute("SELECT versions FROM run").fetchone()
        before: dict[str, str] = json.loads(text)
        with self.writing() as connection:
            connection.execute(
                "UPDATE sessions SET versions = ? WHERE id = ?",
                (to_json({**read_versions(), **versions}), self._session_id),
            )
        super().add_versions({**read_versions(), **versions})
        for name, version in {**read_versions(), **versions}.items():
            if name in before and before[name] != version:
                self.add_note(f"{name} was {before[name]}, and is {version} since {now()}")

    def add_testbed(self, name: str, document: Mapping[str, Any]) -> str:
        """What is known of a testbed. The name by which its results know it: another one, if it is no longer
        what it was."""
        name, document = without_folders(name), without_folders(document)
        text = to_json(document)
        known = dict(self._connection.execute("SELECT name, document FROM testbeds ORDER BY id"))
        free, count = name, 1
        while free in known and known[free] != text:
            count += 1
            free = f"{name} ({count})"
        if free not in known:
            with self.writing() as connection:
                connection.execute("INSERT INTO testbeds (name, document) VALUES (?, ?)", (free, text))
            if count > 1:
                self.add_note(
                    f"the testbed {name}, or its host, was changed; what was measured since {now()} is of"
                    f" {free!r}"
                )
        return free

    def add_hook(self, hook: HookRun, *, point: Point | None, suite: str | None) -> None:
        """One command that has ended."""
        with self.writing() as connection:
            connection.execute(
                "INSERT INTO hooks (session_id, point_id, suite, moment, command, started_at, duration_s,"
                " exit_code, output)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._session_id,
                    None if point is None else self._point_id(point),
                    suite,
                    hook.when,
                    " ".join(without_folders(hook.command.split(" "))),
                    now(),
                    hook.duration_s,
                    hook.exit_code,
                    hook.output,
                ),
            )

    def end_point(self, point: Point, reason: str) -> None:
        """The point has fewer repetitions than it should, and gets no more."""
        with self.writing() as connection:
            connection.execute("UPDATE points SET reason = ? WHERE id = ?", (reason, self._point_id(point)))

    def reopen_points(self) -> int:
        """Points that ended early are measured again, and repetitions that the tester could not decide, also
        those that have a lower bound of a throughput: their trials stay, as those of what was cut short. How
        many points and repetitions there are.
        """
        with self.writing() as connection:
            points = connection.execute("UPDATE points SET reason = NULL WHERE reason IS NOT NULL").rowcount
            repetitions = connection.execute(
                "UPDATE repetitions SET finished_at = NULL, outcome = ?, value = NULL WHERE finished_at IS"
                " NOT NULL AND outcome = ?"
                " AND (value IS NULL OR json_extract(result, '$.is_at_least'))",
                (CUT_SHORT, TESTER_LIMIT),
            ).rowcount
            if points + repetitions:
                connection.execute("UPDATE run SET finished_at = NULL")
        return points + repetitions

    def ended_points(self) -> frozenset[str]:
        """Keys of those that ended early."""
        return frozenset(row["key"] for row in self.rows("SELECT key FROM points WHERE reason IS NOT NULL"))

    def finished_repetitions(self) -> frozenset[tuple[str, int]]:
        """By point and number. They stand, with a value or without."""
        found = self.rows(
            "SELECT key, number FROM repetitions JOIN points ON points.id = point_id WHERE finished_at IS"
            " NOT NULL"
        )
        return frozenset((row["key"], row["number"]) for row in found)

    def values_of(self, key: str, numbers: Container[int]) -> tuple[float, ...]:
        """Of a point's repetitions with these numbers, in order."""
        found = self.rows(
            "SELECT number, value FROM repetitions JOIN points ON points.id = point_id"
            " WHERE key = ? AND finished_at IS NOT NULL AND value IS NOT NULL ORDER BY number",
            key,
        )
        return tuple(row["value"] for row in found if row["number"] in numbers)

    def first_search_of(
        self, key: str, numbers: Container[int]
    ) -> tuple[dict[str, Any], dict[str, Any], int] | None:
        """Result, set-up and seed of the last search in the first finished repetition with one of these
        numbers; None if there is none."""
        candidates = self.rows(
            "SELECT number, searches.result, searches.setup, searches.seed FROM searches JOIN repetitions ON"
            " repetitions.id = repetition_id"
            " JOIN points ON points.id = point_id WHERE key = ? AND repetitions.finished_at IS NOT NULL AND"
            " searches.result IS NOT NULL"
            " AND searches.kind != 'ceiling' ORDER BY repetitions.number, searches.id DESC",
            key,
        )
        found = [row for row in candidates if row["number"] in numbers]
        return (
            (json.loads(found[0]["result"]), json.loads(found[0]["setup"]), int(found[0]["seed"]))
            if found
            else None
        )

    def begin(
        self, point: Point, number: int, *, seed: int, testbed: str, anew: bool = False
    ) -> RepetitionRecorder:
        """The record of a repetition that begins, or goes on where it was cut short.

        Args:
            testbed: By its name of `add_testbed`. A repetition goes on only on the testbed on which it began.
            anew: Leave what was cut short as it is, and begin again.
        """
        self.measured = []
        point_id = self._point_id(point)
        attempt = 1
        for begun in self.rows(
            "SELECT id, attempt, testbed, seed, outcome FROM repetitions WHERE point_id = ? AND number = ?"
            " ORDER BY attempt DESC LIMIT 1",
            point_id,
            number,
        ):
            if (
                not anew
                and begun["outcome"] != CUT_SHORT
                and begun["testbed"] == testbed
                and begun["seed"] == str(seed)
            ):
                return RepetitionRecorder(self, begun["id"], is_resumed=True)
            attempt = begun["attempt"] + 1
            with self.writing() as connection:
                connection.execute(
                    "UPDATE repetitions SET outcome = ? WHERE id = ?", (CUT_SHORT, begun["id"])
                )
        with self.writing() as connection:
            repetition_id = connection.execute(
                "INSERT INTO repetitions (point_id, session_id, number, attempt, seed, testbed, started_at,"
                " measured_s)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                (point_id, self._session_id, number, attempt, str(seed), testbed, now()),
            ).lastrowid
        assert repetition_id is not None
        return RepetitionRecorder(self, repetition_id, is_resumed=False)

    def end(self, recorder: RepetitionRecorder, ended: Ended) -> None:
        """The repetition has ended, with a number or without."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE repetitions SET finished_at = ?, outcome = ?, value = ?, result = ?, reason = ?,"
                " measured_s = measured_s + ?"
                " WHERE id = ?",
                (
                    now(),
                    ended.outcome,
                    ended.value,
                    to_json(without_folders(dict(ended.result))),
                    ended.reason,
                    recorder.lap_s(),
                    recorder.repetition_id,
                ),
            )
        self.measured = []

    def rows(self, question: str, *values: Any) -> list[dict[str, Any]]:
        """The answer to a SELECT, by the names of its columns. StorageError if it cannot be read."""
        with self.writing() as connection:
            cursor = connection.execute(question, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _point_id(self, point: Point) -> int:
        return int(self.rows("SELECT id FROM points WHERE key = ?", point.key)[0]["id"])
