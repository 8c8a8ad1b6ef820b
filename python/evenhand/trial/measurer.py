# SPDX-License-Identifier: Apache-2.0
"""Station 7: `Measurer`, the only thing that a search knows, and the one that asks the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from evenhand.base.errors import RequestError
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import Direction
from evenhand.trial.capture import KEPT_FRAMES, CaptureFile
from evenhand.trial.contract_values import check_document_size
from evenhand.trial.direction_rates import DirectionRates
from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, EventCallback, TesterSession
from evenhand.trial.load import Connections, Load, LoadMeasurer, Replay
from evenhand.trial.result import TrialResult

LARGEST_SEED = 2**64 - 1
MAX_TRIAL_NUMBER = 65535
"""The tag has 16 bits for it."""
PORT_STOPPED = "port_stopped"
"""The reason of a trial in which a port of the tester took none of what reached it."""


QUIET_FPS, QUIET_S = 1000.0, 1.0
"""A load that every DUT forwards."""
STOPPED = "stopped"
"""The reason of a trial that was ended by hand."""
NOT_OF_DUT = (STOPPED, PORT_STOPPED, "port_removed", "engine_lost")
"""Reasons of trials of which no frame came back, whatever the DUT does."""


def has_forwarded(document: Mapping[str, Any]) -> bool:
    """Whether a frame of this trial came back."""
    return any(direction["received_frames"] for direction in document["directions"].values())


class Measurer(Protocol):
    """Performs one trial. All else (plan, frame size, ports, waits) is fixed while a search runs (RFC 9971,
    4.1.4)."""

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """One trial at `rate_fps` frames per second per direction; its verdict may be INVALID.

        Raises:
            EvenhandError: There could be no trial at all.
        """
        ...


@runtime_checkable
class EarlyStopper(Protocol):
    """A measurer whose trials may end as soon as they can no longer pass."""

    def stop_no_trial_early(self) -> None:
        """From now on every trial lasts to its end."""
        ...


class Witness(Protocol):
    """Looks at the DUT from elsewhere before and after each trial; the verdict does not depend on it
    (SEED-07)."""

    def watch(self, trial: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make the trial; its document, with what was seen added as `dut`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Waits of the trial phases in seconds (R2544-18). The defaults conform; the engine reports shorter ones
    as deviations."""

    after_routing_s: float = 2.0
    after_learning_s: float = 2.0
    residual_s: float = 2.0
    restabilize_s: float = 5.0

    def __post_init__(self) -> None:
        check_types(self)
        for name, wait_s in self.to_contract().items():
            if wait_s < 0:
                raise RequestError(
                    f"a wait of {wait_s:g} s: must not be negative",
                    code="trial.out-of-range",
                    where=name,
                    next_step="Use 0 for none.",
                )

    @property
    def total_s(self) -> float:
        return self.after_routing_s + self.after_learning_s + self.residual_s + self.restabilize_s

    def to_contract(self) -> dict[str, float]:
        return {
            "after_routing_s": self.after_routing_s,
            "after_learning_s": self.after_learning_s,
            "residual_s": self.residual_s,
            "restabilize_s": self.restabilize_s,
        }


RFC_WAITS = Waits()
SHORT_WAITS = Waits(after_routing_s=0.1, after_learning_s=0.2, residual_s=0.3, restabilize_s=0.2)
"""For software ports, whose queues hold milliseconds."""
CEILING_WAITS = Waits(after_routing_s=0.0, after_learning_s=0.1, residual_s=0.2, restabilize_s=0.1)
"""Short: a ceiling is not a result of a DUT, and what a DUT still holds of one trial does not affect the
next."""


