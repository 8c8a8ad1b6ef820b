# SPDX-License-Identifier: Apache-2.0
"""`evenhand report`: a page of any run file, and what it says where it cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended
from tests.report.pages import Page, assert_self_contained

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_the_run_of_a_verb_becomes_a_page_beside_it(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """SEED-02, SEED-49: one address pair and many addresses, each with its trials; the command that made
    them."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    assert (
        evenhand("throughput", testbed, "--plan", plan, "--one-pair-first", *SEARCH, "--run", run).code == 0
    )
    ended = evenhand("report", run, "--pictures", tmp_path / "pictures")
    assert ended.code == 0, ended.err
    assert f"The page: {tmp_path / 'a.html'}" in ended.out
    page = Page((tmp_path / "a.html").read_text())
    assert_self_contained(page)
    assert "1 address pair" in page.shown
    assert f"plan {plan}" in page.shown
    assert {"throughput-over-addresses"} == {
        file.name[:25] for file in (tmp_path / "pictures").glob("throughput*.svg")
    }
    again = evenhand("report", run, "--output", tmp_path / "a.html")
    assert (again.code, again.err) == (0, "")
    by_old_name = evenhand("report", run, "--html", tmp_path / "a.html")
    assert by_old_name.code == 0
    assert "is called --output now" in by_old_name.err


def test_frame_sizes_and_loss_become_the_graphs_of_rfc_2544(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """R2544-22, R2544-28: from the files that the verbs write."""
    engine_playing("simulated-640000")
    for verb, name, picture in (
        ("throughput", "t", "throughput-over-frame-sizes"),
        ("loss", "l", "frame-loss"),
    ):
        options = SEARCH if verb == "throughput" else SEARCH[:4]
        run = tmp_path / f"{name}.evenhand"
        assert evenhand(verb, testbed, "--frame-size", "64,128,256", *options, "--run", run).code == 0
        assert evenhand("report", run).code == 0
        assert f'id="figure-{picture}' in run.with_suffix(".html").read_text()


def test_what_cannot_be_read_or_written_is_said(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    assert evenhand("throughput", testbed, *SEARCH, "--run", run).code == 0
    (tmp_path / "notes.html").write_text("mine")
    for arguments, exit_code, code in (
        ((tmp_path / "b.evenhand",), 2, "run.no-such-file"),
        ((testbed,), 2, "run.not-a-run"),
        ((run, "--output", tmp_path / "nowhere" / "a.html"), 3, "base.file-not-writable"),
        ((run, "--output", tmp_path / "notes.html"), 2, "base.file-exists"),
        ((run, "--output", tmp_path / "a.html", "--pictures", run), 3, "report.folder-not-created"),
    ):
        ended = evenhand("report", *arguments)
        assert (ended.code, ended.error.code) == (exit_code, code)
        assert str(arguments[-1]) in ended.error.where
        assert ended.error.next_step
    assert (tmp_path / "notes.html").read_text() == "mine"


def test_a_page_that_cannot_be_written_is_refused_before_it_is_drawn(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after twenty seconds of drawing; and the look leaves nothing behind, an older page least of all."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    evenhand("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--waits", "short", "--run", run)
    assert evenhand("report", run, "--output", "page.html").code == 0
    assert not list(tmp_path.glob(".evenhand-*"))

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("drawing has begun")

    monkeypatch.setattr("evenhand.report.page.render_page", fail)
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "mine.html").write_text("mine")
    for name, exit_code, code in (
        ("missing/x.html", 3, "base.file-not-writable"),
        ("file/x.html", 3, "base.file-not-writable"),
        ("mine.html", 2, "base.file-exists"),
    ):
        ended = evenhand("report", run, "--output", name)
        assert (ended.code, ended.error.code, ended.error.where) == (exit_code, code, name)


def test_pdf_is_refused_before_the_page_is_drawn(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file is there already, and where nothing prints: then the error says what to install, and no
    page is written."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    evenhand("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--waits", "short", "--run", run)
    (tmp_path / "mine.pdf").write_text("mine")
    taken = evenhand("report", run, "--pdf", tmp_path / "mine.pdf")
    assert (taken.code, (tmp_path / "mine.pdf").read_text()) == (2, "mine")
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = evenhand("report", run, "--pdf", tmp_path / "a.pdf")
    assert ended.code == 3
    assert ended.error.code == "report.no-pdf-program"
    assert "apt install chromium" in ended.error.next_step
    assert not run.with_suffix(".html").exists()
