# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign: all that a reader must find in it, and nothing that a hostile file could put
there."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from evenhand.analysis import analyse
from evenhand.report import page as page_module
from evenhand.report.figures import PictureShape
from evenhand.report.figures_throughput import LossCurve, loss_picture
from evenhand.report.page import render_page, write_page, write_pictures
from evenhand.report.page_facts import DUT_FACTS, traffic_table
from evenhand.report.page_figures import pictures_of
from evenhand.report.page_tables import latency_table, variation_table
from evenhand.report.page_words import NONE
from evenhand.run import read_record
from evenhand.run.campaign_record import CampaignRecord, HookRun, PointRecord, PointState
from tests.errors import raises
from tests.report.campaigns import appendix_a, delay_record, point_of, record_of
from tests.report.pages import Page, assert_self_contained
from tests.run.goldens import recorded_file

MOST_OCTETS = 3_000_000
VERSIONS = pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.slow)])
"""A whole page takes many seconds. What is of the IP version stands in its summary (test_summary.py)."""
REPETITIONS = 4
"""Fewer than the draft's ten: enough for noise to be known, and a page that is made in seconds."""


@lru_cache(maxsize=2)
def text_of(version: int) -> str:
    record = appendix_a(version, REPETITIONS)
    return render_page(record, analyse(record))


def page_of(record: CampaignRecord, **options: Any) -> Page:
    return Page(render_page(record, analyse(record), **options))


def small(points: Sequence[PointRecord] | None = None, **changes: Any) -> CampaignRecord:
    """One address pair and 16 x 16 of the direct plan, so that a test of words does not draw everything."""
    whole = appendix_a(4, REPETITIONS).points
    return record_of([whole[0], whole[4]] if points is None else points, **changes)


@pytest.mark.thorough
@VERSIONS
def test_the_page_is_one_file_that_needs_nothing_else(version: int) -> None:
    page = Page(text_of(version))
    assert_self_contained(page)
    assert len(page.text.encode()) < MOST_OCTETS
    assert "http-equiv" not in str([tag for tag in page.all("meta") if tag.get("http-equiv") == "refresh"])
    assert "default-src 'none'" in page.text


@VERSIONS
def test_the_first_screen_is_the_verdict_and_the_curve(version: int) -> None:
    """SEED-07, SEED-72: the sentence first, then throughput over the number of addresses, then everything
    else."""
    text = text_of(version)
    record = appendix_a(version, REPETITIONS)
    lead, curve, findings = (
        text.index(part) for part in ('class="lead', 'id="figure-throughput-over-addresses', "<h2>Findings")
    )
    assert lead < curve < findings
    assert (
        Page(text[: text.index("<figure")] + "</main></body></html>").shown.count(analyse(record).verdict)
        == 1
    )


@VERSIONS
def test_every_picture_is_there_for_wide_and_for_narrow_screens(version: int) -> None:
    """SEED-72, R2544-22, R2544-28: curve, frame sizes, loss; and delays, variation, loss over time."""
    page = Page(text_of(version))
    record = appendix_a(version, REPETITIONS)
    pictures = pictures_of(record, analyse(record))
    for kind in (
        "throughput-over-addresses",
        "throughput-over-frame-sizes",
        "frame-loss",
        "delays",
        "repetitions",
        "loss-over-time",
    ):
        assert any(picture.name.startswith(kind) for picture in pictures.all), kind
    shown = [figure["id"] for figure in page.all("figure")]
    assert sorted(map(str, shown)) == sorted(f"figure-{picture.name}" for picture in pictures.all)
    assert len([svg for svg in page.all("svg") if svg.get("role") == "img"]) == 2 * len(pictures.all)
    assert all(svg.get("aria-label") for svg in page.all("svg") if svg.get("role") == "img")


@VERSIONS
def test_every_point_opens_to_its_repetitions_and_trials(version: int) -> None:
    """SEED-72: each repetition with its own seed; each trial with its verdict, INVALID ones and their reasons
    as well."""
    page = Page(text_of(version))
    record = appendix_a(version, REPETITIONS)
    assert len([d for d in page.all("details") if d.get("class") == "point"]) == len(record.points)
    trials = [
        trial
        for point in record.points
        for rep in point.repetitions
        for search in rep.searches
        for trial in search.trials
    ]
    cells = re.findall(
        r'<td data-label="verdict" class="(PASS|FAIL|INVALID)"><span>(PASS|FAIL|INVALID)</span>', page.text
    )
    assert len(cells) == len(trials)
    assert all(style == said for style, said in cells)
    for repetition in (rep for point in record.points for rep in point.repetitions):
        assert str(repetition.seed) in page.text
    assert "simulated lapse of the tester" in page.shown


