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
    is_loss_known: bool = True
    """What is lost of one of several flows of a port is known once they have ended: until then some of its
    frames are under way."""
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


def counts_together(parts: Sequence[FlowCounts]) -> FlowCounts:
    """Those of a flow whose frames are of several flows of the plan."""
    found = parts[0]
    for each in parts[1:]:
        tx_fps, rx_fps = found.tx_fps + each.tx_fps, found.rx_fps + each.rx_fps
        found = replace(each.after(found), tx_fps=tx_fps, rx_fps=rx_fps)
    return found


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
        self, frames: int, received: Sequence[int], before: Sequence[FlowCounts], passed_s: float
    ) -> tuple[FlowCounts, ...]:
        """What is known of each while the trial runs. The sequence says how many of so many frames of all
        each has sent; `received` has what came of each."""
        if not self.cycle:
            return ()
        cycles, rest = divmod(frames, len(self.cycle))
        whole, begun = Counter(self.cycle), Counter(self.cycle[:rest])
        counts = []
        for place, octets in enumerate(self.octets):
            last = before[place] if before else FlowCounts()
            came = received[place] if received else 0
            # The two counts are not of the same moment: what has come was sent.
            sent = max(cycles * whole[place] + begun[place], came)
            counts.append(
                FlowCounts(
                    frames_tx=sent,
                    frames_rx=came,
                    octets_tx=sent * octets,
                    octets_rx=came * octets,
                    tx_fps=max(0.0, (sent - last.frames_tx) / passed_s),
                    rx_fps=max(0.0, (came - last.frames_rx) / passed_s),
                    is_loss_known=False,
                )
            )
        return tuple(counts)
