# SPDX-License-Identifier: Apache-2.0
"""Pages on paper: sheets of A4, printed by a program that is there, or an error that names one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from evenhand import report
from evenhand.report.pdf import check_printer, print_pdf
from tests.errors import raises
from tests.report.chromium import find_chromium

PAGE = "<!DOCTYPE html><title>a</title><style>@page { size: A4 }</style><p>text</p>"


def test_without_a_program_that_prints_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises("report.no-pdf-program") as caught:
        check_printer("--pdf a.pdf")
    assert "apt install chromium" in caught.value.next_step


def test_a_program_that_prints_nothing_is_an_error_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real program that ends without a file, as a Chromium does that cannot start."""
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'cannot start: no room'\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises("report.pdf-failed", match="no room"):
        print_pdf(PAGE, where="--pdf a.pdf")
    other = tmp_path / "weasyprint"
    other.write_text("#!/bin/sh\nprintf '%%PDF-1.7 of it' > \"$2\"\n")
    other.chmod(0o755)
    assert print_pdf(PAGE, where="--pdf a.pdf") == b"%PDF-1.7 of it"


def _starts(chromium: str | None) -> bool:
    """Not without a sandbox: in a chroot nobody but root has one, and a kernel may forbid it."""
    if chromium is None:
        return False
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [chromium, "--headless", "--disable-gpu", *options, "--dump-dom", "about:blank"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    find_chromium() is None, reason="Chromium is not installed: tools/install-dependencies prove"
)
def test_chromium_prints_sheets_of_a4(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _starts(find_chromium()):
        pytest.skip("Chromium does not start here")
    monkeypatch.setattr("evenhand.report.pdf.WEASYPRINT", "none-of-it")
    content = print_pdf(PAGE, where="--pdf a.pdf")
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert box is not None
    assert [round(float(side)) for side in box.groups()] == [595, 842] or [
        int(float(side)) for side in box.groups()
    ] == [594, 841]


@pytest.mark.skipif(
    shutil.which("weasyprint") is None, reason="WeasyPrint is not installed: tools/install-dependencies prove"
)
def test_weasyprint_prints_a_page_with_its_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows no variables in a picture, draws black what has one, and fails at a marker whose content is a
    text."""
    (tmp_path / "weasyprint").symlink_to(str(shutil.which("weasyprint")))
    monkeypatch.setenv("PATH", str(tmp_path))
    style = (Path(report.__file__).parent / "templates" / "style.css.j2").read_text()
    flagged = "".join(line for line in style.splitlines(keepends=True) if line.startswith("li.flagged"))
    picture = (
        '<svg width="10" height="10" viewBox="0 0 10 10"><rect width="9" height="9" style="fill:'
        ' var(--c1,#ff0000)"/></svg>'
    )
    content = print_pdf(
        f"{PAGE}<style>{flagged}</style><ul><li class=flagged>note</ul>{picture}", where="--pdf a.pdf"
    )
    text = _uncompressed(content)
    box = re.search(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+) ?\]", text)
    assert box is not None
    assert [round(float(side)) for side in box.groups()] == [595, 842]
    assert re.search(rb"\b1(\.0)? 0(\.0)? 0(\.0)? rg", text)


def _uncompressed(pdf: bytes) -> bytes:
    """The file and all that is compressed in it."""
    found = [pdf]
    for match in re.finditer(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        with contextlib.suppress(zlib.error):
            found.append(zlib.decompressobj().decompress(match[1]))
    return b"\n".join(found)
