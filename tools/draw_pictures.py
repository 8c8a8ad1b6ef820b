#!/usr/bin/env -S .venv/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/pictures/ with the code that draws them for users. Called by
tools/generate-docs.

demo.svg has the numbers of the demo's output in the tutorial, so that picture and text never differ;
series.svg those of a simulated series.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "docs" / "pictures"
OUTPUT = "docs/tutorial/one-router-three-results.md"
ROW = re.compile(r"^(addresses[\w ]*?) {2,}[^\w.]* ([\d.]+) +([\d.]+) +([\d.]+)\n +(.+)$", re.MULTILINE)
"""Two lines of the table: what is hashed, share of the plateau, found, predicted; what was sent."""
UNIT = re.compile(r"found, (\w?fps) +predicted, \1$", re.MULTILINE)
"""In its heading: that of both."""


def demo_picture() -> bytes:
    from evenhand.analysis.ratios import SAME_WITHIN
    from evenhand.base.units import parse_rate
    from evenhand.report.figures import draw_svg_file
    from evenhand.report.figures_bias import Bar, bars_picture

    output = (
        (ROOT / OUTPUT)
        .read_text(encoding="utf-8")
        .partition("<!-- demo-output -->")[2]
        .partition("<!-- /demo-output -->")[0]
    )
    rows = ROW.findall(output)
    units = UNIT.findall(output)
    assert (len(rows), len(units)) == (3, 1), f"{OUTPUT}: the demo's table has changed"
    predicted = [parse_rate(f"{row[3]}{units[0]}") for row in rows]
    bars = [
        Bar(
            hashes=hashes,
            address_words=addresses.strip(),
            found_fps=parse_rate(f"{found}{units[0]}"),
            share=float(percent) / 100,
            predicted_fps=parse_rate(f"{expected}{units[0]}"),
            is_even=float(percent) / 100 >= 1 - SAME_WITHIN,
        )
        for hashes, percent, found, expected, addresses in rows
    ]
    return draw_svg_file(bars_picture(bars, max(predicted)), follows_theme=True)


def series_picture() -> bytes:
    from evenhand.analysis import analyse
    from evenhand.report.figures import draw_svg_file
    from evenhand.report.page_figures import pictures_of
    from tests.report.campaigns import series_a

    record = series_a()
    return draw_svg_file(pictures_of(record, analyse(record)).first[0], follows_theme=True)


PICTURES = {"demo.svg": demo_picture, "series.svg": series_picture}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        head, _, rest = draw().partition(b"\n")
        (FOLDER / name).write_bytes(head + b"\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n" + rest)


if __name__ == "__main__":
    main()
