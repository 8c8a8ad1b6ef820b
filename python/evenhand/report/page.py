# SPDX-License-Identifier: Apache-2.0
"""Station 10: the page of a campaign, and its pictures as files. Reads a record; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.analysis import Analysis, analyse
from evenhand.base.new_file import replace_own
from evenhand.base.units import format_count
from evenhand.base.version import VERSION
from evenhand.report.figures import DARK, LIGHT, Picture, draw_inline, draw_png_file, draw_svg_file
from evenhand.report.page_facts import (
    commands_of,
    host_facts,
    repeat_facts,
    shown_deviations,
    shown_testbeds,
    spec_text,
    traffic_table,
)
from evenhand.report.page_figures import pictures_of
from evenhand.report.page_head import (
    dut_line,
    first_verdicts,
    folded_summary,
    head_verdicts,
    headline_figures,
)
from evenhand.report.page_inside import inside_of
from evenhand.report.page_points import CEILING, count_trials, shown_hooks, shown_suites, trials_left_out
from evenhand.report.page_tables import published_table, sections_of
from evenhand.report.page_words import show_time, version_of_plan
from evenhand.report.trial import NumberOf
from evenhand.run.campaign_record import CampaignRecord, PointState
from evenhand.run.figures import time_left_out_at
from evenhand.run.folder import resume_command
from evenhand.trial import TimeLeftOut

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

REFRESH_S = 10
"""After so long a browser asks again for the page of a campaign that goes on."""
MOST_SENTENCES = 6
"""Most sentences of a group of findings that is not folded."""
MARK = re.compile(
    rb'<!DOCTYPE html>.{0,500}<meta name="generator" content="Evenhand '
    rb'|<\?xml version="1\.0" encoding="utf-8"\?>\n<svg [^>]*><!-- Evenhand: '
    rb"|\x89PNG\r\n.{0,500}Software\0Evenhand",
    re.DOTALL,
)
"""The beginning of every file that this module writes, page or picture: such a file may be replaced, any
other may not, even one that mentions Evenhand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFigure:
    name: str
    title: str
    svg: Markup
    caption: str


def write_page(record: CampaignRecord, path: Path, *, refresh_s: int | None = REFRESH_S) -> None:
    """Write the page, or replace the one that is there; whoever reads it meanwhile has the old one or the new
    one, whole.

    Args:
        refresh_s: For a campaign that has not finished: after so long, a browser asks for the page again;
            None: it does not.

    Raises:
        RequestError: There is a file of this name, and it is not a page of Evenhand.
        HostError: The file cannot be written.
    """
    write_rendered(render_page(record, analyse(record), refresh_s=refresh_s), path)


def write_rendered(page: str, path: Path) -> None:
    """As `write_page`, for who has the page already."""
    replace_own(path, page.encode(), mark=MARK, where=str(path))


def write_pictures(record: CampaignRecord, folder: Path) -> list[Path]:
    """Each picture of the page as an SVG and a PNG file; the folder is made if need be. Errors as in
    `write_page`."""
    make_folder(folder)
    written = []
    for picture in (*pictures_of(record, analyse(record)).all, *inside_of(record).pictures):
        for suffix, draw in ((".svg", draw_svg_file), (".png", draw_png_file)):
            path = folder / f"{picture.name}{suffix}"
            replace_own(path, draw(picture), mark=MARK, where=str(path))
            written.append(path)
    return written


def make_folder(folder: Path) -> None:
    """HostError if it cannot be made."""
    from evenhand.base.errors import HostError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"this folder cannot be created: {error.strerror}",
            code="report.folder-not-created",
            where=str(folder),
            next_step="Name another folder.",
        ) from error


def render_page(
    record: CampaignRecord,
    analysis: Analysis,
    *,
    refresh_s: int | None = REFRESH_S,
    number_of: NumberOf | None = None,
) -> str:
    """The whole page as text. Everything that comes from the record is escaped: files come from others.

    Args:
        number_of: Writes the number of a trial, where a page of each is to be had.
    """
    pictures = pictures_of(record, analysis)
    host, mitigations = host_facts(record)
    published = published_table(analysis)
    return render(
        "campaign.html.j2",
        name=record.name,
        dut=dut_line(record),
        verdicts=head_verdicts(analysis),
        headlines=headline_figures(record),
        summary_table=folded_summary(record),
        summary=_summary(record),
        progress=_progress(record, refresh_s),
        first=[show_picture(picture) for picture in pictures.first],
        findings=_findings(record, analysis),
        finding_tables=[] if published is None else [published],
        methods=_methods(analysis),
        sections=[
            {
                "id": section.anchor,
                "title": section.title,
                "figures": [show_picture(picture) for picture in section.pictures],
                "tables": section.tables,
            }
            for section in sections_of(record, pictures)
        ],
        suites=shown_suites(record, number_of),
        trials_left_out=trials_left_out(record),
        found_deviations=shown_deviations(record),
        traffic=traffic_table(record),
        testbeds=shown_testbeds(record),
        host=host,
        mitigations=mitigations,
        commands=commands_of(record),
        repeat=repeat_facts(record),
        hooks=shown_hooks(record.hooks),
        spec=spec_text(record),
        footer=_footer(record),
    )


