# SPDX-License-Identifier: Apache-2.0
"""Pages on paper: sheets of A4, printed by a program that is there, or an error that names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenhand.errors import HostError
from evenhand.report.pdf import check_printer, print_pdf
from tests.report.chromium import find_chromium

PAGE = "<!DOCTYPE html><title>a</title><style>@page { size: A4 }</style><p>text</p>"


def test_without_a_program_that_prints_the_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="chromium or weasyprint") as caught:
        check_printer("--pdf a.pdf")
    assert "apt install chromium" in caught.value.next_step


def test_a_program_that_prints_nothing_is_an_error_with_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real program that ends without a file, as a Chromium does that cannot start."""
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'cannot start: no room'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(HostError, match="cannot start: no room"):
        print_pdf(PAGE, where="--pdf a.pdf")


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed: tools/install-dependencies prove")
def test_chromium_prints_sheets_of_a4() -> None:
    content = print_pdf(PAGE, where="--pdf a.pdf")
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert box is not None
    assert [round(float(side)) for side in box.groups()] == [595, 842] or [int(float(side)) for side in box.groups()] == [594, 841]
