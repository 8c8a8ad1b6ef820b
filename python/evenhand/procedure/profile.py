# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a reader of a result must know: the traffic, the tester's own lapses, the deviations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.rates import Line
from evenhand.base.units import format_bit_rate, format_count, format_duration, format_line_rate, format_ratio
from evenhand.plan import (
    SIDES,
    AddressPlan,
    Direction,
    FrameSize,
    HostMacs,
    PortMacs,
    SideName,
    Stream,
    Traffic,
    arrival_lines,
    describe_frames,
    describe_mix,
    describe_size,
    in_tunnels,
    ip_versions,
    line_of,
    mix_lines,
    on_one_line,
    sending_side,
    unlike_line_rates,
    whole_octets,
)
from evenhand.procedure.connection_trials import ConnectionWish
from evenhand.procedure.one_pair import OMISSION, OnePair
from evenhand.search import FULL_LENGTH_S, SearchTrial
from evenhand.trial import (
    Deviation,
    DirectionRates,
    LearningResult,
    TimeLeftOut,
    TrialResult,
    Verdict,
    causes_of_invalid,
    describe_causes,
)

if TYPE_CHECKING:
    from evenhand.rig import KnownCeiling, Tunnel, Vlans


SLOWER_LINE = "more than the slower one carries is lost in the direction to it, however fast the DUT is."
ONE_ARMED = "One-armed: both sides are on one port, whose line carries both directions."


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What stays the same over a search, and what a reader of the number must know (R2544-23)."""

    plan: AddressPlan
    frame_size: FrameSize
    """Octets including the FCS, or a sequence of sizes."""
    seed: int
    directions: tuple[Direction, ...]
    line_rate_bps: float | None = None
    theoretical_fps: int | None = None
    """Maximum theoretical frame rate per direction; None if no line rate is known."""
    line_rates_bps: Mapping[SideName, float | None] = field(default_factory=dict)
    """By side, None where it is not known; empty: `line_rate_bps` is that of both."""
    sendable_fps: int | None = None
    """The same of the ports that send alone: what a slower port at the other end does not receive may be
    offered on purpose. None: as `theoretical_fps`."""
    host_macs: HostMacs = "port"
    """Whose MACs the hosts on the link have (R4814-06)."""
    macs: Mapping[SideName, PortMacs] | None = None
    """MACs of tester and DUT on both links; None before they are known."""
    one_pair: OnePair | None = None
    """The search with one address pair that was made before this one (SEED-02); None if there is none."""
    dut: Mapping[str, str | None] | None = None
    """Facts of the DUT as the testbed file has them, None for those that it does not state (SEED-84); None
    for a DUT of our own."""
    vlans: Mapping[SideName, Vlans] = field(default_factory=dict)
    """Tags of all frames on each link, outermost first; a frame size counts those of the side that sends."""
    tunnels: Mapping[SideName, Tunnel] = field(default_factory=dict)
    """What the frames of a side are in, for the sides that have a tunnel; a frame size does not count it."""
    one_armed: bool = False
    """Whether both sides are on one port."""
    learning: LearningResult | None = None
    """What the DUT learnt before the first trial; None if it was not made to."""
    ceiling: KnownCeiling | None = None
    """The tester's own, by which a search chose its maximum, or that a maximum is above of (MLR-14); None if
    none is known."""
    established: ConnectionWish | None = None
    """The connections that are established before each trial, to which its frames belong (R9693-03); None if
    none are."""

    rates: DirectionRates | None = None
    """How the loads of the directions differ; None: they do not."""

    def line_words(self, rate_fps: float) -> str:
        """` (50 % of the line rate, 5 Gbit/s on the line)`: with preamble and gap. Empty where the ports do
        not know their line rate."""
        if self.theoretical_fps is None or self.line_rate_bps is None:
            return ""
        shares = dict.fromkeys(self.line_share(direction, rate_fps) for direction in self.directions)
        return f" ({' and '.join(shares)}, {format_bit_rate(self._line.bits_of(rate_fps))} on the line)"

    def line_share(self, direction: Direction, rate_fps: float) -> str:
        """`50 % of the line rate`: of the port that sends this direction, and of ports of unlike speed with
        its name. Empty where the ports do not know their line rate."""
        most_fps = self._line.of(direction).most_fps
        if most_fps is None:
            return ""
        which = f"{sending_side(direction)}'s" if self.has_unlike_lines else "the"
        return f"{format_ratio(rate_fps / most_fps)} of {which} line rate"

    @property
    def _line(self) -> Line:
        return line_of(self.streams, self.line_rates_bps or dict.fromkeys(SIDES, self.line_rate_bps))

    @property
    def has_unlike_lines(self) -> bool:
        """Whether both line rates are known, and are not the same."""
        rates = set(self.line_rates_bps.values())
        return len(rates) > 1 and None not in rates

    @property
    def line_rate_words(self) -> str:
        """`10 Gbps`; of ports of unlike speed `10 Gbps left, 1 Gbps right`. Empty if none is known."""
        if self.has_unlike_lines:
            return unlike_line_rates(self.line_rates_bps)
        return "" if self.line_rate_bps is None else format_line_rate(self.line_rate_bps)

    def total_fps(self, rate_fps: float) -> float:
        """Frames per second of all directions at this load."""
        if self.rates is None:
            return len(self.directions) * rate_fps
        return sum(self.rates.fps_of(direction, rate_fps) for direction in self.directions)

    @property
    def protocol(self) -> str:
        return "UDP over " + " and ".join(f"IPv{version}" for version in sorted(ip_versions(self.streams)))

    @property
    def frames(self) -> str:
        """`64 octet frames`, or the sequence of their sizes."""
        return describe_frames(self.frame_size)

    @property
    def octets(self) -> str:
        """`64 octets`, or the same."""
        return describe_size(self.frame_size)

    @property
    def mix(self) -> dict[str, Any] | None:
        """Sizes and IP versions of the frames, as a document; None if all are alike."""
        return describe_mix(self.plan, self.frame_size)

    @property
    def traffic(self) -> Traffic:
        """What the frames really carry; of a mix of IP versions those of the first plan."""
        return Traffic(plan=self.plan, directions=self.directions)

    @property
    def traffics(self) -> tuple[Traffic, ...]:
        """The same of both IP versions, if there are two."""
        return tuple(Traffic(plan=plan, directions=self.directions) for plan in self.plan.plans)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """What is sent and what arrives."""
        streams = self.plan.streams(self.frame_size, self.directions, tag_octets=rig.tag_octets(self.vlans))
        tunnelled = in_tunnels(streams, rig.tunnel_octets(self.tunnels))
        return on_one_line(tunnelled, one_armed=self.one_armed)

    @property
    def address_words(self) -> str:
        """`1 address pair`, `65,534 x 65,534 addresses`: as they occur, not as the plan has them."""
        each = [traffic.address_words for traffic in self.traffics]
        return (
            each[0]
            if len(each) == 1
            else " and ".join(
                f"{plan.version_words} {text}" for plan, text in zip(self.plan.plans, each, strict=True)
            )
        )

    @property
    def sent_lines(self) -> list[str]:
        """What a reader must know of the frames: addresses, ports, seed, gateways, routes, MACs (SEED-49)."""
        lines = [
            line
            for t in self.traffics
            for line in t.lines(seed=self.seed, macs=self.macs, host_macs=self.host_macs)
        ]
        return [
            *lines,
            *([] if self.established is None else [self.established.line]),
            *([] if self.rates is None else [f"Loads of the directions: {self.rates}."]),
            *arrival_lines(self.streams),
            *mix_lines(self.plan, self.frame_size),
            *self.vlan_lines,
            *([f"Line rates: {self.line_rate_words}; {SLOWER_LINE}"] if self.has_unlike_lines else []),
            *self.tunnel_lines,
            *([ONE_ARMED] if self.one_armed else []),
        ]

    @property
    def vlan_lines(self) -> list[str]:
        """A sentence for the tags, if there are any."""
        if not any(self.vlans.values()):
            return []
        links = ", ".join(f"{side} {rig.show_vlans(vlans)}" for side, vlans in self.vlans.items())
        return [f"Tags: {links}; the frame size includes those of the sending side."]

    @property
    def tunnel_lines(self) -> list[str]:
        """A sentence for each tunnel."""
        return [
            f"Tunnel: {side} {tunnel.words}; the frame size does not include its {tunnel.octets} octets."
            for side, tunnel in self.tunnels.items()
        ]

    @property
    def link_line(self) -> str:
        """The part of it that holds for frames of any kind."""
        return self.traffic.link_line(macs=self.macs, host_macs=self.host_macs)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of the whole, in addition to those of single trials."""
        learnt = sum(stream.arrives.destinations.address_count for stream in self.streams)
        found = learning_deviations(self.learning, learnt) if self.plan.is_direct else []
        return [*found, *address_deviations(self.plan)]

    def to_document(self) -> dict[str, Any]:
        return {
            "plan": self.plan.title,
            "figure": self.plan.figure,
            "is_derived": self.plan.is_derived,
            "hosts": self.traffic.hosts.to_document(),
            "networks": self.traffic.networks.to_document(),
            "traffic": self.traffic.to_document(macs=self.macs, host_macs=self.host_macs),
            "protocol": self.protocol,
            "frame_size": whole_octets(self.frame_size),
            "mix": self.mix,
            "seed": self.seed,
            "directions": list(self.directions),
            "host_macs": self.host_macs,
            "vlans": {side: list(vlans) for side, vlans in self.vlans.items()},
            **(
                {"tunnels": {side: tunnel.to_contract() for side, tunnel in self.tunnels.items()}}
                if self.tunnels
                else {}
            ),
            "learning": None if self.learning is None else self.learning.to_document(),
            "line_rate_bps": self.line_rate_bps,
            **(
                {"line_rates": {f"{side}_bps": rate for side, rate in self.line_rates_bps.items()}}
                if self.has_unlike_lines
                else {}
            ),
            "theoretical_fps_per_direction": self.theoretical_fps,
            "ceiling": None if self.ceiling is None else self.ceiling.to_document(),
            **({} if self.established is None else {"established": self.established.to_document()}),
            **({} if self.rates is None else {"rates": self.rates.to_document()}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstTesterFigures:
    """The worst that the tester showed of itself in the valid trials: what a reader may hold against the
    result.

    Where no trial was valid these are the figures of the INVALID ones, so that a reader sees by how much the
    tester failed.
    """

    is_of_invalid_trials: bool
    """No trial was valid, although there were some."""
    max_overdue_us: float | None
    """None, like the others, if there was no trial at all."""
    max_poll_gap_us: float | None
    missed_frames: int | None
    max_clock_error_ppm: float | None
    max_offered_error: float | None
    """Largest relative distance of offered from intended load."""
    longest_absence_us: float | None
    """Longest time for which this machine took a CPU away from the DUT; None if the DUT is not on this
    machine."""
    invalid_reasons: Mapping[str, int]
    """Codes of what made trials INVALID, and how many trials each spoiled; none if all were valid."""

    @classmethod
    def of(cls, trials: Iterable[TrialResult]) -> WorstTesterFigures:
        made = list(trials)
        valid = [trial for trial in made if trial.is_valid]
        counted = valid or made
        directions = [direction for trial in counted for direction in trial.directions.values()]
        return cls(
            is_of_invalid_trials=bool(made) and not valid,
            max_overdue_us=max((d.sender.max_overdue_us for d in directions), default=None),
            max_poll_gap_us=max((d.receiver.max_poll_gap_us for d in directions), default=None),
            missed_frames=sum(trial.missed_frames for trial in counted) if counted else None,
            max_clock_error_ppm=max((abs(trial.clock_error_ppm) for trial in counted), default=None),
            max_offered_error=max(
                (
                    abs(d.offered_fps / (d.intended_fps or trial.intended_fps) - 1)
                    for trial in counted
                    for d in trial.directions.values()
                ),
                default=None,
            ),
            longest_absence_us=max(
                (cpu.longest_us for trial in counted for cpu in trial.watched_cpus or ()), default=None
            ),
            invalid_reasons=causes_of_invalid(made),
        )

    def __str__(self) -> str:
        known = (
            self.max_overdue_us,
            self.max_poll_gap_us,
            self.missed_frames,
            self.max_offered_error,
            self.max_clock_error_ppm,
        )
        if None in known:
            return "there were no trials, so there are no figures"
        overdue_us, gap_us, missed_frames, offered_error, clock_ppm = (value or 0 for value in known)
        away = ""
        if self.longest_absence_us is not None:
            away = (
                "; this machine took the DUT's CPU away for at most"
                f" {format_duration(self.longest_absence_us / 1000000.0)}"
            )
        words = (
            f"latest frame {format_duration(overdue_us / 1000000.0)} after its time, longest poll"
            f" gap {format_duration(gap_us / 1000000.0)}, {format_count(missed_frames)} frames"
            " missed by the tester's ports, offered load off by at most"
            f" {format_ratio(offered_error)}, clock off by {clock_ppm:.1f} ppm{away}"
        )
        if not self.is_of_invalid_trials:
            return words
        return f"no trial was valid ({describe_causes(self.invalid_reasons)}); in the INVALID ones: {words}"

    def to_document(self) -> dict[str, Any]:
        return {
            "is_of_invalid_trials": self.is_of_invalid_trials,
            "invalid_reasons": dict(self.invalid_reasons),
            "max_overdue_us": self.max_overdue_us,
            "max_poll_gap_us": self.max_poll_gap_us,
            "missed_frames": self.missed_frames,
            "max_clock_error_ppm": self.max_clock_error_ppm,
            "max_offered_error": self.max_offered_error,
            "longest_absence_us": self.longest_absence_us,
        }


def burst_rate_without_line_rate(profile: Profile) -> str:
    """Why bursts are not at minimum gap, where the ports do not know what that is."""
    source = "was given by the user" if profile.ceiling is None else "is the tester's own ceiling"
    return f"the ports do not know their line rate; the rate of the bursts {source}"


def collect_deviations(trials: Sequence[SearchTrial], profile: Profile) -> list[Deviation]:
    """Each deviation once. Short trials within a search are allowed (R2544-20): their duration does not count
    as one."""
    has_full_length = any(trial.is_full_length for trial in trials)
    found = {(deviation.requirement, deviation.text): deviation for deviation in profile.deviations}
    if profile.one_pair is None and not profile.traffic.is_one_pair:
        found[OMISSION.requirement, OMISSION.text] = OMISSION
    for trial in trials:
        for deviation in trial.result.deviations:
            if deviation.requirement == "R2544-20" and has_full_length and not trial.is_full_length:
                continue
            found.setdefault((deviation.requirement, deviation.text), deviation)
    final_s = max((t.result.intended_duration_s for t in trials if t.is_full_length), default=None)
    if final_s is not None and final_s < FULL_LENGTH_S and not any(key[0] == "R2544-20" for key in found):
        text = (
            f"the final trial lasted {format_duration(final_s)} instead of {format_duration(FULL_LENGTH_S)}"
        )
        found["R2544-20", text] = Deviation(requirement="R2544-20", text=text)
    return sorted(found.values(), key=lambda deviation: deviation.requirement)


def plain_deviations(trials: Iterable[TrialResult], profile: Profile) -> list[Deviation]:
    """Each deviation once, of a procedure whose trials all count alike."""
    found = {(deviation.requirement, deviation.text): deviation for deviation in profile.deviations}
    if not profile.traffic.is_one_pair:
        # With one pair first, a reader would see what the choice of addresses does to the result (SEED-85).
        deviation = Deviation(
            requirement="SEED-02",
            text="this result is not preceded by a result with a single address pair on this testbed",
        )
        found[deviation.requirement, deviation.text] = deviation
    for trial in trials:
        for deviation in trial.deviations:
            found.setdefault((deviation.requirement, deviation.text), deviation)
    return sorted(found.values(), key=lambda deviation: deviation.requirement)


def learning_deviations(result: LearningResult | None, host_count: int) -> list[Deviation]:
    """Where a direct plan was measured without the learning that it needs (R2544-35).

    Args:
        result: None if there was no learning.
        host_count: How many there were to learn.
    """
    if result is None:
        text = (
            f"the DUT did not have to resolve the {format_count(host_count)} hosts on its links"
            " before the first trial"
        )
    elif not result.is_complete:
        text = (
            f"{format_count(result.unreachable_hosts)} of {format_count(host_count)} hosts remained"
            " unreachable after learning"
        )
    else:
        return []
    return [Deviation(requirement="R2544-35", text=text)]


def address_deviations(plan: AddressPlan) -> list[Deviation]:
    """Where a plan file has addresses that are not reserved for benchmarking (R2544-37, R5180-01)."""
    outside = plan.not_reserved
    return [not_reserved(plan.ip_version, outside)] if outside else []


def not_reserved(version: int, spans: Sequence[str]) -> Deviation:
    """The deviation of these addresses."""
    text = (
        f"addresses that are not reserved for benchmarking (RFC 2544 C.2.2, RFC 5180 section 8):"
        f" {', '.join(spans)}; the testbed confirms that they are isolated"
    )
    return Deviation(requirement="R2544-37" if version == 4 else "R5180-01", text=text)


def result_document(
    profile: Profile,
    summary: Mapping[str, Any],
    *,
    trials: Iterable[TrialResult],
    documents: Sequence[Mapping[str, Any]],
    deviations: Iterable[Deviation],
    **more: Any,
) -> dict[str, Any]:
    """All of a result, as `--json` of its verb writes it.

    Args:
        summary: What the procedure has found.
        trials: From which the worst that the tester showed of itself is taken, and how much of the time was
            not judged.
        documents: Documents of the same trials.
        more: What else must be known of the tester; by its name in the document.
    """
    made = list(trials)
    return {
        **profile.to_document(),
        **summary,
        "dut_facts": None if profile.dut is None else dict(profile.dut),
        "tester": WorstTesterFigures.of(made).to_document(),
        **TimeLeftOut.document_of(made),
        **more,
        "deviations": [deviation.to_document() for deviation in deviations],
        "trials": list(documents),
    }


def count_verdicts(trials: Iterable[TrialResult]) -> dict[str, int]:
    """How many trials have each verdict."""
    found = [trial.verdict for trial in trials]
    return {str(verdict): found.count(verdict) for verdict in Verdict}


def attempts_at(loads: Iterable[Iterable[TrialResult]]) -> Iterator[tuple[int, TrialResult]]:
    """The trials of all loads or repetitions, and which attempt at its own each is, from 1."""
    return (numbered for trials in loads for numbered in enumerate(trials, start=1))


def attempt_documents(
    attempts: Iterable[tuple[int, TrialResult]], purpose: str, *, is_full_length: bool
) -> list[dict[str, Any]]:
    """Documents of the trials of a procedure that is not a search, numbered from 1."""
    return [
        {
            "number": number,
            "purpose": purpose,
            "attempt": attempt,
            "is_full_length": is_full_length,
            "result": trial.raw,
        }
        for number, (attempt, trial) in enumerate(attempts, start=1)
    ]
