# SPDX-License-Identifier: Apache-2.0
"""The server's pages in a real browser: at 1280 and 375 pixels, light and dark, by keyboard, while a run is
measured and killed; and past axe, if EVENHAND_AXE names its script (axe.min.js of axe-core)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.request import urlopen

import pytest

from tests.report.chromium import Browser, browser, find_chromium
from tests.run.goldens import copy_recorded
from tests.serve.served import recorded_folder, run_process, server_process, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="Chromium is not installed: tools/install-dependencies prove"
    ),
]
WIDTHS: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (1280, "light"),
    (1280, "dark"),
    (375, "light"),
    (375, "dark"),
)
PAGES = (
    "/",
    "/run/campaign-v4.evenhand",
    "/run/campaign-v6.evenhand",
    "/run/campaign-cut-short.evenhand",
    "/compare?run=campaign-v4.evenhand&run=campaign-v4-again.evenhand",
    "/trend?run=campaign-v4.evenhand&run=campaign-v6.evenhand&anyway=1",
    "/run/none",
)
AXE = os.environ.get("EVENHAND_AXE")
CHARTS = "document.querySelectorAll('canvas').length"


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = recorded_folder(tmp_path_factory.mktemp("runs"))
    copy_recorded("campaign-v4", folder / "campaign-v4-again.evenhand")
    with server_process(folder) as opened:

        def all_are_read() -> bool:
            with urlopen(f"{opened}/api/runs") as answer:
                return len(json.load(answer)["runs"]) == 6

        wait_until(all_are_read, "all files are read")
        yield opened


def check(shown: Browser, address: str, *, may_be_missing: bool = False) -> None:
    """Nothing is cut, nothing from elsewhere is asked for, and the console says nothing."""
    assert shown.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert [url for url in shown.requests if not url.startswith((address, "data:"))] == []
    assert may_be_missing or shown.complaints == []
    if AXE is not None:
        shown.call("Runtime.evaluate", expression=Path(AXE).read_text())
        found = shown.call(
            "Runtime.evaluate",
            expression="axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes[0].html])))",
            awaitPromise=True,
            returnByValue=True,
        )
        assert json.loads(found["result"]["value"]) == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_and_are_whole(shown: Browser, address: str, page: str) -> None:
    for width, scheme in WIDTHS:
        shown.open(f"{address}{page}", width=width, scheme=scheme)
        if page.startswith(("/run/c", "/trend")):
            wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
        check(shown, address, may_be_missing=page == "/run/none")


def test_a_chart_is_used_by_keyboard(shown: Browser, address: str) -> None:
    shown.open(f"{address}/run/campaign-v6.evenhand", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    shown.ask("document.querySelector('.chart[tabindex]').focus()")
    said = []
    for key in ("ArrowRight", "ArrowRight", "+", "Escape", "ArrowLeft"):
        press = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
        shown.ask(f"document.activeElement.dispatchEvent({press})")
        said.append(shown.ask("document.querySelector('.readout').textContent"))
    assert "1 x 1 addresses" in said[0]
    assert "16 x 16 addresses" in said[1]
    assert "repetitions: 296.9 kfps, 296.9 kfps" in said[1]
    assert "1 x 1 addresses" in said[4]
    check(shown, address)


def test_two_runs_are_compared_by_clicking(shown: Browser, address: str) -> None:
    shown.open(f"{address}/?procedure=latency", width=1280)
    boxes = "[...document.querySelectorAll('input[name=run]')]"
    shown.ask(f"{boxes}.filter(box => /campaign-v4/.test(box.value)).forEach(box => box.click())")
    shown.ask("document.querySelector('#chosen button').click()")
    wait_until(lambda: shown.ask("location.pathname") == "/compare", "the comparison opens")
    wait_until(lambda: "evenhand compare" in (shown.ask("document.body.innerText") or ""), "it is shown")


@pytest.mark.parametrize("version", [4, 6])
def test_a_live_page_moves_until_the_run_is_killed(shown: Browser, tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.evenhand"
    with server_process(tmp_path) as address, run_process(path, version=version, trial_s=4.0) as process:
        shown.open(f"{address}/", width=375, scheme="dark")
        running = "document.querySelector('.state.running') !== null"
        wait_until(lambda: shown.ask(running), "the list, which is open already, shows the run")
        shown.open(f"{address}/run/a.evenhand", width=1280)
        wait_until(lambda: shown.ask(CHARTS) >= 3, "rates, delays and the search are drawn")
        text = "document.getElementById('tiles').innerText"
        before = wait_until(lambda: shown.ask(text), "rates are in numbers")
        wait_until(lambda: shown.ask(text) not in ("", before), "they change")
        assert "offered" in shown.ask(text)
        check(shown, address)
        process.kill()
        wait_until(
            lambda: shown.ask("document.querySelector('.state.killed') !== null"), "it is shown as killed"
        )


def test_a_page_can_be_read_without_scripts(shown: Browser, address: str) -> None:
    shown.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown.open(f"{address}/run/campaign-v4.evenhand", width=1280)
        nodes = shown.call("DOM.getDocument", depth=-1)
        assert nodes
    finally:
        shown.call("Emulation.setScriptExecutionDisabled", value=False)
    assert shown.ask("document.getElementById('charts').hidden")
    assert shown.ask("document.querySelectorAll('figure svg').length") >= 1
