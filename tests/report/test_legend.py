# SPDX-License-Identifier: Apache-2.0
"""Report: the legend of a picture is never cut."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from evenhand.report.figures import WIDE, put_legend


@pytest.mark.parametrize("letters", [20, 50, 51, 95])
def test_a_legend_fits_its_picture(letters: int) -> None:
    """Labels name suite, addresses, size, hash, load and direction."""
    figure = Figure(figsize=(WIDE.width, WIDE.height), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    for number in range(4):
        axes.plot([0, 1], label=("addresses " * letters)[: letters - 1] + str(number))
    put_legend(axes, WIDE)
    canvas.draw()  # type: ignore[no-untyped-call]
    extent = figure.legends[0].get_window_extent()
    assert extent.x1 <= figure.bbox.x1
