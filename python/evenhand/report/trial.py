# SPDX-License-Identifier: Apache-2.0
"""Station 10: one trial in full, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenhand.base.table import Cell, Column, Row, Table, in_row, make_table, measured
from evenhand.base.terminal_table import STYLES, rendered
from evenhand.base.units import (
    LEFT_OUT,
    LOSS,
    WHOLE_FPS,
    format_count,
    format_duration,
    format_rate,
    format_ratio,
    one_unit,
)
from evenhand.base.visible import visible
from evenhand.plan import BOTH_DIRECTIONS, Direction
from evenhand.procedure import Profile
from evenhand.report.flows import flows_table, has_flows
from evenhand.report.plain import next_lines
from evenhand.run import StoredTrial
from evenhand.search import SearchTrial
from evenhand.trial import ClockOffset, DirectionResult, TrialResult, join_directions
from evenhand.trial.capture import show_numbers

MOST_TENTHS = 10
_Delays = tuple[float | None, float | None]
"""Nanoseconds."""
_ROWS: tuple[tuple[str, Callable[[DirectionResult], str | Cell | _Delays]], ...] = (
    ("intended frames", lambda d: format_count(d.intended_frames)),
    ("offered frames", lambda d: format_count(d.offered_frames)),
    ("offered load", lambda d: measured(d.offered_fps, WHOLE_FPS)),
    ("received frames", lambda d: format_count(d.received_frames)),
    ("forwarding rate", lambda d: measured(d.forwarding_rate_fps, WHOLE_FPS)),
    ("lost frames", lambda d: format_count(d.lost_frames)),
    ("loss ratio", lambda d: measured(d.loss_ratio, LOSS)),
    ("duplicated frames", lambda d: format_count(d.duplicated_frames)),
    ("reordered frames, all flows", lambda d: format_count(d.reordered_frames)),
    ("late frames", lambda d: format_count(d.late_frames)),
    ("corrupted frames", lambda d: format_count(d.corrupted_frames)),
    ("wrong length frames", lambda d: format_count(d.wrong_length_frames)),
    ("wrong address frames", lambda d: format_count(d.wrong_address_frames)),
    ("wrong port frames", lambda d: format_count(d.wrong_port_frames)),
    ("wrong payload frames", lambda d: format_count(d.wrong_payload_frames)),
    ("other DSCP, ECN or flow label", lambda d: format_count(d.remarked_frames)),
    ("foreign frames", lambda d: format_count(d.foreign_frames)),
    ("  of these, sent by this port", lambda d: format_count(d.returned_frames)),
    ("stale frames", lambda d: format_count(d.stale_frames)),
    ("frames from another time", lambda d: format_count(d.wrong_time_frames)),
    ("unrecorded frames", lambda d: format_count(d.unrecorded_frames)),
    ("ARP and ND frames", lambda d: format_count(d.neighbor_frames)),
    ("latency min / mean", lambda d: (d.latency.min_ns, d.latency.mean_ns)),
    ("latency p50 / p99", lambda d: (d.latency.p50_ns, d.latency.p99_ns)),
    ("latency p99.9 / max", lambda d: (d.latency.p999_ns, d.latency.max_ns)),
    ("overdue frames", lambda d: format_count(d.sender.overdue_frames)),
    ("latest frame after its time", lambda d: measured(d.sender.max_overdue_us, "us")),
    (
        "refusals, largest burst",
        lambda d: f"{format_count(d.sender.refusals)}, {format_count(d.sender.largest_burst)}",
    ),
    ("longest poll gap", lambda d: measured(d.receiver.max_poll_gap_us, "us")),
)
NumberOf = Callable[[SearchTrial | StoredTrial], str]
CORRUPTED = "corrupted frames"
_CHECKS = {
    "header": "  wrong IP header",
    "length": "  wrong IP or UDP length",
    "fragment": "  fragment",
    "header_checksum": "  wrong IPv4 header checksum",
    "udp_checksum": "  wrong UDP checksum",
    "destination_mac": "  wrong destination MAC",
    "hop_limit": "  wrong hop limit",
    "number": "  number that was not sent",
}
"""Rows below that of the corrupted frames, where there are any: the first check that each failed."""
_MISTRANSLATED = {
    "address_or_port": "translated to another address or port",
    "traffic_class": "translated to another traffic class",
    "no_checksum": "without a UDP checksum",
}
"""Rows of a DUT that translates."""
REORDERED = (
    "Reordered: overtaken by a frame that the same core of the tester sent later, of any flow. Flows on"
    " different queues or cores of the DUT may overtake each other while each keeps its order."
    " Reordering within a flow (RFC 4689) is not counted separately; to see it, measure a single flow:"
    " --hosts 1 --source-ports fixed --destination-ports fixed."
)
"""What the receiver compares: the numbers of all frames of a sending core
(docs/explanation/streams-and-queues.md)."""


def trial_report(result: TrialResult, profile: Profile | None = None) -> RenderableType:
    """Verdict, reasons, and all counts of each direction; with `profile` also what was sent, and how the
    set-up deviates."""
    head = Text.assemble(
        f"Trial {result.trial}: ",
        (str(result.verdict), STYLES[result.verdict]),
        allowed_loss(result),
        f" at {_load_words(result, profile)} for {format_duration(result.intended_duration_s)}, ",
        (f"{result.frame_size} octet frames" if profile is None else profile.frames),
        _established(result),
    )
    reasons = [Text(f"  {reason.code}: {reason.text}") for reason in join_directions(result.reasons)]
    return Group(*map(rendered, [head, *reasons, *trial_parts(result, profile)]))


def trial_parts(result: TrialResult, profile: Profile | None = None) -> list[Text | Table]:
    """What `trial_report` has below verdict and reasons: tables and sentences, for a page too."""
    lines: list[Text | Table] = []
    lines.append(make_table(["", *(f"#{name}" for name in result.directions)], _rows(result)))
    if any(direction.reordered_frames for direction in result.directions.values()) and not _has_one_flow(
        profile
    ):
        lines.append(Text(REORDERED))
    if any(direction.classes for direction in result.directions.values()):
        lines.append(flows_table(result) if has_flows(result) else _classes_table(result))
    for name, direction in result.directions.items():
        tenths = [
            f"{index / 10:.1f} s: {format_count(lost)}"
            for index, lost in enumerate(direction.lost_by_tenth)
            if lost
        ]
        if tenths:
            more = (
                f"; and in {format_count(len(tenths) - MOST_TENTHS)} other tenths of a second"
                if len(tenths) > MOST_TENTHS
                else ""
            )
            lines.append(Text(f"{name} lost frames at " + ", ".join(tenths[:MOST_TENTHS]) + more))
        if direction.first_lost:
            lines.append(
                Text(
                    f"{name} first lost frames: {show_numbers(direction.first_lost)} (evenhand plan frames"
                    f" --direction {name} --numbers, with the same plan, frame size and seed, shows them)"
                )
            )
    lines.append(
        Text(
            f"Tester: {format_count(result.missed_frames)} frames missed by its ports, clock off by"
            f" {format_ppm(result.clock_error_ppm)}."
        )
    )
    if result.clock_offsets:
        lines.append(Text(describe_clock_offsets(result.clock_offsets)))
    lines.append(Text(host_line(result)))
    lines += [Text(line) for line in next_lines([result])]
    if profile is not None:
        lines += [Text(line) for line in profile.sent_lines]
    lines += [Text(f"Note: {note.code}: {note.text}") for note in join_directions(result.notes)]
    deviations = (*(() if profile is None else profile.deviations), *result.deviations)
    lines += [Text(deviation.line) for deviation in deviations]
    return lines


def _load_words(result: TrialResult, profile: Profile | None) -> str:
    """`500,000 fps per direction (3.36 % of the line rate, 336 Mbit/s on the line)`, `1,000,000 fps forward
    and 250,000 fps reverse`."""
    own = [(name, of.intended_fps) for name, of in result.directions.items() if of.intended_fps is not None]
    if own:
        return " and ".join(
            f"{format_count(fps)} fps {name}{_share_of(profile, name, fps)}" for name, fps in own
        )
    line = "" if profile is None else profile.line_words(result.intended_fps)
    return f"{format_count(result.intended_fps)} fps per direction{line}"


def _share_of(profile: Profile | None, direction: Direction, rate_fps: float) -> str:
    share = "" if profile is None else profile.line_share(direction, rate_fps)
    return f" ({share})" if share else ""


def _rows(result: TrialResult) -> Iterator[Row]:
    directions = result.directions.values()
    for title, cell in _ROWS:
        found = [cell(direction) for direction in directions]
        delays = [each for each in found if isinstance(each, tuple)]
        yield (
            _delays_row(title, delays)
            if delays
            else in_row(title, [each for each in found if not isinstance(each, tuple)])
        )
        if title != CORRUPTED:
            continue
        for check, words in _CHECKS.items():
            failed = [(direction.corrupted_by or {}).get(check, 0) for direction in directions]
            if any(failed):
                yield in_row(words, list(map(format_count, failed)))
    if all(direction.mistranslated_frames is not None for direction in directions):
        for key, title in _MISTRANSLATED.items():
            counts = ((direction.mistranslated_frames or {}).get(key, 0) for direction in directions)
            yield in_row(title, list(map(format_count, counts)))


def describe_clock_offsets(offsets: Sequence[ClockOffset]) -> str:
    """`Clocks of the workers' CPUs, against CPU 2: CPU 3 +0.012 us (give or take 0.045 us).`; empty if there
    is only one."""
    first, *others = offsets
    parts = [
        f"CPU {each.cpu} {each.offset_us:+,.3f} us (give or take {each.uncertainty_us:,.3f} us)"
        for each in others
    ]
    return f"Clocks of the workers' CPUs, against CPU {first.cpu}: {', '.join(parts)}." if parts else ""


def _has_one_flow(profile: Profile | None) -> bool:
    """Whether each direction has one flow: then the count is that of its order. False if it is not known."""
    if profile is None or not profile.traffic.is_one_pair:
        return False
    return profile.plan.other is None and all(
        ports.first == ports.last
        for stream in profile.streams
        for ports in (stream.sent.source_ports, stream.sent.destination_ports)
    )


def _established(result: TrialResult) -> str:
    """`, over 5,000 connections that an earlier trial opened`; empty where none were to be there."""
    match result.raw.get("established"):
        case {"count": int(count)}:
            return f", over {format_count(count)} connections that an earlier trial opened"
    return ""


def allowed_loss(result: TrialResult) -> str:
    """` (a loss ratio of at most 50 % was allowed)` of a PASS for which it was; else nothing."""
    if not result.is_pass or result.loss_ratio_limit == 0:
        return ""
    return f" (a loss ratio of at most {format_ratio(result.loss_ratio_limit)} was allowed)"


def _classes_table(result: TrialResult) -> Table:
    """Table of a mix: a row for each IP version and size of each direction."""
    rows = (
        [
            f"{name}, IPv{of_class.ip_version}",
            str(of_class.frame_size),
            *map(format_count, (of_class.offered_frames, of_class.received_frames, of_class.lost_frames)),
        ]
        for name, direction in result.directions.items()
        for of_class in direction.classes
    )
    return make_table(("", "#octets", "#offered frames", "#received frames", "#lost frames"), rows)


def host_line(result: TrialResult) -> str:
    """What this machine did to the DUT, if the DUT lives on it."""
    if result.watched_cpus is None:
        return (
            "Host: the DUT was not watched, because the testbed does not name the CPUs of this machine"
            " that it runs on."
        )
    each = [
        f"CPU {cpu.cpu} of the DUT was away {format_count(cpu.absences)} times,"
        f" {format_duration(cpu.away_us / 1000000.0)} in total, at most"
        f" {format_duration(cpu.longest_us / 1000000.0)} at once"
        if cpu.absences
        else f"CPU {cpu.cpu} of the DUT was never away"
        for cpu in result.watched_cpus
    ]
    return f"Host: {'; '.join(each)}."


def format_ppm(error_ppm: float) -> str:
    """`-1.8 ppm`; nothing is off by minus zero."""
    return f"{round(error_ppm, 1) or 0.0:.1f} ppm"


def _delays_row(title: str, delays: Sequence[_Delays]) -> Row:
    """Two delays of each direction, in milliseconds as all delays."""
    unit = one_unit((value_ns / 1e3 for each in delays for value_ns in each if value_ns is not None), "us")
    return in_row(
        f"{title}, {unit.unit}",
        [
            " / ".join("-" if value_ns is None else unit.write(value_ns / 1e3) for value_ns in each)
            for each in delays
        ],
    )


SAME = 1.0005
"""A duration of three digits does not show more."""


def describe_sending(result: TrialResult) -> str:
    """How long a trial sent, and how long it was to send if it was stopped early or waited for clean time."""
    intended = format_duration(result.intended_duration_s)
    if result.stopped_early_s is None and result.sent_s <= result.intended_duration_s * SAME:
        return intended
    if result.sent_s > result.intended_duration_s:
        return f"{format_duration(float(f'{result.sent_s:.3g}'))} for {intended} of clean time"
    # Two digits: one that was stopped a little before its end did not send for all of its time.
    return f"{format_duration(float(f'{result.sent_s:.2g}'))} of {intended}"


SHOWN_NOTES = (
    "line_overload",
    "mistranslated",
    "queue_filling",
    "wrong_address",
    "wrong_port",
    "wrong_payload",
    "wrong_length",
    "corrupted",
    "returned",
)
"""Codes of the notes that say why frames were lost, though they are not reasons of the verdict."""


def trials_table(
    trials: Sequence[SearchTrial | StoredTrial],
    *,
    title: str = "Trials",
    loss_over_time: Callable[[TrialResult], Any] | None = None,
    number_of: NumberOf = lambda trial: str(trial.number),
) -> Table:
    """Every trial in order: load, verdict, loss, and why.

    Args:
        loss_over_time: For a page: draws the loss of a trial. The table then also has the loads that were
            really offered, or says that they were the intended ones; and the share of the time that was left
            out, if any trial was judged by its clean time.
        number_of: Writes the number of a trial, for a page perhaps as a link.
    """
    has_left_out = loss_over_time is not None and any(
        trial.result.is_judged_by_clean_time for trial in trials
    )
    is_exact = loss_over_time is None or all(
        format_rate(trial.result.offered_fps) == format_rate(trial.result.intended_fps) for trial in trials
    )
    is_unlike = any(of.intended_fps is not None for t in trials for of in t.result.directions.values())
    titles: list[str | Column] = [
        "#no.",
        *(["#load forward", "#load reverse"] if is_unlike else ["#load per direction"]),
        *([] if is_exact else ["#offered"]),
        "#duration",
        *(["#left out"] if has_left_out else []),
        Column("verdict", is_name=True),
        "#loss",
        "#lost",
        "#p99 latency",
        "what and why",
    ]
    rows = (
        [
            number_of(trial),
            *_row(
                trial,
                is_unlike=is_unlike,
                is_exact=is_exact,
                has_left_out=has_left_out,
                loss_over_time=loss_over_time,
            ),
        ]
        for trial in trials
    )
    caption = "" if loss_over_time is None or not is_exact else "All loads were offered as intended."
    return make_table(titles, rows, title=title, caption=caption)


def _loads_of(result: TrialResult) -> list[float | None]:
    """The intended load of each direction; None for one that sent nothing."""
    found = (result.directions.get(name) for name in BOTH_DIRECTIONS)
    return [None if of is None else of.intended_fps or result.intended_fps for of in found]


def _row(
    trial: SearchTrial | StoredTrial,
    *,
    is_unlike: bool,
    is_exact: bool,
    has_left_out: bool,
    loss_over_time: Callable[[TrialResult], Any] | None,
) -> list[str | Cell]:
    result, verdict = trial.result, str(trial.result.verdict)
    return [
        *(
            [measured(fps, WHOLE_FPS) for fps in _loads_of(result)]
            if is_unlike
            else [measured(result.intended_fps, WHOLE_FPS)]
        ),
        *([] if is_exact else [measured(result.offered_fps, WHOLE_FPS)]),
        _sending(result),
        # The share of a valid trial that was not judged, since it was judged by its clean time.
        *([measured(result.left_out_share if result.is_valid else None, LEFT_OUT)] if has_left_out else []),
        Cell(verdict, verdict),
        measured(
            result.loss_ratio if result.is_valid else None,
            LOSS,
            spark="" if loss_over_time is None else loss_over_time(result),
        ),
        " + ".join(format_count(direction.lost_frames) for direction in result.directions.values()),
        _p99(result),
        _story(trial),
    ]


def _sending(result: TrialResult) -> Cell:
    """As `describe_sending`, in a column of seconds."""
    bound, after = "", ""
    if result.sent_s > result.intended_duration_s * SAME:
        bound, after = f"{float(f'{result.sent_s:.3g}'):g} for ", " of clean time"
    elif result.stopped_early_s is not None:
        bound = f"{float(f'{result.sent_s:.2g}'):g} of "
    return measured(result.intended_duration_s, "s", bound=bound, after=after)


def _p99(result: TrialResult) -> Cell:
    values = [d.latency.p99_ns for d in result.directions.values() if d.latency.p99_ns is not None]
    return measured(max(values) / 1e3 if values else None, "us")


def _story(trial: SearchTrial | StoredTrial) -> str:
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    remarks = [*trial.result.reasons, *(note for note in trial.result.notes if note.code in SHOWN_NOTES)]
    reasons = "; ".join(reason.text for reason in join_directions(remarks))
    return visible(f"{trial.purpose}{attempt}" + (f": {reasons}" if reasons else ""))