def test_a_point_without_a_number_says_why() -> None:
    page = Page(text_of(4))
    assert "No number: tester_ceiling: the tester did not offer the load that it intended" in page.shown
    assert "34 points measured; 1 without a number" in page.shown


@VERSIONS
def test_the_page_states_what_a_report_must_state(version: int) -> None:
    """SEED-49: topology, N, first and last address, modes, ports, seeds, gateways, routes, RSS setting; the
    command to repeat it."""
    shown = Page(text_of(version)).shown
    first = {4: "198.18.0.2", 6: "2001:2::2"}[version]
    gateway = {4: "10.0.0.2", 6: "2001:2:0:1000::2"}[version]
    for stated in (
        f"direct-v{version}",
        f"gateway-v{version}",
        first,
        gateway,
        "via",
        "source 1024 \N{EN DASH} 65535",
        "destination 1 \N{EN DASH} 49151",
        "pseudorandom",
        "type 1: addresses only",
        "evenhand run appendix-a.toml",
        "seed of the campaign",
        "Intel X540-T2",
        "isolcpus=1,2",
        "ssh dut rss-type1",
        "rx-flow-hash set",
        "Debian GNU/Linux 12 (bookworm)",
    ):
        assert stated in shown, stated
    if version == 4:
        assert "198.18.255.254" in shown


def test_of_a_mix_both_plans_are_stated_as_they_were_sent() -> None:
    """SEED-49: the second plan has addresses, gateways and routes too. If a file says otherwise of it, it is
    not taken for that plan."""
    record = read_record(recorded_file("throughput-mix"))

    def rows() -> list[list[str]]:
        return [[cell.text for cell in row] for row in traffic_table(record).rows]

    first, second = rows()
    assert first[1:3] == ["gateway-v4, 9 of 10 frames", "20 x 20 addresses"]
    assert second[1:3] == ["gateway-v6, 1 of 10 frames", "20 x 20 addresses"]
    assert second[6] == "2001:2:0:1000::2, 2001:2:0:9000::2"
    assert second[7].startswith("2001:2::/64 via 2001:2:0:1000::2; ")
    (search,) = record.points[0].repetitions[0].searches
    wrongs: list[dict[str, Any]] = [{"name": "gateway_v4"}, {"name": "x"}, {"left": []}, {"udp_ports": None}]
    for wrong in wrongs:
        mix = search.setup["mix"]
        other = {**mix["versions"]["other_plan"], **wrong}
        record = changed(record, {**mix, "versions": {**mix["versions"], "other_plan": other}})
        assert [row[1] for row in rows()] == ["gateway-v4+gateway-v6"]
    for nothing in (None, 7, {"versions": 7}, {"versions": {"share": 9}}):
        record = changed(record, nothing)
        assert [row[1] for row in rows()] == ["gateway-v4+gateway-v6"]


def changed(record: CampaignRecord, mix: Any) -> CampaignRecord:
    """The same with another mix in its one search."""
    (point,) = record.points
    (repetition,) = point.repetitions
    (search,) = repetition.searches
    search = replace(search, setup={**search.setup, "mix": mix})
    return replace(record, points=(replace(point, repetitions=(replace(repetition, searches=(search,)),)),))


def test_what_nobody_said_of_the_dut_is_named() -> None:
    """SEED-84, SEED-81: each fact of Figure 6 is told or named as missing; a testbed without any is no better
    than one unknown."""
    shown = Page(text_of(4)).shown
    assert (
        "Not stated about the DUT: kernel parameters that limit it, possible policing of the traffic."
        in shown
    )
    unknown = page_of(small(testbeds={"lab one": {"dut": None}})).shown
    assert f"Not stated about the DUT: {', '.join(DUT_FACTS.values())}." in unknown


def test_deviations_are_told_once_and_one_pair_of_the_campaign_counts() -> None:
    """SEED-02, SEED-85: a suite that began with one pair does not deviate; one that did not says so."""
    text = Page(text_of(4)).shown
    assert text.count("the final trial lasted 5 s instead of 60 s") == 1
    assert "this result is not preceded by a result with a single address pair" not in page_of(small()).shown
    many = page_of(small([appendix_a(4, REPETITIONS).points[4]])).shown
    assert "SEED-02 : this result is not preceded" in many


