# SPDX-License-Identifier: Apache-2.0
"""What the server answers: pages, downloads, documents, metrics; and that nothing of a hostile run file does
anything in a page."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest

from evenhand.report.campaign_document import summary_document
from evenhand.run import read_record
from evenhand.serve import pages
from evenhand.serve.access import POLICY
from tests.report.pages import Page
from tests.run.goldens import copy_recorded
from tests.run.hostile import change
from tests.serve.served import Served, recorded_folder
from tests.serve.simulated_run import measure

SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(2)">"\'</title>'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served.of(recorded_folder(tmp_path_factory.mktemp("runs")))


def checked(text: str) -> Page:
    """A whole page that has neither script nor style in it, and nothing from elsewhere."""
    page = Page(text)
    for tag, attributes in page.tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "style"
        if tag == "script" and attributes.get("type") != "application/json":
            assert (attributes.get("src") or "").startswith("/static/")
        for name in ("src", "href", "action", "formaction"):
            target = attributes.get(name)
            assert target is None or re.match(r"[/#]", target), (tag, target)
    return page


def test_the_list_shows_every_run_with_a_link_and_its_state(served: Served) -> None:
    answer = served.get("/")
    assert answer.status == 200
    page = checked(answer.text)
    links = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    for name in served.index.entries:
        assert f"/run/{name}" in links
    assert "interrupted" in answer.text
    assert len(answer.body) < 200_000


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("procedure=loss", {"loss-v4"}),
        ("plan=gateway-v6", {"campaign-v6", "campaign-cut-short", "throughput-v6"}),
        ("state=interrupted", {"campaign-cut-short"}),
        ("text=THROUGHPUT+v6", {"campaign-v6", "throughput-v6", "campaign-cut-short"}),
        ("dut=none", set()),
        ("since=2000-01-01&until=2000-01-02", set()),
        ("page=99999&text=%00%ff", set()),
    ],
)
def test_runs_are_found_by_what_is_known_of_them(served: Served, query: str, names: set[str]) -> None:
    found = {
        each["file"].removesuffix(".evenhand") for each in served.get(f"/api/runs?{query}").document["runs"]
    }
    if query.startswith("text=THROUGHPUT"):
        assert {"throughput-v6"} <= found <= names
    else:
        assert found == names
    assert served.get(f"/?{query}").status == 200


@pytest.mark.parametrize("name", ["campaign-v4", "campaign-v6", "throughput-v6"])
def test_the_page_of_a_run_is_the_report_with_charts_and_downloads(served: Served, name: str) -> None:
    answer = served.get(f"/run/{name}.evenhand")
    page = checked(answer.text)
    (data,) = re.findall(r'<script type="application/json" id="chart-data">(.*?)</script>', answer.text)
    charts = json.loads(data)
    assert any(chart["title"].startswith("Loads that were tried") for chart in charts)
    record = read_record(served.index.folder / f"{name}.evenhand")
    if record.is_campaign:
        curve = next(chart for chart in charts if chart["title"] == "Throughput over addresses")
        drawn = sorted(point["y"] for series in curve["series"] for point in series["points"])
        medians = [
            found.statistics.median
            for found in record.points
            if found.point.procedure == "throughput" and found.statistics
        ]
        assert drawn == sorted(medians)
    kinds = [a["href"] for tag, a in page.tags if tag == "a" and "/download/" in (a.get("href") or "")]
    assert len(kinds) == 6
    for address in kinds:
        assert address is not None
        if not address.endswith("/pdf"):
            got = served.get(address)
            assert (got.status, bool(got.body)) == (200, True)
            assert got.headers["content-disposition"].startswith("attachment; ")


def test_a_run_file_that_is_downloaded_is_the_run(served: Served, tmp_path: Path) -> None:
    copy = tmp_path / "copy.evenhand"
    copy.write_bytes(served.get("/run/campaign-v4.evenhand/download/run").body)
    original = served.index.folder / "campaign-v4.evenhand"
    assert read_record(copy).points == read_record(original).points


def test_pictures_keep_their_look_without_style(served: Served) -> None:
    """The policy allows no style in a page; what a picture's style says is in attributes."""
    text = served.get("/run/campaign-v4.evenhand").text
    (first, *_) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert 'fill="var(--' in first
    assert 'font-size="9px"' in first
    assert "style=" not in first


def test_what_is_not_there_is_said(served: Served) -> None:
    for address in ("/run/none.evenhand", "/nothing", "/run/..%2f..%2fetc%2fpasswd", "/static/..%2fapp.py"):
        assert served.get(address).status == 404, address
    answer = served.get("/api/runs/none.evenhand")
    assert answer.status == 404
    assert answer.document["error"]["id"] == "serve.no-such-run"
    assert served.get("/run/campaign-v4.evenhand/download/exe").status == 404


def test_documents_are_those_of_the_command_line(served: Served) -> None:
    name = "campaign-v6.evenhand"
    record = read_record(served.index.folder / name)
    shown = served.get(f"/api/runs/{name}").document
    assert shown == {"command": "show", "error": None, **json.loads(json.dumps(summary_document(record)))}
    assert served.get(f"/api/runs/{name}/export").document["file"] == name
    assert served.get(f"/api/runs/{name}/status").document["run"] == name
    assert served.get("/api/runs/throughput-v6.evenhand/status").status == 400
    assert served.get("/api/trend?run=campaign-v4.evenhand").document["command"] == "trend"


