# SPDX-License-Identifier: Apache-2.0
"""Station 10: what is in a run file, for people. Every text of the file is shown as it is, and does nothing
to the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median as median_of
from typing import Any

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from evenhand.analysis import compare_testbeds, values_by_testbed
from evenhand.analysis.condition_words import join
from evenhand.analysis.inside import seen_at
from evenhand.base.locks import holder_of
from evenhand.base.table import Cell, Table, make_table
from evenhand.base.terminal_table import rendered
from evenhand.base.units import (
    MULTIPLE,
    WHOLE_FPS,
    format_count,
    format_duration,
    format_ratio,
    one_unit,
    representatives,
)
from evenhand.base.visible import visible
from evenhand.plan import ONE_EACH, SideCounts
from evenhand.procedure.descriptor import Figure, show_number
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_rows import trials_of, verdicts_of
from evenhand.report.page_words import established_connections, in_words, load_words, show_statistics
from evenhand.report.stored_results import StoredResults
from evenhand.report.trial import allowed_loss, trials_table
from evenhand.run import CampaignRecord, HookRun, PointRecord, PointState, Repetition, StoredSearch
from evenhand.run.campaign_record import AT_LEAST
from evenhand.run.figures import losses_of, time_left_out_at, time_left_out_of
from evenhand.run.point_document import remarks_of_point
from evenhand.run.run_file import campaign_resource
from evenhand.trial import Verdict

_HOST_FACTS = (
    "cpu_model",
    "cpus",
    "memory_mb",
    "distribution",
    "kernel",
    "smt",
    "governor",
    "hugepages",
    "host_name",
)
_MOST_FACTS = 16
_MOST_OUTPUT_LINES = 10
_STATE_STYLES = {
    PointState.MEASURED: "good",
    PointState.NO_NUMBER: "flag",
    PointState.BEGUN: "open",
    PointState.PENDING: "small",
}


def campaign_report(record: CampaignRecord) -> Iterator[RenderableType]:
    """What was asked, when, where, and a line for each point: series by series, also where their points
    alternate in the campaign."""
    yield from _head(record)
    series: dict[str, list[tuple[int, PointRecord]]] = {}
    for number, point in enumerate(record.points, start=1):
        series.setdefault(_title(point), []).append((number, point))
    for title, entries in series.items():
        yield Text("")
        yield Text(visible(title), style="bold")
        yield rendered(_points_table(entries))
        left_out = [
            f"{number}: {found.in_short}"
            for number, point in entries
            if (found := time_left_out_at(point)) is not None
        ]
        if left_out:
            yield _line(f"Time left out of the sending time: {', '.join(left_out)}.", indent=2)
        for number, point in entries:
            if len(record.testbeds) > 1 and (names := values_by_testbed(point)):
                yield _line(f"{number}: measured by {join([visible(name) for name in names])}", indent=2)
            for note in remarks_of_point(point):
                yield _line(f"{number}: {note}", indent=2)
    verdict = compare_testbeds(record)
    if verdict is not None:
        yield Text("")
        for sentence in verdict.sentences:
            yield _line(sentence)
    for search in record.other_searches:
        yield Text("")
        yield from _search_report(search)
    for hook in record.hooks:
        yield from _hook_report(hook)
    if record.points:
        yield Text("")
        yield Text("Repetitions and trials of a point: --point with its number.", style="dim")


def point_report(record: CampaignRecord, measured: PointRecord) -> Iterator[RenderableType]:
    """One point down to its trials, with their verdicts and reasons."""
    point, figure = measured.point, PROCEDURES[measured.point.procedure].figure
    yield Text(f"Point {record.points.index(measured) + 1}: {visible(point.key)}", style="bold")
    yield _line(
        f"{point.procedure}, {point.plan}, {point.hosts} hosts in {point.networks} networks,"
        f" {_frames(measured)}, {' and '.join(point.directions)}{visible(load_words(point))}."
    )
    if point.hash_type is not None:
        yield _line(f"The DUT hashes {_hash(point.hash_type)}.")
    yield _line(
        f"State: {_state(measured)}{_reason(measured)}. {len(measured.values)} of {point.repetitions}"
        " repetitions have a value."
    )
    statistics = measured.statistics
    if statistics is not None:
        median, low, high = _figures(measured)
        which = "the highest of lower bounds" if all(measured.lower_bounds) else "median"
        spread = "" if statistics.count == 1 else f" ({which}, from {low} to {high})"
        yield _line(f"{figure.name.capitalize()}: {median} {figure.shown_unit}{spread}.")
    if measured.median_upper is not None:
        yield _line(
            "The searches left a bracket: the median limit lies between this and"
            f" {_figure(measured.median_upper, figure)}."
        )
    by_testbed = values_by_testbed(measured)
    for name, values in by_testbed.items() if len(by_testbed) > 1 else ():
        yield _line(
            f"Testbed {name}: median {_figure(median_of(values), figure)} {figure.shown_unit}"
            f" of {len(values)} repetitions."
        )
    if len(measured.repetitions) > 1 and (left_out := time_left_out_at(measured)) is not None:
        yield _line(left_out.line)
    for key, value in _facts({**point.plan_options, **point.goal}):
        yield _line(f"{key}: {value}", indent=2)
    if connections := established_connections(measured):
        yield _line(f"Established connections: {connections}.")
    yield from _inside(measured)
    for hook in measured.hooks:
        yield from _hook_report(hook)
    results = StoredResults(record, measured)
    yield from results.repeated()
    for repetition in measured.repetitions:
        yield Text("")
        yield from _repetition_report(repetition, figure)
        yield from results.of_repetition(repetition)
        for search in repetition.searches:
            yield from _search_report(search)


def _inside(measured: PointRecord) -> Iterator[RenderableType]:
    """What a witness saw in the DUT, in the trials at the point's result."""
    seen = seen_at(measured)
    if seen is None or seen.busiest is None:
        return
    busiest, mean = seen.busiest, sum(cpu.busy for cpu in seen.cpus) / len(seen.cpus)
    yield _line(
        f"Inside the DUT: CPU {busiest.cpu} was busiest, {format_ratio(busiest.busy)} of the time of sending"
        f" ({format_ratio(busiest.softirq)} in softirqs); mean of {len(seen.cpus)} CPUs {format_ratio(mean)}."
    )
    for queues in seen.queues:
        predicted = queues.predicted_to_mean
        beside = "" if predicted is None else f"; predicted {predicted:.3f}"
        yield _line(
            f"Queues of {queues.interface}, {queues.direction}: busiest to mean"
            f" {queues.busiest_to_mean:.3f}{beside}."
        )
    yield _line(
        f"It counted {format_count(seen.dropped_packets)} packets as dropped, and the tester lost"
        f" {format_count(seen.lost_frames)} frames."
    )


