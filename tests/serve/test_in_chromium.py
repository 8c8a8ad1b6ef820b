# SPDX-License-Identifier: Apache-2.0
"""The server's pages in a real browser: at 1280 and 375 pixels, light and dark, by keyboard, while a run is
measured and killed; and past axe-core, which finds nothing."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.request import urlopen

import pytest

from tests.report.chromium import Browser, browser, find_chromium
from tests.run.goldens import copy_recorded
from tests.serve.served import SEVERAL, recorded_folder, run_process, server_process, wait_until

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
    "/run/campaign-v4.evenhand/trial/1",
    "/run/throughput-clean-time.evenhand/trial/2",
    "/compare?run=campaign-v4.evenhand&run=campaign-v4-again.evenhand",
    "/trend?run=campaign-v4.evenhand&run=campaign-v6.evenhand&anyway=1",
    "/run/none",
)
CHARTS = "document.querySelectorAll('canvas').length"


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = recorded_folder(tmp_path_factory.mktemp("runs"), (*SEVERAL, "throughput-clean-time"))
    copy_recorded("campaign-v4", folder / "campaign-v4-again.evenhand")
    with server_process(folder) as opened:

        def all_are_read() -> bool:
            with urlopen(f"{opened}/api/runs") as answer:
                return len(json.load(answer)["runs"]) == 7

        wait_until(all_are_read, "all files are read")
        yield opened


def check(shown: Browser, address: str, *, may_be_missing: bool = False) -> None:
    """Nothing is cut, nothing from elsewhere is asked for, and the console says nothing."""
    assert shown.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert [url for url in shown.requests if not url.startswith((address, "data:"))] == []
    assert may_be_missing or shown.complaints == []
    if axe_script() is not None:
        assert axe_findings(shown) == []


def press(shown: Browser, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
    shown.ask(f"document.activeElement.dispatchEvent({event})")


def axe_script() -> Path | None:
    """That of axe-core, which `make prove` installs (requirements-prove.lock); None if it is not there."""
    found = importlib.util.find_spec("axe_playwright_python")
    return None if found is None or found.origin is None else Path(found.origin).with_name("axe.min.js")


def axe_findings(shown: Browser) -> list[list[str]]:
    """What of the open page it finds fault with: the rule, and the first element."""
    script = axe_script()
    assert script is not None
    shown.call("Runtime.evaluate", expression=script.read_text())
    found = shown.call(
        "Runtime.evaluate",
        expression="axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes[0].html])))",
        awaitPromise=True,
        returnByValue=True,
    )
    findings: list[list[str]] = json.loads(found["result"]["value"])
    return findings


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_and_are_whole(shown: Browser, address: str, page: str) -> None:
    for width, scheme in WIDTHS:
        shown.open(f"{address}{page}", width=width, scheme=scheme)
        if page.startswith(("/run/c", "/trend")) and "/trial/" not in page:
            shown.ask("document.querySelector('.chart-place').scrollIntoView()")  # looked at
            wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
        check(shown, address, may_be_missing=page == "/run/none")


@pytest.mark.skipif(axe_script() is None, reason="axe-core is not installed: make .venv/.deps-prove")
def test_the_checker_of_accessibility_would_find_something(shown: Browser, address: str) -> None:
    shown.open(f"{address}/", width=1280)
    assert axe_findings(shown) == []
    shown.ask("document.querySelector('input[name=run]').removeAttribute('aria-label')")
    shown.ask("document.documentElement.removeAttribute('lang')")
    assert {"label", "html-has-lang"} <= {rule for rule, _ in axe_findings(shown)}


def test_a_page_that_asks_for_the_token_is_as_readable(shown: Browser, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef")
    token.chmod(0o600)
    with server_process(tmp_path, "--token-file", str(token)) as opened:
        for width, scheme in WIDTHS:
            shown.open(f"{opened}/?wrong=1", width=width, scheme=scheme)
            assert "token" in shown.ask("document.body.innerText")
            check(shown, opened, may_be_missing=True)


def test_a_chart_is_used_by_keyboard(shown: Browser, address: str) -> None:
    shown.open(f"{address}/run/campaign-v6.evenhand", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    shown.ask("document.querySelector('.chart[tabindex]').focus()")
    said, is_whole = [], []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "+", "Escape", "ArrowLeft"):
        press(shown, key)
        said.append(shown.ask("document.querySelector('.readout').textContent"))
        is_whole.append(shown.ask("document.querySelector('.chart-place .buttons :last-child').hidden"))
    assert is_whole == [True, True, True, False, True, True]  # Show all is there when a part is enlarged
    assert "1 x 1 addresses" in said[0]
    assert "16 x 16 addresses" in said[2]
    assert "repetitions: 296.9 kfps, 296.9 kfps" in said[2]
    assert "4 x 4 addresses" in said[5]
    check(shown, address)
    point = shown.ask("document.querySelector('.readout a').getAttribute('href')").removeprefix("#")
    is_open = f"document.getElementById('{point}').open"
    assert not shown.ask(is_open)
    press(shown, "Enter")
    wait_until(lambda: shown.ask(is_open), "its point is shown, open")


def test_a_chart_is_logarithmic_when_asked_and_a_part_of_it_is_drawn_by_dragging(
    shown: Browser, address: str
) -> None:
    shown.open(f"{address}/run/campaign-v6.evenhand", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    shown.ask("document.querySelector('.chart').scrollIntoView()")
    picture = "document.querySelector('.chart canvas').toDataURL()"
    linear = shown.ask(picture)
    button = "document.querySelector('.chart-place .buttons button')"
    shown.ask(f"{button}.click()")
    assert shown.ask(f"{button}.getAttribute('aria-pressed')") == "true"
    logarithmic = wait_until(lambda: (found := shown.ask(picture)) != linear and found, "it is another one")
    box = json.loads(
        shown.ask("JSON.stringify(document.querySelector('.chart .u-over').getBoundingClientRect())")
    )
    middle = box["top"] + box["height"] / 2
    for kind, share in (
        ("mouseMoved", 0.3),
        ("mousePressed", 0.3),
        ("mouseMoved", 0.8),
        ("mouseReleased", 0.8),
    ):
        place = {"x": box["left"] + share * box["width"], "y": middle}
        shown.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)
    all_of_it = "document.querySelector('.chart-place .buttons :last-child')"
    wait_until(lambda: not shown.ask(f"{all_of_it}.hidden"), "a part is shown, and how to get back")
    assert shown.ask(picture) != logarithmic
    shown.ask(f"{all_of_it}.click()")
    assert shown.ask(f"{all_of_it}.hidden")
    check(shown, address)


def test_charts_of_a_trend_are_in_the_place_of_its_pictures(shown: Browser, address: str) -> None:
    runs = "run=campaign-v4.evenhand&run=campaign-v6.evenhand&anyway=1"
    shown.open(f"{address}/trend?{runs}", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    figures = "[...document.querySelectorAll('figure')]"
    assert shown.ask(f"{figures}.every(one => one.querySelector('.chart-place'))")
    pictures = "[...document.querySelectorAll('figure svg')]"
    assert shown.ask(f"{pictures}.length > 1")
    assert shown.ask(f"{pictures}.every(one => getComputedStyle(one).display === 'none')")
    shown.call("Emulation.setEmulatedMedia", media="print")
    try:  # on paper it is the other way round
        assert shown.ask(f"{pictures}.some(one => getComputedStyle(one).display !== 'none')")
        assert shown.ask("getComputedStyle(document.querySelector('.chart-place')).display") == "none"
    finally:
        shown.call("Emulation.setEmulatedMedia", media="")


def test_a_value_of_a_trend_leads_to_its_run(shown: Browser, address: str) -> None:
    runs = "run=campaign-v4.evenhand&run=campaign-v6.evenhand&anyway=1"
    shown.open(f"{address}/trend?{runs}", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    shown.ask("document.querySelector('.chart[tabindex]').focus()")
    press(shown, "ArrowRight")
    link = shown.ask("document.querySelector('.readout a').getAttribute('href')")
    assert link in {f"/run/{name}.evenhand" for name in ("campaign-v4", "campaign-v6")}
    with urlopen(f"{address}{link}") as page:
        assert page.status == 200


def test_a_trial_of_a_search_is_opened_from_its_chart(shown: Browser, address: str) -> None:
    shown.open(f"{address}/run/throughput-clean-time.evenhand", width=1280)
    wait_until(lambda: shown.ask(CHARTS), "charts are drawn")
    shown.ask("document.querySelector('.chart[tabindex]').focus()")
    for key in ("ArrowRight", "Enter"):
        press(shown, key)
    wait_until(lambda: "/trial/" in shown.ask("location.pathname"), "the page of the trial opens")
    wait_until(lambda: "What was counted" in (shown.ask("document.body.innerText") or ""), "it is shown")


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
        wait_until(
            lambda: shown.ask(CHARTS) >= 5, "rates, loss, delays, their growth and the search are drawn"
        )
        bands = "document.getElementById('lapses').innerText"
        wait_until(lambda: "a receiver was away" in shown.ask(bands), "the host's lapses are bands")
        text = "document.getElementById('tiles').innerText"
        before = wait_until(lambda: shown.ask(text), "rates are in numbers")
        wait_until(lambda: shown.ask(text) not in ("", before), "they change")
        assert "99.9th percentile" in shown.ask(text)
        inside = "document.getElementById('inside').innerText"
        wait_until(lambda: "eth0" in (shown.ask(inside) or ""), "what the DUT did in the last trial is shown")
        check(shown, address)
        trial = shown.ask("document.querySelector('#trials a').getAttribute('href')")
        with urlopen(f"{address}{trial}") as page:
            assert "What was counted" in page.read().decode()
        point = shown.ask("document.querySelector('#points a').getAttribute('href')")
        assert point == "/run/a.evenhand/report#point-1"
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