def test_latency_bursts_and_rates_stand_in_tables_as_the_rfcs_have_them() -> None:
    """R8219-11, R8219-12, R9004-11, R2544-23: all columns that they ask for."""
    text = text_of(4)
    tables = [
        re.findall(r"<th [^>]*>([^<]*)</th>", table)
        for table in re.findall(r"<table>.*?</table>", text, flags=re.DOTALL)
    ]

    def has(*titles: str) -> bool:
        return any(set(titles) <= set(table) for table in tables)

    assert has("frame size, octets", "figure", "median, ms", "1st percentile, ms", "99th percentile, ms")
    assert "typical (median)" in text
    assert "worst case (99.9th percentile)" in text
    assert "PDV (99.9th percentile minus minimum)" in text
    assert "rate 500 kfps; media Ethernet, 10 Gbps; repetitions 20" in text
    assert has("average, frames", "std. dev., frames", "corrected buffer time, ms", "repetitions")
    assert re.search(r"step [\d,]+; longest burst tried [\d,]+", text)
    assert has("frame size, octets", "median", "theoretical limit", "of the limit, %")
    assert "protocol UDP over IPv4" in text


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_few_values_have_no_percentiles(plan: str) -> None:
    """R8219-11, R8219-12: they would be the ends of the range under another name; RFC 8219 has 20 runs."""
    for procedure in ("latency", "pdv"):
        for runs in (1, 2, 20):
            one = delay_record(point_of("s", 0, plan, 4, procedure, 128), chance=random.Random(1), runs=runs)
            found = record_of([one])
            table = latency_table(found) or variation_table(found)
            assert table is not None
            cells = {
                column.title: [cell.text for cell in cells]
                for column, *cells in zip(table.columns, *table.rows, strict=True)
            }
            assert f"repetitions {runs};" in table.caption
            assert NONE not in cells["median, ms"]
            shown = [name for name in cells if "percentile" in name]
            assert shown == ([] if runs < 20 else ["1st percentile, ms", "99th percentile, ms"])
            assert ("the 1st percentile is the minimum" in table.caption) is (runs == 20)


def test_a_campaign_that_goes_on_shows_how_far_it_is_and_asks_for_itself_again() -> None:
    done = appendix_a(4, REPETITIONS).points[0]
    begun = replace(appendix_a(4, REPETITIONS).points[4], state=PointState.BEGUN)
    pending = PointRecord(
        point=point_of("direct, type1", 9, "direct-v4-net16", 512),
        state=PointState.PENDING,
        reason=None,
        hooks=(),
        repetitions=(),
    )
    going = small([done, begun, pending], finished_at=None)
    page = page_of(going)
    assert [meta.get("content") for meta in page.all("meta") if meta.get("http-equiv") == "refresh"] == ["10"]
    assert "Not finished when this page was written: 1 of 3 points done" in page.shown
    assert [(bar.get("max"), bar.get("value")) for bar in page.all("progress")] == [("3", "1")]
    cut_short = page_of(going, refresh_s=None)
    assert not [meta for meta in cut_short.all("meta") if meta.get("http-equiv") == "refresh"]
    assert not page_of(replace(going, finished_at="2026-03-02T19:40:12Z")).all("progress")


def test_a_campaign_of_which_nothing_was_measured_has_a_page() -> None:
    pending = PointRecord(
        point=point_of("direct", 0, "gateway-v6", 1, size=84),
        state=PointState.PENDING,
        reason=None,
        hooks=(),
        repetitions=(),
    )
    page = page_of(
        record_of([pending], finished_at=None, testbeds={}, commands=(), host={}, versions={}, spec={})
    )
    assert_self_contained(page)
    assert "No verdict" in page.shown or "not" in page.shown
    assert page.all("figure") == []


HOSTILE = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}$\\frac$"


def test_what_a_file_says_never_becomes_markup() -> None:
    """Files come from others: names, reasons, commands and outputs are text and nothing else, in pictures
    too."""
    plain = appendix_a(4, REPETITIONS)
    chosen = [
        plain.points[0],
        plain.points[4],
        *(found for found in plain.points if found.point.suite in ("loss", "latency", "recovery")),
    ]
    hook = HookRun(when=HOSTILE, command=HOSTILE, exit_code=None, output=HOSTILE, duration_s=1.0)
    points = [
        replace(
            found,
            reason=HOSTILE,
            hooks=(hook,),
            point=replace(
                found.point,
                suite=HOSTILE,
                key=f"{HOSTILE}{number}",
                plan_options={HOSTILE: HOSTILE},
                goal={HOSTILE: HOSTILE},
            ),
            repetitions=tuple(
                replace(rep, testbed=HOSTILE, started_at=HOSTILE, outcome=HOSTILE, reason=HOSTILE)
                for rep in found.repetitions
            ),
        )
        for number, found in enumerate(chosen)
    ]
    record = record_of(
        points,
        name=HOSTILE,
        hooks=(hook,),
        commands=((HOSTILE, HOSTILE),),
        versions={HOSTILE: HOSTILE},
        host={HOSTILE: HOSTILE},
        spec={HOSTILE: HOSTILE},
        testbeds={HOSTILE: {"dut": {HOSTILE: HOSTILE}, "testbed": {HOSTILE: HOSTILE}}},
        created_at=HOSTILE,
        finished_at=HOSTILE,
        notes=(HOSTILE,),
        path=Path("a.evenhand"),
    )
    page = page_of(record)
    assert_self_contained(page)
    assert "<script" not in page.text.lower()
    assert "onerror=alert(2)>" not in page.text
    assert "{{7*7}}$\\frac$" in page.text
    assert re.fullmatch(r"[a-z0-9-]+", "".join(page.ids()))


