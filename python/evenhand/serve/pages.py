# SPDX-License-Identifier: Apache-2.0
"""The pages of the server: its own, and those of the report in its frame. Drawn when somebody asks, and kept
as long as the files that they are of stay the same."""

from __future__ import annotations

import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request

from evenhand.analysis import Comparison, analyse, compare
from evenhand.analysis.trend import trend as trend_over
from evenhand.analysis.trend_model import Trend
from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.version import VERSION
from evenhand.base.visible import visible
from evenhand.report.comparison_page import render_comparison
from evenhand.report.page import render_page
from evenhand.report.page_facts import commands_of
from evenhand.report.page_words import show_time
from evenhand.report.trend import show_change, titles_of
from evenhand.report.trend_page import render_trend
from evenhand.run import SUFFIX, CampaignRecord, read_record
from evenhand.serve.charts import charts_of_run, charts_of_trend
from evenhand.serve.index import Entry, RunState
from evenhand.serve.live import Watcher
from evenhand.serve.trial_page import capture_of, other_trials, trial_content

KEPT_PAGES = 32
ROWS = 100  # rows of one page of the list
MOST_OF_A_TREND = 200
MOST_COMPARED = 8
MOST_OTHERS = 40  # trials of no point that are linked, such as those that looked for the tester's own ceiling
DOWNLOADS = (
    ("json", "JSON"),
    ("csv", "CSV of trials"),
    ("latex", "LaTeX"),
    ("markdown", "Markdown"),
    ("pdf", "PDF"),
    ("run", "run file"),
)
FILTERS = ("text", "dut", "plan", "procedure", "state", "since", "until")
ENVIRONMENT = Environment(
    loader=ChoiceLoader([PackageLoader(f"evenhand.{room}", "templates") for room in ("serve", "report")]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
T = TypeVar("T")
Drawn = tuple[str, Sequence[Any], Sequence[Any]]
"""A page of the report, its charts, and the runs between which something changed."""


def filter_of(query: Mapping[str, str]) -> dict[str, str]:
    """Which runs the list shows, from the address of a page: each of `FILTERS`, empty for all."""
    return {name: query.get(name, "").strip()[:200] for name in FILTERS}


def allows(wanted: Mapping[str, str], entry: Entry) -> bool:
    """Whether a filter shows this run. Dates are compared as prefixes of ISO 8601."""
    facts, day = entry.facts, entry.facts.created_at[:10]
    words = " ".join((entry.name, facts.title, facts.dut, facts.dut_facts, *facts.headlines)).lower()
    return (
        wanted["dut"] in ("", facts.dut)
        and (not wanted["plan"] or wanted["plan"] in facts.plans)
        and (not wanted["procedure"] or wanted["procedure"] in facts.procedures)
        and wanted["state"] in ("", entry.state)
        and wanted["since"] <= day
        and (not wanted["until"] or day <= wanted["until"])
        and all(word in words for word in wanted["text"].lower().split())
    )


@dataclass(slots=True)
class Pages:
    """Everything that is shown. Methods may take seconds, and are called outside the loop of the server."""

    watcher: Watcher
    base: str = ""
    _kept: OrderedDict[tuple[Any, ...], Any] = field(default_factory=OrderedDict)
    _drawing: Lock = field(default_factory=Lock)

    def home(self, request: Request) -> str:
        """The list of runs."""
        index, wanted = self.watcher.index, filter_of(request.query_params)
        index_version = index.version
        entries = list(index.entries.values())
        found = [entry for entry in entries if allows(wanted, entry)]
        pages = max(1, -(-len(found) // ROWS))
        asked = request.query_params.get("page", "")
        page = min(max(1, int(asked) if re.fullmatch("[0-9]{1,5}", asked) else 1), pages)
        given = {name: value for name, value in wanted.items() if value}
        return self.render(
            "home.html.j2",
            rows=[self._row(entry) for entry in found[(page - 1) * ROWS : page * ROWS]],
            filter=wanted,
            is_filtered=bool(given),
            choices={
                "dut": sorted({entry.facts.dut for entry in entries} - {""}),
                "plan": sorted({plan for entry in entries for plan in entry.facts.plans}),
                "procedure": sorted({each for entry in entries for each in entry.facts.procedures}),
                "state": [str(state) for state in RunState],
            },
            count=format_count(len(found)),
            of=format_count(len(entries)),
            unread=index.unread,
            index_version=index_version,
            error=self.watcher.error,
            folder=index.title or index.folder.resolve().name or "/",
            earlier=urlencode({**given, "page": page - 1}) if page > 1 else "",
            later=urlencode({**given, "page": page + 1}) if page < pages else "",
            page=page,
            pages=pages,
        )

    def login(self, request: Request) -> str:
        return self.render("login.html.j2", is_wrong="wrong" in request.query_params)

    def run(self, request: Request) -> str:
        """A run: live as long as it is measured, otherwise its report."""
        entry = self.entry(request)
        is_live = entry.state is RunState.RUNNING
        return self.render("live.html.j2", run=self._row(entry)) if is_live else self.report(request)

    def report(self, request: Request) -> str:
        """The report of a run, as far as it is."""
        entry = self.entry(request)
        return self.kept(("run", entry.name, entry.stamp, entry.state), lambda: self._report(entry))

    def trial(self, request: Request) -> str:
        """One trial of a run. RequestError if there is no such trial."""
        entry, row = self.entry(request), request.path_params["row"]

        def draw() -> str:
            record = read_record(self.watcher.index.folder / entry.name)
            content = trial_content(record, row)
            return self.render("trial.html.j2", run=self._row(entry), capture=capture_of(record), **content)

        return self.kept(("trial", row, entry.name, entry.stamp), draw)

    def comparison(self, request: Request) -> Comparison:
        """The runs that are chosen; the first is what the others are compared with."""
        records = self._records(self._chosen(request), 2, MOST_COMPARED, with_trials=True)
        return compare(records, anyway=_is_anyway(request))

    def compared(self, request: Request) -> str:
        """The same as a page."""
        return self._together(
            request,
            "compare",
            lambda: (render_comparison(self.comparison(request)), (), ()),
            self._chosen(request),
        )

    def trend_of(self, request: Request) -> Trend:
        """Each point over the runs that are chosen, or over the latest of a DUT that hold a result."""
        records = self._records(self._of_trend(request)[0], 1, MOST_OF_A_TREND, with_trials=False)
        return trend_over(records, anyway=_is_anyway(request))

    def trend(self, request: Request) -> str:
        """The same as a page."""

        def draw() -> Drawn:
            found = self.trend_of(request)
            return render_trend(found), charts_of_trend(found), list(self._between(found))

        return self._together(request, "trend", draw, *self._of_trend(request))

    def _between(self, trend: Trend) -> Iterator[dict[str, Any]]:
        """The runs between which something changed, the latest first, with the commands that repeat them."""
        pairs: dict[tuple[int, int], list[str]] = {}
        titles = dict(zip(map(id, trend.points), titles_of(trend), strict=True))
        for point, change in trend.changes:
            said = f"{titles[id(point)]}: {show_change(change)}"
            pairs.setdefault((change.before_run, change.run), []).append(visible(said))
        for pair, changes in pairs.items():
            runs = [trend.runs[number] for number in pair]
            records = [read_record(self.watcher.index.folder / run.file, with_trials=False) for run in runs]
            yield {
                "runs": [(run.file, visible(run.file), visible(run.version or "")) for run in runs],
                "changes": changes,
                "commands": list(dict.fromkeys(line for record in records for line in commands_of(record))),
                "compare": shlex.join(["evenhand", "compare", *(run.file for run in runs)]),
            }

    def entry(self, request: Request) -> Entry:
        """The run that the address names. RequestError if there is none."""
        return self.watcher.index.entry(request.path_params["name"])

    def _chosen(self, request: Request) -> list[Entry]:
        names = dict.fromkeys(request.query_params.getlist("run"))
        return [self.watcher.index.entry(name) for name in names]

    def _of_trend(self, request: Request) -> tuple[list[Entry], int]:
        """The runs, and how many older ones of the DUT are left out."""
        dut = request.query_params.get("dut")
        if "run" in request.query_params or dut is None:
            return self._chosen(request), 0
        found = [
            each
            for each in self.watcher.index.entries.values()
            if each.facts.dut == dut and each.facts.points_done
        ]
        return found[:MOST_OF_A_TREND], len(found[MOST_OF_A_TREND:])

    def _together(
        self,
        request: Request,
        verb: str,
        draw: Callable[[], Drawn],
        entries: Sequence[Entry],
        left_out: int = 0,
    ) -> str:
        """A page of several runs, with the command that makes the same.

        Args:
            left_out: So many older runs are not among them.
        """

        def draw_framed() -> str:
            page, charts, between = draw()
            files = " ".join(shlex.quote(entry.name) for entry in entries)
            command = f"evenhand {verb} {files}{' --anyway' * _is_anyway(request)}"
            after = self.render("repeat.html.j2", command=command, between=between, left_out=left_out)
            return self._framed(page, after, charts)

        stamps = tuple((entry.name, entry.stamp) for entry in entries)
        return self.kept((verb, _is_anyway(request), left_out, stamps), draw_framed)

    def _records(
        self, entries: Sequence[Entry], fewest: int, most: int, *, with_trials: bool
    ) -> list[CampaignRecord]:
        if not fewest <= len(entries) <= most:
            raise RequestError(
                f"the number of chosen runs is {len(entries)}, but {fewest} to {most} can be shown together",
                code="serve.too-few-or-many-runs",
                next_step="Tick others in the list of runs.",
            )
        paths = [self.watcher.index.folder / entry.name for entry in entries]
        return [read_record(path, with_trials=with_trials) for path in paths]

    def _report(self, entry: Entry) -> str:
        record = read_record(self.watcher.index.folder / entry.name)
        analysis, run = analyse(record), self._row(entry)

        def number_of(trial: Any) -> str:
            return Markup('<a href="{}/trial/{}">{}</a>').format(run["address"], trial.row, trial.number)

        page = render_page(record, analysis, refresh_s=None, number_of=number_of)
        parts = self.render(
            "run_parts.html.j2",
            run=run,
            downloads=[*DOWNLOADS, *([("capture", "pcapng")] if capture_of(record) else [])],
            others=list(islice(other_trials(record), MOST_OTHERS)),
        )
        return self._framed(page, parts, charts_of_run(record, analysis), run["address"])

    def _framed(self, page: str, after: Markup, charts: Sequence[Any] = (), run: str = "") -> str:
        """A page of the report, with what this server adds."""
        return rewritten(
            page,
            head=self.render("head.html.j2"),
            before=self.render("top.html.j2"),
            after=after,
            charts=self.render("charts.html.j2", charts=charts, run=run) if charts else Markup(),
        )

    def _row(self, entry: Entry) -> dict[str, Any]:
        facts, live = entry.facts, self.watcher.live.get(entry.name)
        share, left_s = facts.share, facts.left_s
        running = None if live is None else live.running
        if running is not None and share is None and running.left_of_all_s is not None:
            left_s = running.left_of_all_s
            share = _share(facts.created_at, left_s)
        return {
            "name": entry.name,
            "file": visible(entry.name),
            "address": f"{self.base}/run/{quote(entry.name, safe='')}",
            "title": facts.title or entry.name,
            "is_named": entry.name.removesuffix(SUFFIX) != facts.title,
            "dut": facts.dut,
            "dut_facts": facts.dut_facts,
            "headlines": facts.headlines,
            "style": facts.style,
            "state": str(entry.state),
            "error": facts.error,
            "begun": show_time(facts.created_at),
            "points": f"{facts.points_done} of {facts.point_count}",
            "percent": None if share is None else round(100 * share),
            "left": "" if left_s is None else format_duration(max(1, round(left_s))),
            "now": "" if running is None else _now(running),
            "procedures": ", ".join(facts.procedures),
            "plans": ", ".join(facts.plans),
        }

    def kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What was made before under this key, or is made now; only one at a time, since a tester may be on
        this machine."""
        with self._drawing:
            found: T = self._kept.pop(key) if key in self._kept else make()
            self._kept[key] = found
            while len(self._kept) > KEPT_PAGES:
                self._kept.popitem(last=False)
            return found

    def render(self, template: str, **content: Any) -> Markup:
        """One of the templates of this room."""
        return Markup(ENVIRONMENT.get_template(template).render(base=self.base, version=VERSION, **content))


def _is_anyway(request: Request) -> bool:
    return request.query_params.get("anyway") == "1"


def _share(created_at: str, left_s: float) -> float | None:
    """How much of a verb's time has passed, by what its file and its process say."""
    with suppress(ValueError, TypeError, ZeroDivisionError):
        passed_s = (datetime.now(UTC) - datetime.fromisoformat(created_at)).total_seconds()
        return min(0.99, max(0.0, passed_s / (passed_s + left_s)))
    return None


def _now(running: Any) -> str:
    trial = "" if running.trial is None else f", trial {running.trial}"
    return visible(f"{running.point}, repetition {running.repetition}{trial}: {running.phase or 'waiting'}")


_STYLE = re.compile(r'(<[a-zA-Z][^<>]*?)\sstyle="([^"]*)"')
_FONT = re.compile(r"\bfont:\s*(bold |\d+ |)([\d.]+px) ([^;]+)")
_DECLARATION = re.compile(r"\s*([\w-]+)\s*:\s*([^;]*[^;\s])\s*;?\s*")
_HEAD = re.compile(
    r'<meta http-equiv="(?:Content-Security-Policy|refresh)"[^>]*>\n?|<style>.*?</style>\n?', re.DOTALL
)


def rewritten(page: str, *, head: Markup, before: Markup, after: Markup, charts: Markup) -> str:
    """
    Args:
        page: One of the report's pages.
        head: Goes into its head, instead of its style.
        before: Goes to the beginning of its body.
        after: Goes behind its header.
        charts: Go behind the pictures of its result, or behind the header too.
    """
    top, mark, body = page.partition("<body>")
    assert mark, "a page has a body"
    top = _HEAD.sub("", top).replace("</head>", f"{head}</head>")
    body = _STYLE.sub(lambda found: f"{found[1]}{_attributes(found[2])}", body)
    body = body.replace("<main>", '<main id="main">', 1).replace("</header>", f"</header>{after}", 1)
    place = next((mark for mark in ('<nav aria-label="Sections">', "<h2") if charts and mark in body), "")
    return f"{top}<body>{before}{body.replace(place, charts + Markup(place), 1) if place else body}"


def _attributes(style: str) -> str:
    """Attributes of an element of a picture in the place of its style: they mean the same."""
    whole = _FONT.sub(r"font-weight: \1; font-size: \2; font-family: \3", style)
    return _DECLARATION.sub(r' \1="\2"', whole.replace("font-weight: ;", ""))
