# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign at every moment of it, with every outcome, for every procedure there is: it is
drawn, and what has no points says so. What cannot be shown ends no measurement."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.analysis import analyse
from evenhand.cli.live_page import LivePage
from evenhand.cli.progress import contained
from evenhand.cli.progress.json_lines import JsonProgress
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.procedure import Note
from evenhand.procedure.registry import PROCEDURES, THROUGHPUT
from evenhand.report import page as page_module
from evenhand.report.figures import (
    NARROW,
    NO_POINTS,
    NOT_DRAWN,
    Picture,
    _draw,
    draw_inline,
    draw_png_file,
    draw_svg_file,
)
from evenhand.report.figures_throughput import sizes_picture
from evenhand.report.page import render_page, write_page
from evenhand.report.page_figures import pictures_of
from evenhand.run import read_record
from evenhand.run.campaign_record import PointRecord, PointState
from tests.report.campaigns import point_of, record_of, throughput_record
from tests.report.pages import Page
from tests.run.goldens import recorded_file

SIZES = (64, 512)
HOSTS = (1, 16)


@cache
def measured() -> list[PointRecord]:
    chance = random.Random(1)
    return [
        throughput_record(
            point_of("sizes", number, "gateway-v4", hosts, "throughput", size, repetitions=2),
            1e6,
            chance=chance,
        )
        for number, (size, hosts) in enumerate((s, h) for s in SIZES for h in HOSTS)
    ]


def _as_of(procedure: str, found: PointRecord) -> PointRecord:
    """The same values, as another procedure's. It has no documents of its results then."""
    others: dict[str, Any] = {} if procedure == THROUGHPUT.name else {"result": None}
    made = [replace(repetition, procedure=procedure, **others) for repetition in found.repetitions]
    return replace(found, point=replace(found.point, procedure=procedure), repetitions=tuple(made))


def moments(procedure: str) -> Iterator[tuple[str, list[PointRecord]]]:
    """A suite over frame sizes and addresses, at each moment at which its page may be drawn."""
    whole = [_as_of(procedure, one) for one in measured()]

    def with_repetitions(found: PointRecord, state: PointState, changes: list[dict[str, Any]]) -> PointRecord:
        made = [
            replace(repetition, **change)
            for repetition, change in zip(found.repetitions, changes, strict=False)
        ]
        reason = "tester_ceiling" if state is PointState.NO_NUMBER else None
        return replace(found, state=state, reason=reason, repetitions=tuple(made))

    under_way = {"finished_at": None, "outcome": None, "value": None, "result": None}
    without = {"value": None, "outcome": "tester_ceiling", "reason": "the tester's ceiling"}
    bound = {"outcome": "at_or_above_maximum"}
    first_states: dict[str, tuple[PointState, list[dict[str, Any]]]] = {
        "nothing is begun": (PointState.PENDING, []),
        "a repetition is begun": (PointState.BEGUN, [{**under_way, "searches": ()}]),
        "a trial is made": (PointState.BEGUN, [under_way]),
        "the first repetition has no value": (PointState.BEGUN, [without]),
        "the first repetition has a value": (PointState.BEGUN, [{}]),
        "a lower bound": (PointState.BEGUN, [bound]),
        "a value of zero": (PointState.BEGUN, [{"value": 0.0}]),
        "a result that says nothing": (
            PointState.BEGUN,
            [{"result": {}} if procedure == THROUGHPUT.name else {}],
        ),
        "no number": (PointState.NO_NUMBER, [without, without]),
    }
    for name, (state, changes) in first_states.items():
        later = [replace(one, state=PointState.PENDING, repetitions=()) for one in whole[1:]]
        yield name, [with_repetitions(whole[0], state, changes), *later]
    none = [with_repetitions(one, PointState.NO_NUMBER, [without, without]) for one in whole]
    yield "all without a number", none
    yield "one measured, one begun", [whole[0], with_repetitions(whole[1], PointState.BEGUN, [under_way])]


@pytest.mark.parametrize("procedure", [*PROCEDURES])
def test_every_moment_of_a_suite_has_its_pictures(procedure: str) -> None:
    for moment, points in moments(procedure):
        record = record_of(points, finished_at=None)
        for picture in pictures_of(record, analyse(record)).all:
            assert NOT_DRAWN not in picture.caption, moment
            _draw(picture, NARROW)  # raises what the page would say


def test_the_page_of_a_suite_over_sizes_without_a_value_says_that_there_is_none(tmp_path: Path) -> None:
    points = dict(moments("throughput"))["a trial is made"]
    record = record_of(points, finished_at=None)
    write_page(record, tmp_path / "a.html")
    page = Page((tmp_path / "a.html").read_text())
    assert "Throughput over the frame size: sizes" in page.shown
    assert NO_POINTS in page.shown


def test_a_picture_without_points_says_so_instead_of_an_axis_from_0_to_1() -> None:
    drawn = draw_inline(sizes_picture("a", "A title", [], []))
    assert drawn.count(NO_POINTS) == 2
    assert ">0.5<" not in drawn
    assert ">1.0<" not in drawn


def broken(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("of a picture")


def test_a_picture_that_cannot_be_drawn_says_so_in_every_form() -> None:
    picture = Picture(name="a", title="T", alt="T", caption="", draw=broken)
    assert draw_inline(picture).count(NOT_DRAWN) >= 2
    assert NOT_DRAWN in draw_svg_file(picture).decode()
    assert draw_png_file(picture).startswith(b"\x89PNG")


def test_a_page_is_made_although_one_of_its_pictures_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.report.page_figures.history_picture", broken)
    record = record_of(dict(moments("throughput"))["one measured, one begun"])
    page = render_page(record, analyse(record))
    assert page.count(NOT_DRAWN) >= 1
    assert "ZeroDivisionError" in page
    assert 'id="figure-throughput-over-addresses' in page


def live(tmp_path: Path, said: list[str]) -> LivePage:
    return LivePage(run=recorded_file("campaign-v4"), target=tmp_path / "a.html", say=said.append)


def test_a_bug_in_the_page_ends_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said once, the browser no longer reloads a page that does not come, and what ended the campaign
    remains what the user reads."""
    said: list[str] = []
    page = live(tmp_path, said)
    point = read_record(page.run).points[0].point
    (tmp_path / "a.html").write_text(
        '<!DOCTYPE html><meta name="generator" content="Evenhand 1"><meta http-equiv="refresh" content="10">'
    )
    monkeypatch.setattr(page_module, "render_page", broken)
    page.after_point(point)
    object.__setattr__(page, "_not_before_s", 0.0)
    page.after_point(point)
    assert len(said) == 1
    assert "a bug in Evenhand: ZeroDivisionError" in said[0]
    page.stop()
    assert "refresh" not in (tmp_path / "a.html").read_text()
    page.write()
    assert len(said) == 1


@pytest.mark.parametrize("display", [ProgressDisplay, JsonProgress])
def test_a_bug_in_a_line_of_progress_ends_no_measurement(
    display: type[ProgressDisplay], monkeypatch: pytest.MonkeyPatch
) -> None:
    contained.forget()
    monkeypatch.setattr(ProgressDisplay, "_show", broken)
    monkeypatch.setattr("json.dumps", broken)
    heard = io.StringIO()
    with redirect_stderr(heard), display(Console(file=io.StringIO())) as progress:
        progress.say("a note")
        progress.on_event(Note(text="another"))
        progress.on_event("not an event")  # type: ignore[arg-type]
    assert heard.getvalue().count("ZeroDivisionError: of a picture") == 1
    assert "The measurement goes on" in heard.getvalue()
