# SPDX-License-Identifier: Apache-2.0
"""Station 10: the one summary table of a campaign, for its page and for papers: a row of texts for each
point."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.procedure.registry import PROCEDURES
from evenhand.report.page_words import NONE, show_median, show_size, show_value, show_version, unit_of
from evenhand.report.plain import visible
from evenhand.report.sentences import WHY_BOUND
from evenhand.run.campaign_record import CampaignRecord, PointRecord, bounds_of

NOTE = (
    "Rates are per direction; frame sizes are octets with the FCS. A result is the median of the"
    f" repetitions. >= marks a lower bound: {WHY_BOUND};"
    " where all repetitions are lower bounds, the result is the highest of them."
    " Failed at: the lowest load that failed (median); the limit lies between it and the result."
)
NOT_STATED = "not stated"
_FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a text that begins so."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\char96{}",
    "'": r"\char39{}",
    "-": r"{-}",
}
_MARKDOWN = "\\`*_{}[]<>()#+!|~&$"


@dataclass(frozen=True, slots=True)
class SummaryColumn:
    """A column of the table, in all its forms."""

    title: str
    is_number: bool = False


COLUMNS = (
    SummaryColumn("suite"),
    SummaryColumn("metric"),
    SummaryColumn("IP version"),
    SummaryColumn("hash"),
    SummaryColumn("frame size"),
    SummaryColumn("hosts", True),
    SummaryColumn("result", True),
    SummaryColumn("failed at", True),
    SummaryColumn("minimum", True),
    SummaryColumn("maximum", True),
    SummaryColumn("repetitions", True),
)


def summary_rows(record: CampaignRecord) -> list[tuple[str, ...]]:
    """Rows in the order of the campaign, texts in the order of `COLUMNS`; also points without a number, which
    say so. Not escaped."""
    return [_row(found) for found in record.points]


def printed(record: CampaignRecord) -> tuple[tuple[SummaryColumn, ...], list[tuple[str, ...]]]:
    """Columns and rows for readers: without the hash, if no point states it. The CSV has all columns."""
    rows = summary_rows(record)
    shown = [
        place
        for place, column in enumerate(COLUMNS)
        if column.title != "hash" or any(row[place] != NOT_STATED for row in rows)
    ]
    return tuple(COLUMNS[place] for place in shown), [tuple(row[place] for place in shown) for row in rows]


def _row(found: PointRecord) -> tuple[str, ...]:
    point = found.point
    statistics, unit = found.statistics, unit_of(point)
    if statistics is None:
        ends = ("no number" if found.state == "no_number" else "not measured", NONE, NONE, NONE)
    else:
        bounds = bounds_of(found.values, found.lower_bounds)
        low, high = (
            f"{bound}{show_value(v, unit)}"
            for bound, v in zip(bounds[1:], (statistics.minimum, statistics.maximum), strict=True)
        )
        ends = (
            show_median(found),
            NONE if found.median_upper is None else show_value(found.median_upper, unit),
            low,
            high,
        )
    done = len(found.values)
    return (
        point.suite,
        PROCEDURES[point.procedure].figure.name,
        show_version(point),
        point.hash_type or NOT_STATED,
        _size(found),
        _hosts(found),
        *ends,
        str(done) if done == point.repetitions else f"{done} of {point.repetitions}",
    )


def _size(found: PointRecord) -> str:
    """Octets; a sequence of sizes in words."""
    size = found.point.frame_size
    return str(size) if isinstance(size, int) else show_size(found.point)


def _hosts(found: PointRecord) -> str:
    """`16 x 16`: addresses of both sides, over all networks."""
    return str(found.point.addresses)


def to_summary_csv(record: CampaignRecord) -> str:
    """The table as RFC 4180 with LF line ends. Texts of the file do nothing to terminals or spreadsheets."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.title for column in COLUMNS])
    for row in summary_rows(record):
        shown = [visible(text) for text in row]
        writer.writerow(
            [f"'{text}" if text.startswith(_FORMULA) and text != NONE else text for text in shown]
        )
    return written.getvalue()


def to_summary_markdown(record: CampaignRecord) -> str:
    """A pipe table, as GitHub and most others read it; what a text has of Markdown or HTML is shown, and not
    obeyed."""
    columns, rows = printed(record)
    lines = [
        _pipes([column.title for column in columns]),
        _pipes(["---:" if column.is_number else "---" for column in columns]),
        *(_pipes([_markdown(text) for text in row]) for row in rows),
    ]
    return "\n".join([*lines, "", _markdown(NOTE), ""])


def to_summary_latex(record: CampaignRecord) -> str:
    """A `table` float with booktabs rules, for `\\input`. Needs booktabs and graphicx."""
    columns, rows = printed(record)
    spec = "".join("r" if column.is_number else "l" for column in columns)
    lines = [
        "% Written by Evenhand. Needs \\usepackage{booktabs,graphicx}, and XeLaTeX or LuaLaTeX for names"
        " beyond Latin letters.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(record.name)}. {_latex(NOTE)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        _latex_row([column.title for column in columns]),
        r"\midrule",
        *(_latex_row(row) for row in rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    return "".join(f"\\{sign}" if sign in _MARKDOWN else sign for sign in visible(text))


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(_latex(text) for text in texts) + r" \\"


def _latex(text: str) -> str:
    plain = visible(text)
    shown = "".join(_LATEX.get(sign, sign) if sign != "-" or len(plain) > 1 else "--" for sign in plain)
    # The signs that papers have for these; two hyphens in a name do not become a dash.
    return shown.replace(r"\textgreater{}=", r"$\geq$").replace(" x ", r" $\times$ ")
