# SPDX-License-Identifier: Apache-2.0
"""The pages of the server: its own, and those of the report in its frame. Drawn when somebody asks, and kept
as long as the files that they are of stay the same."""

from __future__ import annotations

import json
import shlex
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from markupsafe import Markup

from evenhand.analysis import analyse, compare
from evenhand.analysis.trend import trend as trend_of
from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.version import VERSION
from evenhand.base.visible import visible
from evenhand.report.comparison_page import render_comparison
from evenhand.report.page import render, render_page
from evenhand.report.page_words import show_time
from evenhand.report.trend_page import render_trend
from evenhand.run import SUFFIX, CampaignRecord, read_record
from evenhand.serve.charts import charts_of_run, charts_of_trend
from evenhand.serve.index import Entry
from evenhand.serve.rewritten import rewritten
from evenhand.serve.run_facts import RunState
from evenhand.serve.trial_page import capture_of, other_trials, places_of, trial_content
from evenhand.serve.watcher import Watcher

if TYPE_CHECKING:
    from jinja2 import Environment

KEPT_PAGES = 32
ROWS = 100
"""Rows of one page of the list."""
MOST_RUNS_OF_A_TREND = 200
MOST_COMPARED = 8
MOST_OTHERS = 40
"""Trials of no point that are linked, such as those that looked for the tester's own ceiling."""
DOWNLOADS = (
    ("json", "JSON"),
    ("csv", "CSV of trials"),
    ("latex", "LaTeX"),
    ("markdown", "Markdown"),
    ("pdf", "PDF"),
    ("run", "run file"),
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs the list shows."""

    text: str = ""
    """In title, file, DUT or result."""
    dut: str = ""
    plan: str = ""
    procedure: str = ""
    state: str = ""
    since: str = ""
    """Date, as a prefix of ISO 8601 is compared."""
    until: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> RunFilter:
        """From the address of a page; what is not understood does not filter."""
        given = {name: query.get(name, "").strip()[:200] for name in cls.names()}
        page = query.get("page", "")
        return cls(**given, page=int(page) if page.isascii() and page.isdecimal() and len(page) < 6 else 1)

    @staticmethod
    def names() -> tuple[str, ...]:
        return ("text", "dut", "plan", "procedure", "state", "since", "until")

    def address(self, page: int) -> str:
        """The query of another page of the same list."""
        given = {name: value for name in self.names() if (value := getattr(self, name))}
        return urlencode({**given, "page": page})

    def allows(self, entry: Entry) -> bool:
        facts = entry.facts
        day = facts.created_at[:10]
        return (
            (not self.dut or facts.dut == self.dut)
            and (not self.plan or self.plan in facts.plans)
            and (not self.procedure or self.procedure in facts.procedures)
            and (not self.state or self.state == entry.state)
            and (not self.since or day >= self.since)
            and (not self.until or day <= self.until)
            and (not self.text or self._is_in(entry))
        )

    def _is_in(self, entry: Entry) -> bool:
        facts = entry.facts
        words = " ".join((entry.name, facts.title, facts.dut, facts.dut_facts, *facts.headlines)).lower()
        return all(word in words for word in self.text.lower().split())


@dataclass(slots=True)
class Pages:
    """Everything that is shown. Methods may take seconds, and are called outside the loop of the server."""

    watcher: Watcher
    base: str = ""
    _kept: OrderedDict[tuple[Any, ...], Any] = field(default_factory=OrderedDict)
    _drawing: Lock = field(default_factory=Lock)
    _environment: Environment | None = None

    def home(self, query: Mapping[str, str]) -> str:
        """The list of runs."""
        index, wanted = self.watcher.index, RunFilter.of(query)
        index_version = index.version
        entries = list(index.entries.values())
        found = [entry for entry in entries if wanted.allows(entry)]
        pages = max(1, -(-len(found) // ROWS))
        page = min(max(1, wanted.page), pages)
        return self._render(
            "home.html.j2",
            rows=[self._row(entry) for entry in found[(page - 1) * ROWS : page * ROWS]],
            filter=wanted,
            is_filtered=any(getattr(wanted, name) for name in wanted.names()),
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
            earlier=wanted.address(page - 1) if page > 1 else "",
            later=wanted.address(page + 1) if page < pages else "",
            page=page,
            pages=pages,
        )

    def run(self, entry: Entry, *, is_report: bool) -> str:
        """A run: live as long as it is measured, otherwise its report."""
        if entry.state is RunState.RUNNING and not is_report:
            return self._render("live.html.j2", run=self._row(entry))
        return self._of(("run", entry.name, entry.stamp, entry.state), lambda: self._report(entry))

    def trial(self, entry: Entry, place: str) -> str:
        """One trial of a run. RequestError if there is no such trial."""

        def draw() -> str:
            record = self.record(entry)
            content = trial_content(record, place)
            capture = capture_of(record, self.watcher.index.folder)
            facts = content.pop("facts")
            return self._render(
                "trial.html.j2", run=self._row(entry), capture=capture, facts_of=facts, **content
            )

        return self._of(("trial", place, entry.name, entry.stamp), draw)

    def compared(self, entries: Sequence[Entry], *, is_anyway: bool) -> str:
        """Runs side by side; the first is what the others are compared with."""

        def draw() -> str:
            page = render_comparison(
                compare(self.records_of(entries, MOST_COMPARED, with_trials=True), anyway=is_anyway)
            )
            return self._framed(page, self._repeat("evenhand compare", entries, is_anyway=is_anyway))

        return self._of(("compare", is_anyway, *_stamps(entries)), draw)

    def trend(self, entries: Sequence[Entry], *, is_anyway: bool) -> str:
        """Each point over these runs."""

        def draw() -> str:
            found = trend_of(self.records_of(entries, MOST_RUNS_OF_A_TREND), anyway=is_anyway)
            after = self._repeat("evenhand trend", entries, is_anyway=is_anyway)
            return self._framed(render_trend(found), after, charts=charts_of_trend(found))

        return self._of(("trend", is_anyway, *_stamps(entries)), draw)

    def message(self, title: str, text: str, next_step: str = "") -> str:
        """A page that only says something."""
        return self._render("message.html.j2", title=title, text=text, next_step=next_step)

    def login(self, *, is_wrong: bool) -> str:
        return self._render("login.html.j2", is_wrong=is_wrong)

    def record(self, entry: Entry, *, with_trials: bool = True) -> CampaignRecord:
        """What the file holds. Errors as in `read_record`."""
        return read_record(self.watcher.index.path(entry.name), with_trials=with_trials)

    def records_of(
        self, entries: Sequence[Entry], most: int, *, with_trials: bool = False
    ) -> list[CampaignRecord]:
        """RequestError for more runs than `most`, or none."""
        if not entries or len(entries) > most:
            raise RequestError(
                f"{len(entries)} runs are chosen, but 1 to {most} can be shown together",
                code="serve.too-many-runs",
                next_step="Choose others in the list of runs.",
            )
        return [self.record(entry, with_trials=with_trials) for entry in entries]

    def kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What was made before under this key, or is made now."""
        return self._of(key, make)

    @property
    def style(self) -> str:
        """The style of all pages."""
        return render("style.css.j2")

    def _report(self, entry: Entry) -> str:
        record = self.record(entry)
        analysis = analyse(record)
        run, places = self._row(entry), places_of(record)

        def number_of(trial: Any) -> str:
            return Markup('<a href="{}/trial/{}">{}</a>').format(
                run["address"], places[id(trial)], trial.number
            )

        page = render_page(record, analysis, refresh_s=None, number_of=number_of)
        capture = [("capture", "pcapng")] if capture_of(record, self.watcher.index.folder) else []
        after = self._rendered(
            "run_parts.html.j2",
            run=run,
            downloads=[*DOWNLOADS, *capture],
            others=list(islice(other_trials(record), MOST_OTHERS)),
        )
        return self._framed(page, after, charts=charts_of_run(record, analysis, places), run=run["address"])

    def _repeat(self, command: str, entries: Sequence[Entry], *, is_anyway: bool) -> Markup:
        files = " ".join(shlex.quote(entry.name) for entry in entries)
        return self._rendered("repeat.html.j2", command=f"{command} {files}{' --anyway' * is_anyway}")

    def _framed(
        self, page: str, after: Markup, charts: Sequence[Mapping[str, Any]] = (), run: str = ""
    ) -> str:
        """A page of the report, with what this server adds."""
        return rewritten(
            page,
            head=self._rendered("head.html.j2"),
            before=self._rendered("top.html.j2"),
            after=after + (self._rendered("charts.html.j2", charts=_json(charts), run=run) if charts else ""),
        )

    def _row(self, entry: Entry) -> dict[str, Any]:
        facts, live = entry.facts, self.watcher.live.get(entry.name)
        share, left_s = facts.share, facts.left_s
        if live is not None and live.running is not None and share is None:
            left_s = live.running.left_of_all_s
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
            "now": "" if live is None or live.running is None else _now(live.running),
            "procedures": ", ".join(facts.procedures),
            "plans": ", ".join(facts.plans),
        }

    def _of(self, key: tuple[Any, ...], draw: Callable[[], T]) -> T:
        """What was drawn before, or is drawn now; only one at a time, since a tester may be on this
        machine."""
        with self._drawing:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: T = self._kept[key]
                return found
            drawn = draw()
            self._kept[key] = drawn
            while len(self._kept) > KEPT_PAGES:
                self._kept.popitem(last=False)
            return drawn

    def _rendered(self, template: str, **content: Any) -> Markup:
        return Markup(self._render(template, **content))

    def _render(self, template: str, **content: Any) -> str:
        if self._environment is None:
            from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

            rooms = ("evenhand.serve", "evenhand.report")
            self._environment = Environment(
                loader=ChoiceLoader([PackageLoader(room, "templates") for room in rooms]),
                autoescape=True,
                undefined=StrictUndefined,
                trim_blocks=True,
                lstrip_blocks=True,
            )
        return self._environment.get_template(template).render(base=self.base, version=VERSION, **content)


