# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: what one direction of a trial counted, and of each flow in it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.trial.clean_time import CleanCounts, read_clean_counts
from evenhand.trial.contract_values import finite, number, optional, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLatency:
    """Latency of the received frames of a flow; percentiles are at most 1.6 % too high. None where there is
    no such frame."""

    min_ns: float | None
    mean_ns: float | None
    max_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """What was counted of one flow, besides the counts of its class."""

    name: str
    loss_at_most: float | None
    """Its own limit; None: it is judged with all others without one."""
    duplicated_frames: int
    reordered_frames: int
    """Frames that came after a later one of the same flow."""
    late_frames: int
    remarked_frames: int
    """Received with another traffic class or flow label than the flow's."""
    latency: FlowLatency


def read_flow_result(document: Mapping[str, Any] | None) -> FlowResult | None:
    """ValueError, KeyError or TypeError if the document is outside the contract."""
    if document is None:
        return None
    latency = document["latency"]
    counts = ("duplicated_frames", "reordered_frames", "late_frames", "remarked_frames")
    times = ("min_ns", "mean_ns", "max_ns", "p50_ns", "p99_ns", "p999_ns")
    return FlowResult(
        name=str(document["name"]),
        loss_at_most=optional(document["loss_at_most"]),
        latency=FlowLatency(**{key: optional(latency[key]) for key in times}),
        **{key: whole(document, key) for key in counts},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFlow:
    """As it came to the tester."""

    frame: int
    """Its number."""
    source: str
    destination: str
    source_port: int
    destination_port: int


def read_seen_flow(document: Mapping[str, Any] | None) -> SeenFlow | None:
    """ValueError, KeyError or TypeError if the document is outside the contract."""
    if document is None:
        return None
    return SeenFlow(
        frame=whole(document, "frame"),
        source=str(ipaddress.ip_address(document["source"])),
        destination=str(ipaddress.ip_address(document["destination"])),
        source_port=whole(document, "source_port"),
        destination_port=whole(document, "destination_port"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderTally:
    """How well the sender of one direction kept its schedule."""

    overdue_frames: int
    max_overdue_us: float
    refusals: int
    largest_burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverTally:
    """How well the receiver of one direction kept its ring empty."""

    max_poll_gap_us: float
    gap_frames: int
    ring_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of the frames received in time, and of copies that came to another CPU than the first; None
    where there is no such frame."""

    count: int
    min_ns: float | None
    max_ns: float | None
    mean_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Delay of a frame less that of the one sent just before it, over all pairs that came (R8219-13); None
    where there is no pair."""

    pairs: int
    unseen_pairs: int
    """Pairs that came too far apart to be compared."""
    min_ns: float | None
    median_ns: float | None
    max_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Delays of the frames from a time on, where a trial was asked for them. In percentiles a lost frame is
    infinitely late (R8219-16)."""

    offered_frames: int
    lost_frames: int
    min_ns: float | None
    p50_ns: float
    p99_ns: float
    p999_ns: float
    pdv_ns: float
    """Packet delay variation: the 99.9th percentile less the minimum (R8219-12)."""
    pdv_resolution_ns: float | None
    """Nanoseconds by which that may be too high: the percentile's frame lies somewhere in its class of the
    histogram. None where lost frames make it infinite, and in runs of before it was recorded."""
    tagged_ns: tuple[float, ...]
    """Delays of the tagged frames in the order in which they were sent; infinite where one was lost
    (R8219-07). Without those that were left out."""
    variation: Variation | None
    left_out_frames: int = 0
    """Frames that came, but had left overdue or right behind such frames, or were read late: their delays are
    the tester's doing."""
    left_out_tags: int = 0
    """Tagged frames among these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Frames of one size and IP version in a mix, or of one flow, in one direction."""

    ip_version: int
    frame_size: int
    """Octets including the FCS, as sent."""
    offered_frames: int
    received_frames: int
    lost_frames: int
    flow: FlowResult | None = None
    """What else was counted, where the class is a flow."""
    clean: CleanCounts | None = None
    """Its frames in the trial's clean time, where that was asked for and the class is a flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDelay:
    """Delays of a fiftieth of the frames of a direction, in the order in which they were sent; None where no
    frame came."""

    frames: int
    mean_ns: float | None
    min_ns: float | None
    max_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilling:
    """Delays grew steadily under an even load: a queue of the DUT was filling."""

    slope: float
    """Growth of the delay per time of sending."""
    sustainable_fps: float
    """load / (1 + slope): what the DUT would forward without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFrame:
    """One that was offered and did not come."""

    sequence: int
    due_s: float
    """When it was to leave, in seconds of the sending phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionResult:
    """Counts of one direction. A frame is lost if it was offered and not received once, whole and in time
    (R2544-07)."""

    intended_frames: int
    offered_frames: int
    received_frames: int
    duplicated_frames: int
    reordered_frames: int
    late_frames: int
    corrupted_frames: int
    wrong_length_frames: int
    foreign_frames: int
    stale_frames: int
    neighbor_frames: int
    offered_fps: float
    forwarding_rate_fps: float
    sender: SenderTally
    receiver: ReceiverTally
    away_frames: int
    """Frames that came to a DUT on this machine while its CPU was away for longer than its ring lasts."""
    latency: Latency
    lost_by_tenth: tuple[int, ...]
    first_lost: tuple[int, ...]
    corrupted_by: Mapping[str, int] | None = None
    """Corrupted frames by the first check that each failed. None in runs of before it was recorded."""
    wrong_address_frames: int = 0
    """Undamaged frames with an address that is not that of the frame with their number; they are among the
    lost. The next two are the same of a UDP port and of the payload."""
    wrong_port_frames: int = 0
    wrong_payload_frames: int = 0
    remarked_frames: int = 0
    """Received frames with another DSCP, ECN or flow label than they were sent with."""
    returned_frames: int = 0
    """Foreign frames that this trial had sent from this very port."""
    wrong_time_frames: int = 0
    """Frames with the number of this trial, but a time before its start or in the future."""
    unrecorded_frames: int = 0
    """Frames that came in time, but the tester's record of a long trial had no room for them yet."""
    delays: Delays | None = None
    """Delays, only where the trial was asked for them."""
    classes: tuple[ClassCount, ...] = ()
    """Counts of each class of a mix; empty if all frames are alike."""
    delay_by_slice: tuple[SliceDelay, ...] = ()
    """Fifty; empty in runs of before they were recorded."""
    queue_filling: QueueFilling | None = None
    """Set only where a queue was filling; None in an INVALID trial, of bursts and where the load changed."""
    last_lost: LostFrame | None = None
    """Set only where the load changed; None if nothing was lost too."""
    mistranslated_frames: Mapping[str, int] | None = None
    """Sound frames that the DUT translated wrongly, by what is wrong; they are among the lost. None if it
    does not translate."""
    first_mistranslated: SeenFlow | None = None
    """The first of those with an address or port that is not theirs; None in runs of before it was recorded,
    too."""

    clean: CleanCounts | None = None
    """Frames in the trial's clean time, where that was asked for."""
    intended_fps: float | None = None
    """The direction's own intended load; None: that of the trial."""

    @property
    def lost_frames(self) -> int:
        return self.offered_frames - self.received_frames

    @property
    def loss_ratio(self) -> float:
        """1 - received/offered; 0..1. A valid trial offered all that was intended, so it is that of RFC
        9971."""
        return 1 - self.received_frames / self.offered_frames if self.offered_frames else 1.0


def read_direction(name: str, document: Mapping[str, Any]) -> DirectionResult:
    """ValueError, KeyError or TypeError if the document is outside the contract or contradicts itself."""
    sender, receiver, latency = document["sender"], document["receiver"], document["latency"]
    result = DirectionResult(
        intended_frames=whole(document, "intended_frames"),
        offered_frames=whole(document, "offered_frames"),
        received_frames=whole(document, "received_frames"),
        duplicated_frames=whole(document, "duplicated_frames"),
        reordered_frames=whole(document, "reordered_frames"),
        late_frames=whole(document, "late_frames"),
        corrupted_frames=whole(document, "corrupted_frames"),
        wrong_length_frames=whole(document, "wrong_length_frames"),
        foreign_frames=whole(document, "foreign_frames"),
        stale_frames=whole(document, "stale_frames"),
        neighbor_frames=whole(document, "neighbor_frames"),
        offered_fps=number(document["offered_fps"]),
        forwarding_rate_fps=number(document["forwarding_rate_fps"]),
        sender=SenderTally(
            overdue_frames=whole(sender, "overdue_frames"),
            max_overdue_us=number(sender["max_overdue_us"]),
            refusals=whole(sender, "refusals"),
            largest_burst=whole(sender, "largest_burst"),
        ),
        receiver=ReceiverTally(
            max_poll_gap_us=number(receiver["max_poll_gap_us"]),
            gap_frames=whole(receiver, "gap_frames"),
            ring_frames=whole(receiver, "ring_frames"),
        ),
        # Runs of before there was a witness of the host have none of it.
        away_frames=whole(document, "away_frames") if "away_frames" in document else 0,
        latency=Latency(
            count=whole(latency, "count"),
            min_ns=optional(latency["min_ns"]),
            max_ns=optional(latency["max_ns"]),
            mean_ns=optional(latency["mean_ns"]),
            p50_ns=optional(latency["p50_ns"]),
            p99_ns=optional(latency["p99_ns"]),
            p999_ns=optional(latency["p999_ns"]),
        ),
        corrupted_by=_corrupted(document.get("corrupted_by")),
        # Runs of before they were counted have none of these.
        **{key: whole(document, key) if key in document else 0 for key in _ALTERED},
        wrong_time_frames=whole(document, "wrong_time_frames") if "wrong_time_frames" in document else 0,
        unrecorded_frames=whole(document, "unrecorded_frames") if "unrecorded_frames" in document else 0,
        lost_by_tenth=tuple(int(number(n)) for n in document["lost_by_tenth"]),
        first_lost=tuple(int(number(n)) for n in document["first_lost"]),
        delays=_delays(document["delays"]) if "delays" in document else None,
        classes=tuple(_class(entry) for entry in document.get("classes", [])),
        delay_by_slice=tuple(_slice_delay(entry) for entry in document.get("delay_by_slice", ())),
        queue_filling=_queue_filling(document.get("queue_filling")),
        last_lost=_lost_frame(document.get("last_lost")),
        mistranslated_frames=_mistranslated(document.get("mistranslated_frames")),
        first_mistranslated=read_seen_flow(document.get("first_mistranslated")),
        clean=read_clean_counts(document.get("clean"), lost_frames=whole(document, "lost_frames")),
        intended_fps=optional(document.get("intended_fps")),
    )
    for key in ("offered_frames", "received_frames"):
        if result.classes and sum(getattr(entry, key) for entry in result.classes) != document[key]:
            raise ValueError(f"{name}: {key} of the classes do not add up to {document[key]}")
    if result.lost_frames < 0 or result.lost_frames != document["lost_frames"]:
        raise ValueError(
            f"{name}: lost {document['lost_frames']} of {result.offered_frames} offered, but"
            f" {result.received_frames} received"
        )
    return result


_ALTERED = (
    "wrong_address_frames",
    "wrong_port_frames",
    "wrong_payload_frames",
    "remarked_frames",
    "returned_frames",
)
CHECKS = (
    "header",
    "length",
    "fragment",
    "header_checksum",
    "udp_checksum",
    "destination_mac",
    "hop_limit",
    "number",
)
"""In the order in which the receiver looks: a corrupted frame counts for the first that it fails."""


def _corrupted(document: Mapping[str, Any] | None) -> Mapping[str, int] | None:
    return None if document is None else {key: whole(document, key) for key in CHECKS}


def _class(document: Mapping[str, Any]) -> ClassCount:
    keys = ("ip_version", "frame_size", "offered_frames", "received_frames", "lost_frames")
    counts = {key: whole(document, key) for key in keys}
    return ClassCount(
        **counts,
        flow=read_flow_result(document.get("flow")),
        clean=read_clean_counts(document.get("clean"), lost_frames=counts["lost_frames"]),
    )


def _slice_delay(entry: Sequence[Any]) -> SliceDelay:
    frames, mean_ns, min_ns, max_ns = entry
    return SliceDelay(
        frames=int(number(frames)),
        mean_ns=optional(mean_ns),
        min_ns=optional(min_ns),
        max_ns=optional(max_ns),
    )


def _queue_filling(document: Mapping[str, Any] | None) -> QueueFilling | None:
    if document is None:
        return None
    return QueueFilling(slope=number(document["slope"]), sustainable_fps=number(document["sustainable_fps"]))


def _mistranslated(document: Mapping[str, Any] | None) -> Mapping[str, int] | None:
    keys = ("no_checksum", "traffic_class", "address_or_port")
    return None if document is None else {key: whole(document, key) for key in keys}


def _lost_frame(document: Mapping[str, Any] | None) -> LostFrame | None:
    return (
        None
        if document is None
        else LostFrame(sequence=whole(document, "sequence"), due_s=number(document["due_s"]))
    )


def _delays(document: Mapping[str, Any]) -> Delays:
    variation = document["variation"]
    return Delays(
        offered_frames=whole(document, "offered_frames"),
        lost_frames=whole(document, "lost_frames"),
        min_ns=optional(document["min_ns"]),
        p50_ns=finite(document["p50_ns"]),
        p99_ns=finite(document["p99_ns"]),
        p999_ns=finite(document["p999_ns"]),
        pdv_ns=finite(document["pdv_ns"]),
        pdv_resolution_ns=optional(document.get("pdv_resolution_ns")),
        tagged_ns=tuple(finite(delay) for _, delay in document["tagged"]),
        variation=None
        if variation is None
        else Variation(
            pairs=whole(variation, "pairs"),
            unseen_pairs=whole(variation, "unseen_pairs"),
            min_ns=optional(variation["min_ns"]),
            median_ns=optional(variation["median_ns"]),
            max_ns=optional(variation["max_ns"]),
        ),
        **{
            key: whole(document, key) if key in document else 0
            for key in ("left_out_frames", "left_out_tags")
        },
    )
