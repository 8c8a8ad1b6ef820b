# SPDX-License-Identifier: Apache-2.0
"""`evenhand export`: a run file in formats of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from evenhand.analysis import compare
from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_new, write_new
from evenhand.base.units import parse_ratio
from evenhand.cli.common import err, write_text
from evenhand.cli.compare import FailByOption
from evenhand.cli.show import FileArgument
from evenhand.report.campaign_document import export_document
from evenhand.report.campaign_rows import TableName
from evenhand.report.cases import Cases, Gate, cases_of, to_github_summary, to_junit
from evenhand.report.line_protocol import to_line_protocol
from evenhand.report.openmetrics import to_openmetrics
from evenhand.report.summary import to_summary_csv, to_summary_latex, to_summary_markdown
from evenhand.report.table_files import to_csv, to_parquet
from evenhand.report.uti import left_out, uti_documents
from evenhand.run import CampaignRecord, read_record

EXAMPLE = "Example: evenhand export first.evenhand --format csv --table trials --output trials.csv"


Format = Literal[
    "json", "csv", "parquet", "uti", "latex", "markdown", "junit", "github", "openmetrics", "influx"
]
"""What is written."""
ExportTable = Literal[TableName, "summary"]
"""What each row is about."""
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="json|csv|parquet|uti|latex|markdown|junit|github|openmetrics|influx",
        help="json: everything; csv, parquet: one table; uti: FD.io CSIT's test cases, one per line;"
        " latex, markdown: the summary, for a paper; junit: test cases as XML; github: the same for the"
        " summary of a job; openmetrics: for Prometheus; influx: InfluxDB's line protocol.",
    ),
]
TableOption = Annotated[
    ExportTable | None,
    typer.Option(
        "--table",
        metavar="points|repetitions|trials|flows|summary",
        help="The table to write as csv or parquet. flows: those of each trial. summary: the page's table as"
        " text, for csv, latex and markdown. Default: trials, or summary; for influx repetitions and trials.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write to this file, which must not exist. Default: stdout; parquet needs a file.",
    ),
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="RUN",
        help="For junit and github: judge each point by its ratio to this run, the first of the two.",
    ),
]
FailBelowOption = Annotated[
    str | None,
    typer.Option(
        "--fail-below",
        metavar="RATIO",
        help="With --against: a point is a failure if it is worse than this share: 0.97 or 97%.",
    ),
]
_TABLES_OF: Mapping[Format, tuple[ExportTable, ...]] = {
    "csv": get_args(ExportTable),
    "parquet": get_args(TableName),
    "latex": ("summary",),
    "markdown": ("summary",),
    "influx": ("repetitions", "trials", "flows"),
}
_CASES: Mapping[Format, Callable[[Cases], str]] = {"junit": to_junit, "github": to_github_summary}


def export(
    file: FileArgument,
    format: FormatOption,  # noqa: A002
    table: TableOption = None,
    output: OutputOption = None,
    against: AgainstOption = None,
    fail_below: FailBelowOption = None,
    fail_by: FailByOption = "interval",
) -> None:
    """Write what is in a run file as JSON, CSV, Parquet, CSIT's UTI result JSON, a summary table for a
    paper, test cases for continuous integration, or for a time series database.

    docs/reference/export.md describes every column and its unit. The file is only read, and treated as
    untrusted.
    """
    _check_table(format, table)
    limit = _limit(format, against, fail_below)
    if format == "parquet" and output is None:
        raise RequestError(
            "a Parquet table can only be written to a file, not to stdout",
            code="cli.format-needs-a-file",
            where="--format parquet",
            next_step=f"Name the file: --output {file.stem}.parquet",
        )
    if output is not None:
        check_new(output, where=f"--output {output}")
    record = read_record(file)
    if format in _CASES:
        gate = None
        if against is not None and limit is not None:
            gate = Gate(comparison=compare([read_record(against), record]), limit=limit, by=fail_by)
        content = _CASES[format](cases_of(record, gate)).encode()
    else:
        content = _content(record, format, table)
    if output is not None:
        write_new(output, content, where=f"--output {output}")
        return
    write_text(content.decode())


def _check_table(format: Format, table: ExportTable | None) -> None:  # noqa: A002
    """RequestError if the format does not have the table."""
    if table is None:
        return
    if format not in _TABLES_OF:
        raise RequestError(
            f"{format} has no tables to choose from",
            code="cli.no-such-table",
            where="--table",
            next_step="Omit it, or use --format csv or --format parquet.",
        )
    if table not in _TABLES_OF[format]:
        others = " or ".join(f"--format {other}" for other, tables in _TABLES_OF.items() if table in tables)
        raise RequestError(
            f"{format} does not have the table {table}",
            code="cli.no-such-table",
            where="--table",
            next_step=f"Use {others}.",
        )


def _limit(format: Format, against: Path | None, fail_below: str | None) -> float | None:  # noqa: A002
    """The limit of the gate; None without one. RequestError if one of its two options is missing, or is
    useless."""
    if against is None and fail_below is None:
        return None
    if format not in _CASES:
        raise RequestError(
            f"{format} has no test cases to judge",
            code="cli.no-gate",
            where="--against" if against is not None else "--fail-below",
            next_step="Omit it, or use --format junit or --format github.",
        )
    if against is None or fail_below is None:
        given, missing = (
            ("--against", "--fail-below 0.97") if fail_below is None else ("--fail-below", "--against RUN")
        )
        raise RequestError(
            f"{given} without {missing.split()[0]} judges nothing",
            code="cli.half-a-gate",
            where=given,
            next_step=f"Add {missing}.",
        )
    limit = parse_ratio(fail_below, where="--fail-below")
    if limit == 0:
        raise RequestError(
            "the limit 0 can never be missed",
            code="cli.out-of-range",
            where="--fail-below",
            next_step="Write a ratio such as 0.97 or 97%.",
        )
    return limit


def _content(record: CampaignRecord, format: Format, table: ExportTable | None) -> bytes:  # noqa: A002
    rows: TableName = "trials" if table is None or table == "summary" else table
    match format:
        case "json":
            return f"{json.dumps(export_document(record), allow_nan=False)}\n".encode()
        case "csv" if table == "summary":
            return to_summary_csv(record).encode()
        case "csv":
            return to_csv(record, rows).encode()
        case "parquet":
            return to_parquet(record, rows)
        case "uti":
            return _uti(record)
        case "latex":
            return to_summary_latex(record).encode()
        case "markdown":
            return to_summary_markdown(record).encode()
        case "openmetrics":
            return to_openmetrics([record]).encode()
        case "influx":
            return to_line_protocol(record, ("repetitions", "trials") if table is None else (rows,)).encode()
        case "junit" | "github":
            raise AssertionError(format)


def _uti(record: CampaignRecord) -> bytes:
    try:
        documents = list(uti_documents(record))
    except (ValueError, TypeError, AttributeError) as error:
        raise RequestError(
            f"this run cannot be represented in UTI: {error}",
            code="cli.not-in-uti",
            where=str(record.path),
            next_step="Use --format json.",
        ) from error
    lost = left_out(record)
    if lost:
        what = "1 point of a procedure" if len(lost) == 1 else f"{len(lost)} points of procedures"
        err().print(
            f"Left out: {what} that UTI cannot represent (it has throughput and loss).",
            markup=False,
            soft_wrap=True,
        )
    if not documents:
        raise RequestError(
            "this run contains nothing that UTI can represent",
            code="cli.not-in-uti",
            where=str(record.path),
            next_step="Use --format json, csv or parquet.",
        )
    return "".join(f"{json.dumps(document, allow_nan=False)}\n" for document in documents).encode()
