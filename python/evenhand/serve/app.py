# SPDX-License-Identifier: Apache-2.0
"""What the server answers: addresses, and what stands behind each."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from evenhand.analysis import analyse, compare
from evenhand.analysis.trend import trend as trend_of
from evenhand.base.errors import EvenhandError, HostError, RequestError, error_part
from evenhand.report.campaign_document import export_document, summary_document
from evenhand.report.campaign_status import campaign_document
from evenhand.report.comparison import comparison_document
from evenhand.report.openmetrics import CONTENT_TYPE
from evenhand.report.page import render, render_page
from evenhand.report.pdf import print_pdf
from evenhand.report.summary import to_summary_latex, to_summary_markdown
from evenhand.report.table_files import to_csv
from evenhand.report.trend import trend_document
from evenhand.run import SUFFIX, CampaignRecord
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_status import read_status
from evenhand.run.snapshot import copy_to_memory
from evenhand.serve.access import AccessRules, GuardedApp
from evenhand.serve.charts import charts_of_run
from evenhand.serve.index import Entry, RunIndex
from evenhand.serve.live import event
from evenhand.serve.metrics import metrics_text
from evenhand.serve.pages import MOST_COMPARED, MOST_RUNS_OF_A_TREND, Pages, RunFilter, chosen
from evenhand.serve.trial_page import capture_of
from evenhand.serve.watcher import KEEP_ALIVE, Watcher

LIST_EVERY_S = 2.0
"""A list of runs is not drawn again more often than that."""
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


def make_app(index: RunIndex, rules: AccessRules, trouble: Callable[[], str] = str) -> GuardedApp:
    """The whole server over the runs of this index.

    Args:
        trouble: See `Watcher`.
    """
    watcher = Watcher(index=index, trouble=trouble)
    site = _Site(watcher, Pages(watcher=watcher, base=rules.base_path))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(watcher.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        index.save()

    routes = [
        Route("/", site.home),
        Route("/events", site.list_events),
        Route("/login", site.login),
        Route("/run/{name}", site.run),
        Route("/run/{name}/report", site.report),
        Route("/run/{name}/trial/{row}", site.trial),
        Route("/run/{name}/events", site.run_events),
        Route("/run/{name}/download/{kind}", site.download),
        Route("/compare", site.compare),
        Route("/trend", site.trend),
        Route("/metrics", site.metrics),
        Route("/static/style.css", site.style),
        Mount("/static", StaticFiles(packages=[("evenhand.serve", "static")])),
        Route("/api", site.api),
        Route("/api/runs", site.api_runs),
        Route("/api/runs/{name}", site.api_run),
        Route("/api/runs/{name}/events", site.run_events),
        Route("/api/runs/{name}/{what}", site.api_run),
        Route("/api/compare", site.api_compare),
        Route("/api/trend", site.api_trend),
    ]
    handlers: Any = {EvenhandError: site.failed, HTTPException: site.not_found}
    return GuardedApp(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), rules)


class _Site:
    """One method for each address."""

    def __init__(self, watcher: Watcher, pages: Pages) -> None:
        self.watcher = watcher
        self.pages = pages

    async def home(self, request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(self.pages.home, dict(request.query_params)))

    async def list_events(self, request: Request) -> Response:
        async def news() -> AsyncIterator[str]:
            async for is_new in self.watcher.changes():
                yield event("changed", self.watcher.index.version) if is_new else KEEP_ALIVE
                await asyncio.sleep(LIST_EVERY_S)

        return _stream(news())

    async def login(self, request: Request) -> Response:
        page = self.pages.login(is_wrong="wrong" in request.query_params)
        return HTMLResponse(page, status_code=401)

    async def run(self, request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(self.pages.run, self._entry(request), is_report=False))

    async def report(self, request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(self.pages.run, self._entry(request), is_report=True))

    async def trial(self, request: Request) -> Response:
        row = request.path_params["row"]
        return HTMLResponse(await asyncio.to_thread(self.pages.trial, self._entry(request), row))

    async def run_events(self, request: Request) -> Response:
        return _stream(self.watcher.live_events(self._entry(request).name))

    async def download(self, request: Request) -> Response:
        entry = self._entry(request)
        content, suffix, media = await asyncio.to_thread(self._file, entry, request.path_params["kind"])
        name = re.sub(r"[^A-Za-z0-9._-]", "_", entry.name.removesuffix(SUFFIX)) + suffix
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media, headers=headers)

    async def compare(self, request: Request) -> Response:
        entries = chosen(self.watcher, request.query_params.getlist("run"))
        if len(entries) < 2:
            raise RequestError(
                f"{len(entries)} runs are chosen, but a comparison needs two",
                code="serve.too-few-runs",
                next_step="Tick two or more in the list of runs.",
            )
        page = await asyncio.to_thread(self.pages.compared, entries, is_anyway=_is_anyway(request))
        return HTMLResponse(page)

    async def trend(self, request: Request) -> Response:
        page = await asyncio.to_thread(
            self.pages.trend, self._of_trend(request), is_anyway=_is_anyway(request)
        )
        return HTMLResponse(page)

    async def metrics(self, request: Request) -> Response:
        text = await asyncio.to_thread(metrics_text, self.watcher, self.pages)
        return Response(text, media_type=CONTENT_TYPE)

    async def style(self, request: Request) -> Response:
        return Response(render("style.css.j2"), media_type="text/css")

    async def api(self, request: Request) -> Response:
        return JSONResponse({f"{self.pages.base}/api/{name}": what for name, what in API.items()})

    async def api_runs(self, request: Request) -> Response:
        wanted = RunFilter.of(dict(request.query_params))
        return JSONResponse(
            {
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
                    if wanted.allows(entry)
                ],
            }
        )

    async def api_run(self, request: Request) -> Response:
        entry, what = self._entry(request), request.path_params.get("what", "show")
        return _json(await asyncio.to_thread(self._document, entry, what))

    async def api_compare(self, request: Request) -> Response:
        entries, anyway = chosen(self.watcher, request.query_params.getlist("run")), _is_anyway(request)

        def make() -> dict[str, Any]:
            records = self.pages.records_of(entries, MOST_COMPARED, with_trials=True)
            return _said("compare", comparison_document(compare(records, anyway=anyway)))

        return _json(await asyncio.to_thread(make))

    async def api_trend(self, request: Request) -> Response:
        entries, anyway = self._of_trend(request), _is_anyway(request)

        def make() -> dict[str, Any]:
            records = self.pages.records_of(entries, MOST_RUNS_OF_A_TREND)
            return _said("trend", trend_document(trend_of(records, anyway=anyway)))

        return _json(await asyncio.to_thread(make))

    async def failed(self, request: Request, error: Exception) -> Response:
        """What cannot be shown, as a page or as a document."""
        assert isinstance(error, EvenhandError)
        status = (
            404 if error.code.startswith("serve.no-such-") else 503 if isinstance(error, HostError) else 400
        )
        if request.url.path.startswith("/api"):
            return JSONResponse({"error": error_part(error)}, status_code=status)
        page = self.pages.message("This cannot be shown", str(error), error.next_step)
        return HTMLResponse(page, status_code=status)

    async def not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        if request.url.path.startswith(("/api", "/static", "/metrics")):
            return PlainTextResponse("There is no such page.\n", status_code=status)
        page = self.pages.message("There is no such page", "", "Look at the list of runs.")
        return HTMLResponse(page, status_code=status)

    def _entry(self, request: Request) -> Entry:
        (entry,) = chosen(self.watcher, [request.path_params["name"]])
        return entry

    def _of_trend(self, request: Request) -> list[Entry]:
        """Runs that are chosen, or the latest of a DUT; those that hold no result are left out there."""
        names, dut = request.query_params.getlist("run"), request.query_params.get("dut")
        if names or dut is None:
            return chosen(self.watcher, names)
        of_dut = [
            entry
            for entry in self.watcher.index.entries.values()
            if entry.facts.dut == dut and entry.facts.points_done
        ]
        return of_dut[:MOST_RUNS_OF_A_TREND]

    def _document(self, entry: Entry, what: str) -> Any:
        match what:
            case "show":
                return _said("show", summary_document(self.pages.record(entry)))
            case "export":
                return export_document(self.pages.record(entry))
            case "charts":
                record = self.pages.record(entry)
                return charts_of_run(record, analyse(record))
            case "status":
                status = read_status(self.watcher.index.path(entry.name))
                return _said("status", campaign_document(status, time_left(status.points)), run=entry.name)
        raise HTTPException(404)

    def _file(self, entry: Entry, kind: str) -> tuple[bytes | str, str, str]:
        """Content, ending and type of what is downloaded."""
        if kind in EXPORTS:
            suffix, media, export = EXPORTS[kind]
            return export(self.pages.record(entry)), suffix, media
        if kind == "run":
            # As it was last committed, also while it is being written.
            with closing(copy_to_memory(self.watcher.index.path(entry.name))) as connection:
                return connection.serialize(), SUFFIX, "application/vnd.sqlite3"
        path = capture_of(self.pages.record(entry), self.watcher.index.folder) if kind == "capture" else None
        if path is None:
            raise HTTPException(404)
        return path.read_bytes(), ".pcapng", "application/x-pcapng"


def _pdf(record: CampaignRecord) -> bytes:
    return print_pdf(render_page(record, analyse(record), refresh_s=None), where=record.path.name)


EXPORTS: Mapping[str, tuple[str, str, Callable[[CampaignRecord], bytes | str]]] = {
    "json": (
        ".json",
        "application/json",
        lambda record: json.dumps(export_document(record), allow_nan=False),
    ),
    "csv": (".csv", "text/csv", lambda record: to_csv(record, "trials")),
    "latex": (".tex", "application/x-tex", to_summary_latex),
    "markdown": (".md", "text/markdown", to_summary_markdown),
    "pdf": (".pdf", "application/pdf", _pdf),
}
"""What is made of a run to be downloaded: its ending, its type, and by what."""


def _said(command: str, document: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """As the command says it with --json."""
    return {"command": command, "error": None, **document, **more}


def _is_anyway(request: Request) -> bool:
    return request.query_params.get("anyway") == "1"


def _json(document: Any) -> Response:
    return Response(json.dumps(document, allow_nan=False), media_type="application/json")


def _stream(events: AsyncIterator[str]) -> Response:
    # A proxy that collects what it passes on would hold the news back.
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
