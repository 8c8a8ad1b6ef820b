# SPDX-License-Identifier: Apache-2.0
"""Station 7: a simulated device whose limit is known, for tests of searches, for `bench/search_time.py`, and
for trying out goals."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evenhand.plan import Direction
from evenhand.trial.direction import CHECKS
from evenhand.trial.load import Load
from evenhand.trial.measurer import DelayWish
from evenhand.trial.result import CONTRACT, TrialResult, Verdict

CERTAIN_AFTER_S = 2.16
"""Seconds from a frame's loss to the end of a sending that it stops: the residual wait, the longest lateness,
and the engine's notice."""

LEAST_SLOPE = 0.002
"""Least slope of delays that the engine takes for a queue that fills."""


@dataclass(slots=True, kw_only=True)
class SimulatedMeasurer:
    """Forwards up to `limit_fps` per direction and loses the rest; as a tester it offers up to
    `tester_ceiling_fps`.

    The same seed gives the same results.
    """

    limit_fps: float
    frame_size: int = 64
    directions: tuple[Direction, ...] = ("forward", "reverse")
    loss_ratio_limit: float = 0.0
    buffer_frames: float = 0.0
    """Frames per direction that the device holds back: short trials pass above its limit."""
    recovery_s: float = 0.0
    """Seconds for which it loses every frame after an overload, however low the load has become."""
    knee_fps: float | None = None
    """Above this load the device begins to lose, ever more of what is added, until it forwards `limit_fps`.
    None: a hard limit."""
    floor_loss_ratio: float = 0.0
    """It loses this share of every trial, and one frame at least: there is no load without loss."""
    table_connections: int | None = None
    """It keeps state, and has room for so many connections: what would open another one is lost. None: room
    for all."""
    inverted_fps: tuple[float, float] | None = None
    """From the first load up to below the second it loses a hundredth, although it forwards more than that:
    loss inversion."""
    noise_probability: float = 0.0
    """Chance that a trial below the limit loses one frame nevertheless."""
    invalid_trials: Iterable[int] = ()
    """Numbers of the trials that come out INVALID."""
    invalid_probability: float = 0.0
    is_load_offered: bool = True
    """What spoils those trials: a moment of the host, or that the load was not offered."""
    tester_ceiling_fps: float = float("inf")
    delays: DelayWish | None = None
    """What trials record of delays in addition to the histogram. Delays rise evenly from 10 us to 20 us over
    the frames that count."""
    stops_when_failed: bool = False
    """See `EngineMeasurer`: a trial ends when its loss is certain."""
    wait_s: float = 0.0
    """Time that a trial takes in addition to sending; for `elapsed_s`."""
    seed: int = 0
    trials: list[TrialResult] = field(default_factory=list)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.invalid_trials = frozenset(self.invalid_trials)

    @property
    def elapsed_s(self) -> float:
        """How long all trials would have taken."""
        return sum(trial.sent_s + self.wait_s for trial in self.trials)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`; no time passes."""
        return self.offer(Load(rate_fps=rate_fps, duration_s=duration_s))

    def stop_no_trial_early(self) -> None:
        """See `EarlyStopper`."""
        self.stops_when_failed = False

    def stored(self, load: Load) -> TrialResult | None:
        """See `LoadMeasurer.stored`: a simulation has none."""
        return None

    def offer(self, load: Load) -> TrialResult:
        """See `LoadMeasurer.offer`. Bursts fill the buffer, and the silence between them drains it."""
        number = len(self.trials) + 1
        rate_fps, duration_s, asked_s = load.rate_fps, load.sending_s, load.sending_s
        intended = max(1, frames_of(load))
        is_even = load.burst is None and load.then is None
        if not is_even:
            rate_fps = intended / duration_s
        offered = (
            min(intended, int(self.tester_ceiling_fps * duration_s))
            if self.tester_ceiling_fps < rate_fps
            else intended
        )
        capacity = self._forwarding_rate_fps(rate_fps) * duration_s + self.buffer_frames
        # Rates are compared, not rounded counts, so that the limit is exact in short trials too.
        received = offered if rate_fps * duration_s <= capacity else min(offered - 1, int(capacity))
        if load.burst is not None:
            received = min(received, offered - lost_of_bursts(load, self.limit_fps, self.buffer_frames))
        last_lost: dict[str, Any] | None = None
        if load.then is not None and load.rate_fps > self.limit_fps:
            received = min(received, offered - self._lost_until_recovered(load))
            last_lost = self._last_lost(load)
        if self.table_connections is not None and load.connections is not None:
            received = min(received, self.table_connections)
        if self.floor_loss_ratio > 0:
            received = min(received, offered - max(1, round(offered * self.floor_loss_ratio)))
        if self.inverted_fps is not None and self.inverted_fps[0] <= rate_fps < self.inverted_fps[1]:
            received = min(received, offered - max(1, offered // 100))
        if received == offered > 0 and self._random.random() < self.noise_probability:
            received -= 1
        is_hit = self._random.random() < self.invalid_probability or number in frozenset(self.invalid_trials)
        reasons: list[dict[str, str]] = []
        if offered != intended:
            verdict = Verdict.INVALID
            reasons.append({"code": "offered_load", "text": f"offered {offered} of {intended} frames"})
        elif is_hit:
            verdict = Verdict.INVALID
            code = "sender_overdue" if self.is_load_offered else "offered_load"
            reasons.append({"code": code, "text": "simulated lapse of the tester"})
        elif 1 - received / intended > self.loss_ratio_limit:
            verdict = Verdict.FAIL
            reasons.append(
                {"code": "loss", "text": f"lost {intended - received} of {intended} frames in each direction"}
            )
        else:
            verdict = Verdict.PASS
        stopped_early_s = None
        if self.stops_when_failed and verdict is Verdict.FAIL and is_even:
            sending_s = self._lost_after_s(rate_fps, duration_s, intended - received) + CERTAIN_AFTER_S
            if sending_s < duration_s:
                # What is lost until then in proportion, and no less than what made it certain.
                allowed = math.floor(self.loss_ratio_limit * intended)
                lost = max(allowed + 1, round((intended - received) * sending_s / duration_s))
                intended = offered = round(rate_fps * sending_s)
                received, duration_s, stopped_early_s = max(0, offered - lost), sending_s, sending_s
        direction = make_direction_document(
            intended=intended,
            offered=offered,
            received=max(received, 0),
            duration_s=duration_s,
            rate_fps=rate_fps,
        )
        backlog_fps = rate_fps - self._forwarding_rate_fps(rate_fps)
        # As the engine judges: what was lost ends the growth, and an eighth of the trial is the least.
        grows_s = min(duration_s, self.buffer_frames / backlog_fps) if backlog_fps > 0 else 0.0
        slope = backlog_fps / max(1e-9, rate_fps - backlog_fps)
        if (
            is_even
            and verdict is not Verdict.INVALID
            and self.knee_fps is None
            and grows_s >= duration_s / 8
            and slope >= LEAST_SLOPE
        ):
            direction["queue_filling"] = {"slope": slope, "sustainable_fps": rate_fps / (1 + slope)}
        if self.delays is not None:
            first = math.ceil(self.delays.from_s * rate_fps)
            later = max(0, offered - first)
            lost = min(offered - max(received, 0), later)
            direction["delays"] = make_delays_document(self.delays, first=first, offered=later, lost=lost)
        if load.then is not None:
            direction["last_lost"] = last_lost
        document = make_trial_document(
            trial=number,
            verdict=verdict,
            reasons=reasons,
            frame_size=self.frame_size,
            rate_fps=rate_fps,
            duration_s=duration_s,
            loss_ratio_limit=self.loss_ratio_limit,
            directions=dict.fromkeys(self.directions, direction),
        )
        if load.burst is not None:
            document["burst"] = {
                "frames": load.burst.frames,
                "interval_s": load.burst.interval_s,
                "rate_fps": load.rate_fps,
            }
        if load.then is not None:
            document["then"] = {
                "before_fps": load.rate_fps,
                "rate_fps": load.then.rate_fps,
                "duration_s": load.then.duration_s,
            }
        if stopped_early_s is not None:
            document |= {"intended_duration_s": asked_s, "stopped_early_s": stopped_early_s}
        result = TrialResult.from_contract(document)
        self.trials.append(result)
        return result

    def _lost_until_recovered(self, load: Load) -> int:
        assert load.then is not None
        overload = max(0.0, (load.rate_fps - self.limit_fps) * load.duration_s - self.buffer_frames)
        return max(1, int(overload)) + int(min(self.recovery_s, load.then.duration_s) * load.then.rate_fps)

    def _last_lost(self, load: Load) -> dict[str, Any]:
        assert load.then is not None
        first = round(load.rate_fps * load.duration_s)
        later = math.ceil(min(self.recovery_s, load.then.duration_s) * load.then.rate_fps) - 1
        if later < 0:
            return {"sequence": first - 1, "due_s": (first - 1) / load.rate_fps}
        return {"sequence": first + later, "due_s": load.duration_s + later / load.then.rate_fps}

    def _lost_after_s(self, rate_fps: float, duration_s: float, lost: int) -> float:
        """When more is lost than the whole trial may lose. A buffer fills first; a single frame is lost
        half-way."""
        allowed = self.loss_ratio_limit * rate_fps * duration_s
        lost_fps = rate_fps - self._forwarding_rate_fps(rate_fps)
        after_s = [duration_s / 2 if lost == 1 else duration_s * (allowed + 1) / lost]
        if lost_fps > 0:
            after_s.append((self.buffer_frames + allowed + 1) / lost_fps)
        return max(after_s) if self.buffer_frames else min(after_s)

    def _forwarding_rate_fps(self, rate_fps: float) -> float:
        """The forwarding rate of a device without buffers."""
        if self.knee_fps is None or rate_fps <= self.knee_fps:
            return min(rate_fps, self.limit_fps)
        # A parabola that leaves the diagonal at the knee, and is level where it has come to the limit.
        span_fps, beyond_fps = self.limit_fps - self.knee_fps, rate_fps - self.knee_fps
        return self.limit_fps if beyond_fps >= 2 * span_fps else rate_fps - beyond_fps**2 / (4 * span_fps)


def frames_of(load: Load) -> int:
    """Frames of one direction, as the engine counts them."""
    if load.burst is not None:
        return max(1, int(load.duration_s / load.burst.interval_s * (1 + 1e-9))) * load.burst.frames
    return round(load.rate_fps * load.duration_s) + (
        0 if load.then is None else round(load.then.rate_fps * load.then.duration_s)
    )


def lost_of_bursts(load: Load, limit_fps: float, buffer_frames: float) -> int:
    """What a buffer of that depth, drained at that rate, loses of the bursts."""
    assert load.burst is not None
    count = frames_of(load) // load.burst.frames
    lasts_s = load.burst.frames / load.rate_fps
    held = lost = 0.0
    for number in range(count):
        before = held
        held += max(0.0, load.rate_fps - limit_fps) * lasts_s
        lost_now = max(0.0, held - buffer_frames)
        held = max(0.0, held - lost_now - limit_fps * max(0.0, load.burst.interval_s - lasts_s))
        lost += lost_now
        if held == before:  # all further bursts do the same
            lost += lost_now * (count - number - 1)
            break
    return math.ceil(lost - 1e-6)


def loss_ratio_of(offered: int, received: int) -> float:
    """Share of the offered frames that were lost, as the engine counts it: what was not offered is no loss.
    Without any offered frame it is 1."""
    return 1 - received / offered if offered else 1.0


def make_direction_document(
    *, intended: int, offered: int, received: int, duration_s: float, rate_fps: float
) -> dict[str, Any]:
    """One direction of a `trial` response with these counts and a tester without fault."""
    latency_ns = None if received == 0 else 10_000.0
    return {
        "intended_frames": intended,
        "offered_frames": offered,
        "offered_fps": offered / intended * rate_fps,
        "received_frames": received,
        "lost_frames": offered - received,
        **dict.fromkeys(
            (
                "duplicated_frames",
                "reordered_frames",
                "late_frames",
                "late_by_gap_frames",
                "corrupted_frames",
            ),
            0,
        ),
        "corrupted_by": dict.fromkeys(CHECKS, 0),
        **dict.fromkeys(
            (
                "wrong_length_frames",
                "wrong_address_frames",
                "wrong_port_frames",
                "wrong_payload_frames",
                "remarked_frames",
                "foreign_frames",
                "returned_frames",
                "stale_frames",
                "neighbor_frames",
            ),
            0,
        ),
        "loss_ratio": loss_ratio_of(offered, received),
        "forwarding_rate_fps": rate_fps * received / intended,
        "sender": {"overdue_frames": 0, "max_overdue_us": 1.0, "refusals": 0, "largest_burst": 1},
        "receiver": {"max_poll_gap_us": 5.0, "gap_frames": 0, "ring_frames": 2048},
        "away_frames": 0,
        "latency": {
            "count": received,
            **dict.fromkeys(("min_ns", "max_ns", "mean_ns", "p50_ns", "p99_ns", "p999_ns"), latency_ns),
            "buckets": [[latency_ns, received]] if received else [],
        },
        "lost_by_tenth": [],
        "first_lost": [],
    }


def make_delays_document(wish: DelayWish, *, first: int, offered: int, lost: int) -> dict[str, Any]:
    """Delays that rise evenly from 10 us to 20 us; the last frames are lost."""
    received = offered - lost

    def delay_ns(n: int) -> float | None:
        return 10_000.0 + 10_000.0 * n / max(1, offered - 1) if n < received else None

    def percentile_ns(numerator: int, denominator: int) -> float | None:
        return delay_ns(max(1, -(-offered * numerator // denominator)) - 1)

    step = max(1, offered // max(1, wish.tagged_frames))
    p999_ns = percentile_ns(999, 1000)
    rise_ns = 10_000.0 / max(1, offered - 1)
    variation = {
        "pairs": max(0, received - 1),
        "unseen_pairs": 0,
        **dict.fromkeys(("min_ns", "median_ns", "max_ns"), rise_ns if received > 1 else None),
    }
    return {
        "first_frame": first,
        "offered_frames": offered,
        "lost_frames": lost,
        "min_ns": delay_ns(0),
        "p50_ns": percentile_ns(1, 2),
        "p99_ns": percentile_ns(99, 100),
        "p999_ns": p999_ns,
        "pdv_ns": None if p999_ns is None else p999_ns - 10_000.0,
        "pdv_resolution_ns": None if p999_ns is None else 8.0,
        "tagged": [[first + n * step, delay_ns(n * step)] for n in range(wish.tagged_frames)],
        "variation": variation if wish.has_variation else None,
    }


def make_trial_document(
    *,
    trial: int,
    verdict: Verdict,
    reasons: list[dict[str, str]],
    frame_size: int,
    rate_fps: float,
    duration_s: float,
    loss_ratio_limit: float,
    directions: dict[Direction, dict[str, Any]],
) -> dict[str, Any]:
    """A `trial` response as contract/reply.schema.json wants it."""
    counters = {
        **dict.fromkeys(("received_frames", "transmitted_frames", "missed_frames"), 0),
        **dict.fromkeys(("receive_errors", "transmit_errors", "no_buffer_frames"), 0),
        **dict.fromkeys(("link_changes", "pause_frames", "dropped_answers"), 0),
        "link_up": True,
        "is_read": True,
    }
    port = {"before": counters, "after": counters}
    offered = sum(direction["offered_frames"] for direction in directions.values())
    received = sum(direction["received_frames"] for direction in directions.values())
    return {
        "id": trial,
        "response": "trial",
        "contract": CONTRACT,
        "trial": trial,
        "verdict": str(verdict),
        "reasons": reasons,
        "started_at": "2026-01-01T00:00:00Z",
        "frame_size": frame_size,
        "intended_fps": rate_fps,
        "intended_duration_s": duration_s,
        "loss_ratio": loss_ratio_of(offered, received),
        "limits": {"loss_ratio": loss_ratio_limit},
        "deviations": [],
        "phases": [{"phase": "sending", "start_s": 0, "seconds": duration_s}],
        "directions": directions,
        "ports": {"left": port, "right": port},
        "host": {"tester": [{"cpu": 1, "stolen_us": 0.0, "waited_us": 0.0}], "dut": None},
        "clock": {"ticks_per_second": 1e9, "error_ppm": 0.0, "steered_error_ppm": None},
    }