def _when(record: CampaignRecord) -> str:
    if record.finished_at is not None:
        return f"{record.created_at} to {record.finished_at}"
    worker = holder_of(campaign_resource(record.path))
    state = "interrupted, or measured on another machine" if worker is None else f"being measured by {worker}"
    return f"started {record.created_at}, not finished: {state}"


def _head(record: CampaignRecord) -> Iterator[RenderableType]:
    what = f"campaign {record.name}" if record.is_campaign else "a single run"
    yield Text.assemble((visible(record.path.name), "bold"), visible(f": {what}"))
    yield _fact("When", _when(record))
    for command in record.commands:
        yield _fact("Command", shlex.join(command))
    yield _fact("Versions", ", ".join(f"{name} {version}" for name, version in record.versions.items()))
    yield _fact(
        "Host",
        ", ".join(
            f"{key} {value}" for key, value in _facts({key: record.host.get(key) for key in _HOST_FACTS})
        ),
    )
    for name, testbed in record.testbeds.items():
        yield _fact("Testbed", name)
        dut = testbed.get("dut")
        facts = list(_facts(dut if isinstance(dut, Mapping) else {"": dut}))
        for key, value in facts[:_MOST_FACTS]:
            yield _line(f"DUT {key}: {value}", indent=11)
        if len(facts) > _MOST_FACTS:
            yield _line(f"and {len(facts) - _MOST_FACTS} facts more: --json", indent=11)
        if not facts:
            yield _line("There is no description of the DUT.", indent=11)
    for note in record.notes:
        yield _fact("Note", note)
    trials = [trial for point in record.points for trial in trials_of(point)]
    trials += [trial for search in record.other_searches for trial in search.trials]
    counted = verdicts_of(trials)
    yield _fact(
        "Trials",
        f"{format_count(len(trials))}: "
        + ", ".join(f"{format_count(counted[verdict])} {verdict}" for verdict in Verdict),
    )


