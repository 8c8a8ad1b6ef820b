# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a throughput search found, for people (Rich) and for programs (a document)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand.plan import AddressPlan, Direction, HostMacs, PortMacs, SideName, Traffic
from evenhand.report.learning import learning_deviations
from evenhand.report.single_pair import OMISSION, SinglePair
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    FULL_LENGTH_S,
    Goal,
    Outcome,
    SearchResult,
    SearchTrial,
    ThroughputGoal,
    ThroughputResult,
    describe_outcome,
)
from evenhand.trial import Deviation, LearningResult, TrialResult, Verdict, join_directions
from evenhand.units import format_count, format_duration, format_line_rate, format_rate, format_ratio

VERDICT_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.INVALID: "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What stays the same over a search, and what a reader of the number must know (R2544-23)."""

    plan: AddressPlan
    frame_size: int
    """Octets including the FCS."""
    seed: int
    directions: tuple[Direction, ...]
    line_rate_bps: float | None = None
    theoretical_fps: int | None = None
    """Maximum theoretical frame rate per direction; None if no line rate is known."""
    host_macs: HostMacs = "port"
    """Whose MACs the hosts on the link have (R4814-06)."""
    macs: Mapping[SideName, PortMacs] | None = None
    """Of tester and DUT on both links; None before they are known."""
    single_pair: SinglePair | None = None
    """The search with one address pair that was made before this one (SEED-02); None if there is none."""
    dut: Mapping[str, str | None] | None = None
    """Facts of the DUT as the testbed file has them, None for those that it does not tell (SEED-84); None for a DUT of our own."""
    learning: LearningResult | None = None
    """What the DUT learnt before the first trial; None if it was not made to."""

    @property
    def protocol(self) -> str:
        return f"UDP over IPv{self.plan.ip_version}"

    @property
    def traffic(self) -> Traffic:
        """What the frames really carry."""
        return Traffic(plan=self.plan, directions=self.directions)

    @property
    def hosts(self) -> str:
        """`1 address pair`, `65,534 x 65,534 addresses`: as they occur, not as the plan has them."""
        return self.traffic.addresses

    @property
    def sent_lines(self) -> list[str]:
        """What a reader must know of the frames: addresses, ports, seed, gateways, routes, MACs (SEED-49)."""
        return self.traffic.lines(seed=self.seed, macs=self.macs, host_macs=self.host_macs)

    @property
    def link_line(self) -> str:
        """The part of it that holds for frames of any kind."""
        return self.traffic.link_line(macs=self.macs, host_macs=self.host_macs)

    @property
    def deviations(self) -> list[Deviation]:
        """Of the whole, beside those of single trials."""
        sides = [self.plan.right if direction == "forward" else self.plan.left for direction in self.directions]
        return learning_deviations(self.learning, sum(side.hosts.addresses for side in sides)) if self.plan.is_direct else []

    def to_document(self) -> dict[str, Any]:
        return {
            "plan": self.plan.name,
            "figure": self.plan.figure,
            "is_derived": self.plan.is_derived,
            "hosts": {side.name: self.traffic.hosts(side.name).count for side in self.plan.sides},
            "networks": {side.name: self.traffic.hosts(side.name).network_count for side in self.plan.sides},
            "traffic": self.traffic.to_document(macs=self.macs, host_macs=self.host_macs),
            "protocol": self.protocol,
            "frame_size": self.frame_size,
            "seed": self.seed,
            "directions": list(self.directions),
            "host_macs": self.host_macs,
            "learning": None if self.learning is None else self.learning.to_document(),
            "line_rate_bps": self.line_rate_bps,
            "theoretical_fps_per_direction": self.theoretical_fps,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstTesterFigures:
    """The worst that the tester showed of itself in the valid trials: what a reader may hold against the result."""

    max_overdue_us: float
    max_poll_gap_us: float
    missed_frames: int
    max_clock_error_ppm: float
    max_offered_error: float
    """Largest relative distance of offered from intended load."""
    longest_absence_us: float | None
    """Of a CPU of the DUT, taken away by this host; None if the DUT is not on this host."""

    @classmethod
    def of(cls, trials: Iterable[TrialResult]) -> WorstTesterFigures:
        valid = [trial for trial in trials if trial.is_valid]
        directions = [direction for trial in valid for direction in trial.directions.values()]
        return cls(
            max_overdue_us=max((d.sender.max_overdue_us for d in directions), default=0.0),
            max_poll_gap_us=max((d.receiver.max_poll_gap_us for d in directions), default=0.0),
            missed_frames=sum(trial.missed_frames for trial in valid),
            max_clock_error_ppm=max((abs(trial.clock_error_ppm) for trial in valid), default=0.0),
            max_offered_error=max(
                (abs(d.offered_fps / trial.intended_fps - 1) for trial in valid for d in trial.directions.values()), default=0.0
            ),
            longest_absence_us=max((cpu.longest_us for trial in valid for cpu in trial.watched_cpus or ()), default=None),
        )

    def __str__(self) -> str:
        away = ""
        if self.longest_absence_us is not None:
            away = f"; this host took the DUT's CPU away for {format_duration(self.longest_absence_us / 1e6)} at most"
        return (
            f"latest frame {format_duration(self.max_overdue_us / 1e6)} after its time, longest poll gap "
            f"{format_duration(self.max_poll_gap_us / 1e6)}, {format_count(self.missed_frames)} frames missed by the tester's ports, "
            f"offered load off by at most {format_ratio(self.max_offered_error)}, clock by {self.max_clock_error_ppm:.1f} ppm{away}"
        )

    def to_document(self) -> dict[str, float | None]:
        return {
            "max_overdue_us": self.max_overdue_us,
            "max_poll_gap_us": self.max_poll_gap_us,
            "missed_frames": self.missed_frames,
            "max_clock_error_ppm": self.max_clock_error_ppm,
            "max_offered_error": self.max_offered_error,
            "longest_absence_us": self.longest_absence_us,
        }


def trials_table(trials: Sequence[SearchTrial], *, title: str = "Trials") -> Table:
    """Every trial in order: load, verdict, loss, and why."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for name in ("no.", "load per direction", "duration", "verdict", "loss", "lost", "p99 latency"):
        table.add_column(name, justify="left" if name == "verdict" else "right", no_wrap=True)
    table.add_column("what and why", overflow="fold")
    for trial in trials:
        result = trial.result
        table.add_row(
            str(trial.number), f"{format_count(result.intended_fps)} fps", format_duration(result.intended_duration_s),
            Text(str(result.verdict), style=VERDICT_STYLES[result.verdict]), format_ratio(result.loss_ratio) if result.is_valid else "-",
            " + ".join(format_count(direction.lost_frames) for direction in result.directions.values()), _p99(result),
            Text(_story(trial)),
        )  # fmt: skip
    return table


def summary_lines(result: ThroughputResult, profile: Profile) -> list[str]:
    """The closing lines: the four items of R2544-23, the loss ratio if it is not 0, the outcome, what deviates."""
    if result.throughput_fps is None:
        value = "no throughput"
    else:
        both = ""
        if len(profile.directions) == 2:
            both = f" ({format_count(2 * result.throughput_fps)} fps in both directions together)"
        bound = "at least " if result.outcome is Outcome.AT_OR_ABOVE_MAXIMUM else ""
        value = f"{bound}{format_count(result.throughput_fps)} fps per direction{both}"
    loss = f" with a loss ratio of at most {format_ratio(result.goal.loss_ratio)}" if result.goal.loss_ratio else ""
    lines = [
        f"Throughput{loss}: {value}; {profile.frame_size} octet frames, {profile.protocol}, {profile.hosts} ({profile.plan.label}); "
        f"theoretical limit {describe_limit(profile)}.",
        f"Outcome: {describe_outcome(result)}.",
        *profile.sent_lines,
    ]
    if profile.single_pair is not None:
        lines.append(profile.single_pair.line(result))
    lines += dut_lines(profile)
    lines += verification_lines(result.goal)
    lines += start_lines(result.goal)
    lines += patience_lines(result.goal)
    counts = ", ".join(f"{result.count(verdict)} {verdict}" for verdict in Verdict)
    is_any_valid = any(t.result.is_valid for t in result.trials)
    tester = str(WorstTesterFigures.of(t.result for t in result.trials)) if is_any_valid else "no valid trial, so no figures"
    lines.append(f"Trials: {len(result.trials)} ({counts}). Tester: {tester}.")
    lines += [f"Deviation from {deviation.requirement}: {deviation.text}" for deviation in collect_deviations(result.trials, profile)]
    return lines


def dut_lines(profile: Profile) -> list[str]:
    """What the testbed file tells of the DUT, and what it does not (SEED-81, SEED-84)."""
    if profile.dut is None:
        return []
    told = "; ".join(f"{_words(name)}: {value}" for name, value in profile.dut.items() if value is not None)
    missing = ", ".join(_words(name) for name, value in profile.dut.items() if value is None)
    lines = [f"DUT, as the testbed file has it: {told}."] if told else []
    return lines + ([f"Not told of the DUT ([dut.facts] in the testbed file): {missing}."] if missing else [])


def _words(name: str) -> str:
    return name.replace("_", " ")


def verification_lines(goal: ThroughputGoal) -> list[str]:
    """How a lossy trial came to count, if not as in RFC 2544."""
    if goal.loss_verifications == 0:
        return []
    times = "a repetition" if goal.loss_verifications == 1 else f"{goal.loss_verifications} repetitions"
    which = "A lossy trial" if goal.plain_loss_ratio == 1 else f"A trial with a loss of up to {format_ratio(goal.plain_loss_ratio)}"
    return [f"{which} counted after {times} had too much loss as well (loss verification, ETSI TST009 12.3), not at once as in RFC 2544."]


def start_lines(goal: ThroughputGoal) -> list[str]:
    """Where the search began, if not at the maximum (MLR-13)."""
    if goal.known_fps is None:
        return []
    known = f"{format_count(goal.known_fps)} fps per direction, known from before"
    return [f"The search began at {known}, not at the maximum (MLR-13); both bounds were proven anew."]


def patience_lines(goal: Goal) -> list[str]:
    """How often INVALID trials were repeated, if not as usual."""
    usual = (DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE)
    if (goal.invalid_retries, goal.patience) == usual:
        return []
    return [
        f"INVALID trials were repeated up to {goal.invalid_retries} times, those that a moment spoiled and confirming ones up to"
        f" {goal.patience} times (usually {usual[0]} and {usual[1]})."
    ]


def describe_limit(profile: Profile) -> str:
    """Item (c) of R2544-23."""
    if profile.theoretical_fps is None:
        return "unknown, the ports have no line rate"
    of = "" if profile.line_rate_bps is None else f" ({format_line_rate(profile.line_rate_bps)})"
    return f"{format_count(profile.theoretical_fps)} fps per direction{of}"


def collect_deviations(trials: Sequence[SearchTrial], profile: Profile) -> list[Deviation]:
    """Each deviation once. Short trials within a search are allowed (R2544-20): their duration does not count as one."""
    has_full_length = any(trial.is_full_length for trial in trials)
    found = {(deviation.requirement, deviation.text): deviation for deviation in profile.deviations}
    if profile.single_pair is None and not profile.traffic.is_single_pair:
        found[OMISSION.requirement, OMISSION.text] = OMISSION
    for trial in trials:
        for deviation in trial.result.deviations:
            if deviation.requirement == "R2544-20" and has_full_length and not trial.is_full_length:
                continue
            found.setdefault((deviation.requirement, deviation.text), deviation)
    final_s = max((t.result.intended_duration_s for t in trials if t.is_full_length), default=None)
    if final_s is not None and final_s < FULL_LENGTH_S and not any(key[0] == "R2544-20" for key in found):
        text = f"the final trial lasted {format_duration(final_s)} instead of {format_duration(FULL_LENGTH_S)}"
        found["R2544-20", text] = Deviation(requirement="R2544-20", text=text)
    return sorted(found.values(), key=lambda deviation: deviation.requirement)


def throughput_document(result: SearchResult, profile: Profile) -> dict[str, Any]:
    """Everything of one search as a document, all trials included."""
    both = None if result.throughput_fps is None else len(profile.directions) * result.throughput_fps
    return {
        **profile.to_document(),
        **result.to_document(),
        "throughput_fps_total": both,
        "single_pair": None if profile.single_pair is None else profile.single_pair.to_document(result),
        "dut_facts": None if profile.dut is None else dict(profile.dut),
        "tester": WorstTesterFigures.of(t.result for t in result.trials).to_document(),
        "deviations": [d.to_document() for d in collect_deviations(result.trials, profile)],
        "trials": [
            {
                "number": t.number,
                "purpose": str(t.purpose),
                "attempt": t.attempt,
                "is_full_length": t.is_full_length,
                "result": t.result.raw,
            }
            for t in result.trials
        ],
    }


def describe_load(rate_fps: float) -> str:
    """Short form for progress lines."""
    return f"{format_rate(rate_fps)} per direction"


def _p99(result: TrialResult) -> str:
    values = [d.latency.p99_ns for d in result.directions.values() if d.latency.p99_ns is not None]
    return format_duration(max(values) / 1e9) if values else "-"


def _story(trial: SearchTrial) -> str:
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    reasons = "; ".join(reason.text for reason in join_directions(trial.result.reasons))
    return f"{trial.purpose}{attempt}" + (f": {reasons}" if reasons else "")