USUAL_OVERDUE_AFTER_US = 100.0
CLEAN_AT_MOST = 2.0
"""`Limits.clean_at_most` where clean time is asked for."""
MOST_OFFERED_TOLERANCE = 0.1
"""The contract allows no more."""
_FROM_0, _TO_1 = "at least 0 and less than 1", "at least 0 and at most 1"
_BELOW_1, _SMALL = "greater than 0 and less than 1", f"greater than 0 and at most {MOST_OFFERED_TOLERANCE:g}"
_LIMIT_RANGES = {
    "loss_ratio": _FROM_0,
    "duplicate_tolerance": _FROM_0,
    "remarked_tolerance": _TO_1,
    "overdue_tolerance": _BELOW_1,
    "offered_tolerance": _SMALL,
}
"""What the command allows, too. All others are greater than 0."""


def _is_within(value: float, meant: str) -> bool:
    is_least = value >= 0 if meant in (_FROM_0, _TO_1) else value > 0
    most = {
        _SMALL: value <= MOST_OFFERED_TOLERANCE,
        _TO_1: value <= 1,
        _FROM_0: value < 1,
        _BELOW_1: value < 1,
    }
    return is_least and most.get(meant, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits within which a trial passes (loss) and is valid (all others)."""

    loss_ratio: float = 0.0
    offered_tolerance: float = 0.0001
    """R2544-39."""
    overdue_after_us: float | None = None
    """A frame that leaves later than this after its time is overdue: it reaches the device as part of a
    burst. None: USUAL_OVERDUE_AFTER_US, but at most the time of 1,500 frames at the trial's rate."""
    overdue_tolerance: float = 0.01
    """Share of overdue frames that a valid trial may have; docs/explanation/validity.md explains why some are
    allowed."""
    longest_overdue_us: float = 100_000.0
    clock_ppm: float = 100.0
    duplicate_tolerance: float = 0.01
    """Share of duplicated frames that a valid trial may have: a router that only forwards makes none."""
    remarked_tolerance: float = 1.0
    """Share of frames that may come with another DSCP, ECN or flow label than they were sent with, in a trial
    that passes. 1: any, and a note says how many."""
    clean_at_most: float | None = None
    """A trial of an even load by one engine, without delays or connections, is judged by the time in which
    neither the tester nor a DUT on its machine was away. It is sent for longer, so many times its duration at
    the most, until so much of it is together: docs/explanation/clean-time.md. None: each trial is judged as a
    whole."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.clean_at_most is not None and self.clean_at_most < 1:
            raise RequestError(
                f"{self.clean_at_most:g}: must be at least 1",
                code="trial.out-of-range",
                where="clean_at_most",
                next_step=f"Use {CLEAN_AT_MOST:g}, or omit it.",
            )
        for name, value in self.to_contract().items():
            meant = _LIMIT_RANGES.get(name, "greater than 0")
            if not _is_within(value, meant):
                raise RequestError(
                    f"{value:g}: must be {meant}",
                    code="trial.out-of-range",
                    where=name,
                    next_step="Omit it to use the default.",
                )

    def to_contract(self) -> dict[str, float]:
        limits = {
            "loss_ratio": self.loss_ratio,
            "offered_tolerance": self.offered_tolerance,
            "overdue_tolerance": self.overdue_tolerance,
            "longest_overdue_us": self.longest_overdue_us,
            "clock_ppm": self.clock_ppm,
            "duplicate_tolerance": self.duplicate_tolerance,
            "remarked_tolerance": self.remarked_tolerance,
        }
        return (
            limits if self.overdue_after_us is None else {**limits, "overdue_after_us": self.overdue_after_us}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWish:
    """What trials record of delays in addition to a histogram over all frames (RFC 8219, 7.2 and 7.3)."""

    from_s: float = 0.0
    """Frames that are due before this time of the sending phase have no part in any delay."""
    tagged_frames: int = 0
    """So many of the others, evenly spread, are listed with their delays."""
    has_variation: bool = False
    """Record the differences of the delays of consecutive frames."""

    def __post_init__(self) -> None:
        check_types(self)

    def to_contract(self) -> dict[str, Any]:
        return {"from_s": self.from_s, "tagged_frames": self.tagged_frames, "variation": self.has_variation}


@dataclass(slots=True, kw_only=True)
class EngineMeasurer:
    """Measures with an engine whose ports are open. Numbers its trials, so that a frame of an old trial is
    known as stale."""

    session: TesterSession
    directions: Sequence[Direction] = ("forward", "reverse")
    waits: Waits = RFC_WAITS
    limits: Limits = field(default_factory=Limits)
    rates: DirectionRates | None = None
    """How the directions differ in their loads; None: they do not."""
    delays: DelayWish | None = None
    stops_when_failed: bool = False
    """A trial ends as soon as it can no longer pass."""
    replay: Replay | None = None
    """Trials that were made before, and are not made again."""
    witness: Witness | None = None
    """Witness of each trial that is made here; not of those that were made before."""
    on_event: EventCallback | None = None
    capture: CaptureFile | None = None
    """Where frames are kept that were not what was sent."""
    frame_octets: int = 9216
    """Octets of the largest frames, which decide how many can be captured."""
    check_dut: Callable[[], None] | None = None
    """Called after each trial; raises HostError if the DUT no longer exists. What such a trial lost says
    nothing of any load."""
    reopen: Callable[[], None] | None = None
    """Called after a trial in which a port of the tester stopped: opens the ports anew. Such a port does not
    work again before that."""
    establish: Callable[[LoadMeasurer, Load], Mapping[str, Any]] | None = None
    """Where the DUT keeps state: called before each trial of this load; establishes the connections that its
    frames are of, by trials of its own, and says how many (`count`) and how."""
    establish_s: float = 0.0
    """How long that takes."""
    look_for_dut: Callable[[Callable[[], bool]], None] | None = None
    """Called after a trial of which no frame came back: raises DutGoneError if the DUT answers nothing any
    more. Such a trial says nothing of its load. The argument makes a short trial at a low rate, and says
    whether a frame came back; it makes none where the DUT has never forwarded any, or
    keeps state, and then says that one did."""
    is_looking: bool = False
    """The trial that is made is that of `look_for_dut`."""
    _has_forwarded: bool = False
    _last_trial: int = 0

    @property
    def overhead_s(self) -> float:
        """Time that a trial takes in addition to sending."""
        return self.waits.total_s + self.establish_s

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        return self.offer(Load(rate_fps=rate_fps, duration_s=duration_s))

    def stop_no_trial_early(self) -> None:
        """See `EarlyStopper`."""
        self.stops_when_failed = False

    def stored(self, load: Load) -> TrialResult | None:
        """See `LoadMeasurer.stored`."""
        before = None if self.replay is None else self.replay.take(load)
        if before is not None:
            self._last_trial = self._last_trial % MAX_TRIAL_NUMBER + 1
        return before

    def offer(self, load: Load) -> TrialResult:
        """See `LoadMeasurer.offer`."""
        before = self.stored(load)
        if before is not None:
            return before
        if self.establish is None or load.connections is not None:
            return TrialResult.from_contract(self._make(load))
        established = self.establish(_Unprepared(self), load)
        connections = Connections(use="established", count=int(established["count"]))
        document = self._make(replace(load, connections=connections))
        return TrialResult.from_contract({**document, "established": dict(established)})

    def _make(self, load: Load) -> dict[str, Any]:
        """The document of a trial that is made now."""
        waits = replace(self.waits, residual_s=max(self.waits.residual_s, load.residual_s))
        self._last_trial = self._last_trial % MAX_TRIAL_NUMBER + 1
        if self.witness is None:
            return self._request(load, waits)
        return self.witness.watch(lambda: self._request(load, waits))

    def _directions_of(self, load: Load) -> Sequence[Direction]:
        return (load.connections and load.connections.directions) or self.directions

    def _progress_callback(self, load: Load, waits: Waits) -> EventCallback | None:
        """Callback that adds the load to progress events of a sending phase in which the load changes: the
        engine reports only the time."""
        on_event, before_s = self.on_event, waits.after_routing_s + waits.after_learning_s
        if on_event is None or load.then is None:
            return on_event

        def with_load(document: dict[str, Any]) -> None:
            rate_fps = load.rate_at(document["elapsed_s"] - before_s)
            on_event({**document, "rate_fps": rate_fps} if document["phase"] == "sending" else document)

        return with_load

    def _look_for_dut(self, load: Load, document: Mapping[str, Any]) -> None:
        if has_forwarded(document):
            self._has_forwarded = True
            return
        is_known = any(each["code"] in NOT_OF_DUT for each in document["reasons"])
        if self.look_for_dut is None or is_known or self.is_looking:
            return
        quiet = Load(rate_fps=min(QUIET_FPS, load.rate_fps), duration_s=QUIET_S)
        self.is_looking = True
        try:
            self.look_for_dut(
                lambda: (
                    not self._has_forwarded
                    or load.connections is not None
                    or has_forwarded(self._make(quiet))
                )
            )
        finally:
            self.is_looking = False

    def _most_sending_s(self, load: Load) -> float | None:
        """How long a trial is sent at the most until enough of it is clean. None if its clean time is not
        asked for: bursts, delays and connections have their own way with lapses, and of several engines none
        knows of those of the others."""
        is_even = load.burst is None and load.then is None and load.connections is None
        most = self.limits.clean_at_most
        if most is None or not is_even or self.delays is not None or not self.session.is_alone:
            return None
        return most * load.duration_s

    def _relative_rates(self, load: Load) -> dict[str, Any]:
        if self.rates is None or load.connections is not None:
            return {}
        return {"relative_rates": self.rates.to_contract(load.rate_fps, self._directions_of(load))}

    def _captured(self, load: Load) -> dict[str, int]:
        if self.capture is None:
            return {}
        fastest_fps = (
            load.rate_fps if self.rates is None else max(self.rates.by_direction(load.rate_fps).values())
        )
        return self.capture.request(
            replace(load, rate_fps=fastest_fps),
            frame_octets=self.frame_octets,
            directions=len(self._directions_of(load)),
        )

    def _request(self, load: Load, waits: Waits) -> dict[str, Any]:
        """The engine's document of the trial."""
        most_s = self._most_sending_s(load)
        sending_s = load.sending_s if most_s is None else most_s
        check_document_size(
            directions=len(self._directions_of(load)),
            tagged_frames=0 if self.delays is None else self.delays.tagged_frames,
            sending_s=sending_s,
        )
        document: dict[str, Any] = self.session.request(
            "trial",
            on_event=self._progress_callback(load, waits),
            answer_within_s=sending_s + waits.total_s + ANSWER_TIMEOUT_S,
            ended_within_s=sending_s + waits.total_s + ANSWER_TIMEOUT_S,
            trial=self._last_trial,
            **load.to_contract(),
            directions=list(self._directions_of(load)),
            **self._relative_rates(load),
            waits=waits.to_contract(),
            limits=self.limits.to_contract(),
            **({"stop_when_failed": True} if self.stops_when_failed else {}),
            **({} if most_s is None else {"clean": {"at_most_s": most_s}}),
            **({} if self.delays is None else {"delays": self.delays.to_contract()}),
            **self._captured(load),
        )
        kept = document.pop(KEPT_FRAMES, ())
        if self.capture is not None:
            self.capture.add(kept, trial=self._last_trial, load=load)
            self.capture.note_lost(kept, document, trial=self._last_trial)
        if self.check_dut is not None:
            self.check_dut()
        self._look_for_dut(load, document)
        if self.reopen is not None and any(each["code"] == PORT_STOPPED for each in document["reasons"]):
            self.reopen()
        return document


@dataclass(frozen=True, slots=True)
class _Unprepared:
    """A measurer's trials before which nothing is established, and of which none was made before."""

    measurer: EngineMeasurer

    def stored(self, load: Load) -> TrialResult | None:
        return None

    def offer(self, load: Load) -> TrialResult:
        return TrialResult.from_contract(self.measurer._make(load))