def _title(measured: PointRecord) -> str:
    point, figure = measured.point, PROCEDURES[measured.point.procedure].figure
    hashes = "" if point.hash_type is None else f", DUT hashes {_hash(point.hash_type)}"
    ways = visible(load_words(point)) if len(point.directions) > 1 else f", {point.directions[0]} only"
    return f"{point.suite}: {figure.name} in {figure.shown_unit}, {point.plan}{hashes}{ways}"


def _points_table(entries: Sequence[tuple[int, PointRecord]]) -> Table:
    has_networks = any(measured.point.networks != ONE_EACH for _, measured in entries)
    has_routes = any(measured.point.routes is not None for _, measured in entries)
    has_uppers = any(measured.median_upper is not None for _, measured in entries)
    titles = [
        "##",
        "#hosts x networks" if has_networks else "#hosts",
        *(["#routes"] if has_routes else []),
        "#octets",
        "#result",
        *(["#below"] if has_uppers else []),
        "#minimum",
        "#maximum",
        "#of",
        "#PASS/FAIL/INV.",
        "state",
    ]
    rows: list[list[str | Cell]] = []
    figures = {PROCEDURES[measured.point.procedure].figure.unit for _, measured in entries}
    kinds = {MULTIPLE, *(WHOLE_FPS if unit == "fps" else unit for unit in figures)}
    beside = representatives(
        (value for _, measured in entries for value in (*measured.values, measured.median_upper or 0.0)),
        *kinds,
    )
    for number, measured in entries:
        point, counted = measured.point, verdicts_of(trials_of(measured))
        median, low, high = _figures(measured, beside)
        upper = measured.median_upper
        below = "-" if upper is None else _figure(upper, PROCEDURES[point.procedure].figure, beside)
        rows.append(
            [
                str(number),
                _pair(point.hosts) + (f" x {_pair(point.networks)}" if has_networks else ""),
                *([str(point.routes or ONE_EACH)] if has_routes else []),
                visible(str(point.frame_size)),
                median,
                *([below] if has_uppers else []),
                low,
                high,
                f"{len(measured.values)}/{point.repetitions}",
                "/".join(str(counted[verdict]) for verdict in Verdict),
                Cell(_state(measured), _STATE_STYLES[measured.state]),
            ]
        )
    return make_table(titles, rows)


def _repetition_report(repetition: Repetition, figure: Figure) -> Iterator[RenderableType]:
    bound = AT_LEAST if repetition.is_at_least else ""
    value = (
        "no value"
        if repetition.value is None
        else f"{bound}{_figure(repetition.value, figure)} {figure.shown_unit}"
    )
    value += "" if repetition.upper is None else f", {_figure(repetition.upper, figure)} failed"
    why = "" if repetition.reason is None else f" ({repetition.reason})"
    when = (
        f"started {repetition.started_at}, not finished"
        if repetition.finished_at is None
        else f"{repetition.started_at} to {repetition.finished_at}"
    )
    yield Text(f"Repetition {repetition.number}: {value}{visible(why)}", style="bold")
    yield _line(
        f"Outcome {repetition.outcome or 'none'}; seed {repetition.seed}; testbed {repetition.testbed};"
        f" {when}."
    )
    losses = losses_of(repetition)
    if any(losses.values()):
        lost = ", ".join(f"{direction} {format_ratio(ratio)}" for direction, ratio in losses.items())
        yield _line(f"Lost at that load: {lost}.")
    if (left_out := time_left_out_of(repetition)) is not None:
        yield _line(left_out.line)


