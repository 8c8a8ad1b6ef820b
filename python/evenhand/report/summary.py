# SPDX-License-Identifier: Apache-2.0
"""Station 10: the one summary table of a campaign, for its page and for papers: a row of texts for each
point."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from evenhand.base.table import Cell, Column, Row, Table, in_one_unit, make_table, measured
from evenhand.base.visible import harmless
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.page_words import NONE, measured_cells, show_size, show_version, time_share_cell, unit_of
from evenhand.report.plain import WHY_BOUND
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.figures import time_left_out_at

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


LEFT_OUT = "time left out"
"""The column that a table has only where a trial was judged by its clean time."""
LEFT_OUT_NOTE = (
    "Time left out: the share of the trials' sending time in which the tester or its machine was away, and"
    " which was not judged."
)
COLUMNS = (
    Column("suite"),
    Column("metric"),
    Column("IP version"),
    Column("hash"),
    Column("frame size"),
    Column("hosts", True),
    Column("result", True),
    Column("failed at", True),
    Column("minimum", True),
    Column("maximum", True),
    Column("repetitions", True),
    Column(LEFT_OUT, True),
)


def summary_rows(record: CampaignRecord) -> list[tuple[str, ...]]:
    """Rows in the order of the campaign, texts in the order of `summary_columns`, each with its unit, which
    all values of a kind have in common; also points without a number, which say so. Not escaped."""
    places = [COLUMNS.index(column) for column in summary_columns(record)]
    return [tuple(row[place].text for place in places) for row in _rows(record)]


def summary_columns(record: CampaignRecord) -> list[Column]:
    """All of `COLUMNS` that the record has."""
    has_left_out = any(time_left_out_at(found) is not None for found in record.points)
    return [column for column in COLUMNS if has_left_out or column.title != LEFT_OUT]


def _rows(record: CampaignRecord) -> list[Row]:
    return in_one_unit(_row(found) for found in record.points)


def summary_table(record: CampaignRecord) -> Table:
    """The table for readers: without the hash, if no point states it. The CSV has all columns."""
    rows, columns = _rows(record), summary_columns(record)
    shown = [
        place
        for place, column in enumerate(COLUMNS)
        if column in columns
        and (column.title != "hash" or any(row[place].text != NOT_STATED for row in rows))
    ]
    caption = f"{NOTE} {LEFT_OUT_NOTE}" if COLUMNS[-1] in columns else NOTE
    return make_table(
        [COLUMNS[place] for place in shown],
        ([row[place] for place in shown] for row in rows),
        caption=caption,
    )


def _row(found: PointRecord) -> tuple[str | Cell, ...]:
    point = found.point
    unit = unit_of(point)
    median, low, high = measured_cells(found, unit)
    if not found.values:
        median = Cell("no number" if found.state == "no_number" else "not measured")
    done = len(found.values)
    return (
        point.suite,
        PROCEDURES[point.procedure].figure.name,
        show_version(point),
        point.hash_type or NOT_STATED,
        _size(found),
        str(found.point.addresses),
        median,
        measured(found.median_upper, unit),
        low,
        high,
        str(done) if done == point.repetitions else f"{done} of {point.repetitions}",
        time_share_cell(time_left_out_at(found)),
    )


def _size(found: PointRecord) -> str:
    """Octets; a sequence of sizes in words."""
    size = found.point.frame_size
    return str(size) if isinstance(size, int) else show_size(found.point)


def to_summary_csv(record: CampaignRecord) -> str:
    """The table as RFC 4180 with LF line ends. Texts of the file do nothing to terminals or spreadsheets."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.title for column in summary_columns(record)])
    for row in summary_rows(record):
        shown = [harmless(text) for text in row]
        writer.writerow(
            [f"'{text}" if text.startswith(_FORMULA) and text != NONE else text for text in shown]
        )
    return written.getvalue()


def to_summary_markdown(record: CampaignRecord) -> str:
    """A pipe table, as GitHub and most others read it; what a text has of Markdown or HTML is shown, and not
    obeyed."""
    table = summary_table(record)
    lines = [
        _pipes([column.title for column in table.columns]),
        _pipes(["---:" if column.is_number else "---" for column in table.columns]),
        *(_pipes([escape_markdown(cell.text) for cell in row]) for row in table.rows),
    ]
    return "\n".join([*lines, "", escape_markdown(table.caption), ""])


def to_summary_latex(record: CampaignRecord) -> str:
    """A `table` float with booktabs rules, for `\\input`. Needs booktabs and graphicx."""
    table = summary_table(record)
    spec = "".join("r" if column.is_number else "l" for column in table.columns)
    lines = [
        "% Written by Evenhand. Needs \\usepackage{booktabs,graphicx}, and XeLaTeX or LuaLaTeX for names"
        " beyond Latin letters.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(record.name)}. {_latex(table.caption)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        _latex_row([column.title for column in table.columns]),
        r"\midrule",
        *(_latex_row([cell.text for cell in row]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """The text as it is, in Markdown: nothing of it is obeyed."""
    return "".join(f"\\{sign}" if sign in _MARKDOWN else sign for sign in harmless(text))


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(_latex(text) for text in texts) + r" \\"


def _latex(text: str) -> str:
    plain = harmless(text)
    shown = "".join(_LATEX.get(sign, sign) if sign != "-" or len(plain) > 1 else "--" for sign in plain)
    # The signs that papers have for these; two hyphens in a name do not become a dash.
    return shown.replace(r"\textgreater{}=", r"$\geq$").replace(" x ", r" $\times$ ")
