# SPDX-License-Identifier: Apache-2.0
"""What the server answers: addresses, and what stands behind each. As OpenMetrics: what is measured now, and
the latest numbers of each DUT."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from evenhand.analysis import analyse
from evenhand.base.errors import EvenhandError, HostError, RequestError, error_part
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_document import export_document, summary_document
from evenhand.report.campaign_status import campaign_document
from evenhand.report.comparison import comparison_document
from evenhand.report.openmetrics import CONTENT_TYPE, Family, exposition
from evenhand.report.page import render, render_page
from evenhand.report.pdf import print_pdf
from evenhand.report.summary import to_summary_latex, to_summary_markdown
from evenhand.report.table_files import to_csv
from evenhand.report.trend import trend_document
from evenhand.run import SUFFIX, CampaignRecord, read_record
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_status import read_status
from evenhand.run.snapshot import copy_to_memory
from evenhand.serve.access import AccessRules, GuardedApp
from evenhand.serve.charts import charts_of_run
from evenhand.serve.index import Entry, RunIndex, RunState
from evenhand.serve.live import KEEP_ALIVE, Watcher, event
from evenhand.serve.pages import Pages, allows, filter_of
from evenhand.serve.trial_page import capture_of

LIST_EVERY_S = 2.0  # a list of runs is not drawn again more often than that
API = {
    "runs": "all runs; text, dut, plan, procedure, state, since and until choose some",
    "runs/NAME": "as evenhand show --json",
    "runs/NAME/status": "as evenhand status --json, of a campaign",
    "runs/NAME/export": "as evenhand export --format json",
    "runs/NAME/charts": "what the charts of its page show",
    "runs/NAME/events": "server-sent events of a run that is measured",
    "compare?run=A&run=B": "as evenhand compare --json",
    "trend?run=A&run=B, trend?dut=NAME": "as evenhand trend --json",
}


def make_app(watcher: Watcher, rules: AccessRules) -> GuardedApp:
    """The whole server over what is watched. What is not `async` is called outside its loop."""
    pages = Pages(watcher=watcher, base=rules.base_path)
    site = _Site(watcher, pages)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(watcher.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        watcher.index.save()

    routes = [
        Route("/", _page(pages.home)),
        Route("/events", site.list_events),
        Route("/login", _page(pages.login, status=401)),
        Route("/run/{name}", _page(pages.run)),
        Route("/run/{name}/report", _page(pages.report)),
        Route("/run/{name}/trial/{row}", _page(pages.trial)),
        Route("/run/{name}/events", site.run_events),
        Route("/run/{name}/download/{kind}", site.download),
        Route("/compare", _page(pages.compared)),
        Route("/trend", _page(pages.trend)),
        Route("/metrics", lambda request: Response(metrics_text(watcher, pages), media_type=CONTENT_TYPE)),
        Route("/static/style.css", lambda request: Response(render("style.css.j2"), media_type="text/css")),
        Mount("/static", StaticFiles(packages=[("evenhand.serve", "static")])),
        Route("/api", _document(lambda request: {f"{pages.base}/api/{at}": of for at, of in API.items()})),
        Route("/api/runs", _document(site.runs)),
        Route("/api/runs/{name}", _document(site.said_of_run)),
        Route("/api/runs/{name}/events", site.run_events),
        Route("/api/runs/{name}/{what}", _document(site.said_of_run)),
        Route(
            "/api/compare",
            _document(lambda request: _said("compare", comparison_document(pages.comparison(request)))),
        ),
        Route(
            "/api/trend", _document(lambda request: _said("trend", trend_document(pages.trend_of(request))))
        ),
    ]
    handlers: Any = dict.fromkeys((EvenhandError, HTTPException, OSError), site.failed)
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False  # it would lose the base path
    return GuardedApp(app, rules)


def _page(draw: Callable[[Request], str], status: int = 200) -> Callable[[Request], Response]:
    return lambda request: HTMLResponse(draw(request), status)


def _document(make: Callable[[Request], Any]) -> Callable[[Request], Response]:
    return lambda request: Response(json.dumps(make(request), allow_nan=False), media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Site:
    """What is no page."""

    watcher: Watcher
    pages: Pages
    printing: threading.Lock = field(default_factory=threading.Lock)
    """One PDF at a time: each takes a browser, and a tester may be on this machine."""

    async def list_events(self, request: Request) -> Response:
        async def news() -> AsyncIterator[str]:
            async for is_new in self.watcher.changes():
                yield event("changed", self.watcher.index.version) if is_new else KEEP_ALIVE
                await asyncio.sleep(LIST_EVERY_S)

        return _stream(news())

    async def run_events(self, request: Request) -> Response:
        return _stream(self.watcher.live_events(self.pages.entry(request).name))

    def download(self, request: Request) -> Response:
        entry = self.pages.entry(request)
        content, suffix, media = self._file(entry, request.path_params["kind"])
        name = re.sub(r"[^A-Za-z0-9._-]", "_", entry.name.removesuffix(SUFFIX)) + suffix
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media, headers=headers)

    def runs(self, request: Request) -> dict[str, Any]:
        wanted = filter_of(request.query_params)
        return {
            "unread": self.watcher.index.unread,
            "runs": [
                {
                    "file": entry.name,
                    "state": str(entry.state),
                    "name": entry.facts.title,
                    "created_at": entry.facts.created_at,
                    "finished_at": entry.facts.finished_at,
                    "dut": entry.facts.dut,
                    "procedures": list(entry.facts.procedures),
                    "plans": list(entry.facts.plans),
                    "headlines": list(entry.facts.headlines),
                    "share": entry.facts.share,
                    "left_s": entry.facts.left_s,
                }
                for entry in self.watcher.index.entries.values()
                if allows(wanted, entry)
            ],
        }

    def said_of_run(self, request: Request) -> Any:
        what = request.path_params.get("what", "show")
        if what not in DOCUMENTS:
            raise HTTPException(404)
        return DOCUMENTS[what](self.watcher.index.folder / self.pages.entry(request).name)

    def failed(self, request: Request, error: Exception) -> Response:
        """What cannot be shown, as a page or as a document."""
        status = getattr(error, "status_code", 503 if isinstance(error, HostError) else 400)
        if isinstance(error, OSError):
            status, what = 503, error.strerror or type(error).__name__
            error = HostError(
                f"it cannot be read or made now: {what}",
                code="serve.not-now",
                next_step="Try again. The server needs room on its disk, and the right to read the file.",
            )
        elif not isinstance(error, EvenhandError):
            error = RequestError(
                "nothing is shown at this address",
                code="serve.nothing-there",
                next_step="Look at the list of runs.",
            )
        if error.code.startswith("serve.no-such-"):
            status = 404
        if request.scope["path"].startswith("/api"):
            return JSONResponse({"error": error_part(error)}, status_code=status)
        # What the command line refuses until it is told --anyway is a click away.
        anyway = "" if "--anyway" not in error.next_step else f"?{request.url.query}&anyway=1"
        page = self.pages.render("message.html.j2", error=error, anyway=anyway)
        return HTMLResponse(page, status_code=status)

    def _file(self, entry: Entry, kind: str) -> tuple[bytes | str, str, str]:
        """Content, ending and type of what is downloaded."""
        path = self.watcher.index.folder / entry.name
        if kind == "run":
            # As it was last committed, also while it is being written.
            with closing(copy_to_memory(path)) as connection:
                return connection.serialize(), SUFFIX, "application/vnd.sqlite3"
        record = read_record(path)
        if kind in EXPORTS:
            suffix, media, export = EXPORTS[kind]
            with self.printing if kind == "pdf" else nullcontext():
                return export(record), suffix, media
        capture = capture_of(record) if kind == "capture" else None
        if capture is None:
            raise HTTPException(404)
        return capture.read_bytes(), ".pcapng", "application/x-pcapng"


EXPORTS: Mapping[str, tuple[str, str, Callable[[CampaignRecord], bytes | str]]] = {
    "json": (
        ".json",
        "application/json",
        lambda record: json.dumps(export_document(record), allow_nan=False),
    ),
    "csv": (".csv", "text/csv", lambda record: to_csv(record, "trials")),
    "latex": (".tex", "application/x-tex", to_summary_latex),
    "markdown": (".md", "text/markdown", to_summary_markdown),
    "pdf": (
        ".pdf",
        "application/pdf",
        lambda record: print_pdf(
            render_page(record, analyse(record), refresh_s=None), where=record.path.name
        ),
    ),
}
"""What is made of a run to be downloaded: its ending, its type, and by what."""


def _status(path: Path) -> dict[str, Any]:
    found = read_status(path)
    return _said("status", campaign_document(found, time_left(found.points)), run=path.name)


DOCUMENTS: Mapping[str, Callable[[Path], Any]] = {
    "show": lambda path: _said("show", summary_document(read_record(path))),
    "export": lambda path: export_document(read_record(path)),
    "charts": lambda path: charts_of_run(record := read_record(path), analyse(record)),
    "status": _status,
}
"""What commands say of a run."""


def _said(command: str, document: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """As the command says it with --json."""
    return {"command": command, "error": None, **document, **more}


def _stream(events: AsyncIterator[str]) -> Response:
    # A proxy that collects what it passes on would hold the news back.
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


MOST_DUTS = 50
MOST_POINTS = 500  # points of one run: what is exported more often than it is looked at must stay small
HELP = {
    "evenhand_runs": "Runs of the folder by their state.",
    "evenhand_trial_offered_fps": "Frames per second that the running trial sends in a direction.",
    "evenhand_trial_received_fps": "Frames per second that come back.",
    "evenhand_trial_loss_ratio": "Loss so far of the running trial, of frames that have settled.",
    "evenhand_trial_delay_seconds": "Mean delay of the last moments of the running trial.",
    "evenhand_point_value": "Median of a point in the latest run of a DUT, in its unit.",
    "evenhand_point_is_lower_bound": "1 if it is at least that, 0 otherwise.",
    "evenhand_point_minimum": "Lowest repetition of it.",
    "evenhand_point_maximum": "Highest repetition of it.",
    "evenhand_run_created_seconds": "When the latest run of a DUT began, since 1970.",
}
OF_TRIAL = {
    "offered_fps": ("evenhand_trial_offered_fps", 1.0),
    "received_fps": ("evenhand_trial_received_fps", 1.0),
    "loss_ratio": ("evenhand_trial_loss_ratio", 1.0),
    "mean_us": ("evenhand_trial_delay_seconds", 1e-6),
}
Sample = tuple[str, Mapping[str, str], float]


def metrics_text(watcher: Watcher, pages: Pages) -> str:
    """The whole exposition. It may read run files, each once as long as it stays the same."""
    families = {name: Family(help=text) for name, text in HELP.items()}
    for name, labels, value in _samples(watcher, pages):
        families[name].samples[tuple(labels.items())] = value
    return exposition(families)


def _samples(watcher: Watcher, pages: Pages) -> Iterator[Sample]:
    entries = watcher.index.entries.values()
    states = Counter(entry.state for entry in entries)
    yield from (("evenhand_runs", {"state": str(state)}, float(states[state])) for state in RunState)
    for name, live in watcher.live.items():
        sample, running = next(reversed(live.samples), None), live.running
        if running is None or sample is None or running.trial != sample["trial"] or not running.directions:
            sample = None  # nothing is sent: the sample is of the trial before
        for direction in ("forward", "reverse"):
            found = {} if sample is None else sample.get(direction, {})
            labels = {"run": name, "direction": direction}
            for value, (metric, factor) in OF_TRIAL.items():
                if found.get(value) is not None:
                    yield metric, labels, found[value] * factor
    latest: dict[str, Entry] = {}
    for entry in entries:
        if entry.facts.dut and entry.facts.points_done and len(latest) < MOST_DUTS:
            latest.setdefault(entry.facts.dut, entry)
    for dut, entry in latest.items():
        key = ("metrics", entry.name, entry.stamp)
        yield from pages.kept(key, partial(list, _of_run(watcher.index, dut, entry)))


def _of_run(index: RunIndex, dut: str, entry: Entry) -> Iterator[Sample]:
    try:
        record = read_record(index.folder / entry.name, with_trials=False)
        begun = datetime.fromisoformat(record.created_at).timestamp()
    except (EvenhandError, ValueError):
        return  # it has gone meanwhile
    yield "evenhand_run_created_seconds", {"dut": dut, "run": entry.name}, begun
    for found in record.points[:MOST_POINTS]:
        statistics, figure = found.statistics, PROCEDURES[found.point.procedure].figure
        labels = {
            "dut": dut,
            "point": found.point.key,
            "suite": found.point.suite,
            "procedure": found.point.procedure,
            "figure": figure.name,
            "unit": figure.unit,
        }
        if statistics is not None:
            yield "evenhand_point_value", labels, statistics.median
            yield "evenhand_point_is_lower_bound", labels, float(found.is_at_least)
            yield "evenhand_point_minimum", labels, statistics.minimum
            yield "evenhand_point_maximum", labels, statistics.maximum
