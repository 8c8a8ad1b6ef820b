# SPDX-License-Identifier: Apache-2.0
"""Station 9: writing a run file, from its first trial or from where it was cut short; each trial is on disk
before the next begins."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import sentence_without_folders, without_folders
from evenhand.procedure.registry import PROCEDURES
from evenhand.results.throughput import is_lower_bound
from evenhand.rig import read_host_facts, read_versions
from evenhand.run.campaign_record import CUT_SHORT, TESTER_CEILING, HookRun
from evenhand.run.folder import resume_command
from evenhand.run.point_document import point_columns, suite_of, why_no_number
from evenhand.run.record import read_record
from evenhand.run.recorder import STOPPED, RunRecorder, SearchWriter
from evenhand.run.rows import (
    end_numbers,
    insert,
    insert_hook,
    place_search,
    reopen_points,
    reopen_undecided,
    search_columns,
    withdraw_search,
    without_trials,
)
from evenhand.run.run_file import LOCK_TIMEOUT_S, campaign_locked, create_file, not_stored, now, to_json
from evenhand.run.stored_so_far import StoredSoFar
from evenhand.search import SearchHead
from evenhand.spec.request import Point
from evenhand.trial import TimeLeftOut, TrialResult, describe_reasons, describe_taken


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
class RepetitionEnd:
    """How one repetition ends."""

    outcome: str
    value: float | None
    """Value in the unit of its procedure's figure; None: it ended without a number."""
    result: Mapping[str, Any] | None
    """The procedure's document without its trials; None: there is none."""
    reason: str | None
    """Why there is no number."""
    is_at_least: bool = False
    """Whether the value is a lower bound."""

    @classmethod
    def of(
        cls,
        procedure: str,
        outcome: str,
        result: Mapping[str, Any] | None,
        trials: Sequence[TrialResult],
        *,
        skipped: str | None,
    ) -> Self:
        """How one ends whose procedure ended so.

        Args:
            procedure: Its name.
            result: The procedure's document without its trials, if there is one.
            trials: All that were made for it, in order.
            skipped: Why nothing was measured, if so.
        """
        found = PROCEDURES[procedure].read(result)
        if outcome == STOPPED:
            return cls(outcome=outcome, value=None, result=result, reason=None)
        value = None if found is None else PROCEDURES[procedure].value_of(found)
        reason = None if value is not None else skipped or _why_no_number(outcome, trials)
        is_at_least = value is not None and is_lower_bound(found, outcome)
        return cls(outcome=outcome, value=value, result=result, reason=reason, is_at_least=is_at_least)


def _why_no_number(outcome: str, trials: Sequence[TrialResult]) -> str:
    invalid = next((trial for trial in reversed(trials) if not trial.is_valid), None)
    if invalid is None or outcome != TESTER_CEILING:
        return why_no_number(outcome)
    taken = describe_taken(trials)
    return f"{why_no_number(outcome)}: {describe_reasons(invalid.reasons)}{f'; {taken}' if taken else ''}"