def render(template: str, **content: Any) -> str:
    """One of the templates, with the style that all pages share."""
    return (
        _environment()
        .get_template(template)
        .render(light=LIGHT, dark=DARK, generator=f"Evenhand {VERSION}", **content)
    )


def show_picture(picture: Picture) -> ShownFigure:
    from markupsafe import Markup

    # matplotlib escapes the labels.
    return ShownFigure(
        name=picture.name, title=picture.title, svg=Markup(draw_inline(picture)), caption=picture.caption
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("evenhand.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _summary(record: CampaignRecord) -> str:
    measured = [found for found in record.points if found.state is PointState.MEASURED]
    bounds = sum(found.is_at_least for found in measured)
    without = sum(found.state is PointState.NO_NUMBER for found in record.points)
    parts = [f"{_number(len(measured), 'point')} measured{_how_many_bounds(bounds, len(measured))}"]
    parts += [f"{without} without a number"] if without else []
    trials = count_trials(record)
    of_dut, invalid = trials.total() - trials[CEILING], trials["INVALID"]
    share = 100 * invalid / max(1, of_dut)
    left_out = TimeLeftOut.together(time_left_out_at(found) for found in record.points)
    parts += [
        _number(of_dut, "trial")
        + (
            f", {format_count(invalid)} of them INVALID ({share:.0f} %): spoiled by the"
            " tester or its machine, and not charged to the DUT"
            if invalid
            else ""
        ),
        *(
            [f"{format_count(trials[CEILING])} more looked for the tester's own ceiling"]
            if trials[CEILING]
            else []
        ),
        *([] if left_out is None else [f"time left out: {left_out.text}"]),
        f"started {show_time(record.created_at)}",
    ]
    parts += [f"finished {show_time(record.finished_at)}"] if record.finished_at else []
    return "; ".join(parts) + "."


def _how_many_bounds(bounds: int, measured: int) -> str:
    """A page of lower bounds is none of results."""
    if not bounds:
        return ""
    return f" ({'all' if bounds == measured else format_count(bounds)} as lower bounds)"


def _progress(record: CampaignRecord, refresh_s: int | None) -> Mapping[str, Any] | None:
    """The progress; None once the campaign is finished."""
    if record.finished_at is not None:
        return None
    done = sum(found.state in (PointState.MEASURED, PointState.NO_NUMBER) for found in record.points)
    text = f"Not finished when this page was written: {done} of {_number(len(record.points), 'point')} done"
    again = (
        "" if refresh_s is None else f" It is written again after points, and reloads every {refresh_s} s."
    )
    if refresh_s is None and record.is_campaign:
        again = f" If it is not being measured now, resume it: {resume_command(record.path, on_page=True)}"
    return {"text": f"{text}.{again}", "points": len(record.points), "done": done, "refresh_s": refresh_s}


def _findings(record: CampaignRecord, analysis: Analysis) -> list[Mapping[str, Any]]:
    """Sentences under the names of what they are about; those that begin a page's list of notes are
    flagged."""
    groups: dict[str, list[tuple[str, bool]]] = {}
    shown_first = first_verdicts(analysis)
    for verdict in analysis.bias:
        if verdict not in shown_first:
            hashes = "" if verdict.hash_type is None else f", {verdict.hash_type}"
            setting = f"{version_of_plan(verdict.plan)}, {verdict.frame_size} octets{hashes}:"
            text = " ".join(
                part for part in (setting, verdict.sentence, verdict.certainty, verdict.predicted) if part
            )
            groups.setdefault("Bias, other settings", []).append((text, False))
    for ratio in analysis.ratios:
        groups.setdefault("What should be about equal", []).append((ratio.sentence, ratio.is_flagged))
    for curve in analysis.curves:
        if curve.shape is not None:
            said = [(sentence, False) for sentence in curve.shape.sentences]
            groups.setdefault(curve.title, []).extend(said)
    for comparison in analysis.published:
        said = [(sentence, False) for sentence in comparison.sentences]
        groups.setdefault("Beside the draft's Figure 7", []).extend(said)
    if analysis.testbeds is not None:
        disagree = bool(analysis.testbeds.different)
        groups.setdefault("Testbeds", []).extend(
            (sentence, disagree) for sentence in analysis.testbeds.sentences
        )
    for warning in (*analysis.warnings, *record.notes):
        groups.setdefault("Notes", []).append((warning, True))
    return [
        {
            "title": title,
            "said": [{"text": text, "is_flagged": flag} for text, flag in said],
            "is_folded": len(said) > MOST_SENTENCES,
        }
        for title, said in groups.items()
    ]


def _methods(analysis: Analysis) -> list[str]:
    """How rises and falls were distinguished from noise, each way once."""
    methods = dict.fromkeys(curve.shape.method for curve in analysis.curves if curve.shape is not None)
    return [*methods, *([] if analysis.testbeds is None else [analysis.testbeds.method])]


def _number(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{format_count(count)} {what}s"


def _footer(record: CampaignRecord) -> str:
    version = record.versions.get("evenhand", VERSION)
    return (
        f"Measured by Evenhand {version}, page by Evenhand {VERSION}. Method:"
        " draft-lencse-bmwg-multiple-ip-addresses on top of RFC 2544, RFC 4814 and RFC 8219."
        " Rates are frames per second per direction; frame sizes include the FCS."
    )
