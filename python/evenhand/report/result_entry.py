# SPDX-License-Identifier: Apache-2.0
"""Results as tables read them: documents, live or stored, with what tells them apart where a table has
several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.table import Cell, Column, Table, columns_of, make_table
from evenhand.base.units import format_count, format_duration
from evenhand.base.visible import visible
from evenhand.plan import FrameSize, Imix, parse_imix
from evenhand.procedure import Profile, Statistics, WorstTesterFigures
from evenhand.procedure.statistics import FEWEST_FOR_PERCENTILES, OWN_PERCENTILES
from evenhand.report.page_words import NONE
from evenhand.report.plain import next_lines
from evenhand.rig import READ_THERE
from evenhand.trial import Deviation, TimeLeftOut, TrialResult, Verdict, join_directions

MOST = 1e100
"""A larger number is a file's mistake, or its malice; the square of this one is still a number."""
SIZE = "#frame size, octets"
"""Title of the label that every result has."""
FOLDED = ("suite", "protocol", "addresses", "media", "rate", SIZE.removeprefix("#"))
"""Columns that a table does without where all rows have the same there."""
PERCENTILES = ("1st percentile", "99th percentile")
"""Columns that a table does without where no row has them."""
PERCENTILES_ARE_ENDS = (
    f"With fewer than {OWN_PERCENTILES} repetitions the 1st percentile is the minimum,"
    " and the 99th the maximum."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEntry:
    """One result of a procedure."""

    document: Mapping[str, Any]
    """As `--json` of the verb has it, or the part of it that a run file has."""
    found: Any = None
    """What its procedure reads there (`Procedure.read`)."""
    value: float | None = None
    """The figure of the procedure, if it ended with one."""
    trials: Sequence[TrialResult] = ()
    """All that were made for it, in order; empty if they are not at hand."""
    own_loop: TrialResult | None = None
    """The trial of the tester's own loop before a test of delays; None if there is none, or not at hand."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Cells of the columns that tell results apart, by the titles of these columns."""
    conditions: str = ""
    """`describe_conditions` of a result whose plan is at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEntry:
    """What was measured several times under the same conditions."""

    repetitions: Sequence[Any]
    """What was found each time (`Procedure.read`)."""
    labels: Mapping[str, str] = field(default_factory=dict)


def table_of(
    entries: Iterable[tuple[Mapping[str, str], Iterable[Sequence[str | Cell]]]],
    titles: Sequence[str | Column],
    *,
    title: str,
    caption: str = "",
    fold: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> Table:
    """
    Args:
        entries: For each result its labels, and its rows below these titles.
        fold: As in `make_table`; labels are folded in any case.
        leave_out: Titles of columns that there is no room for.
    """
    made = [(labels, [*rows]) for labels, rows in entries]
    names = [*dict.fromkeys(name for labels, _ in made for name in labels)]
    columns = columns_of([*names, *titles])
    cells = [[*(labels.get(name, "") for name in names), *row] for labels, rows in made for row in rows]
    kept = [
        n
        for n, column in enumerate(columns)
        if column.title not in leave_out
        and not (column.title.startswith(PERCENTILES) and all(row[n] == NONE for row in cells))
    ]
    return make_table(
        [columns[n] for n in kept],
        [[row[n] for n in kept] for row in cells],
        caption=caption,
        title=title,
        fold=(*FOLDED, *fold),
    )


def size_label(size: FrameSize) -> dict[str, str]:
    """`64`; of a sequence its mean, and which it is."""
    return {SIZE: f"{float(size.mean):.6g} ({size})" if isinstance(size, Imix) else str(size)}


def size_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The label of a whole document; empty for the part of it that the run file of a verb has."""
    imix = document.get("imix") or mapping(document, "mix").get("imix")
    if imix:
        return size_label(parse_imix(str(imix)))
    size = number(document, "frame_size")
    return {} if size is None else size_label(int(size))


def mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Empty where the document has none: not every procedure writes each."""
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def mappings(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The same of a list of them."""
    found = document.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def number(document: Mapping[str, Any], key: str) -> float | None:
    """None where the document has none that can be shown."""
    found = document.get(key)
    is_number = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= MOST
    return found if is_number else None


def text(document: Mapping[str, Any], key: str) -> str:
    """A text of the document, as it may be shown; empty where it has none."""
    found = document.get(key)
    return visible(found) if isinstance(found, str) else ""


def with_spaces(name: str) -> str:
    """A name of a document, such as `tester_ceiling`, with spaces."""
    return visible(name).replace("_", " ")


def show(value: float | None, write: Callable[[float], str], bound: str = "", *, none: str = NONE) -> str:
    """`bound` comes before a number, `none` in place of one."""
    return none if value is None else bound + write(value)


def show_time(value_s: float) -> str:
    """`0 s`, `12.5 us`."""
    return "0 s" if value_s == 0 else format_duration(value_s)


def percentiles_lines(counts: Iterable[int]) -> list[str]:
    """What a table says of percentiles over so many repetitions, of each of its rows."""
    shown = [count for count in counts if count >= FEWEST_FOR_PERCENTILES]
    return [PERCENTILES_ARE_ENDS] if shown and min(shown) < OWN_PERCENTILES else []


def show_percentiles(statistics: Statistics, write: Callable[[float], str]) -> list[str]:
    """The 1st and the 99th; few values have none."""
    return (
        [NONE, NONE]
        if statistics.count < FEWEST_FOR_PERCENTILES
        else [write(statistics.percentile_1), write(statistics.percentile_99)]
    )


def describe_conditions(profile: Profile) -> str:
    """`64 octet frames, UDP over IPv4, 1 address pair (gateway-v4); theoretical limit ...`."""
    return (
        f"{profile.frames}, {profile.protocol}, {profile.address_words} ({profile.plan.label});"
        f" theoretical limit {describe_limit(profile)}"
    )


def describe_limit(profile: Profile) -> str:
    """Item (c) of R2544-23."""
    if profile.theoretical_fps is None:
        return "unknown, because the ports do not know their line rate"
    of = profile.line_rate_words
    return f"{format_count(profile.theoretical_fps)} fps per direction{f' ({of})' if of else ''}"


def last_reasons(trials: Sequence[TrialResult]) -> str:
    """Why the last trial was INVALID."""
    return "; ".join(reason.text for reason in join_directions(trials[-1].reasons)) if trials else ""


def last_invalid_lines(outcome: str, trials: Sequence[TrialResult]) -> list[str]:
    """How a test at one load ended because the tester could not keep it."""
    if outcome != "tester_ceiling" or not trials:
        return []
    return [
        f"The last trial was INVALID: {last_reasons(trials)}. This tester cannot keep this load,"
        " which says nothing about the DUT."
    ]


def trials_lines(
    trials: Sequence[TrialResult], *, what: str = "Trials", is_decided: bool = False
) -> list[str]:
    """How many trials of each verdict, what the tester showed of itself in them, how much of their time was
    not judged, and what to do if it did not keep a load.

    Args:
        is_decided: The result does not depend on loads that the tester did not keep.
    """
    return [
        f"{what}: {len(trials)} ({count_verdicts(trial.verdict for trial in trials)}). Tester:"
        f" {WorstTesterFigures.of(trials)}.",
        *time_left_out_lines(TimeLeftOut.of(trials)),
        *([] if is_decided else next_lines(trials)),
    ]


def time_left_out_lines(found: TimeLeftOut | None) -> list[str]:
    """Nothing if no trial was judged by its clean time."""
    return [] if found is None else [found.line]


def count_verdicts(verdicts: Iterable[Verdict]) -> str:
    """`3 PASS, 2 FAIL, 0 INVALID`."""
    found = [*verdicts]
    return ", ".join(f"{found.count(verdict)} {verdict}" for verdict in Verdict)


def dut_lines(facts: Mapping[str, str | None] | None) -> list[str]:
    """What the testbed file states of the DUT, what was read there, and what neither states (SEED-81,
    SEED-84).

    Args:
        facts: `dut_facts` of a document.
    """
    if facts is None:
        return []
    known = {_words(name): value for name, value in facts.items() if value is not None}
    read = "; ".join(
        f"{name}: {value.removesuffix(READ_THERE)}"
        for name, value in known.items()
        if value.endswith(READ_THERE)
    )
    stated = "; ".join(f"{name}: {value}" for name, value in known.items() if not value.endswith(READ_THERE))
    missing = ", ".join(_words(name) for name, value in facts.items() if value is None)
    lines = [f"DUT, according to the testbed file: {stated}."] if stated else []
    lines += [f"DUT, as read there: {read}."] if read else []
    return lines + (
        [f"Not stated for the DUT ([dut.facts] in the testbed file): {missing}."] if missing else []
    )


def deviation_lines(document: Mapping[str, Any]) -> list[str]:
    """What the result deviates from; none where the document does not state it."""
    return [
        Deviation(requirement=str(each.get("requirement")), text=str(each.get("text"))).line
        for each in mappings(document, "deviations")
    ]


def _words(name: str) -> str:
    return name.replace("_", " ")