def test_suites_whose_names_make_the_same_id_are_kept_apart() -> None:
    losses = [found for found in appendix_a(4, REPETITIONS).points if found.point.suite == "loss"][:2]
    named = [
        replace(found, point=replace(found.point, suite=suite))
        for found, suite in zip(losses, ("a b", "a-b"), strict=True)
    ]
    page = page_of(record_of(named))
    assert_self_contained(page)
    assert {"figure-frame-loss-a-b", "figure-frame-loss-a-b-2"} <= set(page.ids())


def test_too_many_trials_for_a_page_stay_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.report.page_points.MOST_TRIALS", 10)
    page = page_of(small())
    assert "trials are too many for a page. They are in appendix-a.evenhand" in page.shown
    assert 'data-label="verdict"' not in page.text


@pytest.mark.thorough
def test_the_page_is_replaced_as_a_whole_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader, or a crash, never meets half a page; what is no page of ours is not overwritten."""
    page = tmp_path / "a.html"
    write_page(small(), page)
    first = page.read_bytes()
    opened = page.open("rb")
    write_page(small(name="another"), page)
    assert opened.read() == first
    opened.close()
    assert b"another" in page.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]
    foreign = tmp_path / "thesis.html"
    foreign.write_text("<html>mine</html>")
    link = tmp_path / "link.html"
    link.symlink_to(page)
    speaking = tmp_path / "README.md"
    speaking.write_text("# Evenhand\n\n`<!DOCTYPE html><meta name='generator' content='Evenhand 0.1'>`\n")
    notes = tmp_path / "notes.html"
    notes.write_text("<!DOCTYPE html>\n<title>Evenhand</title>")
    for taken in (foreign, link, tmp_path, speaking, notes):
        with raises("base.file-exists"):
            write_page(small(), taken)
    assert foreign.read_text() == "<html>mine</html>"
    assert speaking.read_text().startswith("# Evenhand")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with raises("base.file-not-writable", match="No space left on device"):
        write_page(small(), page)
    assert b"another" in page.read_bytes()
    assert len(list(tmp_path.iterdir())) == 5


def test_a_folder_that_cannot_be_written_is_an_error_with_its_parts(tmp_path: Path) -> None:
    with raises("base.file-not-writable") as raised:
        write_page(small(), tmp_path / "nowhere" / "a.html")
    error = raised.value
    assert (error.exit_code, error.where) == (3, str(tmp_path / "nowhere" / "a.html"))
    assert error.next_step
    with raises("report.folder-not-created"):
        write_pictures(small(), Path(os.devnull) / "pictures")


def test_pictures_are_files_with_text_that_stays_text(tmp_path: Path) -> None:
    """SVG and PNG of each picture; colours are plain there, since few programs know CSS variables."""
    written = write_pictures(small(), tmp_path / "new" / "pictures")
    again = write_pictures(small(), tmp_path / "new" / "pictures")
    assert written == again
    assert {file.suffix for file in written} == {".svg", ".png"}
    for file in written:
        content = file.read_bytes()
        if file.suffix == ".png":
            assert content.startswith(b"\x89PNG")
            continue
        assert b"addresses on each side</text>" in content or b"time since sending began, s</text>" in content
        assert b"var(" not in content
        assert b"<title>" in content


def test_the_module_names_what_it_replaces() -> None:
    """The mark is in the first octets of all that it writes."""
    assert page_module.MARK.match(render_page(small(), analyse(small())).encode()[:1024])


def test_the_axes_of_a_loss_graph_go_from_0_to_100_percent() -> None:
    """R2544-28: whatever was lost, and at whatever loads."""
    picture = loss_picture(
        "loss",
        "loss",
        [LossCurve(label="64", repetitions=(((50.0, 0.0), (60.0, 3.0)),))],
        of="theoretical maximum",
    )
    for shape in (
        PictureShape(name="wide", width=8, height=4),
        PictureShape(name="narrow", width=4, height=4),
    ):
        axes = Figure().add_subplot()
        picture.draw(axes, shape)
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 100), (0, 100))