def test_runs_are_compared_by_a_link(served: Served) -> None:
    answer = served.get("/compare?run=campaign-v4.evenhand&run=campaign-v6.evenhand&anyway=1")
    assert answer.status == 200, answer.text
    checked(answer.text)
    assert "evenhand compare campaign-v4.evenhand campaign-v6.evenhand --anyway" in answer.text
    assert served.get("/compare?run=campaign-v4.evenhand").status == 400
    refused = served.get("/compare?run=campaign-v4.evenhand&run=campaign-v6.evenhand")
    assert refused.status == 400
    assert 'href="?run=campaign-v4.evenhand&amp;run=campaign-v6.evenhand&amp;anyway=1"' in refused.text
    assert served.get("/compare?run=campaign-v4.evenhand&run=gone.evenhand").status == 404


def test_the_trend_of_a_dut_is_that_of_its_runs(served: Served) -> None:
    answer = served.get("/trend?dut=testbed.toml&anyway=1")
    assert answer.status == 200, answer.text
    checked(answer.text)
    runs = served.get("/api/trend?dut=testbed.toml&anyway=1").document["runs"]
    assert {run["file"] for run in runs} == {
        name for name, each in served.index.entries.items() if each.facts.dut == "testbed.toml"
    }
    assert served.get("/trend?dut=nobody's").status == 400
    assert "left out" not in answer.text


def test_the_trend_of_a_dut_says_how_many_older_runs_it_leaves_out(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(served.get("/api/trend?dut=testbed.toml&anyway=1").document["runs"])
    monkeypatch.setattr(pages, "MOST_OF_A_TREND", count - 1)
    assert "; 1 older one is left out." in served.get("/trend?dut=testbed.toml&anyway=1").text


def test_a_trend_says_between_which_runs_it_changed_and_how_to_repeat_them(tmp_path: Path) -> None:
    """With a link to both, and to their comparison; its charts have the levels, and stand where its pictures
    are."""
    for number in range(12):
        measure(tmp_path / f"{number:02d}.evenhand", limit_fps=640_000 if number < 6 else 500_000)
    mine = Served.of(tmp_path)
    answer = mine.get("/trend?dut=bench")
    assert answer.status == 200, answer.text
    page = checked(answer.text)
    links = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    assert {"/run/05.evenhand", "/run/06.evenhand", "/compare?run=05.evenhand&run=06.evenhand"} <= set(links)
    assert "evenhand throughput bench.toml" in answer.text
    assert "evenhand compare 05.evenhand 06.evenhand" in answer.text
    (data,) = re.findall(r'<script type="application/json" id="chart-data">(.*?)</script>', answer.text)
    (chart,) = json.loads(data)
    assert [(level["from"], level["to"]) for level in chart["levels"]] == [(1, 6), (7, 12)]
    assert [change["x"] for change in chart["changes"]] == [6.5]
    assert f'<figure id="{chart["figure"]}">' in answer.text
    assert mine.get("/compare?run=05.evenhand&run=06.evenhand").status == 200


def test_a_name_with_a_script_is_text_everywhere(tmp_path: Path) -> None:
    """Names of files, campaigns, DUTs, suites and notes come from others."""
    name = f"{SCRIPT.replace('/', '')}.evenhand"
    path = copy_recorded("campaign-v4", tmp_path / name)
    with sqlite3.connect(path) as connection:
        (document,) = connection.execute("SELECT document FROM testbeds").fetchone()
        connection.execute("UPDATE campaign SET name = ?, source = ?", (SCRIPT, SCRIPT))
        connection.execute("UPDATE testbeds SET name = ?, document = ?", (SCRIPT, document))
        connection.execute("UPDATE repetitions SET testbed = ?", (SCRIPT,))
        connection.execute("UPDATE sessions SET notes = ?", (json.dumps([SCRIPT]),))
        connection.execute("UPDATE points SET suite = ?, key = key || ?", (SCRIPT, SCRIPT))
    connection.close()
    hostile = Served.of(tmp_path)
    address = f"/run/{quote(name, safe='')}"
    pages = ["/", f"/?text={quote(SCRIPT)}", f"/?dut={quote(SCRIPT)}", address, f"/trend?run={quote(name)}"]
    for page in pages:
        answer = hostile.get(page)
        assert answer.status == 200, answer.text
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
        checked(answer.text)
    for line in hostile.get("/metrics").text.splitlines():
        assert re.fullmatch(r'# .*|[a-z_]+\{([a-z]+="([^"\\]|\\.)*",?)*\} [-+.e0-9]+', line), line
    assert "\n" not in hostile.get(f"{address}/download/json").headers["content-disposition"]


def test_a_run_that_was_replaced_by_another_file_is_refused_not_mixed_up(tmp_path: Path) -> None:
    path = measure(tmp_path / "a.evenhand")
    mine = Served.of(tmp_path)
    change(path, "UPDATE run SET host = 'x'")
    assert mine.get("/run/a.evenhand").status == 400
    path.unlink()
    assert mine.get("/run/a.evenhand").status == 400
    mine.look()
    assert mine.get("/run/a.evenhand").status == 404


def test_every_answer_has_the_policy(served: Served) -> None:
    for address in ("/", "/run/none", "/static/serve.js", "/api", "/metrics", "/login"):
        headers = served.get(address).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    assert "evenhand demo" in Served.of(tmp_path).get("/").text


def test_metrics_have_states_and_the_latest_numbers(served: Served) -> None:
    text = served.get("/metrics").text
    assert text.endswith("# EOF\n")
    assert 'evenhand_runs{state="interrupted"} 1.0' in text
    latest = next(e for e in served.index.entries.values() if e.facts.dut == "testbed.toml")
    record = read_record(served.index.folder / latest.name)
    for found in record.points:
        if found.statistics is not None:
            (line,) = re.findall(
                rf'evenhand_point_value{{dut="testbed.toml",point="{re.escape(found.point.key)}".*}} (.+)',
                text,
            )
            assert float(line) == found.statistics.median
