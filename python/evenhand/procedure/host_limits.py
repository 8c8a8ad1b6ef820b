# SPDX-License-Identifier: Apache-2.0
"""Procedure: the strictest limits that this machine can keep (`--limits host`), found by trials with the
tester's own loop, without a DUT.

Only limits that cannot turn a fault of the tester into one of the DUT are taken from the host. A frame that
leaves late reaches the DUT in a burst, which is harder for it than even frames: so a PASS stays true however
many are late, and a loss that a burst might explain is INVALID as ever. How late a frame must be to be
overdue (`overdue_after`) decides what a burst may explain, and stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.base.folders import read_state, replace_state, state_file
from evenhand.base.units import format_duration, format_ratio
from evenhand.plan import BOTH_DIRECTIONS, make_plan
from evenhand.procedure.events import Began, Note, OnEvent, ignore
from evenhand.procedure.limits import HOST_CHOOSES, WishedLimits
from evenhand.procedure.tester import open_tester
from evenhand.trial import CEILING_WAITS, Limits, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import Setup, TestbedEngine, Tester

PROBES, PROBE_S = 8, 1.0
SERIES = 3
"""How often the probes are made, as long as the host keeps no limits: a build that ends changes that."""
PROBE_FPS = 100_000.0
"""Far below what any CPU here can send: what is late is late because the CPU was not there."""
KEPT_SHARE = 0.75
"""Share of the probes that keep the limits that are taken; `--patience` is for what the others meet."""
HEADROOM = 2.0
"""Limits are so much above what was seen: a trial may be sixty times as long as a probe."""
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of overdue frames. Beyond the last the tester sends bursts rather than a load."""
LONGEST_US = (100_000.0, 200_000.0, 500_000.0)
OFFERED = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005)
"""How far the offered load may be off. Half a percent is as much as a search's precision usually is."""
STATE, VERSION, MOST_KEPT = "host-limits.json", 1, 100
"""The file of the user's state folder; runs that are kept in it."""
ANY_RUN = ""
"""Name of the run of a command that is not one which can go on."""
KEPT_FOR = timedelta(hours=1)
"""For so long another command uses what one has measured: what else a host does changes."""
_WIDEST = Limits(offered_tolerance=0.1, overdue_tolerance=0.9999, longest_overdue_us=10e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one trial with the tester's own loop showed; the worse direction, and the worst of several
    engines."""

    overdue_share: float
    longest_overdue_us: float
    offered_error: float
    """Share by which the offered load was off."""

    @classmethod
    def of(cls, trial: TrialResult) -> Probe:
        if engines := trial.raw.get("engines"):
            return cls._of_engines(trial, engines)
        directions = list(trial.directions.values())
        return cls(
            overdue_share=max(of.sender.overdue_frames / max(1, of.intended_frames) for of in directions),
            longest_overdue_us=max(of.sender.max_overdue_us for of in directions),
            offered_error=max(
                abs(of.offered_fps / (of.intended_fps or trial.intended_fps) - 1) for of in directions
            ),
        )

    @classmethod
    def _of_engines(cls, trial: TrialResult, engines: Sequence[Mapping[str, Any]]) -> Probe:
        """Each is held against its own share: a host that keeps it well must not hide one that does not."""
        parts = [
            (
                of,
                (trial.directions[name].intended_fps or trial.intended_fps)
                * each["share"]["streams"]
                / each["share"]["stride"],
            )
            for each in engines
            for name, of in each["directions"].items()
        ]
        return cls(
            overdue_share=max(of["overdue_frames"] / max(1, of["intended_frames"]) for of, _ in parts),
            longest_overdue_us=max(of["max_overdue_us"] for of, _ in parts),
            offered_error=max(abs(of["offered_fps"] / fps - 1) for of, fps in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What a host keeps, and by what that was found."""

    limits: Mapping[str, float]
    """Limits by the names of `Limits`: those that `host_keeps` may name, as far as this machine keeps any."""
    probes: tuple[Probe, ...]
    cpus: tuple[int, ...]
    """The tester's."""
    found_at: str
    """RFC 3339, UTC."""

    def line(self, names: Sequence[str] = HOST_CHOOSES) -> str:
        """For people.

        Args:
            names: Names of the limits that are taken from the host; the others are set.
        """
        values = "; ".join(shown_limits(self.limits, names))
        return (
            f"{len(self.probes)} trials of {format_duration(PROBE_S)} without a DUT show which limits this"
            f" machine keeps: {values}."
        )

    def to_document(self) -> dict[str, Any]:
        """For `--json` and the run file."""
        return {
            "limits": dict(self.limits),
            "cpus": list(self.cpus),
            "found_at": self.found_at,
            "probes": [
                {
                    "overdue_share": probe.overdue_share,
                    "longest_overdue_us": probe.longest_overdue_us,
                    "offered_error": probe.offered_error,
                }
                for probe in self.probes
            ],
        }


def shown_limits(limits: Mapping[str, float], names: Sequence[str]) -> list[str]:
    """Each of these limits as a sentence without its end, as far as the host keeps it."""
    words = {
        "overdue_tolerance": ("at most {} of the frames are overdue", format_ratio),
        "longest_overdue_us": ("no frame is more than {} overdue", lambda us: format_duration(us / 1e6)),
        "offered_tolerance": ("the offered load is off by at most {}", format_ratio),
    }
    return [
        sentence.format(show(limits[name]))
        for name, (sentence, show) in words.items()
        if name in limits and name in names
    ]


def strictest(
    probes: Sequence[Probe], *, where: str, names: Sequence[str] = HOST_CHOOSES
) -> dict[str, float]:
    """The strictest limits that three of four of these trials keep with room to spare, never stricter than
    the defaults.

    Args:
        names: Names of the limits that are needed. Another one that the host does not keep is left out.

    Raises:
        HostError: No limits would make a trial on this machine worth anything.
    """
    overdue = HEADROOM * _quantile([probe.overdue_share for probe in probes])
    longest_us = HEADROOM * max(probe.longest_overdue_us for probe in probes)
    offered = _quantile([probe.offered_error for probe in probes])
    found = {
        "overdue_tolerance": _first_from(TOLERANCES, overdue),
        "longest_overdue_us": _first_from(LONGEST_US, longest_us),
        "offered_tolerance": _first_from(OFFERED, offered),
    }
    kept = {name: value for name, value in found.items() if value is not None}
    if all(name in kept for name in names):
        return kept
    seen = max(probes, key=lambda probe: probe.overdue_share)
    raise HostError(
        "this machine does not let the tester keep any load: up to"
        f" {format_ratio(seen.overdue_share)} of the frames that it sent within a second were overdue, the"
        f" latest by {format_duration(max(probe.longest_overdue_us for probe in probes) / 1e6)}",
        code="procedure.no-load-kept",
        where=where,
        next_step="Give the tester idle CPUs; `evenhand check` shows which CPUs are taken away, and by what.",
    )


def settle_limits(
    limits: Limits, setup: Setup, *, engine: Path | None, on_event: OnEvent = ignore, run: str = ""
) -> Limits:
    """The limits, and those of them that the host is to choose as it can keep them.

    Args:
        run: Which run this is. A run that goes on in another process has the limits that it began with.

    Raises:
        HostError: As `strictest`; or the host is not ready.
    """
    if not isinstance(limits, WishedLimits):
        return limits
    found = limits_of_host(
        setup.testbed.tester,
        engines=setup.testbed.engine,
        names=limits.host_keeps,
        engine=engine,
        on_event=on_event,
        run=run,
        is_urgent=setup.is_urgent,
    )
    named = {of.name: getattr(limits, of.name) for of in fields(Limits)}
    return Limits(**{**named, **{name: found[name] for name in limits.host_keeps}})


_Key = tuple[tuple[int | str, ...], str]
"""The CPUs, of several engines with their hosts; and the run."""
_FOUND: dict[_Key, Mapping[str, float]] = {}


def limits_of_host(
    tester: Tester,
    *,
    engines: Sequence[TestbedEngine] = (),
    names: Sequence[str] = HOST_CHOOSES,
    engine: Path | None,
    on_event: OnEvent = ignore,
    run: str = "",
    is_urgent: bool = False,
) -> Mapping[str, float]:
    """Measured on the tester's CPUs once in the life of this process, or of the run; of commands that are no
    runs once in an hour. Errors as `settle_limits`.

    Args:
        engines: Where there are several, all of them at once, each on its machine; the worst of them counts.
        names: Which of them are used, and so reported.
        is_urgent: See `Setup.is_urgent`.
    """
    key: _Key = (_cpus_of(tester, engines), run)
    if key in _FOUND and all(name in _FOUND[key] for name in names):
        return _FOUND[key]
    if (kept := _kept(key, names)) is not None:
        _FOUND[key] = kept.limits
        if run == ANY_RUN:
            on_event(Note(text=kept.line(names)))
        return kept.limits
    measured = measure_host_limits(
        tester, engines=engines, names=names, engine=engine, on_event=on_event, is_urgent=is_urgent
    )
    on_event(Note(text=measured.line(names)))
    _keep(key, measured.limits)
    _FOUND[key] = measured.limits
    return measured.limits


def _cpus_of(tester: Tester, engines: Sequence[TestbedEngine]) -> tuple[int | str, ...]:
    if not engines:
        return tuple(tester.cpus)
    return tuple(f"{engine.ssh or ''}:{cpu}" for engine in engines for cpu in engine.cpus)


def measure_host_limits(
    tester: Tester,
    *,
    engines: Sequence[TestbedEngine] = (),
    names: Sequence[str] = HOST_CHOOSES,
    engine: Path | None,
    on_event: OnEvent = ignore,
    is_urgent: bool = False,
) -> HostLimits:
    """Make the trials now, with the tester's two ports joined by a cable inside the process; up to `SERIES`
    times as long as this machine keeps none of the limits in `names` that mean anything. Errors as
    `settle_limits`."""
    users: Sequence[Tester] = engines or [tester]
    for series in range(1, SERIES + 1):
        probes = _probe(tester, engines, engine=engine, on_event=on_event, is_urgent=is_urgent)
        try:
            limits = strictest(probes, where="--limits host", names=names)
        except HostError as error:
            if series == SERIES:
                raise
            on_event(Note(text=f"Busy: {error.what}. The limits are measured again."))
            continue
        return HostLimits(
            limits=limits,
            probes=tuple(probes),
            cpus=tuple(cpu for each in users for cpu in each.cpus),
            found_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    raise AssertionError


def _probe(
    tester: Tester,
    engines: Sequence[TestbedEngine],
    *,
    engine: Path | None,
    on_event: OnEvent,
    is_urgent: bool,
) -> list[Probe]:
    on_event(
        Began(
            what="limits that this machine can keep", remaining_s=PROBES * (PROBE_S + CEILING_WAITS.total_s)
        )
    )
    probes = []
    with rig.own_loop_setup(tester, engines) as own_loop:
        opened = open_tester(
            replace(own_loop, is_urgent=is_urgent),
            make_plan("gateway-v4"),
            frame_size=64,
            seed=1,
            directions=BOTH_DIRECTIONS,
            engine=engine,
            waits=CEILING_WAITS,
            limits=_WIDEST,
        )
        with opened as ready:
            measurer = ready.measurer(on_event)
            for _ in range(PROBES):
                trial = measurer.measure(PROBE_S, PROBE_FPS * max(1, len(engines)))
                if trial.was_stopped:
                    raise HostError(
                        "stopped while the limits of this machine were being measured; there is no result",
                        code="procedure.stopped",
                        where="--limits host",
                    )
                _check_whole(trial, engines)
                probes.append(Probe.of(trial))
    return probes


def _check_whole(trial: TrialResult, engines: Sequence[TestbedEngine]) -> None:
    """HostError if one of several engines was lost: without it the worst of their hosts is not known."""
    measured = {str(each["engine"]) for each in trial.raw.get("engines", [])}
    lost = [each.name for each in engines if each.name not in measured]
    if lost:
        raise HostError(
            f"no result of engine {', '.join(lost)}: {'; '.join(reason.text for reason in trial.reasons)}",
            code="procedure.engine-lost-in-probe",
            where="--limits host",
            next_step="Try again, or give each limit with its own option.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLimits:
    """What a command before has measured."""

    limits: dict[str, float]
    kept_at: str
    """RFC 3339, UTC."""

    def line(self, names: Sequence[str]) -> str:
        """For people. `names`: of the limits that are taken from the host."""
        values = "; ".join(shown_limits(self.limits, names))
        return f"As measured at {self.kept_at[11:16]} UTC, this machine keeps: {values}."


def _kept(key: _Key, names: Sequence[str] = HOST_CHOOSES) -> KeptLimits | None:
    """Those of `names` that this run began with; None if it has just begun, or what is there is none. For
    `ANY_RUN`, those of the last hour."""
    entries = read_state(state_file(STATE), version=VERSION, key="runs")
    wanted = [list(key[0]), key[1]]
    for entry in entries if isinstance(entries, list) else []:
        if (
            not isinstance(entry, dict)
            or [entry.get("cpus"), entry.get("run")] != wanted
            or not isinstance(entry.get("limits"), dict)
            or (key[1] == ANY_RUN and not _is_recent(entry.get("kept_at")))
        ):
            continue
        ladders = dict(zip(HOST_CHOOSES, (TOLERANCES, LONGEST_US, OFFERED), strict=True))
        values = {name: entry["limits"].get(name) for name in names}
        if all(value in ladders[name] for name, value in values.items()):
            limits = {name: float(value) for name, value in values.items()}
            return KeptLimits(limits=limits, kept_at=str(entry.get("kept_at", "")))
    return None


def _is_recent(kept_at: Any) -> bool:
    """A time that cannot be read, or that is still to come, is not."""
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(kept_at)
    except (ValueError, TypeError):
        return False
    return timedelta(0) <= age < KEPT_FOR


def forget_limits(run: str) -> None:
    """A run of this name begins anew: the host is looked at again."""
    entries = read_state(state_file(STATE), version=VERSION, key="runs")
    if isinstance(entries, list) and any(
        isinstance(entry, dict) and entry.get("run") == run for entry in entries
    ):
        with suppress(OSError):
            others = [entry for entry in entries if isinstance(entry, dict) and entry.get("run") != run]
            replace_state(state_file(STATE), {"version": VERSION, "runs": others})


def _keep(key: _Key, found: Mapping[str, float]) -> None:
    """Write the limits to the state file. Where nothing can be written, a run that goes on measures again."""
    entries = read_state(state_file(STATE), version=VERSION, key="runs")
    others = (
        [entry for entry in entries if isinstance(entry, dict) and not _is_of(entry, key)]
        if isinstance(entries, list)
        else []
    )
    entry = {
        "cpus": list(key[0]),
        "run": key[1],
        "limits": dict(found),
        "kept_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with suppress(OSError):
        replace_state(state_file(STATE), {"version": VERSION, "runs": [entry, *others][:MOST_KEPT]})


def _is_of(entry: Mapping[str, Any], key: _Key) -> bool:
    """Whether the entry is that of this run, which has one; of `ANY_RUN` there is one for each set of
    CPUs."""
    return entry.get("run") == key[1] and (key[1] != ANY_RUN or entry.get("cpus") == list(key[0]))


def _quantile(values: Sequence[float]) -> float:
    """The smallest that KEPT_SHARE of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * KEPT_SHARE * 100) // 100) - 1)]


def _first_from(ladder: Sequence[float], least: float) -> float | None:
    return next((step for step in ladder if step >= least), None)