def _search_report(search: StoredSearch) -> Iterator[RenderableType]:
    yield _line(f"{search.name} ({search.kind}), {search.outcome or 'cut short'}:")
    if search.trials:
        yield rendered(trials_table(search.trials, title=""))
    # Once for all trials, in the words of a single one: nearly always it is the same.
    for allowed in dict.fromkeys(allowed_loss(trial.result) for trial in search.trials):
        if allowed:
            yield _line(f"PASS{allowed}")


def _hook_report(hook: HookRun) -> Iterator[RenderableType]:
    ended = "did not end in time" if hook.exit_code is None else f"exit code {hook.exit_code}"
    yield _line(f"{hook.when}: {hook.command}: {ended}, {format_duration(hook.duration_s)}", indent=2)
    lines = hook.output.splitlines()
    for line in lines[-_MOST_OUTPUT_LINES:]:
        yield _line(line, indent=4)


def _facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """What has been said, from anywhere below: `elements.hash type1`. A long list is only counted."""
    for key, value in facts.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _facts(value, f"{name}.")
        elif isinstance(value, list) and (
            len(value) > 8 or any(isinstance(item, Mapping | list) for item in value)
        ):
            yield name, f"{len(value)} values"
        elif isinstance(value, list):
            yield name, " ".join(map(str, value))
        elif value is not None:
            yield name, {True: "yes", False: "no"}[value] if isinstance(value, bool) else in_words(str(value))


def _state(measured: PointRecord) -> str:
    if measured.state is PointState.BEGUN:  # the word of exports
        return "unfinished"
    return str(measured.state).replace("_", " ")


def _reason(measured: PointRecord) -> str:
    why = measured.reason or measured.stopped_early
    return "" if why is None else f" ({why})"


def _frames(measured: PointRecord) -> str:
    size = measured.point.frame_size
    return f"{size} octets" if isinstance(size, int) else size


def _hash(hash_type: str) -> str:
    return "addresses only" if hash_type == "type1" else "addresses and ports"


def _pair(counts: SideCounts) -> str:
    return (
        format_count(counts[0])
        if counts[0] == counts[1]
        else f"{format_count(counts[0])} / {format_count(counts[1])}"
    )


def _figure(value: float, figure: Figure, beside: Iterable[float] = ()) -> str:
    """In `Figure.shown_unit`.

    Args:
        beside: Values of the same table, which have as many decimals.
    """
    values = [value, *beside]
    if figure.unit in ("ratio", "us") or min((abs(each) for each in values if each), default=0) >= 1000:
        return show_number(value, figure, beside)
    return one_unit(values, MULTIPLE).write(value)


def _figures(measured: PointRecord, beside: Iterable[float] = ()) -> tuple[str, str, str]:
    """Median, minimum, maximum."""
    figure, values = PROCEDURES[measured.point.procedure].figure, [*measured.values, *beside]
    return show_statistics(measured, lambda value: _figure(value, figure, values))


def _line(text: str, *, indent: int = 0) -> RenderableType:
    return _indented(Text(visible(text)), indent)


def _fact(name: str, text: str) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=10, style="bold")
    grid.add_column(overflow="fold")
    grid.add_row(Text(name), Text(visible(text)))
    return grid


def _indented(text: Text, indent: int) -> RenderableType:
    if not indent:
        return text
    grid = Grid.grid()
    grid.add_column(width=indent)
    grid.add_column(overflow="fold")
    grid.add_row(Text(""), text)
    return grid
