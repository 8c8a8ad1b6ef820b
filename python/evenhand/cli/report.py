# SPDX-License-Identifier: Apache-2.0
"""`evenhand report`: the page of a campaign, or of any run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_new, check_replaceable, write_new
from evenhand.cli.common import err, out
from evenhand.run import SUFFIX, CampaignRecord, read_record

EXAMPLE = "Example: evenhand report appendix-a.evenhand --pictures pictures"


def report(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help=f"The file of a campaign, or the run of any verb (*{SUFFIX})."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=(
                "The page to write. Default: next to the run file, with the same name; for a run of evenhand"
                " demo, which has a page of its own, the name ends in -report. An older page is replaced."
            ),
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures", metavar="FOLDER", help="Also write each picture as an SVG and a PNG file."
        ),
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option(
            "--pdf",
            metavar="FILE",
            help=(
                "Also write the page as A4 sheets into this file, which must not exist. Needs chromium"
                " or weasyprint."
            ),
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", hidden=True)] = None,
) -> None:
    """Write one HTML page of what a campaign or a run measured: curve, verdict, every trial, and how to
    repeat it."""
    from evenhand.analysis import analyse
    from evenhand.report.page import (
        MARK,
        render_page,
        write_pictures,
        write_rendered,
    )  # its libraries take longer than most verbs
    from evenhand.report.pdf import check_printer, print_pdf

    if html is not None:
        if output is not None:
            raise RequestError(
                "both are the file of the page",
                code="cli.options-exclude-each-other",
                where="--output, --html",
                next_step="Use --output.",
            )
        err().print("--html of evenhand report is called --output now.", markup=False, soft_wrap=True)
    record = read_record(file)
    target = output or html or _default_page(file, record)
    check_replaceable(target, mark=MARK, where=str(target))  # drawing takes long
    if pdf is not None:
        check_new(pdf, where=f"--pdf {pdf}")
        check_printer(f"--pdf {pdf}")
    # Whoever asks for a page of a campaign that goes on has it as it is now; the campaign's own page is the
    # one that goes along.
    page = render_page(record, analyse(record), refresh_s=None)
    write_rendered(page, target)
    console = out()
    console.print(f"The page: {target}", markup=False, soft_wrap=True)
    if pdf is not None:
        write_new(pdf, print_pdf(page, where=f"--pdf {pdf}"), where=f"--pdf {pdf}")
        console.print(f"On paper: {pdf}", markup=False, soft_wrap=True)
    if pictures is not None:
        written = write_pictures(record, pictures)
        console.print(
            f"{len(written)} pictures in {pictures}" if written else "There is nothing to draw yet.",
            markup=False,
            soft_wrap=True,
        )


def _default_page(file: Path, record: CampaignRecord) -> Path:
    """The demo's own page lies beside its run under the run's name, and says what this one does not."""
    is_demo = any(command[1:2] == ("demo",) for command in record.commands)
    return file.with_name(f"{file.stem}-report.html") if is_demo else file.with_suffix(".html")
