# SPDX-License-Identifier: Apache-2.0
"""Station 9: several run files, of several machines or sessions, become one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import without_folders
from evenhand.base.locks import holder_of
from evenhand.rig import read_host_facts, read_versions
from evenhand.run.campaign_record import CampaignRecord, PointRecord, Repetition, Session
from evenhand.run.point_document import point_columns
from evenhand.run.reading import StoredSearch
from evenhand.run.record import read_record
from evenhand.run.rows import insert, insert_hook, insert_repetition, insert_stored_search
from evenhand.run.run_file import RunFile, campaign_resource, create_file, not_stored, now, to_json
from evenhand.run.run_points import out_of_suite, suite_of
from evenhand.spec.request import Point

_COMPARED = ("procedure", "plan", "hosts", "networks", "frame_size", "directions", "hash_type")
_BY_KEY = ("plan_options", "goal")
_NO_OTHER_QUESTION = ("known_fps",)
"""Keys of a goal that make no other question: where a search began, if an earlier one guided it."""
_LONGEST = 60


def merge_runs(
    paths: Sequence[Path], target: Path, *, command: list[str], host_name: bool = False
) -> CampaignRecord:
    """One file with all that was measured: repetitions of the same point are numbered on, testbeds of one
    name stay apart unless they are the same, and so do sessions. The files are left as they are.

    Args:
        target: A new file.
        host_name: Store the name of this machine with the merging.

    Raises:
        RequestError: The files are of different kinds or contradict each other, or have the same measurement
            twice; or `target` exists.
        HostError: A file cannot be read, or is being measured; or `target` cannot be written.
    """
    runs = [_Run(path=path, record=read_record(path)) for path in paths]
    _check_kinds(runs)
    _check_idle(runs)
    _check_no_measurement_is_there_twice(runs)
    points = _join(runs)
    names = _names_of(paths)
    with closing(create_file(target, command=command, host_name=host_name)) as connection:
        try:
            file = RunFile(target, connection)
            _Merging(names=names, command=command, host_name=host_name).write(file, runs, points)
        except BaseException as error:
            target.unlink(missing_ok=True)
            if isinstance(error, HostError):
                raise not_stored(target, error) from error
            raise
    return read_record(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    path: Path
    record: CampaignRecord


@dataclass(slots=True, kw_only=True)
class _Joined:
    """A point, and what each run has of it."""

    point: Point
    parts: dict[int, PointRecord]
    """Parts by the place of the run."""


def _names_of(paths: Sequence[Path]) -> list[str]:
    """Names without folders, and no two alike."""
    names = [path.name for path in paths]
    return [
        name if names.count(name) == 1 else f"{name} (file {number})"
        for number, name in enumerate(names, start=1)
    ]


def _check_kinds(runs: Sequence[_Run]) -> None:
    first = runs[0]
    if len(runs) < 2:
        raise RequestError(
            "a single run cannot be merged",
            code="run.one-run",
            where="FILE",
            next_step="Name two or more run files.",
        )
    for run in runs[1:]:
        if run.record.is_campaign != first.record.is_campaign:
            one, other = sorted((first, run), key=lambda run: not run.record.is_campaign)
            raise RequestError(
                f"{one.path} is a campaign, and {other.path} the run of a single verb",
                code="run.kinds-differ",
                where=str(run.path),
                next_step="Merge campaigns with campaigns, and runs of verbs with runs of verbs.",
            )
        if run.record.is_campaign and run.record.name != first.record.name:
            raise RequestError(
                f"{first.path} is the campaign {first.record.name!r}, and {run.path} the campaign"
                f" {run.record.name!r}",
                code="run.campaigns-differ",
                where=str(run.path),
                next_step=f"To compare them: evenhand compare {first.path} {run.path}",
            )


def _check_idle(runs: Sequence[_Run]) -> None:
    for run in runs:
        worker = holder_of(campaign_resource(run.path))
        if worker is not None:
            raise HostError(
                f"this campaign is being measured by {worker}",
                code="run.still-being-measured",
                where=str(run.path),
                next_step=f"Wait for its end: evenhand status {run.path}",
            )


def _check_no_measurement_is_there_twice(runs: Sequence[_Run]) -> None:
    """Nothing that was measured once counts as two repetitions."""
    seen: dict[str, _Run] = {}
    for run in runs:
        for what, fingerprint in _measurements_of(run.record):
            other = seen.setdefault(fingerprint, run)
            if other is not run:
                raise RequestError(
                    f"the same measurement is in {other.path} and in {run.path}: {what}",
                    code="run.measurement-twice",
                    where=str(run.path),
                    next_step="Name each run once, and no merged file together with one that it was merged"
                    " from.",
                )


def _measurements_of(record: CampaignRecord) -> Iterator[tuple[str, str]]:
    """What for people, and what no other one can have in common with it."""
    for measured in record.points:
        for repetition in measured.repetitions:
            what = f"{measured.point.key}, repetition {repetition.number}, of {repetition.started_at}"
            yield what, _fingerprint(repetition)
    for search in record.other_searches:
        yield f"{search.name}, of {search.started_at}", _fingerprint(search)


def _fingerprint(measured: Repetition | StoredSearch) -> str:
    """Counts and delays of its first trial distinguish machines that began in the same millisecond."""
    searches = measured.searches if isinstance(measured, Repetition) else (measured,)
    first = next((trial.result.raw for search in searches for trial in search.trials), None)
    return json.dumps([measured.seed, measured.started_at, first], sort_keys=True)


def _join(runs: Sequence[_Run]) -> list[_Joined]:
    """Points in the order of the first run that has each, suite by suite."""
    found: dict[str, _Joined] = {}
    for place, run in enumerate(runs):
        for measured in run.record.points:
            own = _in_no_file(run, measured.point)
            key = own.key
            if key not in found:
                point = replace(own, number=_free_number(own, found))
                found[key] = _Joined(point=point, parts={place: measured})
                continue
            first, before = next(iter(found[key].parts.items()))
            _check_alike(runs[first], before, run, measured)
            found[key].parts[place] = measured
            asked = found[key].point.repetitions + measured.point.repetitions
            found[key].point = replace(found[key].point, repetitions=asked)
    suites = list(dict.fromkeys(joined.point.suite for joined in found.values()))
    return sorted(found.values(), key=lambda joined: suites.index(joined.point.suite))


def _in_no_file(run: _Run, point: Point) -> Point:
    """A point whose suite is its file, because no command names a verb, belongs to the merged file
    afterwards."""
    is_named = run.record.is_campaign or any(
        suite_of(session.command) == point.suite for session in run.record.sessions
    )
    return point if is_named else out_of_suite(point, run.path.stem)


def _free_number(point: Point, found: Mapping[str, _Joined]) -> int:
    """Its own, if no point of its suite has it."""
    taken = {joined.point.number for joined in found.values() if joined.point.suite == point.suite}
    return max(taken) + 1 if point.number in taken else point.number


def _check_alike(first: _Run, before: PointRecord, run: _Run, measured: PointRecord) -> None:
    """RequestError if the point is another question in the other run."""
    one, other = _conditions_of(before), _conditions_of(measured)
    differing = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    # What was sent is stated in full by the plan of a search; counts of hosts say the same in short.
    named = [name for name in differing if not name.startswith("sent ")] or differing
    if named:
        shown = "; ".join(
            f"{name} is {_show(one.get(name))} in {first.path}, and {_show(other.get(name))} in {run.path}"
            for name in named[:3]
        )
        more = f"; and {len(named) - 3} more" if len(named) > 3 else ""
        raise RequestError(
            f"the point {before.point.key!r} was measured in two ways: {shown}{more}",
            code="run.not-measured-alike",
            where=str(run.path),
            next_step=f"Merge runs of the same command or campaign file; to compare these:"
            f" evenhand compare {first.path} {run.path}",
        )


def _conditions_of(measured: PointRecord) -> dict[str, Any]:
    """Conditions by names for people; what is not known, because nothing was sent, is left out."""
    point = measured.point
    found = {name.replace("_", " "): getattr(point, name) for name in _COMPARED}
    for name in _BY_KEY:
        values: Mapping[str, Any] = getattr(point, name)
        found |= {f"{name.replace('_', ' ')} {key}": value for key, value in values.items()}
    for key in _NO_OTHER_QUESTION:
        found.pop(f"goal {key}", None)
    same: dict[str, Any] = json.loads(json.dumps({**found, **_sent_of(measured)}))  # tuples as lists
    return same


def _sent_of(measured: PointRecord) -> dict[str, Any]:
    """What a verb was asked for in addition to the named plan, such as ports, is only in what it sent."""
    for repetition in measured.repetitions:
        for search in repetition.searches:
            if search.is_measurement:
                return {"sent plan": search.plan, "sent mix": search.setup.get("mix")}
    return {}


def _show(value: object) -> str:
    text = "not there" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@dataclass(slots=True, kw_only=True)
class _Merging:
    """Writes what was joined."""

    names: Sequence[str]
    """Names of the files, for people."""
    command: list[str]
    host_name: bool
    _notes: list[str] = field(default_factory=list)

    def write(self, file: RunFile, runs: Sequence[_Run], points: Sequence[_Joined]) -> None:
        """All of it in one transaction."""
        started_at = now()
        with file.writing() as connection:
            self._write_head(connection, [run.record for run in runs])
            testbeds = self._write_testbeds(connection, runs)
            sessions = [
                [_insert_session(connection, session) for session in run.record.sessions] for run in runs
            ]
            for joined in points:
                _write_point(connection, joined, testbeds, sessions)
            for run, of_run in zip(runs, sessions, strict=True):
                for hook in run.record.hooks:
                    session_id = of_run[hook.session]
                    insert_hook(connection, hook, session_id=session_id, point_id=None, suite=hook.suite)
                for search in run.record.other_searches:
                    insert_stored_search(connection, search, None)
            merging = Session(
                started_at=started_at,
                finished_at=now(),
                command=tuple(without_folders(self.command)),
                versions=read_versions(),
                host=read_host_facts(host_name=self.host_name),
                notes=(f"merged from {', '.join(self.names)}", *self._notes),
            )
            _insert_session(connection, merging)

    def _write_head(self, connection: sqlite3.Connection, records: Sequence[CampaignRecord]) -> None:
        first = records[0]
        versions: dict[str, str] = {}
        for name, record in zip(self.names, records, strict=True):
            for program, version in record.versions.items():
                if versions.setdefault(program, version) != version:
                    self._notes.append(
                        f"{name} was measured with {program} {version}; the merged run states"
                        f" {versions[program]}"
                    )
            if record.host != first.host:
                self._notes.append(
                    f"the host stated for the merged run is that of {self.names[0]}; {name} was measured on"
                    " another"
                )
            if record.spec != first.spec:
                self._notes.append(
                    f"the campaign file of {name} is not that of {self.names[0]}, which is kept"
                )
        ends = [record.finished_at for record in records]
        row = {
            "created_at": min(record.created_at for record in records),
            "finished_at": None if None in ends else max(end for end in ends if end is not None),
            "versions": to_json(versions),
            "host": to_json(dict(first.host)),
            "merged_from": to_json(list(self.names)),
        }
        connection.execute(f"UPDATE run SET {', '.join(f'{name} = ?' for name in row)}", tuple(row.values()))
        if first.is_campaign:
            head = {"id": 1, "name": first.name, "source": first.source, "seed": str(first.seed)}
            insert(connection, "campaign", {**head, "spec": to_json(dict(first.spec))})

    def _write_testbeds(self, connection: sqlite3.Connection, runs: Sequence[_Run]) -> list[dict[str, str]]:
        """For each run, the names that its testbeds have now."""
        known: dict[str, str] = {}
        renamed: list[dict[str, str]] = []
        for file, run in zip(self.names, runs, strict=True):
            names: dict[str, str] = {}
            for name, document in run.record.testbeds.items():
                text = to_json(dict(document))
                free, count = name, 1
                while known.get(free, text) != text or free in names.values():
                    count += 1
                    free = f"{name} ({count})"
                if free not in known:
                    insert(connection, "testbeds", {"name": free, "document": text})
                if free != name:
                    self._notes.append(f"{free!r} is the testbed {name!r} of {file}")
                known[free], names[name] = text, free
            renamed.append(names)
        return renamed


def _insert_session(connection: sqlite3.Connection, session: Session) -> int:
    return insert(
        connection,
        "sessions",
        {
            "started_at": session.started_at,
            "finished_at": session.finished_at,
            "command": to_json(list(session.command)),
            "versions": to_json(dict(session.versions)),
            "host": to_json(dict(session.host)),
            "notes": to_json(list(session.notes)),
        },
    )


def _write_point(
    connection: sqlite3.Connection,
    joined: _Joined,
    testbeds: Sequence[Mapping[str, str]],
    sessions: Sequence[Sequence[int]],
) -> None:
    """
    Args:
        testbeds: For each run their new names by their old ones.
        sessions: For each run their ids.
    """
    reasons = [reason for part in joined.parts.values() if (reason := _why_short(part)) is not None]
    point_id = insert(
        connection, "points", {**point_columns(joined.point), "reason": reasons[0] if reasons else None}
    )
    before = 0
    for place, part in joined.parts.items():
        attempts: dict[int, int] = {}
        for repetition in part.repetitions:
            attempts[repetition.number] = attempts.get(repetition.number, 0) + 1
            testbed = testbeds[place].get(repetition.testbed, repetition.testbed)
            insert_repetition(
                connection,
                replace(repetition, number=before + repetition.number, testbed=testbed),
                point_id=point_id,
                session_id=sessions[place][repetition.session],
                attempt=attempts[repetition.number],
            )
        for hook in part.hooks:
            session_id = sessions[place][hook.session]
            insert_hook(connection, hook, session_id=session_id, point_id=point_id, suite=hook.suite)
        before += max(attempts, default=0)


def _why_short(part: PointRecord) -> str | None:
    """Why it has fewer repetitions than were asked for, and gets no more; None if it has them all, or may get
    more."""
    finished = sum(repetition.finished_at is not None for repetition in part.repetitions)
    return None if finished >= part.point.repetitions else part.reason or part.stopped_early
