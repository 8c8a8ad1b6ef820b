# SPDX-License-Identifier: Apache-2.0
"""OTG: what is known of a flow, while it is sent and when it has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.trial import ClassCount


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowCounts:
    """What is known of one flow now."""

    frames_tx: int = 0
    frames_rx: int = 0
    octets_tx: int = 0
    octets_rx: int = 0
    """With the FCS; of a mix of sizes exact once the flow has ended."""
    tx_fps: float = 0.0
    """Over the time since the counts before; 0 once the flow has ended."""
    rx_fps: float = 0.0
    loss_percent: float = 0.0
    is_received_known: bool = True
    """What came of one of several flows of a port, and when, is known once they have ended."""
    min_ns: float | None = None
    mean_ns: float | None = None
    max_ns: float | None = None
    is_started: bool = False
    is_paused: bool = False

    def after(self, before: FlowCounts | None) -> FlowCounts:
        """With what was counted before a pause."""
        if before is None or not before.frames_tx:
            return self
        sent, received = self.frames_tx + before.frames_tx, self.frames_rx + before.frames_rx
        lows = [each for each in (self.min_ns, before.min_ns) if each is not None]
        highs = [each for each in (self.max_ns, before.max_ns) if each is not None]
        parts = [(each.mean_ns, each.frames_rx) for each in (self, before) if each.mean_ns is not None]
        weight = sum(count for _, count in parts)
        return replace(
            self,
            frames_tx=sent,
            frames_rx=received,
            octets_tx=self.octets_tx + before.octets_tx,
            octets_rx=self.octets_rx + before.octets_rx,
            loss_percent=(self.loss_percent * self.frames_tx + before.loss_percent * before.frames_tx) / sent,
            min_ns=min(lows, default=None),
            max_ns=max(highs, default=None),
            mean_ns=sum((mean or 0.0) * count for mean, count in parts) / weight if weight else None,
        )


def counts_of_class(counted: ClassCount) -> FlowCounts:
    """Those of a flow of the plan whose trial has ended."""
    flow = counted.flow
    assert flow is not None
    return FlowCounts(
        frames_tx=counted.offered_frames,
        frames_rx=counted.received_frames,
        octets_tx=counted.offered_frames * counted.frame_size,
        octets_rx=counted.received_frames * counted.frame_size,
        loss_percent=100 * counted.lost_frames / counted.offered_frames if counted.offered_frames else 0.0,
        min_ns=flow.latency.min_ns,
        mean_ns=flow.latency.mean_ns,
        max_ns=flow.latency.max_ns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlows:
    """Which flow each frame of a direction is of, and the octets of each flow's frames."""

    cycle: tuple[int, ...]
    octets: tuple[int, ...]

    def after_so_many(
        self, frames: int, before: Sequence[FlowCounts], passed_s: float
    ) -> tuple[FlowCounts, ...]:
        """What each has sent while the trial runs, of so many frames of all: the sequence says it."""
        if not self.cycle:
            return ()
        cycles, rest = divmod(frames, len(self.cycle))
        whole, begun = Counter(self.cycle), Counter(self.cycle[:rest])
        counts = []
        for place, octets in enumerate(self.octets):
            sent = cycles * whole[place] + begun[place]
            sent_before = before[place].frames_tx if before else 0
            counts.append(
                FlowCounts(
                    frames_tx=sent,
                    octets_tx=sent * octets,
                    tx_fps=max(0.0, (sent - sent_before) / passed_s),
                    is_received_known=False,
                )
            )
        return tuple(counts)