def chosen(watcher: Watcher, names: Sequence[str]) -> list[Entry]:
    """The runs of these names, each once. RequestError if one is not there."""
    found = []
    for name in dict.fromkeys(names):
        entry = watcher.index.find(name)
        if entry is None:
            raise RequestError(
                f"there is no run {name!r}",
                code="serve.no-such-run",
                where=name,
                next_step="It may have been removed or renamed: look at the list of runs.",
            )
        found.append(entry)
    return found


def _json(document: Any) -> Markup:
    """For an element of a page: nothing in it can end the element."""
    text = json.dumps(document, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _stamps(entries: Sequence[Entry]) -> tuple[Any, ...]:
    return tuple((entry.name, entry.stamp) for entry in entries)


def _share(created_at: str, left_s: float | None) -> float | None:
    """How much of a verb's time has passed."""
    try:
        begun = datetime.fromisoformat(created_at)
    except ValueError:
        return None
    if left_s is None or begun.tzinfo is None:
        return None
    passed_s = (datetime.now(UTC) - begun).total_seconds()
    return min(0.99, max(0.0, passed_s / (passed_s + left_s))) if passed_s + left_s > 0 else None


def _now(running: Any) -> str:
    trial = "" if running.trial is None else f", trial {running.trial}"
    return visible(f"{running.point}, repetition {running.repetition}{trial}: {running.phase or 'waiting'}")