class RunStore(StoredSoFar):
    """A run file, open for writing: a `procedure.Recorder` for the run of a verb, and what gives each
    repetition of a campaign its recorder. A context manager; made by `create` or `resume`. Methods raise
    StorageError.

    A run that ended before its first trial did leaves no file. Files are stored by their names, without
    folders. While a campaign is open no other process can write the file. It can be read at any time.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        *,
        command: list[str],
        host_name: bool,
        is_campaign: bool,
        is_new: bool,
    ) -> None:
        super().__init__(path, connection, is_campaign=is_campaign)
        self._stack = ExitStack()
        self._is_new = is_new
        self.notes: list[str] = []
        """Notes of this session."""
        self._engine: dict[str, str] | None = None
        self._host = read_host_facts(host_name=host_name)
        self._suite = suite_of(without_folders(command))
        if is_campaign:
            self.after_failure = f"and resume with: {resume_command(path)}"
        with self.writing() as opened:
            self._session_id = insert(
                opened,
                "sessions",
                {
                    "started_at": now(),
                    "command": to_json(without_folders(command)),
                    "versions": to_json(read_versions()),
                    "host": to_json(self._host),
                    "notes": "[]",
                },
            )

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        command: list[str],
        head: CampaignHead | None = None,
        points: Sequence[Point] = (),
        host_name: bool = False,
    ) -> RunStore:
        """A new file.

        Args:
            head: The head of a campaign, all of whose points are pending. None: the run of a verb.
            host_name: Store the host's name too.

        Raises:
            RequestError: It exists already; a run is never overwritten.
            HostError: It cannot be written.
        """
        connection = create_file(path, command=command, host_name=host_name)
        with ExitStack() as stack:
            stack.callback(connection.close)
            try:
                # Whoever looks at the file sees that it is measured now, and by whom.
                stack.enter_context(campaign_locked(path))
                if head is not None:
                    with connection:
                        document = {"name": head.name, "source": head.source, "spec": to_json(head.spec)}
                        insert(connection, "campaign", {"id": 1, "seed": str(head.seed), **document})
                        for point in points:
                            insert(connection, "points", point_columns(point))
                store = cls(
                    path,
                    connection,
                    command=command,
                    host_name=host_name,
                    is_campaign=head is not None,
                    is_new=True,
                )
            except (sqlite3.Error, HostError) as error:
                path.unlink(missing_ok=True)
                raise not_stored(path, error, "the run" if head is None else "the campaign") from error
            store._stack = stack.pop_all()
            return store
        raise AssertionError

    @classmethod
    def resume(cls, path: Path, *, command: list[str], host_name: bool = False) -> RunStore:
        """A campaign's file that is there, whole or cut short.

        Raises:
            RequestError: It is not a campaign, or several that were merged.
            HostError: Another process writes it; or it cannot be written.
        """
        with ExitStack() as stack:
            stack.enter_context(campaign_locked(path))
            _check_resumable(path)
            try:
                connection = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_S
                )
                stack.callback(connection.close)
                connection.executescript("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
                store = cls(
                    path, connection, command=command, host_name=host_name, is_campaign=True, is_new=False
                )
            except (sqlite3.Error, HostError) as error:
                raise HostError(
                    f"the campaign cannot be stored: {error}",
                    code="run.not-storable",
                    where=str(path),
                    next_step="Make the file writable, and free some space for it.",
                ) from error
            store._stack = stack.pop_all()
            return store
        raise AssertionError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            try:
                if kind is None:
                    if not self.is_campaign:
                        self.finish()
                    self._end_session()
                    return
                with suppress(HostError):  # the first error is the one that is reported
                    self._end_session()
            finally:
                self.stop_counting()
            if self._is_new and self.stored_trials == 0 and not self.has_hooks():
                self.path.unlink(missing_ok=True)

    @property
    def session_id(self) -> int:
        """Id of the session that writes now, in `sessions`."""
        return self._session_id

    def _end_session(self) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE sessions SET finished_at = ? WHERE id = ?", (now(), self._session_id))

    @contextmanager
    def search(self, head: SearchHead) -> Iterator[SearchWriter]:
        """See `Recorder`: a search that no campaign has ordered is a repetition by itself, or of no point.
        Ctrl-C or SIGTERM inside is stored as outcome `stopped`.

        Raises:
            StorageError: It cannot be stored.
        """
        columns = search_columns(head)
        with self.writing() as connection:
            repetition_id = place_search(
                connection, head, columns, suite=self._suite, session_id=self._session_id, host=self._host
            )
        recorder, writer = RunRecorder(self, repetition_id), None
        try:
            with recorder.search(head) as writer:
                yield writer
        except (KeyboardInterrupt, SystemExit):
            if writer is not None and writer.outcome is None:
                writer.finish_with(STOPPED)
            raise
        finally:
            if writer is not None and writer.outcome is not None and repetition_id is not None:
                self.end(recorder, _end_of(writer, head.procedure or head.kind))

    def keep(self, result: Mapping[str, Any]) -> None:
        """See `Recorder`: the whole of the result of which the last repetition has a part. What several
        repetitions come to has no place."""
        document = without_trials(dict(result))
        last = self.rows("SELECT id, result FROM repetitions ORDER BY id DESC LIMIT 1")
        for row in last:
            if row["result"] is not None and json.loads(row["result"]).keys() <= document.keys():
                with self.writing() as connection:
                    connection.execute(
                        "UPDATE repetitions SET result = ? WHERE id = ?",
                        (to_json(without_folders(document)), row["id"]),
                    )

    def abandon_search(self, why: str) -> None:
        """The last search of a verb's run is not a result, since another one takes its place: its trials
        stay, but it belongs to no point.

        Args:
            why: For those who read the file, as a note.
        """
        with self.writing() as connection:
            withdraw_search(connection)
        self.add_note(why)

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
        """Store what is known of a testbed. Returns the name by which its results know it: another one, if it
        is no longer what it was."""
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
                    f"the testbed {name}, or its machine, was changed; results since {now()} are"
                    f" recorded for {free!r}"
                )
        return free

    def add_hook(self, hook: HookRun, *, point: Point | None, suite: str | None) -> None:
        """One command that has end."""
        with self.writing() as connection:
            point_id = None if point is None else self.point_id(point)
            insert_hook(connection, hook, session_id=self._session_id, point_id=point_id, suite=suite)

    def end_point(self, point: Point, reason: str) -> None:
        """The point has fewer repetitions than it should, and gets no more."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE points SET reason = ? WHERE id = ?",
                (sentence_without_folders(reason), self.point_id(point)),
            )

    def end_numbers(self, point: Point, numbers: Collection[int], testbed: str, reason: str) -> None:
        """These repetitions, which are one testbed's of several, end without a value; the others do not."""
        with self.writing() as connection:
            end_numbers(
                connection,
                point_id=self.point_id(point),
                session_id=self._session_id,
                numbers=numbers,
                testbed=testbed,
                reason=reason,
            )

    def reopen_points(self) -> int:
        """Points that ended early are measured again, and repetitions that the tester could not decide, also
        those that have a lower bound of a throughput: their trials stay, as those of what was cut short. How
        many points and repetitions there are.
        """
        with self.writing() as connection:
            return reopen_points(connection)

    def reopen_undecided(self) -> int:
        """Repetitions that the tester could not decide the first time are measured again; none of them if
        they are more than MOST_REOPENED of all, which another try would hardly change. How many there are."""
        with self.writing() as connection:
            return reopen_undecided(connection)

    def begin(self, point: Point, number: int, *, seed: int, testbed: str, anew: bool = False) -> RunRecorder:
        """The record of a repetition that begins, or goes on where it was cut short.

        Args:
            testbed: By its name of `add_testbed`. A repetition goes on only on the testbed on which it began.
            anew: Leave what was cut short as it is, and begin again.
        """
        self.measured = []
        point_id = self.point_id(point)
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
                return RunRecorder(self, begun["id"], is_resumed=True)
            attempt = begun["attempt"] + 1
            with self.writing() as connection:
                connection.execute(
                    "UPDATE repetitions SET outcome = ? WHERE id = ?", (CUT_SHORT, begun["id"])
                )
        row = {
            "point_id": point_id,
            "session_id": self._session_id,
            "number": number,
            "attempt": attempt,
            "seed": str(seed),
            "testbed": testbed,
            "started_at": now(),
            "measured_s": 0,
        }
        with self.writing() as connection:
            repetition_id = insert(connection, "repetitions", row)
        return RunRecorder(self, repetition_id)

    def end(self, recorder: RunRecorder, end: RepetitionEnd) -> None:
        """The repetition has ended, with a number or without; or was stopped, in the run of a verb."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE repetitions SET finished_at = ?, outcome = ?, value = ?, result = ?, reason = ?,"
                " measured_s = measured_s + ?"
                " WHERE id = ?",
                (
                    None if end.outcome == STOPPED else now(),
                    end.outcome,
                    end.value,
                    None if end.result is None else to_json(without_folders(dict(end.result))),
                    None if end.reason is None else sentence_without_folders(end.reason),
                    recorder.lap_s(),
                    recorder.repetition_id,
                ),
            )
        if self.is_campaign:
            self.measured = []


def _end_of(search: SearchWriter, procedure: str) -> RepetitionEnd:
    """How a repetition ends that is this search alone."""
    result, trials = search.result, search.trials
    document = None if result is None else {**result, **TimeLeftOut.document_of(trials)}
    skipped = None if result is None else result.get("skipped")
    return RepetitionEnd.of(procedure, str(search.outcome), document, trials, skipped=skipped)


def _check_resumable(path: Path) -> None:
    """RequestError if the file is not a campaign that can go on."""
    record = read_record(path)
    if not record.is_campaign:
        raise RequestError(
            "this is the run of a single verb, not a campaign",
            code="run.not-a-campaign",
            where=str(path),
            next_step="Run that command again.",
        )
    if record.merged_from:
        raise RequestError(
            f"this file was merged from {', '.join(record.merged_from)}, and cannot be resumed",
            code="run.file-was-merged",
            where=str(path),
            next_step="Resume one of these, and merge again.",
        )
