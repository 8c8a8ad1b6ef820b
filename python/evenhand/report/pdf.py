# SPDX-License-Identifier: Apache-2.0
"""Station 10: a page as PDF, printed by a program that is there: Chromium without a window, or WeasyPrint.
Nothing is fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evenhand.base.errors import HostError

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WEASYPRINT = "weasyprint"
TIMEOUT_S = 180.0
"""A page of a large campaign takes some ten seconds on a busy machine."""


def check_printer(where: str) -> None:
    """HostError if there is no program that prints; to be asked before the page is drawn."""
    if not _printers():
        raise HostError(
            "a PDF needs chromium or weasyprint, but neither is installed",
            code="report.no-pdf-program",
            where=where,
            next_step="Install one, for example with `apt install chromium`; or open the HTML page in a"
            " browser and print it.",
        )


def print_pdf(page: str, *, where: str) -> bytes:
    """The page on sheets of A4. Where Chromium prints nothing, as without a sandbox for its user, WeasyPrint
    is asked if it is there.

    Raises:
        HostError: There is no program that prints, or it printed nothing.
    """
    check_printer(where)
    problems = []
    with tempfile.TemporaryDirectory(prefix="evenhand-pdf-") as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.pdf"
        for program in _printers():
            is_weasyprint = program == WEASYPRINT
            source.write_text(_without_variables(page) if is_weasyprint else page, encoding="utf-8")
            command = (
                [program, str(source), str(target)]
                if is_weasyprint
                else _of_chromium(program, Path(folder), source, target)
            )
            said = _run(command, Path(folder), where)
            if target.is_file() and (content := target.read_bytes()).startswith(b"%PDF"):
                return content
            last = next(
                (line for line in reversed(said.splitlines()) if line.strip()), "it printed no message"
            )
            problems.append(f"{program} printed no PDF: {last[:300]}")
    raise HostError(
        "; ".join(problems),
        code="report.pdf-failed",
        where=where,
        next_step="Open the HTML page in a browser and print it there.",
    )


def _printers() -> list[str]:
    """What is there, in the order in which it is asked."""
    chromium = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    return [*([chromium] if chromium else []), *([WEASYPRINT] if shutil.which(WEASYPRINT) else [])]


def _without_variables(page: str) -> str:
    """Colours of the pictures written out: WeasyPrint draws black what has a variable's colour, though each
    names one for paper too."""
    return re.sub(r"var\(--[\w-]+, ?(#[0-9a-fA-F]{3,8})\)", r"\1", page)


def _of_chromium(program: str, folder: Path, source: Path, target: Path) -> list[str]:
    """The command, with a profile of its own that goes away; no name is resolved, so that nothing is fetched
    whatever the page says."""
    return [
        program,
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # as root its sandbox does not start
        f"--user-data-dir={folder / 'profile'}",
        "--no-pdf-header-footer",
        "--print-to-pdf-no-header",
        f"--print-to-pdf={target}",
        source.as_uri(),
    ]


def _run(command: Sequence[str], folder: Path, where: str) -> str:
    """What it said. HOME is the folder, so that it leaves nothing in the user's."""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, "HOME": str(folder)},
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"{command[0]} did not print the page within {TIMEOUT_S:.0f} s",
            code="report.pdf-failed",
            where=where,
            next_step="Try again when the machine is less busy; or open the HTML page in a browser and print"
            " it there.",
        ) from error
    except OSError as error:
        raise HostError(
            f"{command[0]} cannot be started: {error.strerror}",
            code="report.pdf-failed",
            where=where,
            next_step="Reinstall chromium.",
        ) from error
    return ended.stdout.decode(errors="replace")
